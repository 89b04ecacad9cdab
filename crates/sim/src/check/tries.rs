//! A try never stands in line: it holds, or it has left nothing behind (P7).

use holdfast_locktable::{command::Wait, name::Name};

use super::Findings;
use crate::cluster::Cluster;

/// Looks at the queues of these locks.
pub fn look(now: u64, names: &[Name], cluster: &Cluster, findings: &Findings) {
    cluster.each_table(|group, member, table, _| {
        for queue in names.iter().filter_map(|name| table.queue(name)) {
            if let Some(waits) = queue.entries.iter().skip(1).find(|entry| entry.wait == Wait::Try) {
                let (name, session) = (queue.name.text(), waits.session);
                let sentence =
                    format!("{name:?} of group {group} on member {member}: a try of session {session} waits");
                findings.add("tries", now, sentence);
            }
        }
    });
}

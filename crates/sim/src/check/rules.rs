//! The rules of the lock table hold in every state of every member.
//!
//! They are the table's own, written beside it; a member checks them when it reads a snapshot, and here they are checked
//! while it runs. Knows none of them.

use std::collections::BTreeMap;

use holdfast_locktable::invariants;
use holdfast_partitioner::GroupId;

use super::Findings;
use crate::{cluster::Cluster, network::Node};

/// How far each table had come when it was looked at last.
#[derive(Debug, Default)]
pub struct Rules(BTreeMap<(GroupId, Node), u64>);

impl Rules {
    /// Looks at every table that has moved since the last look.
    pub fn look(&mut self, now: u64, cluster: &Cluster, findings: &Findings) {
        cluster.each_table(|group, member, table, at| {
            if self.0.insert((group, member), at.index) == Some(at.index) {
                return;
            }
            if let Err(broken) = invariants::check(table) {
                let sentence = format!("group {group} on member {member} at index {}: {broken}", at.index);
                findings.add("rules", now, sentence);
            }
        });
    }
}

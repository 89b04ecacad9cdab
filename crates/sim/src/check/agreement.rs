//! Members are in the same state at the same index, and a member in the same state as itself before a crash.
//!
//! Looks at states as bytes. An index that no two looks met says nothing.

use std::collections::BTreeMap;

use holdfast_partitioner::GroupId;
use sha2::{Digest, Sha256};

use super::Findings;
use crate::{cluster::Cluster, network::Node};

/// So many states per group are remembered, the newest.
const REMEMBERED: usize = 512;

type StateDigest = [u8; 32];

/// The states seen so far.
#[derive(Debug, Default)]
pub struct Agreement {
    seen: BTreeMap<GroupId, BTreeMap<u64, (Node, StateDigest)>>,
    /// The index at which a member's state was looked at last.
    looked: BTreeMap<(GroupId, Node), u64>,
    compared: u64,
}

impl Agreement {
    /// Looks at every table that has moved since the last look.
    pub fn look(&mut self, now: u64, cluster: &Cluster, findings: &Findings) {
        cluster.each_table(|group, member, table, at| {
            if self.looked.insert((group, member), at.index) == Some(at.index) {
                return;
            }
            let digest: StateDigest = Sha256::digest(table.encode()).into();
            let seen = self.seen.entry(group).or_default();
            match seen.get(&at.index) {
                Some((other, theirs)) => {
                    self.compared += 1;
                    if *theirs != digest {
                        let sentence = format!(
                            "group {group} on member {member} differs from member {other} at index {}",
                            at.index
                        );
                        findings.add("agreement", now, sentence);
                    }
                }
                None => {
                    seen.insert(at.index, (member, digest));
                }
            }
            while seen.len() > REMEMBERED {
                seen.pop_first();
            }
        });
    }

    /// How many states were compared with another.
    #[must_use]
    pub fn compared(&self) -> u64 {
        self.compared
    }
}

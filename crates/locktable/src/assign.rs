//! Who shall have which partitions of a claim: a pure function of weights and present owners.
//!
//! Each member shall have its share by weight, rounded down or up. Who has more keeps the rest that rounding leaves before
//! anybody else gets it, so that no partition moves that need not. Knows nothing of sessions' lives, of tokens' making, or
//! of when a revoked partition comes free.

use alloc::{collections::BinaryHeap, vec, vec::Vec};
use core::cmp::Reverse;

use serde::{Deserialize, Serialize};

use crate::ids::{SessionId, Token};

/// Who has a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Owner {
    /// The member.
    pub session: SessionId,
    /// The partition's fencing token since then.
    pub token: Token,
    /// Whether it is to give the partition back. It has it until it says that it has stopped, or leaves, or ends.
    pub revoking: bool,
}

impl Owner {
    /// Whether this very hold of this member is being revoked.
    pub(crate) fn is_revoked_of(&self, session: SessionId, token: Token) -> bool {
        self.revoking && self.session == session && self.token == token
    }
}

/// One member of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// The member.
    pub session: SessionId,
    /// Its weight against the others; 0 for one that shall have nothing any more.
    pub weight: u32,
}

/// What is to be changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// Partitions whose owners are to give them back.
    pub revoke: Vec<u32>,
    /// Free partitions with their new owners, by partition.
    pub give: Vec<(u32, SessionId)>,
}

impl Plan {
    /// Whether everything is as it shall be.
    pub fn is_empty(&self) -> bool {
        self.revoke.is_empty() && self.give.is_empty()
    }
}

/// What is to be changed so that everybody has its share. `members` in order of sessions, every owner among them.
///
/// A partition that is being revoked counts for nobody: once it is free, it goes to whoever is below its share then.
pub fn plan(members: &[Part], owners: &[Option<Owner>]) -> Plan {
    let mut has = vec![0; members.len()];
    let mut kept: Vec<(Token, u32, usize)> = Vec::new();
    let mut free = Vec::new();
    for (partition, owner) in (0..).zip(owners) {
        match owner {
            None => free.push(partition),
            Some(Owner { revoking: true, .. }) => {}
            Some(owner) => {
                if let Ok(at) = members.binary_search_by_key(&owner.session, |member| member.session) {
                    has[at] += 1;
                    kept.push((owner.token, partition, at));
                }
            }
        }
    }
    let shares = shares(members, &has, owners.len() as u64);
    // What came last has grown least roots.
    kept.sort_unstable_by_key(|kept| Reverse(*kept));
    let mut revoke = Vec::new();
    for (_, partition, at) in kept {
        if has[at] > shares[at] {
            has[at] -= 1;
            revoke.push(partition);
        }
    }
    revoke.sort_unstable();
    Plan { revoke, give: give(members, &has, &shares, free) }
}

/// Deals free partitions out, each to whoever lacks most.
fn give(members: &[Part], has: &[u64], shares: &[u64], free: Vec<u32>) -> Vec<(u32, SessionId)> {
    let lacking = members.iter().zip(shares.iter().zip(has)).filter(|(_, (share, has))| share > has);
    let mut lacking: BinaryHeap<(u64, Reverse<SessionId>)> =
        lacking.map(|(member, (share, has))| (share - has, Reverse(member.session))).collect();
    let mut given = Vec::with_capacity(free.len());
    for partition in free {
        let Some((lacks, session)) = lacking.pop() else { break };
        given.push((partition, session.0));
        if lacks > 1 {
            lacking.push((lacks - 1, session));
        }
    }
    given
}

/// How many of so many partitions each member shall have. What rounding down leaves goes to those who have more than that
/// already, then to those with the largest rest, then in order of sessions.
fn shares(members: &[Part], has: &[u64], partitions: u64) -> Vec<u64> {
    let total: u64 = members.iter().map(|member| u64::from(member.weight)).sum();
    if total == 0 {
        return vec![0; members.len()];
    }
    let exact = members.iter().map(|member| u64::from(member.weight) * partitions);
    let mut shares: Vec<u64> = exact.clone().map(|exact| exact / total).collect();
    let spare = partitions - shares.iter().sum::<u64>();
    let mut rests: Vec<(bool, u64, Reverse<usize>)> = exact
        .enumerate()
        .map(|(at, exact)| (has.get(at) > shares.get(at), exact % total, Reverse(at)))
        .filter(|(_, rest, _)| *rest > 0)
        .collect();
    rests.sort_unstable_by_key(|rest| Reverse(*rest));
    for (_, _, Reverse(at)) in rests.into_iter().take(spare as usize) {
        shares[at] += 1;
    }
    shares
}

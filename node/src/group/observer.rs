//! Elections and leaderless times of one group, from what its Raft half reports.
//!
//! Counts; decides nothing.

use std::{fmt, time::Instant};

use holdfast_partitioner::GroupId;
use parking_lot::Mutex;

use crate::{
    metrics::{
        Instruments,
        raft::{ElectionResult, LeaderChange},
    },
    raft::{leadership::Leadership, observe::RaftObserver, types::MemberId},
};

#[derive(Debug)]
struct Seen {
    leader: Option<MemberId>,
    leaderless_since: Option<Instant>,
    standing: bool,
}

/// Follows one group's Raft half on this member.
pub struct GroupObserver {
    group: GroupId,
    member: MemberId,
    instruments: Instruments,
    seen: Mutex<Seen>,
}

impl fmt::Debug for GroupObserver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "GroupObserver(group {})", self.group)
    }
}

impl GroupObserver {
    /// An observer for a group on a member.
    pub fn new(group: GroupId, member: MemberId, instruments: Instruments) -> Self {
        let seen = Seen { leader: None, leaderless_since: Some(Instant::now()), standing: false };
        Self { group, member, instruments, seen: Mutex::new(seen) }
    }
}

impl RaftObserver for GroupObserver {
    fn vote_asked(&self) {
        self.seen.lock().standing = true;
    }

    fn leadership(&self, now: &Leadership) {
        let mut seen = self.seen.lock();
        if now.leader == seen.leader {
            return;
        }
        seen.leader = now.leader;
        let Some(leader) = now.leader else {
            seen.leaderless_since = Some(Instant::now());
            return;
        };
        if let Some(since) = seen.leaderless_since.take() {
            self.instruments.raft.leader_found(self.group, since.elapsed());
        }
        self.instruments.raft.leader_changed(self.group, LeaderChange::Election);
        if std::mem::take(&mut seen.standing) {
            let result = if leader == self.member { ElectionResult::Won } else { ElectionResult::Lost };
            self.instruments.raft.election_ended(self.group, result);
        }
    }
}

//! Elections and leaderless times of one group, from what its Raft half reports.
//!
//! Counts; decides nothing.

use std::{fmt, time::Duration};

use holdfast_locktable::ids::Term;
use holdfast_partitioner::GroupId;
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::{
    metrics::{
        Instruments,
        raft::{ElectionResult, LeaderChange},
        snapshot::SnapshotKind,
    },
    raft::{leadership::Leadership, observe::RaftObserver, types::MemberId},
};

#[derive(Debug)]
struct Seen {
    leader: Option<MemberId>,
    leaderless_since: Option<Instant>,
    /// The newest term in which this member stood for election, until that has ended.
    standing: Option<Term>,
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
        let seen = Seen { leader: None, leaderless_since: Some(Instant::now()), standing: None };
        Self { group, member, instruments, seen: Mutex::new(seen) }
    }
}

impl RaftObserver for GroupObserver {
    fn standing(&self, term: Term) {
        let earlier = self.seen.lock().standing.replace(term);
        if earlier.is_some_and(|earlier| earlier != term) {
            self.instruments.raft.election_ended(self.group, ElectionResult::Timeout);
        }
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
        if seen.standing.take().is_some() {
            let result = if leader == self.member { ElectionResult::Won } else { ElectionResult::Lost };
            self.instruments.raft.election_ended(self.group, result);
        }
    }

    fn confirmed(&self, _callers: usize, took: Duration, success: bool) {
        self.instruments.raft.confirmed(self.group, success, took);
    }

    fn applied(&self, _entries: usize, took: Duration) {
        self.instruments.raft.applied(self.group, took);
    }

    fn installed(&self, took: Duration, success: bool) {
        self.instruments.snapshot.step_ended(SnapshotKind::Install, success, took);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn led_by(leader: Option<MemberId>, term: u64) -> Leadership {
        Leadership { leader, term: Term(term), here: false, quiet_since: None }
    }

    #[test]
    fn elections_count_at_those_who_stood() {
        let metrics = crate::metrics::tests::metrics();
        let observer = GroupObserver::new(GroupId(7), 1, metrics.instruments.clone());
        // A split vote, then a lost one, then one without this member, then one won.
        observer.standing(Term(2));
        observer.standing(Term(3));
        observer.standing(Term(3));
        observer.leadership(&led_by(Some(2), 3));
        for (leader, term) in [(None, 3), (Some(3), 4), (None, 4)] {
            observer.leadership(&led_by(leader, term));
        }
        observer.standing(Term(5));
        observer.leadership(&led_by(Some(1), 5));
        let text = metrics.render().unwrap();
        let count = |result: &str| {
            let line =
                format!(r#"holdfast_raft_elections_total{{holdfast_group_id="7",result="{result}"}} 1"#);
            assert!(text.contains(&line), "{line} in\n{text}");
        };
        ["timeout", "lost", "won"].into_iter().for_each(count);
        assert!(
            text.contains(r#"holdfast_raft_leader_changes_total{cause="election",holdfast_group_id="7"} 3"#),
            "{text}"
        );
    }
}

//! Who leads a group, as this member knows it, and whether it is this member, ready to decide.

use std::{sync::Arc, time::Duration};

use holdfast_locktable::ids::Term;
use holdfast_partitioner::GroupId;
use openraft::{
    Instant as _, Raft, async_runtime::watch::WatchReceiver, errors::Fatal, metrics::RaftServerMetrics,
    vote::RaftLeaderId,
};
use tokio::{
    sync::watch,
    time::{Instant, sleep},
};

use super::{
    machine::StateMachine,
    observe::RaftObserver,
    silence::Silence,
    timing::Timing,
    types::{LeaderId, LogId, MemberId, TypeConfig},
};

/// Who leads a group, as this member knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Leadership {
    /// The leader; `None` between two leaders.
    pub leader: Option<MemberId>,
    /// The newest term that this member has on disk.
    pub term: Term,
    /// Whether this member leads and has applied an entry of its own term, and, where it had lost its quorum for a while, all
    /// that it had appended by then: only then is its state that of a leader.
    ///
    /// It says nothing about now: a leader that is cut off goes on believing. What needs proof asks
    /// [`RaftGroup::confirm_leadership`](super::group::RaftGroup::confirm_leadership). One that has not heard from a quorum
    /// for the longest election timeout believes no more, although openraft would: `leader` is `None` until it has.
    pub here: bool,
    /// While there is no leader: since when none has been heard, as far as this member can tell.
    pub quiet_since: Option<Instant>,
}

impl Leadership {
    /// Before anything is known.
    pub(crate) const UNKNOWN: Self = Self { leader: None, term: Term(0), here: false, quiet_since: None };
}

/// The group cannot go on in this process: its log, its state or openraft itself has failed. The process must end; it
/// finds its state in the log when it starts again.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("group {group} cannot go on: {reason}; this member must stop, and may start again")]
pub struct GroupFatal {
    /// The group.
    pub group: GroupId,
    /// What failed.
    pub reason: Arc<str>,
}

/// Looks at the age of the quorum's last word per longest election timeout.
const LOOKS: u32 = 4;

/// The leadership that openraft says this member holds.
#[derive(Clone, Copy)]
struct Held {
    id: LeaderId,
    since: Instant,
    /// Whether no quorum has been heard for too long.
    alone: bool,
    /// It was alone for a while and is no more: entries up to here were appended before, and may be applied only now. Whoever
    /// decided them has forgotten them, so that nothing is decided anew until they are.
    owed: Option<u64>,
}

impl Held {
    const fn new(id: LeaderId, since: Instant) -> Self {
        Self { id, since, alone: false, owed: None }
    }

    /// A look at whether a quorum is heard. `appended`: the end of the log, which a leader owes that hears one again.
    fn hears(&mut self, alone: bool, appended: impl FnOnce() -> Option<u64>) {
        if self.alone && !alone {
            self.owed = appended();
        }
        self.alone = alone;
    }

    /// Whether all that it has to know before it decides anything is applied.
    fn is_ready(&self, applied: Option<LogId>) -> bool {
        applied.is_some_and(|id| id.leader_id == self.id && Some(id.index) >= self.owed)
    }
}

/// Everything that the task of one group follows and tells.
pub(crate) struct Follow {
    pub(crate) group: GroupId,
    pub(crate) member: MemberId,
    pub(crate) raft: Raft<TypeConfig, StateMachine>,
    pub(crate) applied: watch::Receiver<Option<LogId>>,
    pub(crate) leadership: watch::Sender<Leadership>,
    pub(crate) fatal: watch::Sender<Option<GroupFatal>>,
    pub(crate) observer: Arc<dyn RaftObserver>,
    pub(crate) silence: Silence,
    pub(crate) timing: Timing,
}

impl Follow {
    /// Follows the group until it ends.
    pub(crate) async fn run(mut self) {
        let mut server = self.raft.server_metrics();
        let mut last = Leadership { quiet_since: Some(Instant::now()), ..Leadership::UNKNOWN };
        self.observer.leadership(&last);
        let mut leads: Option<Held> = None;
        loop {
            let (mut now, waits_for_apply) = {
                let server = server.borrow_and_update();
                if server.state.is_candidate() {
                    self.observer.standing(Term(server.vote.leader_id.term));
                }
                leads = self.leads(&server).map(|id| match leads {
                    Some(before) if before.id == id => before,
                    Some(_) | None => Held::new(id, Instant::now()),
                });
                self.look(&server, leads.as_mut())
            };
            if now.leader.is_none() {
                now.quiet_since = last.quiet_since.or_else(|| Some(self.unheard_since(leads)));
            }
            if now != last {
                last = now;
                self.leadership.send_replace(now);
                self.observer.leadership(&now);
            }
            tokio::select! {
                biased;
                () = sleep(self.timing.election_timeout_max / LOOKS), if leads.is_some() => {}
                changed = server.changed() => {
                    if changed.is_err() {
                        break;
                    }
                }
                changed = self.applied.changed(), if waits_for_apply => {
                    if changed.is_err() {
                        break;
                    }
                }
            }
        }
        self.ended(last);
    }

    /// The leadership that openraft says this member holds.
    fn leads(&self, server: &RaftServerMetrics<TypeConfig>) -> Option<LeaderId> {
        // A member that leads has its vote for itself on disk.
        let held: LeaderId = server.vote.leader_id.to_committed();
        let leads = server.state.is_leader()
            && server.current_leader == Some(self.member)
            && held.node_id == self.member;
        leads.then_some(held)
    }

    /// The present state, and whether it will change with the next applied entry.
    fn look(
        &mut self,
        server: &RaftServerMetrics<TypeConfig>,
        leads: Option<&mut Held>,
    ) -> (Leadership, bool) {
        let applied = *self.applied.borrow_and_update();
        let (leads_here, mut ready, mut alone) = (leads.is_some(), false, false);
        if let Some(held) = leads {
            alone = self.quorum_age(held.since) > self.timing.election_timeout_max;
            held.hears(alone, || self.raft.metrics().borrow_watched().last_log_index);
            ready = held.is_ready(applied);
        }
        self.silence.keep(alone);
        let leader = server.current_leader.filter(|_| !alone);
        let term = Term(server.vote.leader_id.to_committed().term);
        let now = Leadership { leader, term, here: ready && !alone, quiet_since: None };
        (now, leads_here && !ready)
    }

    /// How long ago a quorum acknowledged this leader, counted from the sending of what it acknowledged. `since`: when it
    /// became the leader, which a quorum's votes made it.
    fn quorum_age(&self, since: Instant) -> Duration {
        let metrics = self.raft.metrics();
        let metrics = metrics.borrow_watched();
        if metrics.membership_config.membership().voter_ids().all(|voter| voter == self.member) {
            return Duration::ZERO;
        }
        let led = since.elapsed();
        metrics.last_quorum_acked.map_or(led, |at| at.elapsed().min(led))
    }

    /// Since when no leader has been heard, where that was just found.
    fn unheard_since(&self, leads: Option<Held>) -> Instant {
        let now = Instant::now();
        // A follower looks for another leader after at least the shortest election timeout.
        let quiet = leads.map_or(self.timing.election_timeout_min, |held| self.quorum_age(held.since));
        now.checked_sub(quiet).unwrap_or(now)
    }

    fn ended(&self, last: Leadership) {
        let quiet_since = last.quiet_since.or_else(|| Some(Instant::now()));
        let gone = Leadership { leader: None, here: false, quiet_since, ..last };
        self.leadership.send_replace(gone);
        self.observer.leadership(&gone);
        let reason: Arc<str> = match &self.raft.metrics().borrow_watched().running_state {
            Err(Fatal::Stopped) => return,
            Err(Fatal::StorageError(err)) => err.to_string().into(),
            Err(Fatal::Panicked) | Ok(()) => "its Raft core ended in a panic".into(),
        };
        tracing::error!(group = %self.group, %reason, "a Raft group cannot go on");
        self.fatal.send_replace(Some(GroupFatal { group: self.group, reason }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The entry of this index, appended by the leader of this term.
    fn entry(term: u64, index: u64) -> Option<LogId> {
        Some(LogId::new(leader(term), index))
    }

    fn leader(term: u64) -> LeaderId {
        LeaderId { term, node_id: 1 }
    }

    #[test]
    fn a_new_leader_is_ready_with_the_first_entry_of_its_term() {
        let held = Held::new(leader(3), Instant::now());
        assert!(!held.is_ready(None));
        assert!(!held.is_ready(entry(2, 40)));
        assert!(held.is_ready(entry(3, 41)));
    }

    #[test]
    fn a_leader_that_was_alone_is_ready_once_all_is_applied_that_it_had_appended() {
        let mut held = Held::new(leader(3), Instant::now());
        held.hears(false, || unreachable!("it was never alone"));
        held.hears(true, || unreachable!("it is alone still"));
        assert!(held.is_ready(entry(3, 41)), "what it may decide meanwhile is another question");
        held.hears(false, || Some(57));
        assert!(!held.is_ready(entry(3, 56)), "what it decided then may still change what it decides now");
        assert!(held.is_ready(entry(3, 57)));
        held.hears(false, || unreachable!("it was not alone again"));
        assert!(!held.is_ready(entry(3, 56)));
    }
}

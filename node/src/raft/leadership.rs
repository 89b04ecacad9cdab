//! Who leads a group, as this member knows it, and whether it is this member, ready to decide.

use std::sync::Arc;

use holdfast_locktable::ids::Term;
use holdfast_partitioner::GroupId;
use openraft::{
    Raft, async_runtime::watch::WatchReceiver, errors::Fatal, metrics::RaftServerMetrics, vote::RaftLeaderId,
};
use tokio::sync::watch;

use super::{
    machine::StateMachine,
    observe::RaftObserver,
    types::{LeaderId, LogId, MemberId, TypeConfig},
};

/// Who leads a group, as this member knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Leadership {
    /// The leader; `None` between two leaders.
    pub leader: Option<MemberId>,
    /// The newest term that this member has on disk.
    pub term: Term,
    /// Whether this member leads and has applied an entry of its own term: only then is its state that of a leader.
    ///
    /// It says nothing about now: a leader that is cut off goes on believing. What needs proof asks
    /// [`RaftGroup::confirm_leadership`](super::group::RaftGroup::confirm_leadership).
    pub here: bool,
}

impl Leadership {
    /// Before anything is known.
    pub(crate) const UNKNOWN: Self = Self { leader: None, term: Term(0), here: false };
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

/// Everything that the task of one group follows and tells.
pub(crate) struct Follow {
    pub(crate) group: GroupId,
    pub(crate) member: MemberId,
    pub(crate) raft: Raft<TypeConfig, StateMachine>,
    pub(crate) applied: watch::Receiver<Option<LogId>>,
    pub(crate) leadership: watch::Sender<Leadership>,
    pub(crate) fatal: watch::Sender<Option<GroupFatal>>,
    pub(crate) observer: Arc<dyn RaftObserver>,
}

impl Follow {
    /// Follows the group until it ends.
    pub(crate) async fn run(mut self) {
        let mut server = self.raft.server_metrics();
        let mut last = Leadership::UNKNOWN;
        self.observer.leadership(&last);
        loop {
            let (now, waits_for_apply) = self.look(&server.borrow_and_update());
            if now != last {
                last = now;
                self.leadership.send_replace(now);
                self.observer.leadership(&now);
            }
            tokio::select! {
                biased;
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

    /// The present state, and whether it will change with the next applied entry.
    fn look(&mut self, server: &RaftServerMetrics<TypeConfig>) -> (Leadership, bool) {
        // A member that leads has its vote for itself on disk, so this is the leadership it holds.
        let held: LeaderId = server.vote.leader_id.to_committed();
        let leads = server.state.is_leader()
            && server.current_leader == Some(self.member)
            && held.node_id == self.member;
        let applied = *self.applied.borrow_and_update();
        let ready = applied.is_some_and(|id| id.leader_id == held);
        let now = Leadership { leader: server.current_leader, term: Term(held.term), here: leads && ready };
        (now, leads && !ready)
    }

    fn ended(&self, last: Leadership) {
        let gone = Leadership { leader: None, here: false, ..last };
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

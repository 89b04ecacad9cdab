//! The state of one group, and the one way it changes.
//!
//! [`LockTable::apply`] takes an entry of the log and gives an outcome or a rejection, events and facts. It refuses to
//! know why an entry was proposed, when, or who is listening. Reads are in `read`; what each command does is in `commands`.

mod changes;
mod claims;
mod export;
mod history;
mod index;
mod moves;
mod ownership;
mod queue;
mod rare;
mod read;
mod requests;
mod restore;
mod state;

use alloc::vec::Vec;

use holdfast_partitioner::{GroupId, MapEpoch};

pub(crate) use self::{
    changes::{Changes, queue_for},
    claims::{Claim, Joined, Member},
    index::Index,
    moves::{Arriving, Incoming, Sealed},
    queue::Slot,
    requests::{Earlier, Requests},
    state::{Absent, Key, Pending, Place, Role, Session, State},
};
pub use self::{
    export::{Arrival, Goer},
    history::{HISTORY_BYTES, HISTORY_EVENTS},
    read::{RequestState, WaitView},
    requests::{MAX_ENDED_HOLDS, MAX_ENDED_TEXTS, MAX_OUTSTANDING},
    restore::{RestoreRefusal, Restoring},
};
use crate::{
    command::{Command, Proposal},
    commands,
    ids::{Revision, Term},
    name::Name,
    outcome::{Applied, Outcome, Rejection},
    route,
};

/// Where an entry stands in the group's log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    /// Its index.
    pub index: u64,
    /// The term it was appended under.
    pub term: Term,
}

/// Sessions, keys, queues and claims of one lock group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockTable {
    pub(crate) state: State,
    pub(crate) index: Index,
    /// Of the keys of an import under way, so that they can be taken in at once.
    pub(crate) arriving: Index,
    pub(crate) joined: Joined,
}

impl LockTable {
    /// A group that owns nothing and knows nobody.
    pub fn new(group: GroupId) -> Self {
        Self {
            state: State::new(group),
            index: Index::default(),
            arriving: Index::default(),
            joined: Joined::default(),
        }
    }

    /// A table around a state that was read, with its indexes built anew.
    pub(crate) fn from_state(mut state: State) -> Self {
        state.history.recount();
        let index = Index::of(&state.keys);
        let arriving =
            state.moves.incoming.as_ref().map_or_else(Index::default, |incoming| Index::of(&incoming.keys));
        let joined = Joined::of(&state.claims.live);
        Self { state, index, arriving, joined }
    }

    /// Applies one entry of the log. Never panics; where the result is `Err`, nothing has changed.
    pub fn apply(&mut self, at: Position, proposal: &Proposal) -> Applied {
        let mut changes = Changes::new(at, proposal.at_ms, self.state.revision);
        let result = self.run(&mut changes, &proposal.command);
        if result.is_ok() {
            self.settle(&mut changes);
        }
        let (events, facts) = match result {
            Ok(_) => changes.into_parts(),
            Err(_) => (Vec::new(), Vec::new()),
        };
        Applied { result, revision: self.state.revision, events, facts }
    }

    fn run(&mut self, changes: &mut Changes, command: &Command) -> Result<Outcome, Rejection> {
        match command {
            Command::Own(own) => commands::own::apply(self, own),
            Command::OpenSession(open) => commands::open_session::apply(self, changes, open),
            Command::AttachSession { session, group } => {
                commands::attach_session::apply(self, *session, *group)
            }
            Command::EndSession { session, epoch, reason } => {
                commands::end_session::apply(self, changes, *session, *epoch, *reason)
            }
            Command::ExpireSessions { sessions, term } => {
                commands::expire_sessions::apply(self, changes, sessions, *term)
            }
            Command::LearnEnds { ends } => commands::learn_ends::apply(self, changes, ends),
            Command::AckEnd { session, epoch, group } => {
                commands::ack_end::apply(self, changes, *session, *epoch, *group)
            }
            Command::ForgetEnds { ends } => commands::forget_ends::apply(self, ends),
            Command::Acquire(acquire) => commands::acquire::apply(self, changes, acquire),
            Command::Cancel(cancel) => commands::cancel::apply(self, changes, cancel),
            Command::Release { name, session, token } => {
                commands::release::apply(self, changes, name, *session, *token)
            }
            Command::ForceRelease { name, token } => {
                commands::force_release::apply(self, changes, name, *token)
            }
            Command::Proclaim { name, session, token, value } => {
                commands::proclaim::apply(self, changes, name, *session, *token, value)
            }
            Command::Txn(txn) => commands::txn::apply(self, changes, &[], txn),
            Command::Checkpoint { marked, cleared, term } => {
                commands::checkpoint::apply(self, changes, marked, cleared, *term)
            }
            Command::Compact { keep_from } => commands::compact::apply(self, *keep_from),
            Command::AttachTxn { contacts, txn } => commands::txn::apply(self, changes, contacts, txn),
            Command::AttachCancel { epoch, attach, cancel } => {
                commands::cancel::apply_first(self, changes, *epoch, attach, cancel)
            }
            Command::Seal(seal) => commands::seal::apply(self, changes, seal),
            Command::Import(import) => commands::import::apply(self, import),
            Command::Activate(activate) => commands::activate::apply(self, changes, activate),
            Command::Unseal { move_number } | Command::Discard { move_number } => {
                commands::give_up_move::apply(self, *move_number)
            }
            Command::Drop(dropped) => commands::drop_range::apply(self, changes, dropped),
            Command::AttachSessions { sessions, group } => {
                commands::attach_session::apply_all(self, sessions, *group)
            }
            Command::JoinClaim(join) => commands::join_claim::apply(self, changes, join),
            Command::LeaveClaim { name, session, epoch } => {
                commands::leave_claim::apply(self, changes, name, *session, *epoch)
            }
            Command::DrainClaim { name, session } => {
                commands::drain_claim::apply(self, changes, name, *session)
            }
            Command::AckRevoked(ack) => commands::ack_revoked::apply(self, changes, ack),
            Command::ResumeGrants(term) => commands::resume_grants::apply(self, changes, *term),
        }
    }

    /// Whether the group has ever been given ranges; a fresh one owns nothing until its leader proposes `Own`.
    pub fn has_owned(&self) -> bool {
        self.state.ownership.ever()
    }

    /// The map epoch at which the group's ranges changed last: while it stays the same, no hold came or went with a range.
    /// [`MapEpoch::NONE`] before the first.
    pub fn ownership_epoch(&self) -> MapEpoch {
        self.state.ownership.epoch()
    }

    /// Whether this group may change the queue `name`.
    pub fn owns(&self, name: &Name) -> Result<(), Rejection> {
        self.check_range(name.internal())
    }

    /// Whether this group may change the key: by its lock's name, or by the whole key as a name.
    pub fn owns_key(&self, key: &[u8]) -> Result<(), Rejection> {
        self.check_range(&route::of_key(key))
    }

    /// Whether this group may be read of the name: also while its range is sealed.
    pub fn may_read(&self, name: &Name) -> Result<(), Rejection> {
        self.state.ownership.check(name.internal())
    }

    /// Whether the name belongs to what this group has, be it sealed: what is said of it here is true.
    pub fn holds_range_of(&self, name: &Name) -> bool {
        self.may_read(name).is_ok()
    }

    /// As [`LockTable::owns`], for a name in its internal form.
    pub(crate) fn check_range(&self, internal: &str) -> Result<(), Rejection> {
        self.state.moves.check(internal)?;
        self.state.ownership.check(internal)
    }

    /// How long this group grants nothing after a restore, in milliseconds; `None` where it grants.
    pub fn paused_ms(&self) -> Option<u64> {
        self.state.paused_ms
    }

    /// Refuses what would give a lock or a partition to somebody while the group grants nothing.
    pub(crate) fn check_may_grant(&self) -> Result<(), Rejection> {
        self.state.paused_ms.map_or(Ok(()), |pause_ms| Err(Rejection::GrantsPaused { pause_ms }))
    }

    /// The revision of the next entry that changes keys or claims.
    pub(crate) fn next_revision(&self) -> Result<Revision, Rejection> {
        self.state.revision.next().ok_or(Rejection::CounterFull)
    }
}

#[cfg(test)]
mod tests;

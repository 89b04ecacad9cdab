//! What the leader of a group does for a move of a range (rules R16 to R18): as its source, as its destination, and as the
//! home of sessions that go along.
//!
//! Each verb may come twice, from whoever drives the move, and says the same then. It does not know how far a move is, or
//! why it is made.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use holdfast_locktable::{
    codec::Digest,
    command::{Activate, Command, DropRange, Import, LearnedEnd, Seal},
    ids::{MoveNumber, Revision, SessionEpoch, SessionId},
    moved::{Cursor, Export},
    mutant,
    name::Name,
    outcome::{Outcome, Rejection},
    table::{Goer, LockTable},
};
use holdfast_partitioner::{GroupId, Range};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use super::{
    Group,
    call::{GroupAnswer, GroupResult},
    proposer::GroupError,
};
use crate::lease::{Arrived, Arriving, LeftMs};

/// Sessions looked at under one hold of the table, so that applying never waits long.
const PAGE: usize = 2_000;

/// How long a request for a name of a range that is just coming in is kept before it is sent elsewhere.
const COMING: Duration = Duration::from_millis(250);

/// Pause before something is proposed again.
const AGAIN: Duration = Duration::from_millis(100);

/// A verb of a move.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum MoveCall {
    /// May this move begin here? Asked of both groups before anything is sealed (rule R19).
    Ready {
        /// The move.
        move_number: MoveNumber,
    },
    /// How much there is in a range.
    Count {
        /// The range.
        range: Range,
    },
    /// Seal a range.
    Seal {
        /// The move.
        move_number: MoveNumber,
        /// The range.
        range: Range,
    },
    /// Read the next part of a sealed range.
    Export {
        /// The move.
        move_number: MoveNumber,
        /// Where it begins.
        after: Cursor,
        /// How large it shall be.
        max_bytes: u32,
    },
    /// Take in a part.
    Import(Import),
    /// Sessions that have their home here go along to a group.
    Attach {
        /// The sessions.
        sessions: Vec<(SessionId, SessionEpoch)>,
        /// The group.
        group: GroupId,
    },
    /// Own what was imported.
    Activate(Activate),
    /// Take back a seal.
    Unseal {
        /// The move.
        move_number: MoveNumber,
    },
    /// Forget an import.
    Discard {
        /// The move.
        move_number: MoveNumber,
    },
    /// Let go of a range.
    Drop(DropRange),
    /// Of which ends of sessions that have their home here has a group not heard yet?
    Owed {
        /// The group.
        group: GroupId,
    },
}

/// What a verb of a move answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum MoveAnswer {
    /// Done, now or before.
    Done,
    /// How much there is.
    Count(RangeCount),
    /// A part of a sealed range.
    Part(Box<Export>),
    /// A part is in.
    Imported {
        /// Fingerprint of the whole, once it is complete.
        complete: Option<Digest>,
    },
    /// The group will be told of the ends of all but these.
    Attached {
        /// They have ended.
        lost: Vec<LearnedEnd>,
    },
    /// The range is owned.
    Activated {
        /// No token of the source is higher.
        revision: Revision,
    },
    /// The group has not acknowledged these.
    Owed(Vec<LearnedEnd>),
}

/// How much there is in a range.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RangeCount {
    /// Locks and elections that are held.
    pub held: u64,
    /// Waiters behind them.
    pub waiting: u64,
    /// Sessions with either.
    pub sessions: u64,
}

/// Sessions whose keepalives are not answered from before a seal is proposed until it stands in the table (rule R17). What
/// they had left was read for the seal; an answer now would promise more than the destination will know of.
///
/// There may be several, of one driver that was deposed and the next one: each protects its own.
#[derive(Debug, Default)]
pub struct Sealing(Mutex<Proposed>);

#[derive(Debug, Default)]
struct Proposed {
    begun: u64,
    seals: BTreeMap<u64, (MoveNumber, BTreeSet<SessionId>)>,
}

impl Sealing {
    /// A seal will be proposed. Answers what ends it.
    fn begin(&self, number: MoveNumber, sessions: BTreeSet<SessionId>) -> u64 {
        let mut proposed = self.0.lock();
        proposed.begun += 1;
        let begun = proposed.begun;
        proposed.seals.insert(begun, (number, sessions));
        begun
    }

    /// A seal is decided, or certainly never will be.
    fn end(&self, begun: u64) {
        self.0.lock().seals.remove(&begun);
    }

    /// Leadership is lost. It comes back only once all that was proposed before is in the table, or never will be.
    pub(super) fn end_all(&self) {
        self.0.lock().seals.clear();
    }

    /// Which of these sessions may not be acknowledged now. Asked after the quorum round that proves leadership.
    pub(super) fn withheld(&self, table: &LockTable, sessions: &[SessionId]) -> Vec<bool> {
        let mut proposed = self.0.lock();
        // One whose number the table has seen stands there, or never will.
        proposed.seals.retain(|_, (number, _)| table.highest_move() < *number);
        if proposed.seals.is_empty() && table.sealed().is_none() {
            return Vec::new();
        }
        let on_its_way = |session| proposed.seals.values().any(|(_, named)| named.contains(session));
        sessions.iter().map(|session| on_its_way(session) || table.is_sealed_in(*session)).collect()
    }
}

impl Group {
    /// Whether the name may be changed here. A range that is just coming in is waited for a little: whoever asks here for one
    /// of its names goes by a map that is a moment ahead of this group.
    pub(super) async fn owned(&self, name: &Name) -> Result<(), GroupError> {
        let deadline = Instant::now() + COMING;
        loop {
            let (owns, coming, next) = self.parts.raft.with_table(|table, at| {
                let owns = table.locks().map_or(Err(Rejection::NotOwner), |locks| locks.owns(name));
                let elsewhere = |locks: &LockTable| !locks.holds_range_of(name);
                let coming = owns.is_err() && table.locks().is_some_and(elsewhere);
                (owns, coming, at.map_or(0, |at| at.index + 1))
            });
            match owns {
                Err(Rejection::Sealed { .. }) if coming && Instant::now() < deadline => {
                    // Whichever comes first, the next look decides.
                    drop(tokio::time::timeout_at(deadline, self.parts.raft.applied(next)).await);
                }
                other => return other.map_err(GroupError::Rejected),
            }
        }
    }

    pub(super) async fn move_call(&self, call: MoveCall) -> GroupResult {
        let answer = match call {
            MoveCall::Ready { move_number } => self.ready(move_number).await?,
            MoveCall::Count { range } => {
                self.confirm().await?;
                MoveAnswer::Count(self.count(&range))
            }
            MoveCall::Seal { move_number, range } => self.seal(move_number, range).await?,
            MoveCall::Export { move_number, after, max_bytes } => {
                let part = self.locks(|table| table.export(move_number, &after, max_bytes as usize));
                MoveAnswer::Part(Box::new(part.ok_or(GroupError::Rejected(Rejection::NotPrepared))?))
            }
            MoveCall::Import(import) => self.step(Command::Import(import)).await?,
            MoveCall::Attach { sessions, group } => {
                self.step(Command::AttachSessions { sessions, group }).await?
            }
            MoveCall::Activate(activate) => self.activate(activate).await?,
            MoveCall::Unseal { move_number } => self.step(Command::Unseal { move_number }).await?,
            MoveCall::Discard { move_number } => self.step(Command::Discard { move_number }).await?,
            MoveCall::Drop(dropped) => self.step(Command::Drop(dropped)).await?,
            MoveCall::Owed { group } => {
                self.confirm().await?;
                MoveAnswer::Owed(self.locks(|table| table.owed_to(group)))
            }
        };
        Ok(GroupAnswer::Move(answer))
    }

    async fn step(&self, command: Command) -> Result<MoveAnswer, GroupError> {
        Ok(match self.parts.proposer.propose(command).await? {
            Outcome::Imported { complete, .. } => MoveAnswer::Imported { complete },
            Outcome::SessionsAttached { lost } => MoveAnswer::Attached { lost },
            Outcome::Activated { revision } => MoveAnswer::Activated { revision },
            _ => MoveAnswer::Done,
        })
    }

    async fn ready(&self, number: MoveNumber) -> Result<MoveAnswer, GroupError> {
        self.confirm().await?;
        self.locks(|table| table.may_move(number)).map_err(GroupError::Rejected)?;
        Ok(MoveAnswer::Done)
    }

    fn count(&self, range: &Range) -> RangeCount {
        let mut count = RangeCount::default();
        for goer in self.goers(range).iter().filter(|goer| goer.keys) {
            let (held, waiting) = self.locks(|table| table.count_in(range, goer.session));
            count.held += held;
            count.waiting += waiting;
            count.sessions += 1;
        }
        count
    }

    /// Seals a range with what its sessions have left. From before that is read on, they are not acknowledged.
    async fn seal(&self, move_number: MoveNumber, range: Range) -> Result<MoveAnswer, GroupError> {
        let term = self.leads().ok_or_else(|| GroupError::NotLeader { leader: self.leader() })?;
        let goers: Vec<Goer> = self.goers(&range).into_iter().filter(|goer| goer.keys).collect();
        let sessions: Vec<SessionId> = goers.iter().map(|goer| goer.session).collect();
        let begun = self.parts.sealing.begin(move_number, sessions.iter().copied().collect());
        let left = self.parts.lease.send(LeftMs(sessions)).await;
        let stopped = |error| self.unanswered(format_args!("the lease manager has stopped: {error}"));
        let left = left.map_err(stopped)?;
        let left = goers.iter().zip(left);
        let left = left.filter_map(|(goer, left)| Some((goer.session, goer.epoch, left?))).collect();
        let sealed =
            self.parts.proposer.propose(Command::Seal(Seal { move_number, range, term, left })).await;
        // Where it is not known whether the seal comes, nothing is acknowledged until it is.
        if !matches!(sealed, Err(GroupError::Unknown)) {
            self.parts.sealing.end(begun);
        }
        sealed.map(|_| MoveAnswer::Done)
    }

    /// Owns what was imported. What the lease manager decides meanwhile would be decided without knowing of the sessions that
    /// come along, and be applied behind them.
    ///
    /// Goes on to its end also where whoever asked is gone: until then nothing expires here.
    async fn activate(&self, activate: Activate) -> Result<MoveAnswer, GroupError> {
        let (group, number) = (self.clone(), activate.move_number);
        let stopped = |error| self.unanswered(format_args!("the lease manager has stopped: {error}"));
        if !mutant!("expiry-behind-an-arrival") {
            self.parts.lease.send(Arriving(number)).await.map_err(stopped)?;
        }
        let activated = tokio::spawn(async move {
            let activated = group.step(Command::Activate(activate)).await;
            if matches!(activated, Err(GroupError::Unknown)) {
                group.all_applied().await;
            }
            // The facts of what was applied have been told by now.
            group.parts.lease.do_send(Arrived(number));
            activated
        });
        activated.await.unwrap_or(Err(GroupError::Unknown))
    }

    /// Waits until everything that this leader has proposed so far is applied, or it leads no more.
    async fn all_applied(&self) {
        while let Some(term) = self.leads() {
            let nothing = Command::Checkpoint { marked: Vec::new(), cleared: Vec::new(), term };
            match self.parts.proposer.propose(nothing).await {
                Ok(_) | Err(GroupError::Rejected(_) | GroupError::NotLeader { .. }) => return,
                Err(_) => tokio::time::sleep(AGAIN).await,
            }
        }
    }

    fn goers(&self, range: &Range) -> Vec<Goer> {
        let (mut all, mut after) = (Vec::new(), None);
        loop {
            let (page, more) = self.locks(|table| table.sessions_of_range(range, after, PAGE));
            all.extend(page);
            match more {
                Some(last) => after = Some(last),
                None => return all,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(n: u64) -> SessionId {
        SessionId::new(n).unwrap()
    }

    #[test]
    fn a_seal_that_fails_lifts_only_its_own_protection() {
        let (sealing, table) = (Sealing::default(), LockTable::new(GroupId(1)));
        assert!(sealing.withheld(&table, &[id(1)]).is_empty());
        let deposed = sealing.begin(MoveNumber(4), [id(1)].into());
        let next = sealing.begin(MoveNumber(4), [id(1), id(2)].into());
        sealing.end(deposed);
        assert_eq!(sealing.withheld(&table, &[id(1), id(2), id(3)]), [true, true, false]);
        sealing.end(next);
        assert!(sealing.withheld(&table, &[id(1)]).is_empty());
    }
}

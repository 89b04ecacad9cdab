//! What the leader of a group does for a move of a range (rules R16 to R18): as its source, as its destination, and as the
//! home of sessions that go along.
//!
//! Each verb may come twice, from whoever drives the move, and says the same then. It does not know how far a move is, or
//! why it is made.

use std::collections::BTreeSet;

use holdfast_locktable::{
    codec::Digest,
    command::{Activate, Command, DropRange, Import, LearnedEnd, Seal},
    ids::{MoveNumber, Revision, SessionEpoch, SessionId},
    moved::{Cursor, Export},
    outcome::{Outcome, Rejection},
    table::{Goer, LockTable},
};
use holdfast_partitioner::{GroupId, Range};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use super::{
    Group,
    call::{GroupAnswer, GroupResult},
    proposer::GroupError,
};
use crate::lease::LeftMs;

/// Sessions looked at under one hold of the table, so that applying never waits long.
const PAGE: usize = 2_000;

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
#[derive(Debug, Default)]
pub struct Sealing(Mutex<Option<(MoveNumber, BTreeSet<SessionId>)>>);

impl Sealing {
    fn begin(&self, number: MoveNumber, sessions: BTreeSet<SessionId>) {
        *self.0.lock() = Some((number, sessions));
    }

    /// The seal is decided, or leadership is lost with it.
    pub(super) fn end(&self) {
        *self.0.lock() = None;
    }

    /// Which of these sessions may not be acknowledged now. Asked after the quorum round that proves leadership.
    pub(super) fn withheld(&self, table: &LockTable, sessions: &[SessionId]) -> Vec<bool> {
        let sealing = self.0.lock();
        let proposed = sealing.as_ref().filter(|(number, _)| table.highest_move() < *number);
        if proposed.is_none() && table.sealed().is_none() {
            return Vec::new();
        }
        let on_its_way = |session| proposed.is_some_and(|(_, named)| named.contains(session));
        sessions.iter().map(|session| on_its_way(session) || table.is_sealed_in(*session)).collect()
    }
}

impl Group {
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
            MoveCall::Activate(activate) => self.step(Command::Activate(activate)).await?,
            MoveCall::Unseal { move_number } => self.step(Command::Unseal { move_number }).await?,
            MoveCall::Discard { move_number } => self.step(Command::Discard { move_number }).await?,
            MoveCall::Drop(dropped) => self.step(Command::Drop(dropped)).await?,
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
        self.parts.sealing.begin(move_number, sessions.iter().copied().collect());
        let left = self.parts.lease.send(LeftMs(sessions)).await;
        let left =
            left.map_err(|error| GroupError::Fatal(format!("the lease manager has stopped: {error}")))?;
        let left = goers.iter().zip(left);
        let left = left.filter_map(|(goer, left)| Some((goer.session, goer.epoch, left?))).collect();
        let sealed =
            self.parts.proposer.propose(Command::Seal(Seal { move_number, range, term, left })).await;
        // Where it is not known whether the seal comes, nothing is acknowledged until it is.
        if !matches!(sealed, Err(GroupError::Unknown)) {
            self.parts.sealing.end();
        }
        sealed.map(|_| MoveAnswer::Done)
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

//! Ranges that are on their way from or to this group (rules R16 to R19): what of them is replicated.
//!
//! A group takes part in one move at a time. Move numbers only grow; a step of a lower one than the highest seen does
//! nothing (rule R18). Knows nothing of who drives a move or decides it.

use alloc::{boxed::Box, collections::BTreeMap, vec::Vec};

use bytes::Bytes;
use holdfast_partitioner::Range;
use serde::{Deserialize, Serialize};

use super::Key;
use crate::{
    codec::Digest,
    command::SessionEndReason,
    ids::{MoveNumber, Revision, SessionEpoch, SessionId},
    moved::MovedSession,
    mutant,
    outcome::Rejection,
};

/// The group's part in moves.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Moves {
    /// The highest number seen.
    pub(crate) highest: MoveNumber,
    /// The last one that gave this group a range.
    pub(crate) activated: MoveNumber,
    /// The range that is sealed for going.
    pub(crate) sealed: Option<Box<Sealed>>,
    /// The range that is coming.
    pub(crate) incoming: Option<Box<Incoming>>,
    /// Ranges that came, with the first revision from which on their history is here (rule R19).
    pub(crate) arrived: Vec<(Range, Revision)>,
}

/// A sealed range.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Sealed {
    pub(crate) move_number: MoveNumber,
    pub(crate) range: Range,
    /// The group's revision when it was sealed.
    pub(crate) revision: Revision,
    /// Milliseconds that sessions had left then.
    pub(crate) left: BTreeMap<SessionId, (SessionEpoch, u64)>,
}

/// An import under way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Incoming {
    pub(crate) move_number: MoveNumber,
    pub(crate) attempt: u64,
    pub(crate) range: Range,
    /// The part expected next.
    pub(crate) next: u32,
    /// Fingerprint of what has come.
    pub(crate) digest: Digest,
    /// The source's revision when it sealed the range; `None` until everything has come.
    pub(crate) complete: Option<Revision>,
    pub(crate) sessions: BTreeMap<SessionId, Arriving>,
    pub(crate) keys: BTreeMap<Bytes, Box<Key>>,
}

/// A session of an import.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Arriving {
    pub(crate) moved: MovedSession,
    /// Its home told of its end meanwhile.
    pub(crate) ended: Option<SessionEndReason>,
}

impl Moves {
    /// Whether a move with this number may begin here.
    pub(crate) fn check_new(&self, number: MoveNumber) -> Result<(), Rejection> {
        self.check_number(number)?;
        match self.under_way() {
            Some(move_number) => Err(Rejection::MoveUnderWay { move_number }),
            None if number == self.highest && !mutant!("two-drivers") => {
                Err(Rejection::StaleMove { highest: self.highest })
            }
            None => Ok(()),
        }
    }

    /// Refuses numbers below the highest.
    pub(crate) fn check_number(&self, number: MoveNumber) -> Result<(), Rejection> {
        if mutant!("two-drivers") {
            return Ok(());
        }
        if number < self.highest || number == MoveNumber::default() {
            return Err(Rejection::StaleMove { highest: self.highest });
        }
        Ok(())
    }

    /// The number of the move that this group takes part in.
    pub(crate) fn under_way(&self) -> Option<MoveNumber> {
        let sealed = self.sealed.as_ref().map(|sealed| sealed.move_number);
        sealed.or_else(|| self.incoming.as_ref().map(|incoming| incoming.move_number))
    }

    /// Refuses what routes by this internal name while its range is on its way.
    pub(crate) fn check(&self, internal: &str) -> Result<(), Rejection> {
        if mutant!("granted-after-seal") {
            return Ok(());
        }
        let sealed = self.sealed.as_ref().filter(|sealed| sealed.range.contains(internal));
        let incoming = self.incoming.as_ref().filter(|incoming| incoming.range.contains(internal));
        let number =
            sealed.map(|sealed| sealed.move_number).or_else(|| incoming.map(|incoming| incoming.move_number));
        number.map_or(Ok(()), |move_number| Err(Rejection::Sealed { move_number }))
    }

    /// A session of the import under way.
    pub(crate) fn arriving(&mut self, session: SessionId, epoch: SessionEpoch) -> Option<&mut Arriving> {
        let arriving = self.incoming.as_mut()?.sessions.get_mut(&session)?;
        Some(arriving).filter(|arriving| arriving.moved.epoch == epoch)
    }

    /// A range has come. Ranges whose history would be gone by now anyway are forgotten.
    pub(crate) fn arrived(&mut self, range: &Range, since: Revision, oldest: Revision) {
        self.arrived.retain(|(_, since)| *since > oldest);
        self.arrived.push((range.clone(), since));
    }
}

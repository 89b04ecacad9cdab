//! The two kinds of state that a group can replicate, behind one face: decode, apply, encode.

use std::{io, sync::Arc};

use bytes::Bytes;
use holdfast_locktable::{
    codec::decode_proposal,
    command::Proposal,
    outcome::Applied,
    table::{LockTable, Position},
};

use super::{
    sink::ApplySink,
    types::{Payload, Reply},
};
use crate::meta::{MetaApplied, MetaCommand, MetaTable, decode_command};

/// The state of one group.
#[derive(Clone, Debug)]
#[allow(clippy::large_enum_variant, reason = "there is one for each group, and it stays where it is")]
pub enum Table {
    /// Of a lock group.
    Locks(LockTable),
    /// Of the meta group.
    Meta(MetaTable),
}

/// What a group replicates, and who follows it on this member.
#[derive(Clone, Debug)]
#[allow(clippy::large_enum_variant, reason = "there is one for each group, handed over once")]
pub enum Machine {
    /// Locks.
    Locks {
        /// The state before the first entry of the log: an empty table of this group.
        table: LockTable,
        /// Who is told what was applied.
        sink: Arc<dyn ApplySink<Applied>>,
    },
    /// Partition map, members and audit log.
    Meta {
        /// The state before the first entry of the log: an empty table.
        table: MetaTable,
        /// Who is told what was applied.
        sink: Arc<dyn ApplySink<MetaApplied>>,
    },
}

/// A command as read from the log.
pub(crate) enum Decoded {
    Locks(Proposal),
    Meta(MetaCommand),
}

/// What one table gave for several entries, on its way to the sink.
pub(crate) enum Batch {
    Locks(Vec<(Position, Applied)>),
    Meta(Vec<(Position, MetaApplied)>),
}

/// The sink of either kind.
#[derive(Clone, Debug)]
pub(crate) enum Sink {
    Locks(Arc<dyn ApplySink<Applied>>),
    Meta(Arc<dyn ApplySink<MetaApplied>>),
}

impl Machine {
    pub(crate) fn into_parts(self) -> (Table, Sink) {
        match self {
            Machine::Locks { table, sink } => (Table::Locks(table), Sink::Locks(sink)),
            Machine::Meta { table, sink } => (Table::Meta(table), Sink::Meta(sink)),
        }
    }
}

impl Table {
    /// The lock table, where this is a lock group.
    #[must_use]
    pub const fn locks(&self) -> Option<&LockTable> {
        match self {
            Table::Locks(table) => Some(table),
            Table::Meta(_) => None,
        }
    }

    /// The meta table, where this is the meta group.
    #[must_use]
    pub const fn meta(&self) -> Option<&MetaTable> {
        match self {
            Table::Locks(_) => None,
            Table::Meta(table) => Some(table),
        }
    }

    /// Applies a command, which must come from [`Sink::decode`] of the same kind of group, and adds what it gave to the
    /// batch.
    pub(crate) fn apply(&mut self, at: Position, command: Decoded, batch: &mut Batch) -> io::Result<()> {
        match (self, command, batch) {
            (Table::Locks(table), Decoded::Locks(proposal), Batch::Locks(batch)) => {
                batch.push((at, table.apply(at, &proposal)));
                Ok(())
            }
            (Table::Meta(table), Decoded::Meta(command), Batch::Meta(batch)) => {
                batch.push((at, table.apply(command)));
                Ok(())
            }
            (Table::Locks(_) | Table::Meta(_), _, _) => {
                Err(io::Error::other("a command of another kind of group reached this one's state"))
            }
        }
    }

    /// The whole state as bytes; equal states have equal bytes.
    pub(crate) fn encode(&self) -> io::Result<Bytes> {
        match self {
            Table::Locks(table) => Ok(table.encode().into()),
            Table::Meta(table) => table.encode().map(Bytes::from).map_err(io::Error::other),
        }
    }
}

impl Batch {
    /// The answer to whoever proposed the newest command.
    pub(crate) fn last_reply(&self) -> Reply {
        match self {
            Batch::Locks(batch) => batch.last().map_or(Reply::Nothing, |(_, applied)| Reply::Lock {
                result: applied.result.clone(),
                revision: applied.revision,
            }),
            Batch::Meta(batch) => {
                batch.last().map_or(Reply::Nothing, |(_, applied)| Reply::Meta(applied.result.clone()))
            }
        }
    }
}

impl Sink {
    /// Reads one command from the log.
    pub(crate) fn decode(&self, payload: &Payload) -> io::Result<Decoded> {
        match self {
            Sink::Locks(_) => decode_proposal(&payload.0).map(Decoded::Locks).map_err(io::Error::other),
            Sink::Meta(_) => decode_command(&payload.0).map(Decoded::Meta).map_err(io::Error::other),
        }
    }

    /// Reads a whole state from a snapshot.
    pub(crate) fn decode_table(&self, bytes: &[u8]) -> io::Result<Table> {
        match self {
            Sink::Locks(_) => LockTable::decode(bytes).map(Table::Locks).map_err(io::Error::other),
            Sink::Meta(_) => MetaTable::decode(bytes).map(Table::Meta).map_err(io::Error::other),
        }
    }

    pub(crate) fn new_batch(&self, capacity: usize) -> Batch {
        match self {
            Sink::Locks(_) => Batch::Locks(Vec::with_capacity(capacity)),
            Sink::Meta(_) => Batch::Meta(Vec::with_capacity(capacity)),
        }
    }

    pub(crate) fn applied(&self, batch: Batch) {
        match (self, batch) {
            (Sink::Locks(sink), Batch::Locks(batch)) if !batch.is_empty() => sink.applied(batch),
            (Sink::Meta(sink), Batch::Meta(batch)) if !batch.is_empty() => sink.applied(batch),
            // Nothing to tell: the entries carried no commands.
            (Sink::Locks(_) | Sink::Meta(_), _) => {}
        }
    }

    pub(crate) fn restored(&self) {
        match self {
            Sink::Locks(sink) => sink.restored(),
            Sink::Meta(sink) => sink.restored(),
        }
    }
}

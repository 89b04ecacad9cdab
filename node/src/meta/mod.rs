//! The replicated state of the meta group: the partition map and its changes, which members carry which groups, who the
//! members are, and the audit log.
//!
//! Pure: commands go in, outcomes come out. It knows no clock, no disk and no network, and nothing of Raft.

pub mod changes;
pub mod command;
pub mod follow;
pub mod group;
pub mod looks;
pub mod placement;
pub mod places;
pub mod roster;
pub mod roster_asks;
pub mod sets;
pub mod table;

mod codec;

pub use self::{
    codec::{MetaDecodeError, decode_command, encode_command},
    command::{AuditRecord, MemberRecord, MetaCommand, MetaOutcome, MetaRejection},
    table::{AUDIT_RECORDS, AuditLine, MetaApplied, MetaTable},
};

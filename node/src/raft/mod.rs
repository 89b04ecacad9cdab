//! The openraft glue: the only place of the workspace, beside the log store, that names openraft.
//!
//! ```text
//!   propose ─► Proposer ─► openraft ─► log store          peers ◄── GroupLinks ◄── openraft
//!                             │                           peers ──► RaftGroup::receive_…
//!                             ▼ apply
//!                        StateMachine ─► Table ─► ApplySink, then the proposer's answer
//! ```
//! Knows how a command gets agreed on and applied. Does not know what it means: that is the table's matter.

pub mod confirm;
pub mod fault;
pub mod group;
pub mod leadership;
pub mod membership;
pub mod observe;
pub mod propose;
pub mod replay;
pub mod seed;
pub mod sink;
pub mod status;
pub mod table;
pub mod timing;
pub mod types;

mod ages;
mod compaction;
mod deadline;
mod machine;
mod network;
mod receive;
mod silence;

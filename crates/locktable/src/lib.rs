//! The replicated state of one lock group: sessions, keys, queues, claims, revisions.
//!
//! Pure and `no_std`: commands go in, an outcome, events and facts come out. This crate knows no clock, no disk, no
//! network, no randomness and no hash order; the same commands give the same state on every member. Time enters as a
//! decision of the leader, carried in a command.
//!
//! ```text
//!  log entry ── decode_proposal ──► Proposal ──► LockTable::apply ──► Applied
//!                                                  │                   ├─ result    to whoever asked: Outcome or Rejection
//!              commands/<verb>.rs: check, then write                   ├─ events    to watchers; kept in the history
//!              table/changes.rs: put, delete, and at the end           └─ facts     to the leader's timers and waiting calls
//!              of the entry grant every queue with a new head
//!
//!  snapshot ◄── LockTable::encode ── State (table/state.rs) ── LockTable::decode ──► indexes built anew, invariants checked
//! ```
//!
//! # The parts
//! - [`ids`], [`name`], [`metadata`]: the small typed values. [`route`]: by which name a key routes.
//! - [`command`] and [`txn`]: what can be asked; [`outcome`]: what is answered; [`event`]: what happened; [`view`]: what
//!   can be read; [`moved`]: what goes from one group to another.
//! - [`table`]: the state, how it changes (`changes`), what is derived from it (`index`), and all reads (`read`).
//! - `commands`: one file per command. [`invariants`]: the rules that hold after every entry. [`codec`]: bytes.
//!
//! # What a lock is
//! A key `NAME/<session id in lower-case hex>` whose lease is that session stands in the queue of `NAME`. Queues are in
//! order of create revisions; the first key holds, and its create revision is the fencing token. Every other key is an
//! ordinary one without influence on any queue, whatever it looks like. So clients of the native API and clients that run
//! etcd's recipe by themselves stand in one line.
//!
//! # What a claim is
//! A name with partitions that live sessions share by weight. [`assign`] says who shall have which; a partition that shall move
//! is revoked first, and given to the next only once its owner has stopped, left or ended. The revision at which it was given
//! is its fencing token.
//!
//! The revision is raised by exactly one for each entry that changes keys or claims, and by nothing else: opening a session, a
//! refused try and a repeated request leave it alone. Deleting the holder's key in any way grants the next one in the
//! same entry. An entry that is refused changes nothing at all.
//!
//! # Which rule lives where
//! | Rule | Where |
//! |---|---|
//! | P1 one holder, P6 one waiter woken, in FIFO order | `table/changes.rs`: grants are decided once per entry, from the queue's head |
//! | P2 tokens only grow | [`ids::Revision::next`], `table/changes.rs` |
//! | P5 every acquire ends once | facts of `table/changes.rs`: a wait and a hold end where their key goes |
//! | P7 a failed try writes nothing | `commands/acquire.rs`, and [`table::LockTable::apply`] for every refusal |
//! | R4 first contact, ends told until acknowledged | `commands/{contact,attach_session,end_session,learn_ends,ack_end,forget_ends}.rs` |
//! | R5 closed, forced and expired ends | `commands/{remove_session,learn_ends,expire_sessions}.rs` |
//! | R6 marks of silent sessions | `commands/checkpoint.rs` |
//! | R8 repeats answered from state | [`table::LockTable::request_state`], `commands/acquire.rs` |
//! | R9 cancel of one request | `commands/cancel.rs` |
//! | R10 no second hold by one session | `commands/acquire.rs` |
//! | R11 sequences, floors, records; kept for sessions that have lapsed here | `table/requests.rs`, `table/state.rs`: `Absent` |
//! | R13 puts and transactions | `commands/txn/plan.rs`, `txn/check.rs` |
//! | R14 forced release | `commands/force_release.rs` |
//! | R16 ownership, sealed ranges | `table/ownership.rs`, `table/moves.rs`, asked first by every command on a name or key |
//! | R17, R18 moves of ranges | `commands/{seal,import,activate,drop_range,give_up_move}.rs`, `table/export.rs` |
//! | claims: never two owners, sticky, balanced | [`assign`], `table/claims.rs`, `commands/{join,leave,drain}_claim.rs`, `commands/ack_revoked.rs` |
//! | R20 a full counter is an error | [`outcome::Rejection::CounterFull`] |
//! | R20 restored into a new incarnation, without sessions, granting nothing at first | `table/restore.rs`, `commands/resume_grants.rs` |
#![no_std]

extern crate alloc;

pub mod assign;
pub mod codec;
pub mod command;
mod commands;
pub mod event;
pub mod ids;
pub mod invariants;
pub mod metadata;
pub mod moved;
pub mod name;
pub mod outcome;
pub mod route;
#[cfg(test)]
mod sample;
pub mod table;
pub mod txn;
pub mod view;

pub use codec::{decode_proposal, encode_proposal};
pub use table::{LockTable, Position};

pub use holdfast_mutants::{self as mutants, mutant};

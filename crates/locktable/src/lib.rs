//! The replicated state of one lock group: sessions, keys, queues, revisions.
//!
//! Pure and `no_std`: commands go in, an outcome, events and facts come out. This crate knows no clock, no disk, no
//! network, no randomness and no hash order; the same commands give the same state on every member. Time enters as a
//! decision of the leader, carried in a command.
//!
//! - [`ids`], [`name`], [`metadata`]: the small typed values.
//! - [`command`] and [`txn`]: what can be asked; [`outcome`]: what is answered; [`event`]: what happened; [`view`]: what can be read.
#![no_std]

extern crate alloc;

pub mod command;
pub mod event;
pub mod ids;
pub mod metadata;
pub mod name;
pub mod outcome;
pub mod txn;
pub mod view;

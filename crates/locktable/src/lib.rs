//! The replicated state of one lock group: sessions, keys, queues, revisions.
#![no_std]

extern crate alloc;

pub mod codec;
pub mod command;
mod commands;
pub mod event;
pub mod ids;
pub mod invariants;
pub mod metadata;
pub mod name;
pub mod outcome;
pub mod route;
pub mod table;
pub mod txn;
pub mod view;

//! A whole cluster in one process on one thread under virtual time, and a seed that decides everything that happens.
//!
//! ```text
//!   nemesis ─────────► cluster ─ member ─ host: the node's own works     workload ─ client ─ session, acquire, hold
//!                         │        ├ disk: the node's log over memory        │
//!                         │        └ time: a clock of its own                │ requests
//!                         └──────── network: delays, loses, doubles, cuts ◄──┘
//!                                        │ all tables, all that clients saw
//!                                      check: one property per file ──► findings
//! ```
//! - [`run`]: one seed from begin to rest. [`plan`]: what is run, and what it came to. [`trace`]: the event log and its
//!   digest. [`shrink`]: what a finding can do without. [`command`]: seeds on the command line. [`bench`]: thousands of them
//!   over all cores. [`sum`]: what they came to.
//! - [`host`]: a process of virtual time. [`entropy`], [`time`]: chance and clocks, both from the seed.
//! - [`member`], [`cluster`], [`disk`], [`network`]: what the node stands on here.
//! - [`workload`]: clients. [`nemesis`]: faults. [`check`]: what must never be seen. [`truth`]: what the log says, with
//!   which it is compared. [`coverage`]: which commands came, and how they were answered. `mutants`: proves that checks
//!   find.
//!
//! Nothing in `node` knows that it is simulated: it is given another disk, another transport, another snapshot store and
//! other clocks. Runs only where it was built with `--cfg tokio_unstable` and a random source of its own, which
//! `make sim` does in a target folder beside the usual one; other builds find an empty crate here.
#![cfg(tokio_unstable)]

pub mod bench;
pub mod check;
pub mod cluster;
pub mod command;
pub mod coverage;
pub mod disk;
pub mod entropy;
pub mod host;
pub mod member;
#[cfg(holdfast_mutants)]
pub mod mutants;
pub mod nemesis;
pub mod network;
pub mod plan;
pub mod run;
pub mod shrink;
pub mod sum;
pub mod time;
pub mod trace;
pub mod truth;
pub mod workload;

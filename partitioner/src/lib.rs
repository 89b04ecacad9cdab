//! Where a lock name lives, and how that changes: the partition map, ownership ranges, the strategies that compute
//! tables, the steps of a split, move or merge, and the planner that proposes them from measured load.
//!
//! This crate is pure. It knows no clock, no randomness, no network, no hash order and nothing of the
//! lock table above it; the compiler checks it (`no_std`).
//!
//! ```text
//!   strategies ──compute──> tables ──recorded in──> PartitionMap ──locate(name)──> group   (clients, endpoints)
//!   (only the planning member)                          │   ^
//!                                                       │   └──apply──Step, one range each <──change── Request <── Planner
//!                                                       └──ranges_of(group)──> [Range]     (replicated state of a group)
//!                                                                                └─contains(name), asked by apply
//! ```
//!
//! * [`ids`]: group ids and the map epoch.
//! * [`name`]: how a lock name is read for routing: the election marker, the partition key, name limits.
//! * [`hash`]: the one hash function, frozen by golden tests.
//! * [`table`]: partition key → group, by hash slots or by split keys.
//! * [`map`]: prefixes → tables, and the home slots of sessions. [`fault`]: all that can be wrong with one.
//! * [`range`]: what one group owns, decidable without the map (rule R16), and what of one range is in others.
//!   [`slots`]: a compact set of hash slots.
//! * [`strategy`]: plugins that compute tables, and their registry.
//! * [`change`]: split, move, merge, pin, isolate, spread: from a request to steps that move one range each.
//! * [`load`]: what leaders measure, in bounded memory. [`planner`]: what to do about it, and why.
//!
//! # One routing function
//!
//! Everything derived from a lock (its keys `NAME/<session hex>`, waiters, session references, events, history)
//! is routed **by its lock name**, never by its own bytes: a key `jobs/1f` of the lock `jobs` must stay with `jobs`
//! even where `jobs/` has a rule of its own. So there is deliberately no way to locate a key here: whoever has a
//! key first finds the lock it belongs to.
//!
//! # Split, move and merge
//!
//! All three are edits of a map: a move replaces a group in a table, a split puts a rule (or a split key) in, a
//! merge takes one out; each step raises the epoch by one and moves one range from one group to one other.
//! [`PartitionMap::ranges_of`] of the old and the new map say what each group owned and will own. A rule that moves no
//! name still cuts the ranges of its groups anew, so groups do not compare lists of ranges but ask [`covers`] and
//! [`same_names`]. A range names only exclusions it could otherwise hold. Move numbers live in the groups' state, not
//! here.
//!
//! # A strategy of your own
//!
//! Implement [`Strategy`], give it to [`Registry::register`] in the program that starts the member, and name it in a
//! split. `partitioner/examples/tenants` is one, in a crate of its own. The table that it leaves in the map is read by
//! members and clients that do not have it; only planning with it is refused there.

#![no_std]

extern crate alloc;

pub mod change;
pub mod fault;
pub mod hash;
pub mod ids;
pub mod load;
pub mod map;
pub mod name;
pub mod planner;
pub mod range;
pub mod slots;
pub mod strategy;
pub mod table;

pub use fault::{MapFault, MapFaults};
pub use ids::{GroupId, MapEpoch};
pub use map::{MapParts, PartitionMap, Rule};
pub use name::{
    CLAIM_MARKER, ELECTION_MARKER, MAX_NAME_BYTES, NameFault, check_name, partition_key, routed_name,
};
pub use range::{Part, Range, covers, owns, same_names, without};
pub use slots::SlotSet;
pub use strategy::{
    Load, Params, Registry, RegistryError, Scope, SplitKeys, Strategy, StrategyError, StrategyRecord,
};
pub use table::Table;

//! What is run, and what a run came to.

use std::collections::BTreeMap;

use rand::Rng;

use crate::{
    check::Finding,
    coverage::Coverage,
    entropy::dice,
    nemesis::{Spared, aim::Target},
    trace::Trace,
};

/// So many act beside the clients, with the numbers behind theirs: the observer, the operator, the vandal, the one in a
/// hurry, the one that tries everything, four newcomers, the mover, two watchers, and three who take part in claims.
pub const OTHERS: u32 = 15;

/// What is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Decides everything.
    pub seed: u64,
    /// Members of the cluster.
    pub members: u64,
    /// Lock groups beside the meta group.
    pub lock_groups: u16,
    /// Clients.
    pub clients: u32,
    /// Processes with the product's own client in them, with the numbers behind those of all others.
    pub natives: u32,
    /// Clients that fall silent right after an answer, with the numbers behind those. Where there are any, the product's own
    /// clients hold their locks for long, more is moved, and more is cut one way.
    pub lapsers: u32,
    /// Locks they fight over; the last of the names is an election.
    pub names: u32,
    /// Milliseconds of storm.
    pub storm_ms: u64,
    /// Whether nothing goes wrong, so that waiters must be granted in order of the queue as it was seen.
    pub calm: bool,
    /// Faults that are left out, by their numbers.
    pub spared_faults: Spared,
    /// Clients that are left out, and others, by their numbers.
    pub spared_clients: Spared,
    /// Another network of the same kind: all but its delays and losses is drawn as the seed says.
    pub network: u64,
    /// Whether the event log is printed as it grows.
    pub aloud: bool,
}

impl Plan {
    /// How many numbers there are for clients of all kinds.
    #[must_use]
    pub const fn numbers(&self) -> u32 {
        self.clients + OTHERS + self.natives + self.lapsers
    }

    /// The usual run of a seed; every eighth is calm, and every second has clients that fall silent.
    #[must_use]
    pub fn of(seed: u64) -> Self {
        let natives = dice(seed, 4).random_range(0..=3);
        let lapsers = if seed.is_multiple_of(2) { 2 } else { 0 };
        Self {
            seed,
            members: 3,
            lock_groups: 2,
            clients: 10,
            natives: natives.max(lapsers),
            lapsers,
            names: 5,
            storm_ms: 30_000,
            calm: seed.is_multiple_of(8),
            spared_faults: Spared::default(),
            spared_clients: Spared::default(),
            network: 0,
            aloud: false,
        }
    }
}

/// What a run came to.
#[derive(Clone, Debug)]
pub struct Report {
    /// What was run.
    pub plan: Plan,
    /// What must not be; empty in a good run.
    pub findings: Vec<Finding>,
    /// Digest of all that happened.
    pub digest: String,
    /// Milliseconds that passed in the run.
    pub virtual_ms: u64,
    /// Parcels delivered.
    pub parcels: u64,
    /// Events of clients.
    pub events: u64,
    /// Acquires sent.
    pub acquires: u64,
    /// Locks that the product's own clients were granted.
    pub native_grants: u64,
    /// Requests of all kinds that clients sent.
    pub requests: u64,
    /// Changes that watchers were given.
    pub watched: usize,
    /// Ends of acquires that were compared with the log.
    pub answers: usize,
    /// Faults.
    pub faults: u64,
    /// How often faults that were aimed at moves have hit what.
    pub hits: BTreeMap<Target, u64>,
    /// States of members that were compared.
    pub compared: u64,
    /// Entries of logs that were shortened away before they were read.
    pub missed: u64,
    /// Which commands were answered how.
    pub coverage: Coverage,
    /// The event log.
    pub trace: Trace,
}

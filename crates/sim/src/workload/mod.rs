//! Clients of a simulated cluster: few names, many sessions, every way of asking, and every way of going wrong.
//!
//! - [`client`]: what one client does, over and over. [`session`]: its session and the keepalives. [`acquire`]: asking for
//!   a lock until it is known how that ended. [`cancel`]: giving that up. [`hold`]: what it does with one. [`habits`]: how
//!   it keeps its session.
//! - [`observer`]: looks at queues. [`watcher`]: watches all changes. [`rush`]: closes sessions with acquires under way.
//!   [`operator`]: ends holds and sessions by force. [`vandal`]: asks for what nobody may have, and storms members with
//!   questions.
//! - [`audit`]: asks whether the service knows what it has acknowledged. [`echo`]: sends again what was answered long ago.
//!   [`trier`]: tries everything everywhere. [`newcomer`]: tries once with each session. [`lapse`]: falls silent right after an
//!   answer.
//! - [`claimant`]: takes part in claims. [`mover`]: has ranges moved.
//! - [`native`]: the product's own client, over the members' own gRPC services.
//! - [`ask`]: the way to a member. [`registry`]: whose session is whose.
//!
//! Clients talk to members over the simulated network, each from an address of its own, and know what a client may know:
//! their own clock and the answers. What they see goes into the journal.

pub mod acquire;
pub mod ask;
pub mod audit;
pub mod cancel;
pub mod claimant;
pub mod client;
pub mod echo;
pub mod habits;
pub mod hold;
pub mod lapse;
pub mod mover;
pub mod native;
pub mod newcomer;
pub mod observer;
pub mod operator;
pub mod registry;
pub mod rush;
pub mod session;
pub mod trier;
pub mod vandal;
pub mod watcher;

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use holdfast_locktable::name::Name;

use self::{native::beliefs::Beliefs, registry::Registry};
use crate::{
    check::{
        Findings, answers::Telling, fence::Resource, grants::Counts, history::Journal, owners::Owners,
        sessions::Renewals, stale::Past, watch::Watches,
    },
    network::{Network, Node},
    time::World,
};

/// What all clients of a run share. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Setting {
    /// The clock of all clients.
    pub world: World,
    /// The way to the members.
    pub network: Network,
    /// The members.
    pub members: Arc<[Node]>,
    /// The locks they fight over.
    pub names: Arc<[Name]>,
    /// What they saw.
    pub journal: Journal,
    /// What they count on.
    pub counts: Counts,
    /// Which partitions of claims they count on.
    pub owners: Owners,
    /// What they write to.
    pub resource: Resource,
    /// What they were told.
    pub telling: Telling,
    /// Until when groups have acknowledged their sessions.
    pub renewals: Renewals,
    /// What watchers were given.
    pub watches: Watches,
    /// Which holds are over.
    pub past: Past,
    /// Their sessions.
    pub registry: Registry,
    /// What the product's own clients believe.
    pub natives: Beliefs,
    /// What must not be.
    pub findings: Findings,
    /// Numbers of acquires and the end of the run.
    pub shared: Arc<Shared>,
}

/// What changes while clients run.
#[derive(Debug, Default)]
pub struct Shared {
    /// Nothing new is begun.
    stop: AtomicBool,
    calls: AtomicU64,
    requests: AtomicU64,
    running: AtomicU64,
}

impl Setting {
    /// From here on clients begin nothing new.
    pub fn stop(&self) {
        self.shared.stop.store(true, Ordering::Relaxed);
    }

    /// Whether clients are to come to an end.
    #[must_use]
    pub fn stopping(&self) -> bool {
        self.shared.stop.load(Ordering::Relaxed)
    }

    /// How many acquires were sent so far.
    #[must_use]
    pub fn calls(&self) -> u64 {
        self.shared.calls.load(Ordering::Relaxed)
    }

    /// How many requests of any kind were sent so far.
    #[must_use]
    pub fn requests(&self) -> u64 {
        self.shared.requests.load(Ordering::Relaxed)
    }

    fn asks(&self) {
        self.shared.requests.fetch_add(1, Ordering::Relaxed);
    }

    /// How many clients have not come to their end.
    #[must_use]
    pub fn running(&self) -> u64 {
        self.shared.running.load(Ordering::Relaxed)
    }

    fn next_call(&self) -> u64 {
        self.shared.calls.fetch_add(1, Ordering::Relaxed)
    }

    fn begins(&self) {
        self.shared.running.fetch_add(1, Ordering::Relaxed);
    }

    fn ends(&self) {
        self.shared.running.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Lets so many milliseconds pass.
async fn pause(ms: u64) {
    tokio::time::sleep(Duration::from_millis(ms)).await;
}

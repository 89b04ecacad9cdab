//! One simulated member: the node's own works over a simulated disk, clock and network, started, paused and crashed from
//! outside.
//!
//! Knows how a process begins and ends. Does not know why.

use std::{io, sync::Arc};

use holdfast_node::{
    actors::ActorHost,
    config::{GroupsConfig, MemberConfig, MemberEntry, SnapshotsConfig},
    log::identity::ClusterId,
    member::{
        StartError,
        ground::{Ground, measured},
        works::Works,
    },
    metrics::exporter::Metrics,
    snapshot::memory_store::MemoryStore,
};
use holdfast_partitioner::Registry;
use parking_lot::Mutex;
use rand::Rng;

use crate::{
    disk::SimDisk,
    entropy::{self, Dice},
    host::Host,
    network::{Network, Node, Seat, door, transport::SimTransport},
    time::MemberClock,
};

/// Name of the simulated cluster.
const CLUSTER: &str = "sim";
/// How often snapshots for disaster recovery are taken, in seconds.
const SNAPSHOT_EVERY_S: u64 = 20;
/// Most millionths by which a member's clock drifts.
const MAX_DRIFT_PPM: i64 = 100;

/// How far a process has come.
#[derive(Debug)]
enum Phase {
    Starting,
    Running(Seat),
    /// It ended by itself.
    Ended(String),
}

#[derive(Debug)]
struct Process {
    phase: Arc<Mutex<Phase>>,
    metrics: Metrics,
    host: Host,
}

/// One member of the simulated cluster.
#[derive(Debug)]
pub struct SimMember {
    /// Its id.
    pub id: Node,
    /// Its disk.
    pub disk: SimDisk,
    /// Its clocks.
    pub clock: MemberClock,
    config: MemberConfig,
    network: Network,
    store: MemoryStore,
    dice: Dice,
    process: Option<Process>,
    paused: bool,
    /// Whether the clock that its process runs by stands still while it is paused, as that of a suspended machine does.
    suspended: bool,
    slept_ms: u64,
}

impl SimMember {
    /// A member that has never run.
    #[must_use]
    pub fn new(id: Node, members: u64, lock_groups: u16, seed: u64, network: Network) -> Self {
        let mut dice = entropy::dice(seed, 1_000 + id);
        let entry = |id| MemberEntry { id, peer: format!("member-{id}:7612"), ..MemberEntry::default() };
        let config = MemberConfig {
            cluster: CLUSTER.to_owned(),
            member: id,
            members: (1..=members).map(entry).collect(),
            groups: GroupsConfig { lock_groups, replicas: u16::try_from(members).unwrap_or(u16::MAX) },
            snapshots: SnapshotsConfig {
                interval: std::time::Duration::from_secs(SNAPSHOT_EVERY_S),
                ..SnapshotsConfig::default()
            },
            ..MemberConfig::default()
        };
        Self {
            id,
            disk: SimDisk::new(entropy::dice(seed, 2_000 + id)),
            clock: MemberClock::new(dice.random_range(-MAX_DRIFT_PPM..=MAX_DRIFT_PPM)),
            config,
            network,
            store: MemoryStore::default(),
            dice,
            process: None,
            paused: false,
            suspended: false,
            slept_ms: 0,
        }
    }

    /// Starts the member's process from what its disk holds. Does nothing while it runs.
    ///
    /// # Errors
    /// When the process cannot even begin.
    pub fn start(&mut self) -> Result<(), StartFault> {
        if self.process.is_some() {
            return Ok(());
        }
        let host = Host::start(self.dice.random()).map_err(StartFault::Runtime)?;
        let metrics = measured(&self.config).map_err(StartFault::Member)?;
        let phase = Arc::new(Mutex::new(Phase::Starting));
        let cluster: ClusterId = CLUSTER.parse().map_err(|_| StartFault::Name)?;
        let ground = Ground {
            clock: self.clock.clock(),
            host: ActorHost::Local,
            disk: self.disk.disk(),
            log_failures: self.disk.log().failures(),
            transport: Arc::new(SimTransport::new(self.network.clone(), cluster, self.id)),
            snapshots: Arc::new(self.store.clone()),
            metrics: metrics.clone(),
            strategies: Registry::built_in(),
        };
        let (config, network, handle, tell) =
            (self.config.clone(), self.network.clone(), host.handle().clone(), phase.clone());
        host.spawn(async move {
            let member = config.member;
            let end = match Works::start(config, ground).await {
                Ok(works) => {
                    let (service, endpoint) = (works.service().clone(), works.endpoint().clone());
                    let (door, knocks) = door::open();
                    tokio::spawn(door::serve(endpoint.clone(), knocks));
                    let seat = Seat { handle, service, endpoint, door };
                    network.join(member, seat.clone());
                    *tell.lock() = Phase::Running(seat);
                    works.wait_fatal().await
                }
                Err(error) => error.to_string(),
            };
            *tell.lock() = Phase::Ended(end);
        });
        self.process = Some(Process { phase, metrics, host });
        Ok(())
    }

    /// The end of the process, without warning, and of every write that was not fsynced.
    pub fn crash(&mut self) {
        self.network.leave(self.id);
        if let Some(process) = self.process.take() {
            {
                let _within = process.host.handle().enter();
                self.disk.crash();
            }
            process.metrics.stop();
            // What it holds of itself ends with it.
            *process.phase.lock() = Phase::Starting;
        }
        (self.paused, self.suspended, self.slept_ms) = (false, false, 0);
    }

    /// Stops the process as it stands, or lets it go on.
    pub fn set_paused(&mut self, paused: bool) {
        self.paused = paused && self.process.is_some();
        self.suspended &= self.paused;
        self.network.set_paused(self.id, self.paused);
    }

    /// Suspends the machine: the process stands still, and so does the clock it runs by, so that it does not know how long
    /// that was. Only the clock that leases count by goes on (rule R7).
    pub fn suspend(&mut self) {
        self.set_paused(true);
        self.suspended = self.paused;
    }

    /// Whether there is a process, paused or not.
    #[must_use]
    pub fn is_up(&self) -> bool {
        self.process.is_some()
    }

    /// A millisecond of the world passes.
    pub fn step(&mut self, now: u64) {
        let passed = self.clock.step();
        let Some(process) = &self.process else { return };
        if self.paused {
            if !self.suspended {
                self.slept_ms += passed;
            }
            return;
        }
        {
            let _within = process.host.handle().enter();
            self.disk.advance(now);
        }
        let slept = std::mem::take(&mut self.slept_ms);
        if slept > 0 {
            process.host.skip(slept);
        }
        if passed > 0 {
            process.host.run(passed);
        }
    }

    /// Its seat, while it runs.
    #[must_use]
    pub fn seat(&self) -> Option<Seat> {
        let process = self.process.as_ref()?;
        match &*process.phase.lock() {
            Phase::Running(seat) => Some(seat.clone()),
            Phase::Starting | Phase::Ended(_) => None,
        }
    }

    /// Why the process ended by itself, if it did.
    #[must_use]
    pub fn ended(&self) -> Option<String> {
        let process = self.process.as_ref()?;
        match &*process.phase.lock() {
            Phase::Ended(reason) => Some(reason.clone()),
            Phase::Starting | Phase::Running(_) => None,
        }
    }
}

/// Why a simulated process cannot begin.
#[derive(Debug)]
pub enum StartFault {
    /// The system refuses a runtime.
    Runtime(io::Error),
    /// The member's metrics do not start.
    Member(StartError),
    /// The cluster's name is not valid.
    Name,
}

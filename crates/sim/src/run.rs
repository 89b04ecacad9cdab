//! One run: a seed in, what was found and a digest of all that happened out.
//!
//! ```text
//!   begin ──► all members ready ──► storm: clients and nemesis ──► heal ──► clients end ──► rest
//! ```
//! Each millisecond of the run: the nemesis acts, the network delivers, the members run, the clients run, checks look.
//! Everything happens on a thread of its own, so that nothing of one run reaches the next.

use std::{
    cell::RefCell,
    io,
    sync::{Arc, mpsc},
    thread,
    time::{Duration, Instant},
};

use holdfast_locktable::name::Name;
use nix::time::{ClockId, clock_gettime};

use crate::{
    check::{
        Findings, answers::Telling, fence::Resource, grants::Counts, history::Journal, judges::Judges,
        owners::Owners, rest, sessions::Renewals, stale::Past, watch::Watches,
    },
    cluster::Cluster,
    entropy::{self, Dice, dice},
    host::{Host, align_task_numbers},
    nemesis::{Habits, Nemesis},
    network::{Network, Node},
    plan::{OTHERS, Plan, Report},
    time::World,
    trace::Trace,
    workload::{
        Setting, claimant,
        client::Client,
        lapse, mover,
        native::{
            beliefs::Beliefs,
            process::{Manner, Process},
        },
        newcomer, observer, operator,
        registry::Registry,
        rush,
        session::Who,
        trier, vandal, watcher,
    },
};

/// How often, in milliseconds, checks look at the tables.
const LOOK_EVERY_MS: u64 = 25;
/// How long the cluster may take to begin, and to serve again once all faults are over.
const BEGIN_MS: u64 = 30_000;
/// How long clients may take to come to their end once all faults are over.
const END_MS: u64 = 60_000;
/// How long after that anything may be left: the longest TTL and what P4 adds to it after the fall of a leader, and a
/// minute in which ends of sessions are remembered.
const REST_MS: u64 = 90_000;
/// The dice of networks that a plan may choose from have purposes so far apart that no other dice have one of them.
const NETWORKS: u64 = 1 << 32;
/// Clients' addresses begin here.
const CLIENT_NODES: Node = 100;
/// A run whose time does not move while this process works for so long never ends. Not by the clock on the wall: a machine
/// that is busy or suspended gives a run no time to move in.
const STANDSTILL: Duration = Duration::from_secs(20);
/// A run that neither moves nor works for so long, by the clock on the wall, waits for something that never comes.
const DEADLOCK: Duration = Duration::from_secs(600);
/// How often a run's time is looked at.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Stack of the run's thread; futures of the whole cluster are polled on it.
const STACK: usize = 16 << 20;

thread_local! {
    /// Panics on the run's thread: a task's own are caught by its runtime.
    static PANICS: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

/// Keeps panics of this process's runs for their reports. Once per process.
pub fn catch_panics() {
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        PANICS.with(|panics| panics.borrow_mut().push(info.to_string()));
        before(info);
    }));
}

/// Runs a plan to its end.
///
/// # Errors
/// When the system refuses a thread or a runtime, the run's own thread panics, or its time stands still: then something
/// repeats itself without any pause, and the run's thread is left to its loop.
pub fn run(plan: Plan) -> io::Result<Report> {
    let (world, (tell, told)) = (World::default(), mpsc::channel());
    let clock = world.clone();
    thread::Builder::new().stack_size(STACK).name(format!("seed {}", plan.seed)).spawn(move || {
        entropy::seed_this_thread(plan.seed);
        let report = align_task_numbers().and_then(|()| Run::new(plan, clock)).and_then(Run::go);
        // Nobody has given up waiting for a run whose time passes.
        let _ = tell.send(report);
    })?;
    let (mut seen, mut since) = (None, (worked()?, Instant::now()));
    loop {
        match told.recv_timeout(LOOK_EVERY) {
            Ok(report) => return report,
            Err(mpsc::RecvTimeoutError::Disconnected) => {
                return Err(io::Error::other(format!("seed {}: the run's thread panicked", plan.seed)));
            }
            Err(mpsc::RecvTimeoutError::Timeout) if seen != Some(world.now()) => {
                (seen, since) = (Some(world.now()), (worked()?, Instant::now()));
            }
            Err(mpsc::RecvTimeoutError::Timeout)
                if worked()?.saturating_sub(since.0) >= STANDSTILL || since.1.elapsed() >= DEADLOCK =>
            {
                let seed = plan.seed;
                return Err(io::Error::other(format!(
                    "seed {seed}: time stands still at {} ms, something repeats itself without a pause or waits for ever; see \
                     it with: make sim-again SEED={seed}",
                    world.now()
                )));
            }
            Err(mpsc::RecvTimeoutError::Timeout) => {}
        }
    }
}

/// How much CPU time this process has had.
fn worked() -> io::Result<Duration> {
    Ok(clock_gettime(ClockId::CLOCK_PROCESS_CPUTIME_ID)?.into())
}

struct Run {
    plan: Plan,
    world: World,
    network: Network,
    cluster: Cluster,
    clients: Host,
    /// The processes with the product's own client in them.
    natives: Vec<Process>,
    nemesis: Nemesis,
    setting: Setting,
    /// Locks of the client that is in a hurry.
    hurried: Vec<Name>,
    /// Locks of those who come with a new session each time.
    strange: Vec<Name>,
    /// What claimants share.
    claims: Vec<Name>,
    judges: Judges,
    findings: Findings,
    trace: Trace,
}

impl Run {
    fn new(plan: Plan, world: World) -> io::Result<Self> {
        let (seed, findings) = (plan.seed, Findings::default());
        let trace = Trace::new(plan.aloud);
        let network = Network::new(dice(seed, NETWORKS * plan.network + 1), trace.clone());
        let cluster = Cluster::new(plan.members, plan.lock_groups, seed, &network, findings.clone());
        // Where leaders fall, and where there is none for a while, a dead session's lock may be held for longer; how long
        // is judged at the end, when nothing falls any more.
        let slack_ms = if plan.calm { 2_500 } else { plan.storm_ms + REST_MS };
        let journal = Journal::new(world.clone(), trace.clone(), findings.clone(), slack_ms, plan.calm);
        let name = |n| {
            let name = match n + 1 == plan.names {
                true => Name::election(&format!("lead-{n}")),
                false => Name::lock(&format!("lock-{n}")),
            };
            name.map_err(|error| io::Error::other(error.to_string()))
        };
        let claim = |text| Name::claim(text).map_err(|error| io::Error::other(error.to_string()));
        let setting = Setting {
            world: world.clone(),
            network: network.clone(),
            members: cluster.ids().into(),
            names: (0..plan.names).map(name).collect::<io::Result<Vec<_>>>()?.into(),
            journal,
            counts: Counts::default(),
            owners: Owners::default(),
            resource: Resource::default(),
            telling: Telling::default(),
            renewals: Renewals::default(),
            watches: Watches::default(),
            past: Past::default(),
            registry: Registry::default(),
            natives: Beliefs::default(),
            findings: findings.clone(),
            shared: Arc::default(),
        };
        Ok(Self {
            plan,
            world,
            network,
            cluster,
            clients: Host::start(seed)?,
            natives: Vec::new(),
            nemesis: Nemesis::new(dice(seed, 2), trace.clone(), u64::MAX, Habits::default()),
            judges: Judges::new(setting.clone()),
            setting,
            hurried: (plan.names..plan.names + 2).map(name).collect::<io::Result<_>>()?,
            strange: (plan.names + 2..plan.names + 4).map(name).collect::<io::Result<_>>()?,
            claims: vec![claim("shared")?, claim("lock-0")?],
            findings,
            trace,
        })
    }

    fn go(mut self) -> io::Result<Report> {
        self.cluster.start_all().map_err(|fault| io::Error::other(format!("{fault:?}")))?;
        self.step_until("begin", BEGIN_MS, |run| run.cluster.ready())?;
        if self.findings.is_empty() {
            self.storm()?;
        }
        if self.findings.is_empty() {
            self.calm_down()?;
        }
        Ok(self.report())
    }

    fn storm(&mut self) -> io::Result<()> {
        self.start_clients();
        self.start_natives()?;
        self.start_lapsers();
        let begin = self.world.now();
        if !self.plan.calm {
            self.nemesis = Nemesis::new(
                dice(self.plan.seed, 2),
                self.trace.clone(),
                begin + 1_000,
                Habits { spared: self.plan.spared_faults, one_way: self.plan.lapsers > 0 },
            );
        }
        while self.world.now() < begin + self.plan.storm_ms && self.findings.is_empty() {
            self.nemesis.step(self.world.now(), &mut self.cluster, &self.network);
            self.step()?;
        }
        Ok(())
    }

    /// Starts the clients, and behind them, in the numbers, everybody else; some may be left out.
    fn start_clients(&self) {
        let (seed, clients) = (self.plan.seed, self.plan.clients);
        for number in 0..clients + OTHERS {
            if self.plan.spared_clients.contains(number.into()) {
                continue;
            }
            let (setting, node) = (self.setting.clone(), CLIENT_NODES + Node::from(number));
            let dice = dice(seed, 10_000 + u64::from(number));
            let who = Who { client: number, node };
            match number.checked_sub(clients) {
                None => self.clients.spawn(Client::new(setting, who, dice).run()),
                Some(0) => self.clients.spawn(observer::observe(setting, node, dice)),
                Some(1) => self.clients.spawn(operator::operate(setting, node, dice)),
                Some(2) => self.clients.spawn(vandal::rage(setting, node, dice)),
                Some(3) => self.clients.spawn(rush::rush(setting, node, self.hurried.clone(), dice)),
                Some(4) => self.clients.spawn(trier::try_all(setting, who, dice)),
                Some(5..9) => self.clients.spawn(newcomer::visit(setting, who, self.strange.clone(), dice)),
                Some(9) => {
                    let groups = u32::from(self.plan.lock_groups);
                    let pauses_ms = if self.plan.lapsers > 0 { 100..1_200 } else { 200..3_000 };
                    self.clients.spawn(mover::keep_moving(setting, node, groups, pauses_ms, dice));
                }
                Some(10..12) => self.clients.spawn(watcher::watch(setting, number, node, dice)),
                Some(_) => self.clients.spawn(claimant::take_part(setting, who, self.claims.clone(), dice)),
            }
        }
    }

    /// Starts the processes with the product's own client in them, behind everybody else in the numbers.
    fn start_natives(&mut self) -> io::Result<()> {
        let (first, patient) = (self.plan.clients + OTHERS, self.plan.lapsers > 0);
        for (who, dice) in self.numbered(first, self.plan.natives) {
            let setting = if patient { lapse::apart(&self.setting, who)? } else { self.setting.clone() };
            self.natives.push(Process::start(setting, who, dice, Manner { calm: self.plan.calm, patient })?);
        }
        Ok(())
    }

    /// Starts those who fall silent, behind these.
    fn start_lapsers(&self) {
        let first = self.plan.clients + OTHERS + self.plan.natives;
        for (who, dice) in self.numbered(first, self.plan.lapsers) {
            self.clients.spawn(lapse::lapse(self.setting.clone(), who, dice));
        }
    }

    /// So many from a number on, but those who are left out.
    fn numbered(&self, first: u32, count: u32) -> Vec<(Who, Dice)> {
        let (seed, spared) = (self.plan.seed, self.plan.spared_clients);
        let numbers = (first..first + count).filter(|number| !spared.contains((*number).into()));
        let of = |number| {
            let who = Who { client: number, node: CLIENT_NODES + Node::from(number) };
            (who, dice(seed, 10_000 + u64::from(number)))
        };
        numbers.map(of).collect()
    }

    fn calm_down(&mut self) -> io::Result<()> {
        self.nemesis.heal(self.world.now(), &mut self.cluster, &self.network);
        self.step_until("recovery", BEGIN_MS, |run| run.cluster.ready())?;
        self.setting.stop();
        self.step_until("end", END_MS, |run| match run.setting.running() {
            0 => Ok(()),
            left => Err(format!("{left} clients have not come to their end")),
        })?;
        self.step_until("rest", REST_MS, |run| rest::at_rest(&run.cluster))?;
        if self.findings.is_empty() {
            self.judges.finish(self.world.now(), &self.cluster);
        }
        Ok(())
    }

    /// A millisecond passes.
    fn step(&mut self) -> io::Result<()> {
        self.world.step();
        let now = self.world.now();
        self.network.advance(now);
        self.cluster.step(now);
        self.clients.run(1);
        self.natives.iter_mut().try_for_each(Process::step)?;
        if now.is_multiple_of(LOOK_EVERY_MS) {
            self.judges.look(now, &self.cluster);
        }
        for panic in PANICS.with(RefCell::take) {
            self.findings.add("panic", now, panic);
        }
        Ok(())
    }

    /// Lets time pass until something is so; that it takes too long is a finding.
    fn step_until(
        &mut self,
        what: &str,
        limit_ms: u64,
        so: impl Fn(&Self) -> Result<(), String>,
    ) -> io::Result<()> {
        let begin = self.world.now();
        while self.findings.is_empty() {
            let Err(missing) = so(self) else {
                self.trace.line(self.world.now(), format!("{what}: reached"));
                return Ok(());
            };
            if self.world.now() - begin >= limit_ms {
                let sentence = format!("{what} was not reached within {limit_ms} ms: {missing}");
                self.findings.add("liveness", self.world.now(), sentence);
                return Ok(());
            }
            self.step()?;
        }
        Ok(())
    }

    fn report(self) -> Report {
        Report {
            plan: self.plan,
            findings: self.findings.all(),
            digest: self.trace.digest(),
            virtual_ms: self.world.now(),
            parcels: self.network.delivered(),
            events: self.setting.journal.events(),
            acquires: self.setting.calls(),
            native_grants: self.setting.natives.grants(),
            requests: self.setting.requests(),
            watched: self.setting.watches.count(),
            answers: self.judges.answers(),
            faults: self.nemesis.faults(),
            hits: self.nemesis.hits().clone(),
            compared: self.judges.compared(),
            missed: self.judges.truth().missed(),
            coverage: self.judges.truth().coverage().clone(),
            trace: self.trace.clone(),
        }
    }
}

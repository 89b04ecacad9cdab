//! The planner in mode `auto` in a whole cluster without faults, under ten minutes of the same load: it splits what is hot, comes
//! to rest, and nothing goes to and fro.
//!
//! Looks at the map and its changes only. That locks stay what they are while ranges move is for the other runs.

use std::{
    cell::{Cell, RefCell},
    panic::resume_unwind,
    rc::Rc,
    sync::Arc,
    thread,
    time::Duration,
};

use bytes::Bytes;
use holdfast_locktable::{
    command::{RequestId, Wait},
    ids::SessionId,
    metadata::Metadata,
    name::Name,
};
use holdfast_node::{
    endpoint::{
        ApiError,
        types::{AcquireRequest, Granted, SessionOpened, planner::PlannerView},
    },
    meta::{MetaTable, changes::ChangeEnd},
    planning::PLANNER,
};
use holdfast_partitioner::{
    GroupId,
    change::Request,
    planner::{Mode, PolicyEdit},
};
use holdfast_sim::{
    check::Findings,
    cluster::Cluster,
    entropy::{dice, seed_this_thread},
    host::{Host, align_task_numbers},
    network::{
        Network, Node, Seat,
        exchange::{Handler, Question},
    },
    time::World,
    trace::Trace,
    workload::ask::Verb,
};
use tokio::time::{Instant, MissedTickBehavior, interval, interval_at};

const SEED: u64 = 1;
const MEMBERS: u64 = 3;
const LOCK_GROUPS: u16 = 3;
/// Each takes a lock once in a turn, which makes two log entries: 48 a second in all.
const CLIENTS: u64 = 6;
const TURN: Duration = Duration::from_millis(250);
/// How often a question is asked that is not answered, and how long one may take.
const AGAIN: Duration = Duration::from_millis(50);
const ANSWERED_WITHIN_MS: u64 = 10_000;
/// Longer than the run, so that no keepalives are needed.
const TTL_MS: u64 = 15 * MINUTE_MS;
/// Clients' addresses begin here.
const CLIENT_NODES: Node = 100;
/// Stack of the run's thread; futures of the whole cluster are polled on it.
const STACK: usize = 16 << 20;
const MINUTE_MS: u64 = 60_000;

/// All names begin with this, so that they are in one group at first.
const PREFIX: &str = "zipf/";
const NAMES: u64 = 40;
/// Its multiples are spread evenly in every stretch of turns.
const GOLDEN: f64 = 0.618_033_988_749_895;

/// The name of one turn of all clients' turns, counted through: the k-th name is asked for 1/k as often as the first.
///
/// Chance would make so few entries noisier, second by second, than thousands are.
fn zipf(turn: u64) -> String {
    let all: f64 = (1..=NAMES).map(|k| 1.0 / k as f64).sum();
    let mut left = (turn as f64 * GOLDEN).fract() * all;
    let found = (1..NAMES).find(|k| {
        left -= 1.0 / *k as f64;
        left < 0.0
    });
    // Heavy and light names stand mixed in the order by which ranges are cut.
    format!("{PREFIX}{:03}", found.unwrap_or(NAMES) * 37 % 1_000)
}

/// The planner acts on little load and soon, as often as it likes: nothing but its own judgement keeps it from flapping.
fn eager() -> PolicyEdit {
    PolicyEdit {
        mode: Some(Mode::Auto),
        hot_entries_per_s: Some(28),
        quiet_entries_per_s: Some(2),
        hold_ms: Some(20_000),
        cool_down_ms: Some(30_000),
        quiet_ms: Some(60_000),
        moves_per_hour: Some(1_000),
        ..PolicyEdit::default()
    }
}

/// A client, which asks the same member all the time.
struct Client {
    number: u64,
    network: Network,
    world: World,
    findings: Findings,
    /// Turns that all clients have had.
    turns: Rc<Cell<u64>>,
}

impl Client {
    /// Takes locks at a steady pace.
    async fn work(self) {
        let open: Verb<SessionOpened> = Arc::new(|endpoint| {
            Box::pin(async move { endpoint.open_session(TTL_MS, Metadata::default()).await })
        });
        let Some(SessionOpened { session, .. }) = self.ask("open", open).await else { return };
        // One client after the other within a turn.
        let first = Instant::now() + TURN.mul_f64(self.number as f64 / CLIENTS as f64);
        let mut ticks = interval_at(first, TURN);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        for turn in 0.. {
            ticks.tick().await;
            if self.take_turn(session, turn).await.is_none() {
                return;
            }
            self.turns.set(self.turns.get() + 1);
        }
    }

    /// Takes a lock and gives it back.
    async fn take_turn(&self, session: SessionId, turn: u64) -> Option<()> {
        let name = Name::lock(&zipf(turn * CLIENTS + self.number)).unwrap();
        let request = AcquireRequest {
            name: name.clone(),
            session,
            request: RequestId::Sequence { sequence: turn + 1, lowest: turn + 1 },
            wait: Wait::Unlimited,
            metadata: Metadata::default(),
            value: Bytes::new(),
        };
        let acquire: Verb<Granted> = Arc::new(move |endpoint| {
            let request = request.clone();
            Box::pin(async move { endpoint.acquire(request).await })
        });
        let token = self.ask("acquire", acquire).await?.token;
        let release: Verb<bool> = Arc::new(move |endpoint| {
            let name = name.clone();
            Box::pin(async move { endpoint.release(name, session, token).await })
        });
        self.ask("release", release).await.map(drop)
    }

    /// Asks until there is an answer; a refusal that another try does not mend is a finding.
    async fn ask<T: Send + 'static>(&self, kind: &'static str, verb: Verb<T>) -> Option<T> {
        let (from, to) = (CLIENT_NODES + self.number, self.number % MEMBERS + 1);
        let mut again = interval(AGAIN);
        loop {
            again.tick().await;
            let verb = verb.clone();
            let handler: Handler<Result<T, ApiError>> =
                Arc::new(move |seat: &Seat| verb(seat.endpoint.clone()));
            match self.network.exchange(Question { from, to, kind, handler, may_double: false }).await {
                Ok(Ok(answer)) => return Some(answer),
                Ok(Err(error)) if !error.code.retryable() => {
                    let sentence = format!("client {} was told: {error}", self.number);
                    self.findings.add(kind, self.world.now(), sentence);
                    return None;
                }
                Ok(Err(_)) | Err(_) => {}
            }
        }
    }
}

/// A change of the map that has begun.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Begun {
    number: u64,
    actor: String,
    request: Request,
    done: bool,
}

fn changes(meta: &MetaTable) -> Vec<Begun> {
    let past = meta.changes().past().iter().map(|past| (past.number, &past.new, past.end == ChangeEnd::Done));
    let now = meta.changes().under_way().map(|change| (change.number, &change.new, false));
    let begun = past.chain(now).map(|(number, new, done)| Begun {
        number,
        actor: new.actor.clone(),
        request: new.request.clone(),
        done,
    });
    begun.collect()
}

/// A cluster without faults, and its clients.
struct Run {
    world: World,
    network: Network,
    cluster: Cluster,
    clients: Host,
    findings: Findings,
    turns: Rc<Cell<u64>>,
}

impl Run {
    /// With all members ready.
    fn begin() -> Self {
        let findings = Findings::default();
        let network = Network::new(dice(SEED, 1), Trace::new(false));
        let mut cluster = Cluster::new(MEMBERS, LOCK_GROUPS, SEED, &network, findings.clone());
        cluster.start_all().unwrap();
        let (world, clients) = (World::default(), Host::start(SEED).unwrap());
        let mut run = Self { world, network, cluster, clients, findings, turns: Rc::default() };
        let limit = run.world.now() + MINUTE_MS;
        while let Err(missing) = run.cluster.ready() {
            assert!(run.world.now() < limit, "{missing}");
            run.step();
        }
        run
    }

    fn client(&self, number: u64) -> Client {
        let (network, world) = (self.network.clone(), self.world.clone());
        Client { number, network, world, findings: self.findings.clone(), turns: self.turns.clone() }
    }

    /// A millisecond passes.
    fn step(&mut self) {
        self.world.step();
        let now = self.world.now();
        self.network.advance(now);
        self.cluster.step(now);
        self.clients.run(1);
    }

    fn pass(&mut self, ms: u64) {
        (0..ms).for_each(|_| self.step());
    }

    /// What a member answers to somebody beside the clients.
    fn asked<T: Send + 'static>(&mut self, kind: &'static str, verb: Verb<T>) -> T {
        let hear: Rc<RefCell<Option<T>>> = Rc::default();
        let (tell, asker) = (hear.clone(), self.client(CLIENTS));
        self.clients.spawn(async move {
            let answer = asker.ask(kind, verb).await;
            *tell.borrow_mut() = answer;
        });
        let limit = self.world.now() + ANSWERED_WITHIN_MS;
        loop {
            if let Some(answer) = hear.take() {
                return answer;
            }
            assert!(self.world.now() < limit, "no answer to {kind}: {:?}", self.findings.all());
            self.step();
        }
    }

    /// All changes that have begun, as the replica has them that knows most.
    fn changes(&self) -> Vec<Begun> {
        let replicas = self.cluster.replicas(GroupId::META);
        let told = replicas.iter().filter_map(|(_, replica)| replica.with_meta(|meta, _| changes(meta)));
        told.max_by_key(Vec::len).unwrap_or_default()
    }

    /// How many groups share the names.
    fn shared_by(&self) -> usize {
        let replicas = self.cluster.replicas(GroupId::META);
        let groups = |meta: &MetaTable| {
            let rule = meta.map().and_then(|map| map.rules().get(PREFIX));
            rule.map_or(1, |rule| rule.table.groups().len())
        };
        let told = replicas.iter().filter_map(|(_, replica)| replica.with_meta(|meta, _| groups(meta)));
        told.max().unwrap_or_default()
    }
}

/// Four minutes in which the planner may act, and six in which it has nothing to do.
fn ten_minutes() {
    let mut run = Run::begin();
    let edit: Verb<PlannerView> = Arc::new(|endpoint| {
        Box::pin(async move { endpoint.edit_planner(eager(), "test".to_owned(), "test".to_owned()).await })
    });
    assert_eq!(run.asked("edit the planner", edit).policy.mode, Mode::Auto);
    (0..CLIENTS).for_each(|number| run.clients.spawn(run.client(number).work()));
    run.pass(4 * MINUTE_MS);
    let early = run.changes();
    run.pass(6 * MINUTE_MS);
    let all = run.changes();

    assert_eq!(run.findings.all(), Findings::default().all());
    let split = |change: &Begun| matches!(&change.request, Request::Split { prefix, .. } if prefix == PREFIX);
    assert!(all.iter().any(|change| split(change) && change.done), "nothing was split: {all:#?}");
    assert!(all.iter().all(|change| change.done && change.actor == PLANNER), "{all:#?}");
    assert_eq!(all.len(), early.len(), "after four minutes it was not at rest: {all:#?}");
    assert!(run.shared_by() > 1, "what was split is together again: {all:#?}");

    // It is at rest because it wants nothing, and not because it has stopped looking, or the load has stopped.
    let show: Verb<PlannerView> = Arc::new(|endpoint| Box::pin(async move { endpoint.planner().await }));
    let look = run.asked("show the planner", show).look.unwrap();
    assert_eq!((look.wait.as_deref(), &look.proposal), (None, &None), "{look:?}");
    let measured: u64 = look.groups.iter().map(|(_, load)| load.entries_per_s).sum();
    assert!(look.ago_ms < 10_000 && measured >= 40, "{look:?}");
    let wanted = CLIENTS * 10 * MINUTE_MS / 250;
    assert!(run.turns.get() * 10 > wanted * 9, "{} turns of {wanted}", run.turns.get());
    println!("{} changes, then at rest over {} groups at {measured} entries/s", all.len(), run.shared_by());
}

#[test]
fn under_steady_load_the_planner_comes_to_rest_and_nothing_goes_to_and_fro() {
    // A thread of its own: the run's randomness is the thread's.
    let run = thread::Builder::new().stack_size(STACK).spawn(|| {
        seed_this_thread(SEED);
        align_task_numbers().unwrap();
        ten_minutes();
    });
    if let Err(panic) = run.unwrap().join() {
        resume_unwind(panic);
    }
}

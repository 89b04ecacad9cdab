//! `run`: clients that acquire, hold and release in a closed loop, for a while; measured after a warm-up, judged all the
//! time.
//!
//! - [`scenario`]: who wants which lock; [`client`]: the loop of one client; [`result`]: what is told in the end.

mod client;
mod result;
mod scenario;

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use clap::Args;
use futures::{StreamExt as _, TryStreamExt as _};
use holdfast_history::Limits;
use tokio::{
    sync::{oneshot, watch},
    task::JoinSet,
    time::timeout,
};

use self::{client::LoopClient, scenario::Names};
pub(crate) use self::{result::RunResult, scenario::Scenario};
use crate::{
    cli::{Output, seconds, some_seconds},
    clock::{nanos, now, sleep_until},
    cpu,
    driver::{Driver, Etcd, Holdfast, LockClient as _, Redis, Target},
    endpoints,
    failure::Failure,
    figures::Tally,
    interrupt, output,
    recorder::Recorder,
};

/// So many clients are opened at a time.
const OPEN_AT_ONCE: usize = 64;
/// How long clients may take to end once the time is over.
const DRAIN_WITHIN: Duration = Duration::from_secs(20);

const HELP: &str = "\
single: one client, one lock, nobody else. spread: each client has a lock of its own, on all groups.
hot: all clients want one lock.

Examples:
  holdfast-loadtest run spread --clients 256 --seconds 10 -o json
  holdfast-loadtest run hot --target etcd --endpoints http://127.0.0.1:2379 --clients 32

Exit codes: 0, 1 a promise was broken or the run failed, 2 wrong usage, 69 an endpoint does not answer.";

/// Acquire and release in a closed loop, and measure
#[derive(Clone, Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct RunArgs {
    /// Who wants which lock
    #[arg(value_enum, value_name = "SCENARIO", required_unless_present = "scenario")]
    pub(crate) shape: Option<Scenario>,
    /// The same, as an option
    #[arg(long, value_enum, conflicts_with = "shape")]
    pub(crate) scenario: Option<Scenario>,
    /// Which service
    #[arg(long, value_enum, default_value_t = Target::Holdfast)]
    pub(crate) target: Target,
    /// Where it listens, comma-separated; clients are spread over all of them
    #[arg(long, value_delimiter = ',', value_name = "URL")]
    pub(crate) endpoints: Vec<String>,
    /// How many clients; single has 1, the others 64 unless told otherwise
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) clients: Option<u32>,
    /// How long to measure
    #[arg(long, value_name = "S", default_value = "10", value_parser = some_seconds)]
    pub(crate) seconds: Duration,
    /// How long to run before measuring
    #[arg(long, value_name = "S", default_value = "2", value_parser = seconds)]
    pub(crate) warmup: Duration,
    /// How many TCP connections the clients share; one per client unless told otherwise
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) connections: Option<u32>,
    /// How long each lock is held, in milliseconds
    #[arg(long, value_name = "MS", default_value_t = 0, value_parser = clap::value_parser!(u64).range(0..=600_000))]
    pub(crate) hold: u64,
    /// Time to live of sessions, leases and keys, in whole seconds
    #[arg(long, value_name = "S", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub(crate) ttl: u64,
    /// How the result is told
    #[arg(short, long, value_enum, default_value_t = Output::Table)]
    pub(crate) output: Output,
    /// Whether to say on standard error that it begins
    #[arg(skip = true)]
    pub(crate) announce: bool,
}

/// What all clients of a run share.
#[derive(Debug)]
pub(crate) struct Course {
    /// The moments between which is measured.
    from: AtomicU64,
    until: AtomicU64,
    hold: Duration,
    /// When the last release was sent, where hand-overs are timed.
    released: AtomicU64,
    handovers: bool,
    tally: Tally,
}

impl Course {
    fn measures(&self, at: u64) -> bool {
        at >= self.from.load(Ordering::Relaxed) && at <= self.until.load(Ordering::Relaxed)
    }

    fn over(&self, at: u64) -> bool {
        at > self.until.load(Ordering::Relaxed)
    }
}

/// Runs the verb.
pub(crate) async fn run(args: RunArgs) -> Result<(), Failure> {
    let mut interrupted = interrupt::catch()?;
    let result = measure(&args, &mut interrupted).await?;
    for violation in &result.violation_texts {
        eprintln!("holdfast-loadtest: violation: {violation}");
    }
    match args.output {
        Output::Json => output::json(&result)?,
        Output::Table => output::text(&result.table())?,
    }
    if result.violations > 0 {
        return Err(Failure::Violations(result.violations));
    }
    if result.cycles == 0 && !*interrupted.borrow() {
        return Err(Failure::Other("not one lock was acquired and released; see the errors above".into()));
    }
    Ok(())
}

/// Measures, and prints nothing.
pub(crate) async fn measure(
    args: &RunArgs,
    interrupted: &mut watch::Receiver<bool>,
) -> Result<RunResult, Failure> {
    let scenario = args.shape.or(args.scenario).unwrap_or(Scenario::Single);
    let clients = scenario.clients(args.clients)?;
    let connections = args.connections.unwrap_or(clients);
    if connections > clients {
        return Err(Failure::Usage(format!("{connections} connections for {clients} clients: give fewer")));
    }
    let endpoints =
        if args.endpoints.is_empty() { args.target.default_endpoints() } else { args.endpoints.clone() };
    endpoints::check(&endpoints, args.target.schemes())?;
    endpoints::probe(&endpoints).await?;
    let ttl = Duration::from_secs(args.ttl);
    let setting = Setting { args, scenario, clients, connections };
    match args.target {
        Target::Holdfast => drive(Holdfast::new(&endpoints, connections, ttl)?, &setting, interrupted).await,
        Target::Etcd => drive(Etcd::new(&endpoints, connections, ttl).await?, &setting, interrupted).await,
        Target::Redis => drive(Redis::new(&endpoints, connections, ttl).await?, &setting, interrupted).await,
    }
}

/// A run as it was asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setting<'a> {
    args: &'a RunArgs,
    scenario: Scenario,
    clients: u32,
    connections: u32,
}

async fn drive<D: Driver>(
    driver: D,
    setting: &Setting<'_>,
    interrupted: &mut watch::Receiver<bool>,
) -> Result<RunResult, Failure> {
    let driver = &driver;
    let opening = futures::stream::iter(0..setting.clients)
        .map(|number| async move { driver.client(number).await })
        .buffered(OPEN_AT_ONCE)
        .try_collect::<Vec<_>>();
    let opened = tokio::select! {
        opened = opening => opened?,
        () = interrupt::wait(interrupted) => return Err(Failure::Other("interrupted before it began".into())),
    };
    let judged = setting.args.target == Target::Holdfast;
    let recorder = judged.then(|| Recorder::new(Limits::default()));
    let (begin, cpu_before) = (now(), cpu::own());
    let from = begin + nanos(setting.args.warmup);
    let course = Arc::new(Course {
        from: AtomicU64::new(from),
        until: AtomicU64::new(from + nanos(setting.args.seconds)),
        hold: Duration::from_millis(setting.args.hold),
        released: AtomicU64::new(0),
        handovers: setting.scenario == Scenario::Hot,
        tally: Tally::new(),
    });
    let names = Names::new(setting.scenario);
    let mut tasks = JoinSet::new();
    let mut stops = Vec::new();
    for (number, client) in (0..).zip(opened) {
        let (stop, stopped) = oneshot::channel();
        stops.push(stop);
        let witness = recorder.as_ref().zip(client.opened());
        let client = LoopClient::new(number, client, names.of(number), course.clone(), witness);
        tasks.spawn(client.run(stopped));
    }
    let until = course.until.load(Ordering::Relaxed);
    if setting.args.announce {
        eprintln!(
            "holdfast-loadtest: {} clients run; measuring ends in {:.0} s",
            setting.clients,
            Duration::from_nanos(until - begin).as_secs_f64()
        );
    }
    tokio::select! {
        () = sleep_until(until) => {}
        () = interrupt::wait(interrupted) => {
            course.until.fetch_min(now(), Ordering::Relaxed);
        }
    }
    drop(stops);
    let stuck = drain(tasks).await;
    if let Some(recorder) = &recorder {
        recorder.finish();
    }
    let cpu = (cpu::own() - cpu_before).as_secs_f64() / Duration::from_nanos(now() - begin).as_secs_f64();
    Ok(RunResult::new(setting, &course, recorder.as_deref(), stuck, cpu))
}

/// Waits until all clients have ended; answers how many did not.
async fn drain(mut tasks: JoinSet<()>) -> u64 {
    let all = async { while tasks.join_next().await.is_some() {} };
    if timeout(DRAIN_WITHIN, all).await.is_ok() {
        return 0;
    }
    let stuck = tasks.len() as u64;
    tasks.shutdown().await;
    stuck
}

//! `silence`: very many sessions go silent at once while some live on. All their locks must come free in time, and no
//! live session may be lost.

use std::time::{Duration, Instant};

use clap::{Args, ValueEnum};
use holdfast_client::{Admin, Client, ListLocks};
use nix::sys::signal::Signal;
use serde::Serialize;
use tokio::{sync::watch, time::sleep};

use super::{
    children::Children,
    crowd::{Crowd, Shape},
};
use crate::{cli::Output, driver::Target, endpoints, failure::Failure, interrupt, output};

/// Promised: 2 s after the TTL a dead session's end is decided.
const DETECT: Duration = Duration::from_secs(2);
/// Ending tens of thousands at once takes a while.
const SWEEP: Duration = Duration::from_secs(10);
/// How much longer is looked, to say by how much it was missed.
const LONGER: Duration = Duration::from_secs(60);
const LOOK: Duration = Duration::from_millis(500);
/// Names on one page of the list.
const PAGE: u32 = 1_000;
/// So many freed locks are acquired in the end, to see that they are free indeed.
const TRIED: usize = 50;

/// How sessions go silent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "snake_case")]
pub(crate) enum How {
    /// Their processes are killed: connections break
    Kill,
    /// Their processes are frozen: connections stay
    Freeze,
}

/// Let very many sessions go silent at once
#[derive(Clone, Debug, Args)]
pub(crate) struct SilenceArgs {
    /// gRPC URLs of the members, comma-separated
    #[arg(long, value_delimiter = ',', value_name = "URL")]
    endpoints: Vec<String>,
    /// How many sessions go silent, each with a lock
    #[arg(long, value_name = "N", default_value_t = 50_000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    count: u32,
    /// How many live on, each with a lock
    #[arg(long, value_name = "N", default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    live: u32,
    /// Time to live of all, in whole seconds
    #[arg(long, value_name = "S", default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..=3_600))]
    ttl: u64,
    /// How they go silent
    #[arg(long, value_enum, default_value_t = How::Kill)]
    how: How,
    /// How many processes the silent ones are in
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=64))]
    processes: u32,
    /// How many clients each process has, one TCP connection each
    #[arg(long, value_name = "N", default_value_t = 6, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    connections: u32,
    /// How the result is told
    #[arg(short, long, value_enum, default_value_t = Output::Table)]
    output: Output,
}

/// What the silence came to.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Silence {
    silent: u32,
    live: u32,
    ttl_s: u64,
    how: How,
    opened_in_s: f64,
    /// From the silence to the moment when the first and the last of their locks was seen to be free.
    first_free_after_s: Option<f64>,
    all_free_after_s: Option<f64>,
    /// When all had to be free.
    allowed_s: f64,
    /// How many were still held when looking ended.
    still_held: u64,
    /// Freed locks that another session could not acquire.
    not_acquired: u64,
    live_lost: u64,
    violations: u64,
}

/// Runs the verb.
pub(crate) async fn run(args: SilenceArgs) -> Result<(), Failure> {
    let mut interrupted = interrupt::catch()?;
    let endpoints =
        if args.endpoints.is_empty() { Target::Holdfast.default_endpoints() } else { args.endpoints.clone() };
    endpoints::check(&endpoints, Target::Holdfast.schemes())?;
    endpoints::probe(&endpoints).await?;
    let result = silence(&args, &endpoints, &mut interrupted).await?;
    match args.output {
        Output::Json => output::json(&result)?,
        Output::Table => output::text(&result.text())?,
    }
    if result.violations > 0 { Err(Failure::Violations(result.violations)) } else { Ok(()) }
}

async fn silence(
    args: &SilenceArgs,
    endpoints: &[String],
    interrupted: &mut watch::Receiver<bool>,
) -> Result<Silence, Failure> {
    let ttl = Duration::from_secs(args.ttl);
    let run: u32 = rand::random();
    let shape = |count, kind: &str| Shape {
        count,
        locks_each: 1,
        connections: args.connections,
        ttl,
        prefix: format!("load-{run:08x}-{kind}-"),
    };
    let begin = Instant::now();
    let silent = shape(args.count, "silent");
    let mut children = Children::start(endpoints, &silent, args.processes)?;
    let living = shape(args.live, "live");
    let opening = async {
        let live = Crowd::open(endpoints, &living).await?;
        children.all_open().await?;
        Ok::<_, Failure>(live)
    };
    let live = tokio::select! {
        live = opening => live?,
        () = interrupt::wait(interrupted) => return Err(Failure::Other("interrupted before all were open".into())),
    };
    let opened_in_s = begin.elapsed().as_secs_f64();
    eprintln!("holdfast-loadtest: all are open after {opened_in_s:.0} s; silence");
    children.signal(match args.how {
        How::Kill => Signal::SIGKILL,
        How::Freeze => Signal::SIGSTOP,
    });
    let silenced = Instant::now();
    let allowed = ttl + DETECT + SWEEP;
    let client = Client::connect(endpoints).map_err(|error| Failure::Usage(error.to_string()))?;
    let admin = client.admin();
    let watched = tokio::select! {
        watched = watch_free(&admin, &silent, silenced, allowed + LONGER) => watched,
        () = interrupt::wait(interrupted) => return Err(Failure::Other("interrupted".into())),
    };
    // Frozen ones must not wake up again.
    children.signal(Signal::SIGKILL);
    let not_acquired = if watched.held == 0 { try_some(&live, &silent).await } else { 0 };
    let live_lost = live.lost();
    live.close().await;
    let late = watched.all.is_none_or(|all| all > allowed);
    Ok(Silence {
        silent: args.count,
        live: args.live,
        ttl_s: args.ttl,
        how: args.how,
        opened_in_s,
        first_free_after_s: watched.first.map(|first| first.as_secs_f64()),
        all_free_after_s: watched.all.map(|all| all.as_secs_f64()),
        allowed_s: allowed.as_secs_f64(),
        still_held: watched.held,
        not_acquired,
        live_lost,
        violations: u64::from(late) + not_acquired + live_lost,
    })
}

/// How locks came free.
#[derive(Clone, Copy, Debug)]
struct Watched {
    first: Option<Duration>,
    all: Option<Duration>,
    held: u64,
}

async fn watch_free(admin: &Admin, shape: &Shape, silenced: Instant, limit: Duration) -> Watched {
    let mut watched = Watched { first: None, all: None, held: u64::from(shape.count) };
    while silenced.elapsed() < limit {
        // A member that is busy may not answer in time; then the next look will tell.
        match held(admin, &shape.prefix).await {
            Ok(held) => {
                watched.held = held;
                let since = silenced.elapsed();
                if held < u64::from(shape.count) {
                    watched.first.get_or_insert(since);
                }
                if held == 0 {
                    watched.all = Some(since);
                    return watched;
                }
            }
            Err(failure) => eprintln!("holdfast-loadtest: {failure}"),
        }
        sleep(LOOK).await;
    }
    watched
}

/// How many locks whose names begin so are held.
async fn held(admin: &Admin, prefix: &str) -> Result<u64, Failure> {
    let mut query = ListLocks { prefix: prefix.to_owned(), limit: PAGE, ..ListLocks::default() };
    let mut held = 0;
    loop {
        let page =
            admin.locks(&query).await.map_err(|error| Failure::other("the locks cannot be listed", error))?;
        if !page.unavailable_groups.is_empty() {
            return Err(Failure::Other(format!("groups {:?} have no leader", page.unavailable_groups)));
        }
        held += page.locks.iter().filter(|lock| lock.holder.is_some()).count() as u64;
        match page.next_cursor {
            Some(cursor) => query.cursor = Some(cursor),
            None => return Ok(held),
        }
    }
}

/// Acquires some of the freed locks; answers how many were refused.
async fn try_some(live: &Crowd, silent: &Shape) -> u64 {
    let mut refused = 0;
    for number in 0..TRIED.min(silent.count as usize) {
        let Some(session) = live.session(number) else { break };
        // As the first process called them.
        let lock = session.lock(format!("{}0-{number}/0", silent.prefix));
        if let Err(error) = lock.try_acquire().await {
            eprintln!("holdfast-loadtest: {error}");
            refused += 1;
        }
    }
    refused
}

impl Silence {
    fn text(&self) -> String {
        let seconds = |time: Option<f64>| time.map_or("never".to_owned(), |time| format!("{time:.1} s"));
        format!(
            "{} sessions silent ({:?}), {} live, TTL {} s; opened in {:.1} s\nfirst lock free after {}, all after {} \
             (allowed {:.0} s), {} still held, {} of them not to be acquired\n{} live sessions lost",
            self.silent,
            self.how,
            self.live,
            self.ttl_s,
            self.opened_in_s,
            seconds(self.first_free_after_s),
            seconds(self.all_free_after_s),
            self.allowed_s,
            self.still_held,
            self.not_acquired,
            self.live_lost,
        )
    }
}

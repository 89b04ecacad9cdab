//! `sessions`: opens very many sessions, keeps them alive, and tells how many were lost.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use clap::Args;
use serde::{Deserialize, Serialize};
use tokio::{sync::watch, time::sleep};

use super::{
    children::{ALL_OPEN, Children},
    crowd::{Crowd, Shape},
};
use crate::{
    cli::{Output, some_seconds},
    cpu::{self, Meter},
    driver::Target,
    endpoints,
    failure::Failure,
    interrupt, output,
};

/// How long processes may take to close their sessions.
const END_WITHIN: Duration = Duration::from_secs(120);

const HELP: &str = "\
Sessions are opened by the native client, many by each client, and kept alive every quarter of the TTL.

Example:
  holdfast-loadtest sessions --count 100000 --ttl 20 --seconds 180 --server-pids $(pgrep -d, -f 'holdfast node')";

/// Open very many sessions, and keep them alive
#[derive(Clone, Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct SessionsArgs {
    /// gRPC URLs of the members, comma-separated
    #[arg(long, value_delimiter = ',', value_name = "URL")]
    endpoints: Vec<String>,
    /// How many sessions
    #[arg(long, value_name = "N", default_value_t = 100_000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    count: u32,
    /// Their time to live, in whole seconds
    #[arg(long, value_name = "S", default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    ttl: u64,
    /// How long to keep them, once all are open
    #[arg(long, value_name = "S", default_value = "180", value_parser = some_seconds)]
    seconds: Duration,
    /// How many locks each holds, all with names of their own
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(0..=100))]
    locks_each: u32,
    /// How many processes share them
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=64))]
    processes: u32,
    /// How many clients each process has, one TCP connection each
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    connections: u32,
    /// Processes whose share of CPU is told, comma-separated
    #[arg(long, value_delimiter = ',', value_name = "PID")]
    server_pids: Vec<u32>,
    /// How the names of the locks begin
    #[arg(long, value_name = "TEXT", hide = true)]
    prefix: Option<String>,
    /// How the result is told
    #[arg(short, long, value_enum, default_value_t = Output::Table)]
    output: Output,
}

/// What keeping sessions came to.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Kept {
    /// How many sessions.
    pub(crate) sessions: u64,
    /// How many locks each of them held.
    pub(crate) locks_each: u32,
    pub(crate) ttl_s: u64,
    /// How long opening them took, locks included.
    pub(crate) opened_in_s: f64,
    /// How long they were kept since.
    pub(crate) kept_s: f64,
    /// Sessions lost, or with a lost lock.
    pub(crate) lost: u64,
    /// Why.
    pub(crate) lost_because: BTreeMap<String, u64>,
    /// Share of one CPU that the load took while they were kept.
    pub(crate) generator_cpu: f64,
    /// Share of one CPU that the servers took, where their processes were named.
    pub(crate) server_cpu: Option<f64>,
}

/// Runs the verb.
pub(crate) async fn run(args: SessionsArgs) -> Result<(), Failure> {
    let mut interrupted = interrupt::catch()?;
    let endpoints =
        if args.endpoints.is_empty() { Target::Holdfast.default_endpoints() } else { args.endpoints.clone() };
    endpoints::check(&endpoints, Target::Holdfast.schemes())?;
    endpoints::probe(&endpoints).await?;
    let shape = Shape {
        count: args.count,
        locks_each: args.locks_each,
        connections: args.connections,
        ttl: Duration::from_secs(args.ttl),
        prefix: args.prefix.clone().unwrap_or_else(|| format!("load-{:08x}-", rand::random::<u32>())),
    };
    let kept = if args.processes == 1 {
        alone(&args, &endpoints, &shape, &mut interrupted).await?
    } else {
        together(&args, &endpoints, &shape, &mut interrupted).await?
    };
    match args.output {
        Output::Json => output::json(&kept)?,
        Output::Table => output::text(&kept.text())?,
    }
    if kept.lost > 0 { Err(Failure::Violations(kept.lost)) } else { Ok(()) }
}

async fn alone(
    args: &SessionsArgs,
    endpoints: &[String],
    shape: &Shape,
    interrupted: &mut watch::Receiver<bool>,
) -> Result<Kept, Failure> {
    let crowd = tokio::select! {
        crowd = Crowd::open(endpoints, shape) => crowd?,
        () = interrupt::wait(interrupted) => return Err(Failure::Other("interrupted before all were open".into())),
    };
    eprintln!("holdfast-loadtest: {ALL_OPEN}");
    let (begin, own, servers) = (Instant::now(), cpu::own(), Meter::start(&args.server_pids));
    tokio::select! {
        () = sleep(args.seconds) => {}
        () = interrupt::wait(interrupted) => {}
    }
    let kept = begin.elapsed();
    let result = Kept {
        sessions: u64::from(shape.count),
        locks_each: shape.locks_each,
        ttl_s: args.ttl,
        opened_in_s: crowd.opened_in.as_secs_f64(),
        kept_s: kept.as_secs_f64(),
        lost: crowd.lost(),
        lost_because: crowd.reasons().await,
        generator_cpu: (cpu::own() - own).as_secs_f64() / kept.as_secs_f64(),
        server_cpu: servers.share(),
    };
    crowd.close().await;
    Ok(result)
}

async fn together(
    args: &SessionsArgs,
    endpoints: &[String],
    shape: &Shape,
    interrupted: &mut watch::Receiver<bool>,
) -> Result<Kept, Failure> {
    let begin = Instant::now();
    let mut children = Children::start(endpoints, shape, args.processes)?;
    tokio::select! {
        opened = children.all_open() => opened?,
        () = interrupt::wait(interrupted) => return Err(Failure::Other("interrupted before all were open".into())),
    }
    let opened_in_s = begin.elapsed().as_secs_f64();
    eprintln!("holdfast-loadtest: {ALL_OPEN}, after {opened_in_s:.0} s");
    let (begin, servers) = (Instant::now(), Meter::start(&args.server_pids));
    tokio::select! {
        () = sleep(args.seconds) => {}
        () = interrupt::wait(interrupted) => {}
    }
    let kept_s = begin.elapsed().as_secs_f64();
    let server_cpu = servers.share();
    let mut total = Kept {
        locks_each: shape.locks_each,
        ttl_s: args.ttl,
        opened_in_s,
        kept_s,
        server_cpu,
        ..Kept::default()
    };
    for kept in children.finish(END_WITHIN).await? {
        total.sessions += kept.sessions;
        total.lost += kept.lost;
        total.generator_cpu += kept.generator_cpu;
        for (reason, count) in kept.lost_because {
            *total.lost_because.entry(reason).or_default() += count;
        }
    }
    Ok(total)
}

impl Kept {
    fn text(&self) -> String {
        let mut text = format!(
            "{} sessions with {} locks each, TTL {} s: opened in {:.1} s, kept for {:.1} s\n{} lost",
            self.sessions, self.locks_each, self.ttl_s, self.opened_in_s, self.kept_s, self.lost
        );
        for (reason, count) in &self.lost_because {
            text += &format!("\n  {count} × {reason}");
        }
        text += &format!("\nthe load took {:.2} of one CPU", self.generator_cpu);
        if let Some(share) = self.server_cpu {
            text += &format!(", the servers {share:.2}");
        }
        text
    }
}

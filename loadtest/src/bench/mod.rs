//! `bench`: Holdfast beside etcd and Redis on one machine, turn by turn, as ratios of medians.
//!
//! - [`plan`]: what is measured in each round; [`service`] and [`process`]: the services, started for their turn and ended
//!   after it; [`verdict`]: medians, ratios, targets; [`machine`]: what it was measured on.
//! - [`growth`]: Holdfast alone for a long time; [`flat`]: whether what it takes stays the same.

mod flat;
pub(crate) mod growth;
mod machine;
mod plan;
pub(crate) mod process;
mod service;
mod verdict;

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use clap::Args;
use tokio::sync::watch;

use self::{
    plan::{Measure, TURNS},
    service::{Places, Running, Service},
    verdict::{Bench, Sample},
};
use crate::{
    cli::{Output, seconds, some_seconds},
    cpu::Others,
    failure::Failure,
    interrupt, output,
    run::{self, RunArgs},
};

const HELP: &str = "\
Starts each service for its turn, three members of Holdfast and etcd and one Redis, on loopback with all data in one
folder, and ends it after its turn. Compares medians over the rounds; whole figures differ from machine to machine.

`make bench` builds everything, installs etcd and Redis below target/peers, and runs this.";

/// Compare Holdfast with etcd and Redis on this machine
#[derive(Clone, Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct BenchArgs {
    /// How many times each thing is measured
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=100))]
    rounds: u32,
    /// How long each measurement takes
    #[arg(long, value_name = "S", default_value = "3", value_parser = some_seconds)]
    seconds: Duration,
    /// How long each runs before it is measured
    #[arg(long, value_name = "S", default_value = "1", value_parser = seconds)]
    warmup: Duration,
    /// Folder with etcd and redis-server, as loadtest/peers/install fills it
    #[arg(long, value_name = "FOLDER", default_value = "target/peers")]
    peers: PathBuf,
    /// The command holdfast; the one beside this program unless told otherwise
    #[arg(long, value_name = "PATH")]
    holdfast: Option<PathBuf>,
    /// Folder for all data, on the disk that is to be measured; its folder `now` is emptied
    #[arg(long, value_name = "FOLDER", default_value = "target/bench")]
    dir: PathBuf,
    /// First of the hundred ports that are used
    #[arg(long, value_name = "PORT", default_value_t = 27_600, value_parser = clap::value_parser!(u16).range(1_024..=65_000))]
    base_port: u16,
    /// File for the result as JSON
    #[arg(long, value_name = "FILE", default_value = "target/bench.json")]
    report: PathBuf,
    /// Measure only what concerns these services and scenarios, for example `etcd` or `spread`
    #[arg(long, value_name = "TEXT", value_delimiter = ',', value_parser = part_of_a_turn)]
    only: Vec<String>,
    /// Fail where a target is missed
    #[arg(long)]
    check: bool,
    /// How the result is told on standard output
    #[arg(short, long, value_enum, default_value_t = Output::Table)]
    output: Output,
}

/// Runs the verb.
pub(crate) async fn run(args: BenchArgs) -> Result<(), Failure> {
    let mut interrupted = interrupt::catch()?;
    let places = places(&args)?;
    let machine = machine::Machine::look(&places)?;
    let mut samples: BTreeMap<(Service, Measure), Vec<Sample>> = BTreeMap::new();
    for round in 0..args.rounds {
        for (service, measures) in TURNS {
            let wanted: Vec<Measure> =
                measures.iter().copied().filter(|measure| args.wants(*service, *measure)).collect();
            if wanted.is_empty() {
                continue;
            }
            let running = Running::start(*service, &places).await?;
            for measure in wanted {
                eprintln!("round {} of {}: {}, {}", round + 1, args.rounds, service.name(), measure.name());
                let sample = take(&args, &running, *service, measure, round, &mut interrupted).await?;
                samples.entry((*service, measure)).or_default().push(sample);
            }
            running.stop().await;
        }
    }
    let bench = Bench::new(machine, args.rounds, args.seconds, &samples);
    let json = serde_json::to_string_pretty(&bench)
        .map_err(|error| Failure::other("cannot tell the result", error))?;
    fs::write(&args.report, json + "\n")
        .map_err(|error| Failure::other(&args.report.display().to_string(), error))?;
    match args.output {
        Output::Json => output::json(&bench)?,
        Output::Table => output::text(&bench.table())?,
    }
    if bench.violations > 0 {
        return Err(Failure::Violations(bench.violations));
    }
    match bench.missed() {
        missed if args.check && missed > 0 => Err(Failure::Other(format!("{missed} targets missed"))),
        _ => Ok(()),
    }
}

impl BenchArgs {
    fn wants(&self, service: Service, measure: Measure) -> bool {
        let name = turn(service, measure);
        self.only.is_empty() || self.only.iter().any(|only| name.contains(only.as_str()))
    }
}

/// What `--only` is compared with.
fn turn(service: Service, measure: Measure) -> String {
    format!("{}, {}", service.name(), measure.name())
}

/// Refuses what no turn has in its name: nothing would be measured.
fn part_of_a_turn(text: &str) -> Result<String, String> {
    let mut turns =
        TURNS.iter().flat_map(|(service, measures)| measures.iter().map(|measure| turn(*service, *measure)));
    if !text.is_empty() && turns.any(|turn| turn.contains(text)) {
        Ok(text.to_owned())
    } else {
        Err("no service or scenario has this in its name; write for example etcd or spread".into())
    }
}

/// The command holdfast as a whole path: the given one, or the one beside this program.
fn holdfast_beside(given: Option<&Path>) -> Result<PathBuf, Failure> {
    let path = match given {
        Some(path) => path.to_owned(),
        None => {
            let itself =
                std::env::current_exe().map_err(|error| Failure::other("cannot find myself", error))?;
            itself.with_file_name("holdfast")
        }
    };
    Ok(std::path::absolute(&path).unwrap_or(path))
}

fn places(args: &BenchArgs) -> Result<Places, Failure> {
    // Whole paths: services are started elsewhere.
    let whole = |path: PathBuf| std::path::absolute(&path).unwrap_or(path);
    Ok(Places {
        holdfast: holdfast_beside(args.holdfast.as_deref())?,
        etcd: whole(args.peers.join("etcd")),
        redis: whole(args.peers.join("redis-server")),
        data: whole(args.dir.clone()),
        base_port: args.base_port,
    })
}

async fn take(
    args: &BenchArgs,
    running: &Running,
    service: Service,
    measure: Measure,
    round: u32,
    interrupted: &mut watch::Receiver<bool>,
) -> Result<Sample, Failure> {
    // Each round begins at another member, so that a lone client sits beside the leader in some and not in others.
    let mut endpoints = running.endpoints.clone();
    let turn = round as usize % endpoints.len().max(1);
    endpoints.rotate_left(turn);
    let run = RunArgs {
        shape: Some(measure.scenario()),
        scenario: None,
        target: service.target(),
        endpoints,
        clients: Some(measure.clients()),
        seconds: args.seconds,
        warmup: args.warmup,
        connections: None,
        hold: 0,
        ttl: 10,
        output: args.output,
        announce: false,
    };
    let others = Others::start(&running.pids());
    let result = run::measure(&run, interrupted).await?;
    let others = others.cpus();
    if *interrupted.borrow() {
        return Err(Failure::Other("interrupted; everything that was started is ended".into()));
    }
    for text in result.violation_texts.iter().chain(result.error_texts.keys()) {
        eprintln!("  {text}");
    }
    Ok(Sample::new(&result, others))
}

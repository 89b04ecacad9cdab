//! The command `holdfast-sim`: one seed again, many seeds until one finds something, and what a finding can do without.
//!
//! Prints; judges nothing itself.

use std::{
    io,
    process::ExitCode,
    time::{Duration, Instant},
};

use clap::{Args, Parser, Subcommand};

use crate::{
    bench,
    check::Finding,
    nemesis::Spared,
    plan::{Plan, Report},
    run::{catch_panics, run},
    shrink::shrink,
    sum::Sum,
};

/// So many lines of the event log are shown with a finding.
const SHOWN_LINES: usize = 60;
/// So many runs a finding is shrunk for, where nothing else is said.
const SHRINK_RUNS: u32 = 300;

/// Runs a simulated cluster under virtual time.
#[derive(Debug, Parser)]
#[command(name = "holdfast-sim")]
struct Options {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Run one seed and print its digest.
    Run(One),
    /// Run one seed after the other until one finds something.
    Hunt(Many),
    /// Run many seeds over all cores, whatever they find.
    Bench(bench::Bench),
    /// Run the seeds of one process of a bench.
    #[command(hide = true)]
    Stretch(bench::Stretch),
    /// Run one seed that finds something with less and less, as long as it breaks the same promise.
    Shrink(Less),
    /// Hunt every fault that was put into this build, and write the table.
    #[cfg(holdfast_mutants)]
    Mutants(crate::mutants::Proof),
    /// Hunt one fault that was put into this build.
    #[cfg(holdfast_mutants)]
    Mutant(crate::mutants::Hunt),
}

#[derive(Debug, Args)]
struct One {
    /// The seed.
    #[arg(long)]
    seed: u64,
    /// How many milliseconds things go wrong for; as long as usual where it is not said.
    #[arg(long)]
    storm_ms: Option<u64>,
    /// Leave these faults out, by their numbers.
    #[arg(long, value_delimiter = ',')]
    without_faults: Vec<u64>,
    /// Leave these clients out, by their numbers.
    #[arg(long, value_delimiter = ',')]
    without_clients: Vec<u64>,
    /// Another network of the same kind, by its number.
    #[arg(long, default_value_t = 0)]
    network: u64,
    /// So many processes with the product's own client; as many as usual where it is not said.
    #[arg(long)]
    natives: Option<u32>,
    /// So many clients that fall silent; as many as usual where it is not said.
    #[arg(long)]
    lapsers: Option<u32>,
    /// Print the whole event log, and what the members log.
    #[arg(long)]
    trace: bool,
    /// With this fault.
    #[cfg(holdfast_mutants)]
    #[arg(long)]
    mutant: Option<String>,
}

#[derive(Debug, Args)]
struct Less {
    /// The seed.
    #[arg(long)]
    seed: u64,
    /// Most runs.
    #[arg(long, default_value_t = SHRINK_RUNS)]
    runs: u32,
    /// With this fault.
    #[cfg(holdfast_mutants)]
    #[arg(long)]
    mutant: Option<String>,
}

#[derive(Debug, Args)]
struct Many {
    /// How many seeds.
    #[arg(long, default_value_t = 20)]
    seeds: u64,
    /// The first of them.
    #[arg(long, default_value_t = 1)]
    from: u64,
    /// Go on until so many minutes have passed, however many seeds that takes.
    #[arg(long)]
    minutes: Option<u64>,
    /// Shrink what is found.
    #[arg(long)]
    shrink: bool,
}

/// Reads the command line and does what it says.
#[must_use]
pub fn main() -> ExitCode {
    catch_panics();
    let result = match Options::parse().verb {
        Verb::Run(one) => again(&one),
        Verb::Hunt(many) => hunt(&many),
        Verb::Bench(many) => bench::bench(&many),
        Verb::Stretch(few) => bench::stretch(&few),
        Verb::Shrink(less) => smaller(&less),
        #[cfg(holdfast_mutants)]
        Verb::Mutants(proof) => crate::mutants::prove(&proof),
        #[cfg(holdfast_mutants)]
        Verb::Mutant(hunt) => crate::mutants::hunt(&hunt),
    };
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("holdfast-sim: {error}");
            ExitCode::FAILURE
        }
    }
}

#[cfg(holdfast_mutants)]
fn choose(mutant: Option<&str>) {
    if let Some(mutant) = mutant {
        holdfast_locktable::mutants::choose(mutant);
    }
}

fn smaller(less: &Less) -> io::Result<bool> {
    #[cfg(holdfast_mutants)]
    choose(less.mutant.as_deref());
    let report = run(Plan::of(less.seed))?;
    show(&report);
    with_less(report, less.runs)
}

fn again(one: &One) -> io::Result<bool> {
    #[cfg(holdfast_mutants)]
    choose(one.mutant.as_deref());
    if one.trace {
        let filter = tracing_subscriber::EnvFilter::try_from_default_env().unwrap_or_else(|_| "info".into());
        tracing_subscriber::fmt().with_env_filter(filter).without_time().with_ansi(false).init();
    }
    let usual = Plan::of(one.seed);
    let storm_ms = one.storm_ms.unwrap_or(usual.storm_ms);
    let natives = one.natives.unwrap_or(usual.natives);
    let lapsers = one.lapsers.unwrap_or(usual.lapsers);
    let set = |numbers: &[u64]| numbers.iter().fold(Spared::default(), |set, number| set.with(*number));
    let (spared_faults, spared_clients) = (set(&one.without_faults), set(&one.without_clients));
    let plan = Plan { aloud: one.trace, network: one.network, storm_ms, natives, lapsers, ..usual };
    let report = run(Plan { spared_faults, spared_clients, ..plan })?;
    println!("seed {} digest {}", report.plan.seed, report.digest);
    show(&report);
    Ok(report.findings.is_empty())
}

fn hunt(many: &Many) -> io::Result<bool> {
    let (began, mut sum) = (Instant::now(), Sum::default());
    let limit = many.minutes.map(|minutes| Duration::from_secs(60 * minutes));
    let mut bad = None;
    for seed in many.from.. {
        let over = limit.map_or(sum.runs() >= many.seeds, |limit| began.elapsed() >= limit);
        if over || bad.is_some() {
            break;
        }
        let report = run(Plan::of(seed))?;
        sum.add(&Sum::of(&report));
        show(&report);
        bad = Some(report).filter(|report| !report.findings.is_empty());
    }
    sum.lines(began.elapsed()).iter().for_each(|line| println!("{line}"));
    match bad {
        None => Ok(true),
        Some(report) if many.shrink => with_less(report, SHRINK_RUNS),
        Some(_) => Ok(false),
    }
}

/// Shrinks a finding and shows what is left of it. Answers whether there was none.
fn with_less(report: Report, most: u32) -> io::Result<bool> {
    if report.findings.is_empty() {
        return Ok(true);
    }
    let (least, runs) = shrink(report, most, |smaller| println!("still so {}", left_out(&smaller.plan)))?;
    println!("after {runs} runs with less:");
    show(&least);
    Ok(false)
}

/// What a run does without, as the command line has it.
fn left_out(plan: &Plan) -> String {
    let list =
        |spared: Spared| spared.numbers().map(|number| number.to_string()).collect::<Vec<_>>().join(",");
    let mut text = String::new();
    for (option, spared) in
        [("--without-faults", plan.spared_faults), ("--without-clients", plan.spared_clients)]
    {
        if spared != Spared::default() {
            text += &format!(" {option} {}", list(spared));
        }
    }
    if plan.network != 0 {
        text += &format!(" --network {}", plan.network);
    }
    text.trim_start().to_owned()
}

/// One line for a good run; for one that found something what led to it, and how to see it again.
pub(crate) fn show(report: &Report) {
    if report.findings.is_empty() {
        println!(
            "seed {} is good: {} acquires, {} native grants, {} events, {} faults, {} parcels, {} states compared, {:.1} virtual seconds",
            report.plan.seed,
            report.acquires,
            report.native_grants,
            report.events,
            report.faults,
            report.parcels,
            report.compared,
            report.virtual_ms as f64 / 1_000.0
        );
        return;
    }
    println!("seed {} found {}:", report.plan.seed, report.findings.len());
    for finding in report.findings.iter().take(5) {
        println!("  {finding}");
    }
    if let Some(first) = report.findings.first() {
        println!("what led to it:");
        for line in around(report, first) {
            println!("  {line}");
        }
    }
    let (seed, less) = (report.plan.seed, left_out(&report.plan));
    if less.is_empty() {
        println!("see it again with: make sim-again SEED={seed}");
    } else {
        println!("see it again with: make sim-again SEED={seed} LESS='{less}'");
    }
}

/// The end of the event log that belongs to a finding: the faults, and what names the same lock or session.
fn around(report: &Report, finding: &Finding) -> Vec<String> {
    let words: Vec<&str> = (finding.sentence.split_whitespace())
        .filter(|word| word.len() >= 6 && word.chars().any(|c| c.is_ascii_digit()))
        .map(|word| word.trim_matches(|c: char| !c.is_alphanumeric()))
        .collect();
    let wanted = |line: &str| {
        line.contains("nemesis") || words.is_empty() || words.iter().any(|word| line.contains(word))
    };
    report.trace.before(finding.at_ms, SHOWN_LINES, wanted)
}

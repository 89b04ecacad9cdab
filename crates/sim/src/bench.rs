//! Thousands of seeds over all cores, whatever they find: how fast that went, what it covered, and which seeds found something.
//!
//! ```text
//!   bench ──► a thread per core ──► a process for each stretch of seeds ──► a line per seed ──► the sum
//! ```
//! Processes, because the tasks of a process are numbered together and a run depends on its numbers; and a run that never
//! ends, or takes its process with it, costs that one seed.

use std::{
    io::{self, BufRead, BufReader},
    ops::Range,
    process::{Command, Stdio},
    sync::atomic::{AtomicU64, Ordering},
    thread,
    time::Instant,
};

use clap::Args;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use crate::{command::show, plan::Plan, run::run, sum::Sum};

/// So many seeds a process runs.
const STRETCH: u64 = 20;
/// After so many seeds a line says how far it is.
const TOLD_EVERY: u64 = 100;
/// What a process prints before what a seed came to; all other lines are for people.
const SEED: &str = "seed\t";

/// Which seeds.
#[derive(Debug, Args)]
pub struct Bench {
    /// How many seeds.
    #[arg(long, default_value_t = 5_000)]
    seeds: u64,
    /// The first of them.
    #[arg(long, default_value_t = 1)]
    from: u64,
    /// How many processes at once; one per core where it is not said.
    #[arg(long)]
    jobs: Option<usize>,
}

/// The seeds of one process.
#[derive(Debug, Args)]
pub struct Stretch {
    /// How many seeds.
    #[arg(long)]
    seeds: u64,
    /// The first of them.
    #[arg(long)]
    from: u64,
}

/// What one seed came to, from process to process.
#[derive(Debug, Serialize, Deserialize)]
struct Outcome {
    sum: Sum,
    found: bool,
}

/// Runs some seeds and prints a line for each, for [`bench`] to read, behind what people read of a finding.
///
/// # Errors
/// As [`run`]: the process is of no more use then.
pub fn stretch(few: &Stretch) -> io::Result<bool> {
    for seed in few.from..few.from + few.seeds {
        let report = run(Plan::of(seed))?;
        let found = !report.findings.is_empty();
        if found {
            show(&report);
        }
        let outcome = Outcome { sum: Sum::of(&report), found };
        println!("{SEED}{}", serde_json::to_string(&outcome).map_err(io::Error::other)?);
    }
    Ok(true)
}

/// Runs all seeds and prints what they came to. Answers whether none found anything.
///
/// # Errors
/// When processes cannot be started.
pub fn bench(many: &Bench) -> io::Result<bool> {
    let jobs =
        many.jobs.map_or_else(|| thread::available_parallelism().map_or(1, usize::from), |jobs| jobs.max(1));
    let work = Work {
        next: AtomicU64::new(many.from),
        end: many.from + many.seeds,
        tally: Mutex::default(),
        began: Instant::now(),
    };
    thread::scope(|scope| {
        let hands: Vec<_> = (0..jobs).map(|_| scope.spawn(|| work.go())).collect();
        hands.into_iter().try_for_each(|hand| {
            hand.join().unwrap_or_else(|_| Err(io::Error::other("a thread of the bench panicked")))
        })
    })?;
    let Tally { sum, bad } = work.tally.into_inner();
    sum.lines(work.began.elapsed()).iter().for_each(|line| println!("{line}"));
    println!("{} seeds found something: {bad:?}", bad.len());
    Ok(bad.is_empty())
}

/// What came so far.
#[derive(Debug, Default)]
struct Tally {
    sum: Sum,
    bad: Vec<u64>,
}

struct Work {
    next: AtomicU64,
    end: u64,
    tally: Mutex<Tally>,
    began: Instant,
}

impl Work {
    /// Takes stretches until there are no more.
    fn go(&self) -> io::Result<()> {
        loop {
            let from = self.next.fetch_add(STRETCH, Ordering::Relaxed);
            if from >= self.end {
                return Ok(());
            }
            let mut left = from..self.end.min(from + STRETCH);
            // A process that ends early has fallen over its next seed.
            while !left.is_empty() {
                self.run(&mut left)?;
                if let Some(seed) = left.next() {
                    self.failed(seed);
                }
            }
        }
    }

    /// Runs seeds in a process of their own until it ends; leaves those that have not come to an end.
    fn run(&self, left: &mut Range<u64>) -> io::Result<()> {
        let (from, seeds) = (left.start.to_string(), (left.end - left.start).to_string());
        let mut process = Command::new(std::env::current_exe()?)
            .args(["stretch", "--from", &from, "--seeds", &seeds])
            .stdout(Stdio::piped())
            .spawn()?;
        let lines = process.stdout.take().map(|out| BufReader::new(out).lines()).into_iter().flatten();
        for line in lines {
            let line = line?;
            let outcome = line.strip_prefix(SEED).and_then(|text| serde_json::from_str(text).ok());
            match outcome {
                Some(outcome) => {
                    if let Some(seed) = left.next() {
                        self.ended(seed, &outcome);
                    }
                }
                None => println!("{line}"),
            }
        }
        process.wait().map(drop)
    }

    fn ended(&self, seed: u64, outcome: &Outcome) {
        let mut tally = self.tally.lock();
        tally.sum.add(&outcome.sum);
        if outcome.found {
            tally.bad.push(seed);
        }
        if tally.sum.runs().is_multiple_of(TOLD_EVERY) {
            let (runs, took, bad) = (tally.sum.runs(), self.began.elapsed().as_secs(), &tally.bad);
            println!("{runs} seeds in {took} s, found something: {bad:?}");
        }
    }

    fn failed(&self, seed: u64) {
        println!("seed {seed} took its process with it");
        self.tally.lock().bad.push(seed);
    }
}

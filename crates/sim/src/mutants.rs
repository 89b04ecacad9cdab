//! The proof that the checks can find something: faults put into the code by hand, each of which must be found.
//!
//! ```text
//!   prove ──► for each fault a process of its own ──► seeds one after the other until one finds something ──► the table
//! ```
//! Only in builds with `--cfg holdfast_mutants`. Knows no fault; `mutants.toml` lists them.

use std::{
    fmt::Write as _,
    io,
    path::PathBuf,
    process::{Command, Stdio},
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

use clap::Args;
use holdfast_locktable::mutants::choose;
use serde::Deserialize;

use crate::{plan::Plan, run::run};

/// What [`hunt`] prints before its findings, for [`prove`] to read.
const FOUND: &str = "found\t";
/// What it prints where there is none.
const SURVIVED: &str = "survived\t";

/// How the proof is run.
#[derive(Debug, Args)]
pub struct Proof {
    /// How many seeds each fault may take, from the first on.
    #[arg(long, default_value_t = 200)]
    seeds: u64,
    /// Only the faults whose name contains this.
    #[arg(long, default_value = "")]
    only: String,
    /// How many processes run at once.
    #[arg(long, default_value_t = 2)]
    jobs: usize,
    /// Where the table is written; nowhere where it is not said.
    #[arg(long)]
    table: Option<PathBuf>,
}

/// How one fault is hunted.
#[derive(Debug, Args)]
pub struct Hunt {
    /// The fault.
    #[arg(long)]
    name: String,
    /// How many seeds, from the first on.
    #[arg(long, default_value_t = 200)]
    seeds: u64,
    /// Only seeds that this number divides.
    #[arg(long, default_value_t = 1)]
    every: u64,
}

#[derive(Debug, Deserialize)]
struct List {
    mutant: Vec<Mutant>,
}

/// A fault as `mutants.toml` has it.
#[derive(Debug, Deserialize)]
struct Mutant {
    name: String,
    site: String,
    breaks: String,
    fault: String,
    /// It shows only in runs of seeds that this number divides.
    #[serde(default = "all")]
    every: u64,
}

const fn all() -> u64 {
    1
}

/// What became of a fault.
#[derive(Debug)]
enum End {
    Found { seeds: String, check: String, sentence: String },
    Survived,
}

/// Hunts one fault in this process and prints how that ended, in one line.
///
/// # Errors
/// When the system refuses a thread or a runtime.
pub fn hunt(hunt: &Hunt) -> io::Result<bool> {
    choose(&hunt.name);
    for tried in 1..=hunt.seeds {
        let (check, sentence) = match run(Plan::of(tried * hunt.every)) {
            Ok(report) => match report.findings.first() {
                Some(first) => (first.property.clone(), first.to_string()),
                None => continue,
            },
            Err(error) => ("the run itself".to_owned(), error.to_string()),
        };
        println!("{FOUND}{tried}\t{check}\t{}", sentence.replace(['\n', '\t'], " "));
        return Ok(true);
    }
    println!("{SURVIVED}{}", hunt.seeds);
    Ok(false)
}

/// Hunts every fault, each in a process of its own, and writes the table. Answers whether all were found.
///
/// # Errors
/// When the list cannot be read, a process does not start or dies, or the table cannot be written.
pub fn prove(proof: &Proof) -> io::Result<bool> {
    let list: List = toml::from_str(include_str!("../mutants.toml")).map_err(io::Error::other)?;
    let mutants: Vec<Mutant> =
        list.mutant.into_iter().filter(|mutant| mutant.name.contains(&proof.only)).collect();
    let ends: Vec<Mutex<Option<io::Result<End>>>> = mutants.iter().map(|_| Mutex::new(None)).collect();
    let next = AtomicUsize::new(0);
    let work = || {
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let (Some(mutant), Some(end)) = (mutants.get(at), ends.get(at)) else { return };
            let result = hunted(mutant, proof.seeds);
            println!("{:<34} {}", mutant.name, said(&result, proof.seeds));
            *end.lock().unwrap_or_else(PoisonError::into_inner) = Some(result);
        }
    };
    thread::scope(|scope| (0..proof.jobs.max(1)).for_each(|_| drop(scope.spawn(work))));
    let mut rows = Vec::new();
    for (mutant, end) in mutants.iter().zip(ends) {
        let end = end.into_inner().unwrap_or_else(PoisonError::into_inner);
        rows.push((mutant, end.ok_or_else(|| io::Error::other("a fault was not hunted"))??));
    }
    if let Some(path) = &proof.table {
        std::fs::write(path, table(&rows, proof.seeds))?;
    }
    let survivors = rows.iter().filter(|(_, end)| matches!(end, End::Survived)).count();
    println!("{} faults, {survivors} not found", rows.len());
    Ok(survivors == 0)
}

fn hunted(mutant: &Mutant, seeds: u64) -> io::Result<End> {
    let output = Command::new(std::env::current_exe()?)
        .args(["mutant", "--name", &mutant.name])
        .args(["--seeds", &seeds.to_string(), "--every", &mutant.every.to_string()])
        .stderr(Stdio::null())
        .output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let line = text.lines().last().unwrap_or_default();
    if line.starts_with(SURVIVED) {
        return Ok(End::Survived);
    }
    let mut parts = line.strip_prefix(FOUND).unwrap_or_default().splitn(3, '\t').map(str::to_owned);
    match (parts.next(), parts.next(), parts.next()) {
        (Some(seeds), Some(check), Some(sentence)) => Ok(End::Found { seeds, check, sentence }),
        _ => Err(io::Error::other(format!("{}: the hunt ended with {}", mutant.name, output.status))),
    }
}

fn said(result: &io::Result<End>, seeds: u64) -> String {
    match result {
        Ok(End::Found { seeds, sentence, .. }) => format!("found with {seeds} seeds: {sentence}"),
        Ok(End::Survived) => format!("NOT found in {seeds} seeds"),
        Err(error) => format!("NOT hunted: {error}"),
    }
}

/// The table as it stands in the documentation.
fn table(rows: &[(&Mutant, End)], seeds: u64) -> String {
    let mut text = include_str!("../mutants/table.md").to_owned();
    for (mutant, end) in rows {
        let (check, took) = match end {
            End::Found { seeds, check, .. } => (check.as_str(), seeds.as_str()),
            End::Survived => ("**nothing**", "**survives**"),
        };
        let Mutant { name, site, breaks, fault, every } = mutant;
        let took = if *every == 1 { took.to_owned() } else { format!("{took} (even)") };
        // Writing to a string does not fail.
        let _ = writeln!(text, "| `{name}` | {fault} | `{site}` | {breaks} | {check} | {took} |");
    }
    let survivors = rows.iter().filter(|(_, end)| matches!(end, End::Survived)).count();
    let _ = writeln!(text, "\n{} faults, {survivors} not found within {seeds} seeds.", rows.len());
    text
}

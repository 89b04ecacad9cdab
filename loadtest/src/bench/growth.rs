//! `growth`: a local cluster under load for a long time; do its data folder and its memory stay as large as they are?
//!
//! Each stretch of time is a run of its own with new sessions and new names, so that what is kept of old ones adds up where
//! it is kept for too long.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use clap::Args;
use comfy_table::{Table, presets};
use serde::Serialize;
use tokio::{sync::watch, task::AbortHandle, time::interval};

use super::{
    flat::{Course, FEWEST_LOOKS, Look, Trend},
    holdfast_beside,
    service::{Places, Running, Service},
};
use crate::{
    cli::{Output, some_seconds},
    cpu,
    failure::Failure,
    interrupt, output,
    run::{self, RunArgs, Scenario},
};

const MIB: u64 = 1 << 20;
/// More data than before by so much is no growth.
const DATA_SLACK: u64 = 4 * MIB;
/// More memory than before by so much is no growth: allocators keep some.
const MEMORY_SLACK: u64 = 32 * MIB;
/// How often the largest sizes are looked for.
const LOOK_EVERY: Duration = Duration::from_secs(1);
const LONGEST_MINUTES: f64 = 1_440.0;

const HELP: &str = "\
Starts three members on loopback, loads them without end, and tells the largest data folder and memory of each stretch. The
first third of the time is warm-up; the last third is compared with the middle one. Settings of the members come from the
environment, for example HOLDFAST__RAFT__SNAPSHOT_ENTRIES=2000 for a log that is shortened often.

Exit codes: 0 flat, 1 growing, a broken promise or a failed run, 2 wrong usage.";

/// Load a local cluster for long, and see whether its data and memory grow
#[derive(Clone, Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct GrowthArgs {
    /// How long, in minutes
    #[arg(long, value_name = "M", default_value = "30", value_parser = minutes)]
    minutes: Duration,
    /// How long each stretch is
    #[arg(long, value_name = "S", default_value = "60", value_parser = some_seconds)]
    every: Duration,
    /// How many clients
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    clients: u32,
    /// How many lock groups
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=32))]
    groups: u16,
    /// The command holdfast; the one beside this program unless told otherwise
    #[arg(long, value_name = "PATH")]
    holdfast: Option<PathBuf>,
    /// Folder for all data; its folder `now` is emptied
    #[arg(long, value_name = "FOLDER", default_value = "target/growth")]
    dir: PathBuf,
    /// First of the hundred ports that are used
    #[arg(long, value_name = "PORT", default_value_t = 27_700, value_parser = clap::value_parser!(u16).range(1_024..=65_000))]
    base_port: u16,
    /// How the result is told on standard output
    #[arg(short, long, value_enum, default_value_t = Output::Table)]
    output: Output,
}

/// What it came to.
#[derive(Debug, Serialize)]
struct Growth {
    looks: Vec<Look>,
    data: Course,
    memory: Course,
    errors: u64,
    violations: u64,
}

/// Runs the verb.
pub(crate) async fn run(args: GrowthArgs) -> Result<(), Failure> {
    let stretches = (args.minutes.as_secs_f64() / args.every.as_secs_f64()) as usize;
    if stretches < FEWEST_LOOKS {
        return Err(Failure::Usage(format!(
            "{stretches} stretches of time cannot be judged; give more --minutes or a shorter --every, at least {FEWEST_LOOKS}"
        )));
    }
    let mut interrupted = interrupt::catch()?;
    let places = Places {
        holdfast: holdfast_beside(args.holdfast.as_deref())?,
        etcd: PathBuf::new(),
        redis: PathBuf::new(),
        data: std::path::absolute(&args.dir).unwrap_or_else(|_| args.dir.clone()),
        base_port: args.base_port,
    };
    let running = Running::start(Service::Holdfast(args.groups), &places).await?;
    let result = watch_growth(&args, stretches, &running, &mut interrupted).await;
    running.stop().await;
    let growth = result?;
    match args.output {
        Output::Json => output::json(&growth)?,
        Output::Table => output::text(&growth.table())?,
    }
    growth.verdict()
}

async fn watch_growth(
    args: &GrowthArgs,
    stretches: usize,
    running: &Running,
    interrupted: &mut watch::Receiver<bool>,
) -> Result<Growth, Failure> {
    let begin = Instant::now();
    let (mut looks, mut errors, mut violations) = (Vec::with_capacity(stretches), 0, 0);
    for _ in 0..stretches {
        let largest = Largest::watch(running);
        let result = run::measure(&args.stretch(running), interrupted).await?;
        if *interrupted.borrow() {
            return Err(Failure::Other("interrupted; everything that was started is ended".into()));
        }
        for text in result.violation_texts.iter().chain(result.error_texts.keys()) {
            eprintln!("  {text}");
        }
        errors += result.errors;
        violations += result.violations;
        let look = Look {
            at_s: begin.elapsed().as_secs(),
            cycles: result.cycles,
            data_bytes: largest.data.load(Ordering::Relaxed),
            memory_bytes: largest.memory.load(Ordering::Relaxed),
        };
        eprintln!("{}", look.line());
        looks.push(look);
    }
    let data = Course::new(&looks, |look| look.data_bytes, DATA_SLACK);
    let memory = Course::new(&looks, |look| look.memory_bytes, MEMORY_SLACK);
    Ok(Growth { looks, data, memory, errors, violations })
}

impl GrowthArgs {
    /// One stretch of the load.
    fn stretch(&self, running: &Running) -> RunArgs {
        RunArgs {
            shape: Some(Scenario::Spread),
            scenario: None,
            target: Service::Holdfast(self.groups).target(),
            endpoints: running.endpoints.clone(),
            clients: Some(self.clients),
            seconds: self.every,
            warmup: Duration::ZERO,
            connections: None,
            hold: 0,
            ttl: 10,
            output: self.output,
            announce: false,
        }
    }
}

/// The largest sizes since its begin; looks until it is dropped.
#[derive(Debug)]
struct Largest {
    data: Arc<AtomicU64>,
    memory: Arc<AtomicU64>,
    looking: AbortHandle,
}

impl Largest {
    fn watch(running: &Running) -> Self {
        let (data, memory) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
        let (folder, pids) = (running.folder().to_owned(), running.pids());
        let (to_data, to_memory) = (data.clone(), memory.clone());
        let looking = tokio::spawn(async move {
            let mut ticks = interval(LOOK_EVERY);
            loop {
                ticks.tick().await;
                to_data.fetch_max(size(&folder).unwrap_or(0), Ordering::Relaxed);
                let members = pids.iter().flat_map(|pid| cpu::children(*pid));
                to_memory.fetch_max(members.filter_map(resident).sum(), Ordering::Relaxed);
            }
        });
        Self { data, memory, looking: looking.abort_handle() }
    }
}

impl Drop for Largest {
    fn drop(&mut self) {
        self.looking.abort();
    }
}

/// Bytes of all files below a folder; those that go away meanwhile count nothing.
fn size(folder: &Path) -> io::Result<u64> {
    let mut total = 0;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        total += match entry.file_type() {
            Ok(kind) if kind.is_dir() => size(&entry.path()).unwrap_or(0),
            _ => entry.metadata().map_or(0, |metadata| metadata.len()),
        };
    }
    Ok(total)
}

/// Physical memory of a process, bytes.
fn resident(pid: u32) -> Option<u64> {
    resident_in(&fs::read_to_string(format!("/proc/{pid}/status")).ok()?)
}

fn resident_in(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1_024)
}

/// Reads whole or decimal minutes.
fn minutes(text: &str) -> Result<Duration, String> {
    let number: f64 = text.parse().map_err(|_| "write a number of minutes, like 30 or 0.5".to_owned())?;
    if number > 0.0 && number <= LONGEST_MINUTES {
        Ok(Duration::from_secs_f64(number * 60.0))
    } else {
        Err(format!("more than 0 minutes, up to {LONGEST_MINUTES}"))
    }
}

fn mib(bytes: u64) -> f64 {
    bytes as f64 / MIB as f64
}

impl Look {
    fn line(&self) -> String {
        format!(
            "after {} s: {} cycles, data {:.1} MiB, memory {:.1} MiB",
            self.at_s,
            self.cycles,
            mib(self.data_bytes),
            mib(self.memory_bytes)
        )
    }
}

impl Growth {
    fn table(&self) -> String {
        let mut table = Table::new();
        table.load_preset(presets::UTF8_FULL_CONDENSED);
        table.set_header(["after s", "cycles", "data MiB", "memory MiB"]);
        for look in &self.looks {
            let (data, memory) = (mib(look.data_bytes), mib(look.memory_bytes));
            table.add_row([
                look.at_s.to_string(),
                look.cycles.to_string(),
                format!("{data:.1}"),
                format!("{memory:.1}"),
            ]);
        }
        format!("{table}\n{}\n{}", told("data", &self.data), told("memory", &self.memory))
    }

    fn verdict(&self) -> Result<(), Failure> {
        if self.violations > 0 {
            return Err(Failure::Violations(self.violations));
        }
        if self.looks.iter().all(|look| look.cycles == 0) {
            return Err(Failure::Other(
                "not one lock was acquired and released; see the errors above".into(),
            ));
        }
        if self.looks.iter().any(|look| look.data_bytes == 0 || look.memory_bytes == 0) {
            return Err(Failure::Other(
                "in one stretch of time the data folder or the processes could not be looked at; see whether the members still run"
                    .into(),
            ));
        }
        let growing: Vec<String> = [("data", &self.data), ("memory", &self.memory)]
            .into_iter()
            .filter(|(_, course)| course.trend == Trend::Growing)
            .map(|(name, course)| told(name, course))
            .collect();
        if growing.is_empty() { Ok(()) } else { Err(Failure::Other(growing.join("; "))) }
    }
}

fn told(name: &str, course: &Course) -> String {
    let (middle, last) = (mib(course.middle_bytes), mib(course.last_bytes));
    let trend = match course.trend {
        Trend::Flat => "flat",
        Trend::Growing => "growing",
    };
    format!("{name}: {trend}, {middle:.1} MiB in the middle third, {last:.1} MiB in the last")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_size_of_a_folder_counts_all_that_is_in_it() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("a/b")).unwrap();
        fs::write(folder.path().join("one"), [0; 10]).unwrap();
        fs::write(folder.path().join("a/b/two"), [0; 7]).unwrap();
        assert_eq!(size(folder.path()).unwrap(), 17);
        size(&folder.path().join("none")).unwrap_err();
    }

    #[test]
    fn resident_memory_is_found() {
        assert_eq!(resident_in("Name:\tx\nVmRSS:\t    12 kB\nThreads: 3\n"), Some(12_288));
        assert_eq!(resident_in("Name:\tx\n"), None);
        assert!(resident(std::process::id()).unwrap() > 0);
    }

    #[test]
    fn minutes_are_more_than_none() {
        assert_eq!(minutes("0.5"), Ok(Duration::from_secs(30)));
        for bad in ["0", "-1", "NaN", "1441", "long"] {
            assert!(minutes(bad).is_err(), "{bad}");
        }
    }
}

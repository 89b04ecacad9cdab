//! `cost`: what the online checks cost per event, since they run beside what is measured. Measures no service.

use std::{sync::Arc, thread, time::Duration};

use clap::Args;
use holdfast_history::{End, Limits, Wait};
use serde::Serialize;

use crate::{
    cli::Output,
    clock::now,
    cpu,
    failure::Failure,
    output,
    recorder::{Recorder, Witness},
};

/// What is recorded of a cycle: acquire sent, acquire ended, release sent.
const EVENTS: u64 = 3;
const TTL: Duration = Duration::from_secs(3_600);

/// Measure what judging costs
#[derive(Clone, Debug, Args)]
pub(crate) struct CostArgs {
    /// How many threads record at once
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=64))]
    threads: u32,
    /// How many clients each thread plays, with a lock each
    #[arg(long, value_name = "N", default_value_t = 128, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    clients: u32,
    /// How many cycles each client makes
    #[arg(long, value_name = "N", default_value_t = 5_000, value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    cycles: u64,
    /// How the result is told
    #[arg(short, long, value_enum, default_value_t = Output::Table)]
    output: Output,
}

/// What judging costs.
#[derive(Clone, Copy, Debug, Serialize)]
struct Cost {
    threads: u32,
    events: u64,
    /// CPU nanoseconds for one event, reading the clock included.
    nanos_per_event: f64,
}

/// Runs the verb.
pub(crate) fn run(args: &CostArgs) -> Result<(), Failure> {
    let recorder = Recorder::new(Limits::default());
    // CPU time, not time: other processes may be busy too.
    let before = cpu::own();
    let mut workers = Vec::new();
    for thread in 0..args.threads {
        let (recorder, args) = (recorder.clone(), args.clone());
        workers.push(thread::spawn(move || play(&recorder, thread, &args)));
    }
    for worker in workers {
        worker.join().map_err(|_| Failure::Other("a thread broke off".into()))?;
    }
    let busy = cpu::own() - before;
    recorder.finish();
    if recorder.violation_count() > 0 {
        return Err(Failure::Violations(recorder.violation_count()));
    }
    let events = u64::from(args.threads) * u64::from(args.clients) * args.cycles * EVENTS;
    let cost =
        Cost { threads: args.threads, events, nanos_per_event: busy.as_nanos() as f64 / events as f64 };
    match args.output {
        Output::Json => output::json(&cost),
        Output::Table => output::text(&format!(
            "{:.0} ns per event, clock included ({} events, {} threads)",
            cost.nanos_per_event, cost.events, cost.threads
        )),
    }
}

/// Plays the clients of one thread.
fn play(recorder: &Arc<Recorder>, thread: u32, args: &CostArgs) {
    let clients: Vec<(Witness, Arc<str>)> = (0..args.clients)
        .map(|client| {
            let number = thread * args.clients + client;
            let session = u64::from(number) + 1;
            let witness = Witness::new(recorder.clone(), number, session, TTL, now());
            (witness, Arc::from(format!("load-00000000-{number}/lock")))
        })
        .collect();
    for cycle in 1..=args.cycles {
        for (witness, lock) in &clients {
            let call = witness.acquire_sent(now(), lock, Wait::Unlimited);
            witness.acquire_ended(now(), call, lock, End::Granted(cycle));
            witness.release_sent(now(), lock, cycle);
        }
    }
}

//! Fixed seeds find nothing, and a seed gives the same run again in another process.
#![cfg(tokio_unstable)]
#![allow(clippy::unwrap_used)]

use std::{collections::BTreeSet, process::Command};

use holdfast_sim::{
    plan::Plan,
    run::{catch_panics, run},
};
use serde::Deserialize;

#[derive(Debug, Deserialize)]
struct Seeds {
    fixed: Vec<u64>,
    #[serde(default)]
    found: Vec<Found>,
}

#[derive(Debug, Deserialize)]
struct Found {
    seed: u64,
    what: String,
    /// How many processes with the product's own client the run had when it found that; as many as now where it is not said.
    natives: Option<u32>,
    /// How many clients that fall silent; the same.
    lapsers: Option<u32>,
}

fn seeds() -> Seeds {
    toml::from_str(include_str!("../seeds.toml")).unwrap()
}

#[test]
fn fixed_seeds_find_nothing() {
    catch_panics();
    for seed in seeds().fixed {
        assert_good(Plan::of(seed), "found for the first time");
    }
}

#[test]
fn what_was_found_once_is_not_found_again() {
    catch_panics();
    for Found { seed, what, natives, lapsers } in seeds().found {
        let plan = Plan::of(seed);
        let (natives, lapsers) = (natives.unwrap_or(plan.natives), lapsers.unwrap_or(plan.lapsers));
        assert_good(Plan { natives, lapsers, ..plan }, &what);
    }
}

#[track_caller]
fn assert_good(plan: Plan, what: &str) {
    let (seed, report) = (plan.seed, run(plan).unwrap());
    let findings: Vec<String> = report.findings.iter().map(ToString::to_string).collect();
    assert!(
        findings.is_empty(),
        "seed {seed} ({what}), see it with `make sim-again SEED={seed}`: {findings:#?}"
    );
    assert!(report.acquires > 20 && report.compared > 20, "seed {seed} did next to nothing: {report:?}");
}

/// The digest of a short run, made by a process of its own.
fn digest(seed: u64) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_holdfast-sim"))
        .args(["run", "--storm-ms", "3000", "--seed", &seed.to_string()])
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let digest = text.lines().next().and_then(|line| line.split(" digest ").nth(1));
    digest.unwrap_or_else(|| panic!("seed {seed} said {text:?}")).to_owned()
}

fn each_gives_one_run(seeds: impl Iterator<Item = u64>) {
    let mut all = BTreeSet::new();
    for seed in seeds {
        let first = digest(seed);
        assert_eq!(first, digest(seed), "seed {seed}");
        assert!(all.insert(first), "seed {seed} gives the run of another one");
    }
}

#[test]
fn a_seed_gives_one_run_in_every_process() {
    each_gives_one_run(101..=110);
}

#[test]
fn a_seed_gives_the_same_run_behind_others() {
    catch_panics();
    for seed in 121..=126 {
        let report = run(Plan { storm_ms: 3_000, ..Plan::of(seed) }).unwrap();
        assert_eq!(report.digest, digest(seed), "seed {seed}");
    }
}

#[test]
fn another_seed_gives_another_run() {
    each_gives_one_run(111..=120);
}

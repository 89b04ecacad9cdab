//! The law of restores: whatever happened before and after the snapshots, every token of the new cluster is above every one of
//! the lost one, for every name; nobody holds anything at first, and no lock is in two groups or in none. Random locks, sessions
//! and moves on the states themselves; each group's snapshot is taken at a moment of its own.

mod world;

use std::env;

use rand::{SeedableRng as _, rngs::StdRng};

use self::world::World;
use super::*;

/// Clusters that are lost and restored, one after the other, in one run.
const GENERATIONS: u64 = 3;

#[test]
fn tokens_of_a_restored_cluster_are_above_all_that_were_handed_out() {
    let runs = match env::var_os("HOLDFAST_SOAK") {
        Some(_) => 2_000,
        None => 50,
    };
    let mut refused = 0;
    for seed in 0..runs {
        refused += run(seed);
    }
    assert!(refused < runs * GENERATIONS, "hardly anything was restored: {refused} refusals");
}

/// Answers how often snapshots that were taken in the middle of a move did not fit together.
fn run(seed: u64) -> u64 {
    let mut world = World::new(StdRng::seed_from_u64(seed), cluster(3));
    let mut refused = 0;
    for generation in 1..=GENERATIONS {
        let context = || format!("seed {seed}, generation {generation}");
        world.live(120);
        let rebuilt = loop {
            let found = world.snapshots();
            let lost = lost();
            let into = Plan { incarnation: generation, grants: Grants::AtOnce, ..plan(&lost) };
            match rebuild(&found, &into) {
                Ok(rebuilt) => break rebuilt,
                Err(RebuildError::Refused(
                    RestoreRefusal::Undecided { .. } | RestoreRefusal::OtherMap { .. },
                )) => refused += 1,
                Err(error) => panic!("{}: {error}", context()),
            }
        };
        world.live(120);
        world.become_of(&rebuilt);
        world.check_free(&context());
        world.check_settings(&context());
        world.hold_everything(&context());
    }
    refused
}

//! The product's own client in the simulation: that it does its work there, and that what it believes is looked at.

use holdfast_sim::{
    check::Findings,
    nemesis::Spared,
    plan::{OTHERS, Plan},
    run::run,
};

/// A run with the product's own client and nobody else.
fn alone(seed: u64, calm: bool) -> Plan {
    let plan = Plan { natives: 1, lapsers: 0, calm, storm_ms: 5_000, ..Plan::of(seed) };
    let others = (0..plan.clients + OTHERS).map(u64::from);
    Plan { spared_clients: others.fold(Spared::default(), Spared::with), ..plan }
}

#[test]
fn it_is_granted_locks_and_gives_them_back_over_its_own_protocol() {
    let report = run(alone(1, true)).unwrap();
    assert_eq!(report.findings, Findings::default().all());
    assert!(report.native_grants > 5, "{} grants", report.native_grants);
    assert!(report.acquires > report.native_grants / 2, "{} acquires", report.acquires);
}

#[test]
fn one_run_per_seed_with_faults_too() {
    let runs = [run(alone(2, false)).unwrap(), run(alone(2, false)).unwrap()];
    assert_eq!(runs[0].digest, runs[1].digest);
    assert!(runs[0].native_grants > 0);
}

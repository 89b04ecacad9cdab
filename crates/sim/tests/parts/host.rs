//! A simulated process: its time and its end.

use std::{cell::Cell, rc::Rc, time::Duration};

use holdfast_sim::host::Host;

#[test]
fn time_passes_only_while_the_process_runs() {
    let host = Host::start(1).unwrap();
    let rang = Rc::new(Cell::new(0));
    let bell = rang.clone();
    host.spawn(async move {
        let mut hours = tokio::time::interval(Duration::from_millis(10));
        loop {
            hours.tick().await;
            bell.set(bell.get() + 1);
        }
    });
    for _ in 0..35 {
        host.run(1);
    }
    assert_eq!(rang.get(), 4, "at 0, 10, 20 and 30 ms");
    host.skip(1_000);
    host.run(1);
    assert!(rang.get() >= 5, "what was due meanwhile happens at once");
}

#[test]
fn a_crash_ends_every_task_where_it_stands() {
    let host = Host::start(1).unwrap();
    let alive = Rc::new(());
    let held = alive.clone();
    host.spawn(async move {
        std::future::pending::<()>().await;
        drop(held);
    });
    host.run(1);
    drop(host);
    assert_eq!(Rc::strong_count(&alive), 1);
}

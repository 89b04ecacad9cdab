//! Clocks and chance.

use holdfast_sim::{entropy::seed_this_thread, time::MemberClock};
use rand::{TryRngCore, rngs::OsRng};

fn drawn(seed: u64) -> (u64, u64) {
    let thread = std::thread::spawn(move || {
        seed_this_thread(seed);
        (rand::random(), rand::random())
    });
    thread.join().unwrap()
}

#[test]
fn a_seed_gives_the_same_randomness_again() {
    assert_eq!(drawn(1), drawn(1));
    assert_ne!(drawn(1), drawn(2));
    let (first, second) = drawn(1);
    assert_ne!(first, second);
}

#[test]
fn a_thread_without_seed_has_no_randomness() {
    let thread = std::thread::spawn(|| OsRng.try_next_u64());
    assert!(thread.join().unwrap().is_err());
}

#[test]
fn a_fast_clock_gains_what_it_should() {
    let mut fast = MemberClock::new(100);
    let up = fast.clock().now().0;
    let passed: u64 = (0..20_000).map(|_| fast.step()).sum();
    assert_eq!(passed, 20_002);
    assert_eq!(fast.clock().now().0, up + 20_002);
}

#[test]
fn a_wall_clock_that_is_set_leaves_deadlines_alone() {
    let clock = MemberClock::new(0);
    let before = (clock.clock().now(), clock.clock().wall_ms());
    clock.step_wall(-3_600_000);
    assert_eq!((clock.clock().now(), clock.clock().wall_ms()), (before.0, before.1 - 3_600_000));
}

//! Disk and clock faults bite real processes, and stop biting.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::{
    path::Path,
    process::{Command, Output},
    time::{Duration, Instant},
};

use holdfast_faults::{Shim, Switch};
use nix::errno::Errno;
use tempfile::TempDir;

/// Copies a few bytes to a file and syncs it.
fn copy(shim: &Shim, folder: &Path) -> (Output, Duration, Switch) {
    let mut dd = Command::new("dd");
    dd.args(["if=/dev/zero", "bs=10", "count=1", "conv=fsync"]);
    dd.arg(format!("of={}", folder.join("copy").display())).env("LC_ALL", "C");
    let switch = shim.load(&mut dd, &folder.join("control")).unwrap();
    let began = Instant::now();
    (dd.output().unwrap(), began.elapsed(), switch)
}

#[test]
fn syncs_are_slow_or_fail_and_writes_find_the_disk_full() {
    let folder = TempDir::new().unwrap();
    let shim = Shim::compile(folder.path()).unwrap();
    let (well, _, switch) = copy(&shim, folder.path());
    assert!(well.status.success());
    assert_eq!((switch.syncs().unwrap(), switch.bitten().unwrap()), (1, 0), "the shim is in the way");

    switch.delay_syncs(Duration::from_millis(300)).unwrap();
    let (slow, took, _) = copy(&shim, folder.path());
    assert!(slow.status.success() && took >= Duration::from_millis(300), "{took:?}");

    switch.heal().unwrap();
    switch.fail_syncs(Errno::EIO).unwrap();
    let (failed, ..) = copy(&shim, folder.path());
    assert!(!failed.status.success());
    assert!(String::from_utf8_lossy(&failed.stderr).contains("Input/output error"));

    switch.heal().unwrap();
    switch.fail_writes(Errno::ENOSPC).unwrap();
    let (full, ..) = copy(&shim, folder.path());
    assert!(String::from_utf8_lossy(&full.stderr).contains("No space left"), "{full:?}");

    switch.heal().unwrap();
    assert!(copy(&shim, folder.path()).0.status.success());
    assert_eq!(switch.bitten().unwrap(), 3);
}

#[test]
fn the_wall_clock_steps_and_lengths_stay() {
    let folder = TempDir::new().unwrap();
    let mut python = Command::new("python3");
    let script = "import time\n\
                  g = time.clock_gettime\n\
                  clocks = (time.CLOCK_REALTIME, time.CLOCK_MONOTONIC, time.CLOCK_BOOTTIME)\n\
                  print(*[int(g(c)) for c in clocks], int(time.time()))";
    python.args(["-c", script]);
    let read = |command: &mut Command| -> Vec<i64> {
        let output = command.output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        text.split_whitespace().map(|word| word.parse().unwrap()).collect()
    };
    let real = read(&mut python);
    let shim = Shim::compile(folder.path()).unwrap();
    let switch = shim.load(&mut python, &folder.path().join("control")).unwrap();
    for offset in [0, 3_600, -3_600, 86_400] {
        switch.step_clock(offset).unwrap();
        let faked = read(&mut python);
        assert!((faked[0] - real[0] - i64::from(offset)).abs() < 60, "{offset}: {real:?} {faked:?}");
        assert!((faked[3] - faked[0]).abs() < 60, "{faked:?}");
        assert!((1..3).all(|clock| (faked[clock] - real[clock]).abs() < 60), "{real:?} {faked:?}");
    }
}

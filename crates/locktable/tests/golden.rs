//! The bytes of every command and of a snapshot, as they were first written. They may never change: logs and snapshots of
//! older members hold them.
//!
//! A new command variant goes to the end of the enum and gets a line of its own: run with `HOLDFAST_BLESS=1` and check
//! that only lines were added.
#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "golden/samples.rs"]
mod samples;

use std::{collections::BTreeSet, env, fmt::Write, fs, path::PathBuf};

use holdfast_locktable::{
    codec::{decode_proposal, encode_proposal},
    table::LockTable,
};

const ADVICE: &str = "The bytes of a stored format have changed. Members that run the present version could not read \
what this one writes, or this one not what they wrote. Put new variants and fields at the end of enums, raise the \
version byte for anything else, and keep reading the old version.";

fn stored(file: &str, now: &str) -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(file);
    if env::var_os("HOLDFAST_BLESS").is_some() {
        fs::write(&path, now).unwrap();
    }
    fs::read_to_string(path).unwrap()
}

#[test]
fn commands_have_the_bytes_they_always_had() {
    let mut now = String::new();
    for (name, proposal) in samples::proposals() {
        writeln!(now, "{name} {}", hex(&encode_proposal(&proposal))).unwrap();
    }
    let stored = stored("commands.txt", &now);
    for (now, stored) in now.lines().zip(stored.lines()) {
        assert_eq!(now, stored, "{ADVICE}");
    }
    assert_eq!(now.lines().count(), stored.lines().count(), "a sample came or went");
}

#[test]
fn stored_commands_are_read() {
    let stored =
        fs::read_to_string(PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden/commands.txt"));
    for (line, (name, proposal)) in stored.unwrap().lines().zip(samples::proposals()) {
        let bytes = unhex(line.split_once(' ').unwrap().1);
        assert_eq!(decode_proposal(&bytes), Ok(proposal), "{name}: {ADVICE}");
    }
}

#[test]
fn every_command_has_a_sample() {
    // The command's variant is the first number behind version and time, which is 1 in all samples.
    let variants: BTreeSet<u8> =
        samples::proposals().iter().map(|(_, proposal)| encode_proposal(proposal)[2]).collect();
    let named: BTreeSet<&str> =
        samples::proposals().iter().map(|(_, proposal)| samples::variant(&proposal.command)).collect();
    assert_eq!(variants, (0..samples::VARIANTS).collect());
    assert_eq!(named.len(), usize::from(samples::VARIANTS));
}

#[test]
fn a_snapshot_has_the_bytes_it_always_had() {
    let table = samples::table();
    let now = wrapped(&hex(&table.encode()));
    let stored = stored("snapshot-5.txt", &now);
    assert!(now == stored, "{ADVICE}\nnow:\n{now}\nstored:\n{stored}");
    let bytes = unhex(&stored.lines().collect::<String>());
    assert_eq!(LockTable::decode(&bytes).as_ref(), Ok(&table), "{ADVICE}");
}

#[test]
fn a_snapshot_of_version_4_is_read() {
    let bytes = unhex(&include_str!("golden/snapshot-4.txt").lines().collect::<String>());
    assert_eq!(bytes[0], 4);
    assert_eq!(LockTable::decode(&bytes).as_ref(), Ok(&samples::fourth_table()), "{ADVICE}");
}

#[test]
fn a_snapshot_of_version_3_is_read() {
    let bytes = unhex(&include_str!("golden/snapshot-3.txt").lines().collect::<String>());
    assert_eq!(bytes[0], 3);
    assert_eq!(LockTable::decode(&bytes).as_ref(), Ok(&samples::third_table()), "{ADVICE}");
}

#[test]
fn a_snapshot_of_version_2_is_read() {
    let bytes = unhex(&include_str!("golden/snapshot-2.txt").lines().collect::<String>());
    assert_eq!(bytes[0], 2);
    assert_eq!(LockTable::decode(&bytes).as_ref(), Ok(&samples::second_table()), "{ADVICE}");
}

#[test]
fn a_snapshot_of_version_1_is_read() {
    let bytes = unhex(&include_str!("golden/snapshot.txt").lines().collect::<String>());
    assert_eq!(bytes[0], 1);
    assert_eq!(LockTable::decode(&bytes).as_ref(), Ok(&samples::first_table()), "{ADVICE}");
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(text: &str) -> Vec<u8> {
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap()).collect()
}

fn wrapped(hex: &str) -> String {
    let lines: Vec<&str> = (0..hex.len()).step_by(64).map(|at| &hex[at..hex.len().min(at + 64)]).collect();
    lines.join("\n") + "\n"
}

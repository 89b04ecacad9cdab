//! The bounds of a member's configuration and the relations between its settings.
//!
//! Collects every fault instead of stopping at the first. Reads no files, opens no sockets.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::SocketAddr,
    time::Duration,
};

use super::{DEFAULT_REPLICAS, Fault, MAX_LOCK_GROUPS, MemberConfig, MemberEntry, snapshots};
use crate::endpoint::types::DEFAULT_TTL_MS;

/// Below this a loaded machine elects all the time.
const SHORTEST_HEARTBEAT: Duration = Duration::from_millis(10);
/// Above this a fail-over takes longer than anybody waits.
const LONGEST_ELECTION: Duration = Duration::from_secs(60);
/// Fewer would be worked on all the time, and applies that are queued need some.
const FEWEST_ENTRIES: u64 = 1_000;
/// More fill the disk.
const MOST_ENTRIES: u64 = 10_000_000;
const LONGEST_CLUSTER_NAME: usize = 64;
/// Names of hosts have at most 253 characters.
const LONGEST_ADDRESS: usize = 300;

pub(super) fn validate(config: &MemberConfig) -> Vec<Fault> {
    let mut faults = Vec::new();
    identity(config, &mut faults);
    listen(config, &mut faults);
    members(config, &mut faults);
    groups(config, &mut faults);
    raft(config, &mut faults);
    log_length(config, &mut faults);
    snapshots::validate(config, &mut faults);
    faults
}

fn identity(config: &MemberConfig, faults: &mut Vec<Fault>) {
    let name = &config.cluster;
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '_' | '.');
    if name.is_empty() || name.len() > LONGEST_CLUSTER_NAME || !name.chars().all(plain) {
        faults.push(Fault::error(
            "cluster",
            format!(
                "{name:?} is no cluster name; use 1 to {LONGEST_CLUSTER_NAME} of a-z, 0-9, '-', '_' and '.'"
            ),
        ));
    }
    if config.member == 0 {
        faults.push(Fault::error(
            "member",
            "not set; give this member's id, a number from 1 that stands in members",
        ));
    } else if !config.members.is_empty() && config.this_member().is_none() {
        let known: Vec<String> = config.members.iter().map(|m| m.id.to_string()).collect();
        faults.push(Fault::error(
            "member",
            format!("{} is not among members (they have the ids {})", config.member, known.join(", ")),
        ));
    }
    if config.data_dir.as_os_str().is_empty() {
        faults.push(Fault::error("data_dir", "not set; give the folder for this member's log and state"));
    }
}

fn listen(config: &MemberConfig, faults: &mut Vec<Fault>) {
    let sockets = [
        ("listen.http", config.listen.http),
        ("listen.grpc", config.listen.grpc),
        ("listen.peer", config.listen.peer),
    ];
    let mut seen: BTreeMap<SocketAddr, &str> = BTreeMap::new();
    for (key, address) in sockets {
        if !address.ip().is_loopback() && !config.listen.insecure {
            faults.push(Fault::error(
                key,
                format!(
                    "{address} can be reached from other machines, and everybody who reaches it may do anything: there is no \
                     authentication or encryption. Listen on 127.0.0.1, or set listen.insecure = true where the \
                     network itself is closed"
                ),
            ));
        }
        if let Some(other) = seen.insert(address, key)
            && address.port() != 0
        {
            faults.push(Fault::error(
                key,
                format!("{address} is also {other}; each listener needs a port of its own"),
            ));
        }
    }
}

fn members(config: &MemberConfig, faults: &mut Vec<Fault>) {
    if config.members.is_empty() {
        faults.push(Fault::error(
            "members",
            "not set; list every member of the cluster, this one included, each as [[members]] with id, http, grpc, peer",
        ));
    }
    let mut ids = BTreeSet::new();
    let mut addresses: BTreeMap<&str, String> = BTreeMap::new();
    for (at, entry) in config.members.iter().enumerate() {
        let key = |field: &str| format!("members[{at}].{field}");
        if entry.id == 0 {
            faults.push(Fault::error(key("id"), "not set; give a number from 1"));
        } else if !ids.insert(entry.id) {
            faults.push(Fault::error(key("id"), format!("{} is the id of an earlier member too", entry.id)));
        }
        for (field, shape) in shapes(entry) {
            match shape {
                Err(message) => faults.push(Fault::error(key(field), message)),
                Ok(host_port) => {
                    if let Some(other) = addresses.insert(host_port, key(field)) {
                        faults.push(Fault::error(key(field), format!("{host_port} is also {other}")));
                    }
                }
            }
        }
    }
    let voters = config.members.len();
    if config.join && voters == 1 {
        faults.push(Fault::error("members", "to join a cluster, list a living member of it beside this one"));
    }
    if voters > 0 && !config.join && voters.is_multiple_of(2) && !config.spreads() {
        faults.push(Fault::warning(
            "members",
            format!("{voters} members survive no more failures than {} would; use an odd number", voters - 1),
        ));
    }
}

/// What is wrong with the addresses of a member, where something is.
pub(super) fn check(entry: &MemberEntry) -> Result<(), String> {
    for (field, shape) in shapes(entry) {
        shape.map_err(|message| format!("{field}: {message}"))?;
    }
    match [&entry.http, &entry.grpc, &entry.peer].into_iter().find(|text| text.len() > LONGEST_ADDRESS) {
        Some(text) => {
            Err(format!("an address of {} bytes is too long; give at most {LONGEST_ADDRESS}", text.len()))
        }
        None => Ok(()),
    }
}

/// Each address of an entry, reduced to `host:port`, or what is wrong with it.
fn shapes(entry: &MemberEntry) -> [(&'static str, Result<&str, String>); 3] {
    [("http", url(&entry.http)), ("grpc", url(&entry.grpc)), ("peer", host_port(&entry.peer))]
}

fn url(text: &str) -> Result<&str, String> {
    if text.is_empty() {
        return Err("not set; give a URL like http://10.0.0.1:7610".into());
    }
    let rest = text.strip_prefix("http://").or_else(|| text.strip_prefix("https://"));
    let authority = rest.map(|rest| rest.strip_suffix('/').unwrap_or(rest));
    match authority.map(host_port) {
        Some(Ok(host_port)) => Ok(host_port),
        Some(Err(_)) | None => {
            Err(format!("{text:?} is no URL with a host and a port, like http://10.0.0.1:7610"))
        }
    }
}

fn host_port(text: &str) -> Result<&str, String> {
    if text.is_empty() {
        return Err("not set; give an address like 10.0.0.1:7612".into());
    }
    let usable = text.rsplit_once(':').is_some_and(|(host, port)| {
        let bracketed = host.starts_with('[') && host.ends_with(']');
        let plain = !host.contains([':', '/', '@', '?', '#', '[', ']', ' ']);
        !host.is_empty() && (bracketed || plain) && port.parse::<u16>().is_ok_and(|port| port != 0)
    });
    if usable { Ok(text) } else { Err(format!("{text:?} is no host and port, like 10.0.0.1:7612")) }
}

fn groups(config: &MemberConfig, faults: &mut Vec<Fault>) {
    let groups = config.groups.lock_groups;
    if !(1..=MAX_LOCK_GROUPS).contains(&groups) {
        faults.push(Fault::error(
            "groups.lock_groups",
            format!("{groups} is out of bounds; a cluster has 1 to {MAX_LOCK_GROUPS} lock groups"),
        ));
    }
    let (replicas, members) = (config.groups.replicas, config.members.len());
    if replicas == 0 {
        faults.push(Fault::error(
            "groups.replicas",
            "0 would carry no group at all; give an odd number, 3 as a rule",
        ));
    } else if !config.join && replicas > DEFAULT_REPLICAS && usize::from(replicas) > members && members > 0 {
        faults.push(Fault::error(
            "groups.replicas",
            format!(
                "{replicas} replicas need as many members, and there are {members}; give at most {members}"
            ),
        ));
    } else if replicas.is_multiple_of(2) && usize::from(replicas) < members {
        faults.push(Fault::warning(
            "groups.replicas",
            format!(
                "{replicas} replicas survive no more failures than {} would; use an odd number",
                replicas - 1
            ),
        ));
    }
}

fn raft(config: &MemberConfig, faults: &mut Vec<Fault>) {
    let raft = &config.raft;
    let text = humantime::format_duration;
    let (heartbeat, min, max) =
        (raft.heartbeat_interval, raft.election_timeout_min, raft.election_timeout_max);
    if heartbeat < SHORTEST_HEARTBEAT {
        faults.push(Fault::error(
            "raft.heartbeat_interval",
            format!("{} is too short; give at least {}", text(heartbeat), text(SHORTEST_HEARTBEAT)),
        ));
    }
    if min < heartbeat.saturating_mul(3) {
        faults.push(Fault::error(
            "raft.election_timeout_min",
            format!(
                "{} is less than three heartbeats of {}, so that one late packet would start an election; give at least {}",
                text(min),
                text(heartbeat),
                text(heartbeat.saturating_mul(3))
            ),
        ));
    }
    if max <= min {
        faults.push(Fault::error(
            "raft.election_timeout_max",
            format!(
                "{} is not above raft.election_timeout_min ({}); members would stand for election at the same moment",
                text(max),
                text(min)
            ),
        ));
    }
    if max > LONGEST_ELECTION {
        faults.push(Fault::error(
            "raft.election_timeout_max",
            format!("{} is too long; give at most {}", text(max), text(LONGEST_ELECTION)),
        ));
    } else if max > Duration::from_millis(DEFAULT_TTL_MS) / 3 {
        faults.push(Fault::warning(
            "raft.election_timeout_max",
            format!(
                "{} is long beside the usual session TTL of {}: holders may lose their locks in a fail-over",
                text(max),
                text(Duration::from_millis(DEFAULT_TTL_MS))
            ),
        ));
    }
}

fn log_length(config: &MemberConfig, faults: &mut Vec<Fault>) {
    let raft = &config.raft;
    let counts = [("raft.snapshot_entries", raft.snapshot_entries), ("raft.keep_entries", raft.keep_entries)];
    for (key, entries) in counts {
        if !(FEWEST_ENTRIES..=MOST_ENTRIES).contains(&entries) {
            let why = format!("{entries} is out of range; give {FEWEST_ENTRIES} to {MOST_ENTRIES} entries");
            faults.push(Fault::error(key, why));
        }
    }
}

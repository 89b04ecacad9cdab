//! Everything that is wrong with a members file that could be read, by key.
//!
//! What a single member would refuse comes from its own configuration's check, under the key of this file.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
    ops::RangeInclusive,
    path::Path,
};

use holdfast_node::config::Fault;

use super::MembersFile;

/// Fewer survive no loss; more make every proof of leadership slower and gain nothing.
const SIZES: RangeInclusive<usize> = 3..=9;
const LONGEST_NAME: usize = 63;

type Found = Vec<(String, String)>;

/// All faults, none twice.
pub(super) fn of(file: &MembersFile) -> Found {
    let mut found = Found::new();
    size(file, &mut found);
    hosts(file, &mut found);
    reach(file, &mut found);
    names(file, &mut found);
    zones(file, &mut found);
    folders(file, &mut found);
    refused_by_members(file, &mut found);
    found
}

fn key(at: usize, field: &str) -> String {
    format!("members[{at}].{field}")
}

fn size(file: &MembersFile, found: &mut Found) {
    let members = file.members.len();
    if !SIZES.contains(&members) {
        let (least, most) = (SIZES.start(), SIZES.end());
        found.push((
            "members".into(),
            format!("{members} members are listed; a cluster has {least} to {most}, as a rule 3, 5 or 9"),
        ));
    }
}

fn hosts(file: &MembersFile, found: &mut Found) {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_');
    for (at, entry) in file.members.iter().enumerate() {
        let message = match entry.address() {
            None if entry.host.is_empty() => {
                "not set; give the address or name by which the other members and the clients reach it".into()
            }
            Some(address) if address.is_unspecified() => {
                format!(
                    "{address} is where a member may listen, but nobody reaches it there; give its own address"
                )
            }
            None if !entry.host.chars().all(plain) => {
                format!("{:?} is no host: give an address or a name, without scheme and port", entry.host)
            }
            Some(_) | None => continue,
        };
        found.push((key(at, "host"), message));
    }
}

/// Whether the members can reach each other, and whoever else can.
fn reach(file: &MembersFile, found: &mut Found) {
    let loopback = |address: Option<IpAddr>| address.is_some_and(|address| address.is_loopback());
    let local = |at: &usize| loopback(file.members[*at].address());
    let (inside, outside): (Vec<usize>, Vec<usize>) = (0..file.members.len()).partition(local);
    if let (Some(at), false) = (inside.first(), outside.is_empty()) {
        let host = &file.members[*at].host;
        found.push((key(*at, "host"), format!("members on other machines cannot reach {host}")));
    }
    let open = file.members.iter().any(|entry| !entry.host.is_empty() && !entry.listens_on().is_loopback());
    if open && !file.insecure {
        found.push((
            "insecure".into(),
            "the members listen where other machines reach them, and everybody who reaches them may do anything: there is no \
             authentication or encryption. Say `insecure = true` where the network itself is closed"
                .into(),
        ));
    }
}

fn names(file: &MembersFile, found: &mut Found) {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    for (at, entry) in file.members.iter().enumerate() {
        let name = entry.name();
        if let Some(message) = no_name(&name) {
            found.push((key(at, "name"), message));
        } else if let Some(other) = seen.insert(name.clone(), at)
            && entry.id != file.members[other].id
        {
            found.push((key(at, "name"), format!("{name} is the name of members[{other}] too")));
        }
    }
}

/// Names and zones stand in paths and on terminals.
fn no_name(name: &str) -> Option<String> {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '_' | '.');
    let fine = !name.is_empty()
        && name.len() <= LONGEST_NAME
        && name.chars().all(plain)
        && name.starts_with(|c: char| c.is_ascii_alphanumeric());
    (!fine).then(|| {
        format!("{name:?} is no name; use 1 to {LONGEST_NAME} of a-z, 0-9, '-', '_' and '.', a letter or digit first")
    })
}

fn zones(file: &MembersFile, found: &mut Found) {
    let some = file.members.iter().any(|entry| entry.zone.is_some());
    for (at, entry) in file.members.iter().enumerate() {
        match &entry.zone {
            None if some => {
                found.push((
                    key(at, "zone"),
                    "not set, though others have one; say it for all or for none".into(),
                ));
            }
            Some(zone) => found.extend(no_name(zone).map(|message| (key(at, "zone"), message))),
            None => {}
        }
    }
}

fn folders(file: &MembersFile, found: &mut Found) {
    let relative = |folder: &Path| {
        (!folder.is_absolute())
            .then(|| format!("{:?} is not absolute; give the whole path", folder.display()))
    };
    found.extend(relative(&file.data_dir).map(|message| ("data_dir".to_owned(), message)));
    let mut seen: BTreeMap<(&str, &Path), usize> = BTreeMap::new();
    for (at, entry) in file.members.iter().enumerate() {
        let own = entry.data_dir.as_deref().and_then(relative);
        found.extend(own.map(|message| (key(at, "data_dir"), message)));
        let folder = entry.folder(&file.data_dir);
        if let Some(other) = seen.insert((&entry.host, folder), at)
            && !entry.host.is_empty()
        {
            let message =
                format!("{} is the folder of members[{other}] on the same host too", folder.display());
            found.push((key(at, "data_dir"), message));
        }
    }
}

/// What the members themselves would refuse, where it was not found yet.
fn refused_by_members(file: &MembersFile, found: &mut Found) {
    let mut known: BTreeSet<String> = found.iter().map(|(key, _)| key.clone()).collect();
    let configs: Vec<_> = file.configs().collect();
    for (_, config) in &configs {
        for Fault { key, message, .. } in config.validate().into_iter().filter(Fault::is_error) {
            let Some(key) = here(&key) else { continue };
            let host = key.split_once('.').map(|(member, _)| format!("{member}.host"));
            if host.is_none_or(|host| !known.contains(&host)) && known.insert(key.clone()) {
                found.push((key, message));
            }
        }
    }
}

/// The key in this file for a key of a member's configuration; none where it was looked at before.
fn here(key: &str) -> Option<String> {
    let own = ["member", "data_dir"].contains(&key) || key.starts_with("listen.");
    (!own).then(|| key.strip_prefix("groups.").unwrap_or(key).to_owned())
}

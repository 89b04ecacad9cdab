//! One file per verb: its arguments, what it asks the cluster, how it shows the answer.

use std::collections::BTreeMap;

pub(crate) mod ask;
pub(crate) mod claims;
pub(crate) mod completions;
pub(crate) mod config;
pub(crate) mod elect;
pub(crate) mod groups;
pub(crate) mod health;
mod hold;
pub(crate) mod lock;
pub(crate) mod locks;
pub(crate) mod members;
pub(crate) mod node;
pub(crate) mod partitions;
pub(crate) mod sessions;
pub(crate) mod snapshots;
pub(crate) mod storage;
mod token_check;

/// What a session's client says about itself, in one cell: label, host and process first, the rest as it comes.
fn about(metadata: &BTreeMap<String, String>) -> String {
    let known = ["label", "user", "host", "pid"];
    let first = known.iter().filter_map(|key| metadata.get_key_value(*key));
    let rest = metadata.iter().filter(|(key, _)| !known.contains(&key.as_str()));
    first.chain(rest).map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(" ")
}

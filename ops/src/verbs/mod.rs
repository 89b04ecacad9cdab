//! One file per verb: its arguments, what it asks the cluster, how it shows the answer.

use std::collections::BTreeMap;

pub mod completions;
pub mod config;
pub mod elect;
pub mod groups;
mod hold;
pub mod lock;
pub mod locks;
pub mod members;
pub mod node;
pub mod partitions;
pub mod sessions;
pub mod snapshots;

/// What a session's client says about itself, in one cell: label, host and process first, the rest as it comes.
fn about(metadata: &BTreeMap<String, String>) -> String {
    let known = ["label", "user", "host", "pid"];
    let first = known.iter().filter_map(|key| metadata.get_key_value(*key));
    let rest = metadata.iter().filter(|(key, _)| !known.contains(&key.as_str()));
    first.chain(rest).map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(" ")
}

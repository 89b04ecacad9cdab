//! Keys of settings as text: `raft.heartbeat_interval`, `members[0].http`; which exist and how they are spelled in the
//! environment.

use config::{Map, Value, ValueKind};
use holdfast_node::config::{MemberConfig, MemberEntry};

/// Every value of a layer with its key, in key order. Lists are spelled `members[0].id`, from whatever form they came in
/// (`members.0.id` is how they look in the environment).
pub(crate) fn flatten(map: Map<String, Value>) -> Vec<(String, Value)> {
    let mut out = Vec::new();
    for (key, value) in map {
        descend(spell(&key), value, &mut out);
    }
    out.sort_by(|(a, _), (b, _)| a.cmp(b));
    out
}

fn descend(key: String, value: Value, out: &mut Vec<(String, Value)>) {
    match value.kind {
        ValueKind::Table(table) => {
            for (name, value) in table {
                descend(spell(&format!("{key}.{name}")), value, out);
            }
        }
        ValueKind::Array(values) => {
            for (at, value) in values.into_iter().enumerate() {
                descend(format!("{key}[{at}]"), value, out);
            }
        }
        _ => out.push((key, value)),
    }
}

fn spell(key: &str) -> String {
    let mut out = String::new();
    for part in key.split('.') {
        if !out.is_empty() && !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit()) {
            out.push_str(&format!("[{part}]"));
        } else {
            if !out.is_empty() {
                out.push('.');
            }
            out.push_str(part);
        }
    }
    out
}

/// The same key for the first member of the list.
pub(crate) fn first_member(key: &str) -> String {
    match key.strip_prefix("members[").and_then(|rest| rest.split_once(']')) {
        Some((_, field)) => format!("members[0]{field}"),
        None => key.to_owned(),
    }
}

/// Whether there is such a key, or what to write instead.
pub(crate) fn check(key: &str) -> Result<(), String> {
    let known = known();
    let asked = first_member(key);
    if known.contains(&asked) {
        return Ok(());
    }
    if known.iter().any(|k| k.starts_with(&format!("{asked}.")) || k.starts_with(&format!("{asked}["))) {
        return Err("is a section, not a value".into());
    }
    let last = asked.rsplit('.').next().unwrap_or(&asked);
    let near =
        known.iter().filter(|k| distance(k, &asked) <= asked.len() / 4 || k.rsplit('.').next() == Some(last));
    match near.min_by_key(|k| distance(k, &asked)) {
        Some(near) => Err(format!("there is no such setting; did you mean {near}?")),
        None => Err("there is no such setting".into()),
    }
}

/// All keys, with the first member standing for all.
fn known() -> Vec<String> {
    let mut config = MemberConfig { members: vec![MemberEntry::default()], ..MemberConfig::default() };
    // Settings without a default would not be written.
    let snapshots = &mut config.snapshots;
    for text in
        [&mut snapshots.store, &mut snapshots.endpoint, &mut snapshots.region, &mut snapshots.sse_kms_key]
    {
        *text = Some("x".into());
    }
    snapshots.path_style = Some(true);
    snapshots.max_age = Some(snapshots.interval);
    of_config(&config).into_iter().map(|(key, _)| key).collect()
}

/// Every value of a configuration as text with its key, in key order.
pub(crate) fn of_config(config: &MemberConfig) -> Vec<(String, String)> {
    let mut out = Vec::new();
    // Plain structs of numbers and text: writing them as TOML cannot fail.
    if let Ok(value) = toml::Value::try_from(config) {
        leaves(String::new(), &value, &mut out);
    }
    out
}

fn leaves(key: String, value: &toml::Value, out: &mut Vec<(String, String)>) {
    match value {
        toml::Value::Table(table) => {
            for (name, value) in table {
                leaves(if key.is_empty() { name.clone() } else { format!("{key}.{name}") }, value, out);
            }
        }
        toml::Value::Array(values) => {
            for (at, value) in values.iter().enumerate() {
                leaves(format!("{key}[{at}]"), value, out);
            }
        }
        toml::Value::String(text) => out.push((key, text.clone())),
        other => out.push((key, other.to_string())),
    }
}

/// The environment variable that sets a key.
pub(crate) fn variable(prefix: &str, separator: &str, key: &str) -> String {
    let key = key.replace("].", ".").replace('[', ".").replace(']', "");
    format!("{prefix}{separator}{}", key.replace('.', separator).to_uppercase())
}

/// Levenshtein's distance.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let substitute = diagonal + usize::from(x != *y);
            diagonal = row[j + 1];
            row[j + 1] = substitute.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

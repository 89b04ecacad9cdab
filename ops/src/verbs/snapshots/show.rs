//! How snapshots and sets of them are shown to people.

use holdfast_client::{SnapshotContent, SnapshotDetail, SnapshotSet, SnapshotSetDetail, SnapshotView};

use crate::{output::Table, times};

pub(super) fn list(snapshots: &[SnapshotView]) -> String {
    let mut table =
        Table::new(&["ID", "GROUP", "TAKEN", "LOG INDEX", "REVISION", "SIZE", "SHA-256"], "no snapshots");
    for snapshot in snapshots {
        table.row([
            snapshot.id.clone(),
            snapshot.group.to_string(),
            times::point(snapshot.created_at_ms),
            snapshot.log_index.to_string(),
            snapshot.revision.to_string(),
            times::bytes(snapshot.size_bytes),
            snapshot.sha256.chars().take(12).collect(),
        ]);
    }
    table.text()
}

pub(super) fn sets(sets: &[SnapshotSet]) -> String {
    let mut table =
        Table::new(&["SET", "TAKEN", "MAP EPOCH", "GROUPS", "TAKEN BY MEMBER"], "no snapshot sets");
    for set in sets {
        table.row([
            set.id.clone(),
            times::point(set.created_at_ms),
            set.map_epoch.to_string(),
            set.snapshots.len().to_string(),
            set.member.to_string(),
        ]);
    }
    table.text()
}

pub(super) fn one_set(set: &SnapshotSet) -> String {
    let mut table = Table::new(&["GROUP", "SNAPSHOT", "LOG INDEX", "SHA-256"], "no snapshots");
    for one in &set.snapshots {
        let digest = one.sha256.chars().take(12).collect();
        table.row([one.group.to_string(), one.id.clone(), one.log_index.to_string(), digest]);
    }
    format!("{}\n\n{}", sets(std::slice::from_ref(set)), table.text())
}

pub(super) fn detail(detail: &SnapshotDetail) -> String {
    let SnapshotDetail { snapshot, cluster, member, map_epoch, incarnation, whole, content, .. } = detail;
    let mut lines = Table::new(&["WHAT", ""], "nothing");
    let mut line = |what: &str, text: String| lines.row([what.to_owned(), text]);
    line("snapshot", snapshot.id.clone());
    line("cluster", cluster.clone());
    line("group", if snapshot.group == 0 { "0 (meta)".to_owned() } else { snapshot.group.to_string() });
    line("taken", times::point(snapshot.created_at_ms));
    line("by member", member.to_string());
    line("log index", snapshot.log_index.to_string());
    line("term", snapshot.term.to_string());
    line("revision", snapshot.revision.to_string());
    line("incarnation", incarnation.to_string());
    line("map epoch", map_epoch.to_string());
    line("size", times::bytes(snapshot.size_bytes));
    line("sha-256", snapshot.sha256.clone());
    let checked = match whole {
        None => "not read; `holdfast snapshots verify` does",
        Some(true) => "yes: digest, encoding and every rule",
        Some(false) => "NO",
    };
    line("whole", checked.to_owned());
    for (what, number) in content.iter().flat_map(inside) {
        line(what, number.map_or_else(|| "none".to_owned(), |number| number.to_string()));
    }
    lines.text()
}

pub(super) fn verified_set(detail: &SnapshotSetDetail) -> String {
    let header = ["GROUP", "SNAPSHOT", "WHOLE", "REVISION", "SESSIONS", "HELD", "WAITING", "CLAIMS", "SIZE"];
    let mut table = Table::new(&header, "no snapshots");
    for SnapshotDetail { snapshot, whole, content, .. } in &detail.snapshots {
        let count = |of: fn(&holdfast_client::SnapshotLocks) -> u64| match content {
            Some(SnapshotContent::Locks(locks)) => of(locks).to_string(),
            Some(SnapshotContent::Meta(_)) | None => "-".to_owned(),
        };
        table.row([
            snapshot.group.to_string(),
            snapshot.id.clone(),
            if *whole == Some(true) { "yes" } else { "NO" }.to_owned(),
            snapshot.revision.to_string(),
            count(|locks| locks.sessions),
            count(|locks| locks.held),
            count(|locks| locks.waiting),
            count(|locks| locks.claims),
            times::bytes(snapshot.size_bytes),
        ]);
    }
    format!("{}\n\n{}", sets(std::slice::from_ref(&detail.set)), table.text())
}

/// What a snapshot holds, line by line.
fn inside(content: &SnapshotContent) -> Vec<(&'static str, Option<u64>)> {
    match content {
        SnapshotContent::Locks(locks) => vec![
            ("sessions", Some(locks.sessions)),
            ("locks held", Some(locks.held)),
            ("waiters", Some(locks.waiting)),
            ("longest queue", Some(locks.longest_queue)),
            ("claims", Some(locks.claims)),
            ("keys", Some(locks.keys)),
            ("owned ranges", Some(locks.ranges)),
            ("owned since map epoch", Some(locks.ownership_epoch)),
            ("move under way", locks.moving),
        ],
        SnapshotContent::Meta(meta) => vec![
            ("map in it: epoch", Some(meta.map_epoch)),
            ("map in it: groups", Some(meta.groups)),
            ("members", Some(meta.members)),
            ("audit lines", Some(meta.audit_lines)),
            ("change under way", meta.change),
            ("move under way", meta.moving),
        ],
    }
}

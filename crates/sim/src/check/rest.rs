//! Once the faults are over and the clients have gone, everything comes to rest: no session, holder, waiter or move is left,
//! and all members have applied the same entries.
//!
//! Says what is still missing; whoever asks decides when it is too late.

use std::collections::BTreeSet;

use holdfast_node::meta::MetaTable;
use holdfast_partitioner::GroupId;

use crate::cluster::Cluster;

/// Whether the cluster is at rest; otherwise what is not.
///
/// # Errors
/// What is left.
pub fn at_rest(cluster: &Cluster) -> Result<(), String> {
    cluster.ready()?;
    let mut left = None;
    cluster.each_table(|group, member, table, _| {
        let counts = table.counts();
        if counts.sessions + counts.held + counts.waiting > 0 && left.is_none() {
            left = Some(format!(
                "group {group} on member {member} still has {} sessions, {} held locks and {} waiters",
                counts.sessions, counts.held, counts.waiting
            ));
        }
    });
    if let Some(left) = left {
        return Err(left);
    }
    for (member, meta) in cluster.replicas(GroupId::META) {
        let moving = meta.with_meta(|table, _| table.changes().under_way().map(|change| change.number));
        if let Some(change) = moving.flatten() {
            return Err(format!("change {change} of the partition map is under way on member {member}"));
        }
        if let Some(group) = meta.with_meta(|table, _| other_than_the_map(cluster, table)).flatten() {
            return Err(format!("group {group} has other ranges than the map of member {member} says"));
        }
    }
    for group in cluster.groups() {
        let applied: BTreeSet<u64> =
            cluster.replicas(group).iter().map(|(_, replica)| replica.status().applied).collect();
        if applied.len() > 1 {
            return Err(format!("members of group {group} have applied different entries: {applied:?}"));
        }
    }
    Ok(())
}

/// A group of which some member has not what the map says.
fn other_than_the_map(cluster: &Cluster, meta: &MetaTable) -> Option<GroupId> {
    let (map, mut other) = (meta.map()?, None);
    cluster.each_table(|group, _, table, _| {
        if !table.owns_exactly(&map.ranges_of(group)) {
            other = Some(group);
        }
    });
    other
}

//! The cluster as operators see it: members, groups, the partition map, snapshots, the audit log.

pub(crate) mod audit;
pub(crate) mod changes;
pub(crate) mod members;
pub(crate) mod partitions;
pub(crate) mod placement;
pub(crate) mod planner;
pub(crate) mod snapshots;
pub(crate) mod status;

#[cfg(test)]
mod tests;

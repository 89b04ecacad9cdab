//! The first format of a manifest: data that are not packed, and no incarnation of its own.
//!
//! Only read. Nothing is added here.

use holdfast_locktable::ids::Revision;
use serde::Deserialize;

use super::{Manifest, PLAIN_FORMAT, SnapshotId};
use crate::{
    log::{group_number::GroupNumber, identity::ClusterId},
    raft::types::MemberId,
};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ManifestV1 {
    format_version: u32,
    cluster: ClusterId,
    group: GroupNumber,
    snapshot: SnapshotId,
    log_index: u64,
    log_term: u64,
    revision: u64,
    map_epoch: u64,
    size_bytes: u64,
    sha256: String,
    created_unix_ms: u64,
    member: MemberId,
}

/// Reads a manifest of this format.
pub(super) fn decode(json: &[u8]) -> serde_json::Result<Manifest> {
    let v1: ManifestV1 = serde_json::from_slice(json)?;
    debug_assert_eq!(v1.format_version, PLAIN_FORMAT, "the caller has looked");
    Ok(Manifest {
        format_version: v1.format_version,
        cluster: v1.cluster,
        group: v1.group,
        snapshot: v1.snapshot,
        log_index: v1.log_index,
        log_term: v1.log_term,
        revision: v1.revision,
        incarnation: Revision(v1.revision).incarnation(),
        map_epoch: v1.map_epoch,
        size_bytes: v1.size_bytes,
        stored_bytes: v1.size_bytes,
        sha256: v1.sha256,
        created_unix_ms: v1.created_unix_ms,
        member: v1.member,
    })
}

//! What is inside of a snapshot: its data read back, compared with the manifest, decoded, and checked against every
//! rule that a state must obey.
//!
//! Nothing is changed, neither in the store nor in a group. Works on any store, also without a cluster.

use std::collections::BTreeMap;

use bytes::Bytes;
use holdfast_locktable::{codec::DecodeError, ids::MoveNumber, table::LockTable, view::Counts};
use holdfast_partitioner::{GroupId, MapEpoch};

use super::{
    catalog::{CatalogError, SnapshotCatalog},
    consistency::{self, GroupShape, Inconsistent, MetaShape},
    manifest::{Manifest, SnapshotId},
    set::{SetId, SetManifest, SetMember},
};
use crate::{log::group_number::GroupNumber, meta::MetaTable, raft::table::Table};

/// Data from which on decoding would hold up other tasks, bytes.
const LARGE: usize = 1 << 20;

/// What a snapshot holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// Of a lock group.
    Locks(LocksContent),
    /// Of the meta group.
    Meta(MetaContent),
}

/// What the snapshot of a lock group holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LocksContent {
    /// Sessions, keys, locks and waiters.
    pub counts: Counts,
    /// Claims.
    pub claims: u64,
    /// Ranges of names that the group owned.
    pub ranges: u64,
    /// The map epoch with which it owned them.
    pub ownership_epoch: MapEpoch,
    /// The move that it took part in.
    pub moving: Option<MoveNumber>,
}

/// What the snapshot of the meta group holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MetaContent {
    /// Epoch of the partition map; 0 where there is none.
    pub map_epoch: MapEpoch,
    /// Groups that the map names.
    pub groups: u64,
    /// Members whose addresses are known.
    pub members: u64,
    /// Lines of the audit log.
    pub audit_lines: u64,
    /// The change of the map that was under way.
    pub change: Option<u64>,
    /// Its move.
    pub moving: Option<MoveNumber>,
}

/// A snapshot that is whole, and what is in it.
#[derive(Clone, Debug)]
pub struct Inspected {
    /// Its description.
    pub manifest: Manifest,
    /// What it holds.
    pub content: Content,
    shape: Shape,
}

/// A snapshot, and what is known of its data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Examined {
    /// Its description.
    pub manifest: Manifest,
    /// Its data.
    pub checked: Checked,
}

/// What is known of a snapshot's data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Checked {
    /// They were not read.
    NotYet,
    /// They are whole.
    Whole(Content),
    /// They cannot be used.
    Broken {
        /// Why, and what to do.
        why: String,
    },
}

/// A set, and what is known of its snapshots.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExaminedSet {
    /// Its description.
    pub set: SetManifest,
    /// Its snapshots, as far as they are there.
    pub snapshots: Vec<Examined>,
    /// Why it cannot be used, and what to do; none where it can.
    pub fault: Option<String>,
}

#[derive(Clone, Debug)]
enum Shape {
    Locks(GroupShape),
    Meta(MetaShape),
}

/// Why a snapshot or a set does not pass.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InspectError {
    /// It cannot be read, or is not what its manifest says.
    #[error(transparent)]
    Catalog(#[from] CatalogError),
    /// Its data are what was written, and no state that can be used.
    #[error(
        "the snapshot {snapshot} of group {group} {fault}; take a new one, and restore from an older one"
    )]
    Content {
        /// The group.
        group: GroupNumber,
        /// The snapshot.
        snapshot: SnapshotId,
        /// What is wrong.
        fault: ContentFault,
    },
    /// The snapshots do not go together.
    #[error(
        "the snapshots of the set {set} do not go together: {fault}; take a new set, and restore from an older one"
    )]
    Set {
        /// The set.
        set: SetId,
        /// What is wrong.
        fault: Inconsistent,
    },
    /// The set says another epoch than its snapshots.
    #[error(
        "the set {set} says map epoch {said}, and its snapshots are of epoch {found}; take a new set, and restore from an older one"
    )]
    SetEpoch {
        /// The set.
        set: SetId,
        /// What it says.
        said: u64,
        /// What they are of.
        found: MapEpoch,
    },
    /// The check was not carried out.
    #[error("the snapshot could not be checked: {reason}; try again")]
    NotChecked {
        /// Why.
        reason: String,
    },
}

/// What is wrong with a snapshot's content.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ContentFault {
    /// No state.
    #[error("cannot be decoded: {reason}")]
    Decode {
        /// What the decoder said.
        reason: String,
    },
    /// A state that commands do not lead to.
    #[error("breaks a rule of its state: {rule}")]
    Rule {
        /// The rule, and where.
        rule: String,
    },
    /// The state of another group.
    #[error("holds the state of group {found}")]
    OtherGroup {
        /// Whose it is.
        found: GroupId,
    },
    /// A state at a later revision.
    #[error("is at revision {found}, and its manifest says {expected}")]
    Revision {
        /// Of the state.
        found: u64,
        /// In the manifest.
        expected: u64,
    },
}

impl InspectError {
    /// Whether the snapshot is at fault; otherwise nobody knows, and the same may be tried again.
    #[must_use]
    pub fn is_damage(&self) -> bool {
        match self {
            InspectError::Catalog(err) => err.is_damage(),
            InspectError::Content { .. } | InspectError::Set { .. } | InspectError::SetEpoch { .. } => true,
            InspectError::NotChecked { .. } => false,
        }
    }
}

/// Reads a snapshot back and checks it all: length, digest, encoding, and the rules of its state.
///
/// # Errors
/// Any [`InspectError`] of one snapshot.
pub async fn inspect(catalog: &SnapshotCatalog, manifest: Manifest) -> Result<Inspected, InspectError> {
    let data = catalog.read(&manifest).await?;
    if data.len() < LARGE {
        return decoded(manifest, &data);
    }
    let decoding = tokio::task::spawn_blocking(move || decoded(manifest, &data));
    decoding.await.map_err(|err| InspectError::NotChecked { reason: err.to_string() })?
}

/// Describes a snapshot whose data are not read.
#[must_use]
pub const fn described(manifest: Manifest) -> Examined {
    Examined { manifest, checked: Checked::NotYet }
}

/// Reads a snapshot back and says what is in it, or what is wrong with it.
///
/// # Errors
/// Where nobody can tell: the store cannot be read now.
pub async fn examine(catalog: &SnapshotCatalog, manifest: Manifest) -> Result<Examined, InspectError> {
    match inspect(catalog, manifest.clone()).await {
        Ok(Inspected { manifest, content, .. }) => {
            Ok(Examined { manifest, checked: Checked::Whole(content) })
        }
        Err(err) if err.is_damage() => {
            Ok(Examined { manifest, checked: Checked::Broken { why: err.to_string() } })
        }
        Err(err) => Err(err),
    }
}

/// Reads all snapshots of a set back, and says what is in them, and whether they go together. `seen` is told of each.
///
/// # Errors
/// Where nobody can tell: the store cannot be read now.
pub async fn examine_set(
    catalog: &SnapshotCatalog,
    set: SetManifest,
    mut seen: impl FnMut(&SetMember),
) -> Result<ExaminedSet, InspectError> {
    let (mut snapshots, mut whole, mut fault) = (Vec::new(), Vec::new(), None);
    for member in &set.snapshots {
        let inspected = match catalog.manifest_in(&set, member).await {
            Ok(manifest) => {
                let inspected = inspect(catalog, manifest.clone()).await;
                inspected.map_err(|err| (Some(manifest), err))
            }
            Err(err) => Err((None, InspectError::from(err))),
        };
        match inspected {
            Ok(one) => {
                let (manifest, content) = (one.manifest.clone(), one.content.clone());
                snapshots.push(Examined { manifest, checked: Checked::Whole(content) });
                whole.push(one);
            }
            Err((manifest, err)) if err.is_damage() => {
                let why = err.to_string();
                snapshots.extend(
                    manifest
                        .map(|manifest| Examined { manifest, checked: Checked::Broken { why: why.clone() } }),
                );
                fault.get_or_insert(why);
            }
            Err((_, err)) => return Err(err),
        }
        seen(member);
    }
    let fault = fault.or_else(|| set_fault(&set, &whole).map(|err| err.to_string()));
    Ok(ExaminedSet { set, snapshots, fault })
}

/// What is wrong with a set of snapshots that are all whole.
fn set_fault(set: &SetManifest, whole: &[Inspected]) -> Option<InspectError> {
    let name = set.set.clone();
    match go_together(whole) {
        Ok(found) if found.0 == set.map_epoch => None,
        Ok(found) => Some(InspectError::SetEpoch { set: name, said: set.map_epoch, found }),
        Err(fault) => Some(InspectError::Set { set: name, fault }),
    }
}

/// Whether snapshots, one per group, make a set; then, its map epoch.
///
/// # Errors
/// Why they do not.
pub fn go_together(snapshots: &[Inspected]) -> Result<MapEpoch, Inconsistent> {
    let (mut meta, mut groups) = (None, BTreeMap::new());
    for Inspected { manifest, shape, .. } in snapshots {
        match shape {
            Shape::Meta(shape) => meta = Some(shape),
            Shape::Locks(shape) => {
                groups.insert(GroupId(manifest.group.get()), shape.clone());
            }
        }
    }
    consistency::check(meta.ok_or(Inconsistent::NoMeta)?, &groups)
}

fn decoded(manifest: Manifest, data: &Bytes) -> Result<Inspected, InspectError> {
    let checked = decode(manifest.group, data).and_then(|table| {
        let found = table.locks().map_or(manifest.revision, |locks| locks.revision().0);
        let expected = manifest.revision;
        if found <= expected { Ok(table) } else { Err(ContentFault::Revision { found, expected }) }
    });
    match checked {
        Ok(Table::Locks(table)) => {
            let (content, shape) = (Content::Locks((&table).into()), Shape::Locks((&table).into()));
            Ok(Inspected { manifest, content, shape })
        }
        Ok(Table::Meta(table)) => {
            let (content, shape) = (Content::Meta((&table).into()), Shape::Meta((&table).into()));
            Ok(Inspected { manifest, content, shape })
        }
        Err(fault) => {
            Err(InspectError::Content { group: manifest.group, snapshot: manifest.snapshot, fault })
        }
    }
}

/// The state of a group from a snapshot's data. Decoding checks a lock table against all its invariants.
fn decode(group: GroupNumber, data: &Bytes) -> Result<Table, ContentFault> {
    if GroupId(group.get()).is_meta() {
        let table = MetaTable::decode(data);
        return table.map(Table::Meta).map_err(|err| ContentFault::Decode { reason: err.to_string() });
    }
    let table = LockTable::decode(data).map_err(|err| match err {
        DecodeError::Inconsistent(violation) => ContentFault::Rule { rule: violation.to_string() },
        DecodeError::Truncated
        | DecodeError::UnknownVersion { .. }
        | DecodeError::Checksum
        | DecodeError::DamagedVersion { .. }
        | DecodeError::Malformed => ContentFault::Decode { reason: err.to_string() },
    })?;
    let found = table.group();
    if found.0 == group.get() { Ok(Table::Locks(table)) } else { Err(ContentFault::OtherGroup { found }) }
}

impl From<&LockTable> for LocksContent {
    fn from(table: &LockTable) -> Self {
        Self {
            counts: table.counts(),
            claims: table.claim_count() as u64,
            ranges: table.owned_ranges().len() as u64,
            ownership_epoch: table.ownership_epoch(),
            moving: table.move_under_way(),
        }
    }
}

impl From<&MetaTable> for MetaContent {
    fn from(table: &MetaTable) -> Self {
        let change = table.changes().under_way();
        Self {
            map_epoch: table.map().map_or(MapEpoch(0), |map| map.epoch()),
            groups: table.map().map_or(0, |map| map.groups().len() as u64),
            members: table.members().len() as u64,
            audit_lines: table.audit(usize::MAX).count() as u64,
            change: change.map(|change| change.number),
            moving: change.and_then(|change| change.moving.as_ref()).map(|moving| moving.number),
        }
    }
}

#[cfg(test)]
mod tests;

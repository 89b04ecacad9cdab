//! A group that begins with a state instead of an empty log: its first snapshot, as openraft finds it at start.
//!
//! The snapshot stands at an index of term 0, which no leader ever had: every term that is voted for is above it. Knows nothing
//! of what is in the state, nor why a group begins so.

use std::{
    collections::{BTreeMap, BTreeSet},
    io,
};

use bytes::Bytes;
use openraft::{BasicNode, Membership, RaftTypeConfig, storage::RaftLogStorage, vote::RaftLeaderId};

use super::types::{LogId, MemberId, SnapshotMeta, StoredMembership, TypeConfig};
use crate::{
    log::handle::LogHandle,
    snapshot::local::{RaftSnapshotError, RaftSnapshots},
};

/// What a group begins with, the same on all its members.
#[derive(Clone, Debug)]
pub struct Seed {
    /// Where the log begins: the index of the last entry that counts as being in the state.
    pub index: u64,
    /// Who votes.
    pub voters: BTreeSet<MemberId>,
    /// Peer addresses of all that are sent the log, voters included.
    pub addresses: BTreeMap<MemberId, String>,
    /// The encoded state.
    pub state: Bytes,
}

/// Why a group was not given its first state.
#[derive(Debug, thiserror::Error)]
pub enum SeedError {
    /// The snapshot was not written.
    #[error(transparent)]
    Snapshot(#[from] RaftSnapshotError),
    /// The log was not written.
    #[error("the log cannot be made to begin behind the state: {0}")]
    Log(#[from] io::Error),
    /// The members are none, or without address.
    #[error("the members that the group is to have cannot be: {0}")]
    Members(String),
}

impl Seed {
    /// Writes the snapshot into an empty folder, and has the log begin behind it, so that the member refuses to start without
    /// the snapshot.
    ///
    /// # Errors
    /// See [`SeedError`].
    pub async fn plant(&self, snapshots: &RaftSnapshots, mut log: LogHandle) -> Result<(), SeedError> {
        let last = self.last();
        snapshots.save(&self.meta(last)?, &self.state).await?;
        Ok(log.purge(last).await?)
    }

    fn last(&self) -> LogId {
        let nobody = <TypeConfig as RaftTypeConfig>::LeaderId::new(0, 0).to_committed();
        LogId::new(nobody, self.index)
    }

    fn meta(&self, last: LogId) -> Result<SnapshotMeta, SeedError> {
        let nodes: BTreeMap<MemberId, BasicNode> =
            self.addresses.iter().map(|(member, addr)| (*member, BasicNode { addr: addr.clone() })).collect();
        let members = Membership::new(vec![self.voters.clone()], nodes);
        let members = members.map_err(|error| SeedError::Members(error.to_string()))?;
        Ok(SnapshotMeta {
            last_log_id: Some(last),
            last_membership: StoredMembership::new(Some(last), members),
        })
    }
}

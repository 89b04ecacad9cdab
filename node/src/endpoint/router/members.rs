//! Who the members are, as this one knows them now, and whether another may take part.
//!
//! Begins with what the member was told at its start and follows the roster. Decides nothing: the roster does.

use std::{collections::BTreeMap, sync::Arc};

use serde::{Deserialize, Serialize};

use super::Router;
use crate::{
    config::MemberEntry,
    group::proposer::GroupError,
    log::disk_id::DiskId,
    meta::{
        group::{MetaCall, MetaGroup},
        roster::RosterRefusal,
        roster_asks::{RosterAsk, record},
    },
    raft::types::MemberId,
};

/// What a member says to another that wants to take part.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Greeting {
    /// It is on the roster with its disk, agreed on in the meta group. These are all members.
    Welcome(Vec<MemberEntry>),
    /// Nothing here speaks against it, and nobody can say more right now.
    Unknown,
    /// It must not take part.
    Refused {
        /// Why, and what to do.
        why: String,
    },
    /// As [`Greeting::Unknown`], from a member that has never had an entry of a leader, as where a cluster is founded.
    Fresh,
}

impl Router {
    /// From now on the members are these.
    pub fn learn(&self, members: Vec<MemberEntry>) {
        self.try_at(&members);
        *self.inner.members.write() = Arc::new(members);
    }

    /// Has members looked for at these addresses from now on; who the members are stays as it is.
    pub fn try_at(&self, members: &[MemberEntry]) {
        for entry in members.iter().filter(|entry| entry.id != self.inner.member) {
            self.inner.transport.learn(entry.id, &entry.peer);
        }
    }

    /// The members, this one included.
    pub fn members(&self) -> Arc<Vec<MemberEntry>> {
        self.inner.members.read().clone()
    }

    /// The other members.
    pub fn peers(&self) -> Vec<MemberId> {
        let members = self.members();
        members.iter().map(|entry| entry.id).filter(|id| *id != self.inner.member).collect()
    }

    /// Members with their peer addresses.
    pub fn addresses(&self, members: impl IntoIterator<Item = MemberId>) -> BTreeMap<MemberId, String> {
        let known = self.members();
        let address =
            |id: MemberId| known.iter().find(|entry| entry.id == id).map(|entry| entry.peer.clone());
        members.into_iter().filter_map(|id| Some((id, address(id)?))).collect()
    }

    /// What this member has to say to another that wants to take part from a disk: by its own replica of the roster, and where
    /// that has nothing against it, by the meta group's leader, which notes the disk.
    pub async fn greet(&self, at: MemberEntry, disk: DiskId) -> Greeting {
        let Some(roster) = self.meta().and_then(MetaGroup::roster) else {
            return self.note_hello(at, disk).await;
        };
        match roster.greets(at.id, disk) {
            Ok(()) if roster.knows(&record(&at), disk) => Greeting::Welcome((*self.members()).clone()),
            // A replica that is behind has not heard of a place made since: only the leader can say that there is none.
            Ok(()) | Err(RosterRefusal::NotOnRoster { .. }) => self.note_hello(at, disk).await,
            Err(refusal) => Greeting::Refused { why: refusal.to_string() },
        }
    }

    async fn note_hello(&self, at: MemberEntry, disk: DiskId) -> Greeting {
        match self.meta_call_once(&MetaCall::Roster(RosterAsk::Hello { at, disk })).await {
            Ok(_) => Greeting::Welcome((*self.members()).clone()),
            Err(GroupError::Conflict { why } | GroupError::Refused { why }) => Greeting::Refused { why },
            Err(_) if self.has_acknowledged_nothing() => Greeting::Fresh,
            Err(_) => Greeting::Unknown,
        }
    }

    /// Whether no leader of the meta group has had this member store anything: the first entry, the members of the group,
    /// comes from no leader.
    fn has_acknowledged_nothing(&self) -> bool {
        self.meta().is_some_and(|meta| meta.raft().status().last_log == 0)
    }
}

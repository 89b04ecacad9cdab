//! Who the members are, and changing that.

use holdfast_proto::v1::{self, admin_client::AdminClient};
use serde::Serialize;

use super::{Admin, MAX_ANSWER_BYTES};
use crate::error::Error;

/// A member that is to come.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct NewMember {
    /// Its id; 0 for the next that was never used.
    pub id: u64,
    /// Base URL of its HTTP listener; may be empty where it comes in the place of another, which was reached there.
    pub http: String,
    /// URL of its gRPC listener; as `http`.
    pub grpc: String,
    /// Address of its peer listener; as `http`.
    pub peer: String,
}

/// A change of the members: one more, one less, or both for one in the place of another.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MembersWanted {
    /// The new member.
    pub add: Option<NewMember>,
    /// The member that goes.
    pub remove: Option<u64>,
    /// Whether it is only to be tried.
    pub dry_run: bool,
}

/// A change of the members, under way or over.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct MemberChange {
    /// Its number, from 1.
    pub number: u64,
    /// What it is, in words.
    pub what: String,
    /// The member that comes.
    pub comes: Option<NewMember>,
    /// The member that goes.
    pub goes: Option<u64>,
    /// Who asked for it.
    pub actor: String,
    /// Why.
    pub reason: String,
    /// When it began, in milliseconds since 1970.
    pub since_ms: u64,
    /// How far it is, in words, while it is under way.
    pub doing: Option<String>,
    /// When it ended, in milliseconds since 1970.
    pub ended_ms: Option<u64>,
    /// Why it was stopped, where it was.
    pub stopped: Option<String>,
}

/// The changes of the members.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct MemberChanges {
    /// The one under way.
    pub under_way: Option<MemberChange>,
    /// Those that are over, oldest first.
    pub past: Vec<MemberChange>,
}

impl Admin {
    /// Begins a change of the members, which goes on by itself, or says only whether it could. There is one at a time. `reason` and
    /// `actor` go into the audit log.
    ///
    /// # Errors
    /// As the member answers, or none did.
    pub async fn change_members(
        &self,
        wanted: &MembersWanted,
        reason: &str,
        actor: &str,
    ) -> Result<MemberChange, Error> {
        let add = wanted.add.clone().map(|NewMember { id, http, grpc, peer }| v1::NewMember {
            id,
            http,
            grpc,
            peer,
        });
        // The caller asks another member where one does not answer in time.
        let request = v1::ChangeMembersRequest {
            add,
            remove: wanted.remove,
            request: Some(self.client.inner().caller.random.next()),
            dry_run: wanted.dry_run,
            reason: reason.to_owned(),
            actor: actor.to_owned(),
        };
        ask!(self, AdminClient, change_members, request).map(Into::into)
    }

    /// Stops a change of the members: a new member that has not come stays out, one that was to go stays. `reason` and `actor` go
    /// into the audit log.
    ///
    /// # Errors
    /// As the member answers, or none did.
    pub async fn cancel_member_change(&self, change: u64, reason: &str, actor: &str) -> Result<(), Error> {
        let request =
            v1::CancelMemberChangeRequest { change, reason: reason.to_owned(), actor: actor.to_owned() };
        ask!(self, AdminClient, cancel_member_change, request).map(drop)
    }

    /// The changes of the members, under way and over.
    ///
    /// # Errors
    /// As the member answers, or none did.
    pub async fn member_changes(&self) -> Result<MemberChanges, Error> {
        ask!(self, AdminClient, member_changes, v1::MemberChangesRequest {}).map(|changes| MemberChanges {
            under_way: changes.under_way.map(Into::into),
            past: changes.past.into_iter().map(Into::into).collect(),
        })
    }
}

impl From<v1::MemberChange> for MemberChange {
    fn from(change: v1::MemberChange) -> Self {
        let new = |v1::NewMember { id, http, grpc, peer }| NewMember { id, http, grpc, peer };
        Self {
            number: change.number,
            what: change.what,
            comes: change.comes.map(new),
            goes: change.goes,
            actor: change.actor,
            reason: change.reason,
            since_ms: change.since_ms,
            doing: change.doing,
            ended_ms: change.ended_ms,
            stopped: change.stopped,
        }
    }
}

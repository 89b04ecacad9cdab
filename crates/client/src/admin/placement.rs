//! Which members carry and lead which groups, and changing that.

use holdfast_proto::v1::{self, admin_client::AdminClient};
use serde::Serialize;

use super::{Admin, MAX_ANSWER_BYTES, types::GroupView};
use crate::error::Error;

/// One group, and what is going on with it and why.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct GroupDetail {
    /// The group.
    #[serde(flatten)]
    pub view: GroupView,
    /// Members that carry it and are to carry it no more.
    pub leaving: Vec<u64>,
    /// What is under way, in words.
    pub under_way: Option<String>,
    /// Why.
    pub why: Option<String>,
    /// Entries per second, as the meta group's leader has measured it.
    pub entries_per_s: Option<f64>,
}

impl Admin {
    /// One group, and what is going on with it and why; 0 is the meta group.
    ///
    /// # Errors
    /// [`ErrorCode::NotFound`](crate::ErrorCode::NotFound) when there is none; or as the member answers, or none did.
    pub async fn group(&self, group: u32) -> Result<GroupDetail, Error> {
        ask!(self, AdminClient, group, v1::GroupRequest { group }).map(Into::into)
    }

    /// Adds lock groups, which own nothing yet, and answers their numbers. `reason` and `actor` go into the audit log.
    ///
    /// # Errors
    /// As the member answers, or none did.
    pub async fn add_groups(&self, count: u32, reason: &str, actor: &str) -> Result<Vec<u32>, Error> {
        // The caller asks another member where one does not answer in time.
        let request = v1::AddGroupsRequest {
            count,
            reason: reason.to_owned(),
            actor: actor.to_owned(),
            request: Some(self.client.inner().caller.random.next()),
        };
        ask!(self, AdminClient, add_groups, request).map(|added| added.groups)
    }

    /// Lets another of its voters lead a group. `reason` and `actor` go into the audit log.
    ///
    /// # Errors
    /// As the member answers, or none did.
    pub async fn transfer_leader(&self, group: u32, to: u64, reason: &str, actor: &str) -> Result<(), Error> {
        let request =
            v1::TransferLeaderRequest { group, to, reason: reason.to_owned(), actor: actor.to_owned() };
        ask!(self, AdminClient, transfer_leader, request).map(drop)
    }

    /// Has a member carry and lead no lock group any more, one after the other, or allows it to again. `reason` and `actor` go
    /// into the audit log.
    ///
    /// # Errors
    /// As the member answers, or none did.
    pub async fn drain_member(
        &self,
        member: u64,
        drained: bool,
        reason: &str,
        actor: &str,
    ) -> Result<(), Error> {
        let request =
            v1::DrainMemberRequest { member, drained, reason: reason.to_owned(), actor: actor.to_owned() };
        ask!(self, AdminClient, drain_member, request).map(drop)
    }
}

impl From<v1::GroupDetail> for GroupDetail {
    fn from(detail: v1::GroupDetail) -> Self {
        Self {
            view: detail.view.unwrap_or_default().into(),
            leaving: detail.leaving,
            under_way: detail.under_way,
            why: detail.why,
            entries_per_s: detail.entries_per_s,
        }
    }
}

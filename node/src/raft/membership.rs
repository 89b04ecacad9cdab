//! Changes of who is in a group: learners that are sent the log, and one set of voters instead of another.
//!
//! Each is one or two entries of the group's own log, agreed on as any other. Does not know why anything changes.

use std::collections::{BTreeMap, BTreeSet};

use openraft::{
    BasicNode, ChangeMembers,
    errors::{ChangeMembershipError, ClientWriteError, RaftError},
};

use super::{
    group::RaftGroup,
    types::{MemberId, TypeConfig},
};

/// Why a change of the members was not made, or not to its end.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MembershipError {
    /// This member does not lead the group.
    #[error("this member does not lead the group")]
    NotLeader {
        /// Who may.
        leader: Option<MemberId>,
    },
    /// Another change is not agreed on yet.
    #[error("another change of the group's members is under way")]
    UnderWay,
    /// The members are others than the change supposes.
    #[error("{why}")]
    Refused {
        /// What openraft said.
        why: String,
    },
    /// The group has stopped here.
    #[error("the group has stopped on this member")]
    Stopped,
}

impl RaftGroup {
    /// Has members sent the log without a vote. Those that are in the group already stay what they are.
    ///
    /// # Errors
    /// See [`MembershipError`].
    pub async fn add_learners(&self, learners: BTreeMap<MemberId, String>) -> Result<(), MembershipError> {
        let nodes = learners.into_iter().map(|(member, addr)| (member, BasicNode { addr })).collect();
        self.change_members(ChangeMembers::AddNodes(nodes)).await
    }

    /// Sends these members the log no more. They must not be voters.
    ///
    /// # Errors
    /// See [`MembershipError`].
    pub async fn remove_learners(&self, learners: BTreeSet<MemberId>) -> Result<(), MembershipError> {
        self.change_members(ChangeMembers::RemoveNodes(learners)).await
    }

    /// Puts these voters in the place of all there are, by way of a configuration in which both sets must agree. New ones must
    /// be learners; those that vote no more leave the group.
    ///
    /// # Errors
    /// See [`MembershipError`]. A change that was broken off goes on with the next one.
    pub async fn change_voters(&self, voters: BTreeSet<MemberId>) -> Result<(), MembershipError> {
        self.change_members(ChangeMembers::ReplaceAllVoters(voters)).await
    }

    async fn change_members(
        &self,
        change: ChangeMembers<MemberId, BasicNode>,
    ) -> Result<(), MembershipError> {
        match self.raft().change_membership(change, false).await {
            Ok(_) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

impl From<RaftError<TypeConfig, ClientWriteError<TypeConfig>>> for MembershipError {
    fn from(error: RaftError<TypeConfig, ClientWriteError<TypeConfig>>) -> Self {
        match error {
            RaftError::Fatal(_) => Self::Stopped,
            RaftError::APIError(ClientWriteError::ForwardToLeader(other)) => {
                Self::NotLeader { leader: other.leader_id }
            }
            RaftError::APIError(ClientWriteError::ChangeMembershipError(
                ChangeMembershipError::InProgress(_),
            )) => Self::UnderWay,
            RaftError::APIError(refused) => Self::Refused { why: refused.to_string() },
        }
    }
}

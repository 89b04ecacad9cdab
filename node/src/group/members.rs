//! Verbs for the leader of a group about who is in it: looking, adding, replacing, handing on the lead.
//!
//! Each may come twice, from whoever drives a change, and says the same then. It does not know why anything changes.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::{
    Group,
    call::{GroupAnswer, GroupResult},
    proposer::GroupError,
};
use crate::{
    endpoint::types::cluster::GroupView,
    place::steps::caught_up,
    raft::{fault::TransferError, group::RaftGroup, membership::MembershipError, types::MemberId},
};

/// A verb about the members of a group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum MembersCall {
    /// Who is in it, and how far are they? After a quorum round.
    Look,
    /// Send these members the log; with their peer addresses.
    AddLearners(BTreeMap<MemberId, String>),
    /// Send these members the log no more.
    RemoveLearners(BTreeSet<MemberId>),
    /// Let these members vote, and no others.
    ChangeVoters(BTreeSet<MemberId>),
    /// Let this member lead.
    Transfer {
        /// The member.
        to: MemberId,
    },
}

impl Group {
    pub(super) async fn members_call(&self, call: MembersCall) -> GroupResult {
        let raft = self.raft();
        match call {
            MembersCall::Look => {
                self.confirm().await?;
                return Ok(GroupAnswer::Status(Box::new(self.status())));
            }
            MembersCall::AddLearners(learners) => self.agreed(raft.add_learners(learners)).await?,
            MembersCall::RemoveLearners(learners) => self.agreed(raft.remove_learners(learners)).await?,
            MembersCall::ChangeVoters(voters) => self.agreed(raft.change_voters(voters)).await?,
            MembersCall::Transfer { to } => transfer(raft, &self.status(), to).await?,
        }
        Ok(GroupAnswer::Done)
    }

    /// A change that no quorum agrees on in time may still be agreed on later.
    async fn agreed(
        &self,
        change: impl Future<Output = Result<(), MembershipError>>,
    ) -> Result<(), GroupError> {
        match tokio::time::timeout(self.parts.proposer.patience(), change).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(MembershipError::NotLeader { leader })) => Err(GroupError::NotLeader { leader }),
            Ok(Err(MembershipError::Stopped)) => Err(GroupError::NotLeader { leader: None }),
            Ok(Err(error @ (MembershipError::UnderWay | MembershipError::Refused { .. }))) => {
                Err(GroupError::Conflict { why: error.to_string() })
            }
            Err(_) => Err(GroupError::Unknown),
        }
    }
}

/// Lets `to` lead a group, of which this member has this view and this Raft half. Asked of its leader.
pub(crate) async fn transfer(raft: &RaftGroup, view: &GroupView, to: MemberId) -> Result<(), GroupError> {
    let group = view.group;
    let Some(voter) = view.voters.iter().find(|voter| voter.member == to) else {
        let voters: Vec<String> = view.voters.iter().map(|voter| voter.member.to_string()).collect();
        let why = format!("member {to} has no vote in group {group}; name one of {}", voters.join(", "));
        return Err(GroupError::Refused { why });
    };
    if !caught_up(view, voter) {
        let why = format!(
            "member {to} lacks too much of group {group} to lead it; try again when it has caught up"
        );
        return Err(GroupError::Conflict { why });
    }
    match raft.transfer_leader(to).await {
        Ok(()) => Ok(()),
        Err(TransferError::NotLeader { leader }) => Err(GroupError::NotLeader { leader }),
        Err(error @ TransferError::NotAVoter { .. }) => Err(GroupError::Conflict { why: error.to_string() }),
        Err(TransferError::TimedOut { .. }) => Err(GroupError::Unknown),
    }
}

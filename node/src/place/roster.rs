//! Carries a change of the roster out in the meta group, one step per look.

use std::collections::BTreeSet;

use tokio::time::timeout;

use super::{
    LOOK, Placer,
    voters::{MetaStep, next_meta_step},
};
use crate::{
    meta::{placement::Placement, roster::RosterCommand},
    raft::types::MemberId,
};

impl Placer {
    /// Takes the next step towards the members on the roster. Answers what is under way, where something is.
    pub(super) async fn follow_roster(
        &self,
        placement: &Placement,
        reachable: &BTreeSet<MemberId>,
    ) -> Option<String> {
        let roster = self.meta.roster().filter(|roster| roster.has_changed())?;
        let step = next_meta_step(&roster, placement, &self.meta.status(), reachable);
        let words = words(&step)?;
        match timeout(LOOK, self.take_meta_step(step)).await {
            Ok(Ok(())) => Some(words),
            Ok(Err(why)) => Some(format!("{words}; tried again: {why}")),
            Err(_) => Some(format!("{words}; it takes its time")),
        }
    }

    async fn take_meta_step(&self, step: MetaStep) -> Result<(), String> {
        if matches!(step, MetaStep::Nothing | MetaStep::Wait(_)) {
            return Ok(());
        }
        // Whoever leads no more goes by a roster that may be replaced.
        self.meta.confirm().await.map_err(|error| error.to_string())?;
        let raft = self.meta.raft();
        match step {
            MetaStep::Nothing | MetaStep::Wait(_) => Ok(()),
            MetaStep::AddLearners(members) => {
                let learners = self.router.addresses(members);
                raft.add_learners(learners).await.map_err(|error| error.to_string())
            }
            MetaStep::RemoveLearners(members) => {
                raft.remove_learners(members).await.map_err(|error| error.to_string())
            }
            MetaStep::Transfer(to) => raft.transfer_leader(to).await.map_err(|error| error.to_string()),
            MetaStep::ChangeVoters(voters) => {
                tracing::info!(?voters, "replacing the voters of the meta group");
                raft.change_voters(voters).await.map_err(|error| error.to_string())
            }
            MetaStep::Finish(change) => {
                let finish = RosterCommand::Finish { change, at_ms: self.meta.wall_ms() };
                self.meta.change_roster(finish).await.map(drop).map_err(|error| error.to_string())
            }
        }
    }
}

/// A step in words; none where nothing is under way.
fn words(step: &MetaStep) -> Option<String> {
    let listed =
        |members: &BTreeSet<MemberId>| members.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    Some(match step {
        MetaStep::Nothing => return None,
        MetaStep::Wait(what) => what.clone(),
        MetaStep::AddLearners(members) => {
            format!("members {} are sent the meta group's log", listed(members))
        }
        MetaStep::RemoveLearners(members) => {
            format!("members {} are sent the meta group's log no more", listed(members))
        }
        MetaStep::Transfer(member) => format!("member {member} is to lead the meta group"),
        MetaStep::ChangeVoters(members) => {
            format!("members {} are to be the voters of the meta group", listed(members))
        }
        MetaStep::Finish(_) => "all is done; this is being noted".to_owned(),
    })
}

//! The next step that brings the meta group to the members on the roster, and a change of the roster to its end.
//!
//! ```text
//!   new member      learner ──► caught up ──► voter, where there are to be more
//!   member to go    carries nothing ──► another leads ──► no voter, no learner ──► off the roster
//! ```
//! Until the roster is changed for the first time the meta group keeps the voters that it began with. Pure: the same picture
//! gives the same step, so whoever leads the meta group next goes on where another stopped.

use std::collections::BTreeSet;

use super::steps::caught_up;
use crate::{
    config::META_VOTERS,
    endpoint::types::cluster::{GroupView, VoterView},
    meta::{placement::Placement, roster::Roster},
    raft::types::MemberId,
};

/// What to do next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MetaStep {
    /// All is as it is to be.
    Nothing,
    /// Something has to happen by itself first.
    Wait(String),
    /// Have members sent the log.
    AddLearners(BTreeSet<MemberId>),
    /// Send the log no more to members that are to go.
    RemoveLearners(BTreeSet<MemberId>),
    /// Let a member lead that stays.
    Transfer(MemberId),
    /// Replace the voters.
    ChangeVoters(BTreeSet<MemberId>),
    /// The change with this number is done.
    Finish(u64),
}

/// The next step.
#[must_use]
pub fn next_meta_step(
    roster: &Roster,
    placement: &Placement,
    view: &GroupView,
    reachable: &BTreeSet<MemberId>,
) -> MetaStep {
    let (voters, learners) = (ids(&view.voters), ids(&view.learners));
    let change = roster.under_way();
    let goes = change.and_then(|change| change.asked.kind.goes());
    // Whoever is still to give groups away stays, to hear of it.
    let going =
        goes.filter(|old| placement.drained.contains(old) && placement.carried_by(*old).next().is_none());
    let stay: BTreeSet<MemberId> =
        placement.members.iter().copied().filter(|member| Some(*member) != going).collect();
    let wanted = wanted_voters(&stay, &voters, view.leader, reachable);
    if view.joint {
        // A change that was broken off ends first.
        let known = wanted.iter().all(|member| voters.contains(member) || learners.contains(member));
        return MetaStep::ChangeVoters(if known { wanted } else { voters });
    }
    let missing: BTreeSet<MemberId> = stay
        .iter()
        .copied()
        .filter(|member| !voters.contains(member) && !learners.contains(member))
        .collect();
    if !missing.is_empty() {
        return MetaStep::AddLearners(missing);
    }
    if voters != wanted {
        return to_voters(wanted, view, reachable);
    }
    let rest: BTreeSet<MemberId> = learners.difference(&stay).copied().collect();
    if !rest.is_empty() {
        return MetaStep::RemoveLearners(rest);
    }
    let Some(change) = change else { return MetaStep::Nothing };
    let kind = &change.asked.kind;
    if let Some(new) = kind.comes().filter(|new| !roster.has_met(*new)) {
        return MetaStep::Wait(format!("member {new} has not come yet: start it"));
    }
    if let Some(old) = goes.filter(|old| Some(*old) != going) {
        let left = placement.carried_by(old).count();
        return MetaStep::Wait(format!(
            "member {old} still carries {left} groups, which go to other members"
        ));
    }
    if view.committed_index < view.members_index {
        return MetaStep::Wait("the members of the meta group are being agreed on".to_owned());
    }
    MetaStep::Finish(change.number)
}

fn to_voters(wanted: BTreeSet<MemberId>, view: &GroupView, reachable: &BTreeSet<MemberId>) -> MetaStep {
    let behind =
        view.learners.iter().find(|learner| wanted.contains(&learner.member) && !caught_up(view, learner));
    if let Some(VoterView { member, matched_index }) = behind {
        let (stored, last) = (matched_index.unwrap_or(0), view.last_log_index);
        return MetaStep::Wait(format!(
            "member {member} is catching up with the meta group: it has entry {stored} of {last}"
        ));
    }
    let next = view.voters.iter().find(|voter| {
        wanted.contains(&voter.member) && reachable.contains(&voter.member) && caught_up(view, voter)
    });
    match next {
        Some(next) if view.leader.is_some_and(|leader| !wanted.contains(&leader)) => {
            MetaStep::Transfer(next.member)
        }
        // Where nobody stays the leader goes with the last step.
        Some(_) | None => MetaStep::ChangeVoters(wanted),
    }
}

/// An odd number of the members, five at most: those that vote already, before them those that can be reached.
fn wanted_voters(
    members: &BTreeSet<MemberId>,
    voters: &BTreeSet<MemberId>,
    leader: Option<MemberId>,
    reachable: &BTreeSet<MemberId>,
) -> BTreeSet<MemberId> {
    let count = members.len().min(META_VOTERS);
    let odd = if count.is_multiple_of(2) { count.saturating_sub(1) } else { count };
    let mut chosen: Vec<MemberId> = members.iter().copied().collect();
    chosen.sort_by_key(|member| {
        (!voters.contains(member), !reachable.contains(member), Some(*member) != leader, *member)
    });
    let chosen: BTreeSet<MemberId> = chosen.into_iter().take(odd).collect();
    // Whoever cannot be reached does not catch up: where those that vote already do without it, nobody waits for it.
    let kept: BTreeSet<MemberId> = voters.intersection(members).copied().collect();
    let in_vain = chosen.difference(&kept).any(|new| !reachable.contains(new));
    if in_vain && !kept.len().is_multiple_of(2) { kept } else { chosen }
}

fn ids(voters: &[VoterView]) -> BTreeSet<MemberId> {
    voters.iter().map(|voter| voter.member).collect()
}

#[cfg(test)]
mod tests;

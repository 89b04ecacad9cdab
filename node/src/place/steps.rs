//! The next step that brings one group to the members that it is to have: a decision from what its leader says.
//!
//! ```text
//!   learner added ──► caught up ──► (leader among those that stay) ──► voters replaced ──► settled
//! ```
//! A group that is settled is looked at as well: what somebody asked of it who did not lead the meta group any more is undone.
//! Pure: the same picture gives the same step, so whoever leads the meta group next goes on where another stopped.

use std::collections::BTreeSet;

use crate::{
    endpoint::types::cluster::{GroupView, VoterView},
    meta::placement::GroupPlace,
    raft::types::MemberId,
};

/// A member that lacks no more entries than this is caught up: it has them before anybody notices.
pub const CAUGHT_UP: u64 = 200;

/// What to do next with a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// It is where it is to be.
    Nothing,
    /// Something has to happen by itself first.
    Wait(String),
    /// Have a member sent the log.
    AddLearner(MemberId),
    /// Send the log no more to members that are not wanted.
    RemoveLearners(BTreeSet<MemberId>),
    /// Let a member lead that stays.
    Transfer(MemberId),
    /// Replace the voters.
    ChangeVoters(BTreeSet<MemberId>),
    /// Note in the meta group that the members are these.
    Settle(BTreeSet<MemberId>),
}

/// The next step of a group. Only members that can be reached are asked to lead.
#[must_use]
pub fn next_step(place: &GroupPlace, view: &GroupView, reachable: &BTreeSet<MemberId>) -> Step {
    let Some(leader) = view.leader else { return Step::Wait("it has no leader right now".to_owned()) };
    let wanted: BTreeSet<MemberId> = place.replicas.iter().copied().collect();
    let (voters, learners) = (ids(&view.voters), ids(&view.learners));
    if voters == wanted && !view.joint {
        return match () {
            () if !learners.is_empty() => Step::RemoveLearners(learners),
            () if place.settled() => Step::Nothing,
            () if view.committed_index < view.members_index => {
                Step::Wait("its members are being agreed on".to_owned())
            }
            () => Step::Settle(voters),
        };
    }
    let missing = wanted.iter().find(|member| !voters.contains(member) && !learners.contains(member));
    if view.joint {
        // A change that was broken off ends first, where it is not the one that is wanted.
        return Step::ChangeVoters(if missing.is_some() { voters } else { wanted });
    }
    if let Some(member) = missing {
        return Step::AddLearner(*member);
    }
    let behind =
        view.learners.iter().find(|learner| wanted.contains(&learner.member) && !caught_up(view, learner));
    if let Some(VoterView { member, matched_index }) = behind {
        let stored = matched_index.unwrap_or(0);
        return Step::Wait(format!(
            "member {member} is catching up: it has entry {stored} of {}",
            view.last_log_index
        ));
    }
    let stays = |member: &&MemberId| {
        let voter = view.voters.iter().find(|voter| voter.member == **member);
        reachable.contains(member) && voter.is_some_and(|voter| caught_up(view, voter))
    };
    match place.replicas.iter().find(stays) {
        Some(next) if !wanted.contains(&leader) => Step::Transfer(*next),
        // Where nobody stays the leader goes with the last step.
        Some(_) | None => Step::ChangeVoters(wanted),
    }
}

/// Whether a member has all but the newest entries, as the leader that says so knows.
#[must_use]
pub fn caught_up(view: &GroupView, voter: &VoterView) -> bool {
    view.leader == Some(voter.member)
        || voter.matched_index.is_some_and(|stored| stored + CAUGHT_UP >= view.last_log_index)
}

fn ids(voters: &[VoterView]) -> BTreeSet<MemberId> {
    voters.iter().map(|voter| voter.member).collect()
}

#[cfg(test)]
mod tests {
    use holdfast_partitioner::GroupId;

    use super::*;

    /// The next step where all members can be reached.
    fn step_of(place: &GroupPlace, view: &GroupView) -> Step {
        next_step(place, view, &(1..=9).collect())
    }

    fn place(replicas: &[MemberId], leaving: &[MemberId]) -> GroupPlace {
        GroupPlace {
            replicas: replicas.to_vec(),
            founders: Vec::new(),
            leaving: leaving.iter().copied().collect(),
            why: "test".to_owned(),
            since: 3,
        }
    }

    fn view(leader: MemberId, voters: &[MemberId], learners: &[(MemberId, u64)]) -> GroupView {
        let voter = |member: &MemberId| VoterView { member: *member, matched_index: Some(1_000) };
        let learner =
            |(member, stored): &(MemberId, u64)| VoterView { member: *member, matched_index: Some(*stored) };
        GroupView {
            leader: Some(leader),
            last_log_index: 1_000,
            committed_index: 1_000,
            members_index: 900,
            voters: voters.iter().map(voter).collect(),
            learners: learners.iter().map(learner).collect(),
            ..GroupView::unreachable(GroupId(1))
        }
    }

    #[test]
    fn a_replica_moves_step_by_step_and_the_leader_goes_before_its_member() {
        let moving = place(&[2, 3, 4], &[1]);
        assert_eq!(step_of(&moving, &view(1, &[1, 2, 3], &[])), Step::AddLearner(4));
        let said = step_of(&moving, &view(1, &[1, 2, 3], &[(4, 12)]));
        assert_eq!(said, Step::Wait("member 4 is catching up: it has entry 12 of 1000".to_owned()));
        let ready = view(1, &[1, 2, 3], &[(4, 900)]);
        assert_eq!(step_of(&moving, &ready), Step::Transfer(2));
        assert_eq!(next_step(&moving, &ready, &[1, 3, 4].into()), Step::Transfer(3), "member 2 is down");
        assert_eq!(
            step_of(&moving, &GroupView { leader: Some(3), ..ready }),
            Step::ChangeVoters([2, 3, 4].into())
        );
        assert_eq!(step_of(&moving, &view(3, &[2, 3, 4], &[])), Step::Settle([2, 3, 4].into()));
    }

    #[test]
    fn a_change_that_was_broken_off_is_gone_on_with() {
        let moving = place(&[2, 3, 4], &[1]);
        let joint = GroupView { joint: true, ..view(2, &[1, 2, 3, 4], &[]) };
        assert_eq!(step_of(&moving, &joint), Step::ChangeVoters([2, 3, 4].into()));
        // Somebody has wanted something else since: first an end with all who vote.
        let other = place(&[2, 3, 5], &[1, 4]);
        assert_eq!(step_of(&other, &joint), Step::ChangeVoters([1, 2, 3, 4].into()));
        let unsure = GroupView { members_index: 1_001, ..view(2, &[2, 3, 4], &[]) };
        assert_eq!(step_of(&moving, &unsure), Step::Wait("its members are being agreed on".to_owned()));
        let rest = view(2, &[2, 3, 4], &[(6, 5)]);
        assert_eq!(step_of(&moving, &rest), Step::RemoveLearners([6].into()));
    }

    #[test]
    fn all_members_may_be_replaced_at_once() {
        let moving = place(&[4, 5, 6], &[1, 2, 3]);
        let ready = view(1, &[1, 2, 3], &[(4, 1_000), (5, 1_000), (6, 1_000)]);
        assert_eq!(step_of(&moving, &ready), Step::ChangeVoters([4, 5, 6].into()));
    }

    #[test]
    fn nothing_happens_to_a_settled_group_or_one_without_leader() {
        let mut settled = place(&[1, 2, 3], &[]);
        settled.why.clear();
        assert_eq!(step_of(&settled, &view(1, &[1, 2, 3], &[])), Step::Nothing);
        let leaderless = GroupView { leader: None, ..view(1, &[1, 2, 3], &[]) };
        assert_eq!(step_of(&settled, &leaderless), Step::Wait("it has no leader right now".to_owned()));
    }

    #[test]
    fn what_came_too_late_to_a_settled_group_is_undone() {
        let mut settled = place(&[1, 2, 3], &[]);
        settled.why.clear();
        assert_eq!(step_of(&settled, &view(1, &[1, 2, 3], &[(4, 0)])), Step::RemoveLearners([4].into()));
        assert_eq!(step_of(&settled, &view(2, &[2, 3, 4], &[])), Step::AddLearner(1));
        assert_eq!(
            step_of(&settled, &view(2, &[2, 3, 4], &[(1, 1_000)])),
            Step::ChangeVoters([1, 2, 3].into())
        );
    }

    #[test]
    fn a_fresh_group_is_settled_as_it_was_founded() {
        let fresh = GroupPlace::fresh(vec![1, 2, 3], "", 0);
        assert_eq!(step_of(&fresh, &view(1, &[1, 2, 3], &[])), Step::Settle([1, 2, 3].into()));
    }
}

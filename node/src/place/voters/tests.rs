//! The meta group while members come and go.

use holdfast_partitioner::GroupId;

use super::*;
use crate::{
    log::disk_id::DiskId,
    meta::{
        MetaCommand, MetaOutcome, MetaTable,
        command::MemberRecord,
        placement::PlaceCommand,
        roster::{MemberChangeKind, NewMemberChange, RosterCommand, RosterDone},
    },
};

fn record(id: MemberId) -> MemberRecord {
    MemberRecord { id, http: format!("h{id}"), grpc: format!("g{id}"), peer: format!("p{id}") }
}

fn begun(count: u64) -> MetaTable {
    let members = (1..=count).collect();
    let mut table = MetaTable::new();
    let mut placement = Placement::spread(&members, &[GroupId(1)], 3);
    placement.groups.values_mut().for_each(|place| place.founders.clear());
    table.apply(MetaCommand::Place(PlaceCommand::Begin(placement))).result.unwrap();
    change(&mut table, RosterCommand::Begin((1..=count).map(record).collect()));
    (1..=count).for_each(|member| meet(&mut table, member));
    table
}

fn change(table: &mut MetaTable, command: RosterCommand) -> MetaOutcome {
    table.apply(MetaCommand::Roster(command)).result.unwrap()
}

fn meet(table: &mut MetaTable, member: MemberId) {
    change(table, RosterCommand::Meet { record: record(member), disk: DiskId::new(member.into()) });
}

fn ask(table: &mut MetaTable, kind: MemberChangeKind) -> u64 {
    let request = table.roster().unwrap().past().count() as u64;
    let new = NewMemberChange { kind, actor: String::new(), reason: String::new(), request, at_ms: 0 };
    match change(table, RosterCommand::Change(new)) {
        MetaOutcome::Roster(RosterDone::Begun(change)) => change.number,
        other => panic!("{other:?}"),
    }
}

/// The placer has brought the one group to these members.
fn settle(table: &mut MetaTable, replicas: [MemberId; 3]) {
    let planned = table.placement().unwrap().version;
    let group = GroupId(1);
    let set = PlaceCommand::SetReplicas { group, replicas: replicas.to_vec(), why: "test".into(), planned };
    table.apply(MetaCommand::Place(set)).result.unwrap();
    let settle = PlaceCommand::Settle { group, members: replicas.into(), since: planned + 1 };
    table.apply(MetaCommand::Place(settle)).result.unwrap();
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
        ..GroupView::unreachable(GroupId::META)
    }
}

fn step(table: &MetaTable, view: &GroupView) -> MetaStep {
    step_with(table, view, &(1..=9).collect())
}

fn step_with(table: &MetaTable, view: &GroupView, reachable: &BTreeSet<MemberId>) -> MetaStep {
    next_meta_step(table.roster().unwrap(), table.placement().unwrap(), view, reachable)
}

#[test]
fn three_members_become_five_and_all_five_vote_at_once() {
    let mut table = begun(3);
    let first = ask(&mut table, MemberChangeKind::Add(record(4)));
    let said = step(&table, &view(1, &[1, 2, 3], &[]));
    assert_eq!(said, MetaStep::Wait("member 4 has not come yet: start it".to_owned()));
    meet(&mut table, 4);
    assert_eq!(step(&table, &view(1, &[1, 2, 3], &[])), MetaStep::AddLearners([4].into()));
    // Four voters survive no more than three do.
    assert_eq!(step(&table, &view(1, &[1, 2, 3], &[(4, 0)])), MetaStep::Finish(first));
    change(&mut table, RosterCommand::Finish { change: first, at_ms: 0 });
    assert_eq!(step(&table, &view(1, &[1, 2, 3], &[(4, 0)])), MetaStep::Nothing);
    let second = ask(&mut table, MemberChangeKind::Add(record(5)));
    meet(&mut table, 5);
    let said = step(&table, &view(1, &[1, 2, 3], &[(4, 1_000), (5, 7)]));
    assert!(matches!(&said, MetaStep::Wait(why) if why.contains("member 5 is catching up")), "{said:?}");
    let ready = view(1, &[1, 2, 3], &[(4, 1_000), (5, 990)]);
    assert_eq!(step(&table, &ready), MetaStep::ChangeVoters([1, 2, 3, 4, 5].into()));
    let unsure = GroupView { members_index: 1_001, ..view(1, &[1, 2, 3, 4, 5], &[]) };
    assert!(matches!(step(&table, &unsure), MetaStep::Wait(_)));
    assert_eq!(step(&table, &view(1, &[1, 2, 3, 4, 5], &[])), MetaStep::Finish(second));
}

#[test]
fn a_follower_that_is_lost_keeps_no_change_from_ending() {
    let mut table = begun(3);
    let first = ask(&mut table, MemberChangeKind::Add(record(4)));
    meet(&mut table, 4);
    change(&mut table, RosterCommand::Finish { change: first, at_ms: 0 });
    let second = ask(&mut table, MemberChangeKind::Add(record(5)));
    meet(&mut table, 5);
    let without_4: BTreeSet<MemberId> = [1, 2, 3, 5].into();
    let follow = view(1, &[1, 2, 3], &[(4, 0), (5, 1_000)]);
    assert_eq!(step_with(&table, &follow, &without_4), MetaStep::Finish(second));
    assert!(matches!(step(&table, &follow), MetaStep::Wait(_)), "it is there, and catches up");
    change(&mut table, RosterCommand::Finish { change: second, at_ms: 0 });
    // Two voters are worse than three of which one is to go.
    ask(&mut table, MemberChangeKind::Replace { old: 3, new: record(6) });
    meet(&mut table, 6);
    settle(&mut table, [1, 2, 5]);
    let follow = view(1, &[1, 2, 3], &[(4, 0), (5, 0), (6, 0)]);
    assert!(matches!(step_with(&table, &follow, &[1, 2, 3].into()), MetaStep::Wait(_)));
}

#[test]
fn a_member_that_goes_gives_everything_away_first_and_leads_no_more() {
    let mut table = begun(4);
    let number = ask(&mut table, MemberChangeKind::Remove { member: 1 });
    let all = view(1, &[1, 2, 3], &[(4, 1_000)]);
    let said = step(&table, &all);
    assert!(matches!(&said, MetaStep::Wait(why) if why.contains("still carries 1 groups")), "{said:?}");
    settle(&mut table, [2, 3, 4]);
    assert_eq!(step(&table, &all), MetaStep::Transfer(2));
    assert_eq!(step_with(&table, &all, &[1, 3, 4].into()), MetaStep::Transfer(3), "member 2 is down");
    let led = GroupView { leader: Some(2), ..all };
    assert_eq!(step(&table, &led), MetaStep::ChangeVoters([2, 3, 4].into()));
    assert_eq!(step(&table, &view(2, &[2, 3, 4], &[(1, 5)])), MetaStep::RemoveLearners([1].into()));
    assert_eq!(step(&table, &view(2, &[2, 3, 4], &[])), MetaStep::Finish(number));
    change(&mut table, RosterCommand::Finish { change: number, at_ms: 0 });
    assert_eq!(step(&table, &view(2, &[2, 3, 4], &[])), MetaStep::Nothing);
}

#[test]
fn five_members_become_three() {
    let mut table = begun(5);
    ask(&mut table, MemberChangeKind::Remove { member: 5 });
    let all = view(1, &[1, 2, 3, 4, 5], &[]);
    assert_eq!(step(&table, &all), MetaStep::ChangeVoters([1, 2, 3].into()));
    assert_eq!(
        step_with(&table, &all, &[1, 3, 4].into()),
        MetaStep::ChangeVoters([1, 3, 4].into()),
        "those that answer vote"
    );
    assert_eq!(step(&table, &view(1, &[1, 2, 3], &[])), MetaStep::AddLearners([4].into()));
    assert_eq!(step(&table, &view(1, &[1, 2, 3], &[(4, 9)])), MetaStep::Finish(1));
}

#[test]
fn a_dead_member_goes_after_its_successor_has_come() {
    let mut table = begun(3);
    let number = ask(&mut table, MemberChangeKind::Replace { old: 3, new: record(4) });
    let alive: BTreeSet<MemberId> = [1, 2, 4].into();
    assert!(matches!(step_with(&table, &view(1, &[1, 2, 3], &[]), &alive), MetaStep::Wait(_)));
    meet(&mut table, 4);
    assert_eq!(step_with(&table, &view(1, &[1, 2, 3], &[]), &alive), MetaStep::AddLearners([4].into()));
    let follows = view(1, &[1, 2, 3], &[(4, 1_000)]);
    assert!(matches!(step_with(&table, &follows, &alive), MetaStep::Wait(_)), "it still carries a group");
    settle(&mut table, [1, 2, 4]);
    assert_eq!(step_with(&table, &follows, &alive), MetaStep::ChangeVoters([1, 2, 4].into()));
    let joint = GroupView { joint: true, ..view(1, &[1, 2, 3, 4], &[]) };
    assert_eq!(step_with(&table, &joint, &alive), MetaStep::ChangeVoters([1, 2, 4].into()));
    assert_eq!(step_with(&table, &view(1, &[1, 2, 4], &[]), &alive), MetaStep::Finish(number));
}

//! The states of a new cluster, from those of small lost ones; the random ones are in `random`.

mod random;

use holdfast_locktable::{
    command::{Command, OpenSession, Own, Proposal},
    ids::{Revision, SessionId, Term},
    metadata::Metadata,
    table::Position,
};

use super::*;
use crate::meta::command::MetaCommand;

fn lost() -> ClusterId {
    "prod".parse().unwrap()
}

fn numbers(groups: u32) -> Vec<GroupId> {
    (1..=groups).map(GroupId).collect()
}

/// A fresh cluster that has a map.
fn cluster(groups: u32) -> Found {
    let map = PartitionMap::initial(&numbers(groups)).unwrap();
    let mut meta = MetaTable::new();
    meta.apply(MetaCommand::InitMap { map: map.clone() }).result.unwrap();
    let tables = numbers(groups).into_iter().map(|group| {
        let mut state = LockTable::new(group);
        let ranges = map.ranges_of(group);
        run(&mut state, 1, Command::Own(Own { group, map_epoch: map.epoch(), ranges }));
        (group, At { state, index: 1 })
    });
    Found { meta: At { state: meta, index: 9 }, groups: tables.collect() }
}

fn run(table: &mut LockTable, index: u64, command: Command) {
    let at = Position { index, term: Term(1) };
    table.apply(at, &Proposal { at_ms: 1, command }).result.unwrap();
}

fn plan(lost: &ClusterId) -> Plan<'_> {
    Plan {
        incarnation: 2,
        members: [1, 2, 3].into(),
        replicas: 3,
        grants: Grants::AfterLongestTtl,
        lost,
        at_ms: 7,
    }
}

fn locks(rebuilt: &Rebuilt, group: u32) -> LockTable {
    LockTable::decode(&rebuilt.groups[&GroupId(group)].state).unwrap()
}

fn meta(rebuilt: &Rebuilt) -> MetaTable {
    MetaTable::decode(&rebuilt.groups[&GroupId::META].state).unwrap()
}

#[test]
fn every_group_begins_in_the_new_incarnation_under_a_newer_map() {
    let (found, lost) = (cluster(4), lost());
    let rebuilt = rebuild(&found, &plan(&lost)).unwrap();
    assert_eq!(rebuilt.groups.keys().map(|group| group.0).collect::<Vec<_>>(), [0, 1, 2, 3, 4]);
    let meta = meta(&rebuilt);
    let map = meta.map().unwrap();
    assert_eq!((map.epoch(), map.rules()), (MapEpoch(2 << 32), found.meta.state.map().unwrap().rules()));
    for group in 1..=4 {
        let table = locks(&rebuilt, group);
        assert_eq!(table.revision(), Revision(2 << 44));
        assert_eq!(table.ownership_epoch(), map.epoch());
        assert_eq!(table.paused_ms(), Some(DEFAULT_TTL_MS));
        assert_eq!(rebuilt.groups[&GroupId(group)].index, 1 + LOST_ENTRIES);
    }
    let last = meta.audit(1).next().unwrap().record.clone();
    assert_eq!((last.action.as_str(), last.target.as_str(), last.at_ms), ("restore", "cluster prod", 7));
    assert_eq!(meta.placement(), None);
}

#[test]
fn all_groups_wait_for_the_longest_ttl_of_any() {
    let mut found = cluster(2);
    let open =
        OpenSession { session: SessionId::new(1).unwrap(), ttl_ms: 45_000, metadata: Metadata::default() };
    run(&mut found.groups.get_mut(&GroupId(2)).unwrap().state, 2, Command::OpenSession(open));
    let lost = lost();
    let rebuilt = rebuild(&found, &plan(&lost)).unwrap();
    assert_eq!((rebuilt.pause_ms, locks(&rebuilt, 1).paused_ms()), (Some(45_000), Some(45_000)));
    let at_once = rebuild(&found, &Plan { grants: Grants::AtOnce, ..plan(&lost) }).unwrap();
    assert_eq!((at_once.pause_ms, locks(&at_once, 2).paused_ms()), (None, None));
}

#[test]
fn more_members_than_replicas_get_a_placement_that_is_agreed_on() {
    let (found, lost) = (cluster(4), lost());
    let five = Plan { members: (1..=7).collect(), ..plan(&lost) };
    let rebuilt = rebuild(&found, &five).unwrap();
    let meta = meta(&rebuilt);
    let placement = meta.placement().unwrap();
    assert!(placement.unsettled().next().is_none());
    for group in 1..=4 {
        let restored = &rebuilt.groups[&GroupId(group)];
        let replicas: BTreeSet<MemberId> =
            placement.groups[&GroupId(group)].replicas.iter().copied().collect();
        assert_eq!((&restored.voters, restored.voters.len()), (&replicas, 3));
    }
    let meta_group = &rebuilt.groups[&GroupId::META];
    assert_eq!((meta_group.voters.len(), meta_group.members.len()), (META_VOTERS, 7));
}

#[test]
fn groups_that_own_nothing_need_no_state() {
    let (mut found, lost) = (cluster(2), lost());
    found.groups.insert(GroupId(4), At { state: LockTable::new(GroupId(4)), index: 5 });
    let rebuilt = rebuild(&found, &plan(&lost)).unwrap();
    assert_eq!(rebuilt.lock_groups, 4);
    assert_eq!(
        (locks(&rebuilt, 3).revision(), locks(&rebuilt, 3).owned_ranges()),
        (Revision(2 << 44), vec![])
    );
    assert_eq!(rebuilt.groups[&GroupId(3)].index, LOST_ENTRIES);
}

#[test]
fn what_does_not_make_up_a_cluster_is_refused() {
    let lost = lost();
    let refused = |found: &Found, plan: &Plan<'_>| rebuild(found, plan).unwrap_err();
    let whole = cluster(3);
    let mut part = whole.clone();
    part.groups.remove(&GroupId(2));
    assert_eq!(refused(&part, &plan(&lost)), RebuildError::MissingGroup { group: GroupId(2) });
    let mut older = whole.clone();
    older.meta.state = meta(&rebuild(&whole, &Plan { incarnation: 1, ..plan(&lost) }).unwrap());
    assert!(rebuild(&older, &plan(&lost)).is_ok());
    older.groups.get_mut(&GroupId(3)).unwrap().state = LockTable::new(GroupId(3));
    let other_map = refused(&older, &plan(&lost));
    assert!(matches!(other_map, RebuildError::Refused(RestoreRefusal::OtherMap { .. })), "{other_map}");
    let mut fresh = whole.clone();
    fresh.meta.state = MetaTable::new();
    assert_eq!(refused(&fresh, &plan(&lost)), RebuildError::NoMap);
    assert_eq!(refused(&whole, &Plan { members: [].into(), ..plan(&lost) }), RebuildError::NoMembers);
    let low = refused(&whole, &Plan { incarnation: 0, ..plan(&lost) });
    assert!(matches!(low, RebuildError::EpochsUsedUp { .. } | RebuildError::Refused(_)), "{low}");
    let mut full = whole.clone();
    full.groups.get_mut(&GroupId(1)).unwrap().index = INDEX_END - 5;
    assert!(matches!(refused(&full, &plan(&lost)), RebuildError::LogUsedUp { .. }));
}

//! Snapshots of real states, whole and damaged in every way that a store can damage them.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use holdfast_locktable::{
    command::{Command, OpenSession, Own, Proposal, Seal},
    ids::{SessionId, Term},
    metadata::Metadata,
    table::Position,
};
use holdfast_partitioner::PartitionMap;
use openraft::{RaftTypeConfig, vote::RaftLeaderId};

use super::*;
use crate::{
    meta::MetaCommand,
    raft::types::{LogId, TypeConfig},
    snapshot::{
        memory_store::MemoryStore,
        set::SetId,
        source::Capture,
        store::{PutMode, SnapshotStore},
    },
};

struct World {
    store: MemoryStore,
    catalog: SnapshotCatalog,
    map: PartitionMap,
}

fn number(group: u32) -> GroupNumber {
    GroupNumber::new(group).unwrap()
}

impl World {
    /// A cluster of two lock groups.
    fn new() -> Self {
        let store = MemoryStore::default();
        let catalog = SnapshotCatalog::new(Arc::new(store.clone()), "prod".parse().unwrap());
        Self { store, catalog, map: PartitionMap::initial(&[GroupId(1), GroupId(2)]).unwrap() }
    }

    fn meta(&self) -> MetaTable {
        let mut meta = MetaTable::new();
        meta.apply(MetaCommand::InitMap { map: self.map.clone() }).result.unwrap();
        meta
    }

    /// A group with its ranges and one session.
    fn locks(&self, group: u32) -> LockTable {
        let (mut table, group) = (LockTable::new(GroupId(group)), GroupId(group));
        let own = Own { group, map_epoch: self.map.epoch(), ranges: self.map.ranges_of(group) };
        let session = SessionId::new(7).unwrap();
        let open = OpenSession { session, ttl_ms: 10_000, metadata: Metadata::default() };
        apply(&mut table, 1, Command::Own(own));
        apply(&mut table, 2, Command::OpenSession(open));
        table
    }

    async fn stored(&self, group: u32, data: Vec<u8>, revision: u64) -> Manifest {
        let leader = <TypeConfig as RaftTypeConfig>::LeaderId::new(3, 1).to_committed();
        let capture =
            Capture { data: data.into(), last_log_id: LogId::new(leader, 9), revision, map_epoch: 1 };
        self.catalog.write(number(group), &capture, 1, 1_000 + revision).await.unwrap()
    }

    async fn stored_locks(&self, table: &LockTable) -> Manifest {
        self.stored(table.group().0, table.encode(), table.revision().0).await
    }

    /// A set of these groups and of group 0.
    async fn set(&self, tables: &[LockTable]) -> SetManifest {
        let mut snapshots = vec![self.stored(0, self.meta().encode().unwrap(), 0).await];
        for table in tables {
            snapshots.push(self.stored_locks(table).await);
        }
        SetManifest::of(&"prod".parse().unwrap(), self.map.epoch().0, &snapshots, 1, 5_000)
    }

    async fn why(&self, manifest: Manifest) -> String {
        match examine(&self.catalog, manifest).await.unwrap().checked {
            Checked::Broken { why } => why,
            other => panic!("{other:?}"),
        }
    }
}

fn apply(table: &mut LockTable, index: u64, command: Command) {
    let applied = table.apply(Position { index, term: Term(1) }, &Proposal { at_ms: 1, command });
    applied.result.unwrap();
}

#[tokio::test]
async fn what_is_in_a_snapshot_is_said() {
    let world = World::new();
    let manifest = world.stored_locks(&world.locks(2)).await;
    let Checked::Whole(Content::Locks(locks)) =
        examine(&world.catalog, manifest.clone()).await.unwrap().checked
    else {
        panic!("it is not whole");
    };
    assert_eq!((locks.counts.sessions, locks.counts.held, locks.moving), (1, 0, None));
    assert_eq!((locks.ownership_epoch, locks.ranges > 0), (MapEpoch::FIRST, true));
    assert_eq!(described(manifest).checked, Checked::NotYet);

    let meta = world.stored(0, world.meta().encode().unwrap(), 0).await;
    let Checked::Whole(Content::Meta(meta)) = examine(&world.catalog, meta).await.unwrap().checked else {
        panic!("it is not whole");
    };
    assert_eq!((meta.map_epoch, meta.groups, meta.change), (MapEpoch::FIRST, 2, None));
}

#[tokio::test]
async fn a_snapshot_that_cannot_be_used_says_why() {
    let world = World::new();
    let table = world.locks(1);
    let cut = world.stored(1, table.encode()[..20].to_vec(), 1).await;
    assert!(world.why(cut).await.contains("cannot be decoded"));
    let foreign = world.stored(1, world.locks(2).encode(), 2).await;
    assert!(world.why(foreign).await.contains("holds the state of group 2"));
    let garbage = world.stored(0, b"garbage".to_vec(), 3).await;
    assert!(world.why(garbage).await.contains("cannot be decoded"));
    let damaged = world.stored(1, table.encode(), 4).await;
    world.store.put(&damaged.data_object().unwrap(), "x".into(), PutMode::Replace).await.unwrap();
    let why = world.why(damaged).await;
    assert!(why.contains("is damaged") && why.ends_with("restore from an older one"), "{why}");
}

#[tokio::test]
async fn a_set_is_whole_where_its_snapshots_are_and_go_together() {
    let world = World::new();
    let set = world.set(&[world.locks(1), world.locks(2)]).await;
    let mut seen = 0;
    let examined = examine_set(&world.catalog, set, |_| seen += 1).await.unwrap();
    assert_eq!((examined.fault, examined.snapshots.len(), seen), (None, 3, 3));
}

#[tokio::test]
async fn a_set_that_cannot_be_used_says_why() {
    let world = World::new();
    let why = async |set: SetManifest| examine_set(&world.catalog, set, |_| {}).await.unwrap().fault.unwrap();
    let few = world.set(&[world.locks(1)]).await;
    assert!(why(few).await.contains("there is no snapshot of group 2"));

    let world = World::new();
    let why = async |set: SetManifest| examine_set(&world.catalog, set, |_| {}).await.unwrap().fault.unwrap();
    let good = world.set(&[world.locks(1), world.locks(2)]).await;
    let epoch = SetManifest { map_epoch: 9, set: SetId::new(5_000, 9, 1), ..good.clone() };
    assert!(why(epoch).await.contains("says map epoch 9, and its snapshots are of epoch 1"));
    let lost = world.catalog.find(number(2), &good.snapshots[2].snapshot).await.unwrap();
    world.catalog.delete(&lost).await.unwrap();
    let said = why(good).await;
    assert!(said.contains("of group 2 is gone"), "{said}");
}

#[tokio::test]
async fn a_set_with_a_move_in_the_middle_says_so() {
    let world = World::new();
    let mut source = world.locks(1);
    let range = world.map.ranges_of(GroupId(1)).remove(0);
    let seal = Seal { move_number: MoveNumber(1), range, term: Term(1), left: Vec::new() };
    apply(&mut source, 3, Command::Seal(seal));
    let set = world.set(&[source, world.locks(2)]).await;
    let fault = examine_set(&world.catalog, set, |_| {}).await.unwrap().fault.unwrap();
    assert!(fault.contains("do not go together: group 1 took part in move 1"), "{fault}");
    assert!(fault.ends_with("take a new set, and restore from an older one"), "{fault}");
}

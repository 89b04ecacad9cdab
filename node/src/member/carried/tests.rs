//! Groups that come to a member and leave it while it goes on: a member that is the only voter there is, over memory.

use std::time::Duration;

use bytes::Bytes;
use futures::{StreamExt, stream::BoxStream};
use holdfast_locktable::{
    command::{RequestId, Wait},
    ids::SessionId,
    metadata::Metadata,
    name::Name,
};
use holdfast_partitioner::{PartitionMap, Registry};
use tokio::time::timeout;

use super::*;
use crate::{
    actors::ActorHost,
    clock::Clock,
    config::{GroupsConfig, MemberConfig, MemberEntry},
    endpoint::{
        ApiError, Endpoint,
        holds::far::FarHolds,
        places::PlacesTell,
        types::{AcquireRequest, WatchEvent, WatchRequest},
    },
    group::proposer::GroupError,
    log::{
        group_number::GroupNumber,
        memory::{FlushMode, MemoryLog},
    },
    member::{
        ground::{Disk, Ground, measured},
        parts::{self, MapTell, Opened},
    },
    meta::placement::GroupPlace,
    peer::{Heard, MemoryNetwork},
    snapshot::{local::MemorySnapshots, memory_store::MemoryStore},
    watch::Restored,
};

/// Longest that anything may take on a busy machine.
const LIMIT: Duration = Duration::from_secs(30);
const GROUP: GroupId = GroupId(1);

/// Parts of a member without a meta group: what that would say is said by the test.
struct Stage {
    carried: Carried,
    shared: Arc<Shared>,
    places: PlacesTell,
    map: MapTell,
    log: MemoryLog,
}

impl Stage {
    fn new() -> Self {
        let entry = MemberEntry { id: 1, peer: "member-1:7612".to_owned(), ..MemberEntry::default() };
        let config = MemberConfig {
            cluster: "carried".to_owned(),
            member: 1,
            members: vec![entry],
            groups: GroupsConfig { lock_groups: 1, replicas: 3 },
            ..MemberConfig::default()
        };
        let log = MemoryLog::new(FlushMode::Immediate);
        let cluster = config.cluster.parse().unwrap();
        let ground = Ground {
            clock: Clock::system(),
            host: ActorHost::threads().unwrap(),
            disk: Disk::Memory { log: log.clone(), snapshots: MemorySnapshots::default() },
            log_failures: log.failures(),
            transport: Arc::new(MemoryNetwork::new().transport(cluster, 1, Heard::new())),
            snapshots: Arc::new(MemoryStore::default()),
            metrics: measured(&config).unwrap(),
            strategies: Registry::built_in(),
        };
        let Opened { shared, service, map_tell, places_tell, .. } = parts::open(config, ground).unwrap();
        let shared = Arc::new(shared);
        let (fatal, _) = watch::channel(None);
        let carried = Carried::new(shared.clone(), service, fatal);
        Self { carried, shared, places: places_tell, map: map_tell, log }
    }

    /// Has the member follow a placement.
    async fn follow(&mut self, placement: &Placement) {
        self.places.tell(Some(placement.clone()), true);
        self.carried.follow_once(placement).await.unwrap();
    }

    /// Has the member carry the group and lead it.
    async fn lead(&mut self) -> Group {
        let everywhere = self.places.everywhere();
        self.follow(&everywhere).await;
        let group = self.shared.router.group(GROUP).unwrap();
        let mut leadership = group.raft().leadership();
        timeout(LIMIT, leadership.wait_for(|now| now.here)).await.unwrap().unwrap();
        group
    }

    /// The verbs of the member, once there is a map.
    fn endpoint(&self) -> Endpoint {
        self.map.send_replace(Some(Arc::new(PartitionMap::initial(&[GROUP]).unwrap())));
        self.shared.endpoint(self.log.failures(), FarHolds::new().0)
    }
}

/// A placement by which the group is to be on another member, and this one is still in it.
fn leaving() -> Placement {
    let place = GroupPlace {
        replicas: vec![2],
        founders: Vec::new(),
        leaving: [1].into(),
        why: "a test".to_owned(),
        since: 1,
    };
    Placement { version: 1, groups: [(GROUP, place)].into(), ..Placement::default() }
}

/// A placement by which this member carries nothing.
fn gone() -> Placement {
    Placement { version: 2, ..Placement::default() }
}

fn one_session() -> Arc<[SessionId]> {
    Arc::from([SessionId::new(7).unwrap()])
}

async fn acquire(endpoint: &Endpoint, session: SessionId, name: &str) {
    let request = AcquireRequest {
        name: Name::lock(name).unwrap(),
        session,
        request: RequestId::Text(Arc::from(name)),
        wait: Wait::Try,
        metadata: Metadata::default(),
        value: Bytes::new(),
    };
    endpoint.acquire(request).await.unwrap();
}

/// The name that is granted next, as a watch tells.
async fn granted(changes: &mut BoxStream<'static, Result<WatchEvent, ApiError>>) -> String {
    loop {
        let event = timeout(LIMIT, changes.next()).await.unwrap().unwrap().unwrap();
        if event.what == "granted" {
            return event.name;
        }
    }
}

/// Waits for what must come true.
async fn until(what: &str, mut come: impl FnMut() -> bool) {
    let waited = async {
        while !come() {
            tokio::task::yield_now().await;
        }
    };
    assert!(timeout(LIMIT, waited).await.is_ok(), "{what} did not come true");
}

#[tokio::test]
async fn what_is_asked_as_a_group_leaves_is_to_be_asked_elsewhere() {
    let mut stage = Stage::new();
    let group = stage.lead().await;
    assert!(group.keepalive(one_session()).await.is_ok());
    stage.follow(&gone()).await;
    assert!(stage.shared.router.group(GROUP).is_none());
    assert_eq!(group.keepalive(one_session()).await, Err(GroupError::NotLeader { leader: None }));
}

#[tokio::test]
async fn of_a_group_that_left_only_the_state_stays_and_it_comes_back_with_it() {
    let mut stage = Stage::new();
    let endpoint = stage.endpoint();
    stage.lead().await;
    let session = endpoint.open_session(60_000, Metadata::default()).await.unwrap().session;
    for name in ["a", "b", "c"] {
        acquire(&endpoint, session, name).await;
    }
    let number = GroupNumber::new(GROUP.0).unwrap();
    let entries = || stage.log.commands(number, &(0..u64::MAX)).unwrap().len();
    let before = entries();
    stage.follow(&gone()).await;
    assert!(before >= 4 && stage.log.commands(number, &(0..u64::MAX)).unwrap().is_empty(), "of {before}");
    assert!(stage.log.open_group(number).unwrap().purged().is_some());
    let group = stage.lead().await;
    let held = group.raft().with_locks(|table, _| table.counts().held);
    assert_eq!(held, Some(3));
}

#[tokio::test]
async fn a_member_whose_actors_have_ended_says_that_it_is_stopping() {
    let mut stage = Stage::new();
    let group = stage.lead().await;
    let ActorHost::Threads(arbiters) = stage.shared.host.clone() else { unreachable!() };
    tokio::task::spawn_blocking(move || arbiters.stop()).await.unwrap();
    let renewed = group.keepalive(one_session()).await;
    assert!(matches!(renewed, Err(GroupError::Fatal(_))), "{renewed:?}");
}

#[tokio::test]
async fn every_task_of_a_group_ends_with_it() {
    let alive = || tokio::runtime::Handle::current().metrics().num_alive_tasks();
    let mut stage = Stage::new();
    let before = alive();
    drop(stage.lead().await);
    assert!(alive() > before);
    stage.follow(&gone()).await;
    until("the end of all tasks of the group", || alive() <= before).await;
}

#[tokio::test]
async fn a_replica_on_its_way_out_is_carried_and_not_current() {
    let mut stage = Stage::new();
    stage.lead().await;
    let router = stage.shared.router.clone();
    assert!(router.current_group(GROUP).is_some());
    stage.follow(&leaving()).await;
    assert!(router.group(GROUP).is_some() && router.current_group(GROUP).is_none());
    let everywhere = stage.places.everywhere();
    stage.follow(&everywhere).await;
    assert_eq!(router.current_groups().len(), 1);
}

#[tokio::test]
async fn a_watch_leaves_a_replica_on_its_way_out_and_misses_and_repeats_nothing() {
    let mut stage = Stage::new();
    let endpoint = stage.endpoint();
    let group = stage.lead().await;
    let session = endpoint.open_session(60_000, Metadata::default()).await.unwrap().session;
    // The range is there once something can be acquired.
    acquire(&endpoint, session, "before").await;
    let all = WatchRequest { prefix: String::new(), elections: false, exact: false, from: None };
    let mut changes = endpoint.watch(all).await.unwrap();
    acquire(&endpoint, session, "a").await;
    assert_eq!(granted(&mut changes).await, "a");
    stage.follow(&leaving()).await;
    acquire(&endpoint, session, "b").await;
    // Whoever still listened to this replica would lose its stream now; the leader is asked from here on.
    group.fanout().send(Restored).await.unwrap();
    assert_eq!(granted(&mut changes).await, "b");
    let everywhere = stage.places.everywhere();
    stage.follow(&everywhere).await;
    acquire(&endpoint, session, "c").await;
    acquire(&endpoint, session, "d").await;
    assert_eq!([granted(&mut changes).await, granted(&mut changes).await], ["c", "d"]);
}

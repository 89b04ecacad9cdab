//! Starts the parts that a member's groups are made of.
//!
//! Each group's actors exist before its Raft half, which tells them what it applies; the half is bound to them after.

use std::{num::NonZeroUsize, sync::Arc, time::Duration};

use holdfast_locktable::{ids::SessionId, table::LockTable};
use holdfast_partitioner::{GroupId, PartitionMap, Registry};
use tokio::sync::watch;

use super::{
    StartError,
    ground::{Disk, Ground},
    works::PATIENCE,
};
use crate::{
    actors::{ActorHost, Role},
    clock::Clock,
    config::MemberConfig,
    endpoint::{
        self, Endpoint, MapWatch,
        health::Health,
        holds::far::FarHolds,
        hub::KeepaliveHub,
        places::{PlacesTell, PlacesWatch},
        router::Router,
    },
    group::{
        Group, Outward, Parts,
        figures::{GroupMetrics, replica_figures},
        moves::Sealing,
        observer::GroupObserver,
        proposer::Proposer,
        sink::GroupSink,
        snapshots::GroupSource,
    },
    lease::LeaseManager,
    log::{error::LogFailure, group_number::GroupNumber, identity::ClusterId},
    meta::{
        MetaTable,
        follow::MapSink,
        group::{MetaGroup, Plans},
        sets::{SetDesk, SetsAsked},
    },
    metrics::{
        exporter::Metrics,
        figures::{Figures, GroupFigures},
    },
    peer::{PeerService, Transport},
    raft::{
        group::{GroupOptions, RaftGroup},
        table::Machine,
        timing::Timing,
    },
    snapshot::{
        actor::{Snapshotter, SnapshotterOptions},
        catalog::SnapshotCatalog,
        compaction::CompactionLimits,
        retention::Retention,
    },
    watch::{Audiences, WatchFanout, give_ups::Intent},
};

/// Where the partition map is put for everybody to see.
pub(super) type MapTell = watch::Sender<Option<Arc<PartitionMap>>>;

/// What all groups of a member share.
pub(super) struct Shared {
    pub(super) config: Arc<MemberConfig>,
    pub(super) clock: Clock,
    pub(super) host: ActorHost,
    pub(super) metrics: Metrics,
    pub(super) disk: Disk,
    pub(super) transport: Arc<dyn Transport>,
    pub(super) router: Router,
    pub(super) map: MapWatch,
    pub(super) timing: Timing,
    pub(super) patience: Duration,
    pub(super) catalog: SnapshotCatalog,
    pub(super) strategies: Registry,
    pub(super) places: PlacesWatch,
}

/// What opening a member gives beside the shared parts.
pub(super) struct Opened {
    pub(super) shared: Shared,
    pub(super) log_failures: watch::Receiver<Option<LogFailure>>,
    pub(super) service: PeerService,
    pub(super) map_tell: MapTell,
    pub(super) places_tell: PlacesTell,
}

/// Opens everything that needs no group yet.
pub(super) fn open(config: MemberConfig, ground: Ground) -> Result<Opened, StartError> {
    let (member, cluster) = (config.member, config.cluster.parse::<ClusterId>().map_err(StartError::of)?);
    let Ground { clock, host, disk, log_failures, transport, snapshots, metrics, strategies } = ground;
    let raft = &config.raft;
    let timing = Timing {
        heartbeat_interval: raft.heartbeat_interval,
        election_timeout_min: raft.election_timeout_min,
        election_timeout_max: raft.election_timeout_max,
    };
    let patience = timing.election_timeout_max * PATIENCE;
    let members = disk.roster().unwrap_or_else(|| config.members.clone());
    let (map_tell, map) = watch::channel(None);
    let (places_tell, places) = PlacesTell::new(&config);
    let instruments = metrics.instruments.clone();
    let router =
        Router::new(member, members, transport.clone(), patience, map.clone(), places.clone(), instruments);
    let heard = transport.heard().clone();
    let service = PeerService::new(cluster.clone(), member, Arc::new(router.clone()), heard);
    let catalog = SnapshotCatalog::new(snapshots, cluster);
    let config = Arc::new(config);
    let shared = Shared {
        config,
        clock,
        host,
        metrics,
        disk,
        transport,
        router,
        map,
        timing,
        patience,
        catalog,
        strategies,
        places,
    };
    Ok(Opened { shared, log_failures, service, map_tell, places_tell })
}

impl Shared {
    async fn start_raft(
        &self,
        id: GroupId,
        machine: Machine,
    ) -> Result<(GroupNumber, RaftGroup), StartError> {
        let number = GroupNumber::new(id.0).map_err(StartError::of)?;
        let log = self.disk.open_group(number).await?;
        let snapshots = self.disk.raft_snapshots(number);
        snapshots.check_covers(log.purged()).await.map_err(StartError::of)?;
        let observer = GroupObserver::new(id, self.config.member, self.metrics.instruments.clone());
        let options = GroupOptions {
            id,
            member: self.config.member,
            timing: self.timing,
            snapshots: snapshots.clone(),
            transport: self.transport.clone(),
            machine,
            observer: Arc::new(observer),
        };
        let raft = RaftGroup::start(options, log).await.map_err(StartError::of)?;
        snapshots.started().await;
        Ok((number, raft))
    }

    /// Lets go of all in the log of a group that its newest snapshot here holds. Only for a group that does not run: one that
    /// runs may still have to apply some of it.
    pub(super) async fn shorten_log(&self, id: GroupId) -> Result<(), StartError> {
        let number = GroupNumber::new(id.0).map_err(StartError::of)?;
        let newest = self.disk.raft_snapshots(number).load().await.map_err(StartError::of)?;
        let Some(last) = newest.and_then(|(meta, _data)| meta.last_log_id) else { return Ok(()) };
        self.disk.open_group(number).await?.shorten(last).await.map_err(StartError::of)
    }

    /// Starts the meta group.
    pub(super) async fn start_meta(&self, sink: Arc<MapSink>) -> Result<(MetaGroup, SetsAsked), StartError> {
        let (number, raft) =
            self.start_raft(GroupId::META, Machine::Meta { table: MetaTable::new(), sink }).await?;
        // The meta group's log is compacted as any other; its snapshots go to the store too.
        let snapshotter = self.start_snapshotter(number, &raft)?;
        let (desk, asked) = SetDesk::new(snapshotter);
        let plans = Plans { strategies: self.strategies.clone(), config: self.config.clone() };
        Ok((MetaGroup::new(raft, self.clock.clone(), plans, desk), asked))
    }

    /// Starts one lock group with its actors.
    pub(super) async fn start_group(&self, id: GroupId) -> Result<(Group, Arc<GroupSink>), StartError> {
        let clock = self.clock.clone();
        let metrics = GroupMetrics::new(id, self.metrics.instruments.clone(), self.map.clone());
        let proposer = Proposer::unbound(id, clock.clone(), metrics.clone(), self.patience);
        let lease = LeaseManager::new(proposer.clone(), clock.clone(), metrics.clone());
        let lease = self.host.spawn_actor(Role::Lease, lease);
        let audiences = Audiences::default();
        let giving_up = Intent::default();
        let fanout = WatchFanout::new(proposer.clone(), clock.clone(), audiences.clone(), giving_up.clone());
        let fanout = self.host.spawn_actor(Role::Watch, fanout);
        let (to_lease, to_fanout) = (lease.clone(), fanout.clone());
        let sink = GroupSink::new(id, to_lease, to_fanout, metrics.clone(), clock.clone(), audiences.clone());
        let sink = Arc::new(sink);
        let machine = Machine::Locks { table: LockTable::new(id), sink: sink.clone() };
        let (number, raft) = self.start_raft(id, machine).await?;
        proposer.bind(raft.clone());
        let snapshotter = self.start_snapshotter(number, &raft)?;
        let (outward, home_of) = (self.outward(), self.home_of());
        let parts = Parts {
            raft,
            lease,
            fanout,
            audiences,
            giving_up,
            sealing: Sealing::default(),
            snapshotter,
            proposer,
            clock,
            metrics,
            outward,
            home_of,
        };
        Ok((Group::new(parts), sink))
    }

    fn start_snapshotter(
        &self,
        group: GroupNumber,
        raft: &RaftGroup,
    ) -> Result<actix::Addr<Snapshotter>, StartError> {
        let clock = self.clock.clone();
        let keep = NonZeroUsize::new(self.config.snapshots.keep as usize)
            .ok_or_else(|| StartError("snapshots.keep must be at least 1".to_owned()))?;
        let options = SnapshotterOptions {
            group,
            member: self.config.member,
            source: Arc::new(GroupSource::new(raft.clone(), self.map.clone())),
            catalog: self.catalog.clone(),
            target: Arc::new(raft.clone()),
            limits: CompactionLimits {
                keep_entries: self.config.raft.keep_entries,
                snapshot_entries: self.config.raft.snapshot_entries,
            },
            interval: Some(self.config.snapshots.interval).filter(|interval| !interval.is_zero()),
            retention: Retention { keep, max_age: self.config.snapshots.max_age },
            clock: Arc::new(move || clock.wall_ms()),
            metrics: self.metrics.instruments.snapshot.clone(),
        };
        Ok(self.host.spawn_actor(Role::Snapshot, Snapshotter::new(options)))
    }

    fn outward(&self) -> Outward {
        let router = self.router.clone();
        Arc::new(move |group, call| {
            let router = router.clone();
            Box::pin(async move { router.call(group, call).await })
        })
    }

    fn home_of(&self) -> Arc<dyn Fn(SessionId) -> GroupId + Send + Sync> {
        let map = self.map.clone();
        // Without a map nothing is owned either, so nothing is acquired.
        Arc::new(move |session| map.borrow().as_ref().map_or(GroupId::META, |map| map.home_of(session.get())))
    }

    /// Lets the gauges read the groups.
    pub(super) fn feed_gauges(&self, meta: MetaGroup) {
        let (snapshots, router) = (self.metrics.instruments.snapshot.clone(), self.router.clone());
        let disk = self.disk.clone();
        self.metrics.instruments.read_figures_from(Arc::new(move || {
            let meta = replica_figures(GroupId::META, &meta.raft().status(), meta.leads(), None);
            let groups = router.groups();
            let all = groups.iter().map(Group::figures).chain([meta]);
            let all = all.map(|group| GroupFigures { snapshot: snapshots.newest(group.group), ..group });
            Figures { groups: all.collect(), log: disk.log_space() }
        }));
    }

    /// The verbs over all groups.
    pub(super) fn endpoint(
        &self,
        log_failures: watch::Receiver<Option<LogFailure>>,
        far_holds: FarHolds,
    ) -> Endpoint {
        let (interval, router) = (self.timing.election_timeout_max, self.router.clone());
        Endpoint::new(endpoint::Parts {
            router: router.clone(),
            hub: KeepaliveHub::start(router.clone(), interval),
            far_holds,
            health: Health::start(router, interval, self.patience),
            map: self.map.clone(),
            clock: self.clock.clone(),
            instruments: self.metrics.instruments.clone(),
            snapshots: self.catalog.clone(),
            config: self.config.clone(),
            alive: Arc::new(move || match &*log_failures.borrow() {
                None => Ok(()),
                Some(failure) => Err(failure.to_string()),
            }),
        })
    }
}

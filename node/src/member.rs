//! Puts a member together from its configuration, watches over it, and takes it apart again.
//!
//! The only place that knows all parts. It decides nothing: order of start and stop is all there is here.

use std::{collections::BTreeMap, fmt, net::TcpListener, sync::Arc, time::Duration};

use holdfast_locktable::{ids::SessionId, table::LockTable};
use holdfast_partitioner::{GroupId, PartitionMap};
use tokio::{
    sync::watch,
    task::{JoinHandle, JoinSet},
};

use crate::{
    actors::{ActorHost, Role},
    api::{
        grpc::{self, GrpcServer},
        http::{self, HttpOptions, HttpServer},
    },
    clock::Clock,
    config::MemberConfig,
    endpoint::{self, Endpoint, MapWatch, health::Health, hub::KeepaliveHub, router::Router},
    group::{
        Group, Outward, Parts, bootstrap,
        figures::{GroupMetrics, replica_figures},
        observer::GroupObserver,
        proposer::Proposer,
        sink::GroupSink,
        steward,
    },
    lease::LeaseManager,
    log::{
        actor::{CloseLog, LogActor, LogOpener, LogOptions},
        error::LogFailure,
        group_number::GroupNumber,
        identity::LogIdentity,
    },
    meta::{
        MetaTable,
        group::{MapSink, MetaGroup, follow_map},
    },
    metrics::{Build, exporter, exporter::Metrics, figures::Figures},
    peer::{GrpcTransport, Heard, PeerServer, PeerService, Transport},
    raft::{
        group::{GroupOptions, RaftGroup},
        table::Machine,
        timing::Timing,
        types::MemberId,
    },
    snapshot::actor::Snapshotter,
    watch::WatchFanout,
};

/// How many election timeouts a group may be without leader before callers are told.
const PATIENCE: u32 = 3;
/// How long one part may take to stop before the next is stopped.
const STOP: Duration = Duration::from_secs(2);

/// Why a member cannot start.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct StartError(String);

impl StartError {
    fn of(error: impl fmt::Display) -> Self {
        Self(error.to_string())
    }
}

/// A running member. Dropping it leaves its tasks running: stop it with [`Member::shutdown`].
pub struct Member {
    endpoint: Endpoint,
    http: HttpServer,
    grpc: GrpcServer,
    peer: PeerServer,
    groups: Vec<RaftGroup>,
    tasks: JoinSet<()>,
    fatal: watch::Receiver<Option<String>>,
    log: actix::Addr<LogActor>,
    host: ActorHost,
    metrics: Metrics,
}

impl fmt::Debug for Member {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Member({:?})", self.endpoint)
    }
}

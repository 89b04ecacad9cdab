//! Puts a member together from its configuration, watches over it, and takes it apart again.
//!
//! The only place that knows all parts. It decides nothing: order of start and stop is all there is here.

mod parts;

use std::{collections::BTreeMap, fmt, net::TcpListener, sync::Arc, time::Duration};

use holdfast_partitioner::GroupId;
use tokio::{sync::watch, task::JoinSet};

use self::parts::{Opened, Shared};
use crate::{
    actors::ActorHost,
    api::{
        grpc::{self, GrpcOptions, GrpcServer},
        http::{self, HttpOptions, HttpServer},
    },
    config::MemberConfig,
    endpoint::Endpoint,
    group::{bootstrap, steward},
    log::{
        actor::{CloseLog, LogActor},
        error::LogFailure,
    },
    meta::group::{MapSink, follow_map},
    metrics::exporter::Metrics,
    peer::PeerServer,
    raft::group::RaftGroup,
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

impl Member {
    /// Starts a member: opens its log, begins or resumes every group, and listens. Returns as soon as it listens; it is
    /// ready once `/readyz` says so.
    ///
    /// # Errors
    /// A faulty configuration, a busy port, a log that cannot be opened or belongs to another member.
    pub async fn start(config: MemberConfig) -> Result<Self, StartError> {
        let listeners = Listeners::open(&config)?;
        let Opened { shared, log, log_failures, service, map_tell } = parts::open(config)?;
        let map_sink = Arc::new(MapSink::default());
        let meta = shared.start_meta(map_sink.clone()).await?;
        let mut groups = BTreeMap::new();
        let mut tasks = JoinSet::new();
        for id in lock_groups(&shared.config) {
            let (group, sink) = shared.start_group(id).await?;
            service.add_group(group.raft().clone());
            tasks.spawn(steward::follow_leadership(group.clone(), sink));
            tasks.spawn(bootstrap::take_ranges(group.clone(), shared.map.clone()));
            groups.insert(id, group);
        }
        service.add_group(meta.raft().clone());
        shared.router.install(groups.clone(), meta.clone());
        let peer = PeerServer::start(listeners.peer, service).map_err(StartError::of)?;
        tasks.spawn(follow_map(meta.clone(), map_tell, map_sink.stale()));
        tasks.spawn(bootstrap::provide_map(meta.clone(), lock_groups(&shared.config).collect()));
        let rafts: Vec<RaftGroup> =
            groups.values().map(|group| group.raft().clone()).chain([meta.raft().clone()]).collect();
        for raft in &rafts {
            tasks.spawn(bootstrap::begin(raft.clone(), shared.voters()));
        }
        shared.feed_gauges(groups, meta);
        let endpoint = shared.endpoint(log_failures.clone());
        let options = HttpOptions {
            listener: listeners.http,
            limits: http::Limits::default(),
            metrics: shared.metrics.clone(),
        };
        let http = http::serve(endpoint.clone(), options).map_err(StartError::of)?;
        let options = GrpcOptions { listener: listeners.grpc, others: Default::default() };
        let grpc = grpc::serve(endpoint.clone(), options).map_err(StartError::of)?;
        let fatal = watch_fatal(&rafts, log_failures, &mut tasks);
        tracing::info!(member = shared.config.member, http = %http.address(), grpc = %grpc.address(), "listening");
        let Shared { host, metrics, .. } = shared;
        Ok(Self { endpoint, http, grpc, peer, groups: rafts, tasks, fatal, log, host, metrics })
    }

    /// The verbs of this member.
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// Resolves when the member cannot go on, with the reason; then the process must end, and may start again.
    pub async fn wait_fatal(&self) -> String {
        let mut fatal = self.fatal.clone();
        match fatal.wait_for(Option::is_some).await {
            Ok(reason) => reason.clone().unwrap_or_default(),
            // Nobody is left to say so: the member is being taken apart.
            Err(_) => std::future::pending().await,
        }
    }

    /// Stops in reverse: no new requests, leadership handed on, groups, log. Bounded in time; what is in the log stays.
    pub async fn shutdown(mut self) {
        tokio::join!(self.http.stop(), self.grpc.stop());
        let handed = futures::future::join_all(self.groups.iter().map(hand_on));
        if tokio::time::timeout(STOP, handed).await.is_err() {
            tracing::info!("leadership was not handed on in time; the others elect");
        }
        self.tasks.shutdown().await;
        let stopped = futures::future::join_all(self.groups.iter().map(RaftGroup::shutdown));
        if tokio::time::timeout(STOP, stopped).await.is_err() {
            tracing::warn!("a group did not stop in time");
        }
        self.peer.stop().await;
        if let Err(error) = self.log.send(CloseLog).await {
            tracing::warn!(%error, "the log was not closed in order; it is whole all the same");
        }
        self.metrics.stop();
        if let ActorHost::Threads(arbiters) = self.host {
            // Joining a thread blocks.
            drop(tokio::task::spawn_blocking(move || arbiters.stop()).await);
        }
    }
}

/// Hands the leadership of a group to another voter that has everything, if there is one.
async fn hand_on(raft: &RaftGroup) {
    if !raft.leadership().borrow().here {
        return;
    }
    let status = raft.status();
    let others = status.voters.iter().filter(|voter| voter.member != raft.member());
    let Some(next) = others.max_by_key(|voter| voter.matched) else { return };
    if let Err(error) = raft.transfer_leader(next.member).await {
        tracing::debug!(group = %raft.id(), %error, "leadership was not handed on");
    }
}

fn lock_groups(config: &MemberConfig) -> impl Iterator<Item = GroupId> + use<> {
    (1..=u32::from(config.groups.lock_groups)).map(GroupId)
}

struct Listeners {
    http: TcpListener,
    grpc: tokio::net::TcpListener,
    peer: tokio::net::TcpListener,
}

impl Listeners {
    /// Opens all sockets before anything else, so that a busy port is known at once.
    fn open(config: &MemberConfig) -> Result<Self, StartError> {
        Ok(Self {
            http: http::listen(config.listen.http).map_err(StartError::of)?,
            grpc: tokio_listener(config.listen.grpc, "grpc")?,
            peer: tokio_listener(config.listen.peer, "peer")?,
        })
    }
}

fn tokio_listener(address: std::net::SocketAddr, what: &str) -> Result<tokio::net::TcpListener, StartError> {
    let failed = |error: std::io::Error| {
        StartError(format!("cannot listen for {what} on {address} (port {}): {error}", address.port()))
    };
    let listener = http::listen(address).map_err(|error| failed(error.cause))?;
    listener.set_nonblocking(true).map_err(failed)?;
    tokio::net::TcpListener::from_std(listener).map_err(failed)
}

/// Turns true trouble of any part into one reason to stop.
fn watch_fatal(
    rafts: &[RaftGroup],
    mut log: watch::Receiver<Option<LogFailure>>,
    tasks: &mut JoinSet<()>,
) -> watch::Receiver<Option<String>> {
    let (tell, fatal) = watch::channel(None);
    for raft in rafts {
        let (mut group, tell) = (raft.fatal(), tell.clone());
        tasks.spawn(async move {
            if let Ok(reason) = group.wait_for(Option::is_some).await {
                tell.send_replace(reason.as_ref().map(ToString::to_string));
            }
        });
    }
    tasks.spawn(async move {
        if let Ok(reason) = log.wait_for(Option::is_some).await {
            tell.send_replace(reason.as_ref().map(ToString::to_string));
        }
    });
    fatal
}

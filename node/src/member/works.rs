//! The works of a member: its groups, and the verbs over them, without the sockets that people and members talk to.
//!
//! A member in production and one in a simulation differ in what these works stand on and in who carries messages to
//! them, and in nothing else. Order of start and stop is all there is here.

use std::{collections::BTreeMap, fmt, sync::Arc, time::Duration};

use holdfast_partitioner::GroupId;
use tokio::{sync::watch, task::JoinSet};

use super::{
    StartError,
    ground::Ground,
    parts::{self, Opened, Shared},
};
use crate::{
    actors::ActorHost,
    config::MemberConfig,
    endpoint::Endpoint,
    group::{bootstrap, steward},
    log::error::LogFailure,
    meta::group::{MapSink, follow_map},
    metrics::exporter::Metrics,
    moves::Mover,
    peer::PeerService,
    planning::Planning,
    raft::group::RaftGroup,
};

/// How many election timeouts a group may be without leader before callers are told.
pub(super) const PATIENCE: u32 = 3;
/// How long one part may take to stop before the next is stopped.
const STOP: Duration = Duration::from_secs(2);

/// The running works of a member. Dropping them leaves their tasks running: stop them with [`Works::stop`].
pub struct Works {
    endpoint: Endpoint,
    service: PeerService,
    groups: Vec<RaftGroup>,
    tasks: JoinSet<()>,
    fatal: watch::Receiver<Option<String>>,
    host: ActorHost,
    metrics: Metrics,
}

impl fmt::Debug for Works {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Works({:?})", self.endpoint)
    }
}

impl Works {
    /// Begins or resumes every group, from the log that `ground` has.
    ///
    /// # Errors
    /// A faulty configuration, or a log that cannot be opened.
    pub async fn start(config: MemberConfig, ground: Ground) -> Result<Self, StartError> {
        let Opened { shared, log_failures, service, map_tell } = parts::open(config, ground)?;
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
        tasks.spawn(follow_map(meta.clone(), map_tell, map_sink.stale()));
        tasks.spawn(Mover::new(meta.clone(), shared.router.clone()).run(map_sink.begun()));
        tasks.spawn(Planning::new(meta.clone(), shared.router.clone()).run());
        tasks.spawn(bootstrap::provide_map(meta.clone(), lock_groups(&shared.config).collect()));
        let rafts: Vec<RaftGroup> =
            groups.values().map(|group| group.raft().clone()).chain([meta.raft().clone()]).collect();
        for raft in &rafts {
            tasks.spawn(bootstrap::begin(raft.clone(), shared.voters()));
        }
        shared.feed_gauges(groups, meta);
        let endpoint = shared.endpoint(log_failures.clone());
        let fatal = watch_fatal(&rafts, log_failures, &mut tasks);
        let Shared { host, metrics, .. } = shared;
        Ok(Self { endpoint, service, groups: rafts, tasks, fatal, host, metrics })
    }

    /// The verbs of this member.
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// What it offers to the other members.
    pub fn service(&self) -> &PeerService {
        &self.service
    }

    /// What it measures with.
    pub fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// Where its actors run.
    pub(super) fn host(&self) -> &ActorHost {
        &self.host
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

    /// Hands on what it leads and stops the groups. Bounded in time; what is in the log stays.
    pub async fn stop(&mut self) {
        let handed = futures::future::join_all(self.groups.iter().map(hand_on));
        if tokio::time::timeout(STOP, handed).await.is_err() {
            tracing::info!("leadership was not handed on in time; the others elect");
        }
        self.tasks.shutdown().await;
        let stopped = futures::future::join_all(self.groups.iter().map(RaftGroup::shutdown));
        if tokio::time::timeout(STOP, stopped).await.is_err() {
            tracing::warn!("a group did not stop in time");
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

//! The works of a member: its groups, and the verbs over them, without the sockets that people and members talk to.
//!
//! A member in production and one in a simulation differ in what these works stand on and in who carries messages to
//! them, and in nothing else. Order of start and stop is all there is here.

use std::{fmt, sync::Arc, time::Duration};

use tokio::{sync::watch, task::JoinSet};

use super::{
    StartError,
    acquaint::{self, Acquaintance},
    carried::{Carried, Fatal, watch_fatal},
    ground::{Disk, Ground},
    layout,
    parts::{self, Opened, Shared},
};
use crate::{
    actors::ActorHost,
    config::MemberConfig,
    endpoint::{Endpoint, holds::far::FarHolds, router::Router},
    group::bootstrap,
    log::error::LogFailure,
    meta::{
        follow::{MapSink, follow_map},
        group::MetaGroup,
    },
    metrics::exporter::Metrics,
    moves::Mover,
    peer::PeerService,
    place::Placer,
    planning::Planning,
    raft::group::RaftGroup,
    sets::SetTaker,
};

/// How many election timeouts a group may be without leader before callers are told.
pub(super) const PATIENCE: u32 = 3;
/// How long one part may take to stop before the next is stopped.
const STOP: Duration = Duration::from_secs(2);

/// The running works of a member. Dropping them leaves their tasks running: stop them with [`Works::stop`].
pub struct Works {
    endpoint: Endpoint,
    service: PeerService,
    tasks: JoinSet<()>,
    fatal: watch::Receiver<Option<String>>,
    shared: Arc<Shared>,
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
        let Opened { shared, log_failures, service, map_tell, places_tell } = parts::open(config, ground)?;
        let shared = Arc::new(shared);
        let map_sink = Arc::new(MapSink::default());
        let (meta, sets_asked) = shared.start_meta(map_sink.clone()).await?;
        let (tell_fatal, fatal) = watch::channel(None);
        let acquaintance = acquaintance(&shared, &service, &tell_fatal);
        let mut carried = Carried::new(shared.clone(), service.clone(), tell_fatal.clone());
        places_tell.tell(meta.placement(), meta.map().is_some());
        let placement = shared.router.placement();
        let mut tasks = JoinSet::new();
        if let Some(placement) = placement {
            carried.follow_once(&placement).await?;
        }
        service.add_group(meta.raft().clone());
        shared.router.install(meta.clone());
        tasks.spawn(carried.follow());
        tasks.spawn(follow_map(meta.clone(), map_tell, places_tell, map_sink.stale()));
        tasks.spawn(Mover::new(meta.clone(), shared.router.clone()).run(map_sink.begun()));
        tasks.spawn(Planning::new(meta.clone(), shared.router.clone()).run());
        let (router, catalog) = (shared.router.clone(), shared.catalog.clone());
        tasks.spawn(SetTaker::new(meta.clone(), router, catalog, sets_asked).run());
        let placer = Placer::new(meta.clone(), shared.router.clone());
        tasks.spawn(placer.run(map_sink.placed()));
        if !shared.config.join {
            found(&shared, &meta, service.admitted(), &mut tasks);
        }
        if let Some(acquaintance) = acquaintance {
            let (router, folder) = (shared.router.clone(), acquaintance.folder.clone());
            tasks.spawn(acquaint::follow_members(meta.clone(), router, folder, map_sink.members()));
            tasks.spawn(acquaintance.run());
        }
        tasks.spawn(watch_fatal(meta.raft().clone(), tell_fatal.clone()));
        tasks.spawn(watch_log(log_failures.clone(), tell_fatal));
        shared.feed_gauges(meta);
        let (far_holds, far_queue) = FarHolds::new();
        let endpoint = shared.endpoint(log_failures, far_holds);
        tasks.spawn(endpoint.clone().follow_far_holds(far_queue));
        Ok(Self { endpoint, service, tasks, fatal, shared })
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
        &self.shared.metrics
    }

    /// The way to its groups.
    pub(super) fn router(&self) -> &Router {
        &self.shared.router
    }

    /// Where its actors run.
    pub(super) fn host(&self) -> &ActorHost {
        &self.shared.host
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
        let router = &self.shared.router;
        let locks = router.groups().into_iter().map(|group| group.raft().clone());
        let groups: Vec<RaftGroup> = locks.chain(router.meta().map(|meta| meta.raft().clone())).collect();
        let handed = futures::future::join_all(groups.iter().map(hand_on));
        if tokio::time::timeout(STOP, handed).await.is_err() {
            tracing::info!("leadership was not handed on in time; the others elect");
        }
        self.tasks.shutdown().await;
        let stopped = futures::future::join_all(groups.iter().map(RaftGroup::shutdown));
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

/// Begins what a fresh cluster needs, on a member that it begins with.
fn found(shared: &Shared, meta: &MetaGroup, admitted: watch::Receiver<bool>, tasks: &mut JoinSet<()>) {
    let lock_groups = layout::lock_groups(&shared.config).collect();
    let placement = layout::placement(&shared.config);
    tasks.spawn(bootstrap::provide_map(meta.clone(), lock_groups, placement));
    let voters = shared.router.addresses(layout::meta_voters(&shared.config));
    if voters.contains_key(&meta.raft().member()) {
        let first = voters.keys().next().copied();
        tasks.spawn(bootstrap::begin(meta.raft().clone(), voters, first, admitted));
    }
}

/// What makes a member on a real disk known; a simulated disk is never another one. Until it is known a new disk is kept out.
fn acquaintance(shared: &Shared, service: &PeerService, fatal: &Fatal) -> Option<Acquaintance> {
    let Disk::Files { folder, identity, .. } = &shared.disk else { return None };
    // A configuration that validates has it.
    let at = shared.config.this_member()?.clone();
    service.admit(identity.admitted);
    Some(Acquaintance {
        config: shared.config.clone(),
        at,
        router: shared.router.clone(),
        service: service.clone(),
        folder: folder.clone(),
        identity: *identity,
        fatal: fatal.clone(),
    })
}

/// Turns true trouble of the disk into a reason to stop.
async fn watch_log(mut log: watch::Receiver<Option<LogFailure>>, tell: Fatal) {
    if let Ok(reason) = log.wait_for(Option::is_some).await {
        tell.send_replace(reason.as_ref().map(ToString::to_string));
    }
}

//! The snapshots of one group: periodic and on demand to the store, and openraft's own for the log.
//!
//! A thin shell around [`SnapshotSchedule`] and [`Compaction`], which decide; it only carries out and answers.

use std::{fmt, sync::Arc, time::Duration};

use actix::{
    Actor, ActorContext, ActorFutureExt, AsyncContext, Context, Handler, Message, ResponseFuture, WrapFuture,
};
use holdfast_partitioner::GroupId;
use tokio::{sync::oneshot, time::Instant};

use super::{
    catalog::{CatalogError, SnapshotCatalog},
    compaction::{Compaction, CompactionLimits},
    manifest::Manifest,
    raft_target::CompactionTarget,
    retention::Retention,
    schedule::{Ended, SnapshotSchedule},
    source::{CaptureError, SnapshotSource},
};
use crate::{
    actors::Retire,
    log::group_number::GroupNumber,
    metrics::{
        figures::SnapshotFigures,
        snapshot::{SnapshotKind, SnapshotMetrics, SnapshotStage},
    },
    raft::types::MemberId,
};

/// Requests that may wait in the mailbox: snapshots are asked for by people and by moves, a few at a time. Beyond it the
/// sender waits.
const MAILBOX: usize = 64;
/// Requests that may wait for the next snapshot; all of them are answered by it. Beyond it they are refused.
const WAITERS: usize = 1_024;
/// How often the actor looks whether something is due. At 100,000 entries per second a snapshot comes two ticks late.
const TICK: Duration = Duration::from_secs(1);

/// The wall clock: milliseconds since 1970. Injected, because simulations have their own.
pub type WallClock = Arc<dyn Fn() -> u64 + Send + Sync>;

/// What a group's snapshotter works with.
#[derive(Clone)]
pub struct SnapshotterOptions {
    /// The group.
    pub group: GroupNumber,
    /// This member.
    pub member: MemberId,
    /// Gives the state.
    pub source: Arc<dyn SnapshotSource>,
    /// Where snapshots go.
    pub catalog: SnapshotCatalog,
    /// The log that is compacted.
    pub target: Arc<dyn CompactionTarget>,
    /// How long that log may get.
    pub limits: CompactionLimits,
    /// Time between two snapshots to the store; none: only on demand.
    pub interval: Option<Duration>,
    /// Which snapshots of the group stay in the store.
    pub retention: Retention,
    /// Says when a snapshot was taken.
    pub clock: WallClock,
    /// Counts what is done.
    pub metrics: SnapshotMetrics,
}

impl fmt::Debug for SnapshotterOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SnapshotterOptions").field("group", &self.group).finish_non_exhaustive()
    }
}

/// Why a snapshot was not taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SnapshotError {
    /// The group did not give its state.
    #[error(transparent)]
    Capture(#[from] CaptureError),
    /// The store did not take it, or damaged it.
    #[error(transparent)]
    Catalog(#[from] CatalogError),
    /// The member is going down.
    #[error("the member is stopping; ask another one")]
    Stopping,
    /// Too many wait already.
    #[error("{WAITERS} requests wait for the next snapshot of group {group} already; try again later")]
    TooManyWaiting {
        /// The group.
        group: GroupNumber,
    },
}

impl SnapshotError {
    /// Whether the same call may succeed later without anybody changing anything.
    #[must_use]
    pub fn retryable(&self) -> bool {
        match self {
            SnapshotError::Capture(_) | SnapshotError::Stopping | SnapshotError::TooManyWaiting { .. } => {
                true
            }
            SnapshotError::Catalog(err) => err.retryable(),
        }
    }
}

type Answer = Result<Manifest, SnapshotError>;

/// The actor.
pub struct Snapshotter {
    options: SnapshotterOptions,
    started: Instant,
    schedule: SnapshotSchedule,
    compaction: Compaction,
    compacting: bool,
    /// Who is answered by the next snapshot.
    waiting: Vec<oneshot::Sender<Answer>>,
}

impl fmt::Debug for Snapshotter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Snapshotter").field("group", &self.options.group).finish_non_exhaustive()
    }
}

impl Snapshotter {
    /// A snapshotter whose first interval begins now.
    #[must_use]
    pub fn new(options: SnapshotterOptions) -> Snapshotter {
        let schedule = SnapshotSchedule::new(options.interval, Duration::ZERO);
        let compaction = Compaction::new(options.limits);
        Snapshotter {
            options,
            started: Instant::now(),
            schedule,
            compaction,
            compacting: false,
            waiting: Vec::new(),
        }
    }

    fn tick(&mut self, ctx: &mut Context<Self>) {
        self.begin_if_due(ctx);
        self.compact(ctx);
    }

    fn begin_if_due(&mut self, ctx: &mut Context<Self>) {
        if !self.schedule.begin(self.started.elapsed()) {
            return;
        }
        let served = std::mem::take(&mut self.waiting);
        let taking = take(self.options.clone()).into_actor(self);
        ctx.spawn(taking.map(move |answer, act, ctx| act.ended(answer, served, ctx)));
    }

    fn ended(&mut self, answer: Answer, served: Vec<oneshot::Sender<Answer>>, ctx: &mut Context<Self>) {
        let group = self.options.group;
        let how = match &answer {
            Ok(manifest) => {
                tracing::info!(%group, snapshot = %manifest.snapshot, bytes = manifest.size_bytes, "took a snapshot");
                Ended::Taken
            }
            Err(SnapshotError::Capture(CaptureError::NotLeader { .. })) => Ended::NotMine,
            Err(err) => {
                tracing::warn!(%group, error = %err, "a snapshot failed");
                Ended::Failed
            }
        };
        self.schedule.ended(how, self.started.elapsed());
        for waiter in served {
            // Whoever asked may have gone away.
            drop(waiter.send(answer.clone()));
        }
        self.begin_if_due(ctx);
    }

    fn compact(&mut self, ctx: &mut Context<Self>) {
        if self.compacting {
            return;
        }
        let target = Arc::clone(&self.options.target);
        let step = self.compaction.step(target.progress());
        if !step.build_snapshot && step.purge_upto.is_none() {
            return;
        }
        self.compacting = true;
        let act = async move {
            if step.build_snapshot {
                target.build_snapshot().await?;
            }
            match step.purge_upto {
                Some(upto) => target.purge(upto).await,
                None => Ok(()),
            }
        };
        ctx.spawn(act.into_actor(self).map(|result, act, _ctx| {
            act.compacting = false;
            if let Err(err) = result {
                tracing::warn!(group = %act.options.group, error = %err, "cannot compact the log");
            }
        }));
    }
}

/// Takes one snapshot, and deletes older ones once it is known to be whole.
async fn take(options: SnapshotterOptions) -> Answer {
    let SnapshotterOptions { group, member, source, catalog, retention, clock, metrics, .. } = options;
    let started = Instant::now();
    let captured = source.capture().await;
    // Asked in vain is not failed: another member leads.
    if !matches!(captured, Err(CaptureError::NotLeader { .. })) {
        count(&metrics, SnapshotKind::Build, SnapshotStage::Build, captured.is_ok(), started);
    }
    let capture = captured?;
    let started = Instant::now();
    let written = catalog.write(group, &capture, member, clock()).await;
    count(&metrics, SnapshotKind::Upload, SnapshotStage::Upload, written.is_ok(), started);
    let manifest = match written {
        Ok(manifest) => manifest,
        Err(err) => {
            metrics.upload_failed(err.cause());
            // Room that dead uploads take may be what is missing. The failure itself is what is told.
            if let Err(err) = catalog.delete_leftovers(group, clock()).await {
                tracing::debug!(%group, error = %err, "cannot delete unfinished uploads");
            }
            return Err(err.into());
        }
    };
    if let Err(err) = catalog.verify(&manifest).await {
        metrics.failed(SnapshotStage::Verify);
        metrics.upload_failed(err.cause());
        return Err(err.into());
    }
    metrics.uploaded(manifest.stored_bytes);
    metrics.stored(GroupId(group.get()), (&manifest).into());
    match catalog.prune(group, retention, clock(), Some(&manifest.snapshot)).await {
        Ok(deleted) if deleted.is_empty() => {}
        Ok(deleted) => tracing::info!(%group, count = deleted.len(), "deleted old snapshots"),
        // The snapshot itself is good; the next one prunes again.
        Err(err) => tracing::warn!(%group, error = %err, "cannot delete old snapshots"),
    }
    Ok(manifest)
}

fn count(metrics: &SnapshotMetrics, kind: SnapshotKind, stage: SnapshotStage, ok: bool, started: Instant) {
    metrics.step_ended(kind, ok, started.elapsed());
    if !ok {
        metrics.failed(stage);
    }
}

/// What the store holds from before, so that its age is known after a restart too.
async fn find_newest(options: SnapshotterOptions) {
    let SnapshotterOptions { group, catalog, metrics, .. } = options;
    match catalog.list(group).await {
        Ok(manifests) => {
            let newest = manifests.last().into_iter();
            newest.for_each(|manifest| metrics.stored(GroupId(group.get()), manifest.into()));
        }
        Err(err) => tracing::warn!(%group, error = %err, "cannot list the snapshots that are there"),
    }
}

impl From<&Manifest> for SnapshotFigures {
    fn from(manifest: &Manifest) -> Self {
        Self { size_bytes: manifest.size_bytes, taken_at_ms: manifest.created_unix_ms }
    }
}

impl Actor for Snapshotter {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Context<Self>) {
        ctx.set_mailbox_capacity(MAILBOX);
        ctx.spawn(find_newest(self.options.clone()).into_actor(self));
        ctx.run_interval(TICK, |act, ctx| act.tick(ctx));
    }
}

impl Handler<Retire> for Snapshotter {
    type Result = ();

    fn handle(&mut self, _: Retire, ctx: &mut Context<Self>) {
        ctx.stop();
    }
}

/// Asks for a snapshot of the state as of now or later; answers once it is whole in the store.
#[derive(Clone, Copy, Debug, Message)]
#[rtype(result = "Result<Manifest, SnapshotError>")]
pub struct TakeSnapshot;

impl Handler<TakeSnapshot> for Snapshotter {
    type Result = ResponseFuture<Answer>;

    fn handle(&mut self, _: TakeSnapshot, ctx: &mut Context<Self>) -> Self::Result {
        self.waiting.retain(|waiter| !waiter.is_closed());
        if self.waiting.len() >= WAITERS {
            let group = self.options.group;
            return Box::pin(async move { Err(SnapshotError::TooManyWaiting { group }) });
        }
        let (sender, receiver) = oneshot::channel();
        self.waiting.push(sender);
        self.schedule.request();
        self.begin_if_due(ctx);
        Box::pin(async move { receiver.await.unwrap_or(Err(SnapshotError::Stopping)) })
    }
}

#[cfg(test)]
mod tests;

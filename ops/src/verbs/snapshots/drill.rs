//! `holdfast snapshots drill`: whether the snapshots can be restored, found out by restoring them.
//!
//! The newest snapshots go into a throw-away cluster on this machine, locks are taken and released there, and everything is
//! removed again. Nothing is written to the store, and the live cluster is only asked for its revisions.

use std::{
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use clap::Args;
use holdfast_client::Client;
use holdfast_locktable::ids::Revision;
use holdfast_node::{
    log::identity::ClusterId,
    restore::{
        self, Prepared,
        choose::{self, Chosen, Which},
        incarnation,
    },
    snapshot::store::SnapshotStore,
};
use serde::Serialize;
use tempfile::TempDir;

use super::source::opened;
use crate::{
    cli::Global,
    cluster,
    dev::child::{DevChild, Plan, free_block},
    failure::{self, Ended, Failure},
    output::{self, Table},
    restoring::NewCluster,
    say, times,
};

/// How long a lock of the drill may take to be granted: the cluster has just elected its leaders.
const GRANTED_WITHIN: Duration = Duration::from_secs(30);

const HELP: &str = "\
Exit code 0: the snapshots were restored and work. 1: they were not; the message says at which step.

Examples:
  holdfast snapshots drill --store ./cluster/snapshots
  holdfast snapshots drill --store /mnt/snapshots --live --endpoints http://10.0.0.1:7611 -o json";

/// Restore the newest snapshots into a throw-away cluster and try it
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct DrillArgs {
    /// The snapshot store: a folder, or s3://bucket/prefix
    #[arg(long, value_name = "FOLDER|s3://…")]
    store: String,
    /// The cluster whose snapshots are restored, where the store has those of several
    #[arg(long, value_name = "NAME")]
    from_cluster: Option<ClusterId>,
    /// Members of the throw-away cluster
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..=5))]
    members: u16,
    /// Locks that are taken there and released
    #[arg(long, value_name = "N", default_value_t = 32, value_parser = clap::value_parser!(u16).range(1..=10_000))]
    locks: u16,
    /// Also compare with the revisions of the live cluster, which --endpoints names
    #[arg(long)]
    live: bool,
}

/// One step with the time it took.
#[derive(Debug, Serialize)]
struct Step {
    step: &'static str,
    ms: u64,
}

/// How the drill went.
#[derive(Debug, Serialize)]
struct Drilled {
    ok: bool,
    from_cluster: String,
    snapshots: Vec<String>,
    passed_over: Vec<String>,
    groups: u16,
    /// The highest revision that the snapshots, or the live cluster, have.
    highest_before: u64,
    /// The lowest token that the restored cluster gave.
    lowest_token: u64,
    locks: u16,
    steps: Vec<Step>,
    total_ms: u64,
}

/// Measures the steps.
struct Steps {
    begun: Instant,
    since: Instant,
    done: Vec<Step>,
}

impl Steps {
    fn new() -> Self {
        let now = Instant::now();
        Self { begun: now, since: now, done: Vec::new() }
    }

    fn done(&mut self, step: &'static str) {
        let now = Instant::now();
        self.done.push(Step { step, ms: ms(now - self.since) });
        self.since = now;
    }
}

/// Restores, tries, removes.
pub(super) async fn run(global: &Global, args: &DrillArgs) -> Ended {
    let drilled = drill(global, args).await?;
    for passed_over in &drilled.passed_over {
        say::line(&format!("passed over a snapshot that is not whole: {passed_over}"));
    }
    output::print(global.output, &drilled, text)?;
    if drilled.ok {
        return Ok(failure::OK);
    }
    Err(Failure::other(format!(
        "the restored cluster gave the token {}, and {} was handed out before: do not restore these snapshots",
        drilled.lowest_token, drilled.highest_before
    )))
}

async fn drill(global: &Global, args: &DrillArgs) -> Result<Drilled, Failure> {
    let mut steps = Steps::new();
    let failed = |error: &dyn std::error::Error| Failure::other(error.to_string());
    let store = opened(&args.store)?;
    let lost =
        choose::cluster_in(store.as_ref(), args.from_cluster.as_ref()).await.map_err(|e| failed(&e))?;
    let chosen = choose::choose(&store, &lost, &Which::Newest).await.map_err(|e| failed(&e))?;
    let live = if args.live { live_revision(global).await? } else { 0 };
    steps.done("read");
    let folder = TempDir::with_prefix("holdfast-drill-")
        .map_err(|e| Failure::other(format!("cannot make a temporary folder: {e}")))?;
    let (to, base) = (folder.path().join("cluster"), free_block()?);
    let prepared = write(&store, &chosen, args, &to, base).await?;
    steps.done("restore");
    let rebuilt = &prepared.rebuilt;
    let (groups, replicas) = (rebuilt.lock_groups, rebuilt.replicas);
    let plan = Plan { folder: &to, logs: folder.path(), base, members: args.members, groups, replicas };
    let dev = DevChild::start(plan).await?;
    steps.done("start");
    let endpoints = (1..=args.members).map(|member| format!("http://127.0.0.1:{}", base + 10 * member + 1));
    let tokens = take_and_release(endpoints.collect(), args.locks).await.map_err(|error| {
        Failure::other(format!("the restored cluster does not work: {error}\n{}", dev.said()))
    })?;
    steps.done("locks");
    drop(dev);
    folder.close().map_err(|e| Failure::other(format!("cannot remove the throw-away cluster: {e}")))?;
    steps.done("clean up");
    let highest = chosen.manifests.values().map(|manifest| manifest.revision).chain([live]).max();
    let highest_before = highest.unwrap_or(0);
    let lowest_token = tokens.into_iter().min().unwrap_or(0);
    let above = Revision::start_of(prepared.incarnation).unwrap_or_default().0.max(highest_before);
    Ok(Drilled {
        ok: lowest_token > above,
        from_cluster: lost.to_string(),
        snapshots: chosen.manifests.values().map(|manifest| manifest.snapshot.to_string()).collect(),
        passed_over: chosen.passed_over,
        groups,
        highest_before,
        lowest_token,
        locks: args.locks,
        total_ms: ms(steps.begun.elapsed()),
        steps: steps.done,
    })
}

/// Writes the folders, in the incarnation that a restore would have, without claiming it.
async fn write(
    store: &Arc<dyn SnapshotStore>,
    chosen: &Chosen,
    args: &DrillArgs,
    to: &Path,
    base: u16,
) -> Result<Prepared, Failure> {
    let failed = |error: &dyn std::error::Error| Failure::other(error.to_string());
    let new = NewCluster {
        to: to.to_owned(),
        members: Some(args.members),
        members_file: None,
        replicas: None,
        base_port: base,
        cluster: None,
        incarnation: None,
        grant_at_once: true,
    };
    let ground = new.ground(None)?;
    let origin = incarnation::origin_of(store.as_ref(), &chosen.cluster).await.map_err(|e| failed(&e))?;
    let seen = chosen.highest_incarnation.max(chosen.found.highest_incarnation());
    let number = incarnation::next_above(store.as_ref(), &origin, seen).await.map_err(|e| failed(&e))?;
    let wanted = new.wanted(&ground);
    let prepared = restore::prepare_without_store(&chosen.cluster, &chosen.found, number, wanted);
    let prepared = prepared.map_err(|e| failed(&e))?;
    ground.write(&prepared).await?;
    Ok(prepared)
}

/// The highest revision of any group of the live cluster.
async fn live_revision(global: &Global) -> Result<u64, Failure> {
    let groups = cluster::client(global)?.admin().groups().await.map_err(|e| cluster::failed(&e))?;
    Ok(groups.iter().map(|group| group.revision).max().unwrap_or(0))
}

/// Takes locks of names of its own, and releases them; answers the tokens.
async fn take_and_release(endpoints: Vec<String>, locks: u16) -> Result<Vec<u64>, String> {
    let client = Client::connect(endpoints).map_err(|e| e.to_string())?;
    let session = client.session().label("restore drill").open().await.map_err(|e| e.to_string())?;
    let mut tokens = Vec::with_capacity(usize::from(locks));
    for n in 0..locks {
        let name = format!("drill-{n}/lock");
        let guard = session.lock(name.as_str()).acquire_timeout(GRANTED_WITHIN).await;
        let guard = guard.map_err(|e| format!("{name}: {e}"))?;
        tokens.push(guard.token().get());
        let released = guard.release().await.map_err(|e| format!("{name}: {e}"))?;
        if !released {
            return Err(format!("{name} was granted and then held no more"));
        }
    }
    session.close().await.map_err(|e| e.to_string())?;
    Ok(tokens)
}

fn text(drilled: &Drilled) -> String {
    let mut table = Table::new(&["STEP", "TOOK"], "no steps");
    for step in &drilled.steps {
        table.row([step.step.to_owned(), times::length(step.ms)]);
    }
    format!(
        "{} of {} snapshots of cluster {}: {} locks taken and released, lowest token {}, highest before {}\n\n{}\n\ntotal {}",
        if drilled.ok { "a good restore" } else { "A BAD RESTORE" },
        drilled.snapshots.len(),
        drilled.from_cluster,
        drilled.locks,
        drilled.lowest_token,
        drilled.highest_before,
        table.text(),
        times::length(drilled.total_ms)
    )
}

fn ms(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

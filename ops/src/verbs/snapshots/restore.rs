//! `holdfast snapshots restore`: data folders for a new cluster, from the snapshots of a lost one.

use clap::Args;
use holdfast_locktable::ids::Revision;
use holdfast_node::{
    log::identity::ClusterId,
    restore::{
        self,
        choose::{self, Chosen, Which},
    },
    snapshot::{
        manifest::{InvalidSnapshotId, Manifest},
        set::{InvalidSetId, SetId},
    },
};

use super::source::{opened, settings};
use crate::{
    cli::Global,
    failure::{self, Ended, Failure},
    output,
    restoring::{GroupLine, NewCluster, Report},
    say,
};

const HELP: &str = "\
The lost cluster must be down, or stay cut off: the new one has another name, and members of the lost one are refused by it.
All sessions have ended. Every token of the new cluster is above every one that the lost cluster ever handed out. No lock is
granted before the longest TTL has passed, so that whoever held one has noticed.

Examples:
  holdfast snapshots restore --store ./cluster/snapshots --to ./restored
  holdfast dev --dir ./restored
  holdfast snapshots restore newest --store /mnt/snapshots --to /srv/restored --members-file /etc/holdfast/member.toml";

/// Build data folders for a new cluster from snapshots
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct RestoreArgs {
    /// `newest`: the newest snapshot of each group; `newest-set`; the id of a set; or the id of a snapshot: then of the other
    /// groups the newest that is no younger
    #[arg(value_name = "ID|newest|newest-set", default_value = "newest")]
    which: String,
    /// The snapshot store: a folder, or s3://bucket/prefix
    #[arg(long, value_name = "FOLDER|s3://…")]
    store: String,
    /// The cluster whose snapshots are restored, where the store has those of several
    #[arg(long, value_name = "NAME")]
    from_cluster: Option<ClusterId>,
    #[command(flatten)]
    new: NewCluster,
}

/// Restores, and says what came of it.
pub(super) async fn run(global: &Global, args: &RestoreArgs) -> Ended {
    let report = restored(args).await?;
    for passed_over in &report.passed_over {
        say::line(&format!("passed over a snapshot that is not whole: {passed_over}"));
    }
    output::print(global.output, &report, Report::text)?;
    Ok(failure::OK)
}

/// What the words on the command line mean.
fn which(text: &str) -> Result<Which, Failure> {
    Ok(match text {
        "newest" => Which::Newest,
        "newest-set" => Which::NewestSet,
        id if SetId::is_meant_by(id) => {
            Which::Set(id.parse().map_err(|e: InvalidSetId| Failure::usage(e.to_string()))?)
        }
        id => Which::UpTo(id.parse().map_err(|e: InvalidSnapshotId| Failure::usage(e.to_string()))?),
    })
}

async fn restored(args: &RestoreArgs) -> Result<Report, Failure> {
    let which = which(&args.which)?;
    let ground = args.new.ground(Some(&settings(&args.store)))?;
    let store = opened(&args.store)?;
    let failed = |error: &dyn std::error::Error| Failure::other(error.to_string());
    let lost =
        choose::cluster_in(store.as_ref(), args.from_cluster.as_ref()).await.map_err(|e| failed(&e))?;
    let chosen = choose::choose(&store, &lost, &which).await.map_err(|e| failed(&e))?;
    let prepared =
        restore::prepare(&store, &chosen, args.new.wanted(&ground)).await.map_err(|e| failed(&e))?;
    let members = ground.write(&prepared).await?;
    Ok(Report {
        cluster: prepared.cluster.to_string(),
        from_cluster: lost.to_string(),
        incarnation: prepared.incarnation,
        tokens_above: Revision::start_of(prepared.incarnation).unwrap_or_default().0,
        pause_ms: prepared.rebuilt.pause_ms.unwrap_or(0),
        groups: lines(&chosen),
        members,
        passed_over: chosen.passed_over,
    })
}

fn lines(chosen: &Chosen) -> Vec<GroupLine> {
    let line = |manifest: &Manifest| GroupLine {
        group: manifest.group.get(),
        from: manifest.snapshot.to_string(),
        log_index: manifest.log_index,
        revision: manifest.revision,
    };
    chosen.manifests.values().map(line).collect()
}

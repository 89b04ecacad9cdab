//! `holdfast snapshots`: what could be restored, whether it is whole, and what goes together.

mod convert;
mod drill;
mod progress;
mod restore;
mod show;
mod source;

use clap::{Args, Subcommand};
use holdfast_client::{SnapshotDetail, SnapshotSetDetail};
use holdfast_node::snapshot::set::SetId;

use self::{
    progress::Progress,
    source::{SnapshotArgs, Source, StoreArgs},
};
use crate::{
    cli::Global,
    cluster::{self, failed},
    failure::{self, Ended, Failure},
    output, say,
};

const HELP: &str = "\
A snapshot set names one snapshot of every group, all taken while no range moved from group to group: restored, every lock is
in exactly one group. Single snapshots of several groups need not go together.

Examples:
  holdfast snapshots take --set
  holdfast snapshots sets
  holdfast snapshots verify set-01796094000000-e3-m1
  holdfast snapshots verify 01796094000000-0000000000000042-m1 --store s3://backups/prod";

/// List, take, verify and delete snapshots, and restore from them
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct SnapshotsArgs {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// List the snapshots in the snapshot store
    List {
        #[command(flatten)]
        store: StoreArgs,
    },
    /// List the snapshot sets in the snapshot store
    Sets {
        #[command(flatten)]
        store: StoreArgs,
    },
    /// Take snapshots now; answers once they are durable
    Take {
        /// Only of this group
        #[arg(long, value_name = "N", conflicts_with = "set")]
        group: Option<u32>,
        /// Of all groups, between two moves of ranges, so that they can be restored together
        #[arg(long)]
        set: bool,
    },
    /// Show one snapshot, without reading its data
    Show {
        #[command(flatten)]
        which: SnapshotArgs,
        #[command(flatten)]
        store: StoreArgs,
    },
    /// Read a snapshot or a set back, check it all, and show what is in it; exits with 1 if it cannot be used
    Verify {
        /// The id of a snapshot or of a set
        #[arg(value_name = "ID")]
        id: String,
        /// Its group, where several groups have a snapshot of that id
        #[arg(long, value_name = "N")]
        group: Option<u32>,
        #[command(flatten)]
        store: StoreArgs,
    },
    /// Delete one snapshot; the last good one of a group stays, and those of the newest set
    Delete {
        #[command(flatten)]
        which: SnapshotArgs,
        /// Really do it
        #[arg(long)]
        yes: bool,
        #[command(flatten)]
        store: StoreArgs,
    },
    Restore(Box<restore::RestoreArgs>),
    Drill(drill::DrillArgs),
}

/// Asks, shows.
pub(crate) fn run(global: &Global, args: SnapshotsArgs) -> Ended {
    cluster::block_on(async {
        match args.verb {
            Verb::List { store } => {
                let snapshots = Source::open(global, &store).await?.list().await?;
                output::print(global.output, &snapshots, |snapshots| show::list(snapshots))?;
            }
            Verb::Sets { store } => {
                let sets = Source::open(global, &store).await?.sets().await?;
                output::print(global.output, &sets, |sets| show::sets(sets))?;
            }
            Verb::Take { set: true, .. } => take_set(global).await?,
            Verb::Take { group, .. } => take(global, group).await?,
            Verb::Show { which, store } => {
                let found = Source::open(global, &store).await?.show(&which).await?;
                output::print(global.output, &found, show::detail)?;
            }
            Verb::Verify { id, group, store } => {
                let source = Source::open(global, &store).await?;
                if SetId::is_meant_by(&id) {
                    verify_set(global, &source, &id).await?;
                } else {
                    verify(global, &source, &id, group).await?;
                }
            }
            Verb::Delete { which, yes, store } => delete(global, &which, yes, &store).await?,
            Verb::Restore(args) => return restore::run(global, &args).await,
            Verb::Drill(args) => return drill::run(global, &args).await,
        }
        Ok(failure::OK)
    })
}

async fn take(global: &Global, group: Option<u32>) -> Result<(), Failure> {
    let client = source::members(global).await?;
    let bar = Progress::of_unknown_length("taking snapshots");
    let taken = client.admin().take_snapshot(group, &cluster::actor()).await.map_err(|e| failed(&e))?;
    drop(bar);
    output::print(global.output, &taken, |snapshots| show::list(snapshots))
}

async fn take_set(global: &Global) -> Result<(), Failure> {
    let client = source::members(global).await?;
    let bar = Progress::of_unknown_length("taking snapshots of all groups");
    let taken = client.admin().take_snapshot_set(&cluster::actor()).await.map_err(|e| failed(&e))?;
    drop(bar);
    output::print(global.output, &taken, show::one_set)
}

async fn verify(global: &Global, source: &Source, id: &str, group: Option<u32>) -> Result<(), Failure> {
    let id = id
        .parse()
        .map_err(|e: holdfast_node::snapshot::manifest::InvalidSnapshotId| Failure::usage(e.to_string()))?;
    let found = source.verify(&SnapshotArgs { id, group }).await?;
    output::print(global.output, &found, show::detail)?;
    let SnapshotDetail { fault, .. } = found;
    fault.map_or(Ok(()), |fault| Err(Failure::other(fault)))
}

async fn verify_set(global: &Global, source: &Source, id: &str) -> Result<(), Failure> {
    let id: SetId =
        id.parse().map_err(|e: holdfast_node::snapshot::set::InvalidSetId| Failure::usage(e.to_string()))?;
    let found = source.verify_set(&id).await?;
    output::print(global.output, &found, show::verified_set)?;
    let SnapshotSetDetail { fault, .. } = found;
    fault.map_or(Ok(()), |fault| Err(Failure::other(fault)))
}

async fn delete(global: &Global, which: &SnapshotArgs, yes: bool, store: &StoreArgs) -> Result<(), Failure> {
    let source = Source::open(global, store).await?;
    if !yes {
        let found = source.show(which).await?;
        output::print(global.output, &found, show::detail)?;
        return Err(Failure::usage("nothing was deleted; say --yes to delete this snapshot"));
    }
    let sets = source.delete(which).await?;
    say::line(&format!("the snapshot {} is deleted", which.id));
    for set in sets {
        say::line(&format!("the snapshot set {set} named it, and is deleted too"));
    }
    Ok(())
}

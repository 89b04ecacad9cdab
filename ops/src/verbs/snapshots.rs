//! `holdfast snapshots`: what could be restored.

use clap::{Args, Subcommand};
use holdfast_client::SnapshotView;

use crate::{
    cli::Global,
    cluster::{self, failed},
    failure::{self, Ended},
    output::{self, Table},
    times,
};

/// List and take snapshots
#[derive(Debug, Args)]
pub(crate) struct SnapshotsArgs {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// List the snapshots in the snapshot store
    List,
    /// Take snapshots now; answers once they are durable
    Take {
        /// Only of this group
        #[arg(long, value_name = "N")]
        group: Option<u32>,
    },
}

/// Asks, shows.
pub(crate) fn run(global: &Global, args: SnapshotsArgs) -> Ended {
    let client = cluster::client(global)?;
    let admin = client.admin();
    cluster::block_on(async {
        let snapshots = match args.verb {
            Verb::List => admin.snapshots().await,
            Verb::Take { group } => admin.take_snapshot(group, &cluster::actor()).await,
        };
        let snapshots = snapshots.map_err(|e| failed(&e))?;
        output::print(global.output, &snapshots, |snapshots| table(snapshots))?;
        Ok(failure::OK)
    })
}

fn table(snapshots: &[SnapshotView]) -> String {
    let mut table =
        Table::new(&["ID", "GROUP", "TAKEN", "LOG INDEX", "REVISION", "SIZE", "SHA-256"], "no snapshots");
    for snapshot in snapshots {
        table.row([
            snapshot.id.clone(),
            snapshot.group.to_string(),
            times::point(snapshot.created_at_ms),
            snapshot.log_index.to_string(),
            snapshot.revision.to_string(),
            times::bytes(snapshot.size_bytes),
            snapshot.sha256.chars().take(12).collect(),
        ]);
    }
    table.text()
}

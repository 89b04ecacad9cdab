//! `holdfast storage`: the fenced Storage Service.

use std::{net::SocketAddr, sync::Arc};

use clap::{Args, Subcommand};
use holdfast_fence::{Database, Options, StorageService};
use holdfast_node::config::LogConfig;

use super::token_check::AskTheCluster;
use crate::{
    cli::Global,
    cluster,
    failure::{self, Ended, Failure},
    logging, output,
    run::{launch::die_with_parent, signals::Signals},
    say,
};

const HELP: &str = "\
Objects are read and written over HTTP; a write names a lock and carries the fencing token of its holder. A token lower
than the highest one seen for that lock is refused with 412, so that a former holder cannot overwrite a later one's work.

Where --endpoints or HOLDFAST_ENDPOINTS names the lock service, a token that is higher than any seen before is checked
with it; otherwise every higher token is believed.

Examples:
  holdfast storage serve
  holdfast storage serve --database postgres://storage@db.internal/objects --endpoints http://127.0.0.1:7611
  curl -X PUT -H 'content-type: application/json' http://127.0.0.1:7680/v1/objects/report \\
       -d '{\"lock\":\"jobs/report\",\"token\":42,\"data\":\"…\"}'";

/// Run the fenced Storage Service
#[derive(Debug, Args)]
pub(crate) struct StorageArgs {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Serve objects that can be written only with a fencing token, until Ctrl-C
    #[command(after_help = HELP)]
    Serve(ServeArgs),
}

#[derive(Debug, Args)]
struct ServeArgs {
    /// Where to listen
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:7680")]
    listen: SocketAddr,
    /// Where objects are kept: a file of SQLite, or postgres://USER@HOST/NAME
    #[arg(
        long,
        value_name = "URL",
        env = "HOLDFAST_STORAGE_DATABASE",
        default_value = "holdfast-storage.db"
    )]
    database: Database,
    /// Accept that whoever reaches the address may write: needed for every address but loopback
    #[arg(long)]
    insecure: bool,
    /// End as soon as this process, the direct parent, ends in any way
    #[arg(long, hide = true, value_name = "PID")]
    parent_pid: Option<i32>,
}

/// Serves until a signal ends it.
pub(crate) fn run(global: &Global, args: StorageArgs) -> Ended {
    let Verb::Serve(args) = args.verb;
    if let Some(parent) = args.parent_pid {
        die_with_parent(parent)?;
    }
    if !args.listen.ip().is_loopback() && !args.insecure {
        return Err(Failure::usage(format!(
            "{} can be reached from other machines, and everybody who reaches it may write: there is no \
             authentication or encryption. Listen on 127.0.0.1, or add --insecure where the network itself is closed",
            args.listen
        )));
    }
    logging::start(&LogConfig::default())?;
    cluster::block_on(serve(global, args))
}

async fn serve(global: &Global, args: ServeArgs) -> Ended {
    let mut signals = Signals::ending().map_err(|e| Failure::other(format!("cannot catch signals: {e}")))?;
    let mut options = Options::new(args.listen, args.database);
    if global.endpoints.is_empty() {
        say::line(
            "no --endpoints: tokens higher than any seen before are believed without asking the lock service",
        );
    } else {
        options.token_check = Some(Arc::new(AskTheCluster::new(cluster::client(global)?)));
    }
    let mut service: StorageService =
        holdfast_fence::serve(options).await.map_err(|e| Failure::other(e.to_string()))?;
    output::write(&format!("ready http=http://{}", service.local_addr()))?;
    tokio::select! {
        biased;
        _ = signals.next_ending() => {
            say::line("stopping");
            service.stop().await.map_err(|e| Failure::other(e.to_string()))?;
            Ok(failure::OK)
        }
        ended = service.ended() => match ended {
            Ok(()) => Err(Failure::other("the storage service has ended by itself")),
            Err(e) => Err(Failure::other(e.to_string())),
        },
    }
}

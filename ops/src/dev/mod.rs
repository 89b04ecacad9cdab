//! `holdfast dev`: a local cluster of real member processes, until it is told to end.
//!
//! Members are its direct and only children. The kernel ends them when it dies in a way it cannot answer to.

pub(crate) mod child;
pub(crate) mod folder;
mod member;
pub(crate) mod ports;
mod ready;

use std::{path::PathBuf, process, rc::Rc, time::Duration};

use clap::Args;
use tokio::{sync::watch, task::JoinSet};

use crate::{
    failure::{self, Ended, Failure},
    output,
    run::{launch::die_with_parent, signals::Signals},
    say,
};

/// After this long without a ready cluster something is wrong, and worth saying.
const USUAL_START: Duration = Duration::from_secs(30);

const HELP: &str = "\
Member i listens on 127.0.0.1: HTTP (API, metrics) on BASE+10i, gRPC on BASE+10i+1, peers on BASE+10i+2.
Once every group has a leader, one line on standard output begins with `ready ` and names all endpoints.
A member that dies is started again after 2 s. Ctrl-C ends the cluster.

Examples:
  holdfast dev
  holdfast dev --members 5 --groups 8 --dir ./cluster
  holdfast dev --base-port 8600 > ready.txt & … kill %1";

/// Run a local cluster for development and tests
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct DevArgs {
    /// How many members
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..=9))]
    members: u16,
    /// How many lock groups
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=32))]
    groups: u16,
    /// How many members carry each lock group; all of them where there are no more
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..=9))]
    replicas: u16,
    /// Folder for the members' configuration, state and logs: new, empty, or one of an earlier run, which goes on; a
    /// temporary one where it is not given
    #[arg(long, value_name = "FOLDER")]
    dir: Option<PathBuf>,
    /// First port of the block that members listen on
    #[arg(long, value_name = "PORT", default_value_t = 7600)]
    base_port: u16,
    /// Where snapshots go: a folder, or s3://BUCKET/PREFIX with credentials and AWS_ENDPOINT_URL, AWS_REGION from the
    /// environment; without one, a folder of the cluster, or the store that it was restored from
    #[arg(long, value_name = "FOLDER|URL")]
    snapshot_store: Option<String>,
    /// Leave a member that died down
    #[arg(long)]
    no_restart: bool,
    /// End as soon as this process, the direct parent, ends in any way
    #[arg(long, hide = true, value_name = "PID")]
    parent_pid: Option<i32>,
}

/// Runs the cluster to its end.
pub(crate) fn run(args: DevArgs) -> Ended {
    if let Some(parent) = args.parent_pid {
        die_with_parent(parent)?;
    }
    // One thread, the main one: the parent-death signal of members is tied to the thread that started them.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|e| Failure::other(format!("cannot start: {e}")))?;
    let local = tokio::task::LocalSet::new();
    local.block_on(&runtime, cluster(args))
}

async fn cluster(args: DevArgs) -> Ended {
    let mut signals = Signals::ending().map_err(|e| Failure::other(format!("cannot catch signals: {e}")))?;
    if args.replicas > 3 && args.replicas > args.members {
        return Err(Failure::usage(format!(
            "--replicas {} needs as many members, and --members is {}",
            args.replicas, args.members
        )));
    }
    let shape = folder::Shape::new(args.members, args.groups, args.replicas);
    let folder = folder::Folder::open(args.dir.as_deref(), shape)?;
    let block = ports::Block::new(args.base_port, args.members)?;
    block.check_free()?;
    let (stop, stopped) = watch::channel(false);
    let mut members = JoinSet::new();
    for number in 1..=args.members {
        let config = folder.write_config(&block, number, args.snapshot_store.as_deref())?;
        let plan = member::Plan {
            number,
            parent: process::id(),
            config,
            log: folder.log(number),
            restart: !args.no_restart,
        };
        members.spawn_local(member::keep_running(Rc::new(plan), stopped.clone()));
    }
    say::line(&format!(
        "starting {} members with {} lock groups in {}",
        args.members,
        args.groups,
        folder.shown()
    ));
    let interrupted = tokio::select! {
        biased;
        _ = signals.next_ending() => true,
        () = announce(&block, &folder) => false,
    };
    if !interrupted {
        signals.next_ending().await;
    }
    say::line("stopping");
    // Receivers live in the members' tasks; those that ended need no telling.
    let _ = stop.send(true);
    let mut clean = true;
    while let Some(ended) = members.join_next().await {
        clean &= ended.unwrap_or(false);
    }
    if clean { Ok(failure::OK) } else { Err(Failure::other("a member did not stop in time and was killed")) }
}

/// Waits until the cluster works, and says so once.
async fn announce(block: &ports::Block, folder: &folder::Folder) {
    let ready = ready::all(block.http_addresses());
    tokio::pin!(ready);
    if tokio::time::timeout(USUAL_START, &mut ready).await.is_err() {
        say::line(&format!(
            "the cluster is still not ready; look at the members' logs: {}",
            folder.logs_hint()
        ));
        ready.await;
    }
    let (http, grpc) = (block.urls(ports::Listener::Http), block.urls(ports::Listener::Grpc));
    // A reader that has gone away does not need the line.
    let _ = output::write(&format!(
        "ready http={} grpc={} dir={}",
        http.join(","),
        grpc.join(","),
        folder.shown()
    ));
    say::line(&format!("ready; logs: {}", folder.logs_hint()));
    say::line(&format!("try: export HOLDFAST_ENDPOINTS={}", grpc.join(",")));
    say::line("     holdfast lock hello -- echo got it");
}

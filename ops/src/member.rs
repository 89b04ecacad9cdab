//! The one place of the command that starts a member in this process.
//!
//! Knows how to start, watch and stop it. Does not know what is inside.

use holdfast_node::{config::MemberConfig, member::Member};

use nix::sys::resource::{Resource, getrlimit, setrlimit};

use crate::{
    failure::{self, Ended, Failure},
    run::signals::Signals,
    supervisor,
};

/// Runs a member until a signal asks it to end, or it cannot go on.
pub(crate) fn serve(config: MemberConfig) -> Ended {
    allow_connections();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|e| Failure::other(format!("cannot start: {e}")))?;
    runtime.block_on(async {
        let mut signals =
            Signals::ending().map_err(|e| Failure::other(format!("cannot catch signals: {e}")))?;
        let number = config.member;
        let member = Member::start(config)
            .await
            .map_err(|e| Failure::other(format!("member {number} cannot start: {e}")))?;
        let fatal = tokio::select! {
            biased;
            signal = signals.next_ending() => {
                tracing::info!(%signal, "stopping");
                None
            }
            fatal = member.wait_fatal() => Some(fatal),
            never = supervisor::report(&member) => match never {},
        };
        supervisor::report_end();
        member.shutdown().await;
        match fatal {
            None => Ok(failure::OK),
            Some(fatal) => Err(Failure::other(format!("member {number} cannot go on: {fatal}"))),
        }
    })
}

/// Every client connection is an open file, and systems allow few by default: takes what is allowed at most.
fn allow_connections() {
    let raised = getrlimit(Resource::RLIMIT_NOFILE)
        .and_then(|(_, most)| setrlimit(Resource::RLIMIT_NOFILE, most, most).map(|()| most));
    match raised {
        Ok(files) => tracing::debug!(files, "open files allowed"),
        Err(error) => tracing::warn!(%error, "cannot raise the limit of open files"),
    }
}

//! Ctrl-C and termination: the first asks for an early end with a report, the second ends the process.

use std::process;

use tokio::{
    signal::unix::{SignalKind, signal},
    sync::watch,
};

use crate::failure::Failure;

/// How a shell says that a process was ended by an interrupt.
const INTERRUPTED: i32 = 130;

/// Catches interrupts from now on. The value turns true with the first.
pub(crate) fn catch() -> Result<watch::Receiver<bool>, Failure> {
    let failed = |error| Failure::other("cannot catch signals", error);
    let mut interrupt = signal(SignalKind::interrupt()).map_err(failed)?;
    let mut terminate = signal(SignalKind::terminate()).map_err(failed)?;
    let (said, heard) = watch::channel(false);
    // Lives as long as the process: it has nothing to end.
    tokio::spawn(async move {
        let mut before = false;
        loop {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
            if before {
                process::exit(INTERRUPTED);
            }
            before = true;
            said.send_replace(true);
            eprintln!("holdfast-loadtest: ending early; once more ends at once");
        }
    });
    Ok(heard)
}

/// Returns once there was an interrupt.
pub(crate) async fn wait(heard: &mut watch::Receiver<bool>) {
    if heard.wait_for(|said| *said).await.is_err() {
        std::future::pending::<()>().await;
    }
}

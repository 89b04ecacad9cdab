//! Every call of the client ends in time, whatever happens to the cluster: by its own limit and the request timeout.
//!
//! A process that stands still in between cannot end anything, and has the whole time again from when it goes on.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::time::sleep;

use crate::workload::Setting;

/// How long the client waits for an answer.
pub const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);
/// How much later than its limit a call may end: until the next look of the session's task, at most.
const SLACK: Duration = Duration::from_millis(1_200);

/// When the process went on after it had stood still. Clones are the same.
#[derive(Clone, Debug, Default)]
pub struct Thawed(Arc<AtomicU64>);

impl Thawed {
    /// It goes on at this moment.
    pub fn note(&self, now: u64) {
        self.0.store(now, Ordering::Relaxed);
    }

    /// Whether it has gone on since.
    #[must_use]
    pub fn since(&self, moment: u64) -> bool {
        self.0.load(Ordering::Relaxed) > moment
    }
}

/// Waits for a call that has to end within its limit and the request timeout, and says so where it does not.
pub async fn bounded<T>(
    setting: &Setting,
    thawed: &Thawed,
    (client, what): (u32, &str),
    limit: Duration,
    call: impl Future<Output = T>,
) -> Option<T> {
    let mut call = std::pin::pin!(call);
    loop {
        let begun = setting.world.now();
        tokio::select! {
            biased;
            answer = &mut call => return Some(answer),
            () = sleep(limit + REQUEST_TIMEOUT + SLACK) => {}
        }
        if !thawed.since(begun) {
            let sentence = format!("client {client} waits for {what} since {begun} ms at least");
            setting.findings.add("native", setting.world.now(), sentence);
            return None;
        }
    }
}

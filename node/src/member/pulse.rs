//! One pulse through everything of a member that must answer for it to be alive: its log with the thread that commits, and
//! of each group the Raft core and the actors.
//!
//! Knows who must answer. Does not know what follows where somebody does not: that is for whoever supervises the process.
//! Other members are never asked, so that a member that is cut off is not taken for one that hangs.

use std::{fmt, time::Duration};

use actix::Addr;
use futures::future::join_all;
use tokio::time::timeout;

use crate::{
    endpoint::router::Router,
    group::Group,
    log::actor::{LogActor, Pulse},
};

/// Who has not passed a pulse on in time.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct PulseLost {
    /// How long was waited.
    pub within: Duration,
    /// Who has not answered, as people name it; never empty.
    pub silent: Vec<String>,
}

impl fmt::Display for PulseLost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no answer within {:?} from {}", self.within, self.silent.join(", "))
    }
}

/// Asks all at once, each for at most so long.
pub(super) async fn pass(log: &Addr<LogActor>, router: &Router, within: Duration) -> Result<(), PulseLost> {
    let groups = router.groups();
    let groups = join_all(groups.iter().map(|group| through_group(group, router, within)));
    let (log, meta, groups) = tokio::join!(through_log(log, within), through_meta(router, within), groups);
    let silent: Vec<String> = log.into_iter().chain(meta).chain(groups.into_iter().flatten()).collect();
    if silent.is_empty() { Ok(()) } else { Err(PulseLost { within, silent }) }
}

async fn through_log(log: &Addr<LogActor>, within: Duration) -> Option<String> {
    match timeout(within, log.send(Pulse)).await {
        Ok(Ok(Ok(()))) => None,
        Ok(Ok(Err(error))) => Some(format!("the log ({error})")),
        Ok(Err(_)) | Err(_) => Some("the log".to_owned()),
    }
}

async fn through_meta(router: &Router, within: Duration) -> Option<String> {
    let meta = router.meta()?;
    let answered = timeout(within, meta.raft().pulse()).await.unwrap_or(false);
    (!answered).then(|| "the Raft core of the meta group".to_owned())
}

/// A group that this member has just given away ends while it is asked, and is missed by nobody.
async fn through_group(group: &Group, router: &Router, within: Duration) -> Vec<String> {
    let silent = group.pulse(within).await;
    let carried = router.group(group.id()).is_some();
    silent.into_iter().filter(|_| carried).map(|who| format!("{who} of group {}", group.id())).collect()
}

//! Whether everything of a group on this member still answers: its Raft core and its actors.
//!
//! Asks them all at once and names those that are late. Does not know what that means for the member.

use std::{future::Future, time::Duration};

use actix::{Context, Handler};
use tokio::time::timeout;

use super::Group;
use crate::{actors::Pulse, lease::LeaseManager, snapshot::actor::Snapshotter, watch::WatchFanout};

impl Group {
    /// Passes through the group's Raft core and each of its actors, and back. Names those that have not answered within the
    /// limit, or have ended.
    pub async fn pulse(&self, within: Duration) -> Vec<&'static str> {
        let (raft, parts) = (self.raft(), &self.parts);
        let (core, lease, fanout, snapshotter) = tokio::join!(
            answers(within, raft.pulse()),
            answers(within, async { parts.lease.send(Pulse).await.is_ok() }),
            answers(within, async { parts.fanout.send(Pulse).await.is_ok() }),
            answers(within, async { parts.snapshotter.send(Pulse).await.is_ok() }),
        );
        let all = [
            (core, "the Raft core"),
            (lease, "the lease manager"),
            (fanout, "the watch fan-out"),
            (snapshotter, "the snapshotter"),
        ];
        all.into_iter().filter(|(answered, _)| !answered).map(|(_, who)| who).collect()
    }
}

async fn answers(within: Duration, asked: impl Future<Output = bool>) -> bool {
    timeout(within, asked).await.unwrap_or(false)
}

impl Handler<Pulse> for LeaseManager {
    type Result = ();

    fn handle(&mut self, _: Pulse, _: &mut Context<Self>) {}
}

impl Handler<Pulse> for WatchFanout {
    type Result = ();

    fn handle(&mut self, _: Pulse, _: &mut Context<Self>) {}
}

impl Handler<Pulse> for Snapshotter {
    type Result = ();

    fn handle(&mut self, _: Pulse, _: &mut Context<Self>) {}
}

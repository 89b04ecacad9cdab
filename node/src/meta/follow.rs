//! What applying the meta group's log tells its member: that the map, the placement or the members may have changed.
//!
//! Knows no verbs; who is told looks at the replica.

use std::sync::Arc;

use holdfast_locktable::table::Position;
use holdfast_partitioner::PartitionMap;
use tokio::sync::{Notify, watch};

use super::{MetaApplied, MetaOutcome, group::MetaGroup};
use crate::{endpoint::places::PlacesTell, raft::sink::ApplySink};

/// Notices when the replica's partition map may have changed, and when a change of it begins.
#[derive(Debug, Default)]
pub struct MapSink {
    stale: Arc<Notify>,
    begun: Arc<Notify>,
    placed: Arc<Notify>,
    members: Arc<Notify>,
}

impl MapSink {
    /// Notified when the roster may have changed.
    pub fn members(&self) -> Arc<Notify> {
        self.members.clone()
    }

    /// Notified when the map may have changed.
    pub fn stale(&self) -> Arc<Notify> {
        self.stale.clone()
    }

    /// Notified when the placement may have changed.
    pub fn placed(&self) -> Arc<Notify> {
        self.placed.clone()
    }

    /// Notified when a change of the map may have begun.
    pub fn begun(&self) -> Arc<Notify> {
        self.begun.clone()
    }
}

impl ApplySink<MetaApplied> for MapSink {
    fn applied(&self, batch: Vec<(Position, MetaApplied)>) {
        let changed = |(_, applied): &(Position, MetaApplied)| {
            let Ok(outcome) = &applied.result else { return false };
            matches!(outcome, MetaOutcome::MapSet { .. } | MetaOutcome::Placed(_) | MetaOutcome::Roster(_))
        };
        if batch.iter().any(changed) {
            self.stale.notify_one();
        }
        let placed = |(_, applied): &(Position, MetaApplied)| {
            matches!(applied.result, Ok(MetaOutcome::Placed(_) | MetaOutcome::Roster(_)))
        };
        if batch.iter().any(placed) {
            self.placed.notify_one();
        }
        let members =
            |(_, applied): &(Position, MetaApplied)| matches!(applied.result, Ok(MetaOutcome::Roster(_)));
        if batch.iter().any(members) {
            self.members.notify_one();
        }
        let begun = |(_, applied): &(Position, MetaApplied)| {
            matches!(applied.result, Ok(MetaOutcome::ChangeBegun { .. }))
        };
        if batch.iter().any(begun) {
            self.begun.notify_one();
        }
    }

    fn restored(&self) {
        self.stale.notify_one();
        self.begun.notify_one();
        self.placed.notify_one();
        self.members.notify_one();
    }
}

/// Copies the replica's map and placement to where everybody looks, whenever they may have changed.
pub async fn follow_map(
    group: MetaGroup,
    map: watch::Sender<Option<Arc<PartitionMap>>>,
    places: PlacesTell,
    stale: Arc<Notify>,
) {
    loop {
        // Who sees the map sees the placement that was before it.
        let (now, placement) = (group.map(), group.placement());
        places.tell(placement, now.is_some());
        if let Some(now) = now {
            map.send_replace(Some(Arc::new(now)));
        }
        stale.notified().await;
    }
}

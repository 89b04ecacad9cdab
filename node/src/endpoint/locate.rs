//! Finding the groups in which holds stand now, whichever way their ranges have gone (rule R3).
//!
//! Asks owners by the map, and those that say that a range is elsewhere once more by a newer one, within a short limit: the
//! caller asks again itself, and lives by what it knows until then. Knows no leases.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use holdfast_locktable::event::Removal;
use holdfast_partitioner::{GroupId, MapEpoch, PartitionMap};
use tokio::time::{Instant, timeout_at};

use super::Endpoint;
use crate::{
    group::{
        call::{GroupAnswer, GroupCall},
        locate::Found,
    },
    watch::holds::Hold,
};

/// How long holds are looked for. Well below the second after which clients ask again, so that one group without leader
/// keeps nobody from hearing of the others.
const LIMIT: Duration = Duration::from_millis(500);
/// Pause before holds are looked for again that were nowhere, unless a newer map comes.
const PAUSE: Duration = Duration::from_millis(25);
/// Most holds in one question to a group.
const BATCH: usize = 1_000;

/// Where a hold stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Located {
    /// In this group, under this ownership epoch.
    Stands {
        /// The group.
        group: GroupId,
        /// The epoch.
        epoch: MapEpoch,
    },
    /// It has ended; why, where that is remembered.
    Ended(Option<Removal>),
    /// Nobody could say in time.
    Unknown,
}

/// What one group said of the holds with these numbers.
type Said = (GroupId, Vec<usize>, MapEpoch, Vec<Found>);

impl Endpoint {
    /// Says where each hold stands, in order.
    pub async fn locate(&self, holds: &[Hold]) -> Vec<Located> {
        let end = Instant::now() + LIMIT.min(self.patience());
        let mut places = vec![Located::Unknown; holds.len()];
        let mut open: Vec<usize> = (0..holds.len()).collect();
        let mut maps = self.parts.map.clone();
        loop {
            let Some(map) = maps.borrow_and_update().clone() else { return places };
            open = self.look(&map, holds, &open, &mut places, end).await;
            if open.is_empty() || Instant::now() >= end {
                return places;
            }
            // Whatever comes first, the next look decides.
            let _ = timeout_at(end.min(Instant::now() + PAUSE), maps.changed()).await;
        }
    }

    /// Asks the owners by this map. Answers which holds are said to be elsewhere.
    async fn look(
        &self,
        map: &Arc<PartitionMap>,
        holds: &[Hold],
        open: &[usize],
        places: &mut [Located],
        end: Instant,
    ) -> Vec<usize> {
        let mut owners: BTreeMap<GroupId, Vec<usize>> = BTreeMap::new();
        for at in open {
            if let Some(hold) = holds.get(*at) {
                owners.entry(map.locate(hold.name.internal())).or_default().push(*at);
            }
        }
        let chunks = owners.iter().flat_map(|(group, all)| all.chunks(BATCH).map(|chunk| (*group, chunk)));
        let asked = chunks.map(|(group, chunk)| self.ask_owner(group, chunk, holds, end));
        let mut elsewhere = Vec::new();
        for (group, chunk, epoch, found) in futures::future::join_all(asked).await.into_iter().flatten() {
            for (at, found) in chunk.into_iter().zip(found) {
                let place = match found {
                    Found::Stands => Located::Stands { group, epoch },
                    Found::Ended(reason) => Located::Ended(reason),
                    Found::Elsewhere => {
                        elsewhere.push(at);
                        continue;
                    }
                };
                if let Some(known) = places.get_mut(at) {
                    *known = place;
                }
            }
        }
        elsewhere.sort_unstable();
        elsewhere
    }

    async fn ask_owner(&self, group: GroupId, chunk: &[usize], holds: &[Hold], end: Instant) -> Option<Said> {
        let asked = chunk.iter().filter_map(|at| holds.get(*at).cloned()).collect();
        let answer = timeout_at(end, self.parts.router.call(group, GroupCall::Locate(asked))).await;
        match answer {
            Ok(Ok(GroupAnswer::Located { epoch, holds })) => Some((group, chunk.to_vec(), epoch, holds)),
            Ok(Ok(other)) => {
                tracing::error!(%group, answer = other.kind(), "unexpected answer to a question for holds");
                None
            }
            Ok(Err(error)) => {
                tracing::debug!(%group, %error, "holds were not located");
                None
            }
            Err(_) => None,
        }
    }
}

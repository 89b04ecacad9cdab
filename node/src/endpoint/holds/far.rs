//! Holds in groups that have no replica on this member: their owners are asked in rounds whether they still stand.
//!
//! One question per thousand holds of a group and round. A hold whose group comes here is handed back to be followed here.

use std::{collections::BTreeMap, time::Duration};

use holdfast_locktable::event::Removal;
use holdfast_partitioner::MapEpoch;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::{
    endpoint::{Endpoint, locate::Located},
    watch::holds::{Hold, HoldNews, Listener},
};

/// Pause between two rounds. A round itself may wait half a second for a group without a leader, so that the end of a hold is told
/// within one and a half seconds.
const ROUND: Duration = Duration::from_millis(500);

/// A hold to follow, the last map epoch under which it stood somewhere, and who listens.
type Wanted = (Hold, MapEpoch, Listener);

/// The way to have a hold followed that is elsewhere. Bounded by the holds of the member's streams.
#[derive(Clone, Debug)]
pub struct FarHolds(UnboundedSender<Wanted>);

/// The other end of it.
#[derive(Debug)]
pub struct FarQueue(UnboundedReceiver<Wanted>);

impl FarHolds {
    /// Both ends.
    pub fn new() -> (Self, FarQueue) {
        let (queue, wanted) = unbounded_channel();
        (Self(queue), FarQueue(wanted))
    }

    pub(super) fn follow(&self, hold: &Hold, epoch: MapEpoch, listener: &Listener) {
        // As the member goes down nobody needs to hear any more.
        let _ = self.0.send((hold.clone(), epoch, listener.clone()));
    }
}

impl Endpoint {
    /// Follows holds that are elsewhere until it is dropped.
    pub async fn follow_far_holds(self, FarQueue(mut queue): FarQueue) {
        let mut known: BTreeMap<Hold, (MapEpoch, Listener)> = BTreeMap::new();
        loop {
            if known.is_empty() {
                let Some((hold, epoch, listener)) = queue.recv().await else { return };
                known.insert(hold, (epoch, listener));
            }
            while let Ok((hold, epoch, listener)) = queue.try_recv() {
                known.insert(hold, (epoch, listener));
            }
            known.retain(|_, (_, listener)| !listener.is_closed());
            self.look_at(&mut known).await;
            tokio::time::sleep(ROUND).await;
        }
    }

    /// One round: what has ended or come here is told and known no more.
    async fn look_at(&self, known: &mut BTreeMap<Hold, (MapEpoch, Listener)>) {
        let holds: Vec<Hold> = known.keys().cloned().collect();
        let places = self.locate(&holds).await;
        for (hold, place) in holds.into_iter().zip(places) {
            let news = match place {
                Located::Ended(reason) => {
                    HoldNews::Ended { hold: hold.clone(), reason: reason.unwrap_or(Removal::Deleted) }
                }
                Located::Stands { group, epoch } if self.parts.router.current_group(group).is_some() => {
                    HoldNews::LookAgain { hold: hold.clone(), epoch }
                }
                Located::Stands { .. } | Located::Unknown => continue,
            };
            if let Some((_, listener)) = known.remove(&hold) {
                // A listener that went away need not hear.
                let _ = listener.send(news);
            }
        }
    }
}

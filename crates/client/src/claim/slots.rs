//! One part per session and claim: whoever comes again waits until the one before has left.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use parking_lot::Mutex;
use tokio::{sync::OwnedMutexGuard, time::timeout};

/// The claims that a session takes part in, or is leaving.
#[derive(Debug, Default)]
pub(crate) struct Slots {
    by_name: Mutex<BTreeMap<Arc<str>, Slot>>,
}

#[derive(Debug, Default)]
struct Slot {
    alone: Arc<tokio::sync::Mutex<()>>,
    joined: bool,
}

impl Slots {
    /// Begins to join. `None` where the session takes part already, or has not left within `limit`.
    pub(super) async fn begin(&self, name: &Arc<str>, limit: Duration) -> Option<OwnedMutexGuard<()>> {
        let alone = {
            let mut slots = self.by_name.lock();
            // What nobody takes part in, is joining or leaving any more.
            slots.retain(|_, slot| slot.joined || Arc::strong_count(&slot.alone) > 1);
            let slot = slots.entry(name.clone()).or_default();
            if slot.joined {
                return None;
            }
            slot.alone.clone()
        };
        timeout(limit, alone.lock_owned()).await.ok()
    }

    pub(super) fn joined(&self, name: &str) {
        self.set(name, true);
    }

    /// The part is over, though it may still be leaving.
    pub(super) fn ended(&self, name: &str) {
        self.set(name, false);
    }

    fn set(&self, name: &str, joined: bool) {
        if let Some(slot) = self.by_name.lock().get_mut(name) {
            slot.joined = joined;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_claim_that_is_left_is_forgotten() {
        let (slots, limit) = (Slots::default(), Duration::ZERO);
        let names: Vec<Arc<str>> = (0..3).map(|n| format!("claim-{n}").into()).collect();
        let first = slots.begin(&names[0], limit).await.expect("free");
        slots.joined(&names[0]);
        assert!(slots.begin(&names[0], limit).await.is_none(), "it takes part already");
        slots.ended(&names[0]);
        assert!(slots.begin(&names[0], limit).await.is_none(), "it is still leaving");
        drop(first);
        drop(slots.begin(&names[1], limit).await.expect("free"));
        drop(slots.begin(&names[2], limit).await.expect("free"));
        assert_eq!(slots.by_name.lock().keys().collect::<Vec<_>>(), [&names[2]]);
    }
}

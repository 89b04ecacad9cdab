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

//! Whether a leader has lost its quorum: shared by the task that notices and by the links, which then send nothing.
//!
//! A leader that is heard and cannot hear would otherwise keep its group without a working leader for ever: openraft
//! repeats its appends, and each that arrives renews the patience of the others. Heartbeats are spaced by openraft itself
//! (`quorum_loss_probe_interval`) and go on: they find out when the quorum is back.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

/// A flag for one group on one member. Clones are the same.
#[derive(Clone, Debug, Default)]
pub(crate) struct Silence(Arc<AtomicBool>);

impl Silence {
    /// Keeps silent, or no longer.
    pub(crate) fn keep(&self, silent: bool) {
        self.0.store(silent, Ordering::Relaxed);
    }

    /// Whether to keep silent.
    pub(crate) fn kept(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

//! Parcels from one process to another that arrive in the order in which they were sent, until the first is lost.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU64, Ordering},
};

use super::{Network, Node, Seat};

/// One direction of a stream. Clones are the same direction.
#[derive(Clone, Debug)]
pub struct Pipe {
    network: Network,
    from: Node,
    to: Node,
    kind: &'static str,
    state: Arc<PipeState>,
}

#[derive(Debug, Default)]
struct PipeState {
    last: AtomicU64,
    broken: AtomicBool,
}

/// Breaks the pipe unless the parcel it belongs to arrives.
struct Unbroken {
    state: Arc<PipeState>,
    arrived: bool,
}

impl Unbroken {
    /// The parcel has arrived: answers whether all before it have as well.
    fn arrive(mut self) -> bool {
        self.arrived = true;
        !self.state.broken.load(Ordering::Relaxed)
    }
}

impl Drop for Unbroken {
    fn drop(&mut self) {
        if !self.arrived {
            self.state.broken.store(true, Ordering::Relaxed);
        }
    }
}

impl Pipe {
    /// A pipe that is whole.
    #[must_use]
    pub fn new(network: &Network, from: Node, to: Node, kind: &'static str) -> Self {
        Self { network: network.clone(), from, to, kind, state: Arc::default() }
    }

    /// Sends work; it is dropped where the pipe has broken before it arrives. Answers whether the pipe is whole so far.
    pub fn send(&self, work: impl FnOnce(Option<&Seat>) + Send + 'static) -> bool {
        if self.state.broken.load(Ordering::Relaxed) {
            return false;
        }
        let unbroken = Unbroken { state: Arc::clone(&self.state), arrived: false };
        let work = move |seat: Option<&Seat>| {
            if unbroken.arrive() {
                work(seat);
            }
        };
        let earliest = self.state.last.load(Ordering::Relaxed);
        let at = self.network.send(self.from, self.to, self.kind, earliest, Box::new(work));
        self.state.last.store(at, Ordering::Relaxed);
        true
    }
}

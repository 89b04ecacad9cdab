//! Which requests are being given up right now: plain state, with a count of them that calls may read.
//!
//! A request that nobody came back for is cancelled, its grant included. A repeat that is proposed just before that cancel
//! would be told of a grant which the cancel then takes away, under a client that counts on it. So a call attaches first
//! and then looks at [`Intent`]: where nothing is being given up, whatever will be sees the call and leaves its request
//! alone; otherwise the call waits until the cancel of its request, if there is one, is decided. Knows no time.

use std::{
    collections::{BTreeMap, btree_map::Entry},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use tokio::sync::oneshot;

use super::waits::WaitKey;

/// How many give-ups are intended or under way in one group on this member. Clones are the same.
#[derive(Clone, Debug, Default)]
pub struct Intent(Arc<AtomicUsize>);

impl Intent {
    fn begin(&self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }

    fn end(&self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }

    /// Whether there is any. To be asked after the call has attached.
    pub fn any(&self) -> bool {
        self.0.load(Ordering::SeqCst) > 0
    }
}

/// The requests being given up, and the calls that wait for the end of it.
#[derive(Debug, Default)]
pub struct GiveUps {
    intent: Intent,
    under_way: BTreeMap<WaitKey, Vec<oneshot::Sender<()>>>,
}

impl GiveUps {
    /// None yet, counted in `intent`.
    pub fn new(intent: Intent) -> Self {
        Self { intent, under_way: BTreeMap::new() }
    }

    /// A look at what is to be given up is intended. To be called before it stands in line, so that a call which reads no
    /// intent has attached before that look.
    pub fn look_intended(&self) {
        self.intent.begin();
    }

    /// That look is over.
    pub fn looked(&self) {
        self.intent.end();
    }

    /// The cancel of a request is about to be proposed.
    pub fn begin(&mut self, key: WaitKey) {
        if let Entry::Vacant(vacant) = self.under_way.entry(key) {
            self.intent.begin();
            vacant.insert(Vec::new());
        }
    }

    /// The cancel of a request is decided, or given up itself: its calls may go on.
    pub fn end(&mut self, key: &WaitKey) {
        if let Some(calls) = self.under_way.remove(key) {
            self.intent.end();
            for call in calls {
                // A caller that went away needs no word.
                let _ = call.send(());
            }
        }
    }

    /// Tells `call` once its request is not being given up.
    pub fn once_over(&mut self, key: &WaitKey, call: oneshot::Sender<()>) {
        match self.under_way.get_mut(key) {
            Some(calls) => calls.push(call),
            None => {
                let _ = call.send(());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{super::told::tests::key, *};

    #[test]
    fn a_call_waits_for_the_cancel_of_its_own_request_only() {
        let intent = Intent::default();
        let mut give_ups = GiveUps::new(intent.clone());
        assert!(!intent.any());
        give_ups.begin(key(1));
        assert!(intent.any());
        let (own, mut own_heard) = oneshot::channel();
        let (other, mut other_heard) = oneshot::channel();
        give_ups.once_over(&key(1), own);
        give_ups.once_over(&key(2), other);
        assert_eq!(other_heard.try_recv(), Ok(()));
        assert!(own_heard.try_recv().is_err());
        give_ups.end(&key(1));
        assert_eq!(own_heard.try_recv(), Ok(()));
        assert!(!intent.any());
    }

    #[test]
    fn what_is_given_up_anew_counts_once() {
        let intent = Intent::default();
        let mut give_ups = GiveUps::new(intent.clone());
        give_ups.begin(key(1));
        give_ups.begin(key(1));
        give_ups.end(&key(1));
        give_ups.end(&key(1));
        assert!(!intent.any());
    }
}

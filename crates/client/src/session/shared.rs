//! What the handles of a session and its task share. Handles change the state and wake the task; the task talks to the
//! server. Nobody holds the lock across an await.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use holdfast_proto::v1;
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::{Notify, watch};

use super::core::Core;
use crate::{
    claim::Slots,
    client::Inner,
    clock::Moment,
    ids::SessionId,
    state::{HoldState, LossReason, SessionState},
};

/// One session, seen from both sides.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) client: Arc<Inner>,
    pub(crate) session: SessionId,
    core: Mutex<Core>,
    wake: Notify,
    /// A member has answered a request since this was last asked for.
    answered: AtomicBool,
    state: watch::Sender<SessionState>,
    holds: Mutex<BTreeMap<u64, watch::Sender<HoldState>>>,
    /// The claims that the session takes part in.
    pub(crate) claims: Slots,
}

impl Shared {
    pub(crate) fn new(client: Arc<Inner>, session: SessionId, core: Core) -> Self {
        let (state, _) = watch::channel(SessionState::Safe);
        Self {
            client,
            session,
            core: Mutex::new(core),
            wake: Notify::new(),
            answered: AtomicBool::new(false),
            state,
            holds: Mutex::new(BTreeMap::new()),
            claims: Slots::default(),
        }
    }

    pub(crate) fn now(&self) -> Moment {
        self.client.clock.now()
    }

    /// The state as it is now: time that has passed unnoticed is taken in first.
    pub(crate) fn core(&self) -> MutexGuard<'_, Core> {
        let mut core = self.core.lock();
        core.tick(self.now());
        core
    }

    /// Takes in what the member says.
    pub(super) fn deliver(&self, message: v1::SessionResponse) {
        // A member that carries the session and then ends the stream has not proved anything.
        let proves = !matches!(message.body, Some(v1::session_response::Body::Resumed(_)));
        let now = self.now();
        self.core().on_message(message, now);
        self.answered.fetch_or(proves, Ordering::Relaxed);
        self.wake();
    }

    /// Whether a member has answered since this was last asked.
    pub(super) fn take_answered(&self) -> bool {
        self.answered.swap(false, Ordering::Relaxed)
    }

    /// Wakes the task: there is something to send, or to notice.
    pub(crate) fn wake(&self) {
        self.wake.notify_one();
    }

    pub(crate) async fn woken(&self) {
        self.wake.notified().await;
    }

    /// Tells everybody who watches what has changed.
    pub(crate) fn publish(&self, core: &mut Core) {
        let now = self.now();
        let (changed, session) = core.ledger_mut().take_changes(now);
        if let Some(state) = session {
            self.state.send_replace(state);
        }
        if changed.is_empty() {
            return;
        }
        let holds = self.holds.lock();
        for sequence in changed {
            if let Some(sender) = holds.get(&sequence) {
                let state = core.ledger().hold_state(sequence, now);
                sender.send_if_modified(|old| std::mem::replace(old, state) != state);
            }
        }
    }

    pub(crate) fn states(&self) -> watch::Receiver<SessionState> {
        self.state.subscribe()
    }

    /// Begins to tell about a hold.
    pub(crate) fn watch_hold(&self, sequence: u64) -> watch::Receiver<HoldState> {
        let state = self.core().ledger().hold_state(sequence, self.now());
        let (sender, receiver) = watch::channel(state);
        self.holds.lock().insert(sequence, sender);
        // It may have turned between the two.
        let state = self.core().ledger().hold_state(sequence, self.now());
        if let Some(sender) = self.holds.lock().get(&sequence) {
            sender.send_if_modified(|old| std::mem::replace(old, state) != state);
        }
        receiver
    }

    pub(crate) fn unwatch_hold(&self, sequence: u64) {
        self.holds.lock().remove(&sequence);
    }

    /// The task is gone without having ended the session: nobody keeps it alive any more.
    pub(crate) fn stopped(&self) {
        let mut core = self.core();
        core.end(&LossReason::Stopped, self.now());
        self.publish(&mut core);
    }
}

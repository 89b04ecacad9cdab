//! Which session belongs to which client, for what operators do to them. Knows nothing of the service.

use std::{collections::BTreeMap, sync::Arc};

use holdfast_locktable::ids::SessionId;
use parking_lot::Mutex;

use super::session::Session;

/// All sessions that clients have opened. Clones are the same registry.
#[derive(Clone, Debug, Default)]
pub struct Registry(Arc<Mutex<BTreeMap<SessionId, Session>>>);

impl Registry {
    /// A session was opened.
    pub fn add(&self, session: &Session) {
        self.0.lock().insert(session.id(), session.clone());
    }

    /// The session of this id, whether its client still uses it or not.
    #[must_use]
    pub fn get(&self, session: SessionId) -> Option<Session> {
        self.0.lock().get(&session).cloned()
    }

    /// Those that their clients still use, in the order of their ids.
    #[must_use]
    pub fn in_use(&self) -> Vec<Session> {
        self.0.lock().values().filter(|session| !session.is_over()).cloned().collect()
    }
}

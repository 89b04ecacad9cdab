//! What became of a request, answered from state (rule R8).

use super::super::{Earlier, LockTable};
use crate::{
    command::RequestId,
    ids::{Revision, SessionId, Token},
    name::Name,
    outcome::RequestEnd,
};

/// What became of an acquire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestState {
    /// It holds.
    Holds {
        /// The fencing token.
        token: Token,
    },
    /// It stands in line.
    Waits {
        /// Create revision of its key: its token, once it is granted.
        revision: Revision,
        /// How many stand before it, the holder included.
        ahead: u32,
    },
    /// It has ended.
    Ended(RequestEnd),
    /// At or below the session's floor, or its number was used for another name: it will never be executed.
    Stale,
    /// Nothing is known of it: never applied, a busy try, or a session of which nothing is known.
    Unknown,
}

impl LockTable {
    /// What became of an acquire of this session.
    pub fn request_state(&self, session: SessionId, name: &Name, request: &RequestId) -> RequestState {
        match self.earlier(session, name, request) {
            Earlier::New => RequestState::Unknown,
            Earlier::Stale => RequestState::Stale,
            Earlier::Ended(end) => RequestState::Ended(end),
            Earlier::Live(revision) => match self.index.ahead(name, revision) {
                0 => RequestState::Holds { token: revision },
                ahead => RequestState::Waits { revision, ahead },
            },
        }
    }

    /// What is known of a request. A key that it created answers first, so that a client may count a request as
    /// answered once it knows that it stands in line; then the session's records do.
    pub(crate) fn earlier(&self, session: SessionId, name: &Name, request: &RequestId) -> Earlier {
        let Some(requests) = self.state.requests(session) else { return Earlier::New };
        if let Some(record) = self.state.keys.get(name.key(session).as_slice()) {
            let asked = record.place.as_ref().and_then(|place| place.request.as_ref());
            if asked.is_some_and(|asked| asked.same(request)) {
                return Earlier::Live(record.create);
            }
        }
        requests.find(name, request)
    }
}

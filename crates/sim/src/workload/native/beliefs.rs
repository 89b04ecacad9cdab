//! What the product's clients believe: which sessions they have, what they count on, and what an operator has taken.
//!
//! Whatever a guard calls held is counted on until the moment that the guard names, also while its process stands still;
//! [`grants`](crate::check::grants) compares that with all tables.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use holdfast_history::{Fact, SessionEnd, SessionId as Id};
use holdfast_locktable::{
    ids::{Revision, SessionId, Token},
    name::Name,
};
use holdfast_partitioner::GroupId;
use parking_lot::Mutex;

use super::guard::Guard;
use crate::{
    check::grants::Counted,
    workload::{Setting, session::Who},
};

#[derive(Debug)]
struct Known {
    who: Who,
    held: BTreeMap<Name, Token>,
    over: bool,
}

#[derive(Debug, Default)]
struct Books {
    sessions: BTreeMap<SessionId, Known>,
    /// Holds that an operator has ended.
    forced: BTreeSet<(Name, Token)>,
    grants: u64,
}

/// What all clients of this kind believe. Clones are the same.
#[derive(Clone, Debug, Default)]
pub struct Beliefs(Arc<Mutex<Books>>);

impl Beliefs {
    /// A session was opened.
    pub fn opened(&self, who: Who, session: SessionId) {
        let known = Known { who, held: BTreeMap::new(), over: false };
        self.0.lock().sessions.insert(session, known);
    }

    /// How many grants there were.
    #[must_use]
    pub fn grants(&self) -> u64 {
        self.0.lock().grants
    }

    /// Whether an operator has ended a hold.
    #[must_use]
    pub fn is_forced(&self, name: &Name, token: Token) -> bool {
        self.0.lock().forced.contains(&(name.clone(), token))
    }

    /// A lock was granted to a session.
    pub fn granted(&self, session: SessionId, name: &Name, token: Token) {
        let mut books = self.0.lock();
        books.grants += 1;
        if let Some(known) = books.sessions.get_mut(&session) {
            known.held.insert(name.clone(), token);
        }
    }

    /// Whether a hold is counted on: neither given back, nor lost, nor taken.
    #[must_use]
    pub fn counts(&self, session: SessionId, name: &Name, token: Token) -> bool {
        let books = self.0.lock();
        books.sessions.get(&session).is_some_and(|known| !known.over && known.held.get(name) == Some(&token))
    }

    /// A guard says how long its hold lasts.
    pub fn count(&self, setting: &Setting, session: SessionId, name: &Name, guard: &Guard) {
        let token = Revision(guard.token());
        let Some(client) = self.client(session).filter(|_| self.counts(session, name, token)) else { return };
        let left = u64::try_from(guard.remaining().as_millis()).unwrap_or(u64::MAX);
        let deadline_ms = setting.world.now().saturating_add(left);
        let counted = Counted { session, token, group: GroupId(guard.group()), deadline_ms };
        setting.counts.count(client, name, counted);
    }

    fn client(&self, session: SessionId) -> Option<u32> {
        self.0.lock().sessions.get(&session).map(|known| known.who.client)
    }

    /// A hold is counted on no more. Answers whether it was.
    pub fn let_go(&self, setting: &Setting, session: SessionId, name: &Name, token: Token) -> bool {
        let mut books = self.0.lock();
        let Some(known) = books.sessions.get_mut(&session) else { return false };
        let counted = known.held.get(name) == Some(&token);
        if counted {
            known.held.remove(name);
            setting.counts.strike(known.who.client, name);
        }
        counted
    }

    /// An operator ends a hold, as the client is told a moment later.
    pub fn force(&self, setting: &Setting, session: SessionId, name: &Name, token: Token) {
        let Some(client) = self.client(session) else { return };
        self.0.lock().forced.insert((name.clone(), token));
        self.let_go(setting, session, name, token);
        let (session, lock) = (Id(session.get()), name.text().into());
        setting.journal.note(Fact::ReleaseSent { client, session, lock, token: token.0 });
    }

    /// A session is over, as its client sees it.
    pub fn ended(&self, setting: &Setting, session: SessionId, end: SessionEnd) {
        if self.strike(setting, session) {
            setting.journal.note(Fact::SessionEnded { session: Id(session.get()), end });
        }
    }

    /// A process is gone, with everything it had.
    pub fn died(&self, setting: &Setting, client: u32) {
        let its: Vec<SessionId> = {
            let books = self.0.lock();
            let of = |known: &Known| known.who.client == client && !known.over;
            books.sessions.iter().filter(|(_, known)| of(known)).map(|(session, _)| *session).collect()
        };
        let last_sent = setting.journal.now_ns();
        for session in its {
            self.strike(setting, session);
            setting.journal.note(Fact::SessionSilent { session: Id(session.get()), last_sent });
        }
    }

    fn strike(&self, setting: &Setting, session: SessionId) -> bool {
        let mut books = self.0.lock();
        let Some(known) = books.sessions.get_mut(&session).filter(|known| !known.over) else { return false };
        known.over = true;
        for name in std::mem::take(&mut known.held).keys() {
            setting.counts.strike(known.who.client, name);
        }
        true
    }
}

//! One session of the product's client: several works at once with it, and somebody who looks at what it says of itself.

use std::{
    cell::{Cell, RefCell},
    collections::BTreeSet,
    rc::{Rc, Weak},
    sync::Arc,
    time::Duration,
};

use futures::{FutureExt, future::join_all};
use holdfast_client::{Client, Error, HoldState, LossReason, SessionState};
use holdfast_history::{Fact, SessionEnd, SessionId as Id};
use holdfast_locktable::{
    ids::{Revision, SessionId},
    name::Name,
};
use rand::{Rng, SeedableRng};
use tokio::task::spawn_local;

use super::{
    acquire,
    audit::{self, Promise},
    bound::{Thawed, bounded},
    guard::Guard,
};
use crate::{
    entropy::Dice,
    workload::{Setting, pause, session::Who},
};

const NS_PER_MS: u64 = 1_000_000;
/// How often the session is looked at, in milliseconds.
const LOOK_MS: u64 = 5;
/// How often it is taken down that the session is safe, in milliseconds.
const NOTED_MS: u64 = 200;
/// What the client leaves unused of each lease, in milliseconds, with TTLs as short as here.
const MARGIN_MS: u64 = 100;
/// A process that has just gone on needs so many milliseconds to find out what has passed.
const WAKING_MS: u64 = 20;
/// How long the members may take to forget what the session has given up, once all faults are over.
const SETTLE_MS: u64 = 15_000;

/// A guard that is looked at.
#[derive(Debug)]
struct Watched {
    name: Name,
    guard: Weak<Guard>,
    /// When the lease ends that the guard has named last.
    until: u64,
    /// The deadline that members were asked about last.
    audited: u64,
}

/// One session, for everything that uses it.
#[derive(Debug)]
pub struct Session {
    /// What clients share.
    pub setting: Setting,
    /// Whose it is.
    pub who: Who,
    /// When its process has stood still.
    pub thawed: Thawed,
    /// Whether it holds its locks for long.
    pub patient: bool,
    /// The client.
    pub client: Client,
    /// The session.
    pub session: holdfast_client::Session,
    /// Its id.
    pub id: SessionId,
    /// Names that some work uses.
    pub used: RefCell<BTreeSet<Name>>,
    /// Acquires that may hold for a while after they were given up: the lock, and since when.
    pub loose: RefCell<Vec<(Arc<str>, u64)>>,
    watched: RefCell<Vec<Watched>>,
    noted: Cell<u64>,
}

impl Session {
    /// A session that was just opened.
    #[must_use]
    pub fn new(
        setting: Setting,
        who: Who,
        (thawed, patient): (Thawed, bool),
        (client, session, id): (Client, holdfast_client::Session, SessionId),
    ) -> Self {
        let noted = Cell::new(setting.world.now());
        Self {
            setting,
            who,
            thawed,
            patient,
            client,
            session,
            id,
            used: RefCell::default(),
            loose: RefCell::default(),
            watched: RefCell::default(),
            noted,
        }
    }

    /// Uses it for a while, and ends it in good order or not.
    pub async fn live(self, mut dice: Dice) {
        let this = Rc::new(self);
        spawn_local(look(Rc::downgrade(&this)));
        let works = (0..dice.random_range(1..=3)).map(|_| work(&this, Dice::from_rng(&mut dice)));
        let works: Vec<_> = works.collect();
        join_all(works).await;
        if this.setting.stopping() {
            this.settle().await;
        }
        for (lock, since) in this.loose.take() {
            this.setting.journal.perhaps(&lock, Id(this.id.get()), since);
        }
        this.setting.natives.ended(&this.setting, this.id, SessionEnd::Closed);
        // Some close it, some only let it go.
        if dice.random_bool(0.7) {
            let closing = this.session.close();
            let who = (this.who.client, "the end of a session");
            bounded(&this.setting, &this.thawed, who, Duration::ZERO, closing).await;
        }
    }

    /// Whether it is over, as its client says.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.session.state() == SessionState::Lost
    }

    /// A guard is looked at from now on.
    pub fn watch(&self, name: &Name, guard: &Rc<Guard>) {
        let watched =
            Watched { name: name.clone(), guard: Rc::downgrade(guard), until: u64::MAX, audited: 0 };
        self.watched.borrow_mut().push(watched);
        self.look();
    }

    /// Something must not be.
    pub fn find(&self, sentence: String) {
        let sentence = format!("client {}, session {}: {sentence}", self.who.client, self.id);
        self.setting.findings.add("native", self.setting.world.now(), sentence);
    }

    fn look(&self) {
        let mut watched = std::mem::take(&mut *self.watched.borrow_mut());
        watched.retain_mut(|watched| self.look_at(watched));
        self.watched.borrow_mut().extend(watched);
        let now = self.setting.world.now();
        match self.session.state() {
            SessionState::Safe if self.noted.get() + NOTED_MS <= now => {
                self.noted.set(now);
                // Every group has acknowledged a keepalive that was sent less than half a TTL ago.
                let half_ms = u64::try_from(self.session.ttl().as_millis() / 2).unwrap_or(u64::MAX);
                let (session, sent) = (Id(self.id.get()), now.saturating_sub(half_ms) * NS_PER_MS);
                self.setting.journal.note(Fact::KeepaliveAcknowledged { session, sent });
            }
            SessionState::Safe | SessionState::InDoubt => {}
            SessionState::Lost => self.lost(),
        }
    }

    /// Answers whether the guard is to be looked at again.
    fn look_at(&self, watched: &mut Watched) -> bool {
        let Some(guard) = watched.guard.upgrade() else { return false };
        let (now, natives) = (self.setting.world.now(), &self.setting.natives);
        match guard.state() {
            HoldState::Safe | HoldState::InDoubt => {
                let left = u64::try_from(guard.remaining().as_millis()).unwrap_or(u64::MAX);
                watched.until = now.saturating_add(left).saturating_add(MARGIN_MS);
                natives.count(&self.setting, self.id, &watched.name, &guard);
                self.audit(watched, &guard, now.saturating_add(left));
            }
            HoldState::Lost | HoldState::Released => self.hold_lost(&watched.name, &guard),
        }
        let told = guard.told().ended();
        if !told && watched.until < now && !self.thawed.since(now.saturating_sub(WAKING_MS)) {
            self.find(format!(
                "whoever watches {:?} is not told of its loss, and its lease ended at {} ms",
                watched.name, watched.until
            ));
        }
        !told
    }

    /// The guard's deadline has moved: the members are asked about it.
    fn audit(&self, watched: &mut Watched, guard: &Guard, deadline_ms: u64) {
        if watched.audited + LOOK_MS < deadline_ms {
            watched.audited = deadline_ms;
            let (name, token) = (watched.name.clone(), guard.token());
            let promise = Promise { session: self.id, name, token, deadline_ms };
            spawn_local(audit::audit(self.setting.clone(), self.who.node, promise));
        }
    }

    /// A hold is lost, as its guard says.
    pub fn hold_lost(&self, name: &Name, guard: &Guard) {
        let token = guard.token();
        if self.setting.natives.let_go(&self.setting, self.id, name, Revision(token)) {
            let (client, session, lock) = (self.who.client, Id(self.id.get()), name.text().into());
            self.setting.journal.note(Fact::HoldLost { client, session, lock, token });
        }
    }

    fn lost(&self) {
        let end = match self.session.lost().now_or_never() {
            Some(LossReason::SessionEnded(_)) => SessionEnd::Lost,
            Some(LossReason::Closed) => SessionEnd::Closed,
            _ => SessionEnd::Deadline,
        };
        self.setting.natives.ended(&self.setting, self.id, end);
    }

    /// All faults are over, and everything was given up: a session that its client calls alive is alive at the members, and
    /// in no queue.
    async fn settle(&self) {
        let (id, until) = (self.session.id(), self.setting.world.now() + SETTLE_MS);
        let mut left = String::new();
        while !self.is_over() {
            match self.client.admin().session(id).await {
                Ok(info) if info.locks.is_empty() => return,
                Ok(info) => left = format!("it is still in the queues {:?}", info.locks),
                Err(Error::Api(error)) => left = format!("it is alive, and a member says: {error}"),
                Err(error) => left = error.to_string(),
            }
            if self.setting.world.now() >= until {
                self.find(format!("{SETTLE_MS} ms after it was given up {left}"));
                return;
            }
            pause(100).await;
        }
        drop(left);
    }
}

/// Looks at a session as long as there is one.
async fn look(session: Weak<Session>) {
    while let Some(session) = session.upgrade() {
        session.look();
        drop(session);
        pause(LOOK_MS).await;
    }
}

/// One lock after the other.
async fn work(session: &Rc<Session>, mut dice: Dice) {
    for _ in 0..dice.random_range(1..8) {
        if session.setting.stopping() || session.is_over() {
            return;
        }
        acquire::one(session, &mut dice).await;
        pause(dice.random_range(0..100)).await;
    }
}

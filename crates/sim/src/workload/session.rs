//! One session as its client sees it: opened, kept alive, counted on until its own deadline, and given up.
//!
//! Deadlines follow rules R3 and R7: they count from the sending of what was acknowledged, group by group, by the
//! client's own clock. It keeps itself alive as clients over HTTP do: of each lock it knows which group granted it, and the
//! line of that group counts also where the lock has moved since.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use holdfast_history::{Fact, SessionEnd, SessionId as Id, local_deadline};
use holdfast_locktable::{
    ids::{SessionId, Token},
    metadata::Metadata,
    name::Name,
};
use holdfast_node::endpoint::{
    ErrorCode,
    types::{GroupLease, KeepaliveAck, LeaseState, SessionOpened},
};
use holdfast_partitioner::GroupId;
use parking_lot::Mutex;
use rand::{Rng, SeedableRng};
use tokio::{
    sync::watch,
    task::{AbortHandle, spawn_local},
};

use super::{
    Setting,
    ask::{self, Answer, Verb},
    audit,
    habits::Habits,
    pause,
};
use crate::{check::grants::Counted, entropy::Dice, network::Node};

const NS_PER_MS: u64 = 1_000_000;
/// The TTLs that clients ask for, in milliseconds.
const TTLS_MS: [u64; 4] = [2_000, 3_000, 5_000, 8_000];

/// Share of the acknowledged keepalives after which the session is asked for.
const AUDITED: f64 = 0.5;

/// Who a client is.
#[derive(Clone, Copy, Debug)]
pub struct Who {
    /// Its number in histories.
    pub client: u32,
    /// Its address.
    pub node: Node,
}

#[derive(Debug)]
struct State {
    /// When the newest keepalive was sent that counts for the session.
    renewed_ms: u64,
    /// The same for each group.
    groups: BTreeMap<GroupId, u64>,
    /// When the newest keepalive was sent that a group has acknowledged.
    acknowledged: BTreeMap<GroupId, u64>,
    /// Locks that the client counts on.
    held: BTreeMap<Name, Counted>,
    /// Holds that an operator has ended.
    forced: BTreeSet<(Name, Token)>,
    last_sent_ms: u64,
    /// Whether it sends keepalives no more by itself.
    lapses: bool,
    /// When the session was first used to ask for a lock.
    first_asked_ms: Option<u64>,
}

/// A session. Clones are the same session.
#[derive(Clone, Debug)]
pub struct Session {
    setting: Setting,
    who: Who,
    id: SessionId,
    ttl_ms: u64,
    habits: Habits,
    dice: Arc<Mutex<Dice>>,
    state: Arc<Mutex<State>>,
    over: watch::Sender<bool>,
    keepalives: Arc<Mutex<Option<AbortHandle>>>,
}

impl Session {
    /// Opens a session, however long it takes; `None` where the run comes to an end before.
    pub async fn open(setting: &Setting, who: Who, dice: &mut Dice) -> Option<Self> {
        let ttl_ms = TTLS_MS[dice.random_range(0..TTLS_MS.len())];
        Self::open_for(setting, who, ttl_ms, dice).await
    }

    /// The same with a TTL in milliseconds.
    pub async fn open_for(setting: &Setting, who: Who, ttl_ms: u64, dice: &mut Dice) -> Option<Self> {
        let verb: Verb<SessionOpened> = Arc::new(move |endpoint| {
            Box::pin(async move { endpoint.open_session(ttl_ms, Metadata::default()).await })
        });
        while !setting.stopping() {
            let sent = setting.world.now();
            let member = ask::any(setting, dice);
            let opening = ask::ask(setting, who.node, member, "open", verb.clone());
            if let Answer::Done(opened) = opening.await {
                return Some(Self::opened(setting, who, opened, sent, dice));
            }
            ask::again(dice).await;
        }
        None
    }

    fn opened(setting: &Setting, who: Who, opened: SessionOpened, sent: u64, dice: &mut Dice) -> Self {
        let (id, ttl_ms) = (opened.session, opened.ttl_ms);
        setting.journal.note(Fact::SessionOpened {
            session: Id(id.get()),
            client: who.client,
            ttl: ttl_ms * NS_PER_MS,
            sent: sent * NS_PER_MS,
        });
        let state = State {
            renewed_ms: sent,
            groups: BTreeMap::new(),
            acknowledged: BTreeMap::new(),
            held: BTreeMap::new(),
            forced: BTreeSet::new(),
            last_sent_ms: setting.world.now(),
            lapses: false,
            first_asked_ms: None,
        };
        let session = Self {
            setting: setting.clone(),
            who,
            id,
            ttl_ms,
            habits: Habits::new(setting, dice),
            dice: Arc::new(Mutex::new(Dice::from_rng(dice))),
            state: Arc::new(Mutex::new(state)),
            over: watch::Sender::new(false),
            keepalives: Arc::default(),
        };
        let keeping = spawn_local(session.clone().keep_alive(Dice::from_rng(dice)));
        *session.keepalives.lock() = Some(keeping.abort_handle());
        setting.registry.add(&session);
        session
    }

    /// What its client shares with others.
    #[must_use]
    pub fn setting(&self) -> &Setting {
        &self.setting
    }

    /// Where its client is.
    #[must_use]
    pub fn node(&self) -> Node {
        self.who.node
    }

    /// When the newest keepalive was sent that each group has acknowledged.
    #[must_use]
    pub fn acknowledged_in_groups(&self) -> BTreeMap<GroupId, u64> {
        self.state.lock().acknowledged.clone()
    }

    /// Its id.
    #[must_use]
    pub fn id(&self) -> SessionId {
        self.id
    }

    /// Whose it is.
    #[must_use]
    pub fn client(&self) -> u32 {
        self.who.client
    }

    /// An operator ends a hold, as the client is told at this moment.
    pub fn force(&self, name: &Name, token: Token) {
        self.state.lock().forced.insert((name.clone(), token));
        self.let_go(name);
    }

    /// Whether an operator has ended any hold of it.
    #[must_use]
    pub fn was_forced(&self) -> bool {
        !self.state.lock().forced.is_empty()
    }

    /// Whether an operator has ended a hold.
    #[must_use]
    pub fn is_forced(&self, name: &Name, token: Token) -> bool {
        self.state.lock().forced.contains(&(name.clone(), token))
    }

    /// Its TTL in milliseconds.
    #[must_use]
    pub fn ttl_ms(&self) -> u64 {
        self.ttl_ms
    }

    /// Whether it has ended, as its client sees it.
    #[must_use]
    pub fn is_over(&self) -> bool {
        *self.over.borrow()
    }

    /// Resolves when it has ended.
    pub async fn over(&self) {
        // The sender lives as long as `self`.
        let _ = self.over.subscribe().wait_for(|over| *over).await;
    }

    async fn keep_alive(self, mut dice: Dice) {
        while !self.is_over() {
            if !self.state.lock().lapses {
                let member = self.habits.member(&self.setting, &mut dice);
                spawn_local(self.clone().renew(member));
            }
            let next = self.habits.pause_ms(self.ttl_ms, &mut dice);
            tokio::select! {
                biased;
                () = self.over() => return,
                () = self.pass_deadline(next) => {}
            }
        }
    }

    /// Lets so many milliseconds pass, and ends the session where its deadline comes before.
    async fn pass_deadline(&self, ms: u64) {
        let until = self.setting.world.now() + ms;
        while self.setting.world.now() < until {
            pause(10).await;
            if self.setting.world.now() >= self.deadline_ms() {
                self.end(SessionEnd::Deadline);
                return;
            }
        }
    }

    /// Sends no more keepalives but one, after so many milliseconds, until all groups that it has met acknowledge it, or
    /// `any`; from there on the client is not heard, and counts on the session until its own deadline.
    pub async fn lapse(&self, after_ms: u64, any: bool, dice: &mut Dice) {
        self.state.lock().lapses = true;
        pause(after_ms).await;
        let acknowledged = || {
            let state = self.state.lock();
            (state.renewed_ms, any.then(|| state.acknowledged.clone()))
        };
        let before = acknowledged();
        while !self.is_over() && acknowledged() == before {
            let member = self.habits.member(&self.setting, dice);
            self.clone().renew(member).await;
            pause(dice.random_range(5..60)).await;
        }
    }

    async fn renew(self, member: Node) {
        let sent = self.setting.world.now();
        self.state.lock().last_sent_ms = sent;
        let id = self.id;
        let verb: Verb<KeepaliveAck> =
            Arc::new(move |endpoint| Box::pin(async move { endpoint.keepalive(id).await }));
        match ask::ask(&self.setting, self.who.node, member, "keepalive", verb).await {
            Answer::Done(ack) => self.acknowledged(sent, &ack.groups),
            Answer::No(error) if error.code == ErrorCode::SessionLost => self.end(SessionEnd::Lost),
            Answer::No(_) | Answer::Unknown => {}
        }
    }

    fn acknowledged(&self, sent: u64, groups: &[GroupLease]) {
        if self.is_over() {
            return;
        }
        let mut state = self.state.lock();
        let renewed: Vec<GroupId> = (groups.iter())
            .filter(|lease| lease.state == LeaseState::Renewed)
            .map(|lease| lease.group)
            .collect();
        // The session itself counts what all groups acknowledge that ever did, its home among them.
        let counts = !renewed.is_empty() && state.groups.keys().all(|group| renewed.contains(group));
        for group in &renewed {
            let newest = state.groups.entry(*group).or_default();
            *newest = (*newest).max(sent);
            let newest = state.acknowledged.entry(*group).or_default();
            *newest = (*newest).max(sent);
            self.setting.renewals.renewed(self.id, *group, sent + self.ttl_ms);
        }
        if counts {
            state.renewed_ms = state.renewed_ms.max(sent);
            let fact = Fact::KeepaliveAcknowledged { session: Id(self.id.get()), sent: sent * NS_PER_MS };
            self.setting.journal.note(fact);
        }
        self.count_again(&mut state);
        drop(state);
        self.audit();
    }

    /// Now and then somebody asks whether the service knows what it has acknowledged.
    fn audit(&self) {
        let mut dice = self.dice.lock();
        if dice.random_bool(AUDITED) {
            let dice = Dice::from_rng(&mut *dice);
            spawn_local(audit::audit(self.clone(), dice));
        }
    }

    /// The deadlines of all holds may have moved.
    fn count_again(&self, state: &mut State) {
        let (session, groups) = (self.local_deadline(state.renewed_ms), state.groups.clone());
        for (name, held) in &mut state.held {
            let group = groups.get(&held.group).map_or(0, |sent| self.local_deadline(*sent));
            held.deadline_ms = held.deadline_ms.max(group.min(session));
            self.setting.counts.count(self.who.client, name, held.clone());
        }
    }

    fn local_deadline(&self, sent_ms: u64) -> u64 {
        local_deadline(sent_ms * NS_PER_MS, self.ttl_ms * NS_PER_MS) / NS_PER_MS
    }

    /// Until when the client counts on the session.
    #[must_use]
    pub fn deadline_ms(&self) -> u64 {
        self.local_deadline(self.state.lock().renewed_ms)
    }

    /// Until when the client counts on a lock it was granted.
    #[must_use]
    pub fn hold_deadline_ms(&self, name: &Name) -> u64 {
        self.state.lock().held.get(name).map_or(0, |held| held.deadline_ms)
    }

    /// The session is about to be used to ask for a lock. A group that meets it with that counts its TTL from there (rule
    /// R7), so that this is a sign of life.
    pub fn asks(&self) {
        let (mut state, now) = (self.state.lock(), self.setting.world.now());
        state.first_asked_ms.get_or_insert(now);
        state.last_sent_ms = now;
    }

    /// A grant was answered. A group that has acknowledged no keepalive yet may have met the session as early as it first
    /// asked for anything.
    pub fn granted(&self, name: &Name, mut counted: Counted) {
        let mut state = self.state.lock();
        let met = state.first_asked_ms.unwrap_or_default();
        let group = self.local_deadline(*state.groups.entry(counted.group).or_insert(met));
        counted.deadline_ms = group.min(self.local_deadline(state.renewed_ms));
        if state.forced.contains(&(name.clone(), counted.token)) {
            return;
        }
        state.held.insert(name.clone(), counted);
        self.count_again(&mut state);
    }

    /// A group has answered that it knows the session. Where it has acknowledged no keepalive yet, it may have met it as early
    /// as the session first asked for anything.
    pub fn meets(&self, group: GroupId) {
        let mut state = self.state.lock();
        let met = state.first_asked_ms.unwrap_or_default();
        state.groups.entry(group).or_insert(met);
    }

    /// Until when the client counts on what it has in a group that it has met.
    #[must_use]
    pub fn group_deadline_ms(&self, group: GroupId) -> u64 {
        let state = self.state.lock();
        let met = state.groups.get(&group).map_or(0, |sent| self.local_deadline(*sent));
        met.min(self.local_deadline(state.renewed_ms))
    }

    /// The client counts on a lock no more.
    pub fn let_go(&self, name: &Name) {
        self.state.lock().held.remove(name);
        self.setting.counts.strike(self.who.client, name);
    }

    /// The session is over, as its client sees it.
    pub fn end(&self, end: SessionEnd) {
        if self.over.send_replace(true) {
            return;
        }
        self.quiet();
        self.setting.journal.note(Fact::SessionEnded { session: Id(self.id.get()), end });
    }

    /// The client stops as it stands: nothing of this session is sent from here on, and nothing is read.
    pub fn fall_silent(&self) {
        if self.over.send_replace(true) {
            return;
        }
        self.quiet();
        let last_sent = self.state.lock().last_sent_ms * NS_PER_MS;
        self.setting.journal.note(Fact::SessionSilent { session: Id(self.id.get()), last_sent });
    }

    fn quiet(&self) {
        if let Some(keeping) = self.keepalives.lock().take() {
            keeping.abort();
        }
        let held = std::mem::take(&mut self.state.lock().held);
        for name in held.keys() {
            self.setting.counts.strike(self.who.client, name);
        }
        self.setting.owners.strike_all(self.id);
    }

    /// Closes the session; whether that arrives is not waited for long.
    pub async fn close(&self, dice: &mut Dice) {
        if self.is_over() {
            return;
        }
        self.end(SessionEnd::Closed);
        let id = self.id;
        let verb: Verb<()> =
            Arc::new(move |endpoint| Box::pin(async move { endpoint.close_session(id).await }));
        for _ in 0..3 {
            let member = ask::any(&self.setting, dice);
            let asked = ask::ask(&self.setting, self.who.node, member, "close", verb.clone());
            match asked.await {
                Answer::Done(()) | Answer::No(_) => return,
                Answer::Unknown => ask::again(dice).await,
            }
        }
    }
}

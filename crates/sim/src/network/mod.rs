//! A network between simulated processes that delays, loses, doubles and reorders parcels, and can be cut in either
//! direction.
//!
//! ```text
//!   send ──► queue by arrival ──► advance(now) ──► runs the parcel in the receiver's runtime
//!                 │ lost: dropped late      │ way cut: held, dropped after SILENCE
//!                                           │ receiver paused: waits for it
//! ```
//! A parcel is a piece of work for the receiver; whoever waits for it learns of its loss when it is dropped, as a
//! connection breaks that loses a packet for good.
//!
//! - [`exchange`]: a question and its answer. [`pipe`]: parcels in order. [`transport`]: what members send with.
//! - [`wire`]: a connection that carries bytes, as TCP does. [`door`]: where members take such connections.
//!
//! Knows neither Raft nor locks.

pub mod door;
pub mod exchange;
pub mod pipe;
pub mod transport;
pub mod wire;

use std::{
    collections::{BTreeMap, VecDeque},
    fmt,
    sync::Arc,
};

use holdfast_node::{endpoint::Endpoint, peer::PeerService};
use parking_lot::Mutex;
use rand::Rng;
use tokio::runtime::Handle;

use self::door::Door;
use crate::{entropy::Dice, trace::Trace};

/// A process on the network: members have the numbers of their ids, clients higher ones.
pub type Node = u64;

/// How long, in milliseconds, a connection survives without anything getting through, as pings would notice it.
pub const SILENCE_MS: u64 = 1_750;
/// The latest that the loss of a parcel is noticed, in milliseconds.
const LOSS_NOTICED_MS: u64 = SILENCE_MS;

/// How parcels from one process to another fare.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Way {
    /// Whether nothing gets through.
    pub cut: bool,
    /// How many milliseconds a parcel takes at least.
    pub delay_ms: u64,
    /// How many more it may take.
    pub jitter_ms: u64,
    /// How many of a thousand are lost.
    pub lost: u32,
    /// How many of a thousand arrive twice, where that is possible.
    pub doubled: u32,
}

impl Default for Way {
    /// A good network within one building.
    fn default() -> Self {
        Self { cut: false, delay_ms: 1, jitter_ms: 2, lost: 0, doubled: 0 }
    }
}

/// A member that can be reached.
#[derive(Clone, Debug)]
pub struct Seat {
    /// Where its tasks run.
    pub handle: Handle,
    /// What it offers to other members.
    pub service: PeerService,
    /// The verbs it offers to clients.
    pub endpoint: Endpoint,
    /// Where it takes connections.
    pub door: Door,
}

/// Work for the receiver; gets `None` where nobody listens.
type Work = Box<dyn FnOnce(Option<&Seat>) + Send>;

struct Parcel {
    from: Node,
    to: Node,
    kind: &'static str,
    sent: u64,
    lost: bool,
    /// Whether it is sent again until it arrives.
    sure: bool,
    work: Work,
}

#[derive(Debug)]
struct Place {
    seat: Option<Seat>,
    /// Since when it stands still.
    paused: Option<u64>,
    inbox: VecDeque<Parcel>,
}

impl fmt::Debug for Parcel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}->{} sent at {}", self.kind, self.from, self.to, self.sent)
    }
}

#[derive(Debug)]
struct State {
    now: u64,
    dice: Dice,
    usual: Way,
    ways: BTreeMap<(Node, Node), Way>,
    cut_since: BTreeMap<(Node, Node), u64>,
    held: BTreeMap<(Node, Node), VecDeque<Parcel>>,
    places: BTreeMap<Node, Place>,
    queue: BTreeMap<(u64, u64), Parcel>,
    next: u64,
    delivered: u64,
}

/// The network of one run. Clones are the same network.
#[derive(Clone, Debug)]
pub struct Network {
    state: Arc<Mutex<State>>,
    trace: Trace,
}

impl Network {
    /// A network without members on which everything is usual.
    #[must_use]
    pub fn new(dice: Dice, trace: Trace) -> Self {
        let state = State {
            now: 0,
            dice,
            usual: Way::default(),
            ways: BTreeMap::new(),
            cut_since: BTreeMap::new(),
            held: BTreeMap::new(),
            places: BTreeMap::new(),
            queue: BTreeMap::new(),
            next: 0,
            delivered: 0,
        };
        Self { state: Arc::new(Mutex::new(state)), trace }
    }

    /// A member's process listens from now on.
    pub fn join(&self, member: Node, seat: Seat) {
        let place = Place { seat: Some(seat), paused: None, inbox: VecDeque::new() };
        self.state.lock().places.insert(member, place);
    }

    /// The end of a member's process. What was on its way to it finds nobody.
    pub fn leave(&self, member: Node) {
        let left = self.state.lock().places.remove(&member);
        // Dropping what it had not read yet sends answers: not under the lock.
        drop(left);
    }

    /// A member's process stands still, or goes on.
    pub fn set_paused(&self, member: Node, paused: bool) {
        let mut state = self.state.lock();
        let now = state.now;
        if let Some(place) = state.places.get_mut(&member) {
            place.paused = paused.then(|| place.paused.unwrap_or(now));
        }
    }

    /// How all ways without a setting of their own are.
    pub fn set_usual(&self, way: Way) {
        self.state.lock().usual = way;
    }

    /// How the way from one process to another is, in this direction only; `None` as usual.
    pub fn set_way(&self, from: Node, to: Node, way: Option<Way>) {
        let mut state = self.state.lock();
        let now = state.now;
        match way {
            Some(way) => state.ways.insert((from, to), way),
            None => state.ways.remove(&(from, to)),
        };
        if way.is_some_and(|way| way.cut) {
            state.cut_since.entry((from, to)).or_insert(now);
        } else {
            state.cut_since.remove(&(from, to));
        }
    }

    /// Whether nothing gets from one process to another.
    pub fn is_cut(&self, from: Node, to: Node) -> bool {
        self.state.lock().ways.get(&(from, to)).is_some_and(|way| way.cut)
    }

    /// The run's trace.
    #[must_use]
    pub fn trace(&self) -> &Trace {
        &self.trace
    }

    /// Parcels delivered so far.
    #[must_use]
    pub fn delivered(&self) -> u64 {
        self.state.lock().delivered
    }

    /// Sends a parcel; it arrives at `earliest` or later. Answers when.
    fn send(&self, from: Node, to: Node, kind: &'static str, earliest: u64, work: Work) -> u64 {
        self.dispatch((from, to), kind, earliest, work, false)
    }

    /// Sends a parcel again and again until it arrives, however long that takes: what would be lost comes late.
    fn send_surely(&self, from: Node, to: Node, kind: &'static str, earliest: u64, work: Work) -> u64 {
        self.dispatch((from, to), kind, earliest, work, true)
    }

    fn dispatch(
        &self,
        (from, to): (Node, Node),
        kind: &'static str,
        earliest: u64,
        work: Work,
        sure: bool,
    ) -> u64 {
        let mut state = self.state.lock();
        let way = state.way(from, to);
        let (now, jitter, chance) =
            (state.now, state.dice.random_range(0..=way.jitter_ms), state.dice.random_range(0..1_000));
        let lost = chance < way.lost;
        let late = if lost { state.dice.random_range(0..LOSS_NOTICED_MS) } else { 0 };
        let at = (now + way.delay_ms.max(1) + jitter + late).max(earliest);
        let number = state.next;
        state.next += 1;
        state
            .queue
            .insert((at, number), Parcel { from, to, kind, sent: now, lost: lost && !sure, sure, work });
        at
    }

    /// Whether the next parcel shall go twice.
    fn doubles(&self, from: Node, to: Node) -> bool {
        let mut state = self.state.lock();
        let way = state.way(from, to);
        state.dice.random_range(0..1_000) < way.doubled
    }

    /// Whether nobody listens there, or nothing has got through for so long that no connection can be made.
    fn refuses(&self, from: Node, to: Node) -> bool {
        self.state.lock().places.get(&to).is_none_or(|place| place.seat.is_none()) || self.is_silent(from, to)
    }

    /// Whether a connection between the two is broken by now.
    fn is_silent(&self, one: Node, other: Node) -> bool {
        let state = self.state.lock();
        let cut = [(one, other), (other, one)].map(|way| state.cut_since.get(&way).copied());
        let paused = [one, other].map(|node| state.places.get(&node).and_then(|place| place.paused));
        cut.into_iter().chain(paused).flatten().any(|since| state.now - since >= SILENCE_MS)
    }

    /// Delivers everything that has arrived by now, in the order of arrival.
    pub fn advance(&self, now: u64) {
        let held = self.state.lock().begin(now);
        for parcel in held {
            self.arrive(parcel);
        }
        loop {
            let due = {
                let mut state = self.state.lock();
                match state.queue.first_entry() {
                    Some(first) if first.key().0 <= now => Some(first.remove()),
                    Some(_) | None => None,
                }
            };
            let Some(parcel) = due else { return };
            self.arrive(parcel);
        }
    }

    /// A parcel has arrived: it is held where its way is cut or its receiver stands still, and carried out otherwise.
    fn arrive(&self, parcel: Parcel) {
        let (way, now) = ((parcel.from, parcel.to), self.state.lock().now);
        if parcel.lost || self.is_too_late(&parcel) {
            self.trace.parcel(now, parcel.kind, way, false);
            return;
        }
        let seat = {
            let mut state = self.state.lock();
            if state.way(parcel.from, parcel.to).cut {
                state.held.entry(way).or_default().push_back(parcel);
                return;
            }
            state.delivered += 1;
            match state.places.get_mut(&parcel.to) {
                Some(place) if place.paused.is_some() => {
                    place.inbox.push_back(parcel);
                    return;
                }
                Some(place) => place.seat.clone(),
                None => None,
            }
        };
        self.trace.parcel(now, parcel.kind, way, true);
        match seat {
            Some(seat) => {
                let _there = seat.handle.enter();
                (parcel.work)(Some(&seat));
            }
            None => (parcel.work)(None),
        }
    }

    /// Whether it was held up until its connection broke.
    fn is_too_late(&self, parcel: &Parcel) -> bool {
        let state = self.state.lock();
        state.way(parcel.from, parcel.to).cut && parcel.is_late(state.now)
    }
}

impl Parcel {
    /// Whether it has been on its way until its connection broke.
    fn is_late(&self, now: u64) -> bool {
        !self.sure && now - self.sent >= SILENCE_MS
    }
}

impl State {
    fn way(&self, from: Node, to: Node) -> Way {
        self.ways.get(&(from, to)).copied().unwrap_or(self.usual)
    }

    /// Time has come: what was held and need not be any more, or never will be.
    fn begin(&mut self, now: u64) -> Vec<Parcel> {
        self.now = now;
        let mut free = Vec::new();
        for place in self.places.values_mut().filter(|place| place.paused.is_none()) {
            free.extend(place.inbox.drain(..));
        }
        let (ways, usual) = (&self.ways, self.usual);
        for (way, held) in &mut self.held {
            let cut = ways.get(way).copied().unwrap_or(usual).cut;
            while held.front().is_some_and(|parcel| !cut || parcel.is_late(now)) {
                free.extend(held.pop_front());
            }
        }
        free
    }
}

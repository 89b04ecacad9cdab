//! Requests of a session that have no answer yet: what is to be sent, in which order, and what is to be repeated after a
//! connection broke (rules R8, R11).
//!
//! Pure. What is asked about one name, apart from acquires, goes out one at a time, and no acquire overtakes it: a
//! release that is still under way must not make the next acquire of the same session `already_held`.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::Arc,
    time::Duration,
};

use bytes::Bytes;
use tokio::sync::oneshot;

use crate::{
    acquire_error::AcquireError,
    clock::Moment,
    error::{ApiError, Error},
    hold_error::HoldError,
};

/// Most acquires of one session on the wire at once; more wait here. Below the 256 that a group keeps results for.
pub(crate) const MAX_ACQUIRES_ON_THE_WIRE: usize = 200;

/// An acquire that has been out for longer stands in line, as far as can be told, and does not hold down the floor of
/// sequences any more: a group keeps results for 256 requests above the floor. One that does stand in line is found by its
/// place; one that was never executed is refused as stale, and asked anew.
const STANDS_IN_LINE: Duration = Duration::from_secs(5);

/// How long after its limit an acquire that may have been granted waits for a connection that can tell.
const UNCERTAIN_GRACE: Duration = Duration::from_secs(1);

/// How long an acquire is ready to wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wait {
    Try,
    AtMost(Duration),
    Unlimited,
}

/// Name and kind of a queue.
pub(crate) type Queue = (Arc<str>, bool);

/// One request.
#[derive(Debug)]
pub(crate) enum Call {
    Acquire(Acquire),
    /// Ends the wait, or gives back the grant, of an acquire whose caller is gone.
    Cancel {
        acquire: u64,
    },
    /// Ends a hold. `hold` is its number in the books, where it stands there.
    Release {
        token: u64,
        hold: Option<u64>,
        reply: Option<oneshot::Sender<Result<bool, HoldError>>>,
    },
    Proclaim {
        hold: u64,
        token: u64,
        value: Bytes,
        reply: Option<oneshot::Sender<Result<(), HoldError>>>,
    },
    Close {
        reply: Option<oneshot::Sender<Result<(), Error>>>,
    },
}

#[derive(Debug)]
pub(crate) struct Acquire {
    pub(crate) wait: Wait,
    pub(crate) metadata: BTreeMap<String, String>,
    pub(crate) value: Bytes,
    /// Who waits for the answer; `None` once the caller is gone.
    pub(crate) reply: Option<oneshot::Sender<Result<u64, AcquireError>>>,
    /// It was granted, and waits for its group's acknowledgement.
    pub(crate) granted: bool,
}

/// Where a request stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// To be sent.
    Unsent,
    /// Sent on this connection.
    Sent,
    /// Refused for now; to be sent again then.
    Pause(Moment),
    /// Never sent again; it stands here until its end is known.
    Withdrawn,
}

/// A request and how it has fared.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) call: Call,
    pub(crate) queue: Queue,
    pub(crate) asked: Moment,
    pub(crate) first_send: Option<Moment>,
    pub(crate) phase: Phase,
    pub(crate) attempts: u32,
    /// Whether it may have been executed although nobody answered so.
    pub(crate) uncertain: bool,
    pub(crate) refusal: Option<ApiError>,
}

/// The requests of one session without an answer.
#[derive(Debug, Default)]
pub(crate) struct Requests {
    entries: BTreeMap<u64, Entry>,
    unsent: BTreeSet<u64>,
    /// Requests other than acquires about one queue, in order.
    lanes: BTreeMap<Queue, VecDeque<u64>>,
    /// Acquires without an answer.
    acquires: BTreeSet<u64>,
    on_the_wire: usize,
}

impl Requests {
    pub(crate) fn insert(&mut self, sequence: u64, call: Call, queue: Queue, now: Moment) {
        match &call {
            Call::Acquire(_) => {
                self.acquires.insert(sequence);
            }
            Call::Cancel { .. } | Call::Release { .. } | Call::Proclaim { .. } => {
                self.lanes.entry(queue.clone()).or_default().push_back(sequence);
            }
            Call::Close { .. } => {}
        }
        let entry = Entry {
            call,
            queue,
            asked: now,
            first_send: None,
            phase: Phase::Unsent,
            attempts: 0,
            uncertain: false,
            refusal: None,
        };
        self.entries.insert(sequence, entry);
        self.unsent.insert(sequence);
    }

    pub(crate) fn get(&self, sequence: u64) -> Option<&Entry> {
        self.entries.get(&sequence)
    }

    pub(crate) fn get_mut(&mut self, sequence: u64) -> Option<&mut Entry> {
        self.entries.get_mut(&sequence)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, &Entry)> {
        self.entries.iter().map(|(sequence, entry)| (*sequence, entry))
    }

    /// The lowest acquire without an answer that may not stand in line yet; `None` where there is none.
    pub(crate) fn lowest_acquire(&self, now: Moment) -> Option<u64> {
        let young = |entry: &Entry| entry.first_send.is_none_or(|first| now.since(first) < STANDS_IN_LINE);
        self.acquires.iter().copied().find(|sequence| self.entries.get(sequence).is_some_and(young))
    }

    pub(crate) fn remove(&mut self, sequence: u64) -> Option<Entry> {
        self.set_phase(sequence, Phase::Withdrawn);
        self.acquires.remove(&sequence);
        self.entries.remove(&sequence)
    }

    /// All requests, which are answered in some other way.
    pub(crate) fn drain(&mut self) -> Vec<Entry> {
        std::mem::take(self).entries.into_values().collect()
    }

    pub(crate) fn set_phase(&mut self, sequence: u64, phase: Phase) {
        let Some(entry) = self.entries.get_mut(&sequence) else { return };
        let acquire = matches!(entry.call, Call::Acquire(_));
        if acquire && entry.phase == Phase::Sent {
            self.on_the_wire -= 1;
        }
        if acquire && phase == Phase::Sent {
            self.on_the_wire += 1;
        }
        entry.phase = phase;
        if phase == Phase::Unsent {
            self.unsent.insert(sequence);
        } else {
            self.unsent.remove(&sequence);
        }
        if phase == Phase::Withdrawn {
            let queue = entry.queue.clone();
            self.leave_lane(sequence, &queue);
        }
    }

    fn leave_lane(&mut self, sequence: u64, queue: &Queue) {
        let Some(lane) = self.lanes.get_mut(queue) else { return };
        lane.retain(|other| *other != sequence);
        if lane.is_empty() {
            self.lanes.remove(queue);
        }
    }

    /// The next request that may go out.
    pub(crate) fn next_unsent(&self) -> Option<u64> {
        self.unsent.iter().copied().find(|sequence| {
            let Some(entry) = self.entries.get(sequence) else { return false };
            let lane = self.lanes.get(&entry.queue);
            match entry.call {
                Call::Acquire(_) => lane.is_none() && self.on_the_wire < MAX_ACQUIRES_ON_THE_WIRE,
                Call::Cancel { .. } | Call::Release { .. } | Call::Proclaim { .. } => {
                    lane.is_some_and(|lane| lane.front() == Some(sequence))
                }
                Call::Close { .. } => true,
            }
        })
    }

    /// The connection is gone: what was sent may have been executed, and is sent again.
    pub(crate) fn disconnected(&mut self) {
        let sent: Vec<u64> = self
            .entries
            .iter()
            .filter(|(_, entry)| entry.phase == Phase::Sent)
            .map(|(seq, _)| *seq)
            .collect();
        for sequence in sent {
            if let Some(entry) = self.entries.get_mut(&sequence) {
                entry.uncertain = true;
            }
            self.set_phase(sequence, Phase::Unsent);
        }
        // Withdrawn acquires stay until their cancel is answered; of the others nobody waits for an answer any more.
        let gone: Vec<u64> = self
            .entries
            .iter()
            .filter(|(_, entry)| entry.phase == Phase::Withdrawn && !matches!(entry.call, Call::Acquire(_)))
            .map(|(sequence, _)| *sequence)
            .collect();
        for sequence in gone {
            self.remove(sequence);
        }
    }

    /// Puts requests whose pause is over back in line.
    pub(crate) fn end_pauses(&mut self, now: Moment) {
        let over = |entry: &Entry| matches!(entry.phase, Phase::Pause(until) if until <= now);
        let due: Vec<u64> = self.entries.iter().filter(|(_, e)| over(e)).map(|(seq, _)| *seq).collect();
        for sequence in due {
            self.set_phase(sequence, Phase::Unsent);
        }
    }
}

impl Entry {
    /// When the caller is told that it did not work out; `None` where the request is pursued to the session's end.
    pub(crate) fn give_up(&self, request_timeout: Duration) -> Option<Moment> {
        match &self.call {
            Call::Acquire(Acquire { reply: None, .. }) | Call::Cancel { .. } => None,
            Call::Release { reply: None, .. } | Call::Proclaim { reply: None, .. } => None,
            Call::Release { .. } | Call::Proclaim { .. } | Call::Close { .. } => {
                Some(self.asked.plus(request_timeout))
            }
            Call::Acquire(acquire) => match acquire.wait {
                Wait::Try => Some(self.asked.plus(request_timeout)),
                Wait::Unlimited => None,
                // The server answers a little after the limit; where it does not have the request, the limit is the end.
                Wait::AtMost(limit) if self.phase == Phase::Sent || acquire.granted => {
                    Some(self.asked.plus(limit).plus(request_timeout))
                }
                Wait::AtMost(limit) if self.uncertain => {
                    Some(self.asked.plus(limit).plus(request_timeout.min(UNCERTAIN_GRACE)))
                }
                Wait::AtMost(limit) => Some(self.asked.plus(limit)),
            },
        }
    }
}

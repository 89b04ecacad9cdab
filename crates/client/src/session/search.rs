//! When to ask where holds stand, and which ask is under way. Pure; knows holds by their numbers only.
//!
//! Holds are asked for in batches, one at a time, in the order of their numbers. Those that nobody could place come again in
//! the next round, after a pause.

use std::time::Duration;

use crate::clock::Moment;

/// Most holds in one message.
pub(crate) const BATCH: usize = 1_000;
/// Bounds of the pause before what could not be told is asked again.
const PAUSE: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(1));
/// How long an answer may take at least, before it is asked for again: longer than members look for holds.
const MIN_PATIENCE: Duration = Duration::from_secs(1);

#[derive(Debug)]
struct Asked {
    sequence: u64,
    holds: Vec<u64>,
    sent: Moment,
}

/// Asking where the holds of one session stand.
#[derive(Debug)]
pub(crate) struct Search {
    pause: Duration,
    patience: Duration,
    under_way: Option<Asked>,
    not_before: Option<Moment>,
    /// Holds up to this number have been asked for in this round.
    pub(super) asked_to: u64,
}

impl Search {
    pub(crate) fn new(ttl: Duration) -> Self {
        let interval = ttl / 4;
        Self {
            pause: (interval / 4).clamp(PAUSE.0, PAUSE.1),
            patience: interval.max(MIN_PATIENCE),
            under_way: None,
            not_before: None,
            asked_to: 0,
        }
    }

    /// Whether an ask may go out.
    pub(crate) fn may_ask(&self, now: Moment) -> bool {
        now >= self.next_ask(now)
    }

    /// When the next ask may go out.
    pub(crate) fn next_ask(&self, now: Moment) -> Moment {
        let answer = self.under_way.as_ref().map(|asked| asked.sent.plus(self.patience));
        answer.or(self.not_before).unwrap_or(now)
    }

    /// An ask goes out.
    pub(crate) fn asked(&mut self, sequence: u64, holds: Vec<u64>, now: Moment) {
        self.asked_to = holds.last().copied().unwrap_or_default();
        self.under_way = Some(Asked { sequence, holds, sent: now });
        self.not_before = None;
    }

    /// An answer came: the holds that were asked for; `None` for an answer to something else.
    pub(crate) fn answered(&mut self, sequence: u64) -> Option<Vec<u64>> {
        self.under_way.take_if(|asked| asked.sequence == sequence).map(|asked| asked.holds)
    }

    /// The round is over, and what is left comes again later.
    pub(crate) fn pause(&mut self, now: Moment) {
        self.not_before = Some(now.plus(self.pause));
        self.asked_to = 0;
    }

    /// The connection is gone, and the answer with it.
    pub(crate) fn disconnected(&mut self) {
        (self.under_way, self.not_before, self.asked_to) = (None, None, 0);
    }
}

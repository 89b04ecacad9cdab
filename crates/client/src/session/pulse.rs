//! When to send a keepalive, and when its answer is overdue. Pure; knows no connection.

use std::{collections::BTreeMap, time::Duration};

use crate::clock::Moment;

/// Bounds of how long a keepalive may go unanswered before the connection is given up. Short enough that waits are attached
/// elsewhere before the servers take their caller for gone (rule R8).
const STALL: (Duration, Duration) = (Duration::from_millis(300), Duration::from_secs(2));
/// Bounds of the pause before a refused keepalive is repeated.
const RETRY: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(1));

/// The keepalives of one session.
#[derive(Debug)]
pub(crate) struct Pulse {
    interval: Duration,
    retry: Duration,
    /// How long an answer may take now; doubles with each stall, so that a slow cluster is not mistaken for a dead one.
    stall: Duration,
    stall_range: (Duration, Duration),
    due: Moment,
    /// One is wanted as soon as none is under way.
    wanted: bool,
    /// Sent on this connection and not answered: sequence and send time.
    sent: BTreeMap<u64, Moment>,
}

impl Pulse {
    pub(crate) fn new(ttl: Duration, now: Moment) -> Self {
        let interval = ttl / 4;
        let stall = interval.clamp(STALL.0, STALL.1);
        Self {
            interval,
            retry: (interval / 4).clamp(RETRY.0, RETRY.1),
            stall,
            stall_range: (stall, stall.max(ttl / 2)),
            due: now.plus(interval),
            wanted: false,
            sent: BTreeMap::new(),
        }
    }

    pub(crate) const fn interval(&self) -> Duration {
        self.interval
    }

    /// Asks for a keepalive before its turn.
    pub(crate) const fn want(&mut self) {
        self.wanted = true;
    }

    pub(crate) fn is_due(&self, now: Moment) -> bool {
        now >= self.due || (self.wanted && self.sent.is_empty())
    }

    pub(crate) fn sent(&mut self, sequence: u64, now: Moment) {
        self.sent.insert(sequence, now);
        self.due = now.plus(self.interval);
        self.wanted = false;
    }

    /// An answer came: when its keepalive was sent; `None` for an answer to something else.
    pub(crate) fn answered(&mut self, sequence: u64) -> Option<Moment> {
        let sent = self.sent.remove(&sequence)?;
        self.stall = self.stall_range.0;
        Some(sent)
    }

    /// Something refused or did not answer: the next keepalive comes early.
    pub(crate) fn hurry(&mut self, now: Moment) {
        self.due = self.due.min(now.plus(self.retry));
    }

    /// The connection is gone, and answers with it.
    pub(crate) fn disconnected(&mut self, now: Moment) {
        if self.stalled(now) {
            self.stall = self.stall.saturating_mul(2).min(self.stall_range.1);
        }
        self.sent.clear();
        self.due = now;
    }

    /// Whether an answer is overdue: the connection is to be given up.
    pub(crate) fn stalled(&self, now: Moment) -> bool {
        self.sent.values().any(|sent| now.since(*sent) >= self.stall)
    }

    /// When an answer turns overdue.
    pub(crate) fn next_stall(&self) -> Option<Moment> {
        self.sent.values().next().map(|sent| sent.plus(self.stall))
    }

    /// When the next keepalive comes by itself.
    pub(crate) const fn next_due(&self) -> Moment {
        self.due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Moment {
        Moment::at(Duration::from_millis(ms))
    }

    #[test]
    fn keepalives_come_at_least_every_third_of_the_ttl() {
        let mut pulse = Pulse::new(Duration::from_secs(9), at(0));
        assert!(!pulse.is_due(at(2_200)));
        assert!(pulse.is_due(at(3_000)));
        pulse.sent(1, at(3_000));
        assert!(!pulse.is_due(at(3_001)));
        assert!(pulse.is_due(at(6_000)));
    }

    #[test]
    fn a_wanted_keepalive_waits_for_the_one_under_way() {
        let mut pulse = Pulse::new(Duration::from_secs(9), at(0));
        pulse.want();
        assert!(pulse.is_due(at(1)));
        pulse.sent(1, at(1));
        pulse.want();
        assert!(!pulse.is_due(at(2)));
        assert_eq!(pulse.answered(1), Some(at(1)));
        assert!(pulse.is_due(at(3)));
    }

    #[test]
    fn an_overdue_answer_is_a_stall_until_the_connection_is_given_up() {
        let mut pulse = Pulse::new(Duration::from_secs(2), at(0));
        pulse.sent(1, at(500));
        assert!(!pulse.stalled(at(999)));
        assert_eq!(pulse.next_stall(), Some(at(1_000)));
        assert!(pulse.stalled(at(1_000)));
        pulse.disconnected(at(1_000));
        assert!(!pulse.stalled(at(9_000)));
        assert!(pulse.is_due(at(1_000)));
        assert_eq!(pulse.answered(1), None);
    }

    #[test]
    fn patience_doubles_until_something_is_answered() {
        let mut pulse = Pulse::new(Duration::from_secs(2), at(0));
        pulse.sent(1, at(0));
        pulse.disconnected(at(500));
        pulse.sent(2, at(500));
        assert_eq!(pulse.next_stall(), Some(at(1_500)));
        pulse.disconnected(at(1_500));
        pulse.sent(3, at(1_500));
        assert_eq!(pulse.next_stall(), Some(at(2_500)));
        pulse.answered(3);
        pulse.sent(4, at(3_000));
        assert_eq!(pulse.next_stall(), Some(at(3_500)));
    }
}

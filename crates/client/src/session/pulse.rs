//! When to send a keepalive, and when its answer is overdue. Pure; knows no connection.

use std::{collections::BTreeMap, time::Duration};

use crate::clock::Moment;

/// Bounds of how long a keepalive may go unanswered before the connection is given up. Short enough that waits are attached
/// elsewhere before the servers take their caller for gone (rule R8).
const STALL: (Duration, Duration) = (Duration::from_millis(300), Duration::from_secs(2));
/// Longest time that a member may answer without reaching every group: three election timeouts, in which a group that has
/// only lost its leader has another one.
const BARREN: Duration = Duration::from_secs(3);
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
    /// How long answers may be without fruit.
    barren: Duration,
    due: Moment,
    /// One is wanted as soon as none is under way.
    wanted: bool,
    /// Sent on this connection and not answered: sequence and send time.
    sent: BTreeMap<u64, Moment>,
    /// Send time of the oldest keepalive on this connection since the last one that every group answered.
    fruitless: Option<Moment>,
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
            // Half of the TTL is left then for another member.
            barren: BARREN.min(ttl / 2).max(stall),
            due: now.plus(interval),
            wanted: false,
            sent: BTreeMap::new(),
            fruitless: None,
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

    /// Every group answered a keepalive, be it that it has to be asked again.
    pub(crate) const fn fruitful(&mut self) {
        self.fruitless = None;
    }

    /// A group did not answer the keepalive that was sent at this moment: the next comes early, and in the end another
    /// member is asked, which may reach more of the cluster than this one.
    pub(crate) fn fruitless(&mut self, sent: Moment, now: Moment) {
        self.fruitless.get_or_insert(sent);
        self.hurry(now);
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
        self.fruitless = None;
        self.due = now;
    }

    /// Whether an answer is overdue, or all answers were without fruit for too long: the connection is to be given up.
    pub(crate) fn stalled(&self, now: Moment) -> bool {
        self.next_stall().is_some_and(|at| now >= at)
    }

    /// When the connection is to be given up, unless answers come.
    pub(crate) fn next_stall(&self) -> Option<Moment> {
        let overdue = self.sent.values().next().map(|sent| sent.plus(self.stall));
        let barren = self.fruitless.map(|since| since.plus(self.barren));
        overdue.into_iter().chain(barren).min()
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
    fn answers_without_fruit_are_a_stall_after_three_election_timeouts() {
        let mut pulse = Pulse::new(Duration::from_secs(12), at(0));
        for sent in [1_000, 2_000] {
            pulse.sent(sent, at(sent));
            pulse.answered(sent);
            pulse.fruitless(at(sent), at(sent + 10));
        }
        assert_eq!(pulse.next_stall(), Some(at(4_000)));
        assert!(!pulse.stalled(at(3_999)) && pulse.stalled(at(4_000)));
        pulse.fruitful();
        assert_eq!(pulse.next_stall(), None);
        pulse.fruitless(at(9_000), at(9_010));
        pulse.disconnected(at(15_000));
        assert!(!pulse.stalled(at(99_000)));
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

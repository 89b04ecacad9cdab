//! When the next snapshot goes to the store.
//!
//! Plain state; times are durations since the actor started. One snapshot at a time; a request that comes while one is
//! taken gets the next, because the running one may have been captured before.

use std::time::Duration;

/// Longest pause before another try after a failure.
const RETRY: Duration = Duration::from_secs(60);

/// How a snapshot ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// It is in the store.
    Taken,
    /// It was not this member's to take.
    NotMine,
    /// It failed.
    Failed,
}

/// Plan of one group's snapshots.
#[derive(Debug)]
pub struct SnapshotSchedule {
    /// Time between two; none: only on demand.
    interval: Option<Duration>,
    due: Option<Duration>,
    running: bool,
    requested: bool,
}

impl SnapshotSchedule {
    /// A plan that begins at `now`.
    #[must_use]
    pub fn new(interval: Option<Duration>, now: Duration) -> SnapshotSchedule {
        let due = interval.map(|interval| now + interval);
        SnapshotSchedule { interval, due, running: false, requested: false }
    }

    /// Notes that somebody wants one.
    pub fn request(&mut self) {
        self.requested = true;
    }

    /// Whether to begin one now. If so, it counts as running until [`SnapshotSchedule::ended`].
    pub fn begin(&mut self, now: Duration) -> bool {
        let wanted = self.requested || self.due.is_some_and(|due| due <= now);
        if self.running || !wanted {
            return false;
        }
        self.running = true;
        self.requested = false;
        true
    }

    /// Notes how the running one ended.
    pub fn ended(&mut self, how: Ended, now: Duration) {
        self.running = false;
        self.due = self.interval.map(|interval| match how {
            Ended::Taken | Ended::NotMine => now + interval,
            Ended::Failed => now + interval.min(RETRY),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn one_per_interval_counted_from_the_end_of_the_last() {
        let mut plan = SnapshotSchedule::new(Some(at(600)), at(0));
        assert!(!plan.begin(at(599)));
        assert!(plan.begin(at(600)));
        assert!(!plan.begin(at(5_000)), "it is still running");
        plan.ended(Ended::Taken, at(5_000));
        assert!(!plan.begin(at(5_599)));
        assert!(plan.begin(at(5_600)));
        plan.ended(Ended::NotMine, at(5_601));
        assert!(!plan.begin(at(6_200)));
        assert!(plan.begin(at(6_201)));
    }

    #[test]
    fn a_failure_is_tried_again_soon() {
        let mut plan = SnapshotSchedule::new(Some(at(600)), at(0));
        assert!(plan.begin(at(600)));
        plan.ended(Ended::Failed, at(610));
        assert!(!plan.begin(at(669)));
        assert!(plan.begin(at(670)));
        let mut quick = SnapshotSchedule::new(Some(at(5)), at(0));
        assert!(quick.begin(at(5)));
        quick.ended(Ended::Failed, at(6));
        assert!(quick.begin(at(11)));
    }

    #[test]
    fn a_request_during_one_gets_the_next() {
        let mut plan = SnapshotSchedule::new(None, at(0));
        assert!(!plan.begin(at(1_000_000)));
        plan.request();
        assert!(plan.begin(at(1)));
        assert!(!plan.begin(at(2)));
        plan.request();
        plan.request();
        assert!(!plan.begin(at(3)));
        plan.ended(Ended::Taken, at(4));
        assert!(plan.begin(at(4)));
        plan.ended(Ended::Taken, at(5));
        assert!(!plan.begin(at(1_000_000)));
    }
}

//! The lock model: stories that are right, and stories that are not.

use std::sync::Arc;

use holdfast_history::{End, Event, Fact, ReleaseEnd, SessionId, Wait};
use holdfast_sim::check::linear::Linear;

const A: SessionId = SessionId(1);
const B: SessionId = SessionId(2);
const MS: u64 = 1_000_000;

fn lock() -> Arc<str> {
    "l".into()
}

struct Story {
    linear: Linear,
    calls: u64,
}

impl Story {
    fn new() -> Self {
        let mut story = Self { linear: Linear::default(), calls: 0 };
        for session in [A, B] {
            story.note(0, Fact::SessionOpened { session, client: 1, ttl: 1_000 * MS, sent: 0 });
        }
        story
    }

    fn note(&mut self, at: u64, fact: Fact) {
        self.linear.observe(&Event::new(at * MS, fact));
    }

    fn acquire(&mut self, session: SessionId, sent: u64, told: u64, end: End) {
        self.calls += 1;
        let (call, client, lock) = (self.calls, 1, lock());
        self.note(sent, Fact::AcquireSent { call, client, session, lock: lock.clone(), wait: Wait::Try });
        self.note(told, Fact::AcquireEnded { call, client, session, lock, end });
    }

    fn release(&mut self, session: SessionId, token: u64, sent: u64, told: u64) {
        let (client, lock, end) = (1, lock(), ReleaseEnd::Released);
        self.note(sent, Fact::ReleaseSent { client, session, lock: lock.clone(), token });
        self.note(told, Fact::ReleaseEnded { client, session, lock, token, end });
    }

    fn look(&mut self, asked: u64, at: u64, holder: Option<SessionId>) {
        self.note(at, Fact::QueueObserved { lock: lock(), asked: asked * MS, holder, waiting: vec![] });
    }

    fn wrong(self) -> usize {
        self.linear.finish().len()
    }
}

#[test]
fn a_hold_after_a_hold_is_right() {
    let mut story = Story::new();
    story.acquire(A, 10, 20, End::Granted(1));
    story.acquire(B, 22, 25, End::Busy);
    story.release(A, 1, 30, 40);
    story.acquire(B, 35, 45, End::Granted(2));
    story.look(41, 46, Some(B));
    assert_eq!(story.wrong(), 0);
}

#[test]
fn a_grant_while_another_holds_is_wrong() {
    let mut story = Story::new();
    story.acquire(A, 10, 20, End::Granted(1));
    story.acquire(B, 22, 25, End::Granted(2));
    story.release(A, 1, 30, 40);
    assert_eq!(story.wrong(), 1);
}

#[test]
fn busy_while_nobody_can_hold_is_wrong() {
    let mut story = Story::new();
    story.acquire(A, 10, 20, End::Granted(1));
    story.release(A, 1, 30, 40);
    story.acquire(B, 41, 50, End::Busy);
    assert_eq!(story.wrong(), 1);
}

#[test]
fn busy_is_right_where_an_unknown_acquire_may_hold() {
    let mut story = Story::new();
    story.acquire(A, 10, 20, End::Unknown);
    story.acquire(B, 41, 50, End::Busy);
    assert_eq!(story.wrong(), 0);
}

#[test]
fn seen_as_free_while_it_is_held_is_wrong() {
    let mut story = Story::new();
    story.acquire(A, 10, 20, End::Granted(1));
    story.look(21, 25, None);
    story.release(A, 1, 30, 40);
    assert_eq!(story.wrong(), 1);
}

#[test]
fn a_holder_that_was_gone_before_the_look_began_is_wrong() {
    let mut story = Story::new();
    story.acquire(A, 10, 20, End::Granted(1));
    story.release(A, 1, 30, 40);
    story.look(41, 50, Some(A));
    assert_eq!(story.wrong(), 1);
}

#[test]
fn a_lapsed_session_gives_way_and_one_that_is_kept_alive_does_not() {
    let mut story = Story::new();
    story.acquire(A, 10, 20, End::Granted(1));
    story.acquire(B, 900, 1_100, End::Granted(2));
    assert_eq!(story.wrong(), 0);
    let mut story = Story::new();
    story.acquire(A, 10, 20, End::Granted(1));
    story.note(510, Fact::KeepaliveAcknowledged { session: A, sent: 500 * MS });
    story.acquire(B, 900, 1_100, End::Granted(2));
    assert_eq!(story.wrong(), 1);
}

/// The session A holds; its hold's lease is over at 1 s. Then B is granted the lock, and A is renewed in another group.
fn lives_on(lost: bool) -> Story {
    let mut story = Story::new();
    story.acquire(A, 10, 20, End::Granted(1));
    if lost {
        // Its process stood still: it notices late.
        story.note(1_300, Fact::HoldLost { client: 1, session: A, lock: lock(), token: 1 });
    }
    story.note(1_310, Fact::KeepaliveAcknowledged { session: A, sent: 1_305 * MS });
    story.note(1_310, Fact::KeepaliveAcknowledged { session: B, sent: 900 * MS });
    story.acquire(B, 900, 1_200, End::Granted(2));
    story
}

#[test]
fn a_session_may_outlive_a_hold_that_it_has_lost() {
    assert_eq!(lives_on(true).wrong(), 0);
}

#[test]
fn a_hold_that_was_not_lost_stands_as_long_as_its_session() {
    assert_eq!(lives_on(false).wrong(), 1);
}

#[test]
fn looks_that_fit_each_for_itself_and_not_together_are_wrong() {
    // The hold began by 14 ms, or it began after 15 ms: either may be, and both were seen.
    for (seen_held, seen_free, wrong) in [(true, false, 0), (false, true, 0), (true, true, 1)] {
        let mut story = Story::new();
        story.acquire(A, 10, 20, End::Granted(1));
        if seen_held {
            story.look(11, 14, Some(A));
        }
        if seen_free {
            story.look(15, 18, None);
        }
        story.release(A, 1, 30, 40);
        assert_eq!(story.wrong(), wrong, "held {seen_held}, free {seen_free}");
    }
}

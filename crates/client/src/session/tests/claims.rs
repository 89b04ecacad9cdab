//! A part in a claim lives by the renewals of its own group, as a lock does (rules R3, R7; promise P8).

use holdfast_proto::v1::LeaseState::*;

use super::*;
use crate::state::{HoldState, LossReason};

/// Joins a claim of a group at `now`; answers the hold that stands for it.
fn join(core: &mut Core, group: u32, now: u64) -> u64 {
    let hold = core.claim_asked(at(now));
    core.claim_joined(hold, &Arc::from("jobs"), group, at(now));
    core.ledger_mut().confirm(hold);
    hold
}

fn state(core: &mut Core, hold: u64, now: u64) -> HoldState {
    core.tick(at(now));
    core.ledger().hold_state(hold, at(now))
}

#[test]
fn a_claim_is_lost_by_its_own_group_and_nothing_is_released_for_it() {
    let mut core = core();
    let claim = join(&mut core, 1, 0);
    let lock = hold(&mut core, "jobs", 7, 2, 0);
    for (sent_at, answered_at) in [(2_500, 2_510), (5_000, 5_010), (7_500, 7_510)] {
        keepalive(&mut core, sent_at, &[(1, Unavailable), (2, Renewed)], answered_at);
    }
    assert_eq!(state(&mut core, claim, 9_899), HoldState::InDoubt);
    assert_eq!(state(&mut core, claim, 9_900), HoldState::Lost);
    assert_eq!(core.loss_of(claim), LossReason::Deadline);
    assert_eq!(state(&mut core, lock, 9_900), HoldState::Safe, "the lock of that name is another thing");
    let messages = sent(&mut core, at(9_900));
    assert!(!kinds(&messages).contains(&"release"), "{messages:?}");
}

#[test]
fn a_claim_counts_from_the_first_sending_of_its_join_and_waits_for_a_lease_that_stands() {
    let mut core = core();
    let claim = core.claim_asked(at(0));
    // Another group keeps the session alive meanwhile.
    hold(&mut core, "a", 7, 2, 0);
    for (sent_at, answered_at) in [(2_500, 2_510), (5_000, 5_010), (7_500, 7_510)] {
        keepalive(&mut core, sent_at, &[(2, Renewed)], answered_at);
    }
    core.claim_joined(claim, &Arc::from("jobs"), 3, at(9_950));
    assert!(!core.ledger().covered(claim, at(9_950)), "an answer that late proves nothing");
    // Not confirmed, so not lost either; the next renewal makes it good.
    keepalive(&mut core, 9_950, &[(2, Renewed), (3, Renewed)], 9_960);
    assert!(core.ledger().covered(claim, at(9_960)));
    core.ledger_mut().confirm(claim);
    assert_eq!(state(&mut core, claim, 9_970), HoldState::Safe);
}

#[test]
fn a_new_connection_is_not_asked_to_follow_claims_and_one_that_is_over_is_forgotten() {
    let mut core = core();
    let claim = join(&mut core, 1, 0);
    hold(&mut core, "a", 7, 1, 0);
    let resume = core.resume_message();
    let Some(session_request::Body::Resume(resume)) = resume.body else { panic!("no resume") };
    assert_eq!(resume.holds.iter().map(|hold| hold.token).collect::<Vec<_>>(), [7]);
    core.claim_over(claim);
    core.claim_settled(claim, at(100));
    assert!(core.ledger().hold(claim).is_none());
    // One whose join came to nothing, too.
    let asked = core.claim_asked(at(200));
    core.claim_over(asked);
    core.claim_settled(asked, at(300));
    assert!(core.ledger().hold(asked).is_none());
}

#[test]
fn what_a_claim_hears_while_its_session_is_being_closed_may_come_of_that() {
    let mut core = core();
    join(&mut core, 1, 0);
    assert!(!core.closing());
    let _answer = core.close(at(10));
    assert!(core.closing());
}

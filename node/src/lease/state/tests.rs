//! Leases under literal times.

use super::*;

const TTL: u64 = 10_000;

fn id(n: u64) -> SessionId {
    SessionId::new(n).unwrap()
}

fn epoch() -> SessionEpoch {
    SessionEpoch(7)
}

fn leader_at(now: u64) -> Leases {
    Leases::promote(Term(3), Moment(now), [], [])
}

/// Looks as the actor does: at the time it said it would.
fn look(leases: &mut Leases, now: u64) -> Vec<Action> {
    leases.look_due(Moment(now));
    leases.look(Moment(now))
}

fn expired(actions: &[Action]) -> Vec<SessionId> {
    let ids = |action: &Action| match action {
        Action::Expire(sessions) => sessions.iter().map(|(session, _)| *session).collect(),
        Action::Mark(_) | Action::Forget(_) | Action::Resume => Vec::new(),
    };
    actions.iter().flat_map(ids).collect()
}

#[test]
fn a_silent_session_expires_at_its_deadline_and_not_before() {
    let mut leases = leader_at(0);
    leases.opened(id(1), epoch(), TTL, Moment(100));
    assert_eq!(expired(&look(&mut leases, 10_099)), []);
    assert_eq!(expired(&look(&mut leases, 10_100)), [id(1)]);
    assert_eq!(expired(&look(&mut leases, 10_101)), [], "it is proposed once");
}

#[test]
fn a_keepalive_moves_the_deadline_from_its_receipt() {
    let mut leases = leader_at(0);
    leases.opened(id(1), epoch(), TTL, Moment(0));
    assert_eq!(leases.heard(id(1), Moment(4_000)), Heard::Alive { ttl_ms: TTL });
    assert_eq!(expired(&look(&mut leases, 13_999)), []);
    assert_eq!(expired(&look(&mut leases, 14_000)), [id(1)]);
}

#[test]
fn keepalives_of_an_expiring_session_wait_and_live_on_when_the_expiry_fails() {
    let mut leases = leader_at(0);
    leases.opened(id(1), epoch(), TTL, Moment(0));
    assert_eq!(expired(&look(&mut leases, TTL)), [id(1)]);
    assert_eq!(leases.heard(id(1), Moment(TTL + 1)), Heard::Expiring);
    leases.expiry_done(&[(id(1), epoch())], true, Moment(TTL + 1));
    assert_eq!(leases.heard(id(1), Moment(TTL + 2)), Heard::Alive { ttl_ms: TTL });
    assert_eq!(expired(&look(&mut leases, TTL + 100)), []);
    assert_eq!(expired(&look(&mut leases, 2 * TTL + 2)), [id(1)]);
}

#[test]
fn where_an_expiry_may_still_come_a_keepalive_waits_for_an_entry_behind_it() {
    let mut leases = leader_at(0);
    leases.opened(id(1), epoch(), TTL, Moment(0));
    assert_eq!(expired(&look(&mut leases, TTL)), [id(1)]);
    assert!(!leases.is_quiet());
    leases.expiry_done(&[(id(1), epoch())], false, Moment(TTL + 1));
    assert!(leases.is_quiet());
    assert_eq!(leases.heard(id(1), Moment(TTL + 2)), Heard::Marked { epoch: epoch() });
    leases.cleared(id(1));
    assert_eq!(leases.heard(id(1), Moment(TTL + 3)), Heard::Alive { ttl_ms: TTL });
}

#[test]
fn after_a_stall_received_keepalives_come_before_timers() {
    let mut leases = leader_at(0);
    leases.opened(id(1), epoch(), TTL, Moment(0));
    leases.opened(id(2), epoch(), TTL, Moment(0));
    leases.look_due(Moment(2_000));
    assert_eq!(leases.look(Moment(60_000)), [], "the process stood still");
    assert_eq!(leases.heard(id(1), Moment(60_010)), Heard::Alive { ttl_ms: TTL });
    assert_eq!(look(&mut leases, 60_100), [], "still draining");
    assert_eq!(leases.next_look(), Moment(60_300));
    assert_eq!(expired(&look(&mut leases, 60_300)), [id(2)]);
}

#[test]
fn silent_sessions_are_marked_again_every_two_seconds() {
    let mut leases = leader_at(0);
    leases.opened(id(1), epoch(), TTL, Moment(0));
    leases.opened(id(2), epoch(), TTL, Moment(0));
    assert_eq!(look(&mut leases, 2_000), [], "nobody is silent for half a TTL yet");
    leases.heard(id(2), Moment(3_900));
    look(&mut leases, 4_000);
    assert_eq!(look(&mut leases, 6_000), [Action::Mark(vec![(id(1), epoch(), 4_000)])]);
    leases.marked(id(1));
    assert_eq!(look(&mut leases, 6_500), [], "one at a time");
    leases.mark_done(Moment(6_500));
    assert_eq!(look(&mut leases, 6_500), [], "there are no more");
    assert_eq!(leases.next_look(), Moment(8_500));
    assert_eq!(look(&mut leases, 8_500), [Action::Mark(vec![(id(1), epoch(), 1_500)])]);
}

#[test]
fn very_many_silent_sessions_are_marked_batch_by_batch() {
    let mut leases = leader_at(0);
    for n in 1..=1_200 {
        leases.opened(id(n), epoch(), TTL, Moment(0));
    }
    let mut sizes = Vec::new();
    while let [Action::Mark(batch)] = &look(&mut leases, 6_000)[..] {
        sizes.push(batch.len());
        assert_eq!(leases.next_look(), Moment(TTL), "nothing else before this one is done");
        leases.mark_done(Moment(6_000));
    }
    assert_eq!(sizes, [500, 500, 200]);
    assert_eq!(leases.next_look(), Moment(8_000));
}

#[test]
fn a_mark_on_its_way_is_cleared_before_the_acknowledgement() {
    let mut leases = leader_at(0);
    leases.opened(id(1), epoch(), TTL, Moment(0));
    assert_eq!(look(&mut leases, 6_000), [Action::Mark(vec![(id(1), epoch(), 4_000)])]);
    assert_eq!(leases.heard(id(1), Moment(6_001)), Heard::Marked { epoch: epoch() });
    leases.cleared(id(1));
    assert_eq!(
        leases.heard(id(1), Moment(6_002)),
        Heard::Marked { epoch: epoch() },
        "the mark comes behind it"
    );
    leases.marked(id(1));
    leases.cleared(id(1));
    assert_eq!(leases.heard(id(1), Moment(6_003)), Heard::Alive { ttl_ms: TTL });
}

#[test]
fn a_mark_that_failed_is_cleared_all_the_same_and_proposed_again_later() {
    let mut leases = leader_at(0);
    leases.opened(id(1), epoch(), TTL, Moment(0));
    let marks = [(id(1), epoch(), 4_000)];
    assert_eq!(look(&mut leases, 6_000), [Action::Mark(marks.to_vec())]);
    leases.mark_failed(&marks, Moment(6_100));
    assert_eq!(leases.next_look(), Moment(8_100));
    assert_eq!(leases.heard(id(1), Moment(6_200)), Heard::Marked { epoch: epoch() });
    leases.cleared(id(1));
    assert_eq!(leases.heard(id(1), Moment(6_300)), Heard::Alive { ttl_ms: TTL });
}

#[test]
fn few_expiries_are_on_their_way_and_who_is_heard_before_its_turn_lives_on() {
    let mut leases = leader_at(0);
    for n in 1..=2_600 {
        leases.opened(id(n), epoch(), TTL, Moment(0));
    }
    assert_eq!(expired(&look(&mut leases, TTL)).len(), EXPIRIES_AT_ONCE * BATCH);
    assert_eq!(expired(&look(&mut leases, TTL + 1)), []);
    assert!(leases.next_look() > Moment(TTL + 1), "it does not look in vain");
    leases.heard(id(2_600), Moment(TTL + 1));
    leases.expiry_done(&[], true, Moment(TTL));
    assert_eq!(leases.next_look(), Moment(TTL));
    assert_eq!(expired(&look(&mut leases, TTL + 2)).len(), BATCH);
    leases.expiry_done(&[], true, Moment(TTL));
    let rest = expired(&look(&mut leases, TTL + 3));
    assert_eq!((rest.len(), rest.last()), (99, Some(&id(2_599))));
}

#[test]
fn a_marked_session_is_acknowledged_only_after_the_mark_is_cleared() {
    let mut leases = leader_at(0);
    leases.opened(id(1), epoch(), TTL, Moment(0));
    leases.marked(id(1));
    assert_eq!(leases.heard(id(1), Moment(6_000)), Heard::Marked { epoch: epoch() });
    leases.cleared(id(1));
    assert_eq!(leases.heard(id(1), Moment(6_100)), Heard::Alive { ttl_ms: TTL });
}

#[test]
fn a_new_leader_gives_marked_sessions_what_remained_and_others_their_full_ttl() {
    let known = |n, marked_ms| Known {
        session: id(n),
        epoch: epoch(),
        ttl_ms: TTL,
        marked_ms,
        renewal_stopped: false,
    };
    let mut leases = Leases::promote(Term(4), Moment(1_000), [known(1, Some(3_000)), known(2, None)], []);
    assert_eq!(leases.left_ms(id(1), Moment(1_000)), Some(3_000));
    assert_eq!(expired(&look(&mut leases, 4_000)), [id(1)]);
    assert_eq!(expired(&look(&mut leases, 11_000)), [id(2)]);
}

#[test]
fn a_session_whose_renewal_stopped_ends_at_its_own_deadline() {
    let mut leases = leader_at(0);
    leases.opened(id(1), epoch(), TTL, Moment(0));
    leases.heard(id(1), Moment(5_000));
    leases.renewal_stopped(id(1), epoch());
    assert_eq!(leases.heard(id(1), Moment(9_000)), Heard::Stopped);
    assert_eq!(expired(&look(&mut leases, 14_999)), []);
    assert_eq!(expired(&look(&mut leases, 15_000)), [id(1)]);
}

#[test]
fn an_end_of_another_epoch_leaves_the_session_alone() {
    let mut leases = leader_at(0);
    leases.opened(id(1), epoch(), TTL, Moment(0));
    leases.ended(id(1), SessionEpoch(1));
    assert_eq!(leases.left_ms(id(1), Moment(0)), Some(TTL));
    leases.ended(id(1), epoch());
    assert_eq!(leases.heard(id(1), Moment(1)), Heard::Unknown);
}

#[test]
fn tombstones_are_forgotten_after_a_minute() {
    let mut leases = Leases::promote(Term(1), Moment(0), [], [(id(1), epoch())]);
    assert_eq!(look(&mut leases, 59_999), []);
    assert_eq!(look(&mut leases, 60_000), [Action::Forget(vec![(id(1), epoch())])]);
    assert_eq!(look(&mut leases, 90_000), []);
}

#[test]
fn a_mass_expiry_is_split_into_batches() {
    let mut leases = leader_at(0);
    for n in 1..=1_200 {
        leases.opened(id(n), epoch(), TTL, Moment(0));
    }
    let actions = look(&mut leases, TTL);
    let sizes: Vec<usize> = actions
        .iter()
        .map(|action| match action {
            Action::Expire(sessions) => sessions.len(),
            Action::Mark(_) | Action::Forget(_) | Action::Resume => 0,
        })
        .filter(|n| *n > 0)
        .collect();
    assert_eq!(sizes, [500, 500, 200]);
}

#[test]
fn an_expiry_that_failed_is_proposed_again_after_a_pause() {
    let mut leases = leader_at(0);
    leases.opened(id(1), epoch(), TTL, Moment(0));
    assert_eq!(expired(&look(&mut leases, TTL)), [id(1)]);
    leases.expiry_done(&[(id(1), epoch())], true, Moment(TTL + 5));
    assert_eq!(leases.next_look(), Moment(TTL + 5 + RETRY_MS), "never at once");
    assert_eq!(expired(&look(&mut leases, TTL + 4 + RETRY_MS)), []);
    assert_eq!(expired(&look(&mut leases, TTL + 5 + RETRY_MS)), [id(1)]);
}

#[test]
fn a_session_that_arrives_has_what_it_had_left_or_the_later_deadline() {
    let arriving = |n, left_ms, renewal_stopped| Known {
        session: id(n),
        epoch: epoch(),
        ttl_ms: TTL,
        marked_ms: Some(left_ms),
        renewal_stopped,
    };
    let mut leases = leader_at(0);
    leases.opened(id(1), epoch(), TTL, Moment(0));
    leases.arrived(arriving(1, TTL / 2, false), Moment(TTL * 3 / 4));
    assert_eq!(leases.left_ms(id(1), Moment(TTL)), Some(TTL / 4), "known here: the later deadline");
    leases.arrived(arriving(1, 0, false), Moment(TTL));
    assert_eq!(leases.left_ms(id(1), Moment(TTL)), Some(TTL / 4));
    leases.arrived(arriving(2, TTL / 2, false), Moment(0));
    assert_eq!(leases.left_ms(id(2), Moment(0)), Some(TTL / 2));
    // It counts as silent: the mark goes before it is acknowledged.
    assert_eq!(leases.heard(id(2), Moment(1)), Heard::Marked { epoch: epoch() });
    leases.arrived(arriving(3, TTL / 2, true), Moment(0));
    assert_eq!(leases.heard(id(3), Moment(1)), Heard::Stopped);
}

#[test]
fn grants_are_resumed_once_the_pause_is_over_and_again_where_that_was_not_committed() {
    let mut leases = Leases::promote(Term(1), Moment(0), [], []);
    leases.paused(10_000, Moment(0));
    let resumes = |leases: &mut Leases, at| look(leases, at).contains(&Action::Resume);
    assert!(!resumes(&mut leases, 9_999) && resumes(&mut leases, 10_000) && !resumes(&mut leases, 20_000));
    leases.resume_failed(Moment(20_000));
    assert_eq!(leases.next_look().min(Moment(20_000 + RETRY_MS)), leases.next_look());
    assert!(!resumes(&mut leases, 20_000) && resumes(&mut leases, 20_000 + RETRY_MS));
}

//! Deadlines, breaks and ends of sessions.

use std::time::Duration;

use holdfast_client::{Error, HoldState, LossReason, SessionState};
use holdfast_proto::v1::{self, LeaseState, session_request::Body as Ask, session_response::Body as Answer};
use tokio::time::Instant;

use crate::{
    fake::{Fake, Mode, SESSION, TTL},
    locks::hold,
    wait::{pass, within},
};

fn seconds(begin: Instant) -> f64 {
    begin.elapsed().as_secs_f64()
}

#[tokio::test(start_paused = true)]
async fn a_session_says_who_it_is() {
    let mut fake = Fake::start(1);
    let opening = tokio::spawn(fake.client.session().ttl(TTL).label("import").metadata("user", "eve").open());
    let mut stream = fake.stream().await;
    let (sequence, Ask::Open(open)) = stream.next().await else { panic!("no open") };
    assert_eq!(open.ttl_ms, 10_000);
    let pid = std::process::id().to_string();
    assert_eq!(open.metadata.get("pid"), Some(&pid));
    assert!(open.metadata.contains_key("host"));
    assert_eq!(open.metadata.get("label").map(String::as_str), Some("import"));
    assert_eq!(open.metadata.get("user").map(String::as_str), Some("eve"));
    stream.answer(sequence, Answer::Opened(v1::Opened { session: SESSION, ttl_ms: 12_000 })).await;
    let session = opening.await.expect("a task").expect("a session");
    assert_eq!((session.id().get(), session.ttl()), (SESSION, Duration::from_secs(12)));
}

#[tokio::test(start_paused = true)]
async fn without_any_member_a_lock_is_in_doubt_and_then_lost_by_the_local_deadline() {
    let mut fake = Fake::start(2);
    let (session, mut stream) = fake.session().await;
    let guard = hold(&session, &mut stream).await;
    let begin = Instant::now();
    fake.net.cut(Mode::Refusing);
    let mut states = guard.states();
    within("doubt", states.wait_for(|state| *state == HoldState::InDoubt)).await.expect("a sender");
    assert!((4.9..=5.01).contains(&seconds(begin)), "{}", seconds(begin));
    assert_eq!(session.state(), SessionState::InDoubt);
    assert_eq!(within("the loss", guard.lost()).await, LossReason::Deadline);
    assert!((9.8..=9.91).contains(&seconds(begin)), "{}", seconds(begin));
    assert_eq!(within("the end", session.lost()).await, LossReason::Deadline);
}

#[tokio::test(start_paused = true)]
async fn short_breaks_lose_nothing() {
    let mut fake = Fake::start(1);
    let (session, mut stream) = fake.session().await;
    let guard = hold(&session, &mut stream).await;
    for _ in 0..10 {
        // Half open: nobody answers, and new connections hang. Then they are refused.
        fake.net.set_all(Mode::Silent);
        pass(Duration::from_secs(4)).await;
        fake.net.cut(Mode::Refusing);
        pass(Duration::from_secs(2)).await;
        fake.net.set_all(Mode::Up);
        (stream, _) = fake.resumed().await;
        stream.drive(pass(Duration::from_secs(3))).await;
        assert_eq!(guard.state(), HoldState::Safe);
    }
}

#[tokio::test(start_paused = true)]
async fn a_member_that_falls_silent_is_left_for_another() {
    let mut fake = Fake::start(2);
    let (session, mut stream) = fake.session().await;
    let guard = hold(&session, &mut stream).await;
    // The stream stays open, and its keepalives unanswered.
    let (mut other, resume) = fake.resumed().await;
    assert_ne!(other.member, stream.member);
    assert_eq!(resume.holds.iter().map(|hold| hold.token).collect::<Vec<_>>(), [7]);
    other.drive(pass(Duration::from_secs(30))).await;
    assert_eq!(guard.state(), HoldState::Safe);
}

#[tokio::test(start_paused = true)]
async fn a_late_answer_counts_from_when_its_keepalive_was_sent() {
    let mut fake = Fake::start(1);
    let (session, mut stream) = fake.session().await;
    let guard = hold(&session, &mut stream).await;
    let (sequence, Ask::Keepalive(_)) = stream.next().await else { panic!("no keepalive") };
    let sent = Instant::now();
    pass(Duration::from_millis(1_500)).await;
    stream.ack(sequence).await;
    pass(Duration::from_millis(10)).await;
    fake.net.cut(Mode::Refusing);
    within("the loss", guard.lost()).await;
    assert!((9.8..=9.91).contains(&seconds(sent)), "{}", seconds(sent));
}

#[tokio::test(start_paused = true)]
async fn a_group_that_does_not_answer_costs_only_its_own_locks() {
    let mut fake = Fake::start(1);
    let (session, mut stream) = fake.session().await;
    let one = hold(&session, &mut stream).await;
    let lock = session.lock("b");
    let acquiring = tokio::spawn(async move { lock.acquire().await });
    let (sequence, _) = stream.acquire().await;
    stream.grant(sequence, 9, 2).await;
    let two = acquiring.await.expect("a task").expect("a grant");
    let begin = Instant::now();
    let groups = vec![(1, LeaseState::Renewed), (2, LeaseState::Unavailable)];
    stream.groups = groups.clone();
    let mut streams = 1;
    let serving = async {
        // It looks for a member that reaches more, again and again.
        loop {
            stream.serve().await;
            (stream, _) = fake.resumed().await;
            stream.groups = groups.clone();
            streams += 1;
        }
    };
    tokio::select! {
        _ = two.lost() => {}
        () = serving => {}
    }
    assert!(streams > 1, "it never looked elsewhere");
    assert!((9.8..=9.91).contains(&seconds(begin)), "{}", seconds(begin));
    assert_eq!((one.state(), session.state()), (HoldState::Safe, SessionState::InDoubt));
}

#[tokio::test(start_paused = true)]
async fn the_servers_word_that_the_session_is_over_ends_everything_at_once() {
    let mut fake = Fake::start(1);
    let (session, mut stream) = fake.session().await;
    let guard = hold(&session, &mut stream).await;
    let (sequence, Ask::Keepalive(_)) = stream.next().await else { panic!("no keepalive") };
    stream.refuse(sequence, "session_lost").await;
    assert!(matches!(within("the loss", guard.lost()).await, LossReason::SessionEnded(_)));
    assert_eq!(session.state(), SessionState::Lost);
    assert!(session.lock("b").acquire().await.is_err_and(|error| !error.retryable()));
}

#[tokio::test(start_paused = true)]
async fn errors_of_keepalives_are_retried_and_are_no_loss() {
    let mut fake = Fake::start(1);
    let (session, mut stream) = fake.session().await;
    let guard = hold(&session, &mut stream).await;
    let begin = Instant::now();
    while seconds(begin) < 8.0 {
        let (sequence, Ask::Keepalive(_)) = stream.next().await else { panic!("no keepalive") };
        stream.refuse(sequence, "no_leader").await;
    }
    assert_eq!(guard.state(), HoldState::InDoubt);
    stream.drive(pass(Duration::from_secs(3))).await;
    assert_eq!(guard.state(), HoldState::Safe);
}

#[tokio::test(start_paused = true)]
async fn closing_is_answered_and_ends_the_guards() {
    let mut fake = Fake::start(1);
    let (session, mut stream) = fake.session().await;
    let guard = hold(&session, &mut stream).await;
    let server = async {
        let (sequence, Ask::Close(_)) = stream.call().await else { panic!("no close") };
        stream.answer(sequence, Answer::Closed(v1::Closed {})).await;
    };
    let (closed, ()) = tokio::join!(session.close(), server);
    assert_eq!(closed, Ok(()));
    assert_eq!((guard.state(), guard.lost().await), (HoldState::Lost, LossReason::Closed));
    assert_eq!(session.close().await, Ok(()));
}

#[tokio::test(start_paused = true)]
async fn the_last_handle_that_goes_closes_the_session() {
    let mut fake = Fake::start(1);
    let (session, mut stream) = fake.session().await;
    let guard = hold(&session, &mut stream).await;
    drop(session);
    stream.drive(pass(Duration::from_secs(20))).await;
    assert_eq!(guard.state(), HoldState::Safe);
    drop(guard);
    let (_, Ask::Close(_)) = stream.call().await else { panic!("no close") };
}

#[tokio::test(start_paused = true)]
async fn a_session_that_missed_its_deadline_says_farewell_when_it_can() {
    let mut fake = Fake::start(1);
    let (session, _stream) = fake.session().await;
    fake.net.cut(Mode::Refusing);
    within("the end", session.lost()).await;
    fake.net.set_all(Mode::Up);
    let (mut stream, _) = fake.resumed().await;
    let (_, Ask::Close(_)) = stream.next().await else { panic!("no close") };
}

#[tokio::test(start_paused = true)]
async fn opening_goes_round_and_gives_up_at_the_request_timeout() {
    let mut fake = Fake::start(3);
    fake.net.set(0, Mode::Refusing);
    fake.net.set(1, Mode::Silent);
    let (session, stream) = fake.session().await;
    assert_eq!((stream.member, session.state()), (2, SessionState::Safe));
    fake.net.set_all(Mode::Silent);
    let other = Fake::start(1);
    other.net.set_all(Mode::Silent);
    let begin = Instant::now();
    let error = other.client.session().open().await.expect_err("nobody answers");
    assert!(matches!(error, Error::Unreachable { .. }), "{error:?}");
    assert_eq!(begin.elapsed().as_secs(), 5);
}

#[tokio::test(start_paused = true)]
async fn a_refused_opening_is_told_as_it_is() {
    let mut fake = Fake::start(2);
    let opening = tokio::spawn(fake.client.session().ttl(Duration::from_millis(1)).open());
    let mut stream = fake.stream().await;
    let (sequence, _) = stream.next().await;
    stream.refuse(sequence, "invalid_argument").await;
    let error = opening.await.expect("a task").expect_err("refused");
    assert_eq!(error.code().map(|code| code.as_str()), Some("invalid_argument"));
}

#[tokio::test(start_paused = true)]
async fn sessions_of_a_client_share_a_stream_and_go_elsewhere_together() {
    let mut fake = Fake::start(2);
    let (first, mut stream) = fake.session().await;
    let opening = tokio::spawn(fake.client.session().ttl(TTL).open());
    let (sequence, Ask::Open(_)) = stream.call().await else { panic!("no open") };
    stream.answer(sequence, Answer::Opened(v1::Opened { session: 0x2f, ttl_ms: 10_000 })).await;
    let second = opening.await.expect("a task").expect("a session");
    assert_eq!((first.id().get(), second.id().get()), (SESSION, 0x2f));

    fake.net.set(stream.member, Mode::Refusing);
    drop(stream);
    let mut other = fake.stream().await;
    let mut resumed = Vec::new();
    for _ in 0..2 {
        let (sequence, Ask::Resume(_)) = other.call().await else { panic!("no resume") };
        resumed.push(other.asked[&sequence]);
        other.answer(sequence, Answer::Resumed(v1::Resumed {})).await;
    }
    resumed.sort_unstable();
    assert_eq!(resumed, [SESSION, 0x2f]);
    drop(second);
    let (_, Ask::Close(_)) = other.call().await else { panic!("no close") };
    assert!(fake.streams.try_recv().is_err(), "a stream of its own");
}

#[tokio::test(start_paused = true)]
async fn a_session_whose_opening_was_given_up_is_closed_when_it_comes() {
    let mut fake = Fake::start(1);
    let (_session, mut stream) = fake.session().await;
    let opening = tokio::spawn(fake.client.session().ttl(TTL).open());
    let (sequence, Ask::Open(_)) = stream.call().await else { panic!("no open") };
    opening.abort();
    assert!(opening.await.is_err());
    stream.answer(sequence, Answer::Opened(v1::Opened { session: 0x2f, ttl_ms: 10_000 })).await;
    let (sequence, Ask::Close(_)) = stream.call().await else { panic!("no close") };
    assert_eq!(stream.asked[&sequence], 0x2f);
}

#[tokio::test(start_paused = true)]
async fn a_member_that_does_not_carry_the_session_is_left() {
    let mut fake = Fake::start(2);
    let (session, stream) = fake.session().await;
    fake.net.set(stream.member, Mode::Refusing);
    let member = stream.member;
    drop(stream);
    let mut full = fake.stream().await;
    assert_ne!(full.member, member);
    let (sequence, Ask::Resume(_)) = full.next().await else { panic!("no resume") };
    fake.net.set(member, Mode::Up);
    full.refuse(sequence, "overloaded").await;
    let (other, _) = fake.resumed().await;
    assert_eq!(other.member, member);
    assert_eq!(session.state(), SessionState::Safe);
}

//! Acquire, cancel and release.

use std::time::Duration;

use holdfast_client::{AcquireError, HoldError, HoldState, LockGuard, LossReason, Session};
use holdfast_proto::v1::{self, acquire, session_response::Body as Answer};

use crate::{
    fake::{Fake, Mode, Stream},
    wait::{happens_within, pass, within},
};

/// Acquires the lock `a` with token 7 in group 1.
pub(crate) async fn hold(session: &Session, stream: &mut Stream) -> LockGuard {
    let lock = session.lock("a");
    let acquiring = tokio::spawn(async move { lock.acquire().await });
    let (sequence, _) = stream.acquire().await;
    stream.grant(sequence, 7, 1).await;
    acquiring.await.expect("a task").expect("a grant")
}

#[tokio::test(start_paused = true)]
async fn a_lock_is_granted_with_its_token_and_released_by_it() {
    let mut fake = Fake::start(1);
    let (session, mut stream) = fake.session().await;
    let guard = hold(&session, &mut stream).await;
    assert_eq!((guard.name(), guard.token().get(), guard.group(), guard.is_safe()), ("a", 7, 1, true));
    let releasing = async {
        let (sequence, release) = stream.release().await;
        assert_eq!(release.token, 7);
        stream.answer(sequence, Answer::Released(v1::Released { released: true })).await;
    };
    let (released, ()) = tokio::join!(guard.release(), releasing);
    assert_eq!(released, Ok(true));
    assert_eq!((guard.state(), guard.lost().await), (HoldState::Released, LossReason::Released));
}

#[tokio::test(start_paused = true)]
async fn an_outstanding_acquire_is_repeated_elsewhere_under_its_sequence() {
    let mut fake = Fake::start(2);
    let (session, mut stream) = fake.session().await;
    let lock = session.lock("a");
    let acquiring = tokio::spawn(async move { lock.acquire_timeout(Duration::from_secs(60)).await });
    let (sequence, first) = stream.acquire().await;
    assert_eq!(first.wait, Some(acquire::Wait::AtMostMs(60_000)));
    stream.drive(pass(Duration::from_secs(20))).await;
    let member = stream.member;
    drop(stream);
    let (mut stream, _) = fake.resumed().await;
    assert_ne!(stream.member, member);
    let (again, second) = stream.acquire().await;
    assert_eq!(again, sequence);
    let Some(acquire::Wait::AtMostMs(left)) = second.wait else { panic!("{second:?}") };
    assert!((39_000..=40_000).contains(&left), "{left}");
    stream.grant(again, 7, 1).await;
    assert!(acquiring.await.expect("a task").is_ok());
}

#[tokio::test(start_paused = true)]
async fn dropping_an_acquire_cancels_it() {
    let mut fake = Fake::start(1);
    let (session, mut stream) = fake.session().await;
    let lock = session.lock("a");
    let acquiring = tokio::spawn(async move { lock.acquire().await });
    let (sequence, _) = stream.acquire().await;
    acquiring.abort();
    let (_, cancel) = stream.cancel().await;
    assert_eq!((cancel.acquire_sequence, cancel.release_if_granted), (sequence, true));
}

#[tokio::test(start_paused = true)]
async fn a_grant_that_comes_for_nobody_is_given_back() {
    let mut fake = Fake::start(1);
    let (session, mut stream) = fake.session().await;
    let lock = session.lock("a");
    let acquiring = tokio::spawn(async move { lock.acquire().await });
    let (sequence, _) = stream.acquire().await;
    acquiring.abort();
    let (cancel, _) = stream.cancel().await;
    stream.grant(sequence, 7, 1).await;
    let done = v1::CancelDone { outcome: v1::cancel_done::Outcome::None.into(), token: 0, released: false };
    stream.answer(cancel, Answer::CancelDone(done)).await;
    assert_eq!(stream.release().await.1.token, 7);
}

#[tokio::test(start_paused = true)]
async fn dropping_a_guard_gives_the_lock_back_also_over_a_broken_stream() {
    let mut fake = Fake::start(1);
    let (session, mut stream) = fake.session().await;
    drop(hold(&session, &mut stream).await);
    assert_eq!(stream.release().await.1.token, 7);
    drop(stream);
    let (mut stream, resume) = fake.resumed().await;
    assert_eq!(resume.holds.len(), 1);
    let (sequence, _) = stream.release().await;
    stream.answer(sequence, Answer::Released(v1::Released { released: false })).await;
    stream.drive(pass(Duration::from_secs(30))).await;
}

#[tokio::test(start_paused = true)]
async fn every_way_to_end_without_the_lock_is_told_apart() {
    let mut fake = Fake::start(1);
    let (session, mut stream) = fake.session().await;
    for (code, expected) in [
        ("busy", AcquireError::Busy { name: "a".into(), holder: None, token: None, waiters: 0 }),
        ("timeout", AcquireError::Timeout { name: "a".into() }),
        ("already_held", AcquireError::AlreadyHeld { name: "a".into(), token: None }),
        ("removed", AcquireError::Removed { name: "a".into() }),
        ("invalid_argument", AcquireError::Invalid("it is invalid_argument".into())),
    ] {
        let lock = session.lock("a");
        let acquiring = tokio::spawn(async move { lock.try_acquire().await });
        let (sequence, _) = stream.acquire().await;
        stream.refuse(sequence, code).await;
        assert_eq!(acquiring.await.expect("a task").expect_err("refused"), expected);
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_never_comes_is_unknown_and_the_lock_is_given_back_later() {
    let mut fake = Fake::start(1);
    let (session, mut stream) = fake.session().await;
    let lock = session.lock("a");
    let acquiring = tokio::spawn(async move { lock.acquire_timeout(Duration::from_secs(2)).await });
    let (sequence, _) = stream.acquire().await;
    let cancel = loop {
        match stream.next().await {
            (keepalive, v1::session_request::Body::Keepalive(_)) => stream.ack(keepalive).await,
            (_, v1::session_request::Body::Cancel(cancel)) => break cancel,
            (_, other) => panic!("unexpected {other:?}"),
        }
    };
    assert_eq!(cancel.acquire_sequence, sequence);
    assert!(matches!(acquiring.await.expect("a task"), Err(AcquireError::Unknown { .. })));
}

#[tokio::test(start_paused = true)]
async fn an_acquire_that_was_never_sent_is_unreachable_at_its_limit() {
    let mut fake = Fake::start(1);
    let (session, _stream) = fake.session().await;
    fake.net.cut(Mode::Refusing);
    // The break must have been noticed, or the acquire goes into the broken stream.
    pass(Duration::from_millis(100)).await;
    let begin = tokio::time::Instant::now();
    let error = session.lock("a").acquire_timeout(Duration::from_secs(2)).await.expect_err("unreachable");
    assert!(matches!(error, AcquireError::Unreachable { .. }), "{error:?}");
    assert_eq!(begin.elapsed().as_millis() / 100, 20);
}

#[tokio::test(start_paused = true)]
async fn a_release_whose_answer_is_lost_is_repeated_and_answered() {
    let mut fake = Fake::start(2);
    let (session, mut stream) = fake.session().await;
    let guard = hold(&session, &mut stream).await;
    let server = async {
        stream.release().await;
        drop(stream);
        let (mut stream, _) = fake.resumed().await;
        let (sequence, release) = stream.release().await;
        assert_eq!(release.token, 7);
        stream.answer(sequence, Answer::Released(v1::Released { released: false })).await;
        stream
    };
    let (released, _stream) = tokio::join!(guard.release(), server);
    assert_eq!(released, Ok(false));
}

#[tokio::test(start_paused = true)]
async fn a_late_release_finds_that_the_lock_was_lost() {
    let mut fake = Fake::start(1);
    let (session, mut stream) = fake.session().await;
    let guard = hold(&session, &mut stream).await;
    let server = async {
        let (sequence, _) = stream.release().await;
        stream.refuse(sequence, "not_holder").await;
    };
    let (released, ()) = tokio::join!(guard.release(), server);
    assert_eq!(released, Err(HoldError::NotHolder { name: "a".into() }));
    assert_eq!((guard.state(), guard.lost().await), (HoldState::Lost, LossReason::NotHolder));
}

#[tokio::test(start_paused = true)]
async fn a_hold_that_somebody_else_ends_is_told_at_once() {
    let mut fake = Fake::start(1);
    let (session, mut stream) = fake.session().await;
    let guard = hold(&session, &mut stream).await;
    let name = Some(v1::Name { text: "a".into(), election: false });
    let ended = v1::HoldEnded { name, token: 7, what: "force_released".into() };
    stream.answer(0, Answer::HoldEnded(ended)).await;
    assert_eq!(within("the loss", guard.lost()).await, LossReason::Ended("force_released".into()));
    drop(guard);
    // Nothing is released that is not held.
    assert!(!happens_within(Duration::from_secs(5), stream.release()).await);
}

//! Campaigns and leaderships.

use std::time::Duration;

use holdfast_client::{HoldError, HoldState, Leadership};
use holdfast_proto::v1::{self, session_request::Body as Ask, session_response::Body as Answer};

use crate::{
    fake::{Fake, Mode, Stream},
    wait::{happens_within, pass},
};

async fn lead(fake: &mut Fake) -> (Leadership, Stream) {
    let (session, mut stream) = fake.session().await;
    let election = session.election("scheduler");
    let campaigning = tokio::spawn(async move { election.campaign("me").await });
    let (sequence, campaign) = stream.acquire().await;
    assert_eq!(campaign.value, "me");
    assert!(campaign.name.is_some_and(|name| name.election));
    stream.grant(sequence, 7, 1).await;
    (campaigning.await.expect("a task").expect("a leadership"), stream)
}

#[tokio::test(start_paused = true)]
async fn a_leader_proclaims_under_its_token() {
    let mut fake = Fake::start(1);
    let (leadership, mut stream) = lead(&mut fake).await;
    let server = async {
        let (sequence, Ask::Proclaim(proclaim)) = stream.call().await else { panic!("no proclaim") };
        assert_eq!((proclaim.token, &proclaim.value[..]), (7, &b"me too"[..]));
        stream.answer(sequence, Answer::Proclaimed(v1::Proclaimed {})).await;
    };
    let (proclaimed, ()) = tokio::join!(leadership.proclaim("me too"), server);
    assert_eq!(proclaimed, Ok(()));
}

#[tokio::test(start_paused = true)]
async fn a_resignation_that_failed_leaves_the_leader_responsible() {
    let mut fake = Fake::start(1);
    let (leadership, mut stream) = lead(&mut fake).await;
    // With a deadline that is over already: nothing is sent.
    assert!(!happens_within(Duration::ZERO, leadership.resign()).await);
    assert!(!happens_within(Duration::from_secs(1), stream.release()).await);
    assert_eq!(leadership.state(), HoldState::Safe);
    // With the connection cut.
    fake.net.cut(Mode::Refusing);
    pass(Duration::from_millis(100)).await;
    assert!(matches!(leadership.resign().await, Err(HoldError::Unreachable { .. })));
    assert_eq!(leadership.state(), HoldState::InDoubt);
    // And normally.
    fake.net.set_all(Mode::Up);
    let (mut stream, _) = fake.resumed().await;
    let server = async {
        let (sequence, release) = stream.release().await;
        assert_eq!(release.token, 7);
        stream.answer(sequence, Answer::Released(v1::Released { released: true })).await;
    };
    let (resigned, ()) = tokio::join!(leadership.resign(), server);
    assert_eq!((resigned, leadership.state()), (Ok(true), HoldState::Released));
}

//! Leading, proclaiming, observing.

use futures::StreamExt;

use crate::{cluster::Cluster, wait::within};

#[tokio::test(flavor = "multi_thread")]
async fn observers_see_leaders_come_and_go() {
    let cluster = Cluster::start().await;
    let (one, two) = (cluster.session().await, cluster.session().await);
    let mut leaders = cluster.client().observe("scheduler");
    let mut next = async || {
        let leader = within("a change", leaders.next()).await.expect("a stream").expect("an answer");
        leader.map(|leader| (leader.session, String::from_utf8_lossy(&leader.value).into_owned()))
    };
    assert_eq!(next().await, None);
    let leadership = one.election("scheduler").campaign("one").await.expect("elected");
    assert_eq!(next().await, Some((one.id(), "one".into())));
    leadership.proclaim("one, again").await.expect("proclaimed");
    assert_eq!(next().await, Some((one.id(), "one, again".into())));
    let election = two.election("scheduler");
    let campaign = tokio::spawn(async move { election.campaign("two").await });
    assert_eq!(leadership.resign().await, Ok(true));
    let second = within("the second election", campaign).await.expect("a task").expect("elected");
    while next().await != Some((two.id(), "two".into())) {}
    let leader = two.election("scheduler").leader().await.expect("an answer").expect("a leader");
    assert_eq!((leader.session, leader.token), (two.id(), second.token()));
    // The lock of the same name is another thing.
    assert!(one.lock("scheduler").try_acquire().await.is_ok());
}

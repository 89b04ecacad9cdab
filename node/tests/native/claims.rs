//! Sharing partitions: the client's handles against a real member.

use std::{collections::BTreeSet, time::Duration};

use futures::StreamExt;
use holdfast_client::{
    Claim, ClaimEnd, ClaimError, ClaimEvent, ClaimEvents, ErrorCode, HoldState, ListClaims, Partition,
};

use crate::{
    cluster::Cluster,
    wait::{until, within},
};

async fn next(events: &mut ClaimEvents) -> ClaimEvent {
    within("a change", events.next()).await.expect("not over")
}

/// So many partitions that are assigned, and nothing else.
async fn assigned(events: &mut ClaimEvents, count: usize) -> Vec<Partition> {
    let mut all = Vec::new();
    for _ in 0..count {
        match next(events).await {
            ClaimEvent::Assigned(partition) => all.push(partition),
            other => panic!("{other:?}"),
        }
    }
    all
}

/// So many partitions that are revoked, and nothing else.
async fn revoked(events: &mut ClaimEvents, count: usize) -> Vec<u32> {
    let mut all = Vec::new();
    for _ in 0..count {
        match next(events).await {
            ClaimEvent::Revoked(partition) => all.push(partition.number),
            other => panic!("{other:?}"),
        }
    }
    all
}

fn numbers(claim: &Claim) -> BTreeSet<u32> {
    claim.partitions().iter().map(|partition| partition.number).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn partitions_are_given_back_and_come_to_others_with_higher_tokens() {
    let cluster = Cluster::start().await;
    let (one, two) = (cluster.session().await, cluster.session().await);
    let first = one.claim("jobs", 7).metadata("zone", "a").join().await.expect("joined");
    let mut first_hears = first.events();
    let before = assigned(&mut first_hears, 7).await;
    assert_eq!((first.size(), first.state()), (7, HoldState::Safe));

    let second = two.claim("jobs", 7).join().await.expect("joined");
    assert!(second.partitions().is_empty(), "all of it is in use");
    let mut second_hears = second.events();
    let asked = revoked(&mut first_hears, 3).await;
    assert_eq!(first.partitions().len(), 7, "what is revoked is its owner's until it is given back");
    first.give_back(asked.clone()).await.expect("told");
    let after = assigned(&mut second_hears, 3).await;
    assert_eq!(after.iter().map(|partition| partition.number).collect::<Vec<_>>(), asked);
    let highest = before.iter().map(|partition| partition.token).max().expect("some");
    assert!(after.iter().all(|partition| partition.token > highest));
    assert!(numbers(&first).is_disjoint(&numbers(&second)));

    let admin = cluster.client().admin();
    let detail = admin.claim("jobs").await.expect("a claim");
    assert_eq!((detail.claim.owned, detail.claim.revoking, detail.members.len()), (7, 0, 2));
    let zone = |member: &holdfast_client::ClaimMember| member.metadata.get("zone").cloned();
    assert!(detail.members.iter().any(|member| zone(member).as_deref() == Some("a")));
    let page =
        admin.claims(&ListClaims { prefix: "jo".into(), ..ListClaims::default() }).await.expect("a page");
    assert_eq!(page.claims.iter().map(|claim| claim.name.as_str()).collect::<Vec<_>>(), ["jobs"]);

    // Whoever leaves leaves everything, and whoever comes again has a new part.
    first.leave().await;
    assert_eq!((first.state(), first.partitions()), (HoldState::Released, vec![]));
    assert_eq!(next(&mut first_hears).await, ClaimEvent::Ended(ClaimEnd::Left));
    assert_eq!(first_hears.next().await, None);
    assigned(&mut second_hears, 4).await;
    let again = one.claim("jobs", 7).join().await.expect("joined");
    assert!(again.partitions().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_ends_or_a_handle_that_is_dropped_leaves_everything_to_the_others() {
    let cluster = Cluster::start().await;
    let (one, two) = (cluster.session().await, cluster.session().await);
    let first = one.claim("jobs", 4).join().await.expect("joined");
    let mut hears = first.events();
    assigned(&mut hears, 4).await;
    drop(two.claim("jobs", 4).join().await.expect("joined"));
    let admin = cluster.client().admin();
    until("one member", || async {
        let detail = admin.claim("jobs").await.ok()?;
        (detail.members.len() == 1 && detail.claim.owned == 4 && detail.claim.revoking <= 2).then_some(())
    })
    .await;
    let third = two.claim("jobs", 4).weight(3).join().await.expect("the session lives on");
    one.close().await.expect("closed");
    loop {
        match next(&mut hears).await {
            ClaimEvent::Ended(ClaimEnd::Lost(_)) => break,
            ClaimEvent::Revoked(_) | ClaimEvent::Assigned(_) => {}
            other => panic!("{other:?}"),
        }
    }
    assert_eq!((first.state(), first.partitions()), (HoldState::Lost, vec![]));
    assert!(first.give_back([0]).await.is_err());
    until("everything", || async { (third.partitions().len() == 4).then_some(()) }).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_drained_member_gives_everything_back_and_hears_that_it_is_out() {
    let cluster = Cluster::start().await;
    let (one, two) = (cluster.session().await, cluster.session().await);
    let first = one.claim("jobs", 4).join().await.expect("joined");
    let admin = cluster.client().admin();
    let mut hears = first.events();
    assigned(&mut hears, 4).await;
    admin.drain_claim("jobs", one.id()).await.expect("drained");
    let asked = revoked(&mut hears, 4).await;
    let second = two.claim("jobs", 4).join().await.expect("joined");
    let mut second_hears = second.events();
    for partition in asked {
        // The last one puts it out, which may be what it hears first.
        let _ = first.give_back([partition]).await;
    }
    assert_eq!(next(&mut hears).await, ClaimEvent::Ended(ClaimEnd::Removed));
    assigned(&mut second_hears, 4).await;
    let error = admin.drain_claim("jobs", one.id()).await.expect_err("it is out");
    assert_eq!(error.code(), Some(ErrorCode::NotMember));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_joined_says_why() {
    let cluster = Cluster::start().await;
    let (one, two) = (cluster.session().await, cluster.session().await);
    let _first = one.claim("jobs", 4).join().await.expect("joined");
    let again = one.claim("jobs", 4).join().await.expect_err("it takes part already");
    assert_eq!(again, ClaimError::AlreadyJoined { name: "jobs".into() });
    let other = two.claim("jobs", 5).join().await.expect_err("another number");
    assert!(
        matches!(&other, ClaimError::OtherPartitions { .. }) && other.to_string().contains("4 partitions")
    );
    for (name, partitions, weight) in
        [("a\n", 4, 1), ("jobs/2", 0, 1), ("jobs/2", 4_097, 1), ("jobs/2", 4, 1_001)]
    {
        let refused = two.claim(name, partitions).weight(weight).join().await.expect_err("out of bounds");
        let ClaimError::Failed(error) = refused else { panic!("{refused:?}") };
        assert_eq!(error.code(), Some(ErrorCode::InvalidArgument), "{name:?} {partitions} {weight}");
    }
    two.close().await.expect("closed");
    let lost = within("an answer", two.claim("jobs/3", 4).join()).await.expect_err("the session is over");
    assert!(matches!(lost, ClaimError::SessionLost { .. }), "{lost:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_part_lives_on_for_as_long_as_its_session_is_kept() {
    let cluster = Cluster::start().await;
    let session = cluster.client().session().ttl(Duration::from_secs(1)).open().await.expect("a session");
    let claim = session.claim("jobs", 4).join().await.expect("joined");
    crate::wait::pass(Duration::from_secs(3)).await;
    assert_eq!((claim.state(), claim.partitions().len()), (HoldState::Safe, 4));
}

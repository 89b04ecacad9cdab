//! Who leads, how that is proved, and how it changes.

use std::{
    collections::BTreeSet,
    sync::atomic::Ordering,
    time::{Duration, Instant},
};

use futures::future::join_all;
use holdfast_locktable::ids::Term;
use holdfast_node::peer::memory::Way;
use holdfast_node::raft::{confirm::NotLeader, fault::TransferError, propose::ProposeError};

use super::support::{Cluster, LOCKS, META, eventually, line, lines, timing};

/// From the death of a leader to a successor that is ready: the lease, an election, and room for busy cores.
const FAIL_OVER: Duration = Duration::from_secs(6);

async fn a_dead_leader_is_replaced_and_nothing_acknowledged_is_lost(mut cluster: Cluster) {
    for n in 1..=50 {
        cluster.write(META, line(n)).await;
    }
    let leader = cluster.leader(META).await;
    let dead = leader.id;
    let term = leader.group(META).leadership().borrow().term;
    cluster.kill(dead).await;
    let died = Instant::now();
    let next = cluster.leader_among(META, &cluster.others(dead)).await;
    assert!(died.elapsed() < FAIL_OVER, "it took {:?}", died.elapsed());
    assert!(cluster.members[&next].group(META).leadership().borrow().term > term);
    cluster.write(META, line(51)).await;

    cluster.start(dead).await;
    cluster.write(META, line(52)).await;
    cluster.settle(META).await;
    for member in cluster.members.values() {
        assert_eq!(lines(member.group(META)), (1..=52).collect::<Vec<_>>());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dead_leader_is_replaced_in_memory() {
    a_dead_leader_is_replaced_and_nothing_acknowledged_is_lost(Cluster::in_memory(&[META]).await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dead_leader_is_replaced_over_sockets() {
    a_dead_leader_is_replaced_and_nothing_acknowledged_is_lost(Cluster::on_sockets(&[META]).await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leader_that_is_cut_off_cannot_prove_that_it_leads() {
    let cluster = Cluster::in_memory(&[META, LOCKS]).await;
    let leader = cluster.leader(LOCKS).await;
    let old = leader.group(LOCKS).clone();
    let term = old.confirm_leadership().await.unwrap();
    assert_eq!(term, old.leadership().borrow().term);

    cluster.isolate(leader.id, true);
    let cut = Instant::now();
    assert_eq!(old.confirm_leadership().await, Err(NotLeader { leader: None }));
    assert!(cut.elapsed() < timing().election_timeout_max * 4, "it took {:?}", cut.elapsed());

    let next = cluster.leader_among(LOCKS, &cluster.others(leader.id)).await;
    let next = cluster.members[&next].group(LOCKS);
    let newer = next.confirm_leadership().await.unwrap();
    assert!(newer > term);
    // Both believe for a while, but only one can prove it.
    assert!(old.confirm_leadership().await.is_err());

    cluster.isolate(leader.id, false);
    eventually("the old leader steps back", || !old.leadership().borrow().here).await;
    let present = cluster.leader(LOCKS).await.group(LOCKS).confirm_leadership().await.unwrap();
    assert!(present >= newer);
}

/// openraft gives the answer to a heartbeat less than the pause between two of them; members that have much to do, or are
/// far away, take longer. Appends are more patient, and prove the same.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_too_late_for_heartbeats_still_prove_who_leads() {
    let cluster = Cluster::in_memory(&[LOCKS]).await;
    let leader = cluster.leader(LOCKS).await;
    let late = Way { cut: false, delay: timing().heartbeat_interval * 2 };
    for other in cluster.others(leader.id) {
        cluster.set_way(other, leader.id, late);
    }
    let before = leader.group(LOCKS).status().applied;
    for _ in 0..5 {
        leader.group(LOCKS).confirm_leadership().await.unwrap();
    }
    assert!(leader.group(LOCKS).status().applied > before, "heartbeats were enough");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_oldest_wait_grows_until_it_ends() {
    let cluster = Cluster::in_memory(&[META]).await;
    let leader = cluster.leader(META).await;
    let group = leader.group(META).clone();
    assert_eq!(group.oldest_wait(), Duration::ZERO);
    cluster.isolate(leader.id, true);
    let proposed = tokio::spawn({
        let group = group.clone();
        async move { group.propose(line(1)).await }
    });
    eventually("a proposal without quorum grows old", || group.oldest_wait() > Duration::from_millis(100))
        .await;
    cluster.isolate(leader.id, false);
    // Whatever became of it.
    let _ = proposed.await.unwrap();
    eventually("nothing waits any more", || group.oldest_wait() == Duration::ZERO).await;
}

/// A leader that has heard no quorum for a while, and then does again in the same term, has forgotten what it had proposed
/// before; it may be applied only now. Until it is, the leader's state is not that of a leader.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leader_that_was_alone_for_a_while_leads_again_once_all_that_it_appended_is_applied() {
    let mut cluster = Cluster::in_memory(&[META]).await;
    let leader = cluster.leader(META).await.id;
    let others = cluster.others(leader);
    cluster.kill(others[0]).await;
    let old = cluster.members[&leader].group(META).clone();
    cluster.write(META, line(100)).await;
    let (term, mut leadership) = (old.leadership().borrow().term, old.leadership());
    for n in 1..=3 {
        // The other one hears the leader, and is not heard: it looks for no other leader.
        cluster.set_way(others[1], leader, Way { cut: true, delay: Duration::ZERO });
        let proposed = tokio::spawn({
            let group = old.clone();
            async move { group.propose(line(n)).await }
        });
        leadership.wait_for(|now| !now.here).await.unwrap();
        let appended = old.status().last_log;
        cluster.set_way(others[1], leader, Way::default());
        leadership.wait_for(|now| now.here).await.unwrap();
        assert_eq!(old.leadership().borrow().term, term, "it never lost its office");
        assert!(old.status().applied >= appended, "round {n}: what it had appended is not applied yet");
        // Whatever it was told.
        let _ = proposed.await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn proof_follows_everything_acknowledged_before() {
    let cluster = Cluster::in_memory(&[META]).await;
    let mut proofs = 0;
    for n in 1..=100 {
        cluster.write(META, line(n)).await;
        let proved = cluster.members.values().map(|member| async move {
            let proof = member.group(META).confirm_leadership().await;
            (proof, lines(member.group(META)))
        });
        for (proof, lines) in join_all(proved).await {
            if proof.is_ok() {
                proofs += 1;
                assert_eq!(lines.last(), Some(&n));
            }
        }
    }
    assert!(proofs > 50, "{proofs}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hundred_proofs_take_few_rounds() {
    let cluster = Cluster::in_memory(&[META]).await;
    let leader = cluster.leader(META).await;
    let before = leader.observer.rounds.load(Ordering::SeqCst);
    let proofs = join_all((0..100).map(|_| leader.group(META).confirm_leadership())).await;
    assert_eq!(proofs.into_iter().collect::<Result<BTreeSet<Term>, _>>().unwrap().len(), 1);
    let rounds = leader.observer.rounds.load(Ordering::SeqCst) - before;
    assert!(rounds <= 5, "{rounds} rounds");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_proof_is_never_older_than_its_question() {
    let cluster = Cluster::in_memory(&[META]).await;
    let leader = cluster.leader(META).await;
    let one_way = Duration::from_millis(10);
    for other in cluster.others(leader.id) {
        cluster.set_way(leader.id, other, Way { cut: false, delay: one_way });
        cluster.set_way(other, leader.id, Way { cut: false, delay: one_way });
    }
    let group = leader.group(META);
    // Questions at all points of the rounds that are under way: each waits for a whole one of its own.
    for step in 0..10 {
        let early = tokio::spawn({
            let group = group.clone();
            async move { group.confirm_leadership().await }
        });
        crate::wait::disturb_for(Duration::from_millis(2 * step)).await;
        let asked = Instant::now();
        group.confirm_leadership().await.unwrap();
        assert!(asked.elapsed() >= one_way * 2, "at {step}: it took only {:?}", asked.elapsed());
        early.await.unwrap().unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn leadership_can_be_handed_over_and_old_terms_are_refused() {
    let cluster = Cluster::in_memory(&[META]).await;
    let leader = cluster.leader(META).await;
    let old = leader.group(META);
    let term = old.leadership().borrow().term;
    old.propose_in_term(line(1), term).await.unwrap();
    let heir = cluster.others(leader.id)[0];
    cluster.settle(META).await;

    assert_eq!(old.transfer_leader(99).await, Err(TransferError::NotAVoter { to: 99 }));
    old.transfer_leader(heir).await.unwrap();
    assert!(!old.leadership().borrow().here);
    let next = cluster.leader_among(META, &[heir]).await;
    let next = cluster.members[&next].group(META);
    assert!(matches!(old.propose_in_term(line(2), term).await, Err(ProposeError::NotLeader { .. })));
    assert!(matches!(next.propose_in_term(line(2), term).await, Err(ProposeError::NotLeader { .. })));
    let term = next.confirm_leadership().await.unwrap();
    next.propose_in_term(line(3), term).await.unwrap();
    assert_eq!(lines(next), [1, 3]);
    let not_leader = old.transfer_leader(leader.id).await.unwrap_err();
    assert_eq!(not_leader, TransferError::NotLeader { leader: Some(heir) });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_leader_knows_how_far_each_voter_is() {
    let cluster = Cluster::in_memory(&[META]).await;
    let leader = cluster.leader(META).await;
    let group = leader.group(META);
    group.propose(line(1)).await.unwrap();
    eventually("all voters have all entries", || {
        let status = group.status();
        status.voters.len() == 3 && status.voters.iter().all(|voter| voter.matched == Some(status.last_log))
    })
    .await;
    let status = group.status();
    assert_eq!(status.leader, Some(leader.id));
    assert!(status.quorum_ack_age_ms.is_some());
    let follower = cluster.members[&cluster.others(leader.id)[0]].group(META);
    eventually("a follower knows the leader", || follower.status().leader == Some(leader.id)).await;
    assert!(follower.status().voters.iter().all(|voter| voter.matched.is_none()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_group_may_be_begun_by_all_its_members_and_again() {
    let cluster = Cluster::in_memory(&[META]).await;
    for _ in 0..2 {
        let begun = cluster.members.values().map(|member| member.group(META).initialize(cluster.voters()));
        assert!(join_all(begun).await.into_iter().all(|begun| begun.is_ok()));
        cluster.write(META, line(1)).await;
    }
    let stranger = [(9, String::new())].into();
    let refused = cluster.members[&1].group(META).initialize(stranger).await.unwrap_err();
    assert!(refused.to_string().contains("not one of its voters"), "{refused}");
}

//! What operators do, and what holders learn of it.

use std::time::{Duration, Instant};

use futures::StreamExt;
use holdfast_client::{ErrorCode, Kind, ListLocks, LossReason, PartitionTable, Token};

use crate::{
    cluster::Cluster,
    wait::{pass, within},
};

/// How soon a connected holder learns that it lost its lock, with room for a busy machine.
const TOLD: Duration = Duration::from_secs(2);

#[tokio::test(flavor = "multi_thread")]
async fn a_forced_release_is_told_to_the_holder_within_a_second() {
    let cluster = Cluster::start().await;
    let session = cluster.session().await;
    let early = session.lock("early").acquire().await.expect("a free lock");
    let late = session.lock("late").acquire().await.expect("a free lock");
    let admin = cluster.client().admin();
    let other = Token::new(late.token().get() + 1);
    let changed = admin.force_release(Kind::Lock, "late", other, "test", "eve").await;
    assert_eq!(changed.expect_err("another token").code(), Some(ErrorCode::Changed));
    // One before its watch has begun, one after.
    for (guard, quiet) in [(&early, Duration::ZERO), (&late, Duration::from_millis(800))] {
        pass(quiet).await;
        let begin = Instant::now();
        let held = admin.force_release(Kind::Lock, guard.name(), guard.token(), "host is gone", "eve").await;
        assert_eq!(held, Ok(session.id()));
        assert_eq!(within("the loss", guard.lost()).await, LossReason::Ended("force_released".into()));
        assert!(begin.elapsed() < TOLD, "{:?}", begin.elapsed());
    }
    let audit = admin.audit(10).await.expect("an audit log");
    assert!(audit.iter().any(|line| line.action == "force_release" && line.actor == "eve"), "{audit:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_ended_session_is_told_to_its_client_within_a_second() {
    let cluster = Cluster::start().await;
    let session = cluster.session().await;
    let guard = session.lock("a").acquire().await.expect("a free lock");
    pass(Duration::from_millis(800)).await;
    let admin = cluster.client().admin();
    let begin = Instant::now();
    admin.end_session(session.id(), "test", "eve").await.expect("ended");
    assert!(matches!(within("the loss", guard.lost()).await, LossReason::SessionEnded(_)));
    assert!(begin.elapsed() < TOLD, "{:?}", begin.elapsed());
    assert_eq!(admin.session(session.id()).await.expect_err("gone").code(), Some(ErrorCode::NotFound));
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_and_views_show_what_is_there() {
    let cluster = Cluster::start().await;
    let session = cluster.client().session().label("viewer").open().await.expect("a session");
    let mut guards = Vec::new();
    for number in 0..5 {
        guards.push(session.lock(format!("list/{number}")).acquire().await.expect("a free lock"));
    }
    let admin = cluster.client().admin();
    let mut query = ListLocks { prefix: "list/".into(), limit: 2, ..ListLocks::default() };
    let mut names = Vec::new();
    loop {
        let page = admin.locks(&query).await.expect("a page");
        names.extend(page.locks.into_iter().map(|lock| lock.name));
        let Some(cursor) = page.next_cursor else { break };
        query.cursor = Some(cursor);
    }
    assert_eq!(names, ["list/0", "list/1", "list/2", "list/3", "list/4"]);
    let shown = admin.session(session.id()).await.expect("the session");
    assert_eq!(shown.metadata.get("label").map(String::as_str), Some("viewer"));
    assert_eq!(shown.locks.len(), 5);
    assert!(admin.sessions().await.is_ok_and(|page| page.sessions.iter().any(|s| s.session == session.id())));
    let status = admin.status().await.expect("a status");
    assert_eq!((status.cluster.as_str(), status.member), ("native", 1));
    assert!(admin.members().await.is_ok_and(|members| members.iter().any(|member| member.this)));
    assert_eq!(admin.groups().await.map(|groups| groups.len()), Ok(3));
    let map = admin.partitions().await.expect("a map");
    assert!(
        map.rules.iter().any(|rule| rule.prefix.is_empty() && matches!(rule.table, PartitionTable::Slots(_)))
    );
    assert!(admin.snapshots().await.is_ok());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watch_shows_holds_begin_and_end() {
    let cluster = Cluster::start().await;
    let session = cluster.session().await;
    let mut watch = cluster.client().watch("jobs/", None);
    let mut seen = Vec::new();
    let watching = tokio::spawn(async move {
        let whole = ["granted jobs/a", "released jobs/a"];
        while !whole.iter().all(|event| seen.iter().any(|seen| seen == event)) {
            let event = within("an event", watch.next()).await.expect("a stream").expect("an event");
            assert!(event.name.starts_with("jobs/"), "{event:?}");
            seen.push(format!("{} {}", event.what, event.name));
        }
    });
    // The watch begins "now", whenever that is: go on until it has seen a whole hold.
    while !watching.is_finished() {
        let guard = session.lock("jobs/a").acquire().await.expect("a free lock");
        let other = session.lock("other").acquire().await.expect("a free lock");
        guard.release().await.expect("released");
        other.release().await.expect("released");
    }
    watching.await.expect("a whole hold was seen");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_member_that_stops_lets_its_clients_go() {
    let cluster = Cluster::start().await;
    let session = cluster.session().await;
    let _guard = session.lock("a").acquire().await.expect("a free lock");
    let _watch = cluster.client().watch("", None).next();
    let begin = Instant::now();
    within("the stop", cluster.member.shutdown()).await;
    assert!(begin.elapsed() < Duration::from_secs(10), "{:?}", begin.elapsed());
}

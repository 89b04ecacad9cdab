//! Watching, observing and single requests, over members that come and go.

use futures::StreamExt;
use holdfast_client::{Error, Kind, ListLocks, WatchError};
use holdfast_proto::{status::with_error, v1};
use tonic::{Code, Status};

use crate::{
    fake::{Fake, Mode, Observer, Watcher, error},
    wait::within,
};

async fn tell(watcher: &Watcher, name: &str, cursor: &str) {
    let event = v1::WatchEvent { name: name.into(), cursor: cursor.into(), ..v1::WatchEvent::default() };
    let _ = watcher.events.send(Ok(v1::WatchResponse { event: Some(event) })).await;
}

#[tokio::test(start_paused = true)]
async fn a_watch_goes_on_after_its_last_event() {
    let mut fake = Fake::start(2);
    let mut watch = fake.client.watch("jobs/", None);
    let (first, watcher) = tokio::join!(watch.next(), async {
        let watcher = within("a watch", fake.watches.recv()).await.expect("members");
        assert_eq!((watcher.request.prefix.as_str(), &watcher.request.from), ("jobs/", &None));
        tell(&watcher, "jobs/a", "1:5").await;
        watcher
    });
    assert_eq!(first.expect("an event").expect("no error").name, "jobs/a");
    drop(watcher);
    let (second, _watcher) = tokio::join!(watch.next(), async {
        let watcher = within("a watch", fake.watches.recv()).await.expect("members");
        assert_eq!(watcher.request.from.as_deref(), Some("1:5"));
        tell(&watcher, "jobs/b", "1:6").await;
        watcher
    });
    assert_eq!(second.expect("an event").expect("no error").name, "jobs/b");
}

#[tokio::test(start_paused = true)]
async fn a_gap_in_the_history_is_told() {
    let mut fake = Fake::start(1);
    let mut watch = fake.client.watch("", Some("3".into()));
    let (item, ()) = tokio::join!(watch.next(), async {
        let watcher = within("a watch", fake.watches.recv()).await.expect("members");
        let mut compacted = error("compacted");
        compacted.facts = Some(v1::Facts { oldest: Some(90), ..v1::Facts::default() });
        let _ = watcher.events.send(Err(with_error(Code::OutOfRange, &compacted))).await;
    });
    assert_eq!(item, Some(Err(WatchError::Compacted { oldest: Some(90) })));
    assert_eq!(watch.next().await, None);
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_breaks_before_its_first_event_does_not_hide_the_gap() {
    let mut fake = Fake::start(1);
    let mut watch = fake.client.watch("", None);
    let (item, ()) = tokio::join!(watch.next(), async {
        drop(within("a watch", fake.watches.recv()).await);
    });
    assert_eq!(item, Some(Err(WatchError::Interrupted)));
}

async fn show(observer: &Observer, token: u64) {
    let leader = v1::LeaderView { name: "e".into(), session: token, token, ..v1::LeaderView::default() };
    let leader = (token > 0).then_some(leader);
    let _ = observer.send(Ok(v1::ObserveResponse { leader })).await;
}

#[tokio::test(start_paused = true)]
async fn an_observer_sees_each_leader_once_and_never_an_earlier_one_again() {
    let mut fake = Fake::start(2);
    let mut leaders = fake.client.observe("e");
    let mut seen = Vec::new();
    let server = async {
        let observer = within("an observer", fake.observers.recv()).await.expect("members");
        show(&observer, 0).await;
        show(&observer, 5).await;
        show(&observer, 8).await;
        drop(observer);
        // The next member is behind, then catches up.
        let observer = within("an observer", fake.observers.recv()).await.expect("members");
        show(&observer, 5).await;
        show(&observer, 8).await;
        show(&observer, 9).await;
        observer
    };
    let client = async {
        while seen.last() != Some(&9) {
            let leader = within("a leader", leaders.next()).await.expect("a stream").expect("no error");
            seen.push(leader.map_or(0, |leader| leader.token.get()));
        }
    };
    let (_observer, ()) = tokio::join!(server, client);
    assert_eq!(seen, [0, 5, 8, 9]);
}

#[tokio::test(start_paused = true)]
async fn a_request_goes_to_whoever_answers() {
    let fake = Fake::start(3);
    fake.net.set(0, Mode::Refusing);
    fake.net.set(1, Mode::Silent);
    let page = fake.client.admin().locks(&ListLocks::default()).await.expect("member 2 answers");
    assert_eq!(page.locks.first().map(|lock| lock.group), Some(2));
}

#[tokio::test(start_paused = true)]
async fn silence_and_refusal_are_told_apart() {
    let fake = Fake::start(2);
    assert_eq!(fake.client.admin().leader("nobody").await, Ok(None));
    assert!(fake.client.admin().leader("e").await.is_ok_and(|leader| leader.is_some()));
    let refused = fake.client.admin().lock(Kind::Lock, "a").await.expect_err("no leader");
    assert_eq!(refused.code().map(|code| code.as_str()), Some("no_leader"));
    fake.net.set_all(Mode::Refusing);
    let fresh = Fake::start(1);
    fresh.net.set_all(Mode::Refusing);
    let silent = fresh.client.admin().lock(Kind::Lock, "a").await.expect_err("nobody");
    assert!(matches!(silent, Error::Unreachable { .. }), "{silent:?}");
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_ends_with_a_foreign_status_is_tried_elsewhere() {
    let mut fake = Fake::start(1);
    let mut watch = fake.client.watch("", Some("1:5".into()));
    let (item, _watcher) = tokio::join!(watch.next(), async {
        let watcher = within("a watch", fake.watches.recv()).await.expect("members");
        let _ = watcher.events.send(Err(Status::unavailable("the member is stopping"))).await;
        let watcher = within("a watch", fake.watches.recv()).await.expect("members");
        assert_eq!(watcher.request.from.as_deref(), Some("1:5"));
        tell(&watcher, "a", "1:6").await;
        watcher
    });
    assert_eq!(item.and_then(Result::ok).map(|event| event.name).as_deref(), Some("a"));
}

//! C17, C18: many sessions at once.

use std::time::{Duration, Instant};

use futures::future::join_all;

use crate::support::{
    BUSY, S, Wait, World, form,
    native::{Held, Native, Session},
    s,
    wait::pause,
};

/// Sessions opened at the same time.
const AT_ONCE: usize = 50;

async fn open_all(natives: &[Native], count: usize, ttl: Duration) -> Vec<Session> {
    let mut sessions = Vec::new();
    while sessions.len() < count {
        let some = (0..AT_ONCE.min(count - sessions.len())).map(|i| natives[i % natives.len()].open(ttl));
        sessions.extend(join_all(some).await);
    }
    sessions
}

async fn lock_all(sessions: &[Session], prefix: &str) -> Vec<Held> {
    let mut held = Vec::new();
    for some in sessions.chunks(AT_ONCE) {
        let from = held.len();
        let names: Vec<String> = (0..some.len()).map(|i| format!("{prefix}/{}", from + i)).collect();
        held.extend(join_all(some.iter().zip(&names).map(|(session, name)| session.lock(name))).await);
    }
    held
}

#[tokio::test(flavor = "multi_thread")]
async fn c17_many_deaths_at_once_starve_no_keepalive() {
    let world = World::start();
    let (dying, living, ttl) = form((100, 10, s(4)), (2_000, 200, s(10)));
    let side = world.side().unwrap();
    let doomed = open_all(&[world.native_at(&side)], dying, ttl).await;
    let healthy = open_all(&[world.native()], living, ttl).await;
    let kept = lock_all(&healthy, "kept").await;
    let lost = lock_all(&doomed, "lost").await;
    side.refuse().unwrap();
    let died = Instant::now();
    doomed.iter().for_each(Session::falls_silent);
    let mut took = Vec::new();
    let other = world.client(1).open(s(600));
    while died.elapsed() < ttl + S + s(1) {
        let began = Instant::now();
        let token = other.wait("other", s(30)).token();
        took.push(began.elapsed());
        other.release("other", token).expect(200);
        pause(Duration::from_millis(20)).await;
    }
    took.sort();
    let p99 = took[took.len() * 99 / 100];
    println!("c17: {} acquires elsewhere, p99 {p99:?}, worst {:?}", took.len(), took[took.len() - 1]);
    assert!(p99 <= s(1) + BUSY, "{p99:?}");
    for i in 0..dying {
        world.wait_free(&format!("lost/{i}"), (ttl + S + s(10)).saturating_sub(died.elapsed()) + BUSY);
    }
    println!("c17: {dying} locks free {:?} after the deaths", died.elapsed());
    assert!(kept.iter().all(|guard| !guard.state().ended()), "a healthy session was lost");
    drop(lost);
    world.judge();
}

#[tokio::test(flavor = "multi_thread")]
async fn c18_many_sessions_are_all_kept() {
    let world = World::start();
    let (count, ttl, length) = form((100, s(6), s(7)), (20_000, s(20), s(180)));
    let natives: Vec<Native> = (0..4).map(|_| world.native()).collect();
    let sessions = open_all(&natives, count, ttl).await;
    // A few of them hold locks, so that their keepalives can be judged.
    let held = lock_all(&sessions[..20], "c18").await;
    let mut least = ttl;
    let began = Instant::now();
    while began.elapsed() < length {
        pause(Duration::from_millis(250)).await;
        least = least.min(held.iter().map(|guard| guard.remaining()).min().unwrap());
    }
    let lost =
        sessions.iter().filter(|session| session.state() == holdfast_client::SessionState::Lost).count();
    println!("c18: {count} sessions for {length:?}: {lost} lost, least time left {least:?} of {ttl:?}");
    assert_eq!(lost, 0);
    let late = sessions[count - 1].acquire("c18/late", Wait::Try).await.unwrap();
    late.release().await.unwrap();
    drop(held);
    world.judge();
}

//! Workers as real processes share the partitions of a claim while they come, die, pause, leave and are drained, and while
//! members of the cluster die: never two owners of a partition, a fair share for each, and no move that need not be.
//!
//! The short form takes some 20 s; with HOLDFAST_SOAK=1 chance goes on for a minute.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on fails")]

#[path = "claims/crew.rs"]
mod crew;
mod harness;
#[path = "claims/judge.rs"]
mod judge;

use std::{
    env,
    time::{Duration, Instant},
};

use crew::{Crew, Fate};
use harness::{Cluster, eventually, get};
use nix::sys::signal::Signal;
use serde_json::Value;

const CLAIM: &str = "ingest/eu";
const PARTITIONS: u32 = 64;
const TTL: Duration = Duration::from_secs(3);
/// Until a change has had all its consequences: a TTL, the slack of expiry, and a fail-over.
const SETTLED_WITHIN: Duration = Duration::from_secs(20);
const SOAK: Duration = Duration::from_secs(60);

/// What happens to the crew.
#[derive(Clone, Copy, Debug)]
enum Blow {
    Join,
    Kill,
    Pause,
    Leave,
    Drain,
    /// A member of the cluster dies and comes back.
    Member(u16),
}

/// Who has which partition, by session.
type Owners = Vec<String>;

struct Scene {
    cluster: Cluster,
    crew: Crew,
    owners: Owners,
}

#[test]
fn a_crew_shares_partitions_through_all_that_can_happen_to_it() {
    let mut scene = Scene::new(3);
    for blow in [
        Blow::Join,
        Blow::Join,
        Blow::Kill,
        Blow::Pause,
        Blow::Member(1),
        Blow::Drain,
        Blow::Join,
        Blow::Leave,
    ] {
        scene.take(blow);
    }
    if env::var_os("HOLDFAST_SOAK").is_some() {
        scene.go_on(SOAK);
    }
    scene.judge();
}

impl Scene {
    /// A crew of so many, each with its share.
    fn new(workers: usize) -> Self {
        let cluster = Cluster::start();
        let mut crew = Crew::default();
        let mut scene = None;
        for _ in 0..workers {
            crew.join(&cluster, CLAIM, PARTITIONS, TTL);
            let owners = settled(&cluster, &crew);
            scene = Some(owners);
        }
        Self { cluster, crew, owners: scene.unwrap() }
    }

    /// Lets something happen, waits until everything has settled, and counts what has moved.
    fn take(&mut self, blow: Blow) {
        let began = Instant::now();
        match blow {
            Blow::Join => self.crew.join(&self.cluster, CLAIM, PARTITIONS, TTL),
            Blow::Kill => self.crew.strike(Fate::Killed),
            Blow::Pause => self.crew.strike(Fate::Paused),
            Blow::Leave => self.crew.strike(Fate::Told(Signal::SIGINT)),
            Blow::Drain => {
                let session = self.crew.strike_one_drained();
                let drained =
                    self.cluster.holdfast(["claims", "drain", CLAIM, "--session", &session]).output();
                assert!(drained.unwrap().status.success());
            }
            Blow::Member(member) => self.cluster.kill(member),
        }
        let now = settled(&self.cluster, &self.crew);
        let moved = self.owners.iter().zip(&now).filter(|(before, after)| before != after).count();
        let fewest = judge::fewest_moves(&self.owners, &self.crew.sessions());
        println!("{blow:?}: {moved} of {PARTITIONS} moved, {} ms", began.elapsed().as_millis());
        assert_eq!(moved, fewest, "{blow:?}: needless moves");
        self.owners = now;
        // Whoever was paused finds out by itself and goes.
        self.crew.wake();
        if let Blow::Member(_) = blow {
            self.cluster.wait_ready();
        }
    }

    /// Lets chance decide what happens, with three to eight workers.
    fn go_on(&mut self, time: Duration) {
        let began = Instant::now();
        let mut dice = u64::from(std::process::id());
        while began.elapsed() < time {
            dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let blows = [
                Blow::Kill,
                Blow::Pause,
                Blow::Leave,
                Blow::Drain,
                Blow::Member((dice >> 40) as u16 % 3 + 1),
            ];
            let blow = match self.crew.sessions().len() {
                ..=3 => Blow::Join,
                8.. => blows[(dice >> 33) as usize % blows.len()],
                _ if dice >> 62 == 0 => Blow::Join,
                _ => blows[(dice >> 33) as usize % blows.len()],
            };
            self.take(blow);
        }
    }

    fn judge(mut self) {
        let stories = self.crew.disband();
        if let Err(found) = judge::never_two_owners(&stories, TTL) {
            panic!("BROKEN PROMISE: {found}");
        }
        self.cluster.stop(Signal::SIGINT);
    }
}

/// Waits until every partition is where it shall be: owned by one of the crew, none being revoked, and shares within one of
/// each other, also as the workers themselves say.
fn settled(cluster: &Cluster, crew: &Crew) -> Owners {
    eventually("everything has settled", SETTLED_WITHIN, || {
        let owners = owners(cluster)?;
        let sessions = crew.sessions();
        let shares: Vec<usize> =
            sessions.iter().map(|session| owners.iter().filter(|owner| *owner == session).count()).collect();
        let whole = shares.iter().sum::<usize>() == PARTITIONS as usize && shares.len() == sessions.len();
        let fair = shares.iter().max()? - shares.iter().min()? <= 1;
        (whole && fair && crew.has() == owners).then_some(owners)
    })
}

/// The owners as any member tells them; `None` while none does, or something is on its way.
fn owners(cluster: &Cluster) -> Option<Owners> {
    let path = format!("/v1/claims?name={}", harness::encoded(CLAIM));
    let shown = (1..=3).map(|member| get(&format!("{}{path}", cluster.http(member))));
    let shown = shown.into_iter().find(|answer| answer.status == 200)?.body;
    if shown["owned"] != PARTITIONS || shown["revoking"] != 0 {
        return None;
    }
    let owner = |owner: &Value| owner["session"].as_str().unwrap().to_owned();
    Some(shown["owners"].as_array()?.iter().map(owner).collect())
}

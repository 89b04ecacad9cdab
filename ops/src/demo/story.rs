//! Steps 1 to 7: sessions, queue, tokens, and the late write that is refused.

use std::time::Duration;

use nix::sys::signal::Signal;
use serde_json::Value;

use super::{
    Shown,
    stage::Stage,
    web::{self, tell, tell_url, until},
};

/// The lock of the story.
pub(super) const LOCK: &str = "job-x";
/// The object that it protects.
const OBJECT: &str = "report";
const SOON: Duration = Duration::from_secs(5);
/// A's TTL; all others have three seconds.
const LONG_TTL_MS: u64 = 10_000;
pub(super) const TTL_MS: u64 = 3_000;

fn lock_url(stage: &Stage) -> String {
    format!("{}/v1/locks?name={LOCK}", stage.http(1))
}

/// Holder and waiters of the lock, as the cluster says.
pub(super) fn lock(stage: &Stage) -> Option<Value> {
    let answer = web::get(&lock_url(stage));
    (answer.status == 200).then(|| answer.body["locks"].get(0).cloned().unwrap_or(answer.body))
}

/// Says who holds and who waits, with the command that repeats the question.
pub(super) fn tell_lock(stage: &Stage) -> Result<Value, String> {
    let lock = lock(stage).ok_or("nobody answers about the lock")?;
    tell_url(&lock_url(stage));
    let holder = &lock["holder"];
    tell(&format!(
        "{LOCK}: held by {} with token {}, {} waiting",
        stage.name_of(holder["session"].as_str().unwrap_or_default()),
        holder["token"],
        lock["waiters"]
    ));
    for waiter in lock["queue"].as_array().into_iter().flatten() {
        let who = stage.name_of(waiter["session"].as_str().unwrap_or_default());
        tell(&format!("  position {}: {who}, create revision {}", waiter["position"], waiter["revision"]));
    }
    Ok(lock)
}

fn token(value: &Value) -> u64 {
    value["token"].as_u64().unwrap_or_default()
}

/// Has a worker ask for the lock, and waits until it stands in the queue at that position; 1 holds.
pub(super) fn ask(stage: &mut Stage, name: &str, position: u64) -> Result<(), String> {
    stage.worker(name)?.order(&format!("acquire {LOCK}"))?;
    let session = stage.session(name);
    until(&format!("worker {name} has position {position}"), SOON, || {
        let lock = lock(stage)?;
        let waits = |waiter: &Value| waiter["session"] == session.as_str() && waiter["position"] == position;
        let there = match position {
            1 => lock["holder"]["session"] == session.as_str(),
            _ => lock["queue"].as_array()?.iter().any(waits),
        };
        there.then_some(())
    })
}

/// 1
pub(super) fn session(stage: &mut Stage) -> Shown {
    stage.hire("A", LONG_TTL_MS)?;
    let url = format!("{}/v1/sessions?session={}", stage.http(1), stage.session("A"));
    let left = || web::get(&url).body["ttl_left_ms"].as_u64();
    let first = until("the session is known", SOON, left)?;
    let mut lowest = first;
    let renewed = until("a keepalive renews it", SOON, || {
        let now = left()?;
        lowest = lowest.min(now);
        (now > lowest + 1_000).then_some(now)
    })?;
    tell_url(&url);
    tell(&format!("session {} of worker A, pid {}", stage.session("A"), stage.worker("A")?.pid()));
    tell(&format!(
        "{first} ms left at first, {lowest} ms a little later, {renewed} ms after its next keepalive"
    ));
    Ok(())
}

/// 2
pub(super) fn two_ask(stage: &mut Stage) -> Shown {
    stage.hire("B", TTL_MS)?;
    ask(stage, "A", 1)?;
    ask(stage, "B", 2)?;
    let granted = stage.worker("A")?.hear("granted", SOON)?;
    tell(&format!("worker A was granted {LOCK} with token {}; worker B waits", token(&granted)));
    let lock = tell_lock(stage)?;
    if stage.worker("B")?.heard("granted").is_some() || lock["waiters"] != 1 {
        return Err("B should wait".to_owned());
    }
    Ok(())
}

/// 3
pub(super) fn on_disk(stage: &mut Stage) -> Shown {
    let group = lock(stage).ok_or("nobody answers about the lock")?["group"].clone();
    let url = format!("{}/v1/groups", stage.http(1));
    let stored = until("a majority has stored the log", SOON, || {
        let groups = web::get(&url).body["groups"].clone();
        let view = groups.as_array()?.iter().find(|view| view["group"] == group)?.clone();
        let index = view["committed_index"].as_u64()?;
        let voters = view["voters"].as_array()?.clone();
        let has = |voter: &&Value| voter["matched_index"].as_u64().is_some_and(|matched| matched >= index);
        let members: Vec<String> =
            voters.iter().filter(has).map(|voter| voter["member"].to_string()).collect();
        (members.len() >= 2).then(|| (view["leader"].clone(), index, members))
    })?;
    let (leader, index, members) = stored;
    tell_url(&url);
    tell(&format!("{LOCK} belongs to group {group}, led by member {leader}; log index {index} is committed"));
    tell(&format!("stored with fsync on members {}", members.join(", ")));
    Ok(())
}

/// 4
pub(super) fn queue(stage: &mut Stage) -> Shown {
    let lock = tell_lock(stage)?;
    let second = &lock["queue"][0];
    let in_order = token(&lock["holder"]) < second["revision"].as_u64().unwrap_or_default();
    let right = lock["holder"]["session"] == stage.session("A").as_str()
        && second["session"] == stage.session("B").as_str()
        && second["position"] == 2;
    if right && in_order { Ok(()) } else { Err("A should hold and B be second".to_owned()) }
}

/// 5
pub(super) fn one_wakes(stage: &mut Stage) -> Shown {
    stage.hire("C", TTL_MS)?;
    ask(stage, "C", 3)?;
    tell_lock(stage)?;
    stage.worker("A")?.order("release")?;
    stage.worker("A")?.hear("released", SOON)?;
    let woken = stage.worker("B")?.hear("granted", SOON)?;
    tell(&format!("A released: worker B was woken with token {}", token(&woken)));
    let lock = tell_lock(stage)?;
    if stage.worker("C")?.heard("granted").is_some() || lock["waiters"] != 1 {
        return Err("C should not have been woken".to_owned());
    }
    tell("worker C was not woken");
    // Back to A first and B second, for what follows.
    ask(stage, "A", 3)?;
    for (from, to) in [("B", "C"), ("C", "A")] {
        stage.worker(from)?.order("release")?;
        stage.worker(from)?.hear("released", SOON)?;
        stage.worker(to)?.hear("granted", SOON)?;
    }
    ask(stage, "B", 2)
}

fn write_as(stage: &mut Stage, name: &str, token: u64, data: &str) -> Result<Value, String> {
    stage.worker(name)?.order(&format!("write {OBJECT} {LOCK} {token} {data}"))?;
    let written = stage.worker(name)?.hear("written", SOON)?;
    tell(&format!("worker {name} writes {data:?} with token {token}: status {}", written["status"]));
    Ok(written)
}

/// 6
pub(super) fn write(stage: &mut Stage) -> Shown {
    let held = lock(stage).ok_or("nobody answers about the lock")?;
    let written = write_as(stage, "A", token(&held["holder"]), "by-A")?;
    let url = format!("{}/v1/objects/{OBJECT}", stage.storage());
    let object = web::get(&url).body;
    tell_url(&url);
    tell(&format!("data {}, written with token {}", object["data"], object["token"]));
    if written["status"] == 200 && object["data"] == "by-A" {
        Ok(())
    } else {
        Err(format!("refused: {written}"))
    }
}

/// 7
pub(super) fn stale_write(stage: &mut Stage) -> Shown {
    let old = token(&lock(stage).ok_or("nobody answers about the lock")?["holder"]);
    stage.worker("A")?.signal(Signal::SIGSTOP)?;
    tell(&format!(
        "$ kill -STOP {}    # worker A stands still, as in a long pause",
        stage.worker("A")?.pid()
    ));
    let began = std::time::Instant::now();
    let granted = stage.worker("B")?.hear("granted", Duration::from_millis(LONG_TTL_MS + 4_000))?;
    let new = token(&granted);
    tell(&format!(
        "A's lease ran out; worker B holds after {:.1} s, token {new}",
        began.elapsed().as_secs_f64()
    ));
    let by_b = write_as(stage, "B", new, "by-B")?;
    stage.worker("A")?.signal(Signal::SIGCONT)?;
    tell(&format!("$ kill -CONT {}    # A wakes and does not know", stage.worker("A")?.pid()));
    let late = write_as(stage, "A", old, "late-by-A")?;
    tell(&format!("answer: {} (highest token seen: {})", late["answer"]["code"], late["answer"]["highest"]));
    let url = format!("{}/v1/objects/{OBJECT}", stage.storage());
    let object = web::get(&url).body;
    tell_url(&url);
    tell(&format!("data {}, written with token {}", object["data"], object["token"]));
    let right = by_b["status"] == 200 && late["status"] == 412 && object["data"] == "by-B" && new > old;
    if right { Ok(()) } else { Err(format!("the late write got {late}")) }
}

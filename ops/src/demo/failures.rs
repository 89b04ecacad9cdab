//! Steps 8 to 12: processes die, leadership moves, and what is left to look at.

use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use super::{
    Shown,
    stage::Stage,
    story::{LOCK, TTL_MS, ask, lock, tell_lock},
    web::{self, tell, tell_url, until},
};

const SOON: Duration = Duration::from_secs(10);
/// The election of the story.
const ELECTION: &str = "service-y";

/// 8
pub(super) fn holder_killed(stage: &mut Stage) -> Shown {
    stage.hire("D", TTL_MS)?;
    ask(stage, "D", 2)?;
    let before = tell_lock(stage)?;
    stage.worker("B")?.signal(Signal::SIGKILL)?;
    tell(&format!("$ kill -KILL {}    # worker B, the holder", stage.worker("B")?.pid()));
    let began = Instant::now();
    let granted = stage.worker("D")?.hear("granted", SOON)?;
    tell(&format!(
        "worker D holds {:.1} s later, token {}: the dead session had a TTL of {} s",
        began.elapsed().as_secs_f64(),
        granted["token"],
        TTL_MS / 1_000
    ));
    let after = tell_lock(stage)?;
    let grown = after["holder"]["token"].as_u64() > before["holder"]["token"].as_u64();
    let moved = after["holder"]["session"] == stage.session("D").as_str();
    if grown && moved { Ok(()) } else { Err("the lock did not move to D with a higher token".to_owned()) }
}

/// A group as one member knows it, without asking any other.
fn group(stage: &Stage, asked: u64, group: &Value) -> Option<Value> {
    let groups = web::get(&format!("{}/v1/status", stage.http(asked))).body["groups"].clone();
    groups.as_array()?.iter().find(|view| view["group"] == *group).cloned()
}

fn another(member: u64) -> u64 {
    member % 3 + 1
}

/// 9
pub(super) fn leader_killed(stage: &mut Stage) -> Shown {
    stage.hire("E", TTL_MS)?;
    ask(stage, "E", 2)?;
    let before = tell_lock(stage)?;
    let of = before["group"].clone();
    let old =
        group(stage, 1, &of).and_then(|view| view["leader"].as_u64()).ok_or("the group has no leader")?;
    let asked = another(old);
    stage.kill_member(old)?;
    let began = Instant::now();
    tell(&format!("member {old}, which leads group {of}, is killed with SIGKILL"));
    let new = until("another member leads", SOON, || {
        let leader = group(stage, asked, &of)?["leader"].as_u64()?;
        (leader != old).then_some(leader)
    })?;
    let url = format!("{}/v1/locks?name={LOCK}", stage.http(asked));
    let after = until("the new leader answers", SOON, || {
        let answer = web::get(&url);
        (answer.status == 200).then(|| answer.body["locks"].get(0).cloned().unwrap_or(answer.body))
    })?;
    tell(&format!("member {new} leads and answers {:.2} s after the kill", began.elapsed().as_secs_f64()));
    tell_url(&url);
    tell(&format!(
        "held by {} with token {}",
        stage.name_of(text(&after["holder"]["session"])),
        after["holder"]["token"]
    ));
    tell(&format!("next in line: {}", stage.name_of(text(&after["queue"][0]["session"]))));
    let same = before["holder"]["session"] == after["holder"]["session"]
        && before["holder"]["token"] == after["holder"]["token"]
        && before["queue"][0]["session"] == after["queue"][0]["session"];
    if !same {
        return Err(format!("holder or queue changed: {before} then {after}"));
    }
    // The waiting call was carried over too: the release reaches it.
    stage.worker("D")?.order("release")?;
    let granted = stage.worker("E")?.hear("granted", SOON)?;
    tell(&format!("worker D releases, worker E's waiting call is answered with token {}", granted["token"]));
    stage.wait_ready()?;
    tell(&format!("member {old} was started again and has caught up"));
    Ok(())
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// 10
pub(super) fn election(stage: &mut Stage) -> Shown {
    let names = ["P", "Q", "R"];
    for name in names {
        stage.hire(name, TTL_MS)?;
        stage.worker(name)?.order(&format!("campaign {ELECTION} instance-{name}"))?;
    }
    let url = format!("{}/v1/elections?name={ELECTION}", stage.http(1));
    let leader = |stage: &Stage, not: &str| {
        until("the election has a leader", SOON, || {
            let answer = web::get(&url);
            let session = answer.body["session"].as_str()?.to_owned();
            (answer.status == 200 && session != not && names.iter().any(|n| stage.session(n) == session))
                .then_some(answer.body)
        })
    };
    let first = leader(stage, "")?;
    tell_url(&url);
    tell(&format!("leader: {} with token {}", first["value"], first["token"]));
    let dead = names
        .into_iter()
        .find(|name| stage.session(name) == text(&first["session"]))
        .ok_or("unknown leader")?;
    stage.worker(dead)?.signal(Signal::SIGKILL)?;
    tell(&format!("$ kill -KILL {}    # instance-{dead}", stage.worker(dead)?.pid()));
    let began = Instant::now();
    let second = leader(stage, text(&first["session"]))?;
    tell(&format!(
        "leader after {:.1} s: {} with token {}",
        began.elapsed().as_secs_f64(),
        second["value"],
        second["token"]
    ));
    if second["token"].as_u64() > first["token"].as_u64() {
        Ok(())
    } else {
        Err("the token did not grow".to_owned())
    }
}

/// A lock name whose group another member leads.
fn name_led_elsewhere(stage: &Stage, member: u64) -> Option<(String, u64)> {
    (0..50).map(|n| format!("elsewhere-{n}")).find_map(|name| {
        let found = web::get(&format!("{}/v1/locks?name={name}", stage.http(1))).body;
        let of = found["locks"].get(0).map_or(found["group"].clone(), |lock| lock["group"].clone());
        let leader = group(stage, 1, &of)?["leader"].as_u64()?;
        (leader != member).then_some((name, leader))
    })
}

/// 11
pub(super) fn other_groups(stage: &mut Stage) -> Shown {
    let url = format!("{}/v1/groups", stage.http(1));
    let groups = web::get(&url).body["groups"].clone();
    let leaders: Vec<(u64, u64)> = groups
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|view| Some((view["group"].as_u64()?, view["leader"].as_u64()?)))
        .collect();
    tell_url(&url);
    let line: Vec<String> =
        leaders.iter().map(|(group, leader)| format!("group {group} on member {leader}")).collect();
    tell(&line.join(", "));
    let lock_leaders: Vec<u64> =
        leaders.iter().filter(|(group, _)| *group > 0).map(|(_, leader)| *leader).collect();
    let victim = *lock_leaders.first().ok_or("no lock group has a leader")?;
    if lock_leaders.iter().all(|leader| *leader == victim) {
        return Err(format!("member {victim} leads every lock group"));
    }
    let (name, served_by) = name_led_elsewhere(stage, victim).ok_or("every lock is led by one member")?;
    let session =
        web::post(&format!("{}/v1/sessions", stage.http(served_by)), &json!({"ttl_ms": 60_000})).body;
    let mine: Vec<u64> =
        leaders.iter().filter(|(_, leader)| *leader == victim).map(|(group, _)| *group).collect();
    // A first grant beforehand: the session's first contact with the group is not what is measured.
    cycle(stage, served_by, &name, text(&session["session"]))?;
    stage.kill_member(victim)?;
    let began = Instant::now();
    let (mut cycles, mut slowest) = (0_u32, Duration::ZERO);
    let leaderless = loop {
        let one = Instant::now();
        cycle(stage, served_by, &name, text(&session["session"]))?;
        (cycles, slowest) = (cycles + 1, slowest.max(one.elapsed()));
        let moved = |of: &u64| group(stage, served_by, &json!(*of)).and_then(|view| view["leader"].as_u64());
        if mine.iter().all(|of| moved(of).is_some_and(|leader| leader != victim)) {
            break began.elapsed();
        }
        if began.elapsed() > SOON {
            return Err("the killed member's groups found no leader".to_owned());
        }
    };
    tell(&format!(
        "member {victim} is killed; its groups had another leader after {:.2} s",
        leaderless.as_secs_f64()
    ));
    tell(&format!(
        "meanwhile {name:?}, led by member {served_by}, was granted and released {cycles} times, the slowest in {} ms",
        slowest.as_millis()
    ));
    stage.wait_ready()?;
    if slowest < leaderless { Ok(()) } else { Err("the other group paused too".to_owned()) }
}

fn cycle(stage: &Stage, member: u64, name: &str, session: &str) -> Result<(), String> {
    let acquire = json!({"name": name, "session": session, "wait_ms": 0});
    let granted = web::post(&format!("{}/v1/locks/acquire", stage.http(member)), &acquire);
    if granted.status != 200 {
        return Err(format!("{name:?} was not granted: {} {}", granted.status, granted.body));
    }
    let release = json!({"name": name, "session": session, "token": granted.body["token"]});
    let released = web::post(&format!("{}/v1/locks/release", stage.http(member)), &release);
    if released.status == 200 { Ok(()) } else { Err(format!("{name:?} was not released: {}", released.body)) }
}

/// 12
pub(super) fn snapshot_and_metrics(stage: &mut Stage) -> Shown {
    let url = format!("{}/v1/snapshots", stage.http(1));
    let taken = web::post(&url, &json!({}));
    tell(&format!("$ curl -s -H 'content-type: application/json' -d '{{}}' {url}"));
    if taken.status != 202 {
        return Err(format!("no snapshot was taken: {} {}", taken.status, taken.body));
    }
    let listed = web::get(&url).body["snapshots"].clone();
    let snapshots = listed.as_array().cloned().unwrap_or_default();
    for one in &snapshots {
        tell(&format!(
            "group {}: {} bytes up to log index {}",
            one["group"], one["size_bytes"], one["log_index"]
        ));
    }
    let mut found = [0.0, 0.0];
    for member in 1..=3 {
        let text = web::get(&format!("{}/metrics", stage.http(member))).body;
        let text = text.as_str().unwrap_or_default();
        found[0] += sum(text, "holdfast_lock_wait_duration_seconds_count");
        found[1] += sum(text, "holdfast_raft_leader_changes_total");
    }
    tell_url(&format!("{}/metrics", stage.http(1)));
    tell(&format!("over all members: {} waits measured, {} changes of leader seen", found[0], found[1]));
    let held = lock(stage).is_some_and(|lock| !lock["holder"].is_null());
    if snapshots.len() >= 3 && found[0] > 0.0 && found[1] > 0.0 && held {
        Ok(())
    } else {
        Err("snapshots or metrics are missing".to_owned())
    }
}

/// The sum over all series of one metric in Prometheus' text.
fn sum(text: &str, metric: &str) -> f64 {
    let series = text.lines().filter(|line| line.starts_with(metric));
    series.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn series_of_one_metric_are_added_up() {
        let text = "# HELP a b\na_count{x=\"1\"} 2\na_count{x=\"2\"} 3\nb_count 7\n";
        assert!((sum(text, "a_count") - 5.0).abs() < f64::EPSILON);
    }
}

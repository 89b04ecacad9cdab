//! The whole API against a running member: every answer is as documented, waits end with their connection, streams tell
//! what happens and go on where they were left.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on fails")]

mod http_support;

use std::{sync::Arc, time::Duration};

use http_support::{Fixture, until};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::{Instant, timeout},
};

const ACQUIRE: (&str, &str) = ("POST", "/v1/locks/acquire");
const RELEASE: (&str, &str) = ("POST", "/v1/locks/release");

fn try_lock(name: &str, session: &str) -> Option<Value> {
    Some(json!({ "name": name, "session": session, "wait_ms": 0 }))
}

fn hold(name: &str, session: &str, token: &Value) -> Option<Value> {
    Some(json!({ "name": name, "session": session, "token": token }))
}

async fn show(member: &Fixture, name: &str) -> Value {
    member.documented(("GET", &format!("/v1/locks?name={name}")), None, 200).await.json()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lock_from_its_first_session_to_its_last_release() {
    let member = Fixture::alone().await;
    let (a, b) = (member.session().await, member.session().await);
    let token = member.documented(ACQUIRE, try_lock("jobs/x", &a), 200).await.json()["token"].clone();
    let busy = member.documented(ACQUIRE, try_lock("jobs/x", &b), 409).await;
    busy.assert_problem("busy", 409, "busy", &["jobs/x"]);
    let facts = busy.json();
    assert_eq!((&facts["holder"], &facts["token"], &facts["waiters"]), (&json!(a), &token, &json!(0)));
    let held = member.documented(ACQUIRE, try_lock("jobs/x", &a), 409).await;
    held.assert_problem("again", 409, "already_held", &[]);
    assert_eq!(held.json()["token"], token);
    let late = json!({ "name": "jobs/x", "session": b, "wait_ms": 20, "request_id": "r" });
    member.documented(ACQUIRE, Some(late), 408).await.assert_problem("late", 408, "timeout", &[]);
    let cancel = json!({ "name": "jobs/x", "session": b, "request_id": "other" });
    let cancelled = member.documented(("POST", "/v1/locks/cancel"), Some(cancel), 200).await;
    assert_eq!(cancelled.json(), json!({ "outcome": "none" }));
    let renewed =
        member.documented(("POST", "/v1/sessions/keepalive"), Some(json!({ "session": a })), 200).await;
    assert_eq!(renewed.json()["ttl_ms"], 60_000);
    assert_eq!(show(&member, "jobs/x").await["holder"]["session"], a);
    let list = member.documented(("GET", "/v1/locks?prefix=jobs%2F"), None, 200).await.json();
    assert_eq!(list["locks"][0]["name"], "jobs/x");
    for (session, token, status) in [(&b, &token, 409), (&a, &json!(999_999), 409), (&a, &token, 200)] {
        member.documented(RELEASE, hold("jobs/x", session, token), status).await;
    }
    let again = member.documented(RELEASE, hold("jobs/x", &a, &token), 200).await;
    assert_eq!(again.json(), json!({ "released": false }));
    let next = member.documented(ACQUIRE, try_lock("jobs/x", &b), 200).await.json()["token"].clone();
    assert!(next.as_u64() > token.as_u64(), "{next} is not above {token}");
    let path = format!("/v1/sessions?session={b}");
    member.documented(("GET", &path), None, 200).await;
    member.documented(("DELETE", &path), None, 204).await;
    for (method, path, body) in [
        ("DELETE", path.as_str(), None),
        ("POST", "/v1/locks/acquire", try_lock("jobs/x", &b)),
        ("POST", "/v1/sessions/keepalive", Some(json!({ "session": b }))),
    ] {
        member.documented((method, path), body, 410).await.assert_problem(path, 410, "session_lost", &[&b]);
    }
    member.documented(("GET", &path), None, 404).await.assert_problem(&path, 404, "not_found", &[&b]);
    assert_eq!(show(&member, "jobs/x").await["holder"], Value::Null);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn operators_see_everything_and_leave_traces() {
    let member = Fixture::alone().await;
    let session = member.session().await;
    let token = member.documented(ACQUIRE, try_lock("stuck", &session), 200).await.json()["token"].clone();
    let force = |token: &Value| json!({ "name": "stuck", "token": token, "reason": "it hangs", "now": true });
    let changed =
        member.documented(("POST", "/v1/locks/force-release"), Some(force(&json!(1_000_000))), 409).await;
    changed.assert_problem("another token", 409, "changed", &[]);
    assert_eq!(changed.json()["holder"], session);
    let forced = member.documented(("POST", "/v1/locks/force-release"), Some(force(&token)), 200).await;
    assert_eq!(forced.json()["session"], session);
    let end = Some(json!({ "session": session, "reason": "it hangs" }));
    member.documented(("POST", "/v1/sessions/end"), end.clone(), 204).await;
    member.documented(("POST", "/v1/sessions/end"), end, 410).await;
    let taken = member.documented(("POST", "/v1/snapshots"), Some(json!({})), 202).await.json();
    assert_eq!(taken["snapshots"].as_array().map(Vec::len), Some(3), "{taken}");
    member.documented(("POST", "/v1/snapshots"), Some(json!({ "group": 77 })), 404).await;
    look_into_snapshots(&member, &taken["snapshots"][1]).await;
    let audit = member.documented(("GET", "/v1/audit"), None, 200).await.json();
    let told: Vec<(&str, &str)> = audit["entries"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| (entry["action"].as_str().unwrap(), entry["outcome"].as_str().unwrap()))
        .collect();
    for line in [
        ("force_release", "changed"),
        ("force_release", "ok"),
        ("end_session", "ok"),
        ("take_snapshot", "ok"),
        ("take_snapshot_set", "ok"),
        ("delete_snapshot", "changed"),
        ("delete_snapshot", "ok"),
    ] {
        assert!(told.contains(&line), "{line:?} is not in {audit}");
    }
    assert_eq!(audit["entries"][0]["actor"], "http 127.0.0.1");
    for path in [
        "/v1/status",
        "/v1/members",
        "/v1/groups",
        "/v1/partitions",
        "/v1/snapshots",
        "/v1/sessions",
        "/v1/elections",
        "/livez",
        "/readyz",
        "/metrics",
        "/openapi.json",
    ] {
        member.documented(("GET", path), None, 200).await;
    }
}

/// One snapshot is shown, verified and deleted, but not the last one; all groups together make a set.
async fn look_into_snapshots(member: &Fixture, first: &Value) {
    let (id, group) = (first["id"].as_str().unwrap(), &first["group"]);
    let path = format!("/v1/snapshots/show?snapshot={id}&group={group}");
    let shown = member.documented(("GET", &path), None, 200).await.json();
    assert_eq!((&shown["snapshot"], &shown["whole"]), (first, &Value::Null));
    let which = json!({ "snapshot": id, "group": group });
    let verified = member.documented(("POST", "/v1/snapshots/verify"), Some(which.clone()), 200).await.json();
    assert_eq!((&verified["whole"], &verified["locks"]["held"]), (&json!(true), &json!(0)), "{verified}");
    let stays = member.documented(("POST", "/v1/snapshots/delete"), Some(which.clone()), 409).await;
    stays.assert_problem("the last one", 409, "changed", &["last good one"]);
    let set = member.documented(("POST", "/v1/snapshots/sets"), Some(json!({})), 202).await.json();
    let groups: Vec<u64> =
        set["snapshots"].as_array().unwrap().iter().map(|one| one["group"].as_u64().unwrap()).collect();
    assert_eq!(groups, [0, 1, 2], "{set}");
    let sets = member.documented(("GET", "/v1/snapshots/sets"), None, 200).await.json();
    assert_eq!(sets["sets"], json!([set]));
    let whole = json!({ "set": set["id"] });
    let whole = member.documented(("POST", "/v1/snapshots/sets/verify"), Some(whole), 200).await.json();
    assert_eq!((&whole["whole"], &whole["fault"], &whole["set"]), (&json!(true), &Value::Null, &set));
    let gone = member.documented(("POST", "/v1/snapshots/delete"), Some(which.clone()), 200).await.json();
    assert_eq!(gone, json!({ "deleted": true, "sets": [] }));
    member.documented(("POST", "/v1/snapshots/delete"), Some(which), 404).await;
    let newest = json!({ "snapshot": set["snapshots"][1]["id"], "group": 1 });
    let stays = member.documented(("POST", "/v1/snapshots/delete"), Some(newest), 409).await;
    stays.assert_problem("one of the newest set", 409, "changed", &["newest snapshot set"]);
    let unknown = Some(json!({ "set": "set-1" }));
    member.documented(("POST", "/v1/snapshots/sets/verify"), unknown, 404).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_policy_is_changed_whole_or_refused_with_what_is_wrong() {
    let member = Fixture::alone().await;
    let (plan, policy) = (("GET", "/v1/partitions/plan"), ("POST", "/v1/partitions/policy"));
    let wanted = json!({ "mode": "off", "hold_ms": 30_000, "veto": ["billing/"], "reason": "a test" });
    let since = member.documented(policy, Some(wanted), 200).await.json()["policy"].clone();
    assert_eq!((&since["mode"], &since["hold_ms"]), (&json!("off"), &json!(30_000)));
    assert_eq!((&since["vetoes"], &since["hot_entries_per_s"]), (&json!(["billing/"]), &json!(2_000)));
    for (setting, value, words) in [
        ("gain_percent", json!(0), "gain_percent must be from 1 to 50"),
        ("isolate_percent", json!(101), "isolate_percent must be from 50 to 100"),
        ("hold_ms", json!(0), "hold_ms must be 1 or more"),
        ("cool_down_ms", json!(29_999), "neither quiet_ms nor cool_down_ms shorter than it"),
        ("quiet_entries_per_s", json!(501), "at most a quarter of hot_entries_per_s"),
        ("allow", json!(["orders/"]), "no veto on \"orders/\""),
        ("veto", json!(["a\u{0}b"]), "no name begins with"),
        ("mode", json!("sometimes"), "`mode`"),
        ("moves_per_hour", json!(-1), "`moves_per_hour`"),
    ] {
        // What is right beside it is not done either.
        let mut body = json!({ "hot_queue_ms": 7, "reason": "a test" });
        body[setting] = value;
        let refused = member.documented(policy, Some(body), 400).await;
        refused.assert_problem(setting, 400, "invalid_argument", &[words]);
    }
    let nothing = member.documented(policy, Some(json!({ "reason": "a test" })), 400).await;
    nothing.assert_problem("nothing", 400, "invalid_argument", &["nothing is to be changed"]);
    assert_eq!(member.documented(plan, None, 200).await.json()["policy"], since);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_placement_that_cannot_be_is_refused_with_what_is_wrong() {
    let member = Fixture::alone().await;
    let shown = member.documented(("GET", "/v1/groups/show?group=2"), None, 200).await.json();
    assert_eq!((&shown["group"]["leader"], &shown["leaving"]), (&json!(1), &json!([])));
    let none = member.documented(("GET", "/v1/groups/show?group=9"), None, 404).await;
    none.assert_problem("group 9", 404, "not_found", &["no group 9"]);
    let because = |mut body: Value| {
        body["reason"] = json!("a test");
        Some(body)
    };
    let (add, transfer) = ("/v1/groups/add", "/v1/groups/transfer-leader");
    let (drain, undrain) = ("/v1/members/drain", "/v1/members/undrain");
    for (path, body, status, code, words) in [
        (add, json!({ "count": 0 }), 409, "changed", "add at least 1"),
        (add, json!({ "count": 31 }), 409, "changed", "at most 32 in all"),
        (transfer, json!({ "group": 9, "to": 1 }), 404, "not_found", "no group 9"),
        (transfer, json!({ "group": 1, "to": 9 }), 400, "invalid_argument", "no vote in group 1"),
        (transfer, json!({ "group": 0, "to": 9 }), 400, "invalid_argument", "no vote in group 0"),
        (drain, json!({ "member": 9 }), 409, "changed", "no member 9"),
        (drain, json!({ "member": 1 }), 409, "changed", "0 members would be left"),
        (undrain, json!({ "member": 9 }), 409, "changed", "no member 9"),
    ] {
        let refused = member.documented(("POST", path), because(body), status).await;
        refused.assert_problem(path, status, code, &[words]);
    }
    // Who leads already goes on to lead, and who is not drained may carry groups as before.
    for group in [0, 1] {
        let body = because(json!({ "group": group, "to": 1 }));
        let leads = member.documented(("POST", transfer), body, 200).await;
        assert_eq!(leads.json(), json!({ "ok": true }));
    }
    member.documented(("POST", undrain), because(json!({ "member": 1 })), 202).await;
    let members = member.documented(("GET", "/v1/members"), None, 200).await.json();
    assert_eq!(members["members"][0]["drained"], false, "{members}");
    let groups = member.documented(("GET", "/v1/groups"), None, 200).await.json();
    assert_eq!(groups["groups"].as_array().map(Vec::len), Some(3), "{groups}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_election_from_campaign_to_resignation() {
    let member = Fixture::alone().await;
    let (a, b) = (member.session().await, member.session().await);
    let mut observed = Stream::open(&member, "/v1/elections/observe?name=db", None).await;
    assert_eq!(observed.next().await, ("vacant".into(), None, json!({ "name": "db" })));
    member.documented(("GET", "/v1/elections?name=db"), None, 404).await;
    let campaign =
        |session: &str| Some(json!({ "name": "db", "session": session, "wait_ms": 0, "value": "10.0.0.1" }));
    let elected = member.documented(("POST", "/v1/elections/campaign"), campaign(&a), 200).await.json();
    let token = &elected["token"];
    member.documented(("POST", "/v1/elections/campaign"), campaign(&b), 409).await;
    let (event, id, leader) = observed.next().await;
    assert_eq!((event.as_str(), id), ("leader", Some(token.to_string())));
    assert_eq!((&leader["session"], &leader["value"]), (&json!(a), &json!("10.0.0.1")));
    let proclaim = |session: &str| {
        Some(json!({ "name": "db", "session": session, "token": token, "value": "10.0.0.2" }))
    };
    member.documented(("POST", "/v1/elections/proclaim"), proclaim(&b), 409).await;
    member.documented(("POST", "/v1/elections/proclaim"), proclaim(&a), 200).await;
    assert_eq!(observed.next().await.2["value"], "10.0.0.2");
    let shown = member.documented(("GET", "/v1/elections?name=db"), None, 200).await.json();
    assert_eq!((&shown["value"], &shown["token"]), (&json!("10.0.0.2"), token));
    let list = member.documented(("GET", "/v1/elections?prefix=d"), None, 200).await.json();
    assert_eq!(list["elections"][0]["leader"]["session"], a);
    assert_eq!(show(&member, "db").await["holder"], Value::Null, "the lock of that name is another queue");
    let resigned = member.documented(("POST", "/v1/elections/resign"), hold("db", &a, token), 200).await;
    assert_eq!(resigned.json(), json!({ "released": true }));
    assert_eq!(observed.next().await.0, "vacant");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn closing_the_connection_of_a_waiting_acquire_takes_it_out_of_the_queue() {
    let member = Arc::new(Fixture::alone().await);
    let (a, b) = (member.session().await, member.session().await);
    member.documented(ACQUIRE, try_lock("jobs/x", &a), 200).await;
    let waiters = async |expected: u64| show(&member, "jobs/x").await["waiters"] == expected;
    for half in [false, true] {
        let body = json!({ "name": "jobs/x", "session": b }).to_string();
        let head = "POST /v1/locks/acquire HTTP/1.1\r\nhost: h\r\ncontent-type: application/json\r\n";
        let mut socket = TcpStream::connect(member.server.address()).await.unwrap();
        let request = format!("{head}content-length: {}\r\n\r\n{body}", body.len());
        socket.write_all(request.as_bytes()).await.unwrap();
        until("it waits", async || waiters(1).await).await;
        let gone = Instant::now();
        if half {
            socket.shutdown().await.unwrap();
            let mut rest = Vec::new();
            timeout(Duration::from_secs(2), socket.read_to_end(&mut rest)).await.unwrap().unwrap();
        } else {
            drop(socket);
        }
        until("it waits no more", async || waiters(0).await).await;
        assert!(gone.elapsed() < Duration::from_secs(2), "half closed {half}: took {:?}", gone.elapsed());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_watch_tells_what_happens_and_goes_on_where_it_was_left() {
    let member = Fixture::alone().await;
    let session = member.session().await;
    let mut watch = Stream::open(&member, "/v1/locks/watch?prefix=jobs%2F", None).await;
    let token = member.documented(ACQUIRE, try_lock("jobs/x", &session), 200).await.json()["token"].clone();
    member.documented(ACQUIRE, try_lock("other", &session), 200).await;
    let (granted, id, data) = watch.until("granted").await;
    assert_eq!(
        (&data["name"], &data["session"], &data["token"]),
        (&json!("jobs/x"), &json!(session), &token)
    );
    assert_eq!(data["what"], granted);
    drop(watch);
    member.documented(RELEASE, hold("jobs/x", &session, &token), 200).await;
    let mut again = Stream::open(&member, "/v1/locks/watch?prefix=jobs%2F", id.as_deref()).await;
    let (event, _, data) = again.next().await;
    assert_eq!((event.as_str(), &data["name"], &data["token"]), ("released", &json!("jobs/x"), &token));
    let refused = member.request("GET", "/v1/locks/watch").header("last-event-id", "nonsense");
    assert_eq!(refused.send().await.unwrap().status(), 400);
}

/// Reads Server-Sent Events.
struct Stream {
    response: reqwest::Response,
    unread: String,
}

type Event = (String, Option<String>, Value);

impl Stream {
    async fn open(member: &Fixture, path: &str, last_event_id: Option<&str>) -> Self {
        let mut request = member.request("GET", path);
        if let Some(id) = last_event_id {
            request = request.header("last-event-id", id);
        }
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        Self { response, unread: String::new() }
    }

    /// The next event; comments and the retry hint are none.
    async fn next(&mut self) -> Event {
        loop {
            while let Some((block, rest)) = self.unread.split_once("\n\n") {
                let block = block.to_owned();
                self.unread = rest.to_owned();
                let field = |name: &str| {
                    block
                        .lines()
                        .find_map(|line| line.strip_prefix(name).map(|value| value.trim_start().to_owned()))
                };
                if let (Some(event), Some(data)) = (field("event:"), field("data:")) {
                    return (event, field("id:"), serde_json::from_str(&data).unwrap());
                }
            }
            let chunk = timeout(Duration::from_secs(5), self.response.chunk()).await.unwrap().unwrap();
            self.unread.push_str(std::str::from_utf8(&chunk.expect("the stream ended")).unwrap());
        }
    }

    /// The next event of this name.
    async fn until(&mut self, name: &str) -> Event {
        loop {
            let event = self.next().await;
            if event.0 == name {
                return event;
            }
        }
    }
}

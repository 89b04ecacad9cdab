//! Claims over HTTP against a running member: shares, hand-over, waiting for a change, and every refusal, as documented.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on fails")]

mod http_support;

use std::{sync::Arc, time::Duration};

use http_support::{Fixture, until};
use serde_json::{Value, json};
use tokio::time::timeout;

const JOIN: (&str, &str) = ("POST", "/v1/claims/join");
const ACK: (&str, &str) = ("POST", "/v1/claims/ack");
const LEAVE: (&str, &str) = ("POST", "/v1/claims/leave");
const DRAIN: (&str, &str) = ("POST", "/v1/claims/drain");

fn join(session: &str, partitions: u32) -> Option<Value> {
    Some(
        json!({ "name": "jobs/x", "session": session, "partitions": partitions, "metadata": { "host": "h1" } }),
    )
}

fn member(session: &str) -> Option<Value> {
    Some(json!({ "name": "jobs/x", "session": session }))
}

/// Partitions with tokens, as an acknowledgement names them.
fn revoked(answer: &Value) -> Vec<Value> {
    let owned = answer["owned"].as_array().unwrap().iter().filter(|stake| stake["revoking"] == true);
    owned.map(|stake| json!({ "partition": stake["partition"], "token": stake["token"] })).collect()
}

fn count(answer: &Value) -> usize {
    answer["owned"].as_array().unwrap().len()
}

async fn look(member: &Fixture, session: &str, more: &str) -> Value {
    let path = format!("/v1/claims?name=jobs%2Fx&session={session}{more}");
    member.documented(("GET", &path), None, 200).await.json()
}

async fn show(member: &Fixture) -> Value {
    member.documented(("GET", "/v1/claims?name=jobs%2Fx"), None, 200).await.json()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn partitions_go_from_hand_to_hand_once_they_are_given_back() {
    let fixture = Arc::new(Fixture::alone().await);
    let (a, b) = (fixture.session().await, fixture.session().await);
    let nobody = fixture.documented(("GET", "/v1/claims?name=jobs%2Fx"), None, 404).await;
    nobody.assert_problem("nobody", 404, "not_found", &["jobs/x"]);
    let first = fixture.documented(JOIN, join(&a, 5), 200).await.json();
    assert_eq!((count(&first), &first["partitions"], &first["weight"]), (5, &json!(5), &json!(1)), "{first}");

    // A waits for a change; B's joining is one.
    let (there, session) = (fixture.clone(), a.clone());
    let seen = first["revision"].clone();
    let waiting =
        tokio::spawn(async move { look(&there, &session, &format!("&seen={seen}&wait_ms=30000")).await });
    let second = fixture.documented(JOIN, join(&b, 5), 200).await.json();
    assert_eq!(count(&second), 0, "what A has is A's: {second}");
    let asked = timeout(Duration::from_secs(10), waiting).await.expect("told at once").unwrap();
    let to_give = revoked(&asked);
    assert_eq!((to_give.len(), count(&asked)), (2, 5), "{asked}");
    let shown = show(&fixture).await;
    assert_eq!(
        (&shown["owned"], &shown["revoking"], &shown["member_count"]),
        (&json!(5), &json!(2), &json!(2))
    );
    assert_eq!(shown["members"][0]["metadata"], json!({ "host": "h1" }));

    // B's wait is answered with what A gives back, and with higher tokens.
    let (there, session) = (fixture.clone(), b.clone());
    let seen = second["revision"].clone();
    let waiting =
        tokio::spawn(async move { look(&there, &session, &format!("&seen={seen}&wait_ms=30000")).await });
    let ack = Some(json!({ "name": "jobs/x", "session": a, "partitions": to_give }));
    let kept = fixture.documented(ACK, ack.clone(), 200).await.json();
    assert_eq!((count(&kept), revoked(&kept).len()), (3, 0), "{kept}");
    let given = timeout(Duration::from_secs(10), waiting).await.expect("told at once").unwrap();
    assert_eq!(count(&given), 2, "{given}");
    let lowest =
        given["owned"].as_array().unwrap().iter().map(|stake| stake["token"].as_u64()).min().unwrap();
    assert!(lowest > kept["owned"][0]["token"].as_u64(), "{given} is not above {kept}");
    let again = fixture.documented(ACK, ack, 200).await.json();
    assert_eq!(again, kept, "a repeat changes nothing");
    // Nothing changes: the wait ends with its limit, and the answer is as before.
    let same = look(&fixture, &b, &format!("&seen={}&wait_ms=20", given["revision"])).await;
    assert_eq!(same, given);
    let at_once = look(&fixture, &b, "").await;
    assert_eq!(at_once, given);

    let list = fixture.documented(("GET", "/v1/claims?prefix=jobs%2F&limit=1"), None, 200).await.json();
    assert_eq!((&list["claims"][0]["name"], &list["claims"][0]["partitions"]), (&json!("jobs/x"), &json!(5)));
    let lock = json!({ "name": "jobs/x", "session": a, "wait_ms": 0 });
    fixture.documented(("POST", "/v1/locks/acquire"), Some(lock), 200).await;

    // B ends: what it had is A's.
    fixture.documented(("DELETE", &format!("/v1/sessions?session={b}")), None, 204).await;
    until("A has everything", async || count(&look(&fixture, &a, "").await) == 5).await;
    let left = fixture.documented(LEAVE, member(&a), 200).await.json();
    assert_eq!(left, json!({ "left": true }));
    let left = fixture.documented(LEAVE, member(&a), 200).await.json();
    assert_eq!(left, json!({ "left": false }));
    let list = fixture.documented(("GET", "/v1/claims"), None, 200).await.json();
    assert_eq!(list["claims"], json!([]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_drained_member_gives_everything_back_and_goes() {
    let fixture = Fixture::alone().await;
    let (a, b) = (fixture.session().await, fixture.session().await);
    fixture.documented(JOIN, join(&a, 3), 200).await;
    fixture.documented(JOIN, join(&b, 3), 200).await;
    for _ in 0..2 {
        let drained = fixture.documented(DRAIN, member(&a), 200).await.json();
        assert_eq!(drained, json!({ "draining": true }));
    }
    let asked = fixture.documented(JOIN, join(&a, 3), 200).await.json();
    assert_eq!(
        (&asked["draining"], revoked(&asked).len()),
        (&json!(true), 3),
        "joining again does not undo it"
    );
    let ack = Some(json!({ "name": "jobs/x", "session": a, "partitions": revoked(&asked) }));
    fixture.documented(ACK, ack, 409).await.assert_problem("out", 409, "not_member", &[&a, "jobs/x"]);
    assert_eq!(count(&look(&fixture, &b, "").await), 3);
    let path = format!("/v1/claims?name=jobs%2Fx&session={a}");
    fixture.documented(("GET", &path), None, 409).await.assert_problem("out", 409, "not_member", &[&a]);
    fixture.documented(DRAIN, member(&a), 409).await.assert_problem("again", 409, "not_member", &[&a]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_refusal_says_what_is_wrong() {
    let fixture = Fixture::alone().await;
    let session = fixture.session().await;
    fixture.documented(JOIN, join(&session, 4_096), 200).await;
    let other = fixture.documented(JOIN, join(&session, 8), 409).await;
    other.assert_problem("other", 409, "other_partitions", &["4096", "jobs/x"]);
    assert_eq!(other.json()["partitions"], 4_096);
    for (path, body, word) in [
        (JOIN.1, json!({ "name": "x", "session": session, "partitions": 0 }), "`partitions`"),
        (JOIN.1, json!({ "name": "x", "session": session, "partitions": 4_097 }), "`partitions`"),
        (JOIN.1, json!({ "name": "x", "session": session }), "`partitions`"),
        (JOIN.1, json!({ "name": "x", "session": session, "partitions": 1, "weight": 0 }), "`weight`"),
        (JOIN.1, json!({ "name": "x", "session": session, "partitions": 1, "weight": 1_001 }), "`weight`"),
        (JOIN.1, json!({ "name": "a\u{1}", "session": session, "partitions": 1 }), "`name`"),
        (
            ACK.1,
            json!({ "name": "x", "session": session, "partitions": [{ "partition": 4_096, "token": 1 }] }),
            "partition",
        ),
        (
            ACK.1,
            json!({ "name": "x", "session": session, "partitions": [{ "partition": 1, "token": 0 }] }),
            "token",
        ),
        (LEAVE.1, json!({ "name": "x" }), "`session`"),
        (DRAIN.1, json!({ "name": "x", "session": "0" }), "`session`"),
    ] {
        let refused = fixture.post(path, body.to_string()).await;
        refused.assert_problem(&body.to_string(), 400, "invalid_argument", &[word]);
    }
    for query in [
        "name=x&prefix=y",
        "session=1f",
        "name=x&seen=3",
        "name=x&session=1f&seen=0",
        "name=x&session=1f&seen=1&wait_ms=3600001",
        "limit=0",
    ] {
        let refused = fixture.send("GET", &format!("/v1/claims?{query}")).await;
        refused.assert_problem(query, 400, "invalid_argument", &[]);
    }
    let gone = fixture.documented(JOIN, join("1f", 4_096), 410).await;
    gone.assert_problem("no session", 410, "session_lost", &["1f"]);
    let ack = json!({ "name": "jobs/x", "session": "1f", "partitions": [] });
    fixture.documented(ACK, Some(ack), 409).await.assert_problem("no session", 409, "not_member", &["1f"]);
    let left = fixture.documented(LEAVE, member("1f"), 200).await.json();
    assert_eq!(left, json!({ "left": false }));
}

//! C50, C51: odd TTLs, ids and names get one clear answer, the same on every interface.

use holdfast_client::{AcquireError, ErrorCode};
use serde_json::{Value, json};

use crate::{
    harness::{delete, get, parts, post},
    support::{World, s},
};

/// Refusals are `invalid_argument`; acceptances say which TTL it really is.
fn opened(world: &World, ttl: &Value) -> Option<u64> {
    let answer = post(&format!("{}/v1/sessions", world.http(1)), &json!({"ttl_ms": ttl}));
    match answer.status {
        201 => Some(answer.body["ttl_ms"].as_u64().unwrap()),
        400 => {
            assert_eq!(answer.body["code"], "invalid_argument", "{ttl}");
            assert!(
                answer.body["detail"].as_str().is_some_and(|detail| detail.contains("ttl_ms")),
                "{}",
                answer.body
            );
            None
        }
        status => panic!("{ttl}: {status} {}", answer.body),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn c50_odd_ttls_and_ids_are_refused_in_words() {
    let world = World::alone();
    for ttl in [
        json!(0),
        json!(-1),
        json!(1),
        json!(400),
        json!(0.4),
        json!(1_u64 << 31),
        json!(i64::MAX),
        json!(u64::MAX),
        json!("abc"),
        json!("NaN"),
        json!(null),
        json!([]),
    ] {
        assert_eq!(opened(&world, &ttl), None, "{ttl}");
    }
    assert_eq!(
        (opened(&world, &json!(1_000)), opened(&world, &json!(86_400_000))),
        (Some(1_000), Some(86_400_000))
    );
    let native = world.native();
    for ttl in [s(0), std::time::Duration::from_millis(400), s(1 << 31), std::time::Duration::MAX] {
        let error = native.client.session().ttl(ttl).open().await.unwrap_err();
        assert_eq!(error.code(), Some(ErrorCode::InvalidArgument), "{ttl:?}: {error}");
    }
    for ttl in ["0s", "-1s", "400ms", "30d", "abc", "NaN"] {
        let (code, _, err) =
            parts(&world.holdfast(&["lock", "c50", &format!("--ttl={ttl}"), "--", "true"]).output().unwrap());
        assert_eq!(code, 2, "{ttl}: {err}");
    }
    let base = world.http(1);
    for id in ["0", "-1", "ffffffffffffffff", "xyz", ""] {
        let told = post(&format!("{base}/v1/sessions/keepalive"), &json!({"session": id}));
        assert_eq!((told.status, &told.body["code"]), (400, &json!("invalid_argument")), "{id:?}");
    }
    let unknown = post(&format!("{base}/v1/sessions/keepalive"), &json!({"session": "7f"}));
    assert_eq!((unknown.status, &unknown.body["code"]), (410, &json!("session_lost")));
    assert_eq!(delete(&format!("{base}/v1/sessions?session=7f")).status, 410);
    assert_eq!(get(&format!("{base}/v1/sessions?session=7f")).status, 404);
    assert!(world.is_ready(1));
}

#[tokio::test(flavor = "multi_thread")]
async fn c51_names_have_one_rule_everywhere() {
    let world = World::alone();
    let session = world.native().open(s(60)).await;
    let over_http = world.client(1).open(s(60));
    let long = "x".repeat(2_047);
    for name in ["/", "a//b", ".", "..", "locks", "trailing/", "ü\u{202e}ß", "a b", long.as_str()] {
        let held = session.lock(name).await;
        let page =
            get(&format!("{}/v1/locks?prefix={}", world.http(1), crate::harness::encoded(name))).expect(200);
        let found = page["locks"].as_array().unwrap().iter().any(|lock| lock["name"] == name);
        assert!(found, "{name:?} does not come back byte for byte: {page}");
        assert_eq!(world.look(name).holder.unwrap().1, held.number(), "{name:?}");
        held.release().await.unwrap();
    }
    let megabyte = "x".repeat(1 << 20);
    let parts_of_it = "a/".repeat(10_000);
    let too_long = "x".repeat(2_048);
    for name in
        ["", "a\0b", "\u{7f}", "a\nb", "\u{85}", too_long.as_str(), parts_of_it.as_str(), megabyte.as_str()]
    {
        let shown: String = name.chars().take(10).collect();
        let error = holdfast_client::Session::lock(&session, name).try_acquire().await.unwrap_err();
        assert!(matches!(error, AcquireError::Invalid(_)), "{shown:?}: {error:?}");
        let told = post(
            &format!("{}/v1/locks/acquire", world.http(1)),
            &json!({"name": name, "session": over_http.id}),
        );
        // A body of over 1 MiB is too large before it is a name.
        let allowed = if name.len() >= 1 << 20 { 413 } else { 400 };
        assert_eq!(told.status, allowed, "{shown:?}: {}", told.body);
        if !name.contains('\0') && name.len() < 100_000 {
            let (code, _, err) = parts(&world.holdfast(&["lock", name, "--", "true"]).output().unwrap());
            assert_eq!(code, 2, "{shown:?}: {err}");
        }
    }
    let raw = ureq::post(format!("{}/v1/locks/acquire", world.http(1)))
        .config()
        .http_status_as_error(false)
        .build()
        .header("content-type", "application/json")
        .send(&b"{\"name\":\"a\xffb\",\"session\":\"7f\"}"[..])
        .unwrap();
    assert_eq!(raw.status().as_u16(), 400);
    world.judge();
}

#[tokio::test(flavor = "multi_thread")]
async fn c51_a_lock_and_an_election_of_one_name_do_not_interfere() {
    let world = World::alone();
    let native = world.native();
    let (a, b) = (native.open(s(60)).await, native.open(s(60)).await);
    let held = a.lock("same").await;
    let office = b.election("same").try_campaign("B").await.unwrap();
    assert_eq!(world.look("same").holder.unwrap().1, held.number());
    held.release().await.unwrap();
    assert_eq!(b.election("same").leader().await.unwrap().unwrap().token, office.token());
    office.resign().await.unwrap();
    assert!(world.look("same").is_free());
    world.judge();
}

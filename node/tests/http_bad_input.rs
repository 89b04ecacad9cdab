//! Bad input gets a clear typed error that names what is wrong, on every path, before anything else happens.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on fails")]

mod http_support;

use http_support::{Document, Fixture};
use serde_json::{Value, json};

const SESSION: &str = "7fffffffffffff01";

/// Paths that take a body, each with its smallest good one.
fn good_bodies() -> Vec<(&'static str, Value)> {
    vec![
        ("/v1/sessions", json!({})),
        ("/v1/sessions/keepalive", json!({ "session": SESSION })),
        ("/v1/sessions/end", json!({ "session": SESSION, "reason": "stuck" })),
        ("/v1/locks/acquire", json!({ "name": "x", "session": SESSION })),
        ("/v1/locks/cancel", json!({ "name": "x", "session": SESSION, "request_id": "r" })),
        ("/v1/locks/release", json!({ "name": "x", "session": SESSION, "token": 1 })),
        ("/v1/locks/force-release", json!({ "name": "x", "token": 1, "reason": "stuck", "now": true })),
        ("/v1/elections/campaign", json!({ "name": "x", "session": SESSION })),
        ("/v1/elections/proclaim", json!({ "name": "x", "session": SESSION, "token": 1, "value": "v" })),
        ("/v1/elections/resign", json!({ "name": "x", "session": SESSION, "token": 1 })),
        ("/v1/claims/join", json!({ "name": "x", "session": SESSION, "partitions": 8 })),
        ("/v1/claims/leave", json!({ "name": "x", "session": SESSION })),
        ("/v1/claims/drain", json!({ "name": "x", "session": SESSION })),
        ("/v1/claims/ack", json!({ "name": "x", "session": SESSION, "partitions": [] })),
        ("/v1/snapshots", json!({})),
        ("/v1/snapshots/verify", json!({ "snapshot": "1-a" })),
        ("/v1/snapshots/delete", json!({ "snapshot": "1-a" })),
        ("/v1/snapshots/sets", json!({})),
        ("/v1/snapshots/sets/verify", json!({ "set": "set-1" })),
        ("/v1/groups/add", json!({ "count": 1, "reason": "more" })),
        ("/v1/groups/transfer-leader", json!({ "group": 1, "to": 1, "reason": "even" })),
        ("/v1/members/drain", json!({ "member": 1, "reason": "old" })),
        ("/v1/members/undrain", json!({ "member": 1, "reason": "new" })),
        ("/v1/partitions/policy", json!({ "mode": "auto", "reason": "hot" })),
    ]
}

/// Values that no path takes in these fields, with words of the answer.
fn bad_values() -> Vec<(&'static str, Value, &'static str)> {
    let wait = "a whole number from 0 to 3600000";
    let ttl = "a whole number from 1000 to 86400000";
    let token = "a whole number from 1 to 9007199254740991";
    vec![
        ("snapshot", json!("x"), "is no snapshot id"),
        ("snapshot", json!("set-1"), "is no snapshot id"),
        ("set", json!("1-a"), "is no id of a snapshot set"),
        ("ttl_ms", json!(-5), ttl),
        ("ttl_ms", json!(0), ttl),
        ("ttl_ms", json!(999), ttl),
        ("ttl_ms", json!(86_400_001), ttl),
        ("ttl_ms", json!(1e20), ttl),
        ("ttl_ms", json!("x"), ttl),
        ("ttl_ms", json!(null), ttl),
        ("ttl_ms", json!([10_000]), ttl),
        ("wait_ms", json!(-1), wait),
        ("wait_ms", json!(3_600_001), wait),
        ("wait_ms", json!(1.5), wait),
        ("wait_ms", json!("0"), wait),
        ("wait_ms", json!(null), wait),
        ("token", json!(0), token),
        ("token", json!(-1), token),
        ("token", json!(9_007_199_254_740_992_u64), token),
        ("token", json!(9_007_199_254_740_993_u64), token),
        ("token", json!("1"), token),
        ("token", json!(1.5), token),
        ("name", json!(""), "1 to 2047 bytes"),
        ("name", json!("a".repeat(2_048)), "2048 bytes"),
        ("name", json!("a\u{0}b"), "U+0000"),
        ("name", json!("a\nb"), "U+000A"),
        ("name", json!("a\u{85}b"), "U+0085"),
        ("name", json!(7), "1 to 2047 bytes"),
        ("session", json!("nothex"), "lower-case hex"),
        ("session", json!(""), "lower-case hex"),
        ("session", json!("7FFF"), "lower-case hex"),
        ("session", json!("0"), "lower-case hex"),
        ("session", json!("8000000000000000"), "lower-case hex"),
        ("session", json!(17), "lower-case hex"),
        ("request_id", json!(""), "1 to 256"),
        ("request_id", json!("r".repeat(257)), "1 to 256"),
        ("request_id", json!(1), "1 to 256"),
        ("value", json!("v".repeat(65_537)), "65536"),
        ("value", json!(null), "65536"),
        ("reason", json!(""), "1 to 1024"),
        ("reason", json!(" "), "1 to 1024"),
        ("reason", json!("r".repeat(1_025)), "1 to 1024"),
        ("metadata", json!("x"), "an object of texts"),
        ("metadata", json!({ "a": 1 }), "a string"),
        ("metadata", json!({ "a": "y".repeat(4_096) }), "4096"),
        ("metadata", json!(null), "an object of texts"),
        ("now", json!("yes"), "a boolean"),
        ("now", json!(null), "a boolean"),
        ("group", json!(-1), "a whole number from 0 to 4294967295"),
        ("group", json!(4_294_967_296_u64), "a whole number from 0 to 4294967295"),
    ]
}

/// Bounds in bytes or in meaning, which the document tells in words only.
fn told_in_words_only(field: &str, value: &Value) -> bool {
    match field {
        "session" => value == "8000000000000000",
        "reason" => value == " ",
        "metadata" => value.get("a").is_some_and(Value::is_string),
        _ => false,
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_bad_value_is_named_with_its_bound_and_the_document_refuses_it_too() {
    let member = Fixture::leaderless().await;
    let document = Document::published();
    let mut sent = 0;
    for (path, good) in good_bodies() {
        let schema = document.body(path);
        assert!(schema.is_valid(&good), "{path}: the document refuses {good}");
        let fields = document_fields(&document, path);
        for (field, value, words) in bad_values() {
            if !fields.iter().any(|known| known == field) {
                continue;
            }
            let mut body = good.clone();
            body[field] = value.clone();
            let about = format!("{path} {}", &body.to_string()[..body.to_string().len().min(80)]);
            let answer = member.post(path, body.to_string()).await;
            answer.assert_problem(&about, 400, "invalid_argument", &[&format!("`{field}"), words]);
            assert!(document.has_status("post", path, 400));
            if !told_in_words_only(field, &value) {
                assert!(!schema.is_valid(&body), "{about}: the document takes it");
            }
            sent += 1;
        }
    }
    assert!(sent > 150, "only {sent} bad bodies were sent");
}

fn document_fields(document: &Document, path: &str) -> Vec<String> {
    let content = &document.json()["paths"][path]["post"]["requestBody"]["content"]["application/json"];
    let reference = content["schema"]["$ref"].as_str().unwrap();
    let schema = document.json().pointer(&reference[1..]).unwrap();
    // A body without fields has none there.
    schema["properties"].as_object().into_iter().flat_map(|fields| fields.keys().cloned()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn missing_and_unknown_fields_are_named() {
    let member = Fixture::leaderless().await;
    let document = Document::published();
    for (path, good) in good_bodies() {
        let mut more = good.clone();
        more["zzz"] = json!(1);
        member.post(path, more.to_string()).await.assert_problem(path, 400, "invalid_argument", &["`zzz`"]);
        let content = &document.json()["paths"][path]["post"]["requestBody"]["content"]["application/json"];
        let reference = content["schema"]["$ref"].as_str().unwrap();
        let schema = document.json().pointer(&reference[1..]).unwrap();
        for field in schema["required"].as_array().into_iter().flatten() {
            let field = field.as_str().unwrap();
            let mut less = good.clone();
            less.as_object_mut().unwrap().remove(field);
            let answer = member.post(path, less.to_string()).await;
            answer.assert_problem(path, 400, "invalid_argument", &[&format!("`{field}`"), "missing"]);
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_no_json_object_is_refused_on_every_path() {
    let member = Fixture::leaderless().await;
    let bodies: [(&[u8], &str); 13] = [
        (b"", "empty"),
        (b"  \n", "empty"),
        (b"{", "no JSON"),
        (b"[]", "no JSON object"),
        (b"null", "no JSON object"),
        (b"7", "no JSON object"),
        (b"\"x\"", "no JSON object"),
        (b"nonsense", "no JSON object"),
        (b"{} {}", ""),
        (b"{\"a\":1,}", ""),
        (b"{\"session\":\"1\",\"session\":\"1\"}", ""),
        (b"{\"name\":\"\xff\"}", ""),
        (b"{\"name\":\"\\ud800\"}", ""),
    ];
    for (path, _) in good_bodies() {
        for (body, words) in bodies {
            let about = format!("{path} {}", String::from_utf8_lossy(body));
            let answer = member.post(path, body.to_vec()).await;
            answer.assert_problem(&about, 400, "invalid_argument", &[words]);
        }
    }
    let deep = format!("{{\"metadata\":{}{}}}", "[".repeat(100_000), "]".repeat(100_000));
    let answer = member.post("/v1/sessions", deep).await;
    answer.assert_problem("deep nesting", 400, "invalid_argument", &["`metadata`"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn repeated_keys_are_named() {
    let member = Fixture::leaderless().await;
    for (path, body, field) in [
        ("/v1/sessions", r#"{"ttl_ms":5000,"ttl_ms":6000}"#, "`ttl_ms`"),
        ("/v1/sessions", r#"{"metadata":{"a":"1","a":"2"}}"#, "\"a\" twice"),
        ("/v1/sessions/keepalive", r#"{"session":"1","session":"2"}"#, "`session`"),
    ] {
        member.post(path, body).await.assert_problem(body, 400, "invalid_argument", &[field]);
    }
    let overflow = r#"{"ttl_ms":99999999999999999999}"#;
    let answer = member.post("/v1/sessions", overflow).await;
    answer.assert_problem(overflow, 400, "invalid_argument", &["`ttl_ms`", "from 1000 to 86400000"]);
    let infinite = member.post("/v1/sessions", r#"{"ttl_ms":1e999}"#).await;
    infinite.assert_problem("1e999", 400, "invalid_argument", &["number out of range"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn queries_are_as_strict_as_bodies() {
    let member = Fixture::leaderless().await;
    let long = format!("/v1/locks?name={}", "a".repeat(2_048));
    for (method, path, words) in [
        ("GET", "/v1/sessions?session=nothex", &["`session`", "lower-case hex"][..]),
        ("GET", "/v1/sessions?session=", &["`session`"]),
        ("GET", "/v1/sessions?sesion=1", &["`sesion`", "unknown"]),
        ("GET", "/v1/sessions?session=1&session=1", &["`session`", "duplicate"]),
        ("DELETE", "/v1/sessions", &["`session`", "missing"]),
        ("DELETE", "/v1/sessions?session=XYZ", &["`session`", "lower-case hex"]),
        ("GET", "/v1/locks?limit=0", &["`limit`", "from 1 to 1000"]),
        ("GET", "/v1/locks?limit=1001", &["`limit`", "from 1 to 1000"]),
        ("GET", "/v1/locks?limit=ten", &["`limit`", "from 1 to 1000"]),
        ("GET", "/v1/locks?limit=1&limit=1", &["`limit`", "duplicate"]),
        ("GET", "/v1/locks?name=", &["`name`", "empty"]),
        ("GET", &long, &["`name`", "2048"]),
        ("GET", "/v1/locks?name=a%00b", &["`name`", "U+0000"]),
        ("GET", "/v1/locks?name=%ff", &["UTF-8"]),
        ("GET", "/v1/locks?name=%f", &["hex digits"]),
        ("GET", "/v1/locks?name=a&prefix=b", &["`name`", "`prefix`"]),
        ("GET", "/v1/locks?name=a&limit=1", &["`name`", "`limit`"]),
        ("GET", "/v1/locks?prefix=a%0ab", &["`prefix`", "U+000A"]),
        ("GET", "/v1/locks?cursor=", &["`cursor`"]),
        ("GET", "/v1/locks/watch?from_revision=0", &["`from_revision`", "from 1"]),
        ("GET", "/v1/locks/watch?from_revision=9007199254740992", &["`from_revision`"]),
        ("GET", "/v1/locks/watch?name=a&prefix=b", &["`name`", "`prefix`"]),
        ("GET", "/v1/locks/watch?limit=1", &["`limit`", "unknown"]),
        ("GET", "/v1/elections?name=a&cursor=b", &["`name`", "`cursor`"]),
        ("GET", "/v1/elections?limit=-1", &["`limit`"]),
        ("GET", "/v1/elections/observe", &["`name`", "missing"]),
        ("GET", "/v1/elections/observe?name=a&name=b", &["`name`", "duplicate"]),
        ("GET", "/v1/audit?limit=1.5", &["`limit`"]),
        ("GET", "/v1/status?x=1", &["`x`"]),
        ("GET", "/v1/members?x", &["`x`"]),
        ("GET", "/v1/groups?x=1", &["`x`"]),
        ("GET", "/v1/groups/show", &["`group`", "missing"]),
        ("GET", "/v1/groups/show?group=1&group=1", &["`group`", "duplicate"]),
        ("GET", "/v1/partitions?x=1", &["`x`"]),
        ("GET", "/v1/partitions/plan?x=1", &["`x`"]),
        ("GET", "/v1/snapshots?x=1", &["`x`"]),
        ("GET", "/v1/snapshots/sets?x=1", &["`x`"]),
        ("GET", "/v1/snapshots/show", &["`snapshot`", "missing"]),
        ("GET", "/v1/snapshots/show?snapshot=..", &["`snapshot`", "is no snapshot id"]),
    ] {
        member.send(method, path).await.assert_problem(path, 400, "invalid_argument", words);
    }
    let answer = member.post("/v1/sessions?ttl_ms=10000", "{}").await;
    answer.assert_problem("a query on a POST", 400, "invalid_argument", &["`ttl_ms`"]);
    let request = member.request("GET", "/v1/locks/watch").header("last-event-id", "x".repeat(8_193));
    let answer = http_support::Answer::of(request.send().await.unwrap()).await;
    answer.assert_problem("a long Last-Event-ID", 400, "invalid_argument", &["`Last-Event-ID`"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_forced_release_says_that_it_frees_at_once() {
    let member = Fixture::leaderless().await;
    let force = async |body: Value| member.post("/v1/locks/force-release", body.to_string()).await;
    let later = force(json!({ "name": "x", "token": 1, "reason": "stuck", "now": false })).await;
    later.assert_problem("not now", 400, "invalid_argument", &["`now`", "at once only"]);
    let plain = force(json!({ "name": "x", "token": 1, "reason": "stuck" })).await;
    plain.assert_problem("without now", 503, "no_leader", &["group 0"]);
}

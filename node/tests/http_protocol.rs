//! What the listener owes HTTP itself: lengths, types, methods, paths, heads, headers, probes.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on fails")]

mod http_support;

use std::time::Duration;

use http_support::{Answer, Document, Fixture};
use serde_json::json;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::timeout,
};

const MIB: usize = 1_024 * 1_024;

/// Sends bytes as they are and reads until the server closes.
async fn raw(member: &Fixture, request: &[u8]) -> String {
    let mut socket = TcpStream::connect(member.server.address()).await.unwrap();
    socket.write_all(request).await.unwrap();
    let mut answer = Vec::new();
    timeout(Duration::from_secs(10), socket.read_to_end(&mut answer)).await.unwrap().unwrap();
    String::from_utf8(answer).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_body_over_one_mebibyte_is_413_before_anything_else_is_looked_at() {
    let member = Fixture::leaderless().await;
    let long = vec![b'x'; MIB + 1];
    let words: &[&str] = &["1048576"];
    member.post("/v1/sessions", long.clone()).await.assert_problem("json", 413, "payload_too_large", words);
    let request = member.request("POST", "/v1/sessions?zzz=1").header("content-type", "text/plain");
    let answer = Answer::of(request.body(long.clone()).send().await.unwrap()).await;
    answer.assert_problem("text and an unknown parameter", 413, "payload_too_large", words);
    // Without an announced length, the bytes themselves are counted.
    let chunks = futures::stream::iter(
        long.chunks(65_536).map(|chunk| Ok::<_, std::io::Error>(chunk.to_vec())).collect::<Vec<_>>(),
    );
    let request = member.request("POST", "/v1/sessions").header("content-type", "text/plain");
    let answer = Answer::of(request.body(reqwest::Body::wrap_stream(chunks)).send().await.unwrap()).await;
    answer.assert_problem("chunked", 413, "payload_too_large", words);
    // Exactly as long as allowed is looked at.
    let padded = format!("{{\"zzz\":1{}}}", " ".repeat(MIB - 9));
    assert_eq!(padded.len(), MIB);
    member.post("/v1/sessions", padded).await.assert_problem("1 MiB", 400, "invalid_argument", &["`zzz`"]);
    // The connection is still of use to others.
    assert_eq!(member.send("GET", "/livez").await.status, 200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_announced_length_is_refused_without_reading_the_body() {
    let member = Fixture::leaderless().await;
    let head =
        "POST /v1/sessions HTTP/1.1\r\nhost: h\r\ncontent-length: 2000000\r\nexpect: 100-continue\r\n\r\n";
    let mut socket = TcpStream::connect(member.server.address()).await.unwrap();
    socket.write_all(head.as_bytes()).await.unwrap();
    let mut answer = vec![0; 4_096];
    let mut read = 0;
    while !String::from_utf8_lossy(&answer[..read]).contains("payload_too_large") {
        let more = timeout(Duration::from_secs(5), socket.read(&mut answer[read..])).await.unwrap().unwrap();
        assert_ne!(more, 0, "{}", String::from_utf8_lossy(&answer[..read]));
        read += more;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_body_that_is_not_declared_as_json_is_415() {
    let member = Fixture::leaderless().await;
    for declared in [
        None,
        Some("text/plain"),
        Some("application/x-www-form-urlencoded"),
        Some("application/jsonx"),
        Some(""),
    ] {
        let mut request = member.request("POST", "/v1/sessions").body("{}");
        if let Some(declared) = declared {
            request = request.header("content-type", declared);
        }
        let answer = Answer::of(request.send().await.unwrap()).await;
        answer.assert_problem(&format!("{declared:?}"), 415, "unsupported_media_type", &["application/json"]);
    }
    let request = member.request("POST", "/v1/sessions").header("content-type", "application/json");
    let answer =
        Answer::of(request.header("content-encoding", "gzip").body("{}").send().await.unwrap()).await;
    answer.assert_problem("gzip", 415, "unsupported_media_type", &["gzip"]);
    for declared in ["application/json", "Application/JSON; charset=utf-8"] {
        let request =
            member.request("POST", "/v1/sessions").header("content-type", declared).body("{\"zzz\":1}");
        let answer = Answer::of(request.send().await.unwrap()).await;
        answer.assert_problem(declared, 400, "invalid_argument", &["`zzz`"]);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_known_path_answers_other_methods_with_405_and_allow() {
    let member = Fixture::leaderless().await;
    let document = Document::published();
    for (path, item) in document.json()["paths"].as_object().unwrap() {
        let mut known: Vec<String> =
            item.as_object().unwrap().keys().map(|m| m.to_ascii_uppercase()).collect();
        if known.iter().any(|method| method == "GET") {
            known.push("HEAD".into());
        }
        for method in ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "HEAD", "BREW"] {
            if known.iter().any(|known| known == method) {
                continue;
            }
            let answer = member.send(method, path).await;
            assert_eq!(answer.status, 405, "{method} {path}: {}", answer.text);
            let mut allow: Vec<String> = answer.header("allow").split(", ").map(str::to_owned).collect();
            allow.sort();
            known.sort();
            assert_eq!(allow, known, "{method} {path}");
            if method != "HEAD" {
                answer.assert_problem(path, 405, "method_not_allowed", &[method, path]);
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unknown_paths_are_404() {
    let member = Fixture::leaderless().await;
    for path in
        ["/", "/v1", "/v1/", "/v1/lock", "/v1/sessions/", "//v1/sessions", "/v1/sessions/7f", "/v2/sessions"]
    {
        for method in ["GET", "POST", "DELETE"] {
            member.send(method, path).await.assert_problem(path, 404, "not_found", &["/openapi.json"]);
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_head_has_the_headers_of_its_get_and_no_body() {
    let member = Fixture::leaderless().await;
    for path in ["/livez", "/openapi.json", "/v1/members", "/v1/locks?limit=0", "/v1/elections/observe"] {
        let get = member.send("GET", path).await;
        let head =
            raw(&member, format!("HEAD {path} HTTP/1.1\r\nhost: h\r\nconnection: close\r\n\r\n").as_bytes())
                .await;
        let (lines, body) = head.split_once("\r\n\r\n").unwrap();
        assert!(lines.starts_with(&format!("HTTP/1.1 {}", get.status)), "{path}: {lines}");
        assert_eq!(body, "", "{path}");
        let lines = lines.to_ascii_lowercase();
        assert!(lines.contains(&format!("content-type: {}", get.header("content-type"))), "{path}: {lines}");
        assert!(lines.contains(&format!("content-length: {}", get.text.len())), "{path}: {lines}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_are_safe_in_browsers_and_let_no_other_origin_in() {
    let member = Fixture::leaderless().await;
    for (method, path) in
        [("GET", "/livez"), ("GET", "/nowhere"), ("PUT", "/v1/locks"), ("OPTIONS", "/v1/sessions")]
    {
        let request = member.request(method, path).header("origin", "https://evil.example");
        let request = request.header("access-control-request-method", "DELETE");
        let answer = Answer::of(request.send().await.unwrap()).await;
        assert_eq!(answer.header("x-content-type-options"), "nosniff", "{method} {path}");
        assert_eq!(answer.header("cache-control"), "no-store", "{method} {path}");
        assert!(
            answer.header("content-security-policy").contains("frame-ancestors 'none'"),
            "{method} {path}"
        );
        assert!(
            !answer.headers.keys().any(|name| name.as_str().starts_with("access-control")),
            "{method} {path}"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_without_leaders_is_alive_and_not_ready_and_says_so() {
    let member = Fixture::leaderless().await;
    let document = Document::published();
    let live = member.send("GET", "/livez").await;
    assert_eq!((live.status, live.json()), (200, json!({ "status": "ok" })));
    let probe = document.schema("#/paths/~1livez/get/responses/200/content/application~1json/schema");
    assert!(probe.is_valid(&live.json()));
    member.send("GET", "/readyz").await.assert_problem("/readyz", 503, "not_ready", &[]);
    let calls = [
        ("/v1/sessions", Some(json!({ "ttl_ms": 86_400_000, "metadata": { "host": "a1" } }))),
        ("/v1/locks/acquire", Some(json!({ "name": "a//b", "session": "1", "wait_ms": 3_600_000 }))),
        ("/v1/locks/force-release", Some(json!({ "name": "x", "token": 1, "reason": "r", "now": true }))),
        ("/v1/elections/campaign", Some(json!({ "name": "x", "session": "1", "value": "" }))),
        ("/v1/snapshots", Some(json!({ "group": 1 }))),
        ("/v1/locks?name=%E2%80%AEx", None),
        ("/v1/elections?name=x", None),
        ("/v1/audit?limit=1", None),
    ];
    let asked = calls.map(|(path, body)| {
        let method = if body.is_some() { "POST" } else { "GET" };
        let member = &member;
        async move {
            let answer = member.documented((method, path), body, 503).await;
            answer.assert_problem(path, 503, "no_leader", &["no leader"]);
            assert_eq!(answer.header("retry-after"), "1", "{path}");
        }
    });
    futures::future::join_all(asked).await;
    let list = member.documented(("GET", "/v1/locks?prefix=a%2F&limit=1000"), None, 200).await;
    assert_eq!(list.json(), json!({ "locks": [], "unavailable_groups": [1, 2] }));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_document_is_served_as_it_is_checked_in() {
    let member = Fixture::leaderless().await;
    let answer = member.send("GET", "/openapi.json").await;
    assert_eq!((answer.status, answer.header("content-type")), (200, "application/json"));
    assert_eq!(&answer.json(), Document::published().json());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn metrics_count_requests_by_route_template_and_never_by_name() {
    let member = Fixture::leaderless().await;
    member.send("GET", "/v1/locks?name=secret-name").await;
    member.send("GET", "/v1/secret-path").await;
    member.send("BREW", "/livez").await;
    let answer = member.send("GET", "/metrics").await;
    assert_eq!(
        (answer.status, answer.header("content-type")),
        (200, "text/plain; version=0.0.4; charset=utf-8")
    );
    for line in [
        r#"http_server_request_duration_seconds_count{http_request_method="GET",http_response_status_code="503",http_route="/v1/locks",url_scheme="http"} 1"#,
        r#"http_server_request_duration_seconds_count{http_request_method="GET",http_response_status_code="404",url_scheme="http"} 1"#,
        r#"http_server_request_duration_seconds_count{http_request_method="_OTHER",http_response_status_code="405",http_route="/livez",url_scheme="http"} 1"#,
        r#"holdfast_build_info{revision="unknown",version="0.1.0"} 1"#,
    ] {
        assert!(answer.text.lines().any(|found| found == line), "{line} is not in\n{}", answer.text);
    }
    assert!(!answer.text.contains("secret"));
}

#[actix_web::test]
async fn a_listener_that_was_stopped_is_gone_and_its_port_is_free() {
    let member = Fixture::leaderless().await;
    assert_eq!(member.send("GET", "/livez").await.status, 200);
    let address = member.server.address();
    timeout(Duration::from_secs(5), member.server.stop()).await.unwrap();
    assert!(TcpStream::connect(address).await.is_err());
    holdfast_node::api::http::listen(address).unwrap();
}

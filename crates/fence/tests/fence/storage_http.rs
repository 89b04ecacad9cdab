//! The Storage Service over a socket: what it accepts, what it refuses, and with which words.

use std::net::SocketAddr;

use holdfast_fence::{Options, ServeError, StorageService, serve};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::{
    http::{call, send},
    postgres_server::PostgresServer,
};

const JSON: &str = "Content-Type: application/json";

async fn serve_on(database: &str) -> StorageService {
    serve(Options::new("127.0.0.1:0".parse().unwrap(), database.parse().unwrap())).await.unwrap()
}

async fn on_sqlite() -> (StorageService, SocketAddr, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let storage = serve_on(folder.path().join("objects.db").to_str().unwrap()).await;
    let addr = storage.local_addr();
    (storage, addr, folder)
}

fn write(lock: &str, token: u64, data: impl Into<Value>) -> Value {
    json!({"lock": lock, "token": token, "data": data.into()})
}

fn code(status: u16, code: &str) -> (u16, String) {
    (status, code.to_owned())
}

/// The story of two holders, on either database.
async fn tell_the_story(addr: SocketAddr) {
    let path = "/v1/objects/reports/2026/q1";
    assert_eq!(call(addr, "GET", path, Value::Null).await.problem(), code(404, "not_found"));
    let first = call(addr, "PUT", path, write("reports", 7, "first")).await;
    assert_eq!(first.status, 200, "{first:?}");
    assert_eq!(first.json(), json!({"name": "reports/2026/q1", "lock": "reports", "token": 7, "version": 1}));
    assert_eq!(call(addr, "PUT", path, write("reports", 7, "same holder")).await.json()["version"], 2);

    // The second holder announces itself and reads; the first one wakes up.
    let fenced = call(addr, "POST", "/v1/fence", json!({"lock": "reports", "token": 8})).await;
    assert_eq!((fenced.status, fenced.json()), (200, json!({"lock": "reports", "highest": 8})));
    let late = call(addr, "PUT", path, write("reports", 7, "too late")).await;
    assert_eq!(late.problem(), code(412, "stale_token"));
    assert_eq!((&late.json()["highest"], &late.json()["token"]), (&json!(8), &json!(7)));
    assert!(late.json()["detail"].as_str().unwrap().contains('8'), "{late:?}");
    let fenced = call(addr, "POST", "/v1/fence", json!({"lock": "reports", "token": 7})).await;
    assert_eq!((fenced.problem(), &fenced.json()["highest"]), (code(412, "stale_token"), &json!(8)));

    let wrong = call(addr, "PUT", path, write("other", 99, "under another lock")).await;
    assert_eq!((wrong.problem(), &wrong.json()["bound_to"]), (code(409, "wrong_lock"), &json!("reports")));

    let data = json!({"nul": "\u{0}", "n": [1.5, null, "é"], "big": 12_345_678_901_234_567_890_u64});
    assert_eq!(call(addr, "PUT", path, write("reports", 8, data.clone())).await.status, 200);
    let read = call(addr, "GET", path, Value::Null).await;
    let expected = json!({
        "name": "reports/2026/q1", "lock": "reports", "token": 8, "version": 3, "data": data
    });
    assert_eq!((read.status, read.json()), (200, expected));
    list_pages(addr).await;
    for path in ["/livez", "/readyz"] {
        assert_eq!(call(addr, "GET", path, Value::Null).await.status, 200, "{path}");
    }
}

async fn list_pages(addr: SocketAddr) {
    for name in ["p/a", "p/b", "p/c", "p0", "p", "p%2F%C3%A9"] {
        assert_eq!(
            call(addr, "PUT", &format!("/v1/objects/{name}"), write("l", 1, 0)).await.status,
            200,
            "{name}"
        );
    }
    let list = |query: &'static str| async move {
        let answer = call(addr, "GET", &format!("/v1/objects?{query}"), Value::Null).await.json();
        let names: Vec<_> =
            answer["objects"].as_array().unwrap().iter().map(|object| object["name"].clone()).collect();
        (Value::from(names), answer["next_cursor"].clone())
    };
    assert_eq!(list("prefix=p/&limit=2").await, (json!(["p/a", "p/b"]), json!("p/b")));
    assert_eq!(list("prefix=p/&limit=2&cursor=p/b").await, (json!(["p/c", "p/é"]), Value::Null));
    assert_eq!(list("prefix=p/%C3%A9").await, (json!(["p/é"]), Value::Null));
    assert_eq!(list("prefix=none").await, (json!([]), Value::Null));
    assert_eq!(list("limit=1&cursor=p0").await, (json!(["reports/2026/q1"]), Value::Null));
}

#[tokio::test]
async fn two_holders_over_sqlite() {
    let (storage, addr, folder) = on_sqlite().await;
    tell_the_story(addr).await;
    storage.stop().await.unwrap();
    let again = serve_on(folder.path().join("objects.db").to_str().unwrap()).await;
    let read = call(again.local_addr(), "GET", "/v1/objects/reports/2026/q1", Value::Null).await;
    assert_eq!(read.json()["token"], 8, "objects outlive the service");
}

#[tokio::test]
async fn two_holders_over_postgres_and_503_without_it() {
    let server = PostgresServer::start();
    let storage = serve_on(&server.url("postgres")).await;
    tell_the_story(storage.local_addr()).await;
    drop(server);
    let addr = storage.local_addr();
    for (method, path, body) in
        [("GET", "/readyz", Value::Null), ("PUT", "/v1/objects/reports/2026/q1", write("reports", 9, 1))]
    {
        let answer = call(addr, method, path, body).await;
        assert_eq!(answer.problem(), code(503, "unavailable"), "{path}");
        assert!(answer.header("retry-after").is_some());
    }
    assert_eq!(call(addr, "GET", "/livez", Value::Null).await.status, 200);
    storage.stop().await.unwrap();
}

#[tokio::test]
async fn bodies_that_are_no_such_request_are_refused_and_change_nothing() {
    let (_storage, addr, _folder) = on_sqlite().await;
    for body in [
        r#"{"lock":"l","token":0,"data":1}"#,
        r#"{"lock":"l","token":-1,"data":1}"#,
        r#"{"lock":"l","token":9007199254740992,"data":1}"#,
        r#"{"lock":"l","token":99999999999999999999999,"data":1}"#,
        r#"{"lock":"l","token":1.5,"data":1}"#,
        r#"{"lock":"l","token":"1","data":1}"#,
        r#"{"lock":"","token":1,"data":1}"#,
        r#"{"lock":"a\nb","token":1,"data":1}"#,
        r#"{"lock":"a\u0085b","token":1,"data":1}"#,
        r#"{"lock":"\ud800","token":1,"data":1}"#,
        r#"{"lock":"l","token":1}"#,
        r#"{"lock":"l","token":1,"data":1,"more":1}"#,
        r#"{"lock":"l","lock":"l","token":1,"data":1}"#,
        r#"{"lock":"l","token":1,"data":1"#,
        r#"{"lock":"l","token":1,"data":1} x"#,
        "[]",
        "",
    ] {
        let refused = send(addr, "PUT", "/v1/objects/a", &[JSON], body.as_bytes()).await.unwrap();
        assert_eq!(refused.problem(), code(400, "invalid_argument"), "{body}");
    }
    let long = format!(r#"{{"lock":"{}","token":1,"data":1}}"#, "a".repeat(2_048));
    let broken = b"{\"lock\":\"\xff\",\"token\":1,\"data\":1}".to_vec();
    for body in [long.into_bytes(), broken] {
        let refused = send(addr, "PUT", "/v1/objects/a", &[JSON], &body).await.unwrap();
        assert_eq!(refused.problem(), code(400, "invalid_argument"));
    }
    let extra = call(addr, "POST", "/v1/fence", json!({"lock": "l", "token": 1, "data": 1})).await;
    assert_eq!(extra.problem(), code(400, "invalid_argument"));
    for query in ["limit=0", "limit=1001", "limit=x", "unknown=1"] {
        let refused = call(addr, "GET", &format!("/v1/objects?{query}"), Value::Null).await;
        assert_eq!(refused.problem(), code(400, "invalid_argument"), "{query}");
    }
    assert_eq!(call(addr, "GET", "/v1/objects", Value::Null).await.json()["objects"], json!([]));
    let largest = write("l", 9_007_199_254_740_991, 1);
    assert_eq!(call(addr, "PUT", "/v1/objects/a", largest).await.status, 200);
}

#[tokio::test]
async fn object_names_are_kept_byte_for_byte_or_refused() {
    let (_storage, addr, _folder) = on_sqlite().await;
    let longest = "a".repeat(2_047);
    for (path, name) in [
        ("a/b", "a/b"),
        ("a%2Fb%2F", "a/b/"),
        ("a//b", "a//b"),
        (".", "."),
        ("a/../b", "a/../b"),
        ("%252F", "%2F"),
        ("a+b%20c", "a+b c"),
        ("%E2%80%AEx", "\u{202e}x"),
        (longest.as_str(), longest.as_str()),
    ] {
        let put = call(addr, "PUT", &format!("/v1/objects/{path}"), write("l", 1, name)).await;
        assert_eq!((put.status, &put.json()["name"]), (200, &json!(name)), "{path}");
        let get = call(addr, "GET", &format!("/v1/objects/{path}?x=1"), Value::Null).await;
        assert_eq!((get.status, &get.json()["data"]), (200, &json!(name)), "{path}");
    }
    let long = "a".repeat(2_048);
    for path in ["", "a%00b", "a%0Ab", "%7F", "%C2%85", "%FF", long.as_str()] {
        let refused = call(addr, "PUT", &format!("/v1/objects/{path}"), write("l", 1, 1)).await;
        assert_eq!(refused.problem(), code(400, "invalid_argument"), "{path}");
    }
}

#[tokio::test]
async fn size_media_type_method_and_path_are_checked() {
    let (_storage, addr, _folder) = on_sqlite().await;
    let body = |bytes: usize| {
        let frame = r#"{"lock":"l","token":1,"data":""}"#;
        frame.replace(r#""""#, &format!("\"{}\"", "x".repeat(bytes - frame.len()))).into_bytes()
    };
    let path = "/v1/objects/big";
    assert_eq!(send(addr, "PUT", path, &[JSON], &body(1 << 20)).await.unwrap().status, 200);
    for headers in [vec![JSON], vec![]] {
        let refused = send(addr, "PUT", path, &headers, &body((1 << 20) + 1)).await.unwrap();
        assert_eq!(refused.problem(), code(413, "payload_too_large"));
    }
    let huge = body(3 << 20);
    let mut chunked = format!("{:x}\r\n", huge.len()).into_bytes();
    chunked.extend_from_slice(&huge);
    chunked.extend_from_slice(b"\r\n0\r\n\r\n");
    let refused = send(addr, "PUT", path, &[JSON, "Transfer-Encoding: chunked"], &chunked).await.unwrap();
    assert_eq!(refused.problem(), code(413, "payload_too_large"));

    let small = body(100);
    for headers in [vec![], vec!["Content-Type: text/plain"], vec![JSON, "Content-Encoding: gzip"]] {
        let refused = send(addr, "PUT", path, &headers, &small).await.unwrap();
        assert_eq!(refused.problem(), code(415, "unsupported_media_type"), "{headers:?}");
    }
    let charset = send(addr, "PUT", path, &["Content-Type: application/json; charset=utf-8"], &small).await;
    assert_eq!(charset.unwrap().status, 200);

    for (method, path, allow) in [
        ("DELETE", "/v1/objects/a", "GET, HEAD, PUT"),
        ("POST", "/v1/objects", "GET, HEAD"),
        ("GET", "/v1/fence", "POST"),
        ("PUT", "/livez", "GET, HEAD"),
        ("OPTIONS", "/readyz", "GET, HEAD"),
    ] {
        let refused = call(addr, method, path, Value::Null).await;
        assert_eq!(
            (refused.problem(), refused.header("allow")),
            (code(405, "method_not_allowed"), Some(allow))
        );
    }
    let head = call(addr, "HEAD", path, Value::Null).await;
    assert_eq!((head.status, head.body.as_str()), (200, ""));
    assert_eq!(call(addr, "GET", "/v2/objects", Value::Null).await.problem(), code(404, "not_found"));
}

#[tokio::test]
async fn a_taken_port_is_named_and_a_dropped_service_is_gone() {
    let (storage, addr, folder) = on_sqlite().await;
    let database = folder.path().join("other.db").to_str().unwrap().parse().unwrap();
    let refused = serve(Options::new(addr, database)).await.unwrap_err();
    assert!(matches!(refused, ServeError::Listen { .. }), "{refused}");
    assert!(refused.to_string().contains(&addr.to_string()), "{refused}");
    drop(storage);
    crate::support::eventually("the port is free again", || async move {
        tokio::net::TcpStream::connect(addr).await.is_err()
    })
    .await;
}

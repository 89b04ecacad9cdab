//! Tokens above the mark are confirmed by the lock service, on both databases and over HTTP.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use holdfast_fence::{
    FenceError, Options, PostgresGuard, SqliteGuard, TokenCheck, TokenVerdict, VerdictFuture, serve,
};
use serde_json::json;

use crate::support::{http::call, postgres_server::PostgresServer};

/// A lock service that has granted up to a token; 0 stands for one that does not answer.
#[derive(Debug, Default)]
struct Granted {
    highest: AtomicU64,
    asked: AtomicU64,
}

impl TokenCheck for Granted {
    fn check<'a>(&'a self, _lock: &'a str, token: u64) -> VerdictFuture<'a> {
        Box::pin(async move {
            self.asked.fetch_add(1, Ordering::SeqCst);
            match self.highest.load(Ordering::SeqCst) {
                0 => TokenVerdict::Unavailable { reason: "no leader".to_owned() },
                highest if token <= highest => TokenVerdict::Plausible,
                highest => TokenVerdict::NotGranted { highest },
            }
        })
    }
}

#[tokio::test]
async fn a_huge_token_does_not_brick_a_lock() {
    let service = Arc::new(Granted::default());
    service.highest.store(10, Ordering::SeqCst);
    let folder = tempfile::tempdir().unwrap();
    let sqlite = SqliteGuard::open(folder.path().join("fence.db")).await.unwrap();
    let sqlite = sqlite.with_token_check(service.clone());
    let server = PostgresServer::start();
    let postgres = PostgresGuard::open(server.pool()).await.unwrap().with_token_check(service.clone());

    let refused = [sqlite.advance("a", 1 << 50).await, postgres.advance("a", 1 << 50).await];
    for refused in refused {
        assert!(matches!(refused, Err(FenceError::UnknownToken { highest_granted: 10, .. })), "{refused:?}");
    }
    assert_eq!((sqlite.advance("a", 10).await.unwrap(), postgres.advance("a", 10).await.unwrap()), (10, 10));
    assert_eq!(service.asked.load(Ordering::SeqCst), 4);

    service.highest.store(0, Ordering::SeqCst);
    assert_eq!((sqlite.advance("a", 10).await.unwrap(), postgres.advance("a", 10).await.unwrap()), (10, 10));
    for refused in [sqlite.advance("a", 9).await, postgres.advance("a", 9).await] {
        assert!(matches!(refused, Err(FenceError::Stale { highest: 10, .. })), "{refused:?}");
    }
    assert_eq!(service.asked.load(Ordering::SeqCst), 4, "nobody is asked about a token at or below the mark");
    for refused in [sqlite.advance("a", 11).await, postgres.advance("a", 11).await] {
        assert!(matches!(refused, Err(FenceError::CheckUnavailable { token: 11, .. })), "{refused:?}");
    }
}

#[tokio::test]
async fn over_http_it_is_409_unknown_token_or_503() {
    let service = Arc::new(Granted::default());
    let folder = tempfile::tempdir().unwrap();
    let database = folder.path().join("objects.db").to_str().unwrap().parse().unwrap();
    let mut options = Options::new("127.0.0.1:0".parse().unwrap(), database);
    options.token_check = Some(service.clone());
    let storage = serve(options).await.unwrap();
    let addr = storage.local_addr();
    let put = || call(addr, "PUT", "/v1/objects/a", json!({"lock": "l", "token": 99, "data": 1}));

    let unanswered = put().await;
    assert_eq!(unanswered.problem(), (503, "check_unavailable".to_owned()));
    assert!(unanswered.header("retry-after").is_some());
    service.highest.store(10, Ordering::SeqCst);
    let unknown = put().await;
    assert_eq!(unknown.problem(), (409, "unknown_token".to_owned()));
    assert_eq!(unknown.json()["highest_granted"], 10);
    service.highest.store(99, Ordering::SeqCst);
    assert_eq!(put().await.status, 200);
    storage.stop().await.unwrap();
}

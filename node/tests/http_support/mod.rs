//! One member with a listener, a client for it, and the published document that every answer is compared with.

#![allow(dead_code, reason = "each test binary uses its own part")]

mod document;
mod wait;

use std::{net::SocketAddr, time::Duration};

use holdfast_node::{
    api::http::{self, HttpOptions, HttpServer, Limits},
    config::{MemberConfig, MemberEntry},
    member::Member,
    metrics::{
        Build,
        exporter::{Identity, Metrics},
    },
};
use reqwest::{Method, Response};
use serde_json::{Value, json};
use tempfile::TempDir;

#[allow(unused_imports, reason = "not every test crate reads the document")]
pub(crate) use document::Document;
pub(crate) use wait::until;

/// A member, a listener of its own in front of it, and a client.
pub(crate) struct Fixture {
    pub(crate) server: HttpServer,
    pub(crate) metrics: Metrics,
    client: reqwest::Client,
    member: Member,
    _folder: TempDir,
}

impl Fixture {
    /// A cluster of one member that is ready.
    pub(crate) async fn alone() -> Self {
        let fixture = Self::start(1).await;
        until("the member is ready", async || fixture.member.endpoint().ready().is_ok()).await;
        fixture
    }

    /// One of three members, whose others do not exist: no group ever has a leader.
    pub(crate) async fn leaderless() -> Self {
        Self::start(3).await
    }

    async fn start(members: u16) -> Self {
        let folder = TempDir::new().unwrap();
        let member = Member::start(config(&folder, members)).await.unwrap();
        let build = Build { version: "0.1.0".into(), revision: "unknown".into() };
        let metrics = Metrics::start(&Identity { cluster: "test".into(), member: 1, build }).unwrap();
        let listener = http::listen(SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
        let options = HttpOptions { listener, limits: Limits::default(), metrics: metrics.clone() };
        let server = http::serve(member.endpoint().clone(), options).unwrap();
        Self { server, metrics, client: reqwest::Client::new(), member, _folder: folder }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.server.address())
    }

    pub(crate) fn request(&self, method: &str, path: &str) -> reqwest::RequestBuilder {
        self.client.request(Method::from_bytes(method.as_bytes()).unwrap(), self.url(path))
    }

    pub(crate) async fn send(&self, method: &str, path: &str) -> Answer {
        Answer::of(self.request(method, path).send().await.unwrap()).await
    }

    pub(crate) async fn post(&self, path: &str, body: impl Into<reqwest::Body>) -> Answer {
        let request = self.request("POST", path).header("content-type", "application/json").body(body);
        Answer::of(request.send().await.unwrap()).await
    }

    /// Sends a request, and asserts that its answer has this status and is as documented.
    pub(crate) async fn documented(
        &self,
        (method, path): (&str, &str),
        body: Option<Value>,
        status: u16,
    ) -> Answer {
        let answer = match &body {
            Some(body) => self.post(path, body.to_string()).await,
            None => self.send(method, path).await,
        };
        let about = format!("{method} {path} {}", body.unwrap_or_default());
        assert_eq!(answer.status, status, "{about}: {}", answer.text);
        document::assert_documented(&about, method, path, &answer);
        answer
    }

    /// Opens a session and answers its id.
    pub(crate) async fn session(&self) -> String {
        let body = json!({ "ttl_ms": 60_000 });
        let answer = self.documented(("POST", "/v1/sessions"), Some(body), 201).await;
        answer.json()["session"].as_str().unwrap().to_owned()
    }
}

/// An answer that was read to its end.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: reqwest::header::HeaderMap,
    pub(crate) text: String,
}

impl Answer {
    pub(crate) async fn of(response: Response) -> Self {
        Self {
            status: response.status().as_u16(),
            headers: response.headers().clone(),
            text: response.text().await.unwrap(),
        }
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{error}: {}", self.text))
    }

    /// Asserts that this is a problem document of this status and code, and that its words tell these.
    pub(crate) fn assert_problem(&self, about: &str, status: u16, code: &str, words: &[&str]) {
        assert_eq!(self.status, status, "{about}: {}", self.text);
        assert_eq!(self.header("content-type"), "application/problem+json", "{about}");
        let problem = self.json();
        assert_eq!(problem["code"], code, "{about}: {problem}");
        assert_eq!(problem["status"], status, "{about}");
        assert_eq!(problem["type"], format!("urn:holdfast:problem:{code}"), "{about}");
        document::assert_is_problem(about, &problem);
        for word in words {
            let detail = problem["detail"].as_str().unwrap();
            assert!(detail.contains(word), "{about}: {detail:?} lacks {word:?}");
        }
    }
}

fn config(folder: &TempDir, members: u16) -> MemberConfig {
    let mut config =
        MemberConfig { member: 1, data_dir: folder.path().join("member-1"), ..MemberConfig::default() };
    let free = SocketAddr::from(([127, 0, 0, 1], 0));
    (config.listen.http, config.listen.grpc, config.listen.peer) = (free, free, free);
    // Nobody listens on the lowest ports.
    config.members = (1..=members)
        .map(|n| MemberEntry {
            id: n.into(),
            http: format!("http://127.0.0.1:{n}"),
            grpc: format!("http://127.0.0.1:{}", n + 10),
            peer: format!("127.0.0.1:{}", n + 20),
        })
        .collect();
    config.groups.lock_groups = 2;
    config.raft.heartbeat_interval = Duration::from_millis(50);
    config.raft.election_timeout_min = Duration::from_millis(200);
    config.raft.election_timeout_max = Duration::from_millis(400);
    config
}

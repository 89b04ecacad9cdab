//! A listener over an endpoint that serves no cluster, a client for it, and the published document.
//!
//! Everything that is refused here is refused before the endpoint is asked, so no cluster is needed.

#![allow(dead_code, reason = "each test binary uses its own part")]

use std::{net::SocketAddr, sync::LazyLock};

use holdfast_node::{
    api::http::{self, HttpOptions, HttpServer, Limits},
    endpoint::Endpoint,
    metrics::{
        Build,
        exporter::{Identity, Metrics},
    },
};
use reqwest::{Method, Response};
use serde_json::{Value, json};

/// A running listener and a client for it.
pub(crate) struct Member {
    pub(crate) server: HttpServer,
    pub(crate) metrics: Metrics,
    client: reqwest::Client,
}

impl Member {
    pub(crate) fn start() -> Self {
        let build = Build { version: "0.1.0".into(), revision: "unknown".into() };
        let metrics = Metrics::start(&Identity { cluster: "test".into(), member: 1, build }).unwrap();
        let listener = http::listen(SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
        let options = HttpOptions { listener, limits: Limits::default(), metrics: metrics.clone() };
        let server = http::serve(Endpoint {}, options).unwrap();
        Self { server, metrics, client: reqwest::Client::new() }
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
        assert!(PROBLEM.is_valid(&problem), "{about}: {problem} is not as documented");
        for word in words {
            let detail = problem["detail"].as_str().unwrap();
            assert!(detail.contains(word), "{about}: {detail:?} lacks {word:?}");
        }
    }
}

static PROBLEM: LazyLock<jsonschema::Validator> =
    LazyLock::new(|| Document::published().schema("#/components/schemas/Problem"));

/// The published OpenAPI document.
pub(crate) struct Document(Value);

impl Document {
    pub(crate) fn published() -> Self {
        let text = include_str!("../../openapi.json");
        Self(serde_json::from_str(text).unwrap())
    }

    pub(crate) fn json(&self) -> &Value {
        &self.0
    }

    /// A validator of what the document has at a place.
    pub(crate) fn schema(&self, reference: &str) -> jsonschema::Validator {
        assert!(self.0.pointer(&reference[1..]).is_some(), "the document lacks {reference}");
        let mut document = self.0.clone();
        document["$ref"] = json!(reference);
        jsonschema::options().with_draft(jsonschema::Draft::Draft202012).build(&document).unwrap()
    }

    /// A validator of the body that a POST takes.
    pub(crate) fn body(&self, path: &str) -> jsonschema::Validator {
        let path = path.replace('/', "~1");
        self.schema(&format!("#/paths/{path}/post/requestBody/content/application~1json/schema"))
    }

    /// Whether an operation may answer with a status.
    pub(crate) fn has_status(&self, method: &str, path: &str, status: u16) -> bool {
        let method = method.to_ascii_lowercase();
        self.0["paths"][path][method]["responses"].get(status.to_string()).is_some()
    }
}

//! Questions to a member's HTTP listener.

use std::time::Duration;

use serde_json::Value;

/// Longer than any wait a test asks for.
const ANSWER_WITHIN: Duration = Duration::from_secs(60);

/// An answer: status and body. A member that cannot be reached answers status 0.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Answer {
    /// HTTP status; 0 without an answer.
    pub status: u16,
    /// The body; null where there is none or it is no JSON.
    pub body: Value,
}

impl Answer {
    /// The body, of an answer that must have this status.
    #[track_caller]
    pub(crate) fn expect(self, status: u16) -> Value {
        assert_eq!(self.status, status, "{}", self.body);
        self.body
    }
}

/// GET.
pub(crate) fn get(url: &str) -> Answer {
    read(agent().get(url).call())
}

/// GET of a text that must be there.
pub(crate) fn get_text(url: &str) -> String {
    agent().get(url).call().unwrap().body_mut().read_to_string().unwrap()
}

/// POST with a JSON body.
pub(crate) fn post(url: &str, body: &Value) -> Answer {
    read(agent().post(url).send_json(body))
}

/// PUT with a JSON body.
pub(crate) fn put(url: &str, body: &Value) -> Answer {
    read(agent().put(url).send_json(body))
}

/// DELETE.
pub(crate) fn delete(url: &str) -> Answer {
    read(agent().delete(url).call())
}

/// A name as it stands in a query.
pub(crate) fn encoded(name: &str) -> String {
    name.bytes()
        .map(|b| if b.is_ascii_alphanumeric() { (b as char).to_string() } else { format!("%{b:02X}") })
        .collect()
}

fn agent() -> ureq::Agent {
    let config =
        ureq::Agent::config_builder().http_status_as_error(false).timeout_global(Some(ANSWER_WITHIN));
    config.build().into()
}

fn read(answer: Result<ureq::http::Response<ureq::Body>, ureq::Error>) -> Answer {
    match answer {
        Ok(mut answer) => {
            let body = answer.body_mut().read_json().unwrap_or(Value::Null);
            Answer { status: answer.status().as_u16(), body }
        }
        Err(e) => Answer { status: 0, body: Value::String(e.to_string()) },
    }
}

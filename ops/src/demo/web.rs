//! Asks members and the Storage Service over HTTP, and shows the answer with the command that repeats it.

use std::time::{Duration, Instant};

use serde_json::Value;

use crate::output;

/// Longest answer to one question.
const ANSWER_WITHIN: Duration = Duration::from_secs(5);
/// Pause before a condition is looked at again.
const LOOK_AGAIN: Duration = Duration::from_millis(30);

/// An answer: status (0 where nobody answered) and body.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub status: u16,
    pub body: Value,
}

fn agent() -> ureq::Agent {
    let config =
        ureq::Agent::config_builder().http_status_as_error(false).timeout_global(Some(ANSWER_WITHIN));
    config.build().into()
}

fn read(answer: Result<ureq::http::Response<ureq::Body>, ureq::Error>) -> Answer {
    match answer {
        Ok(mut answer) => {
            let status = answer.status().as_u16();
            let text = answer.body_mut().read_to_string().unwrap_or_default();
            Answer { status, body: serde_json::from_str(&text).unwrap_or(Value::String(text)) }
        }
        Err(error) => Answer { status: 0, body: Value::String(error.to_string()) },
    }
}

/// GET.
pub(crate) fn get(url: &str) -> Answer {
    read(agent().get(url).call())
}

/// POST with a JSON body.
pub(crate) fn post(url: &str, body: &Value) -> Answer {
    read(agent().post(url).send_json(body))
}

/// PUT with a JSON body.
pub(crate) fn put(url: &str, body: &Value) -> Answer {
    read(agent().put(url).send_json(body))
}

/// One line of evidence.
pub(crate) fn tell(line: &str) {
    // A reader that has gone away needs no evidence.
    let _ = output::write(&format!("        {line}"));
}

/// The command by which anyone can repeat a question.
pub(crate) fn tell_url(url: &str) {
    tell(&format!("$ curl -s '{url}'"));
}

/// Looks until `look` finds something, at most for `limit`.
pub(crate) fn until<T>(
    what: &str,
    limit: Duration,
    mut look: impl FnMut() -> Option<T>,
) -> Result<T, String> {
    let began = Instant::now();
    loop {
        if let Some(found) = look() {
            return Ok(found);
        }
        if began.elapsed() > limit {
            return Err(format!("not within {:.0} s: {what}", limit.as_secs_f64()));
        }
        std::thread::sleep(LOOK_AGAIN);
    }
}

//! The session's state machine under literal times: no runtime, no connection.

mod claims;
mod deadlines;
mod moves;
mod requests;

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use holdfast_proto::v1::{self, session_request, session_response};

use super::core::{Core, Want};
use super::request::Wait;
use crate::{clock::Moment, ids::SessionId};

const TTL: Duration = Duration::from_secs(10);

fn at(ms: u64) -> Moment {
    Moment::at(Duration::from_millis(ms))
}

/// A session opened at 0 with a TTL of 10 s and a request timeout of 5 s.
fn core() -> Core {
    Core::new(SessionId::from_wire(0x1f), TTL, at(0), Duration::from_secs(5), 1)
}

fn want(name: &str, wait: Wait) -> Want {
    Want { name: Arc::from(name), election: false, wait, metadata: [].into(), value: Bytes::new() }
}

/// Everything the session wants sent, with kinds for short comparisons.
fn sent(core: &mut Core, now: Moment) -> Vec<(u64, session_request::Body)> {
    std::iter::from_fn(|| core.next_message(now)).filter_map(|m| Some((m.sequence, m.body?))).collect()
}

fn kinds(messages: &[(u64, session_request::Body)]) -> Vec<&'static str> {
    let kind = |body: &session_request::Body| match body {
        session_request::Body::Open(_) => "open",
        session_request::Body::Resume(_) => "resume",
        session_request::Body::Keepalive(_) => "keepalive",
        session_request::Body::Acquire(_) => "acquire",
        session_request::Body::Cancel(_) => "cancel",
        session_request::Body::Release(_) => "release",
        session_request::Body::Proclaim(_) => "proclaim",
        session_request::Body::Close(_) => "close",
        session_request::Body::Locate(_) => "locate",
    };
    messages.iter().map(|(_, body)| kind(body)).collect()
}

/// The sequence of the one message of this kind among them.
fn sequence_of(messages: &[(u64, session_request::Body)], kind: &str) -> u64 {
    let at = kinds(messages)
        .iter()
        .position(|k| *k == kind)
        .unwrap_or_else(|| panic!("no {kind} in {messages:?}"));
    messages[at].0
}

fn answer(core: &mut Core, sequence: u64, body: session_response::Body, now: Moment) {
    core.on_message(v1::SessionResponse { sequence, session: 0x1f, body: Some(body) }, now);
}

fn granted(token: u64, group: u32) -> session_response::Body {
    session_response::Body::Granted(v1::Granted { token, group, epoch: 0 })
}

fn failure(code: &str) -> session_response::Body {
    session_response::Body::Error(v1::Error {
        code: code.into(),
        message: format!("it is {code}"),
        facts: None,
    })
}

fn ack(groups: &[(u32, v1::LeaseState)]) -> session_response::Body {
    let groups = groups
        .iter()
        .map(|(group, state)| v1::GroupLease { group: *group, state: (*state).into(), epoch: 0 })
        .collect();
    session_response::Body::KeepaliveAck(v1::KeepaliveAck { ttl_ms: 10_000, groups })
}

/// Sends the keepalive that is due at `sent_at` and answers it at `answered_at`.
fn keepalive(core: &mut Core, sent_at: u64, groups: &[(u32, v1::LeaseState)], answered_at: u64) {
    let messages = sent(core, at(sent_at));
    let sequence = sequence_of(&messages, "keepalive");
    answer(core, sequence, ack(groups), at(answered_at));
}

/// Acquires `name` at `now` and has it granted at once; answers the hold.
fn hold(core: &mut Core, name: &str, token: u64, group: u32, now: u64) -> u64 {
    let (sequence, mut answered) = core.acquire(want(name, Wait::Unlimited), at(now));
    sent(core, at(now));
    answer(core, sequence, granted(token, group), at(now));
    answered.try_recv().expect("answered").expect("granted")
}

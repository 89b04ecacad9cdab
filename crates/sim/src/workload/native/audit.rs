//! Whether the members know what a guard of the product's client counts on: right after its deadline has moved the lock is
//! asked for, and must have that much of its lease left (P4, rules R1 and R3).

use std::sync::Arc;

use holdfast_locktable::{ids::SessionId, name::Name};
use holdfast_node::endpoint::types::LockDetail;
use rand::{SeedableRng, rngs::StdRng};

use crate::workload::{
    Setting,
    ask::{self, Answer, Verb},
};

/// What clocks may differ by within one TTL, in milliseconds, and what is cut off in answers.
const SLACK_MS: u64 = 20;

/// A hold and until when its guard counts on it.
#[derive(Debug)]
pub struct Promise {
    /// With which session.
    pub session: SessionId,
    /// Which lock.
    pub name: Name,
    /// The fencing token.
    pub token: u64,
    /// Until when.
    pub deadline_ms: u64,
}

/// Asks for the lock once, from the auditor's own place, and judges the answer.
pub async fn audit(setting: Setting, node: crate::network::Node, promise: Promise) {
    let name = promise.name.clone();
    let verb: Verb<LockDetail> = Arc::new(move |endpoint| {
        let name = name.clone();
        Box::pin(async move { endpoint.lock(&name).await })
    });
    let mut dice = StdRng::seed_from_u64(promise.deadline_ms ^ promise.token);
    let member = ask::any(&setting, &mut dice);
    let Answer::Done(detail) = ask::ask(&setting, node, member, "audit", verb).await else { return };
    let (now, Some(holder)) = (setting.world.now(), detail.lock.holder) else { return };
    if holder.session != promise.session || holder.token.0 != promise.token {
        return;
    }
    // What is left when the answer arrives is less than what was left when it was read.
    let Some(left_ms) = holder.ttl_left_ms else { return };
    if now + left_ms + SLACK_MS < promise.deadline_ms {
        let sentence = format!(
            "{:?}, token {}: the guard of session {} counts on it until {} ms, and at {now} ms its lease had {left_ms} ms left",
            promise.name.text(),
            promise.token,
            promise.session,
            promise.deadline_ms
        );
        setting.findings.add("audit", now, sentence);
    }
}

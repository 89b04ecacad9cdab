//! What was answered long ago comes once more, as a network may deliver it: it must not be carried out again (rule R11).
//!
//! Sends again what a client has sent before, after a while, and judges the answer.

use std::sync::Arc;

use bytes::Bytes;
use holdfast_locktable::{
    command::{RequestId, Wait},
    ids::{SessionId, Token},
    metadata::Metadata,
    name::Name,
};
use holdfast_node::endpoint::types::{AcquireRequest, Granted};
use rand::Rng;

use super::{
    Setting,
    ask::{self, Answer, Verb},
    pause,
};
use crate::{entropy::Dice, network::Node};

/// A hold that its client has given back.
#[derive(Clone, Debug)]
pub struct Ended {
    /// With which session.
    pub session: SessionId,
    /// Which lock.
    pub name: Name,
    /// The number of its acquire.
    pub sequence: u64,
    /// Its token.
    pub token: Token,
}

/// The acquire of an ended hold arrives once more, within so many milliseconds.
pub async fn acquire(setting: Setting, node: Node, ended: Ended, within_ms: u64, mut dice: Dice) {
    pause(dice.random_range(0..within_ms)).await;
    let Ended { session, name, sequence, token } = ended;
    let request = AcquireRequest {
        name: name.clone(),
        session,
        request: RequestId::Sequence { sequence, lowest: sequence },
        wait: Wait::AtMost(500),
        metadata: Metadata::default(),
        value: Bytes::new(),
    };
    let verb: Verb<Granted> = Arc::new(move |endpoint| {
        let request = request.clone();
        Box::pin(async move { endpoint.acquire(request).await })
    });
    let member = ask::any(&setting, &mut dice);
    if let Answer::Done(again) = ask::ask(&setting, node, member, "acquire", verb).await {
        let sentence = format!(
            "session {session} held {:?} with token {} and gave it back; its acquire came once more and was granted token {}",
            name.text(),
            token.0,
            again.token.0
        );
        setting.findings.add("echo", setting.world.now(), sentence);
    }
}

/// The release of an ended hold arrives once more, while the session may hold the lock again.
pub async fn release(setting: Setting, node: Node, ended: Ended, mut dice: Dice) {
    let Ended { session, name, token, .. } = ended;
    let lock = name.clone();
    let verb: Verb<bool> = Arc::new(move |endpoint| {
        let name = lock.clone();
        Box::pin(async move { endpoint.release(name, session, token).await })
    });
    let member = ask::any(&setting, &mut dice);
    if let Answer::Done(true) = ask::ask(&setting, node, member, "release", verb).await {
        let sentence = format!(
            "session {session} gave {:?} back with token {}; that release came once more and ended a hold",
            name.text(),
            token.0
        );
        setting.findings.add("echo", setting.world.now(), sentence);
    }
}

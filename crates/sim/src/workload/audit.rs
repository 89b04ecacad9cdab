//! Whether the service knows what it has acknowledged: right after a keepalive the session is asked for, and must have as
//! much time left as the acknowledgement promises (P4, rule R1).

use std::sync::Arc;

use holdfast_node::endpoint::types::SessionInfo;
use rand::Rng;

use super::{
    ask::{self, Answer, Verb},
    pause,
    session::Session,
};
use crate::entropy::Dice;

/// What clocks may differ by within one TTL, in milliseconds, and what is cut off in answers.
const SLACK_MS: u64 = 20;

/// Asks for the session once and judges the answer.
pub async fn audit(session: Session, mut dice: Dice) {
    pause(dice.random_range(0..100)).await;
    let (setting, id) = (session.setting().clone(), session.id());
    let promised = session.acknowledged_in_groups();
    let verb: Verb<SessionInfo> =
        Arc::new(move |endpoint| Box::pin(async move { endpoint.session(id).await }));
    let member = ask::any(&setting, &mut dice);
    let Answer::Done(info) = ask::ask(&setting, session.node(), member, "audit", verb).await else { return };
    // What is left when the answer arrives is less than what was left when it was read.
    let (now, Some(left_ms)) = (setting.world.now(), info.ttl_left_ms) else { return };
    let Some(sent) = promised.get(&info.home).copied() else { return };
    let (due, has) = (sent + session.ttl_ms(), now + left_ms + SLACK_MS);
    if has < due {
        let home = info.home;
        let sentence = format!(
            "session {id}: a keepalive sent at {sent} ms was acknowledged by its home, group {home}, so that it lives until \
             {due} ms, and at {now} ms it had {left_ms} ms left"
        );
        setting.findings.add("audit", now, sentence);
    }
}

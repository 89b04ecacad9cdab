//! An operator who ends holds and sessions by force, now and then.
//!
//! Promise P8 excepts what is forced at once: the client concerned is told before, as its next keepalive or its stream
//! would tell it a moment later, and counts on nothing from there on.

use std::sync::Arc;

use holdfast_history::{Fact, SessionEnd, SessionId as Id};
use holdfast_locktable::ids::SessionId;
use holdfast_node::endpoint::types::{ForceRelease, LockDetail};
use rand::{Rng, seq::IndexedRandom};

use super::{
    Setting,
    ask::{self, Answer, Verb},
    pause,
};
use crate::{entropy::Dice, network::Node};

/// Who signs for it.
const ACTOR: &str = "operator";
/// Why.
const REASON: &str = "simulated";

/// Acts until the run comes to an end.
pub async fn operate(setting: Setting, node: Node, mut dice: Dice) {
    setting.begins();
    while !setting.stopping() {
        pause(dice.random_range(1_000..5_000)).await;
        if dice.random_bool(0.7) {
            force_release(&setting, node, &mut dice).await;
        } else {
            end_session(&setting, node, &mut dice).await;
        }
    }
    setting.ends();
}

async fn force_release(setting: &Setting, node: Node, dice: &mut Dice) {
    let name = setting.names[dice.random_range(0..setting.names.len())].clone();
    let looked = name.clone();
    let verb: Verb<LockDetail> = Arc::new(move |endpoint| {
        let name = looked.clone();
        Box::pin(async move { endpoint.lock(&name).await })
    });
    let Answer::Done(detail) = ask::ask(setting, node, ask::any(setting, dice), "look", verb).await else {
        return;
    };
    let Some(holder) = detail.lock.holder else { return };
    let token = holder.token;
    if let Some(session) = setting.registry.get(holder.session) {
        let (client, lock) = (session.client(), Arc::from(name.text()));
        session.force(&name, token);
        let (session, token) = (Id(holder.session.get()), token.0);
        setting.journal.note(Fact::ReleaseSent { client, session, lock, token });
    }
    setting.natives.force(setting, holder.session, &name, token);
    let verb: Verb<SessionId> = Arc::new(move |endpoint| {
        let (reason, actor) = (REASON.to_owned(), ACTOR.to_owned());
        let request = ForceRelease { name: name.clone(), token, reason, actor };
        Box::pin(async move { endpoint.force_release(request).await })
    });
    // That somebody else holds by now, or that the answer is lost, is all the same.
    drop(ask::ask(setting, node, ask::any(setting, dice), "force", verb).await);
}

async fn end_session(setting: &Setting, node: Node, dice: &mut Dice) {
    let Some(session) = setting.registry.in_use().choose(dice).cloned() else { return };
    let id = session.id();
    session.end(SessionEnd::Forced);
    let verb: Verb<()> = Arc::new(move |endpoint| {
        Box::pin(async move { endpoint.end_session(id, REASON.to_owned(), ACTOR.to_owned()).await })
    });
    drop(ask::ask(setting, node, ask::any(setting, dice), "end", verb).await);
}

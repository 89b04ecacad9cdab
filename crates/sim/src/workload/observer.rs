//! Somebody who looks at the queues of locks, and takes no part.

use std::sync::Arc;

use holdfast_history::{Fact, SessionId as Id};
use holdfast_locktable::name::Name;
use holdfast_node::endpoint::types::LockDetail;
use rand::Rng;

use super::{
    Setting,
    ask::{self, Answer, Verb},
    pause,
};
use crate::{entropy::Dice, network::Node};

/// Looks at one queue after the other until the run comes to an end.
pub async fn observe(setting: Setting, node: Node, mut dice: Dice) {
    setting.begins();
    while !setting.stopping() {
        pause(dice.random_range(50..400)).await;
        let name = setting.names[dice.random_range(0..setting.names.len())].clone();
        look(&setting, node, &name, &mut dice).await;
    }
    setting.ends();
}

/// Looks at one queue.
pub async fn look(setting: &Setting, node: Node, name: &Name, dice: &mut Dice) {
    let (asked, sent) = (setting.journal.now_ns(), setting.world.now());
    let lock: Arc<str> = name.text().into();
    let looked_at = name.clone();
    let verb: Verb<LockDetail> = Arc::new(move |endpoint| {
        let name = looked_at.clone();
        Box::pin(async move { endpoint.lock(&name).await })
    });
    let member = ask::any(setting, dice);
    let Answer::Done(detail) = ask::ask(setting, node, member, "look", verb).await else { return };
    if let Some(holder) = &detail.lock.holder {
        setting.past.judge(setting.world.now(), sent, name, holder.token, &setting.findings);
    }
    let holder = detail.lock.holder.map(|holder| Id(holder.session.get()));
    let waiting = detail.queue.iter().map(|waiter| Id(waiter.session.get())).collect();
    setting.journal.note(Fact::QueueObserved { lock, asked, holder, waiting });
}

//! A client that closes its session while its acquires are still on their way, as a program does that is stopped in the
//! middle of its work: the moments in which rules R4 and R11 matter.
//!
//! It fights for locks of its own and counts on none, so that nothing of it goes into the journal: what it leaves behind
//! is for the checks that look at tables.

use std::sync::Arc;

use bytes::Bytes;
use holdfast_locktable::{
    command::{RequestId, Wait},
    ids::SessionId,
    metadata::Metadata,
    name::Name,
};
use holdfast_node::endpoint::types::{AcquireRequest, Granted, SessionOpened};
use rand::Rng;
use tokio::task::spawn_local;

use super::{
    Setting,
    ask::{self, Answer, Verb},
    pause,
};
use crate::{entropy::Dice, network::Node};

/// TTL of its sessions, in milliseconds.
const TTL_MS: u64 = 2_000;
/// Most acquires of one session.
const ACQUIRES: u64 = 4;

/// Opens sessions and closes them in a hurry, until the run comes to an end.
pub async fn rush(setting: Setting, node: Node, names: Vec<Name>, mut dice: Dice) {
    setting.begins();
    while !setting.stopping() {
        pause(dice.random_range(50..400)).await;
        let member = ask::any(&setting, &mut dice);
        let verb: Verb<SessionOpened> = Arc::new(move |endpoint| {
            Box::pin(async move { endpoint.open_session(TTL_MS, Metadata::default()).await })
        });
        let Answer::Done(opened) = ask::ask(&setting, node, member, "open", verb).await else { continue };
        let mut asked = Vec::new();
        for sequence in 1..=dice.random_range(1..=ACQUIRES) {
            let name = names[dice.random_range(0..names.len())].clone();
            let member = ask::any(&setting, &mut dice);
            asked.push(spawn_local(acquire(setting.clone(), (node, member), name, opened.session, sequence)));
        }
        pause(dice.random_range(0..25)).await;
        close(&setting, node, opened.session, &mut dice).await;
        asked.into_iter().for_each(|asked| asked.abort());
    }
    setting.ends();
}

async fn acquire(setting: Setting, (from, to): (Node, Node), name: Name, session: SessionId, sequence: u64) {
    let request = AcquireRequest {
        name,
        session,
        request: RequestId::Sequence { sequence, lowest: 1 },
        wait: Wait::Unlimited,
        metadata: Metadata::default(),
        value: Bytes::new(),
    };
    let verb: Verb<Granted> = Arc::new(move |endpoint| {
        let request = request.clone();
        Box::pin(async move { endpoint.acquire(request).await })
    });
    drop(ask::ask(&setting, from, to, "acquire", verb).await);
}

async fn close(setting: &Setting, node: Node, session: SessionId, dice: &mut Dice) {
    let verb: Verb<()> =
        Arc::new(move |endpoint| Box::pin(async move { endpoint.close_session(session).await }));
    let member = ask::any(setting, dice);
    drop(ask::ask(setting, node, member, "close", verb).await);
}

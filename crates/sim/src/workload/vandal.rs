//! Somebody who asks for what nobody may have, and who storms a member with questions.
//!
//! Whatever breaks a bound, names what never was or is out of turn is refused with an error that says so (promise P9); and
//! what a member cannot take it leaves, without losing its leaderships or anybody's lock.

use std::sync::Arc;

use bytes::Bytes;
use futures::future::join_all;
use holdfast_locktable::{
    command::{RequestId, Wait},
    ids::{Revision, SessionId},
    metadata::Metadata,
    name::{Name, NameKind},
};
use holdfast_node::endpoint::types::{AcquireRequest, ForceRelease, LockDetail, WatchRequest};
use rand::Rng;

use super::{
    Setting,
    ask::{self, Answer, Verb},
    pause,
};
use crate::{check::input, entropy::Dice, network::Node};

/// Most questions of one storm.
const STORM: usize = 400;
/// A session that never was.
const NOBODY: u64 = 0x7a11_7a11_7a11;

/// Acts until the run comes to an end.
pub async fn rage(setting: Setting, node: Node, mut dice: Dice) {
    setting.begins();
    while !setting.stopping() {
        pause(dice.random_range(200..2_500)).await;
        if dice.random_bool(0.2) {
            storm(&setting, node, &mut dice).await;
            continue;
        }
        let (what, verb) = nonsense(&setting, &mut dice);
        let member = ask::any(&setting, &mut dice);
        let answer = ask::ask(&setting, node, member, "nonsense", verb).await;
        input::judge(setting.world.now(), what, &answer, &setting.findings);
    }
    setting.ends();
}

/// Many questions at once at one member; nobody listens to most of the answers.
async fn storm(setting: &Setting, node: Node, dice: &mut Dice) {
    let member = ask::any(setting, dice);
    let questions = (0..dice.random_range(50..STORM)).map(|_| {
        let name = setting.names[dice.random_range(0..setting.names.len())].clone();
        let verb: Verb<LockDetail> = Arc::new(move |endpoint| {
            let name = name.clone();
            Box::pin(async move { endpoint.lock(&name).await })
        });
        ask::ask(setting, node, member, "storm", verb)
    });
    let all: Vec<_> = questions.collect();
    tokio::select! {
        biased;
        _ = join_all(all) => {}
        () = pause(dice.random_range(10..500)) => {}
    }
}

/// Something that must be refused, in one word and as a question.
fn nonsense(setting: &Setting, dice: &mut Dice) -> (&'static str, Verb<()>) {
    let name = setting.names[dice.random_range(0..setting.names.len())].clone();
    let nobody = SessionId::new(NOBODY);
    match dice.random_range(0..8) {
        0 => ("a TTL of nothing", open(0)),
        1 => ("a TTL without end", open(u64::MAX)),
        2 => (
            "a page of no locks",
            verb(|endpoint| async move { endpoint.locks(NameKind::Lock, "", 0, None).await.map(drop) }),
        ),
        3 => (
            "a cursor that is none",
            verb(|endpoint| async move {
                let from = Some("no cursor".to_owned());
                endpoint
                    .watch(WatchRequest { prefix: String::new(), elections: false, exact: false, from })
                    .await
                    .map(drop)
            }),
        ),
        4 => (
            "a forced release without a reason",
            verb(move |endpoint| {
                let (reason, actor) = (String::new(), "vandal".to_owned());
                let request = ForceRelease { name: name.clone(), token: Revision(1), reason, actor };
                async move { endpoint.force_release(request).await.map(drop) }
            }),
        ),
        other => match nobody {
            Some(nobody) => of_nobody(other, nobody, name),
            None => ("a TTL of nothing", open(0)),
        },
    }
}

/// What a session that never was asks for.
fn of_nobody(number: u32, nobody: SessionId, name: Name) -> (&'static str, Verb<()>) {
    match number {
        5 => (
            "a keepalive of nobody",
            verb(move |endpoint| async move { endpoint.keepalive(nobody).await.map(drop) }),
        ),
        6 => (
            "a release by nobody",
            verb(move |endpoint| {
                let name = name.clone();
                async move { endpoint.release(name, nobody, Revision(7)).await.map(drop) }
            }),
        ),
        _ => (
            "an acquire by nobody",
            verb(move |endpoint| {
                let request = AcquireRequest {
                    name: name.clone(),
                    session: nobody,
                    request: RequestId::Sequence { sequence: 1, lowest: 1 },
                    wait: Wait::AtMost(50),
                    metadata: Metadata::default(),
                    value: Bytes::new(),
                };
                async move { endpoint.acquire(request).await.map(drop) }
            }),
        ),
    }
}

fn open(ttl_ms: u64) -> Verb<()> {
    verb(move |endpoint| async move { endpoint.open_session(ttl_ms, Metadata::default()).await.map(drop) })
}

fn verb<F>(work: impl Fn(holdfast_node::endpoint::Endpoint) -> F + Send + Sync + 'static) -> Verb<()>
where
    F: Future<Output = Result<(), holdfast_node::endpoint::ApiError>> + Send + 'static,
{
    Arc::new(move |endpoint| Box::pin(work(endpoint)))
}

/// What came of it, for whoever judges.
pub type Refused = Answer<()>;

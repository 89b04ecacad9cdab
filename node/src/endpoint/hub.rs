//! Collects keepalives of all clients of this member and spreads them, one message per member, to every group leader.
//!
//! A batch goes out as soon as the one before is on its way; nothing waits for a tick. Knows no deadlines: the leaders do.
//! How long a caller waits for whoever is slow is for [`answers`] to say.

mod answers;

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use futures::{
    StreamExt,
    stream::{self, BoxStream, FuturesUnordered},
};
use holdfast_locktable::ids::SessionId;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};

use self::answers::{Answer, Asking, Source, answer_callers};
use super::{
    router::{Asked, MemberAnswer, MemberCall, Router, Said, Silences},
    types::GroupLease,
};
use crate::raft::types::MemberId;

/// Keepalives that may be under way. Beyond it callers are refused as overloaded and try again.
const MAX_UNDER_WAY: usize = 131_072;
/// A batch of at least so many goes out without gathering more.
const BATCH: usize = 4_096;
/// How long to gather after the first keepalive of a batch, so that many clients share one quorum round. A round of all
/// groups costs the members as much as some hundred keepalives; no TTL is so short that this delay matters.
const GATHER: Duration = Duration::from_millis(30);

/// What all groups said of one session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Renewals {
    /// One line per lock group, in order.
    pub groups: Vec<GroupLease>,
    /// The session's TTL in milliseconds, where any group renewed it.
    pub ttl_ms: Option<u64>,
}

/// Sessions of one caller, and where it waits.
#[derive(Debug)]
struct Keepalives {
    sessions: Arc<[SessionId]>,
    caller: oneshot::Sender<Vec<Renewals>>,
    /// Their share of what may be under way.
    _room: OwnedSemaphorePermit,
}

/// The way into the hub. Cheap to clone.
#[derive(Clone, Debug)]
pub struct KeepaliveHub {
    queue: mpsc::UnboundedSender<Keepalives>,
    room: Arc<Semaphore>,
}

impl KeepaliveHub {
    /// Starts the hub; it ends with its last handle. A member that does not answer within `patience` counts as unavailable,
    /// and sooner for sessions whose TTL is too short to wait for it.
    pub fn start(router: Router, patience: Duration) -> Self {
        let (queue, keepalives) = mpsc::unbounded_channel();
        tokio::spawn(gather(router, patience, keepalives));
        Self { queue, room: Arc::new(Semaphore::new(MAX_UNDER_WAY)) }
    }

    /// Renews sessions everywhere: one answer per session, in order. `None` where too many keepalives are under way
    /// already, or the member is going down.
    pub async fn renew(&self, sessions: Arc<[SessionId]>) -> Option<Vec<Renewals>> {
        let count = u32::try_from(sessions.len()).ok()?;
        let room = self.room.clone().try_acquire_many_owned(count).ok()?;
        let (caller, answer) = oneshot::channel();
        self.queue.send(Keepalives { sessions, caller, _room: room }).ok()?;
        answer.await.ok()
    }
}

async fn gather(router: Router, patience: Duration, mut queue: mpsc::UnboundedReceiver<Keepalives>) {
    let silences = Silences::default();
    while let Some(first) = queue.recv().await {
        if first.sessions.len() < BATCH {
            tokio::time::sleep(GATHER).await;
        }
        let mut count = first.sessions.len();
        let mut batch = vec![first];
        while count < BATCH
            && let Ok(keepalives) = queue.try_recv()
        {
            count += keepalives.sessions.len();
            batch.push(keepalives);
        }
        tokio::spawn(spread(router.clone(), silences.clone(), patience, batch));
    }
}

/// Sends one batch to every member that leads anything, and answers each caller.
async fn spread(router: Router, silences: Silences<MemberId>, patience: Duration, batch: Vec<Keepalives>) {
    let sessions: Arc<[SessionId]> =
        batch.iter().flat_map(|keepalives| keepalives.sessions.iter().copied()).collect();
    let (asked, answers) = ask_all(&router, &silences, &sessions);
    let silent_since = |source| match source {
        Source::Here(group) => router.silent_since(group),
        Source::Member(member) => silences.since(member),
    };
    let asked = Asking { asked, answers, silent_since };
    let heard = answer_callers(batch, asked, || router.all_groups(), patience).await;
    for group in router.all_groups() {
        if !heard.contains(&group) {
            router.note_silence(group);
        }
    }
}

/// Asks every member that leads anything. The groups led here answer one by one, those of another member together. What
/// an answer shows of its groups is noted as it comes.
fn ask_all(
    router: &Router,
    silences: &Silences<MemberId>,
    sessions: &Arc<[SessionId]>,
) -> (BTreeSet<Source>, BoxStream<'static, (Source, Answer)>) {
    let own = router.member();
    let (groups, here) = router.keepalives_here(sessions);
    let here = here.map(move |said| (Source::Here(said.0), own, vec![said]));
    let others: Vec<MemberId> = router.leaders().into_iter().filter(|member| *member != own).collect();
    let asked = groups.into_iter().map(Source::Here).chain(others.iter().copied().map(Source::Member));
    let asked = asked.collect();
    let far =
        others.into_iter().map(|member| ask(router.clone(), silences.ask(member), member, sessions.clone()));
    let far: FuturesUnordered<_> = far.collect();
    let router = router.clone();
    let answers = stream::select(here, far);
    (asked, answers.map(move |(source, member, said)| (source, noted(&router, member, said))).boxed())
}

async fn ask(
    router: Router,
    asked: Asked<MemberId>,
    member: MemberId,
    sessions: Arc<[SessionId]>,
) -> (Source, MemberId, Vec<Said>) {
    let said = match router.ask(member, &MemberCall::Keepalive(sessions.to_vec())).await {
        Ok(MemberAnswer::Keepalive(groups)) => groups,
        Ok(_) | Err(_) => Vec::new(),
    };
    asked.answered();
    (Source::Member(member), member, said)
}

/// Notes what the answer of a member shows, and leaves out groups that did not do what they were asked.
fn noted(router: &Router, member: MemberId, said: Vec<Said>) -> Answer {
    let answer: Answer =
        said.into_iter().filter_map(|(group, renewals)| Some((group, renewals.ok()?))).collect();
    router.note_leader(member, answer.iter().map(|(group, _)| *group));
    for (group, renewals) in &answer {
        if let Some(epoch) = renewals.iter().map(|renewal| renewal.epoch).max() {
            router.note_epoch(*group, epoch);
        }
    }
    answer
}

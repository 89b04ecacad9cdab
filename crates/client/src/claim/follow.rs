//! The task of one part in a claim: joins, waits for changes, gives back what handles have stopped using, and leaves.
//!
//! What is decided is decided in [`super::books`] and by the session's deadlines. All verbs may be repeated, so whatever has
//! no answer is asked again, of the next member.

use std::{sync::Arc, time::Duration};

use holdfast_proto::v1::{self, claims_client::ClaimsClient};
use tokio::{
    sync::{OwnedMutexGuard, watch},
    time::{sleep, timeout},
};

use super::{
    Claim, Inner, JoinClaim,
    books::Books,
    error::{ClaimEnd, ClaimError},
};
use crate::{
    call::{RETRY_BASE, RETRY_MAX},
    channel::Channel,
    error::{Error, ErrorCode},
    session::Shared,
    state::HoldState,
};

/// Bounds of how long one question waits for a change at a member: one that hangs is left after that.
const LOOK: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(10));
/// How much longer than it was asked to wait a member may take.
const LOOK_GRACE: Duration = Duration::from_secs(2);
/// Largest answer read: a claim with all its partitions.
const MAX_ANSWER_BYTES: usize = 16 << 20;

/// Joins, and starts the task.
pub(super) async fn join(ask: JoinClaim) -> Result<Claim, ClaimError> {
    let JoinClaim { session, name, partitions, weight, metadata } = ask;
    let shared = session.shared().clone();
    let alone = shared.claims.begin(&name, shared.client.caller.request_timeout).await;
    let alone = alone.ok_or_else(|| ClaimError::AlreadyJoined { name: name.to_string() })?;
    let request = v1::JoinClaimRequest {
        name: name.to_string(),
        session: shared.session.get(),
        partitions,
        weight,
        metadata: metadata.into_iter().collect(),
    };
    let hold = shared.core().claim_asked(shared.now());
    let part = Part { shared: shared.clone(), name: name.clone(), hold, alone: Some(alone), loose: true };
    let joined = shared.client.caller.call(|channel| {
        let request = request.clone();
        async move { claims(channel).join(request).await }
    });
    let member = tokio::select! {
        biased;
        // However an attempt was refused, an earlier one may still be executed: the part leaves.
        joined = joined => joined.map_err(|error| ClaimError::from_answer(&name, error))?,
        reason = session.lost() => {
            return Err(ClaimError::SessionLost { name: name.to_string(), reason });
        }
    };
    shared.core().claim_joined(hold, &name, member.group, shared.now());
    shared.wake();
    let mut states = shared.watch_hold(hold);
    part.covered(member.group, &mut states).await?;
    let mut first = Books::default();
    first.learn(&member);
    let books = watch::Sender::new(first);
    let inner = Inner { session, name, hold, group: member.group, books: books.clone() };
    shared.claims.joined(&part.name);
    tokio::spawn(Follower { part, books, states, attempts: 0 }.run());
    Ok(Claim { inner: Arc::new(inner) })
}

fn claims(channel: Channel) -> ClaimsClient<Channel> {
    ClaimsClient::new(channel).max_decoding_message_size(MAX_ANSWER_BYTES)
}

/// A part in a claim, from the first question to the last. Dropped while the service may count it as a member, it leaves in
/// the background; nobody else of the session joins the claim before that is done.
struct Part {
    shared: Arc<Shared>,
    name: Arc<str>,
    hold: u64,
    alone: Option<OwnedMutexGuard<()>>,
    loose: bool,
}

impl Drop for Part {
    fn drop(&mut self) {
        self.shared.core().claim_over(self.hold);
        self.shared.unwatch_hold(self.hold);
        self.shared.claims.ended(&self.name);
        let alone = self.alone.take();
        // Outside a runtime nobody keeps the session alive either.
        match tokio::runtime::Handle::try_current() {
            Ok(runtime) if self.loose => {
                let (shared, name, hold) = (self.shared.clone(), self.name.clone(), self.hold);
                runtime.spawn(async move {
                    leave(shared.clone(), name, alone).await;
                    shared.core().claim_settled(hold, shared.now());
                });
            }
            Ok(_) | Err(_) => self.shared.core().claim_settled(self.hold, self.shared.now()),
        }
    }
}

impl Part {
    /// Waits until the group's lease stands: only then nobody else can be given what the answer shows.
    async fn covered(&self, group: u32, states: &mut watch::Receiver<HoldState>) -> Result<(), ClaimError> {
        let standing = async {
            loop {
                let (end, covered) = {
                    let mut core = self.shared.core();
                    let covered = core.ledger().covered(self.hold, self.shared.now());
                    if covered {
                        core.ledger_mut().confirm(self.hold);
                    }
                    (core.ledger().end().cloned(), covered)
                };
                if let Some(reason) = end {
                    return Err(ClaimError::SessionLost { name: self.name.to_string(), reason });
                }
                if covered || states.changed().await.is_err() {
                    return Ok(());
                }
            }
        };
        let limit = self.shared.client.caller.request_timeout;
        let silent = || Error::Unreachable { reason: format!("group {group} does not renew the session") };
        timeout(limit, standing).await.unwrap_or_else(|_| Err(silent().into()))
    }
}

/// Leaves, however long that takes, unless the session is over before.
async fn leave(shared: Arc<Shared>, name: Arc<str>, _alone: Option<OwnedMutexGuard<()>>) {
    let request = v1::ClaimMemberRequest { name: name.to_string(), session: shared.session.get() };
    while shared.core().ledger().end().is_none() {
        let left = shared.client.caller.call(|channel| {
            let request = request.clone();
            async move { claims(channel).leave(request).await }
        });
        match left.await {
            Ok(_) => return,
            Err(error) if error.retryable() => {
                tracing::debug!(claim = %name, %error, "a claim was not left yet");
                sleep(RETRY_MAX).await;
            }
            Err(error) => {
                tracing::debug!(claim = %name, %error, "a claim cannot be left");
                return;
            }
        }
    }
}

/// What the task has in hand.
struct Follower {
    part: Part,
    books: watch::Sender<Books>,
    states: watch::Receiver<HoldState>,
    attempts: u32,
}

/// What happened.
enum Happened {
    /// A handle wants something, or the part is over.
    Wish,
    /// The session or its deadline in the group is over.
    Lost,
    /// A member answered, or none did.
    Answered(Result<v1::ClaimMembership, Error>),
}

impl Follower {
    async fn run(mut self) {
        while self.books.borrow().end().is_none() {
            self.step().await;
        }
        let Self { mut part, books, .. } = self;
        let over = part.shared.core().ledger().end().is_some();
        // A session that is over takes part in nothing, and one that was put out needs not leave.
        let removed = matches!(books.borrow().end(), Some(ClaimEnd::Removed));
        // Whoever joins again from here on waits until this part has left.
        part.shared.claims.ended(&part.name);
        if !over && !removed {
            leave(part.shared.clone(), part.name.clone(), None).await;
        }
        part.loose = false;
        drop(part);
        books.send_modify(Books::close);
    }

    /// Asks one thing of the service, and takes in whatever happens first.
    async fn step(&mut self) {
        let given = self.books.borrow().to_give();
        let looking = given.is_empty();
        let mut wishes = self.books.subscribe();
        let mut states = self.states.clone();
        let happened = tokio::select! {
            biased;
            _ = states.wait_for(|state| state.ended()) => Happened::Lost,
            _ = wishes.wait_for(|books| books.end().is_some() || looking && !books.to_give().is_empty()) => {
                Happened::Wish
            }
            answer = self.ask(&given) => Happened::Answered(answer),
        };
        match happened {
            Happened::Wish => {}
            Happened::Lost => {
                let why = self.part.shared.core().loss_of(self.part.hold);
                self.books.send_modify(|books| books.ended(ClaimEnd::Lost(why)));
            }
            Happened::Answered(Ok(member)) => {
                self.attempts = 0;
                self.books.send_modify(|books| {
                    books.given(&given);
                    books.learn(&member);
                });
            }
            Happened::Answered(Err(error)) => self.failed(error).await,
        }
    }

    /// Tells what was given back, or waits for a change.
    async fn ask(&self, given: &[(u32, u64)]) -> Result<v1::ClaimMembership, Error> {
        let Part { shared, name, .. } = &self.part;
        let (name, session) = (name.to_string(), shared.session.get());
        let caller = &shared.client.caller;
        if given.is_empty() {
            let wait = (shared.core().ledger().ttl() / 2).clamp(LOOK.0, LOOK.1);
            let wait_ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
            let seen = Some(self.books.borrow().revision());
            let look = v1::AwaitClaimRequest { name, session, seen, wait_ms };
            let asked = |channel| {
                let look = look.clone();
                async move { claims(channel).r#await(look).await }
            };
            return caller.ask_within(caller.preferred(), wait + LOOK_GRACE, &asked).await;
        }
        let partitions = given
            .iter()
            .map(|(partition, token)| v1::PartitionToken { partition: *partition, token: *token });
        let gave = v1::GiveBackRequest { name, session, partitions: partitions.collect() };
        let asked = |channel| {
            let gave = gave.clone();
            async move { claims(channel).give_back(gave).await }
        };
        caller.ask_within(caller.preferred(), caller.request_timeout, &asked).await
    }

    async fn failed(&mut self, error: Error) {
        let Part { shared, name, .. } = &self.part;
        match error.code() {
            // Out by the session's own end, which is about to be known here.
            Some(ErrorCode::NotMember) if shared.core().closing() => {}
            Some(ErrorCode::NotMember) => {
                self.books.send_modify(|books| books.ended(ClaimEnd::Removed));
                return;
            }
            // Of the session itself only a keepalive tells.
            Some(ErrorCode::SessionLost) => shared.core().claim_in_question(),
            Some(_) | None => {}
        }
        tracing::debug!(claim = %name, %error, "nothing is known of a claim for now");
        let caller = &shared.client.caller;
        caller.avoid(caller.preferred());
        let pause = caller.random.backoff(self.attempts, RETRY_BASE, RETRY_MAX);
        self.attempts = self.attempts.saturating_add(1);
        let mut states = self.states.clone();
        let mut wishes = self.books.subscribe();
        tokio::select! {
            biased;
            _ = states.wait_for(|state| state.ended()) => {}
            _ = wishes.wait_for(|books| books.end().is_some()) => {}
            () = sleep(pause) => {}
        }
    }
}

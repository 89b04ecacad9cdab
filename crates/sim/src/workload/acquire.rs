//! Asking for a lock until it is known how that ended: repeats with the same request id, at any member, also while the
//! question before is still under way.

use std::sync::Arc;

use bytes::Bytes;
use holdfast_history::{End, Fact, SessionId as Id, Wait as Limit};
use holdfast_locktable::{
    command::{RequestId, Wait},
    ids::Token,
    metadata::Metadata,
    name::Name,
};
use holdfast_node::endpoint::{
    ApiError, ErrorCode,
    types::{AcquireRequest, Granted},
};
use holdfast_partitioner::GroupId;
use rand::Rng;
use tokio::task::{JoinHandle, spawn_local};

use super::{
    Setting,
    ask::{self, Answer, Verb},
    pause,
    session::{Session, Who},
};
use crate::{
    check::{answers::Asked, grants::Counted},
    entropy::Dice,
};

const NS_PER_MS: u64 = 1_000_000;
/// The haste of most clients.
pub const USUAL_HASTE: Haste = Haste { share: 0.2, most_ms: 2_500 };
/// The earliest that anybody loses patience, in milliseconds.
const LEAST_PATIENCE_MS: u64 = 50;

/// How soon somebody loses patience with a member, and asks another.
#[derive(Clone, Copy, Debug)]
pub struct Haste {
    /// In which share of the questions.
    pub share: f64,
    /// After how many milliseconds at most.
    pub most_ms: u64,
}

/// How a client asks for a lock.
#[derive(Clone, Debug)]
pub struct Wish {
    /// Which lock.
    pub name: Name,
    /// How long it waits.
    pub wait: Wait,
    /// After how many milliseconds it gives the wait up, if it does.
    pub give_up_ms: Option<u64>,
    /// How soon it asks another member.
    pub haste: Haste,
    /// Its number within the session.
    pub sequence: u64,
}

/// How an acquire ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ended {
    /// How.
    pub end: End,
    /// Whether it was asked for more than once, so that an earlier question may still be under way.
    pub repeated: bool,
}

/// One acquire under way.
#[derive(Debug)]
pub struct Acquire<'a> {
    /// What clients share.
    pub setting: &'a Setting,
    /// Who asks.
    pub who: Who,
    /// With which session.
    pub session: &'a Session,
    /// For what.
    pub wish: Wish,
}

/// An acquire until it has ended.
#[derive(Debug)]
struct Asking {
    /// Its number.
    call: u64,
    /// When it was asked for first.
    sent: u64,
    /// Whether an earlier attempt may still be under way somewhere.
    loose: bool,
}

/// A question under way. Withdrawn when it is dropped, unless it was left.
struct Attempt {
    task: JoinHandle<Answer<Granted>>,
    left: bool,
}

impl Attempt {
    async fn answer(&mut self) -> Answer<Granted> {
        // The task neither panics nor is it aborted while somebody waits for it.
        (&mut self.task).await.unwrap_or(Answer::Unknown)
    }

    /// Nobody listens to the answer any more, and the member does not know.
    fn leave(mut self) {
        self.left = true;
    }
}

impl Drop for Attempt {
    fn drop(&mut self) {
        if !self.left {
            self.task.abort();
        }
    }
}

impl Acquire<'_> {
    /// Asks until it is known how it ended, or the session is over; with a token the lock is held from here on.
    pub async fn run(&self, dice: &mut Dice) -> Ended {
        let (call, sent) = (self.setting.next_call(), self.setting.world.now());
        let mut asking = Asking { call, sent, loose: false };
        let end = self.ended(&mut asking, dice).await;
        Ended { end, repeated: asking.loose }
    }

    async fn ended(&self, asking: &mut Asking, dice: &mut Dice) -> End {
        let call = asking.call;
        let (client, session) = (self.who.client, Id(self.session.id().get()));
        let lock: Arc<str> = self.wish.name.text().into();
        self.setting.journal.note(Fact::AcquireSent {
            call,
            client,
            session,
            lock: lock.clone(),
            wait: self.limit(),
        });
        let (end, group) = tokio::select! {
            biased;
            () = self.session.over() => (End::Unknown, None),
            end = self.until_known(asking, dice) => end,
        };
        let told = end;
        // An operator has ended the hold before its client was told of it: then it is as if nobody had been told.
        let forced =
            |token| self.session.is_forced(&self.wish.name, holdfast_locktable::ids::Revision(token));
        let end = match end {
            End::Granted(token) if forced(token) => End::Unknown,
            end => end,
        };
        if let (End::Granted(token), Some(group)) = (end, group) {
            let counted = Counted {
                session: self.session.id(),
                token: holdfast_locktable::ids::Revision(token),
                group,
                deadline_ms: 0,
            };
            self.session.granted(&self.wish.name, counted);
        }
        self.setting.journal.note(Fact::AcquireEnded { call, client, session, lock, end });
        let asked =
            Asked { session: self.session.id(), name: self.wish.name.clone(), sequence: self.wish.sequence };
        self.setting.telling.told(self.setting.world.now(), asked, told);
        end
    }

    fn limit(&self) -> Limit {
        match self.wish.wait {
            Wait::Try => Limit::Try,
            Wait::AtMost(ms) => Limit::AtMost(ms * NS_PER_MS),
            Wait::Unlimited => Limit::Unlimited,
        }
    }

    async fn until_known(&self, asking: &mut Asking, dice: &mut Dice) -> (End, Option<GroupId>) {
        loop {
            let sent = self.setting.world.now();
            let gone = sent - asking.sent;
            let give_up = self.wish.give_up_ms.map(|ms| ms.saturating_sub(gone));
            // Now and then a client loses patience with a member, and asks another.
            let Haste { share, most_ms } = self.wish.haste;
            let impatient = dice.random_bool(share).then(|| dice.random_range(LEAST_PATIENCE_MS..most_ms));
            let mut attempt = self.attempt(gone, dice);
            let answer = tokio::select! {
                biased;
                answer = attempt.answer() => answer,
                () = after(give_up) => return self.give_up(asking.call, dice).await,
                () = after(impatient) => {
                    if dice.random_bool(0.5) {
                        attempt.leave();
                    }
                    Answer::Unknown
                }
            };
            match answer {
                Answer::Done(Granted { token, group, .. }) => return (End::Granted(token.0), Some(group)),
                Answer::Unknown => {
                    asking.loose = true;
                    ask::again(dice).await;
                }
                Answer::No(error) => {
                    self.judge_holder(sent, &error);
                    match self.refused(error.code, &error.message) {
                        End::Busy if asking.loose => return (self.keep_out(asking.sent, dice).await, None),
                        end => return (end, None),
                    }
                }
            }
        }
    }

    /// One question to one member.
    fn attempt(&self, gone_ms: u64, dice: &mut Dice) -> Attempt {
        self.session.asks();
        let wait = match self.wish.wait {
            Wait::AtMost(ms) => Wait::AtMost(ms.saturating_sub(gone_ms).max(1)),
            Wait::Try => Wait::Try,
            Wait::Unlimited => Wait::Unlimited,
        };
        let request = AcquireRequest {
            name: self.wish.name.clone(),
            session: self.session.id(),
            request: self.request_id(),
            wait,
            metadata: Metadata::default(),
            value: Bytes::new(),
        };
        let verb: Verb<Granted> = Arc::new(move |endpoint| {
            let request = request.clone();
            Box::pin(async move { endpoint.acquire(request).await })
        });
        let (setting, from, member) = (self.setting.clone(), self.who.node, ask::any(self.setting, dice));
        let asking = async move { ask::ask(&setting, from, member, "acquire", verb).await };
        Attempt { task: spawn_local(asking), left: false }
    }

    /// A refused try names who holds the lock.
    fn judge_holder(&self, sent: u64, error: &ApiError) {
        if let (ErrorCode::Busy, Some(token)) = (error.code, error.facts.token) {
            let Setting { world, past, findings, .. } = self.setting;
            past.judge(world.now(), sent, &self.wish.name, token, findings);
        }
    }

    fn refused(&self, code: ErrorCode, message: &str) -> End {
        match code {
            ErrorCode::Busy => End::Busy,
            ErrorCode::Timeout => End::TimedOut,
            ErrorCode::SessionLost => End::SessionLost,
            // A repeat that comes too late for the answer of the first: the service remembers that it ended, and how is
            // in the text. A wait that was abandoned in between is cancelled; an operator's end removes it.
            ErrorCode::Removed if self.session.was_forced() => End::Unknown,
            ErrorCode::Cancelled | ErrorCode::StaleRequest => End::Unknown,
            other => {
                let sentence = format!(
                    "client {} asked for {:?} and was told {}: {message}",
                    self.who.client,
                    self.wish.name,
                    other.as_str()
                );
                self.setting.findings.add("answers", self.setting.world.now(), sentence);
                End::Unknown
            }
        }
    }

    /// How its request is named.
    pub fn request_id(&self) -> RequestId {
        RequestId::Sequence { sequence: self.wish.sequence, lowest: self.wish.sequence }
    }
}

async fn after(ms: Option<u64>) {
    match ms {
        Some(ms) => pause(ms).await,
        None => std::future::pending().await,
    }
}

/// The token of a grant.
#[must_use]
pub fn token_of(end: End) -> Option<Token> {
    match end {
        End::Granted(token) => Some(holdfast_locktable::ids::Revision(token)),
        End::Busy | End::TimedOut | End::Cancelled | End::SessionLost | End::Error | End::Unknown => None,
    }
}

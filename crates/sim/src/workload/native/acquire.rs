//! Asking the product's client for a lock in every way there is, and what it answers.

use std::{rc::Rc, sync::Arc, time::Duration};

use holdfast_client::AcquireError;
use holdfast_history::{End, Fact, SessionId as Id, Wait as Limit};
use holdfast_locktable::{
    ids::Revision,
    name::{Name, NameKind},
};
use rand::Rng;

use super::{bound::bounded, guard::Guard, hold, session::Session};
use crate::{entropy::Dice, workload::pause};

const NS_PER_MS: u64 = 1_000_000;
/// A request that is answered within so many milliseconds was sent once: a repeat takes a pause or a new connection.
const ONCE_MS: u64 = 20;

/// How it is asked.
#[derive(Clone, Copy, Debug)]
enum Way {
    Try,
    AtMost(Duration),
    /// The caller goes away after so many milliseconds.
    Until(u64),
}

impl Way {
    fn choose(dice: &mut Dice) -> Self {
        match dice.random_range(0..10) {
            0..3 => Self::Try,
            3..6 => Self::AtMost(Duration::from_millis(dice.random_range(1..4_000))),
            _ => Self::Until(dice.random_range(1..5_000)),
        }
    }

    fn limit(self) -> Limit {
        match self {
            Self::Try => Limit::Try,
            Self::AtMost(limit) => Limit::AtMost(u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX)),
            Self::Until(_) => Limit::Unlimited,
        }
    }
}

/// Asks for a lock that no other work of the session uses, and does with it what there is to do.
pub async fn one(session: &Rc<Session>, dice: &mut Dice) {
    let names = &session.setting.names;
    let name = names[dice.random_range(0..names.len())].clone();
    if !session.used.borrow_mut().insert(name.clone()) {
        return pause(10).await;
    }
    asked(session, &name, dice).await;
    session.used.borrow_mut().remove(&name);
}

async fn asked(session: &Rc<Session>, name: &Name, dice: &mut Dice) {
    let (setting, client, id) = (&session.setting, session.who.client, Id(session.id.get()));
    let (call, way, sent) = (setting.next_call(), Way::choose(dice), setting.world.now());
    let lock: Arc<str> = name.text().into();
    setting.asks();
    let wait = way.limit();
    setting.journal.note(Fact::AcquireSent { call, client, session: id, lock: lock.clone(), wait });
    let answer = answer(session, name, way).await;
    let end = match &answer {
        Some(Ok(guard)) if setting.natives.is_forced(name, Revision(guard.token())) => End::Unknown,
        Some(Ok(guard)) => {
            setting.natives.granted(session.id, name, Revision(guard.token()));
            End::Granted(guard.token())
        }
        Some(Err(error)) => refused(session, name, sent, error),
        None => End::Unknown,
    };
    setting.journal.note(Fact::AcquireEnded { call, client, session: id, lock: lock.clone(), end });
    match answer {
        Some(Ok(guard)) => {
            let guard = Rc::new(guard);
            session.watch(name, &guard);
            hold::hold(session, name, guard, dice).await;
        }
        Some(Err(AcquireError::Busy { .. })) => {
            session.loose.borrow_mut().push((lock, sent * NS_PER_MS));
        }
        Some(Err(_)) | None => {}
    }
}

/// What the client answers; nothing where the caller has gone away before.
async fn answer(session: &Session, name: &Name, way: Way) -> Option<Result<Guard, AcquireError>> {
    let (setting, thawed) = (&session.setting, &session.thawed);
    let asking = ask(session, name, way);
    match way {
        Way::Until(ms) => tokio::select! {
            biased;
            answer = asking => Some(answer),
            () = pause(ms) => None,
        },
        Way::Try | Way::AtMost(_) => {
            let limit = if let Way::AtMost(limit) = way { limit } else { Duration::ZERO };
            bounded(setting, thawed, (session.who.client, name.text()), limit, asking).await
        }
    }
}

async fn ask(session: &Session, name: &Name, way: Way) -> Result<Guard, AcquireError> {
    if name.kind() == NameKind::Election {
        let (election, value) = (session.session.election(name.text()), "candidate");
        return match way {
            Way::Try => election.try_campaign(value).await,
            Way::AtMost(limit) => election.campaign_timeout(value, limit).await,
            Way::Until(_) => election.campaign(value).await,
        }
        .map(Guard::Lead);
    }
    let lock = session.session.lock(name.text());
    match way {
        Way::Try => lock.try_acquire().await,
        Way::AtMost(limit) => lock.acquire_timeout(limit).await,
        Way::Until(_) => lock.acquire().await,
    }
    .map(Guard::Lock)
}

/// How an acquire ended without the lock.
fn refused(session: &Session, name: &Name, sent: u64, error: &AcquireError) -> End {
    match error {
        // A copy of it may be under way, which the client takes back later.
        AcquireError::Busy { .. } if sent + ONCE_MS < session.setting.world.now() => End::Unknown,
        AcquireError::Busy { .. } => End::Busy,
        AcquireError::Timeout { .. } => End::TimedOut,
        AcquireError::SessionLost { .. } => End::SessionLost,
        AcquireError::Removed { .. } | AcquireError::Cancelled { .. } | AcquireError::Unknown { .. } => {
            End::Unknown
        }
        // Both say that nothing was done.
        AcquireError::Unreachable { .. } | AcquireError::Refused(_) => End::Error,
        AcquireError::AlreadyHeld { .. } | AcquireError::AlreadyWaiting { .. } | AcquireError::Invalid(_) => {
            session.find(format!("asked for {name:?} and was told: {error}"));
            End::Error
        }
    }
}

//! What is done with a lock that the product's client was granted: it is written with, proclaimed with, given back or
//! dropped.

use std::{rc::Rc, sync::Arc, time::Duration};

use holdfast_client::{HoldError, HoldState};
use holdfast_history::{Fact, ReleaseEnd, SessionId as Id};
use holdfast_locktable::{ids::Revision, name::Name};
use rand::Rng;

use super::{bound::bounded, guard::Guard, session::Session};
use crate::{check::fence, entropy::Dice, workload::pause};

const NS_PER_MS: u64 = 1_000_000;
/// The longest pause between two uses of a hold that lasts for long, in milliseconds.
const PATIENT_MS: u64 = 4_000;

/// Uses a hold for a while, and ends it.
pub async fn hold(session: &Rc<Session>, name: &Name, guard: Rc<Guard>, dice: &mut Dice) {
    let longest = match session.patient {
        true => PATIENT_MS,
        false if dice.random_bool(0.2) => 1_500,
        false => 60,
    };
    for _ in 0..dice.random_range(0..4) {
        pause(dice.random_range(1..longest)).await;
        if !counts(session, name, &guard) {
            break;
        }
        write(session, name, &guard, dice).await;
    }
    if dice.random_bool(0.5) {
        proclaim(session, name, &guard, dice).await;
    }
    let given = given_back(session, name, &guard);
    // Some only drop the guard.
    if dice.random_bool(0.7) {
        let end = release(session, &guard, dice).await;
        if given {
            ended(session, name, &guard, end);
        }
    } else if given {
        ended(session, name, &guard, ReleaseEnd::Unknown);
    }
}

fn counts(session: &Session, name: &Name, guard: &Guard) -> bool {
    matches!(guard.state(), HoldState::Safe | HoldState::InDoubt)
        && session.setting.natives.counts(session.id, name, Revision(guard.token()))
}

/// Writes to the resource; the write takes a while to arrive, and nobody knows whether the lock is still held then.
async fn write(session: &Session, name: &Name, guard: &Guard, dice: &mut Dice) {
    let (setting, token, lock) = (&session.setting, guard.token(), Arc::<str>::from(name.text()));
    let sent = setting.world.now();
    pause(dice.random_range(1..30)).await;
    let (now, accepted) = (setting.world.now(), setting.resource.write(&lock, token));
    let left = u64::try_from(guard.remaining().as_millis()).unwrap_or(u64::MAX);
    let deadline = if counts(session, name, guard) { now.saturating_add(left) } else { 0 };
    fence::judge(now, accepted, (&lock, token), deadline, &setting.findings);
    let sent = sent * NS_PER_MS;
    setting.journal.note(Fact::FencedWrite { object: lock.clone(), lock, token, sent, accepted });
}

/// A leader says something. Whoever leads is not told that it does not.
async fn proclaim(session: &Session, name: &Name, guard: &Guard, dice: &mut Dice) {
    let value = dice.random_range(0..1_000_000).to_string();
    let who = (session.who.client, "a proclamation");
    let proclaiming = guard.proclaim(value);
    let told = bounded(&session.setting, &session.thawed, who, Duration::ZERO, proclaiming).await;
    if let Some(Err(error)) = told
        && counts(session, name, guard)
        && matches!(error, HoldError::NotHolder { .. } | HoldError::SessionLost { .. })
    {
        session.find(format!("leads {name:?} and was told: {error}"));
    }
}

/// The hold is not counted on from here on. Answers whether it was.
fn given_back(session: &Session, name: &Name, guard: &Guard) -> bool {
    let token = guard.token();
    if !counts(session, name, guard) {
        session.hold_lost(name, guard);
        return false;
    }
    session.setting.natives.let_go(&session.setting, session.id, name, Revision(token));
    let (client, session_id, lock) = (session.who.client, Id(session.id.get()), name.text().into());
    session.setting.journal.note(Fact::ReleaseSent { client, session: session_id, lock, token });
    true
}

async fn release(session: &Session, guard: &Guard, dice: &mut Dice) -> ReleaseEnd {
    loop {
        let who = (session.who.client, "a release");
        let releasing = guard.give_back();
        let told = bounded(&session.setting, &session.thawed, who, Duration::ZERO, releasing).await;
        match told {
            Some(Ok(_)) => return ReleaseEnd::Released,
            Some(Err(HoldError::NotHolder { .. })) => return ReleaseEnd::NotHolder,
            // The guard stays responsible: it is called again, or dropped.
            Some(Err(error)) if error.retryable() && dice.random_bool(0.5) => {}
            Some(Err(_)) | None => return ReleaseEnd::Unknown,
        }
    }
}

fn ended(session: &Session, name: &Name, guard: &Guard, end: ReleaseEnd) {
    let (client, session_id, lock) = (session.who.client, Id(session.id.get()), name.text().into());
    let token = guard.token();
    session.setting.journal.note(Fact::ReleaseEnded { client, session: session_id, lock, token, end });
}

//! Sessions that end in silence right after an answer, one after the other: a client whose machine is cut off at that moment, and
//! that counts on what it has until its own deadlines.
//!
//! A client that goes on being heard hides an answer that should not have been given, as its next keepalive mends it. Here each
//! last answer must hold what it says for the whole TTL, whatever happens to marks, moves and leaders meanwhile. The locks are
//! the session's own, below the names that all others fight for, so that they move with those.

use std::io;

use holdfast_history::End;
use holdfast_locktable::{
    command::Wait,
    name::{Name, NameKind},
};
use rand::{Rng, SeedableRng};
use tokio::task::spawn_local;

use super::{
    Setting,
    acquire::{Acquire, USUAL_HASTE, Wish},
    pause,
    session::{Session, Who},
};
use crate::entropy::Dice;

/// The TTLs that are asked for, in milliseconds.
const TTLS_MS: [u64; 3] = [2_000, 3_000, 4_000];
/// Pause between the beginnings of two sessions, in milliseconds.
const BETWEEN_MS: std::ops::Range<u64> = 200..800;
/// How late the last keepalive is sent at most, in hundredths of the TTL.
const LATEST: u64 = 85;
/// Most locks of one session.
const LOCKS: u64 = 3;

/// Begins one session after the other until the run comes to an end.
pub async fn lapse(setting: Setting, who: Who, mut dice: Dice) {
    setting.begins();
    for number in 0_u64.. {
        if setting.stopping() {
            break;
        }
        setting.begins();
        spawn_local(one(setting.clone(), who, number, Dice::from_rng(&mut dice)));
        pause(dice.random_range(BETWEEN_MS)).await;
    }
    setting.ends();
}

/// The setting with locks that nobody else asks for, which move with those of all others.
///
/// # Errors
/// When such a name is not valid.
pub fn apart(setting: &Setting, who: Who) -> io::Result<Setting> {
    let names = setting.names.iter().filter(|name| name.kind() == NameKind::Lock);
    let own = names.map(|name| below(name, who, 0)).collect::<io::Result<Vec<_>>>()?;
    Ok(Setting { names: own.into(), ..setting.clone() })
}

fn below(name: &Name, who: Who, number: u64) -> io::Result<Name> {
    Name::lock(&format!("{}/{}-{number}", name.text(), who.client))
        .map_err(|error| io::Error::other(error.to_string()))
}

/// One session from its opening to its own deadline.
async fn one(setting: Setting, who: Who, number: u64, mut dice: Dice) {
    let ttl_ms = TTLS_MS[dice.random_range(0..TTLS_MS.len())];
    if let Some(session) = Session::open_for(&setting, who, ttl_ms, &mut dice).await {
        if take(&setting, who, &session, number, &mut dice).await {
            pause(dice.random_range(0..ttl_ms)).await;
            let after_ms = dice.random_range(0..ttl_ms * LATEST / 100);
            session.lapse(after_ms, dice.random_bool(0.5), &mut dice).await;
            session.over().await;
        }
        session.close(&mut dice).await;
    }
    setting.ends();
}

/// Takes some locks. Answers whether it is known of all how that ended.
async fn take(setting: &Setting, who: Who, session: &Session, number: u64, dice: &mut Dice) -> bool {
    for sequence in 1..=dice.random_range(1..=LOCKS) {
        let name = &setting.names[dice.random_range(0..setting.names.len())];
        let Ok(name) = below(name, who, number * LOCKS + sequence) else { return false };
        let wish = Wish { name, wait: Wait::Try, give_up_ms: None, haste: USUAL_HASTE, sequence };
        let tried = Acquire { setting, who, session, wish }.run(dice).await;
        if !matches!(tried.end, End::Granted(_)) {
            return false;
        }
    }
    true
}

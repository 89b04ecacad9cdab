//! Somebody who comes with a new session for every lock, is in a hurry, and stays for a while when it has been refused.
//!
//! So groups are asked that have never met the session, first at a member that may be cut off, then at another one; and
//! the session is still there when the first question arrives (rule R11).

use holdfast_history::End;
use holdfast_locktable::command::Wait;
use rand::Rng;

use super::{
    Setting,
    acquire::{Acquire, Wish},
    pause,
    session::{Session, Who},
};
use crate::entropy::Dice;

/// Share of its questions in which it loses patience.
const HASTE: f64 = 0.8;
/// How long it stays at most, in milliseconds.
const STAY_MS: u64 = 5_000;

/// Comes and goes until the run comes to an end.
pub async fn visit(setting: Setting, who: Who, mut dice: Dice) {
    setting.begins();
    while !setting.stopping() {
        pause(dice.random_range(0..500)).await;
        let Some(session) = Session::open(&setting, who, &mut dice).await else { break };
        let name = setting.names[dice.random_range(0..setting.names.len())].clone();
        let wish = Wish { name, wait: Wait::Try, give_up_ms: None, haste: HASTE, sequence: 1 };
        let tried = Acquire { setting: &setting, who, session: &session, wish }.run(&mut dice).await;
        // What it was granted goes with the session.
        if tried.end == End::Busy {
            stay(&setting, &session, dice.random_range(0..STAY_MS)).await;
        }
        session.close(&mut dice).await;
    }
    setting.ends();
}

async fn stay(setting: &Setting, session: &Session, ms: u64) {
    let until = setting.world.now() + ms;
    while setting.world.now() < until && !setting.stopping() && !session.is_over() {
        pause(100).await;
    }
}

//! Somebody who comes with a new session for every lock, is in a hurry, and stays for a while however that ended.
//!
//! So groups are asked that have never met the session, first at a member that may be cut off, then at another one; and
//! the session is still there when the first question arrives (rule R11). It must not stand in the queue then, at which they
//! look before they go. The locks are newcomers' own, so that they are free half of the time.

use holdfast_history::End;
use holdfast_locktable::{command::Wait, name::Name};
use rand::Rng;

use super::{
    Setting,
    acquire::{Acquire, Haste, Wish},
    observer, pause,
    session::{Session, Who},
};
use crate::entropy::Dice;

/// How soon it asks another member.
const HASTE: Haste = Haste { share: 0.8, most_ms: 300 };
/// How long it waits at most between the opening of its session and its try, in milliseconds.
const IDLE_MS: u64 = 1_500;
/// How long it holds at most, and how long it stays at most where it was refused, in milliseconds.
const HOLD_MS: u64 = 2_000;
const STAY_MS: u64 = 5_000;

/// Comes and goes until the run comes to an end.
pub async fn visit(setting: Setting, who: Who, names: Vec<Name>, mut dice: Dice) {
    setting.begins();
    while !setting.stopping() {
        let Some(session) = Session::open(&setting, who, &mut dice).await else { break };
        pause(dice.random_range(0..IDLE_MS)).await;
        let name = names[dice.random_range(0..names.len())].clone();
        let wish = Wish { name: name.clone(), wait: Wait::Try, give_up_ms: None, haste: HASTE, sequence: 1 };
        let tried = Acquire { setting: &setting, who, session: &session, wish }.run(&mut dice).await;
        match tried.end {
            // What it was granted goes with the session.
            End::Granted(_) => stay(&setting, &session, dice.random_range(0..HOLD_MS)).await,
            End::Busy => {
                stay(&setting, &session, dice.random_range(0..STAY_MS)).await;
                observer::look(&setting, who.node, &name, &mut dice).await;
            }
            End::TimedOut | End::Cancelled | End::SessionLost | End::Error | End::Unknown => {}
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

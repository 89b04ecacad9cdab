//! Somebody who tries all locks at all members all the time, and gives back at once what it is granted: so that refusals
//! come from whoever believes to lead, and name a holder that must still have held when it was asked for (rule R12).

use holdfast_history::End;
use holdfast_locktable::command::Wait;
use rand::Rng;

use super::{
    Setting,
    acquire::{Acquire, USUAL_HASTE, Wish},
    pause,
    session::{Session, Who},
};
use crate::entropy::Dice;

/// So many tries a session makes at most.
const TRIES: u64 = 25;

/// Tries until the run comes to an end.
pub async fn try_all(setting: Setting, who: Who, mut dice: Dice) {
    setting.begins();
    while !setting.stopping() {
        let Some(session) = Session::open(&setting, who, &mut dice).await else { break };
        for sequence in 1..=TRIES {
            pause(dice.random_range(10..50)).await;
            if setting.stopping() || session.is_over() {
                break;
            }
            let name = setting.names[dice.random_range(0..setting.names.len())].clone();
            let wish = Wish { name, wait: Wait::Try, give_up_ms: None, haste: USUAL_HASTE, sequence };
            let tried = Acquire { setting: &setting, who, session: &session, wish }.run(&mut dice).await;
            // What it was granted goes with the session.
            if tried.end != End::Busy {
                break;
            }
        }
        session.close(&mut dice).await;
    }
    setting.ends();
}

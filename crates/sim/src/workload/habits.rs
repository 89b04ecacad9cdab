//! How a client treats its session: how often it sends keepalives, and to whom.
//!
//! Most do as they should. Some are slow, and count on each acknowledgement for as long as it lasts; some stay with one
//! member, as a client does that has a connection.

use rand::Rng;

use super::{Setting, ask};
use crate::{entropy::Dice, network::Node};

/// The habits of one session.
#[derive(Clone, Copy, Debug)]
pub struct Habits {
    /// Pause between two keepalives, in hundredths of the TTL.
    pace: u64,
    /// The member that it stays with.
    favourite: Option<Node>,
}

impl Habits {
    /// Habits of a new session.
    pub fn new(setting: &Setting, dice: &mut Dice) -> Self {
        let pace = if dice.random_bool(0.3) { dice.random_range(40..88) } else { 33 };
        let favourite = dice.random_bool(0.5).then(|| ask::any(setting, dice));
        Self { pace, favourite }
    }

    /// How long to wait for the next keepalive, in milliseconds.
    pub fn pause_ms(self, ttl_ms: u64, dice: &mut Dice) -> u64 {
        ttl_ms * self.pace / 100 + dice.random_range(0..50)
    }

    /// Whom to send it to.
    pub fn member(self, setting: &Setting, dice: &mut Dice) -> Node {
        self.favourite.filter(|_| dice.random_bool(0.8)).unwrap_or_else(|| ask::any(setting, dice))
    }
}

//! What one client does, over and over: opens a session, fights for locks with it, and ends it in good order or not.

use holdfast_history::End;
use holdfast_locktable::{
    command::Wait,
    name::{Name, NameKind},
};
use rand::{Rng, SeedableRng};
use tokio::task::spawn_local;

use super::{
    Setting,
    acquire::{Acquire, Ended as Asked, USUAL_HASTE, Wish, token_of},
    echo::{self, Ended},
    hold::Hold,
    pause,
    session::{Session, Who},
};
use crate::entropy::Dice;

/// Share of the requests that come once more after their end, where they may.
const ECHOED: f64 = 0.3;
/// How soon they come, in milliseconds.
const SOON_MS: u64 = 300;
/// Share of the holds that last for seconds, of those that were asked for more than once.
const STEADY: f64 = 0.3;
/// The longest pause between two uses of such a hold, and of all others, in milliseconds.
const STEADY_STEP_MS: u64 = 2_500;
const STEP_MS: u64 = 50;
/// So many acquires of a session that is over come once more.
const LAST_ENDED: usize = 4;

/// One client.
#[derive(Debug)]
pub struct Client {
    setting: Setting,
    who: Who,
    dice: Dice,
}

/// How a client goes on after one lock.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Next {
    /// With the same session.
    Same,
    /// With a new one.
    New,
}

impl Client {
    /// A client that has done nothing yet.
    #[must_use]
    pub fn new(setting: Setting, who: Who, dice: Dice) -> Self {
        setting.begins();
        Self { setting, who, dice }
    }

    /// Lives until the run comes to an end.
    pub async fn run(mut self) {
        while !self.setting.stopping() {
            let Some(session) = Session::open(&self.setting, self.who, &mut self.dice).await else { break };
            let mut sequence = 0;
            let mut next = Next::Same;
            let mut ended = Vec::new();
            while next == Next::Same && !self.setting.stopping() && !session.is_over() {
                sequence += 1;
                next = self.one_lock(&session, sequence, &mut ended).await;
                pause(self.dice.random_range(0..80)).await;
            }
            if session.is_over() {
                self.acquires_once_more(&session, &ended);
            }
            session.close(&mut self.dice).await;
        }
        self.setting.ends();
    }

    /// The client counts on its session no more, and the service may still do so for a while, in one group longer than in
    /// another: its last acquires arrive once more.
    fn acquires_once_more(&mut self, session: &Session, ended: &[Ended]) {
        for end in ended.iter().rev().take(LAST_ENDED) {
            let (dice, end) = (Dice::from_rng(&mut self.dice), end.clone());
            let (setting, node, most_ms) = (self.setting.clone(), self.who.node, session.ttl_ms());
            spawn_local(echo::acquire(setting, node, end, most_ms, dice));
        }
    }

    async fn one_lock(&mut self, session: &Session, sequence: u64, ended: &mut Vec<Ended>) -> Next {
        let wish = self.wish(sequence);
        let name = wish.name.clone();
        let acquire = Acquire { setting: &self.setting, who: self.who, session, wish };
        let Asked { end, repeated } = acquire.run(&mut self.dice).await;
        let Some(token) = token_of(end) else {
            return match end {
                End::Busy | End::TimedOut | End::Cancelled => Next::Same,
                // A session that may hold or wait without knowing it is given up.
                End::Granted(_) | End::SessionLost | End::Error | End::Unknown => Next::New,
            };
        };
        let setting = self.setting.clone();
        self.release_once_more(ended, &name);
        let hold = Hold { setting: &setting, who: self.who, session, name, token };
        // What an earlier question of the same acquire does later, somebody must be there to suffer from.
        let step_ms = if repeated && self.dice.random_bool(STEADY) { STEADY_STEP_MS } else { STEP_MS };
        if !hold.work(step_ms, &mut self.dice).await {
            return Next::New;
        }
        if hold.name.kind() == NameKind::Election && !hold.proclaim(&mut self.dice).await {
            return Next::New;
        }
        match self.dice.random_range(0..100) {
            0..3 => self.die(session).await,
            3..7 => self.freeze(session, &hold).await,
            _ => {
                if !hold.release(&mut self.dice).await {
                    return Next::New;
                }
                let end = Ended { session: session.id(), name: hold.name, sequence, token };
                if self.dice.random_bool(ECHOED) {
                    let dice = Dice::from_rng(&mut self.dice);
                    let (setting, node) = (self.setting.clone(), self.who.node);
                    spawn_local(echo::acquire(setting, node, end.clone(), SOON_MS, dice));
                }
                ended.push(end);
                Next::Same
            }
        }
    }

    /// Now and then the release of an earlier hold of a lock comes again when the session has just been granted it anew.
    fn release_once_more(&mut self, ended: &[Ended], name: &Name) {
        if let Some(earlier) = ended.iter().rev().find(|earlier| earlier.name == *name)
            && self.dice.random_bool(ECHOED)
        {
            let dice = Dice::from_rng(&mut self.dice);
            spawn_local(echo::release(self.setting.clone(), self.who.node, earlier.clone(), dice));
        }
    }

    fn wish(&mut self, sequence: u64) -> Wish {
        let at = self.dice.random_range(0..self.setting.names.len());
        let (wait, give_up_ms) = match self.dice.random_range(0..10) {
            0..3 => (Wait::Try, None),
            3..6 => (Wait::AtMost(self.dice.random_range(1..4_000)), None),
            6..8 => (Wait::Unlimited, Some(self.dice.random_range(1..3_000))),
            _ => (Wait::Unlimited, None),
        };
        let name = self.setting.names[at].clone();
        Wish { name, wait, give_up_ms, haste: USUAL_HASTE, sequence }
    }

    /// The client's machine is gone; another takes its place later.
    async fn die(&mut self, session: &Session) -> Next {
        session.fall_silent();
        pause(self.dice.random_range(0..4_000)).await;
        Next::New
    }

    /// The client stands still for longer than its lease, and then goes on as if nothing had happened: what it writes
    /// then is what fencing tokens are for.
    async fn freeze(&mut self, session: &Session, hold: &Hold<'_>) -> Next {
        session.fall_silent();
        pause(session.ttl_ms() + self.dice.random_range(0..4_000)).await;
        hold.write(&mut self.dice).await;
        Next::New
    }
}

//! What a client does with a lock: writes to the resource it protects, gives the lock back, or stops as it stands.

use std::sync::Arc;

use bytes::Bytes;
use holdfast_history::{Fact, ReleaseEnd, SessionId as Id};
use holdfast_locktable::{ids::Token, name::Name};
use holdfast_node::endpoint::ErrorCode;
use rand::Rng;

use super::{
    Setting,
    ask::{self, Answer, Verb},
    pause,
    session::{Session, Who},
};
use crate::{check::fence, entropy::Dice};

const NS_PER_MS: u64 = 1_000_000;

/// A lock that a client was granted.
#[derive(Debug)]
pub struct Hold<'a> {
    /// What clients share.
    pub setting: &'a Setting,
    /// Who holds.
    pub who: Who,
    /// With which session.
    pub session: &'a Session,
    /// Which lock.
    pub name: Name,
    /// The fencing token.
    pub token: Token,
}

impl Hold<'_> {
    fn lock(&self) -> Arc<str> {
        self.name.text().into()
    }

    fn counts(&self) -> bool {
        !self.session.is_over()
            && !self.session.is_forced(&self.name, self.token)
            && self.setting.world.now() < self.session.hold_deadline_ms(&self.name)
    }

    /// Uses the lock a few times, with pauses of up to `step_ms`, as long as the client counts on it. Answers whether it still
    /// does.
    pub async fn work(&self, step_ms: u64, dice: &mut Dice) -> bool {
        for _ in 0..dice.random_range(0..4) {
            pause(dice.random_range(1..step_ms)).await;
            if !self.counts() {
                break;
            }
            self.write(dice).await;
        }
        if self.counts() {
            return true;
        }
        if !self.session.is_over() && !self.session.is_forced(&self.name, self.token) {
            self.setting.journal.note(Fact::HoldLost {
                client: self.who.client,
                session: Id(self.session.id().get()),
                lock: self.lock(),
                token: self.token.0,
            });
            self.session.let_go(&self.name);
        }
        false
    }

    /// Writes to the resource; the write takes a while to arrive, and nobody knows whether the lock is still held then.
    pub async fn write(&self, dice: &mut Dice) {
        let sent = self.setting.world.now();
        pause(dice.random_range(1..30)).await;
        let (lock, now) = (self.lock(), self.setting.world.now());
        let accepted = self.setting.resource.write(&lock, self.token.0);
        let deadline = if self.counts() { self.session.hold_deadline_ms(&self.name) } else { 0 };
        fence::judge(now, accepted, (&lock, self.token.0), deadline, &self.setting.findings);
        self.setting.journal.note(Fact::FencedWrite {
            object: lock.clone(),
            lock,
            token: self.token.0,
            sent: sent * NS_PER_MS,
            accepted,
        });
    }

    /// Says something as the leader of an election. Answers whether it is known to lead still.
    pub async fn proclaim(&self, dice: &mut Dice) -> bool {
        let (name, session, token) = (self.name.clone(), self.session.id(), self.token);
        let value = Bytes::from(dice.random_range(0..1_000_000).to_string());
        let verb: Verb<()> = Arc::new(move |endpoint| {
            let (name, value) = (name.clone(), value.clone());
            Box::pin(async move { endpoint.proclaim(name, session, token, value).await })
        });
        let member = ask::any(self.setting, dice);
        let answer = ask::ask(self.setting, self.who.node, member, "proclaim", verb).await;
        let lost = matches!(answer, Answer::No(_));
        if lost && self.counts() {
            let sentence = format!("{:?} leads {:?} and was told {answer:?}", session, self.name.text());
            self.setting.findings.add("P8", self.setting.world.now(), sentence);
        }
        !lost
    }

    /// Gives the lock back. Answers whether it is known how that ended.
    pub async fn release(&self, dice: &mut Dice) -> bool {
        let (client, session, lock, token) =
            (self.who.client, Id(self.session.id().get()), self.lock(), self.token.0);
        self.session.let_go(&self.name);
        self.setting.journal.note(Fact::ReleaseSent { client, session, lock: lock.clone(), token });
        let end = tokio::select! {
            biased;
            () = self.session.over() => ReleaseEnd::Unknown,
            end = self.released(dice) => end,
        };
        self.setting.journal.note(Fact::ReleaseEnded { client, session, lock, token, end });
        end != ReleaseEnd::Unknown
    }

    async fn released(&self, dice: &mut Dice) -> ReleaseEnd {
        let (name, session, token) = (self.name.clone(), self.session.id(), self.token);
        let verb: Verb<bool> = Arc::new(move |endpoint| {
            let name = name.clone();
            Box::pin(async move { endpoint.release(name, session, token).await })
        });
        loop {
            let member = ask::any(self.setting, dice);
            match ask::ask(self.setting, self.who.node, member, "release", verb.clone()).await {
                Answer::Done(_) => return ReleaseEnd::Released,
                Answer::No(error) if error.code == ErrorCode::NotHolder => return ReleaseEnd::NotHolder,
                Answer::No(_) => return ReleaseEnd::Unknown,
                Answer::Unknown => ask::again(dice).await,
            }
        }
    }
}

//! Somebody who takes part in a claim: joins with a session, works with the partitions that it is given, gives back what is
//! revoked, late at times, and goes in good order or not.
//!
//! It counts on a partition as on a lock: until its session's deadline in the claim's group, and no longer than it says so.

use std::{collections::BTreeMap, sync::Arc};

use holdfast_locktable::{
    ids::{Revision, Token},
    metadata::Metadata,
    name::Name,
};
use holdfast_node::endpoint::{
    Endpoint,
    types::claims::{JoinRequest, MemberView},
};
use holdfast_partitioner::GroupId;
use rand::Rng;

use super::{
    Setting,
    ask::{self, Answer, Verb},
    pause,
    session::{Session, Who},
};
use crate::{
    check::{fence, owners::Stake},
    entropy::Dice,
};

/// Partitions of every claim.
const PARTITIONS: u32 = 5;
/// Longest wait for news of a claim, in milliseconds.
const WAIT_MS: u64 = 1_500;
/// Share of the rounds in which what is revoked is given back.
const PROMPT: f64 = 0.7;

/// Takes part again and again until the run comes to an end.
pub async fn take_part(setting: Setting, who: Who, claims: Vec<Name>, mut dice: Dice) {
    setting.begins();
    while !setting.stopping() {
        let Some(session) = Session::open(&setting, who, &mut dice).await else { break };
        let claim = claims[dice.random_range(0..claims.len())].clone();
        let part =
            Part { setting: &setting, who, session: &session, claim, seen: None, has: BTreeMap::new() };
        part.live(&mut dice).await;
        session.close(&mut dice).await;
        pause(dice.random_range(0..1_000)).await;
    }
    setting.ends();
}

/// One session's part in a claim.
struct Part<'a> {
    setting: &'a Setting,
    who: Who,
    session: &'a Session,
    claim: Name,
    /// The newest revision that it was told.
    seen: Option<Revision>,
    /// What it may use, and in which group.
    has: BTreeMap<u32, (Token, GroupId)>,
}

/// How a round ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Next {
    Again,
    Gone,
}

impl Part<'_> {
    async fn live(mut self, dice: &mut Dice) {
        self.join(dice).await;
        while !self.session.is_over() && !self.setting.stopping() {
            let next = match dice.random_range(0..100) {
                0..3 => self.leave(dice).await,
                3..5 => self.drain(dice).await,
                5..8 => self.die(dice).await,
                8..11 => self.freeze(dice).await,
                _ => self.work(dice).await,
            };
            if next == Next::Gone {
                break;
            }
        }
        self.let_all_go();
    }

    fn now(&self) -> u64 {
        self.setting.world.now()
    }

    /// Asks any member for a verb, until one answers or the session is over.
    async fn insist<T: Send + 'static>(
        &self,
        kind: &'static str,
        dice: &mut Dice,
        verb: Verb<T>,
    ) -> Option<Answer<T>> {
        while !self.session.is_over() {
            let member = ask::any(self.setting, dice);
            match ask::ask(self.setting, self.who.node, member, kind, verb.clone()).await {
                Answer::Unknown => ask::again(dice).await,
                answer => return Some(answer),
            }
        }
        None
    }

    async fn join(&mut self, dice: &mut Dice) {
        self.session.asks();
        let weight = dice.random_range(1..3);
        let (name, session) = (self.claim.clone(), self.session.id());
        let verb: Verb<MemberView> = Arc::new(move |endpoint: Endpoint| {
            let name = name.clone();
            let join =
                JoinRequest { name, session, partitions: PARTITIONS, weight, metadata: Metadata::default() };
            Box::pin(async move { endpoint.join_claim(join).await })
        });
        if let Some(Answer::Done(view)) = self.insist("join", dice, verb).await {
            self.heard(view);
        }
    }

    /// Waits for news, works with what it has, and gives back what it should.
    async fn work(&mut self, dice: &mut Dice) -> Next {
        let (name, session, seen) = (self.claim.clone(), self.session.id(), self.seen);
        let wait_ms = dice.random_range(1..WAIT_MS);
        let verb: Verb<MemberView> = Arc::new(move |endpoint| {
            let name = name.clone();
            Box::pin(async move { endpoint.await_claim(name, session, seen, wait_ms).await })
        });
        let member = ask::any(self.setting, dice);
        let asked = ask::ask(self.setting, self.who.node, member, "await", verb).await;
        let revoked = match asked {
            Answer::Done(view) => self.heard(view),
            Answer::No(_) => return Next::Gone,
            Answer::Unknown => {
                ask::again(dice).await;
                Vec::new()
            }
        };
        self.write(dice).await;
        if !revoked.is_empty() && dice.random_bool(PROMPT) {
            self.give_back(revoked, dice).await;
        }
        Next::Again
    }

    /// Takes in what it was told, unless it knows something newer. Answers what it is to give back.
    fn heard(&mut self, view: MemberView) -> Vec<(u32, Token)> {
        let MemberView { group, membership } = view;
        if self.session.is_over() || self.seen.is_some_and(|seen| seen > membership.revision) {
            return Vec::new();
        }
        self.seen = Some(membership.revision);
        self.session.meets(group);
        let (revoked, keeps): (Vec<_>, Vec<_>) =
            membership.stakes.into_iter().partition(|stake| stake.revoking);
        let keeps: BTreeMap<u32, (Token, GroupId)> =
            keeps.into_iter().map(|stake| (stake.partition, (stake.token, group))).collect();
        for partition in self.has.keys().filter(|partition| !keeps.contains_key(*partition)) {
            self.setting.owners.strike(&self.claim, *partition, self.session.id());
        }
        self.has = keeps;
        revoked.into_iter().map(|stake| (stake.partition, stake.token)).collect()
    }

    /// Until when it counts on what it has in a group.
    fn deadline_ms(&self, group: GroupId) -> u64 {
        if self.session.is_over() { 0 } else { self.session.group_deadline_ms(group) }
    }

    /// Says what it counts on, and writes with some of it.
    async fn write(&self, dice: &mut Dice) {
        for (partition, (token, group)) in &self.has {
            let deadline_ms = self.deadline_ms(*group);
            if deadline_ms <= self.now() {
                continue;
            }
            let stake = Stake { session: self.session.id(), token: *token, deadline_ms };
            self.setting.owners.count(self.now(), &self.claim, *partition, stake, &self.setting.findings);
            if dice.random_bool(0.5) {
                pause(dice.random_range(1..20)).await;
                self.write_one(*partition, *token, *group);
            }
        }
    }

    /// Whatever holds by now, the write arrives; the resource has one object for each partition.
    fn write_one(&self, partition: u32, token: Token, group: GroupId) {
        let object = format!("{}#{partition}", self.claim.text());
        let taken = self.setting.resource.write(&object, token.0);
        let deadline_ms = self.deadline_ms(group);
        fence::judge(self.now(), taken, (&object, token.0), deadline_ms, &self.setting.findings);
    }

    async fn give_back(&mut self, revoked: Vec<(u32, Token)>, dice: &mut Dice) {
        let (name, session) = (self.claim.clone(), self.session.id());
        let verb: Verb<MemberView> = Arc::new(move |endpoint| {
            let (name, revoked) = (name.clone(), revoked.clone());
            Box::pin(async move { endpoint.give_back(name, session, revoked).await })
        });
        if let Some(Answer::Done(view)) = self.insist("give back", dice, verb).await {
            self.heard(view);
        }
    }

    fn let_all_go(&mut self) {
        for partition in std::mem::take(&mut self.has).into_keys() {
            self.setting.owners.strike(&self.claim, partition, self.session.id());
        }
    }

    async fn leave(&mut self, dice: &mut Dice) -> Next {
        self.let_all_go();
        let (name, session) = (self.claim.clone(), self.session.id());
        let verb: Verb<bool> = Arc::new(move |endpoint| {
            let name = name.clone();
            Box::pin(async move { endpoint.leave_claim(name, session).await })
        });
        drop(self.insist("leave", dice, verb).await);
        Next::Gone
    }

    /// It is to have nothing any more, and goes on giving back until it is out.
    async fn drain(&mut self, dice: &mut Dice) -> Next {
        let (name, session) = (self.claim.clone(), self.session.id());
        let verb: Verb<()> = Arc::new(move |endpoint| {
            let name = name.clone();
            Box::pin(async move { endpoint.drain_claim(name, session).await })
        });
        match self.insist("drain", dice, verb).await {
            Some(Answer::Done(())) => Next::Again,
            Some(Answer::No(_) | Answer::Unknown) | None => Next::Gone,
        }
    }

    /// Its machine is gone.
    async fn die(&mut self, dice: &mut Dice) -> Next {
        self.session.fall_silent();
        pause(dice.random_range(0..4_000)).await;
        Next::Gone
    }

    /// It stands still for longer than its lease, and then goes on as if nothing had happened.
    async fn freeze(&mut self, dice: &mut Dice) -> Next {
        self.session.fall_silent();
        pause(self.session.ttl_ms() + dice.random_range(0..4_000)).await;
        for (partition, (token, group)) in &self.has {
            self.write_one(*partition, *token, *group);
        }
        Next::Gone
    }
}

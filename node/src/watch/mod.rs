//! The watch fan-out of one group on one member: a thin actor over [`waits`] with [`told`], [`holds`], [`claims`] and
//! [`watchers`].
//!
//! Applied events come in, in revision order; the one waiter behind a deleted key hears first, then those who follow a hold,
//! then watchers. Waiting
//! calls live here, not in a poll loop. It knows no leases and no sockets.

pub mod claims;
pub mod give_ups;
pub mod holds;
pub mod told;
pub mod waits;
pub mod watchers;

use std::sync::Arc;

use actix::{
    Actor, ActorContext, ActorFutureExt, AsyncContext, Context, Handler, Message, SpawnHandle, WrapFuture,
};
use holdfast_locktable::{
    command::{Cancel, CancelReason, Command, IfGranted, RequestId},
    event::{Event, Fact, WaitEnd},
    ids::{Revision, SessionId},
    name::Name,
};
use tokio::sync::{mpsc, oneshot};

use self::{
    claims::Looks,
    give_ups::{GiveUps, Intent},
    holds::{Hold, Holds, Listener},
    told::AttemptId,
    waits::{Caller, CallerId, WaitKey, Waits},
    watchers::{Audience, Filter, Watchers},
};
use crate::{
    actors::Retire,
    clock::{Clock, Moment},
    group::proposer::{GroupError, Proposer},
};

/// Messages that may wait for the actor; all its messages are facts and are sent past the bound.
const MAILBOX: usize = 4_096;

/// What a waiting call hears in the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallEnd {
    /// The wait has ended in the log.
    Ended(WaitEnd),
    /// This member leads no more: ask the next leader with the same request id.
    LeaderLost,
    /// The range of the name has moved: ask its owner with the same request id.
    Elsewhere,
}

/// A call wants to hear how its request ends. Sent before the request is proposed.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub struct Attach {
    /// The wait.
    pub key: WaitKey,
    /// Its request id in full.
    pub request: RequestId,
    /// The call.
    pub caller: CallerId,
    /// For whom, and how its request stood before.
    pub who: Caller,
    /// Where it listens.
    pub tell: oneshot::Sender<CallEnd>,
}

/// A call has its answer.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub struct Settled {
    /// The wait.
    pub key: WaitKey,
    /// The call.
    pub caller: CallerId,
    /// The call at the endpoint that hears it.
    pub attempt: AttemptId,
    /// Whether it is a grant.
    pub granted: bool,
}

/// A call went away without an answer, or an endpoint says that its client did.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub struct Detached {
    /// The wait.
    pub key: WaitKey,
    /// Its request id in full.
    pub request: RequestId,
    /// The call, and how its request stands.
    pub who: Caller,
    /// How long the request may find another caller, in milliseconds.
    pub grace_ms: u64,
}

/// A call has attached while requests were being given up: it goes on once its own is not.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub struct OnceNotGivenUp {
    /// The wait.
    pub key: WaitKey,
    /// Where it listens.
    pub tell: oneshot::Sender<()>,
}

/// A grace has ended. It stands in line behind the calls that attached before.
#[derive(Debug, Message)]
#[rtype(result = "()")]
struct GraceEnded;

/// What applying entries changed: events for watchers, facts for waiting calls.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub struct Changes {
    /// In revision order.
    pub events: Vec<Arc<Event>>,
    /// In order.
    pub facts: Vec<Fact>,
}

/// This member leads the group from now on; these waits stand in the log.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub struct Promoted {
    /// Queue, session and request of each.
    pub waits: Vec<(Name, SessionId, RequestId)>,
}

/// This member leads the group no more.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub struct Demoted;

/// The table was replaced by a snapshot.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub struct Restored;

/// The replica here is not current any more: who follows a hold looks for it elsewhere.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub struct Outdated;

/// Somebody wants to see changes.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub struct Watch {
    /// Of these names.
    pub filter: Filter,
    /// After this revision.
    pub seen: Revision,
    /// Where it listens.
    pub queue: mpsc::Sender<Arc<Event>>,
}

/// Somebody wants to hear of the end of a hold.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub struct Follow {
    /// Of which.
    pub hold: Hold,
    /// Where it listens.
    pub listener: Listener,
}

/// A call wants to hear when what a session has of a claim changes. Sent before the call looks at the table.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub struct Look {
    /// The claim.
    pub name: Name,
    /// The member of the claim.
    pub session: SessionId,
    /// Where it listens; dropped without a word where this member leads no more.
    pub tell: oneshot::Sender<()>,
}

/// Who listens to one group on one member, by what they listen to. Clones are the same.
#[derive(Clone, Debug, Default)]
pub struct Audiences {
    /// To events.
    pub watchers: Audience,
    /// To the ends of holds.
    pub followers: Audience,
}

/// The watch fan-out of one group on one member.
#[derive(Debug)]
pub struct WatchFanout {
    proposer: Proposer,
    clock: Clock,
    leading: bool,
    waits: Waits<oneshot::Sender<CallEnd>>,
    give_ups: GiveUps,
    holds: Holds,
    looks: Looks,
    watchers: Watchers,
    timer: Option<(Moment, SpawnHandle)>,
}

impl WatchFanout {
    /// A fan-out to which nobody listens yet.
    pub fn new(proposer: Proposer, clock: Clock, audiences: Audiences, intent: Intent) -> Self {
        let (waits, holds) = (Waits::default(), Holds::new(audiences.followers));
        let watchers = Watchers::new(audiences.watchers);
        let give_ups = GiveUps::new(intent);
        let looks = Looks::default();
        Self { proposer, clock, leading: false, waits, give_ups, holds, looks, watchers, timer: None }
    }

    fn rearm(&mut self, ctx: &mut Context<Self>) {
        let Some(next) = self.waits.next_due() else { return };
        if self.timer.is_some_and(|(at, _)| at <= next) {
            return;
        }
        if let Some((_, handle)) = self.timer.take() {
            ctx.cancel_future(handle);
        }
        let handle = ctx.run_later(self.clock.now().until(next), |actor, ctx| {
            actor.timer = None;
            actor.give_ups.look_intended();
            ctx.address().do_send(GraceEnded);
        });
        self.timer = Some((next, handle));
    }

    fn give_up_abandoned(&mut self, ctx: &mut Context<Self>) {
        for (key, request) in self.waits.due(self.clock.now()) {
            if self.leading {
                self.give_up(key, request, ctx);
            }
        }
    }

    /// Cancels an abandoned wait. What is not agreed on is tried again: the leader may stay the same, and then nobody else
    /// would.
    fn give_up(&mut self, key: WaitKey, request: RequestId, ctx: &mut Context<Self>) {
        self.give_ups.begin(key.clone());
        let departed = self.waits.departed(&key.name);
        let cancel = Cancel {
            name: key.name.clone(),
            session: key.session,
            request: request.clone(),
            reason: CancelReason::Abandoned,
            granted: IfGranted::Release,
        };
        let proposer = self.proposer.clone();
        let work = async move { proposer.propose(Command::Cancel(cancel)).await };
        let done = work.into_actor(self).map(move |result, actor: &mut Self, ctx| {
            actor.give_ups.end(&key);
            match result {
                Ok(_) | Err(GroupError::Rejected(_)) => {}
                Err(error) => {
                    tracing::debug!(group = %actor.proposer.group(), %error, "an abandoned wait was not cancelled");
                    // Without leadership the next leader times the wait anew, and without the range the group that has it.
                    if actor.leading && actor.waits.departed(&key.name) == departed {
                        actor.waits.given_up_in_vain(key, request, actor.clock.now());
                        actor.rearm(ctx);
                    }
                }
            }
        });
        ctx.spawn(done);
    }

    fn learn(&mut self, fact: Fact) {
        match fact {
            Fact::Waiting { name, session, request: Some(request), .. } if self.leading => {
                self.waits.waiting(name, session, request, self.clock.now());
            }
            Fact::WaitEnded { name, session, request: Some(request), end } => {
                let key = WaitKey { name, session, request: (&request).into() };
                for caller in self.waits.ended(&key, end) {
                    // A caller that went away has detached; its request is given up in time.
                    let _ = caller.send(CallEnd::Ended(end));
                }
            }
            Fact::HoldEnded { name, token, reason, .. } => self.holds.ended(name, token, reason),
            Fact::ClaimChanged { name, session } => self.looks.changed(&name, session),
            Fact::RangeLeft { range, map_epoch } => {
                self.holds.left(&range, map_epoch);
                self.looks.left(&range);
                for caller in self.waits.left(&range, map_epoch) {
                    // As above.
                    let _ = caller.send(CallEnd::Elsewhere);
                }
            }
            Fact::Waiting { .. }
            | Fact::WaitEnded { .. }
            | Fact::SessionOpened { .. }
            | Fact::SessionArrived { .. }
            | Fact::SessionEnded { .. }
            | Fact::RenewalStopped { .. }
            | Fact::EndToTell { .. }
            | Fact::EndTold { .. }
            | Fact::EndRemembered { .. }
            | Fact::Marked { .. }
            | Fact::Cleared { .. } => {}
        }
    }
}

impl Actor for WatchFanout {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        ctx.set_mailbox_capacity(MAILBOX);
    }
}

impl Handler<Attach> for WatchFanout {
    type Result = ();

    fn handle(&mut self, call: Attach, _: &mut Self::Context) {
        self.waits.attach(call.key, call.request, call.caller, call.who, call.tell);
    }
}

impl Handler<Settled> for WatchFanout {
    type Result = ();

    fn handle(&mut self, call: Settled, _: &mut Self::Context) {
        self.waits.settled(&call.key, call.caller, call.attempt, call.granted);
    }
}

impl Handler<Detached> for WatchFanout {
    type Result = ();

    fn handle(&mut self, call: Detached, ctx: &mut Self::Context) {
        self.waits.detached(call.key, call.request, call.who, self.clock.now(), call.grace_ms);
        self.rearm(ctx);
    }
}

impl Handler<OnceNotGivenUp> for WatchFanout {
    type Result = ();

    fn handle(&mut self, call: OnceNotGivenUp, _: &mut Self::Context) {
        self.give_ups.once_over(&call.key, call.tell);
    }
}

impl Handler<GraceEnded> for WatchFanout {
    type Result = ();

    fn handle(&mut self, _: GraceEnded, ctx: &mut Self::Context) {
        self.give_up_abandoned(ctx);
        self.give_ups.looked();
        self.rearm(ctx);
    }
}

impl Handler<Changes> for WatchFanout {
    type Result = ();

    fn handle(&mut self, changes: Changes, ctx: &mut Self::Context) {
        for fact in changes.facts {
            self.learn(fact);
        }
        self.watchers.publish(&changes.events);
        self.rearm(ctx);
    }
}

impl Handler<Promoted> for WatchFanout {
    type Result = ();

    fn handle(&mut self, promoted: Promoted, ctx: &mut Self::Context) {
        self.leading = true;
        self.waits.promote(promoted.waits, self.clock.now());
        self.rearm(ctx);
    }
}

impl Handler<Demoted> for WatchFanout {
    type Result = ();

    fn handle(&mut self, _: Demoted, _: &mut Self::Context) {
        self.leading = false;
        self.looks = Looks::default();
        for caller in self.waits.demote() {
            // As above: nobody there, nothing to tell.
            let _ = caller.send(CallEnd::LeaderLost);
        }
    }
}

impl Handler<Restored> for WatchFanout {
    type Result = ();

    fn handle(&mut self, _: Restored, _: &mut Self::Context) {
        self.holds.restored();
        self.watchers.restored();
    }
}

impl Handler<Outdated> for WatchFanout {
    type Result = ();

    fn handle(&mut self, _: Outdated, _: &mut Self::Context) {
        self.holds.restored();
    }
}

impl Handler<Retire> for WatchFanout {
    type Result = ();

    fn handle(&mut self, _: Retire, ctx: &mut Self::Context) {
        self.holds.restored();
        self.watchers.restored();
        ctx.stop();
    }
}

impl Handler<Watch> for WatchFanout {
    type Result = ();

    fn handle(&mut self, watch: Watch, _: &mut Self::Context) {
        self.watchers.add(watch.filter, watch.seen, watch.queue);
    }
}

impl Handler<Look> for WatchFanout {
    type Result = ();

    fn handle(&mut self, look: Look, _: &mut Self::Context) {
        // What is asked of one that leads no more is asked of the next.
        if self.leading {
            self.looks.add(look.name, look.session, look.tell);
        }
    }
}

impl Handler<Follow> for WatchFanout {
    type Result = ();

    fn handle(&mut self, follow: Follow, _: &mut Self::Context) {
        self.holds.follow(follow.hold, follow.listener);
    }
}

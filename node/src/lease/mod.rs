//! The lease manager of one group: a thin actor over [`state`].
//!
//! It owns the timers and proposes what they decide. It knows no keys and no queues.

pub mod state;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use actix::{
    Actor, ActorContext, ActorFutureExt, AsyncContext, Context, Handler, Message, MessageResult,
    ResponseFuture, SpawnHandle, WrapFuture,
};
use holdfast_locktable::{
    command::Command,
    event::Fact,
    ids::{MoveNumber, SessionEpoch, SessionId, Term},
    mutant,
    outcome::Outcome,
};
use tokio::sync::oneshot;

use self::state::{Action, Heard, Known, Leases, RETRY_MS};
use crate::{
    actors::Retire,
    clock::{Clock, Moment},
    group::{
        figures::GroupMetrics,
        proposer::{GroupError, Proposer},
    },
};

/// Messages that may wait for the actor. Facts are sent past the bound, so only keepalive batches feel it.
const MAILBOX: usize = 4_096;

/// This member leads the group from now on.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub struct Promoted {
    /// The term.
    pub term: Term,
    /// The sessions of the table.
    pub known: Vec<Known>,
    /// The remembered ends of the table.
    pub tombstones: Vec<(SessionId, SessionEpoch)>,
    /// How long the group grants nothing, after a restore.
    pub paused_ms: Option<u64>,
}

/// This member leads the group no more.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub struct Demoted;

/// What applying entries told of sessions.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub struct SessionFacts(pub Vec<Fact>);

/// Keepalives were received.
#[derive(Debug, Message)]
#[rtype(result = "Result<Vec<Heard>, NotLeading>")]
pub struct Keepalives {
    /// Of these sessions.
    pub sessions: Arc<[SessionId]>,
    /// At this moment.
    pub at: Moment,
}

/// A quorum round that began after the keepalives has proven leadership: how do the sessions stand?
#[derive(Debug, Message)]
#[rtype(result = "Result<Vec<Standing>, NotLeading>")]
pub struct Standings(pub Arc<[SessionId]>);

/// How long do these sessions have left?
#[derive(Debug, Message)]
#[rtype(result = "Vec<Option<u64>>")]
pub struct LeftMs(pub Vec<SessionId>);

/// Sessions are about to come with a range. From now on nothing expires and nobody is marked: what was decided without knowing
/// of them would be applied behind them. Answered once nothing is on its way that was decided before.
#[derive(Clone, Copy, Debug, Message)]
#[rtype(result = "()")]
pub struct Arriving(pub MoveNumber);

/// What came with a range is known by now, or will not come.
#[derive(Clone, Copy, Debug, Message)]
#[rtype(result = "()")]
pub struct Arrived(pub MoveNumber);

/// The actor leads no group right now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotLeading;

/// How a session stands after a quorum round.
#[derive(Debug)]
pub enum Standing {
    /// Renewed.
    Renewed {
        /// TTL in milliseconds.
        ttl_ms: u64,
    },
    /// Ended, or not renewed any more.
    Lost,
    /// Not known here.
    Unknown,
    /// Its expiry is on its way: this says how it went.
    Pending(oneshot::Receiver<ExpiryEnd>),
}

/// How a proposed expiry went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExpiryEnd {
    /// It was applied.
    Ended,
    /// It was refused, or leadership was lost; the session may live on.
    NotDecided,
}

/// The lease manager of one group.
#[derive(Debug)]
pub struct LeaseManager {
    proposer: Proposer,
    clock: Clock,
    metrics: GroupMetrics,
    leases: Option<Leases>,
    held: BTreeMap<SessionId, Vec<oneshot::Sender<ExpiryEnd>>>,
    timer: Option<(Moment, SpawnHandle)>,
    /// Moves that bring sessions, between the moment before they are proposed and what comes of them.
    arrivals: BTreeSet<MoveNumber>,
    /// Told once nothing is proposed and not decided.
    still: Vec<oneshot::Sender<()>>,
}

impl LeaseManager {
    /// A lease manager that leads nothing yet.
    pub fn new(proposer: Proposer, clock: Clock, metrics: GroupMetrics) -> Self {
        let (held, arrivals, still) = (BTreeMap::new(), BTreeSet::new(), Vec::new());
        Self { proposer, clock, metrics, leases: None, held, timer: None, arrivals, still }
    }

    /// Makes sure that the timer rings when the state wants to look.
    fn rearm(&mut self, ctx: &mut Context<Self>) {
        self.tell_still();
        // What is decided now would come behind sessions that nobody here knows of yet.
        let Some(leases) = self.leases.as_mut().filter(|_| self.arrivals.is_empty()) else { return };
        let next = leases.next_look();
        if self.timer.is_some_and(|(at, _)| at <= next) {
            return;
        }
        if let Some((_, handle)) = self.timer.take() {
            ctx.cancel_future(handle);
        }
        leases.look_due(next);
        let handle = ctx.run_later(self.clock.now().until(next), |actor, ctx| {
            actor.timer = None;
            actor.look(ctx);
        });
        self.timer = Some((next, handle));
    }

    /// Tells whoever waits for it that nothing is on its way.
    fn tell_still(&mut self) {
        if self.leases.as_ref().is_none_or(Leases::is_quiet) {
            for waiting in self.still.drain(..) {
                // One that went away need not hear.
                let _ = waiting.send(());
            }
        }
    }

    fn look(&mut self, ctx: &mut Context<Self>) {
        let Some(leases) = self.leases.as_mut().filter(|_| self.arrivals.is_empty()) else { return };
        let term = leases.term();
        for action in leases.look(self.clock.now()) {
            match action {
                Action::Expire(sessions) => self.expire(sessions, term, ctx),
                Action::Mark(sessions) => self.mark(sessions, term, ctx),
                Action::Resume => self.resume(term, ctx),
                Action::Forget(ends) => {
                    let forgotten = propose_bookkeeping(self.proposer.clone(), Command::ForgetEnds { ends });
                    ctx.spawn(forgotten.into_actor(self).map(|_, _, _| ()));
                }
            }
        }
        self.rearm(ctx);
    }

    fn mark(&self, sessions: Vec<(SessionId, SessionEpoch, u64)>, term: Term, ctx: &mut Context<Self>) {
        let command = Command::Checkpoint { marked: sessions.clone(), cleared: Vec::new(), term };
        let done = propose_bookkeeping(self.proposer.clone(), command).into_actor(self);
        ctx.spawn(done.map(move |result, actor, ctx| {
            let now = actor.clock.now();
            if let Some(leases) = actor.leases_of(term) {
                match result {
                    Ok(_) => leases.mark_done(now),
                    Err(error) if error.not_executed() => leases.mark_failed(&sessions, now),
                    Err(_) => leases.mark_failed(&[], now),
                }
            }
            actor.rearm(ctx);
        }));
    }

    fn resume(&self, term: Term, ctx: &mut Context<Self>) {
        let done = propose_bookkeeping(self.proposer.clone(), Command::ResumeGrants(term));
        ctx.spawn(done.into_actor(self).map(move |result, actor, ctx| {
            match result {
                Ok(_) => {
                    tracing::info!(group = %actor.proposer.group(), "the pause after the restore is over: locks are granted")
                }
                Err(_) => {
                    let now = actor.clock.now();
                    if let Some(leases) = actor.leases_of(term) {
                        leases.resume_failed(now);
                    }
                }
            }
            actor.rearm(ctx);
        }));
    }

    /// The leases, if they are still those of this term.
    fn leases_of(&mut self, term: Term) -> Option<&mut Leases> {
        self.leases.as_mut().filter(|leases| leases.term() == term)
    }

    fn expire(&self, sessions: Vec<(SessionId, SessionEpoch)>, term: Term, ctx: &mut Context<Self>) {
        let proposer = self.proposer.clone();
        let decided = self.clock.now();
        let command = Command::ExpireSessions { sessions: sessions.clone(), term };
        let work = async move {
            if mutant!("expiry-of-an-earlier-term") {
                return propose_in_any_term(&proposer, command).await;
            }
            proposer.propose(command).await
        };
        let done = work.into_actor(self).map(move |result, actor: &mut Self, ctx| {
            actor.expiry_done(&sessions, term, result.err(), decided);
            actor.rearm(ctx);
        });
        ctx.spawn(done);
    }

    fn expiry_done(
        &mut self,
        sessions: &[(SessionId, SessionEpoch)],
        term: Term,
        failed: Option<GroupError>,
        decided: Moment,
    ) {
        let now = self.clock.now();
        if let Some(leases) = self.leases_of(term) {
            leases.expiry_done(sessions, !matches!(failed, Some(GroupError::Unknown)), now);
        }
        match failed {
            None => {
                let took_ms = self.clock.now().since_ms(decided);
                self.metrics.expired(Duration::from_millis(took_ms));
            }
            Some(error) => {
                tracing::info!(group = %self.proposer.group(), %error, sessions = sessions.len(), "expiry was not committed");
            }
        }
        // Sessions that did end were answered by their facts; the others were not decided.
        for (session, _) in sessions {
            self.answer_held(*session, ExpiryEnd::NotDecided);
        }
    }

    fn answer_held(&mut self, session: SessionId, end: ExpiryEnd) {
        for caller in self.held.remove(&session).unwrap_or_default() {
            // A caller that went away needs no answer.
            let _ = caller.send(end);
        }
    }

    fn learn(&mut self, fact: &Fact) {
        let now = self.clock.now();
        let Some(leases) = &mut self.leases else { return };
        match fact {
            Fact::SessionOpened { session, epoch, ttl_ms } => leases.opened(*session, *epoch, *ttl_ms, now),
            Fact::SessionArrived { session, epoch, ttl_ms, left_ms, renewal_stopped } => {
                let (session, epoch, ttl_ms) = (*session, *epoch, *ttl_ms);
                let (marked_ms, renewal_stopped) = (Some(*left_ms), *renewal_stopped);
                leases.arrived(Known { session, epoch, ttl_ms, marked_ms, renewal_stopped }, now);
            }
            Fact::SessionEnded { session, epoch, .. } => {
                leases.ended(*session, *epoch);
                self.answer_held(*session, ExpiryEnd::Ended);
            }
            Fact::RenewalStopped { session, epoch } => leases.renewal_stopped(*session, *epoch),
            Fact::EndRemembered { session, epoch } => leases.end_remembered(*session, *epoch, now),
            Fact::Marked { session, .. } => leases.marked(*session),
            Fact::Cleared { session } => leases.cleared(*session),
            Fact::EndToTell { .. }
            | Fact::EndTold { .. }
            | Fact::RangeLeft { .. }
            | Fact::Waiting { .. }
            | Fact::WaitEnded { .. }
            | Fact::HoldEnded { .. }
            | Fact::ClaimChanged { .. } => {}
        }
    }

    fn standing(&mut self, session: SessionId) -> Option<Standing> {
        let now = self.clock.now();
        let leases = self.leases.as_mut()?;
        Some(match leases.heard(session, Moment(0)) {
            Heard::Alive { ttl_ms } if leases.left_ms(session, now).is_some() => Standing::Renewed { ttl_ms },
            // The mark came back while the round ran: the next keepalive clears it.
            Heard::Marked { .. } | Heard::Alive { .. } => {
                let (tell, heard) = oneshot::channel();
                let _ = tell.send(ExpiryEnd::NotDecided);
                Standing::Pending(heard)
            }
            Heard::Expiring => {
                let (tell, heard) = oneshot::channel();
                self.held.entry(session).or_default().push(tell);
                Standing::Pending(heard)
            }
            Heard::Stopped => Standing::Lost,
            Heard::Unknown => Standing::Unknown,
        })
    }
}

/// Proposes what may fail without harm, since it is decided anew later.
async fn propose_bookkeeping(proposer: Proposer, command: Command) -> Result<Outcome, GroupError> {
    proposer.propose(command).await.inspect_err(|error| {
        tracing::debug!(group = %proposer.group(), %error, "lease bookkeeping was not committed");
    })
}

/// The fault `expiry-of-an-earlier-term`: an expiry is proposed again until it is decided, whoever leads meanwhile.
async fn propose_in_any_term(proposer: &Proposer, command: Command) -> Result<Outcome, GroupError> {
    loop {
        match proposer.propose(command.clone()).await {
            Err(GroupError::NotLeader { .. } | GroupError::Unknown | GroupError::Overloaded) => {
                tokio::time::sleep(Duration::from_millis(RETRY_MS)).await;
            }
            decided => return decided,
        }
    }
}

impl Actor for LeaseManager {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        ctx.set_mailbox_capacity(MAILBOX);
    }
}

impl Handler<Promoted> for LeaseManager {
    type Result = ();

    fn handle(&mut self, promoted: Promoted, ctx: &mut Self::Context) {
        let now = self.clock.now();
        let mut leases = Leases::promote(promoted.term, now, promoted.known, promoted.tombstones);
        if let Some(pause_ms) = promoted.paused_ms {
            leases.paused(pause_ms, now);
        }
        self.leases = Some(leases);
        if let Some((_, handle)) = self.timer.take() {
            ctx.cancel_future(handle);
        }
        self.rearm(ctx);
    }
}

impl Handler<Retire> for LeaseManager {
    type Result = ();

    fn handle(&mut self, _: Retire, ctx: &mut Self::Context) {
        ctx.stop();
    }
}

impl Handler<Demoted> for LeaseManager {
    type Result = ();

    fn handle(&mut self, _: Demoted, _: &mut Self::Context) {
        if mutant!("expiry-of-an-earlier-term") {
            return;
        }
        self.leases = None;
        self.arrivals.clear();
        self.tell_still();
        let held: Vec<SessionId> = self.held.keys().copied().collect();
        for session in held {
            self.answer_held(session, ExpiryEnd::NotDecided);
        }
    }
}

impl Handler<Arriving> for LeaseManager {
    type Result = ResponseFuture<()>;

    fn handle(&mut self, Arriving(number): Arriving, _: &mut Self::Context) -> Self::Result {
        if self.leases.is_some() {
            self.arrivals.insert(number);
        }
        let (tell, told) = oneshot::channel();
        self.still.push(tell);
        self.tell_still();
        // Dropped without a word only with the actor.
        Box::pin(async move { drop(told.await) })
    }
}

impl Handler<Arrived> for LeaseManager {
    type Result = ();

    fn handle(&mut self, Arrived(number): Arrived, ctx: &mut Self::Context) {
        self.arrivals.remove(&number);
        self.rearm(ctx);
    }
}

impl Handler<SessionFacts> for LeaseManager {
    type Result = ();

    fn handle(&mut self, facts: SessionFacts, ctx: &mut Self::Context) {
        for fact in &facts.0 {
            self.learn(fact);
        }
        self.rearm(ctx);
    }
}

impl Handler<Keepalives> for LeaseManager {
    type Result = MessageResult<Keepalives>;

    fn handle(&mut self, batch: Keepalives, _: &mut Self::Context) -> Self::Result {
        let heard =
            |leases: &mut Leases| batch.sessions.iter().map(|id| leases.heard(*id, batch.at)).collect();
        MessageResult(self.leases.as_mut().map(heard).ok_or(NotLeading))
    }
}

impl Handler<Standings> for LeaseManager {
    type Result = MessageResult<Standings>;

    fn handle(&mut self, sessions: Standings, _: &mut Self::Context) -> Self::Result {
        let standings: Option<Vec<Standing>> = sessions.0.iter().map(|id| self.standing(*id)).collect();
        MessageResult(standings.ok_or(NotLeading))
    }
}

impl Handler<LeftMs> for LeaseManager {
    type Result = MessageResult<LeftMs>;

    fn handle(&mut self, sessions: LeftMs, _: &mut Self::Context) -> Self::Result {
        let now = self.clock.now();
        let left = |id: &SessionId| self.leases.as_ref().and_then(|leases| leases.left_ms(*id, now));
        MessageResult(sessions.0.iter().map(left).collect())
    }
}

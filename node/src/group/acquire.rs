//! Acquiring at the leader: look, meet the session, register interest, propose, wait.
//!
//! Every step may be repeated by the caller with the same request id; the state answers the same (rule R8). Does not
//! know how the caller is connected: a caller that goes away drops the future.

use std::time::Duration;

use holdfast_locktable::{
    command::{
        Acquire, Attach as FirstContact, Cancel, CancelReason, Command, IfGranted, Repeat, RequestId, Wait,
    },
    event::{Removal, WaitEnd},
    ids::{SessionEpoch, SessionId, Term, Token},
    mutant,
    name::Name,
    outcome::{CancelOutcome, Outcome, Rejection},
    table::{LockTable, RequestState},
};
use tokio::{sync::oneshot, time::Instant};

use super::{
    Group,
    call::{GroupAnswer, GroupCall, GroupResult},
    proposer::GroupError,
};
use crate::{
    endpoint::types::AcquireRequest,
    watch::{
        Attach, CallEnd, Detached, OnceNotGivenUp, Settled,
        told::AttemptId,
        waits::{Caller, CallerId, LOST_GRACE_MS, RequestKey, WaitKey},
    },
};

/// How old the home's word on a session may be when it is used, in milliseconds (rule R4).
const FIRST_CONTACT_MS: u64 = 5_000;
/// How often a session may be met anew within one call: once, and once more where the term changed in between.
pub(super) const MEETINGS: u32 = 3;

/// How an acquire ended.
enum Ended {
    Granted(Token),
    NotGranted(Removal),
}

/// How a session stands in this group before an acquire.
enum Standing {
    Known(SessionEpoch),
    Unknown,
}

impl Group {
    pub(super) async fn acquire(&self, attempt: AttemptId, request: AcquireRequest) -> GroupResult {
        let started = Instant::now();
        self.admit_acquire(&request)?;
        if matches!(request.wait, Wait::Try) && self.looks_busy(&request) {
            self.refuse_if_busy(&request).await?;
        }
        // Read before anything is proposed: a grant that comes later is known to stand here under this epoch at least. One that
        // were read too late could hide that the hold has left in between.
        let epoch = self.locks(LockTable::ownership_epoch);
        let mut interest = Interest::register(self, attempt, &request);
        self.until_not_given_up(&interest).await;
        let result = self.acquire_registered(&request, &mut interest, started).await;
        // Whatever it is, the caller is about to hear it. Only a dropped future detaches.
        interest.settle(matches!(result, Ok(Ended::Granted(_))));
        let result = result.map(|ended| match ended {
            Ended::Granted(token) => GroupAnswer::Granted { token, epoch },
            Ended::NotGranted(removal) => GroupAnswer::NotGranted(removal),
        });
        self.parts.metrics.acquired(&request.name, started.elapsed(), &result);
        result
    }

    async fn acquire_registered(
        &self,
        request: &AcquireRequest,
        interest: &mut Interest,
        started: Instant,
    ) -> Result<Ended, GroupError> {
        match self.propose_acquire(request).await? {
            Outcome::Granted { token } => Ok(Ended::Granted(token)),
            Outcome::Queued { ahead, .. } => {
                self.parts.metrics.queued(ahead);
                self.wait(request, interest, started).await
            }
            other => Err(GroupError::Fatal(format!("an acquire was answered with {other:?}"))),
        }
    }

    /// A request that nobody came back for may be under its cancel: nothing is proposed for it until that is decided.
    async fn until_not_given_up(&self, interest: &Interest) {
        if self.parts.giving_up.any() {
            let (tell, over) = oneshot::channel();
            self.parts.fanout.do_send(OnceNotGivenUp { key: interest.key.clone(), tell });
            // A fan-out that has gone gives nothing up.
            let _ = over.await;
        }
    }

    /// Rule R12: a try is first read here, and only a proven leader's word counts.
    fn looks_busy(&self, request: &AcquireRequest) -> bool {
        self.locks(|table| {
            table.holder(&request.name).is_some_and(|(session, ..)| session != request.session)
        })
    }

    async fn refuse_if_busy(&self, request: &AcquireRequest) -> Result<(), GroupError> {
        if !mutant!("busy-without-proof") {
            self.confirm().await?;
        }
        self.locks(|table| {
            table.owns(&request.name).map_err(GroupError::Rejected)?;
            match table.holder(&request.name) {
                Some((holder, token, waiters)) if holder != request.session => {
                    Err(GroupError::Rejected(Rejection::Busy { holder, token, waiters }))
                }
                Some(_) | None => Ok(()),
            }
        })
    }

    /// Proves by a quorum round that this member leads.
    pub(super) async fn confirm(&self) -> Result<Term, GroupError> {
        match self.parts.raft.confirm_leadership().await {
            Ok(term) => Ok(term),
            Err(error) => Err(GroupError::NotLeader { leader: error.leader }),
        }
    }

    async fn propose_acquire(&self, request: &AcquireRequest) -> Result<Outcome, GroupError> {
        self.propose_for(request.session, |epoch, attach| acquire_command(request, epoch, attach)).await
    }

    /// Proposes a command on behalf of a session; one that this group does not know is met at its home first (rule R4).
    pub(super) async fn propose_for(
        &self,
        session: SessionId,
        command: impl Fn(SessionEpoch, Option<FirstContact>) -> Command,
    ) -> Result<Outcome, GroupError> {
        let mut last = GroupError::Unknown;
        for _ in 0..MEETINGS {
            let (epoch, attach) = match self.proven_standing(session).await? {
                Standing::Known(epoch) => (epoch, None),
                Standing::Unknown => {
                    let (epoch, contact) = self.meet(session).await?;
                    (epoch, Some(contact))
                }
            };
            match self.parts.proposer.propose(command(epoch, attach)).await {
                // The session came or went, or the term changed, between the look and the entry.
                Err(
                    error @ GroupError::Rejected(Rejection::SessionUnknown { .. } | Rejection::StaleTerm),
                ) => last = error,
                Err(GroupError::Rejected(Rejection::SessionLost { .. }))
                    if self.met_again(session, epoch) =>
                {
                    last = GroupError::Unknown;
                }
                result => return result,
            }
        }
        match last {
            GroupError::Rejected(_) => Err(GroupError::NotLeader { leader: self.leader() }),
            other => Err(other),
        }
    }

    /// Like [`Group::standing`]; that a session is not known at its home ends it, and only a proven leader may say so.
    async fn proven_standing(&self, session: SessionId) -> Result<Standing, GroupError> {
        let standing = self.standing(session);
        if matches!(standing, Standing::Unknown) && (self.parts.home_of)(session) == self.id() {
            self.confirm().await?;
            return Ok(self.standing(session));
        }
        Ok(standing)
    }

    fn standing(&self, session: SessionId) -> Standing {
        self.locks(|table| match table.session_epoch(session) {
            Some(epoch) => Standing::Known(epoch),
            None => Standing::Unknown,
        })
    }

    /// A caller that comes or goes, with how its request stands in this member's table.
    pub(super) fn caller(
        &self,
        id: Option<CallerId>,
        attempt: AttemptId,
        name: &Name,
        session: SessionId,
        request: &RequestId,
    ) -> Caller {
        self.locks(|table| {
            let held = matches!(table.request_state(session, name, request), RequestState::Holds { .. });
            let owner = table.holds_range_of(name).then(|| table.ownership_epoch());
            Caller { id, attempt, held, owner }
        })
    }

    /// Whether the session stands here under another epoch than the one just refused.
    fn met_again(&self, session: SessionId, refused: SessionEpoch) -> bool {
        matches!(self.standing(session), Standing::Known(epoch) if epoch != refused)
    }

    /// Asks the session's home, which attaches this group to it.
    pub(super) async fn meet(&self, session: SessionId) -> Result<(SessionEpoch, FirstContact), GroupError> {
        let home = (self.parts.home_of)(session);
        if home == self.id() {
            return Err(GroupError::Rejected(Rejection::SessionLost { session }));
        }
        let term = self.leads().ok_or_else(|| GroupError::NotLeader { leader: self.leader() })?;
        let call = GroupCall::AttachSession { session, group: self.id() };
        let asked =
            tokio::time::timeout(Duration::from_millis(FIRST_CONTACT_MS), (self.parts.outward)(home, call));
        match asked.await {
            Ok(Ok(GroupAnswer::Session { epoch, ttl_ms, metadata })) => {
                Ok((epoch, FirstContact { home, ttl_ms, metadata, term }))
            }
            Ok(Ok(other)) => Err(GroupError::Fatal(format!("an attachment was answered with {other:?}"))),
            // The home leads the session's life; whatever keeps it from answering keeps the acquire from starting.
            Ok(Err(GroupError::NotLeader { .. } | GroupError::Unknown)) | Err(_) => {
                Err(GroupError::HomeUnavailable { home })
            }
            Ok(Err(error)) => Err(error),
        }
    }

    async fn wait(
        &self,
        request: &AcquireRequest,
        interest: &mut Interest,
        started: Instant,
    ) -> Result<Ended, GroupError> {
        let limit = match request.wait {
            Wait::AtMost(ms) => Some(started + Duration::from_millis(ms)),
            Wait::Try | Wait::Unlimited => None,
        };
        let end = match limit {
            Some(limit) => tokio::select! {
                biased;
                end = &mut interest.hear => end,
                () = tokio::time::sleep_until(limit) => return self.time_out(request, interest).await,
            },
            None => (&mut interest.hear).await,
        };
        self.answer(end)
    }

    /// Rule R9: the wait has timed out only once its cancel is applied; if the grant came first, the call is granted.
    async fn time_out(&self, request: &AcquireRequest, interest: &mut Interest) -> Result<Ended, GroupError> {
        let cancel = Cancel {
            name: request.name.clone(),
            session: request.session,
            request: request.request.clone(),
            reason: CancelReason::TimedOut,
            granted: IfGranted::Keep,
        };
        if mutant!("timeout-without-its-cancel") {
            return Ok(Ended::NotGranted(Removal::TimedOut));
        }
        match self.cancel(cancel).await? {
            CancelOutcome::Cancelled => Ok(Ended::NotGranted(Removal::TimedOut)),
            CancelOutcome::Granted { token, .. } => Ok(Ended::Granted(token)),
            // Something else ended the wait; its fact is on the way.
            CancelOutcome::None => {
                let end = (&mut interest.hear).await;
                self.answer(end)
            }
        }
    }

    fn answer(&self, end: Result<CallEnd, oneshot::error::RecvError>) -> Result<Ended, GroupError> {
        match end {
            Ok(CallEnd::Ended(WaitEnd::Granted { token })) => Ok(Ended::Granted(token)),
            Ok(CallEnd::Ended(WaitEnd::Removed(removal))) => Ok(Ended::NotGranted(removal)),
            Ok(CallEnd::Elsewhere) => Err(GroupError::Rejected(Rejection::NotOwner)),
            Ok(CallEnd::LeaderLost) | Err(_) => Err(GroupError::NotLeader { leader: self.leader() }),
        }
    }
}

fn acquire_command(request: &AcquireRequest, epoch: SessionEpoch, attach: Option<FirstContact>) -> Command {
    Command::Acquire(Acquire {
        name: request.name.clone(),
        session: request.session,
        epoch,
        attach,
        request: request.request.clone(),
        wait: request.wait,
        metadata: request.metadata.clone(),
        value: request.value.clone(),
        repeat: Repeat::Refuse,
    })
}

/// A call's interest in how its request ends. Dropped without having been settled, it detaches the call.
struct Interest {
    group: Group,
    key: WaitKey,
    request: RequestId,
    caller: CallerId,
    attempt: AttemptId,
    hear: oneshot::Receiver<CallEnd>,
    settled: bool,
}

impl Interest {
    fn register(group: &Group, attempt: AttemptId, request: &AcquireRequest) -> Self {
        let (tell, hear) = oneshot::channel();
        let key = WaitKey {
            name: request.name.clone(),
            session: request.session,
            request: RequestKey::from(&request.request),
        };
        let caller = group.next_caller();
        let who = group.caller(Some(caller), attempt, &request.name, request.session, &request.request);
        let attach = Attach { key: key.clone(), request: request.request.clone(), caller, who, tell };
        group.parts.fanout.do_send(attach);
        let (group, request) = (group.clone(), request.request.clone());
        Self { group, key, request, caller, attempt, hear, settled: false }
    }

    fn settle(&mut self, granted: bool) {
        self.settled = true;
        let (key, caller, attempt) = (self.key.clone(), self.caller, self.attempt);
        self.group.parts.fanout.do_send(Settled { key, caller, attempt, granted });
    }
}

impl Drop for Interest {
    fn drop(&mut self) {
        if !self.settled {
            let (key, request) = (self.key.clone(), self.request.clone());
            let who = self.group.caller(Some(self.caller), self.attempt, &key.name, key.session, &request);
            self.group.parts.fanout.do_send(Detached { key, request, who, grace_ms: LOST_GRACE_MS });
        }
    }
}

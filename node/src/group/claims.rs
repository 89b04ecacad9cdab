//! Claims at the leader: join, leave, drain, give back; wait until what a session has changes; look.
//!
//! The table decides who has what. Every verb may be repeated: the state answers the same. Does not know how the caller is
//! connected.

use std::time::Duration;

use holdfast_locktable::{
    command::{AckRevoked, Command, JoinClaim},
    ids::{Revision, SessionEpoch, SessionId, Token},
    name::Name,
    outcome::{Outcome, Rejection},
    view::Membership,
};
use serde::{Deserialize, Serialize};
use tokio::{sync::oneshot, time::Instant};

use super::{
    Group,
    call::{GroupAnswer, GroupResult},
    proposer::GroupError,
};
use crate::{
    endpoint::types::claims::{ClaimDetail, ClaimLine, JoinRequest},
    watch::Look,
};

/// A verb of claims for the leader of one lock group.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum ClaimCall {
    /// A session takes part.
    Join(JoinRequest),
    /// A session takes part no more; what it had is free at once.
    Leave {
        /// The claim.
        name: Name,
        /// The member.
        session: SessionId,
    },
    /// A member gives everything back and goes.
    Drain {
        /// The claim.
        name: Name,
        /// The member.
        session: SessionId,
    },
    /// A member has stopped using partitions that it was to give back.
    GiveBack {
        /// The claim.
        name: Name,
        /// The member.
        session: SessionId,
        /// With the tokens it had.
        partitions: Vec<(u32, Token)>,
    },
    /// What a member has, once that differs from what it has seen.
    Await {
        /// The claim.
        name: Name,
        /// The member.
        session: SessionId,
        /// The revision of what it has seen; nothing yet where it is absent.
        seen: Option<Revision>,
        /// How long to wait at most, in milliseconds.
        wait_ms: u64,
    },
    /// One claim.
    Show(Name),
    /// A page of claims.
    List {
        /// Beginning of their names.
        prefix: String,
        /// The name before the page.
        after: Option<Name>,
        /// At most so many.
        limit: u32,
    },
}

/// What a verb of claims answers.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum ClaimAnswer {
    /// What the session has.
    Member(Membership),
    /// Whether it was a member.
    Left(bool),
    /// It gives everything back.
    Draining,
    /// One claim; `None` where nobody takes part.
    Detail(Option<Box<ClaimDetail>>),
    /// A page of claims, and whether there are more.
    Page {
        /// In name order.
        claims: Vec<ClaimLine>,
        /// Whether there are more.
        more: bool,
    },
}

impl Group {
    /// Carries out a verb of claims.
    pub(super) async fn claim_call(&self, call: ClaimCall) -> GroupResult {
        let answer = match call {
            ClaimCall::Join(join) => self.join_claim(&join).await?,
            ClaimCall::Leave { name, session } => self.leave_claim(name, session).await?,
            ClaimCall::Drain { name, session } => {
                self.parts.proposer.propose(Command::DrainClaim { name, session }).await?;
                ClaimAnswer::Draining
            }
            ClaimCall::GiveBack { name, session, partitions } => {
                self.give_back(name, session, partitions).await?
            }
            ClaimCall::Await { name, session, seen, wait_ms } => {
                ClaimAnswer::Member(self.await_claim(&name, session, seen, wait_ms).await?)
            }
            ClaimCall::Show(name) => self.show_claim(&name).await?,
            ClaimCall::List { prefix, after, limit } => {
                self.confirm().await?;
                let (claims, more) =
                    self.locks(|table| table.claims(&prefix, after.as_ref(), limit as usize));
                let claims = claims.iter().map(|claim| ClaimLine::new(self.id(), claim)).collect();
                ClaimAnswer::Page { claims, more }
            }
        };
        Ok(GroupAnswer::Claim(answer))
    }

    async fn join_claim(&self, join: &JoinRequest) -> Result<ClaimAnswer, GroupError> {
        let (name, session) = (&join.name, join.session);
        // A member repeats its join; what it takes part in already is no new work.
        if !self.locks(|table| table.is_member(name, session)) {
            self.admit()?;
        }
        let command = |epoch, attach| {
            Command::JoinClaim(JoinClaim {
                name: name.clone(),
                session,
                epoch,
                attach,
                partitions: join.partitions,
                weight: join.weight,
                metadata: join.metadata.clone(),
            })
        };
        self.propose_for(session, command).await?;
        self.membership(name, session).map(ClaimAnswer::Member)
    }

    async fn leave_claim(&self, name: Name, session: SessionId) -> Result<ClaimAnswer, GroupError> {
        let Some(epoch) = self.proven_epoch(&name, session).await? else {
            return Ok(ClaimAnswer::Left(false));
        };
        match self.parts.proposer.propose(Command::LeaveClaim { name, session, epoch }).await? {
            Outcome::ClaimLeft { left } => Ok(ClaimAnswer::Left(left)),
            other => Err(GroupError::Fatal(format!("leaving a claim was answered with {other:?}"))),
        }
    }

    async fn give_back(
        &self,
        name: Name,
        session: SessionId,
        partitions: Vec<(u32, Token)>,
    ) -> Result<ClaimAnswer, GroupError> {
        let epoch = self.proven_epoch(&name, session).await?;
        let epoch = epoch.ok_or(GroupError::Rejected(Rejection::NotMember))?;
        let ack = AckRevoked { name: name.clone(), session, epoch, partitions };
        self.parts.proposer.propose(Command::AckRevoked(ack)).await?;
        self.membership(&name, session).map(ClaimAnswer::Member)
    }

    /// The epoch of a session that this group knows. That it does not know one, only a proven leader may say.
    async fn proven_epoch(
        &self,
        name: &Name,
        session: SessionId,
    ) -> Result<Option<SessionEpoch>, GroupError> {
        if let Some(epoch) = self.locks(|table| table.session_epoch(session)) {
            return Ok(Some(epoch));
        }
        self.confirm().await?;
        self.locks(|table| table.may_read(name).map(|()| table.session_epoch(session)))
            .map_err(GroupError::Rejected)
    }

    /// What a member has now, as this member's table has it.
    fn membership(&self, name: &Name, session: SessionId) -> Result<Membership, GroupError> {
        self.locks(|table| {
            table.may_read(name)?;
            table.membership(name, session).ok_or(Rejection::NotMember)
        })
        .map_err(GroupError::Rejected)
    }

    /// Whether a member has something else than it has seen, or is none; without a proof.
    fn looks_changed(&self, name: &Name, session: SessionId, seen: Option<Revision>) -> bool {
        let now = self.locks(|table| table.membership_revision(name, session));
        now.is_none() || now != seen
    }

    /// Waits until what a member has differs from what it has seen, or the time is over. Interest is registered before the
    /// look that counts, so that no change falls between both.
    async fn await_claim(
        &self,
        name: &Name,
        session: SessionId,
        seen: Option<Revision>,
        wait_ms: u64,
    ) -> Result<Membership, GroupError> {
        let until = Instant::now() + Duration::from_millis(wait_ms);
        // Only for members, so that nobody is kept in mind who takes no part.
        if !self.looks_changed(name, session, seen) {
            let (tell, hear) = oneshot::channel();
            self.parts.fanout.do_send(Look { name: name.clone(), session, tell });
            if !self.looks_changed(name, session, seen)
                && let Ok(Err(_)) = tokio::time::timeout_at(until, hear).await
            {
                return Err(GroupError::NotLeader { leader: self.leader() });
            }
        }
        self.confirm().await?;
        self.membership(name, session)
    }

    async fn show_claim(&self, name: &Name) -> Result<ClaimAnswer, GroupError> {
        self.confirm().await?;
        let (owned, claim) = self.locks(|table| (table.may_read(name), table.claim(name)));
        owned.map_err(GroupError::Rejected)?;
        let now_ms = self.parts.clock.wall_ms();
        Ok(ClaimAnswer::Detail(claim.map(|claim| Box::new(ClaimDetail::new(self.id(), claim, now_ms)))))
    }
}

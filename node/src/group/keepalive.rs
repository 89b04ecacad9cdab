//! Renewing sessions at the leader.
//!
//! A keepalive is answered only after a quorum round that began after it was received (rule R1). It writes nothing, but
//! for sessions whose silence stands in the log: their mark is cleared first (rule R6).
//!
//! An answer says under which ownership epoch it was made, because holds come and go with ranges: between hearing a session
//! and answering, the group's ranges must not have changed. An epoch read only before that could be too old: the keepalive
//! may have come when the range was sealed, and so not count for what has left, while the answer is made when it has left
//! and nothing is withheld any more. One read only afterwards could be too new: the answer would name holds that came in
//! between with less time than it promises. So both are compared, and where they differ nothing is renewed: the client
//! repeats it, and is answered under one epoch.

use std::{sync::Arc, time::Duration};

use holdfast_locktable::{
    command::Command,
    ids::{SessionEpoch, SessionId},
    mutant,
    table::LockTable,
};
use holdfast_partitioner::MapEpoch;
use serde::{Deserialize, Serialize};

use super::{Group, proposer::GroupError};
use crate::{
    endpoint::types::LeaseState,
    lease::{ExpiryEnd, Keepalives, NotLeading, Standing, Standings, state::Heard},
};

/// How one group answers one keepalive. Travels between members.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Renewal {
    /// What it says of the session.
    pub state: LeaseState,
    /// Its TTL in milliseconds, where it was renewed.
    pub ttl_ms: u64,
    /// The group's ownership epoch, from when the keepalive was heard until it was answered; none where the group is
    /// unavailable.
    pub epoch: MapEpoch,
}

impl Renewal {
    const MOVING: Self = Self { state: LeaseState::Moving, ttl_ms: 0, epoch: MapEpoch::NONE };
}

impl Group {
    /// Renews the sessions this group knows. One answer per session, in order.
    pub async fn keepalive(&self, sessions: Arc<[SessionId]>) -> Result<Vec<Renewal>, GroupError> {
        let at = self.parts.clock.now();
        let epoch = self.locks(LockTable::ownership_epoch);
        let heard = self.parts.lease.send(Keepalives { sessions: sessions.clone(), at }).await;
        let heard = self.leading(heard)?;
        // That a session is not known needs the same proof as a renewal: a deposed leader does not know what was opened or met
        // since. Where its home says so it ends the session, and elsewhere clients count on having nothing there.
        if heard.iter().all(|heard| matches!(heard, Heard::Unknown)) && mutant!("end-told-without-proof") {
            return Ok(vec![Renewal { state: LeaseState::Unknown, ttl_ms: 0, epoch }; heard.len()]);
        }
        self.clear_marks(&sessions, &heard).await?;
        if !mutant!("keepalive-without-proof") {
            self.confirm().await?;
        }
        let standings = self.parts.lease.send(Standings(sessions.clone())).await;
        let mut renewals = Vec::with_capacity(heard.len());
        for (heard, standing) in heard.into_iter().zip(self.leading(standings)?) {
            renewals.push(renewal(heard, standing, epoch).await);
        }
        self.withhold(&sessions, &mut renewals);
        // Last of all, so that what is withheld was looked up under the same epoch.
        if self.locks(LockTable::ownership_epoch) != epoch {
            renewals.fill(Renewal::MOVING);
        }
        let took = Duration::from_millis(self.parts.clock.now().since_ms(at));
        self.parts
            .metrics
            .keepalives(took, renewals.iter().any(|renewal| renewal.state == LeaseState::Renewed));
        Ok(renewals)
    }

    /// Rule R17: who has keys in a range that is being sealed, or is sealed, is renewed by whichever group owns it afterwards.
    fn withhold(&self, sessions: &[SessionId], renewals: &mut [Renewal]) {
        if mutant!("keepalive-while-sealed") {
            return;
        }
        let withheld = self.locks(|table| self.parts.sealing.withheld(table, sessions));
        let renewed = |renewal: &Renewal| renewal.state == LeaseState::Renewed;
        for (renewal, _) in
            renewals.iter_mut().zip(withheld).filter(|(renewal, held)| *held && renewed(renewal))
        {
            *renewal = Renewal::MOVING;
        }
    }

    async fn clear_marks(&self, sessions: &[SessionId], heard: &[Heard]) -> Result<(), GroupError> {
        let marked = sessions.iter().zip(heard).filter_map(|(session, heard)| match heard {
            Heard::Marked { epoch } => Some((*session, *epoch)),
            Heard::Alive { .. } | Heard::Expiring | Heard::Stopped | Heard::Unknown => None,
        });
        let cleared: Vec<(SessionId, SessionEpoch)> = marked.collect();
        if cleared.is_empty() {
            return Ok(());
        }
        let term = self.leads().ok_or_else(|| GroupError::NotLeader { leader: self.leader() })?;
        self.parts.proposer.propose(Command::Checkpoint { marked: Vec::new(), cleared, term }).await.map(drop)
    }

    fn leading<T>(
        &self,
        answer: Result<Result<T, NotLeading>, actix::MailboxError>,
    ) -> Result<T, GroupError> {
        match answer {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(NotLeading)) => Err(GroupError::NotLeader { leader: self.leader() }),
            Err(error) => Err(self.unanswered(format_args!("the lease manager has stopped: {error}"))),
        }
    }
}

async fn renewal(heard: Heard, standing: Standing, epoch: MapEpoch) -> Renewal {
    let of = |state| Renewal { state, ttl_ms: 0, epoch };
    match standing {
        // Only what moved the deadline is acknowledged: a session that came while the round ran was not heard, and one whose
        // expiry was on its way was heard too late.
        Standing::Renewed { ttl_ms } => match heard {
            Heard::Alive { .. } | Heard::Marked { .. } => {
                Renewal { state: LeaseState::Renewed, ttl_ms, epoch }
            }
            Heard::Expiring | Heard::Stopped | Heard::Unknown => Renewal::MOVING,
        },
        Standing::Lost => of(LeaseState::Lost),
        Standing::Unknown => of(LeaseState::Unknown),
        // Rule R2: an expiry that is on its way is waited for; what is not decided is asked again.
        Standing::Pending(end) => match end.await {
            Ok(ExpiryEnd::Ended) => of(LeaseState::Lost),
            Ok(ExpiryEnd::NotDecided) | Err(_) => Renewal::MOVING,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn only_what_moved_the_deadline_is_acknowledged() {
        let renewed =
            |heard| async move { renewal(heard, Standing::Renewed { ttl_ms: 7 }, MapEpoch(3)).await.state };
        assert_eq!(renewed(Heard::Alive { ttl_ms: 7 }).await, LeaseState::Renewed);
        assert_eq!(renewed(Heard::Marked { epoch: SessionEpoch(1) }).await, LeaseState::Renewed);
        for heard in [Heard::Expiring, Heard::Stopped, Heard::Unknown] {
            assert_eq!(renewed(heard).await, LeaseState::Moving, "{heard:?}");
        }
    }
}

//! Renewing sessions at the leader.
//!
//! A keepalive is answered only after a quorum round that began after it was received (rule R1). It writes nothing, but
//! for sessions whose silence stands in the log: their mark is cleared first (rule R6).

use std::{sync::Arc, time::Duration};

use holdfast_locktable::{
    command::Command,
    ids::{SessionEpoch, SessionId},
    mutant,
};
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
}

impl Renewal {
    const fn of(state: LeaseState) -> Self {
        Self { state, ttl_ms: 0 }
    }
}

impl Group {
    /// Renews the sessions this group knows. One answer per session, in order.
    pub async fn keepalive(&self, sessions: Arc<[SessionId]>) -> Result<Vec<Renewal>, GroupError> {
        let at = self.parts.clock.now();
        let heard = self.parts.lease.send(Keepalives { sessions: sessions.clone(), at }).await;
        let heard = self.leading(heard)?;
        // That a session is not known ends it where its home says so, and then needs the same proof as a renewal: a deposed
        // leader does not know what was opened since.
        let home = |session: &SessionId| (self.parts.home_of)(*session) == self.id();
        let ends = sessions.iter().any(home) && !mutant!("end-told-without-proof");
        if heard.iter().all(|heard| matches!(heard, Heard::Unknown)) && !ends {
            return Ok(vec![Renewal::of(LeaseState::Unknown); heard.len()]);
        }
        self.clear_marks(&sessions, &heard).await?;
        if !mutant!("keepalive-without-proof") {
            self.confirm().await?;
        }
        let standings = self.parts.lease.send(Standings(sessions.clone())).await;
        let mut renewals = Vec::with_capacity(heard.len());
        for standing in self.leading(standings)? {
            renewals.push(renewal(standing).await);
        }
        self.withhold(&sessions, &mut renewals);
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
            *renewal = Renewal::of(LeaseState::Unavailable);
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
            Err(error) => Err(GroupError::Fatal(format!("the lease manager has stopped: {error}"))),
        }
    }
}

async fn renewal(standing: Standing) -> Renewal {
    match standing {
        Standing::Renewed { ttl_ms } => Renewal { state: LeaseState::Renewed, ttl_ms },
        Standing::Lost => Renewal::of(LeaseState::Lost),
        Standing::Unknown => Renewal::of(LeaseState::Unknown),
        // Rule R2: an expiry that is on its way is waited for; what is not decided is asked again.
        Standing::Pending(end) => match end.await {
            Ok(ExpiryEnd::Ended) => Renewal::of(LeaseState::Lost),
            Ok(ExpiryEnd::NotDecided) | Err(_) => Renewal::of(LeaseState::Unavailable),
        },
    }
}

//! The verbs of sessions.

use std::sync::Arc;

use holdfast_locktable::{command::EndReason, ids::SessionId, metadata::Metadata, outcome::Rejection};
use holdfast_partitioner::GroupId;

use super::{
    Answer, ApiError, Endpoint, ErrorCode, about_session,
    convert::About,
    hub::Renewals,
    types::{
        GroupLease, KeepaliveAck, LeaseState, MAX_TTL_MS, MIN_TTL_MS, SessionInfo, SessionOpened, SessionPage,
    },
};
use crate::group::{
    call::{GroupAnswer, GroupCall},
    proposer::GroupError,
};

/// How often another id is tried where one is taken or its fate unknown.
const ID_TRIES: u32 = 4;

impl Endpoint {
    /// Opens a session.
    pub async fn open_session(&self, ttl_ms: u64, metadata: Metadata) -> Answer<SessionOpened> {
        if !(MIN_TTL_MS..=MAX_TTL_MS).contains(&ttl_ms) {
            return Err(ApiError::invalid(format!(
                "ttl_ms is {ttl_ms}; it must be {MIN_TTL_MS} to {MAX_TTL_MS}"
            )));
        }
        let mut last = ApiError::no_leader(GroupId::META);
        for _ in 0..ID_TRIES {
            let session = random_session();
            let home = self.home_of(session).await?;
            let call = GroupCall::OpenSession { session, ttl_ms, metadata: metadata.clone() };
            match self.parts.router.call(home, call).await {
                Ok(_) => return Ok(SessionOpened { session, ttl_ms }),
                // A session whose fate is unknown ends by itself; another id is free of it.
                Err(
                    error @ (GroupError::Unknown | GroupError::Rejected(Rejection::SessionExists { .. })),
                ) => {
                    last = about_session(home, session).error(error);
                }
                Err(error) => return Err(about_session(home, session).error(error)),
            }
        }
        Err(last)
    }

    /// Renews a session in every group that knows it. `SessionLost` when its home says so, `NoLeader` when its home does not
    /// answer.
    pub async fn keepalive(&self, session: SessionId) -> Answer<KeepaliveAck> {
        let home = self.home_of(session).await?;
        let answer = self.keepalives_by_group(vec![session]).await.pop();
        let ack = answer.unwrap_or_else(|| Err(ApiError::no_leader(home)))?;
        let renewed = |lease: &GroupLease| lease.group == home && lease.state == LeaseState::Renewed;
        if ack.groups.iter().any(renewed) { Ok(ack) } else { Err(ApiError::no_leader(home)) }
    }

    /// Renews sessions as [`Self::keepalive`] does, but answers group by group also where the home does not answer: the
    /// locks of the other groups live on (rule R3). `SessionLost` when the home says so. One answer per session, in order.
    pub async fn keepalives_by_group(&self, sessions: Vec<SessionId>) -> Vec<Answer<KeepaliveAck>> {
        let map = match self.map().await {
            Ok(map) => map,
            Err(error) => return sessions.iter().map(|_| Err(error.clone())).collect(),
        };
        let sessions: Arc<[SessionId]> = sessions.into();
        let Some(renewals) = self.parts.hub.renew(sessions.clone()).await else {
            let about = |session: SessionId| about_session(map.home_of(session.get()), session);
            return sessions.iter().map(|id| Err(about(*id).error(GroupError::Overloaded))).collect();
        };
        let answer = |(session, renewals): (&SessionId, Renewals)| {
            let home = map.home_of(session.get());
            let lost = |state| matches!(state, LeaseState::Lost | LeaseState::Unknown);
            if renewals.groups.iter().any(|lease| lease.group == home && lost(lease.state)) {
                return Err(ApiError::session_lost(*session));
            }
            Ok(KeepaliveAck { ttl_ms: renewals.ttl_ms.unwrap_or_default(), groups: renewals.groups })
        };
        sessions.iter().zip(renewals).map(answer).collect()
    }

    /// The client closes its session: all its locks come free at once. `SessionLost` when it is gone already.
    pub async fn close_session(&self, session: SessionId) -> Answer<()> {
        self.end(session, EndReason::Closed).await
    }

    /// An operator ends a session; recorded in the audit log.
    pub async fn end_session(&self, session: SessionId, reason: String, actor: String) -> Answer<()> {
        check_reason(&reason)?;
        let target = format!("session {session}");
        self.audited("end_session", &target, &reason, &actor, || self.end(session, EndReason::Forced)).await
    }

    async fn end(&self, session: SessionId, reason: EndReason) -> Answer<()> {
        let home = self.home_of(session).await?;
        let mut may_be_ended = false;
        loop {
            let call = GroupCall::EndSession { session, reason };
            match self.parts.router.call(home, call).await {
                Ok(_) => return Ok(()),
                // The end whose outcome was unknown has been applied.
                Err(GroupError::Rejected(Rejection::SessionLost { .. })) if may_be_ended => return Ok(()),
                Err(GroupError::Unknown) if !may_be_ended => may_be_ended = true,
                Err(error) => return Err(about_session(home, session).error(error)),
            }
        }
    }

    /// All sessions, by home group.
    pub async fn sessions(&self) -> Answer<SessionPage> {
        let mut page = SessionPage::default();
        let groups: Vec<GroupId> = self.parts.router.groups().map(crate::group::Group::id).collect();
        let asked = groups.iter().map(|group| self.parts.router.call(*group, GroupCall::Sessions));
        for (group, answer) in groups.iter().zip(futures::future::join_all(asked).await) {
            match answer {
                Ok(GroupAnswer::Sessions(sessions)) => page.sessions.extend(sessions),
                Ok(other) => return Err(About { group: *group, name: None, session: None }.surprise(&other)),
                Err(_) => page.unavailable_groups.push(*group),
            }
        }
        Ok(page)
    }

    /// One session with its locks in all groups that know it; `NotFound` when there is none.
    pub async fn session(&self, session: SessionId) -> Answer<SessionInfo> {
        let home = self.home_of(session).await?;
        let mut info = self.session_in(home, session).await?.ok_or_else(|| {
            ApiError::new(
                ErrorCode::NotFound,
                format!("there is no session {session}; it has ended or never was"),
            )
        })?;
        for group in info.groups.clone() {
            if let Ok(Some(there)) = self.session_in(group, session).await {
                info.locks.extend(there.locks);
            }
        }
        info.locks.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(info)
    }

    async fn session_in(&self, group: GroupId, session: SessionId) -> Answer<Option<SessionInfo>> {
        match self.parts.router.call(group, GroupCall::Session(session)).await {
            Ok(GroupAnswer::Sessions(found)) => Ok(found.into_iter().next()),
            Ok(other) => Err(about_session(group, session).surprise(&other)),
            Err(error) => Err(about_session(group, session).error(error)),
        }
    }
}

/// A reason for the audit log says something.
pub(super) fn check_reason(reason: &str) -> Answer<()> {
    if reason.trim().is_empty() || reason.len() > 1_024 {
        return Err(ApiError::invalid("reason must have 1 to 1024 bytes; it goes into the audit log"));
    }
    Ok(())
}

/// An id that nobody can guess.
fn random_session() -> SessionId {
    loop {
        if let Some(session) = SessionId::new(rand::random::<u64>() >> 1) {
            return session;
        }
    }
}

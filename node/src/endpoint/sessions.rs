//! The verbs of sessions.

use std::{collections::BTreeMap, sync::Arc};

use holdfast_locktable::{
    command::EndReason, ids::SessionId, metadata::Metadata, outcome::Rejection, table::LockTable,
};
use holdfast_partitioner::{GroupId, MapEpoch};

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

    /// Renews a session in every group that knows it, for a client that knows of each lock only which group granted it.
    /// `SessionLost` when its home says so, `NoLeader` when its home does not answer, or a range of names has changed its group
    /// so lately that this member cannot say whether all groups were asked that may have it.
    pub async fn keepalive(&self, session: SessionId) -> Answer<KeepaliveAck> {
        let home = self.home_of(session).await?;
        let noted = self.ownership_epochs();
        let answer = self.keepalives_by_group(vec![session]).await.pop();
        let ack = answer.unwrap_or_else(|| Err(ApiError::no_leader(home)))?;
        let renewed = |lease: &GroupLease| lease.group == home && lease.state == LeaseState::Renewed;
        if !ack.groups.iter().any(renewed) {
            return Err(ApiError::no_leader(home));
        }
        Ok(KeepaliveAck { groups: follow_moves(ack.groups, &noted).map_err(ApiError::no_leader)?, ..ack })
    }

    /// Ownership epochs that were in force in the groups before now: as this member's replicas have them, and where it has none,
    /// as the group has answered before.
    fn ownership_epochs(&self) -> BTreeMap<GroupId, MapEpoch> {
        let mut epochs = self.parts.router.far_epochs();
        for group in self.parts.router.groups() {
            // A replica that is just coming or going may be behind what the group has answered.
            let here = group.locks(LockTable::ownership_epoch);
            epochs.entry(group.id()).and_modify(|noted| *noted = here.max(*noted)).or_insert(here);
        }
        epochs
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
        let groups = self.parts.router.all_groups();
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

/// Makes the lines of groups true for locks that were granted there, wherever they stand now. `noted` are the groups' epochs
/// from before they were asked; where one has answered under a later one, that group is the error.
///
/// What group A had given away by the epoch that was noted, another group had taken over before anybody was asked: so a
/// renewal by A counts for that, too, if all the others have answered. Where A answers under a later epoch, the other group
/// may have answered before it took over. And while a group is silent, only a group that has given nothing away since the
/// beginning speaks for all that it granted.
fn follow_moves(
    groups: Vec<GroupLease>,
    noted: &BTreeMap<GroupId, MapEpoch>,
) -> Result<Vec<GroupLease>, GroupId> {
    let known =
        |group: &GroupId| noted.get(group).map_or(MapEpoch::FIRST, |noted| MapEpoch::FIRST.max(*noted));
    let unforeseen = |lease: &&GroupLease| lease.epoch > known(&lease.group);
    if let Some(lease) = groups.iter().find(unforeseen) {
        return Err(lease.group);
    }
    let silent =
        groups.iter().any(|lease| matches!(lease.state, LeaseState::Unavailable | LeaseState::Moving));
    let line = |lease: GroupLease| match lease.state {
        LeaseState::Renewed if silent && lease.epoch > MapEpoch::FIRST => {
            GroupLease { state: LeaseState::Unavailable, ..lease }
        }
        LeaseState::Renewed
        | LeaseState::Unknown
        | LeaseState::Lost
        | LeaseState::Unavailable
        | LeaseState::Moving => lease,
    };
    Ok(groups.into_iter().map(line).collect())
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

#[cfg(test)]
mod tests {
    use super::*;

    const NOTED: [(GroupId, MapEpoch); 3] =
        [(GroupId(1), MapEpoch(1)), (GroupId(2), MapEpoch(4)), (GroupId(3), MapEpoch(4))];

    fn followed(lines: [(u64, LeaseState); 3]) -> Result<[LeaseState; 3], GroupId> {
        let line =
            |((epoch, state), group)| GroupLease { group: GroupId(group), state, epoch: MapEpoch(epoch) };
        let groups = lines.into_iter().zip(1..).map(line).collect();
        let states = follow_moves(groups, &NOTED.into())?.into_iter().map(|lease| lease.state);
        Ok(states.collect::<Vec<_>>().try_into().unwrap())
    }

    #[test]
    fn what_all_groups_answer_under_epochs_known_before_counts() {
        use LeaseState::{Lost, Renewed, Unknown};
        assert_eq!(followed([(1, Renewed), (4, Renewed), (4, Unknown)]), Ok([Renewed, Renewed, Unknown]));
        // An epoch that is older than the noted one is one from before a move, when nothing had left.
        assert_eq!(followed([(1, Renewed), (3, Renewed), (4, Lost)]), Ok([Renewed, Renewed, Lost]));
    }

    #[test]
    fn a_move_that_came_between_the_answers_makes_them_worth_nothing() {
        use LeaseState::{Renewed, Unknown};
        // Group 2 has dropped a range after group 3 said that it did not know the session.
        assert_eq!(followed([(1, Renewed), (5, Renewed), (4, Unknown)]), Err(GroupId(2)));
        assert_eq!(followed([(1, Renewed), (4, Renewed), (5, Unknown)]), Err(GroupId(3)));
    }

    #[test]
    fn a_group_that_nothing_ever_left_needs_no_note() {
        let line = GroupLease { group: GroupId(1), state: LeaseState::Renewed, epoch: MapEpoch::FIRST };
        assert_eq!(follow_moves(vec![line], &BTreeMap::new()), Ok(vec![line]));
    }

    #[test]
    fn where_a_group_is_silent_those_do_not_count_that_may_have_given_it_locks() {
        use LeaseState::{Renewed, Unavailable};
        let silent = (0, Unavailable);
        assert_eq!(followed([(1, Renewed), (4, Renewed), silent]), Ok([Renewed, Unavailable, Unavailable]));
    }
}

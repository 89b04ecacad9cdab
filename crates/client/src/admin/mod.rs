//! The verbs of operators, and reading. Knows which verb is which message; plain types out.

macro_rules! ask {
    ($self:ident, $service:ident, $verb:ident, $request:expr) => {{
        let request = $request;
        let caller = &$self.client.inner().caller;
        caller
            .call(|channel| {
                let request = request.clone();
                async move {
                    $service::new(channel).max_decoding_message_size(MAX_ANSWER_BYTES).$verb(request).await
                }
            })
            .await
    }};
}

mod claims;
mod convert;
mod members;
mod partition_types;
mod partitions;
mod placement;
mod planner;
mod planner_types;
mod snapshots;
mod types;

use holdfast_proto::v1::{
    self, admin_client::AdminClient, claims_client::ClaimsClient, lock_client::LockClient,
};

use crate::{
    client::Client,
    error::{Error, ErrorCode},
    ids::{SessionId, Token},
};

pub use claims::{ClaimDetail, ClaimMember, ClaimPage, ClaimView, ListClaims, PartitionOwner};
pub use members::{MemberChange, MemberChanges, MembersWanted, NewMember};
pub use partition_types::{
    MovingRange, PartitionChange, PartitionChangeEnd, PartitionChanges, PartitionPlan, PartitionRequest,
    PartitionStep,
};
pub use placement::GroupDetail;
pub use planner_types::{
    GroupLoad, NameLoad, PlannerEdit, PlannerLook, PlannerPolicy, PlannerProposal, PlannerState, PrefixLoad,
};
pub use snapshots::{
    SnapshotContent, SnapshotDetail, SnapshotLocks, SnapshotMeta, SnapshotSet, SnapshotSetDetail,
    SnapshotSetMember,
};
pub(crate) use types::as_value;
pub use types::{
    AuditEntry, GroupView, HistoryView, HolderView, LeaderView, LockDetail, LockPage, LockView, MemberView,
    PartitionMap, PartitionRule, PartitionTable, SessionInfo, SessionLock, SessionPage, SnapshotView,
    StatusView, VoterView, WaiterView,
};

/// Which kind of queue a name stands for: the lock `a` and the election `a` have nothing to do with each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A lock.
    Lock,
    /// A leader election.
    Election,
}

impl Kind {
    pub(crate) fn name(self, text: impl Into<String>) -> v1::Name {
        v1::Name { text: text.into(), election: self == Self::Election }
    }
}

/// Which locks to list.
///
/// ```
/// # use holdfast_client::{Kind, ListLocks};
/// let next = ListLocks { prefix: "jobs/".into(), limit: 50, ..ListLocks::default() };
/// assert_eq!(next.kind, Kind::Lock);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListLocks {
    /// Locks or elections.
    pub kind: Kind,
    /// Names beginning with it; empty for all.
    pub prefix: String,
    /// How many on one page, 1 to 1,000.
    pub limit: u32,
    /// Where the page starts: [`LockPage::next_cursor`] of the page before it.
    pub cursor: Option<String>,
}

impl Default for ListLocks {
    fn default() -> Self {
        Self { kind: Kind::Lock, prefix: String::new(), limit: 100, cursor: None }
    }
}

/// The verbs of operators. Each asks one member after the other until the client's request timeout; all are safe to
/// repeat, so a verb whose answer was lost may have been executed.
#[derive(Clone, Debug)]
pub struct Admin {
    client: Client,
}

/// Largest answer read: a full page of locks with long names and metadata.
const MAX_ANSWER_BYTES: usize = 64 * 1024 * 1024;

impl Admin {
    pub(crate) const fn new(client: Client) -> Self {
        Self { client }
    }

    /// One page of claims, in name order.
    ///
    /// # Errors
    /// As the member answers, or none did.
    pub async fn claims(&self, query: &ListClaims) -> Result<ClaimPage, Error> {
        let request = v1::ListClaimsRequest {
            prefix: query.prefix.clone(),
            limit: query.limit,
            cursor: query.cursor.clone(),
        };
        ask!(self, ClaimsClient, list_claims, request).map(ClaimPage::from)
    }

    /// One claim with its members and owners; an error with [`ErrorCode::NotFound`] where nobody takes part.
    ///
    /// # Errors
    /// As the member answers, or none did.
    pub async fn claim(&self, name: &str) -> Result<ClaimDetail, Error> {
        ask!(self, ClaimsClient, get_claim, v1::GetClaimRequest { name: name.to_owned() })
            .map(ClaimDetail::from)
    }

    /// Has a member of a claim give everything back, partition by partition, and go.
    ///
    /// # Errors
    /// The session takes no part, as the member answers otherwise, or none did.
    pub async fn drain_claim(&self, name: &str, session: SessionId) -> Result<(), Error> {
        let request = v1::ClaimMemberRequest { name: name.to_owned(), session: session.get() };
        ask!(self, ClaimsClient, drain, request).map(drop)
    }

    /// One page of locks or elections, in name order.
    ///
    /// ```no_run
    /// # async fn example(client: holdfast_client::Client) -> Result<(), holdfast_client::Error> {
    /// use holdfast_client::ListLocks;
    /// let mut query = ListLocks { prefix: "jobs/".into(), ..ListLocks::default() };
    /// loop {
    ///     let page = client.admin().locks(&query).await?;
    ///     for lock in &page.locks {
    ///         println!("{} {} waiting", lock.name, lock.waiters);
    ///     }
    ///     let Some(cursor) = page.next_cursor else { break };
    ///     query.cursor = Some(cursor);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As the member answers, or none did.
    pub async fn locks(&self, query: &ListLocks) -> Result<LockPage, Error> {
        let request = v1::ListLocksRequest {
            prefix: query.prefix.clone(),
            elections: query.kind == Kind::Election,
            limit: query.limit,
            cursor: query.cursor.clone(),
        };
        ask!(self, LockClient, list_locks, request).map(Into::into)
    }

    /// One lock or election with its queue and history. A free one is an empty detail, no error.
    ///
    /// ```no_run
    /// # async fn example(client: holdfast_client::Client) -> Result<(), holdfast_client::Error> {
    /// use holdfast_client::Kind;
    /// let detail = client.admin().lock(Kind::Lock, "jobs/nightly").await?;
    /// println!("{} in line", detail.queue.len());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As the member answers, or none did.
    pub async fn lock(&self, kind: Kind, name: &str) -> Result<LockDetail, Error> {
        ask!(self, LockClient, get_lock, v1::GetLockRequest { name: Some(kind.name(name)) }).map(Into::into)
    }

    /// Ends a hold at once, whatever its holder does; answers the session that held. Only fencing stops the former
    /// holder's process. `reason` and `actor` go to the audit log.
    ///
    /// ```no_run
    /// # async fn example(client: holdfast_client::Client) -> Result<(), holdfast_client::Error> {
    /// use holdfast_client::{Kind, Token};
    /// let admin = client.admin();
    /// admin.force_release(Kind::Lock, "jobs/nightly", Token::new(42), "host is gone", "eve").await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`ErrorCode::Changed`] where that token does not hold (any more); or as the member answers, or none did.
    pub async fn force_release(
        &self,
        kind: Kind,
        name: &str,
        token: Token,
        reason: &str,
        actor: &str,
    ) -> Result<SessionId, Error> {
        let request = v1::ForceReleaseRequest {
            name: Some(kind.name(name)),
            token: token.get(),
            reason: reason.to_owned(),
            actor: actor.to_owned(),
        };
        ask!(self, AdminClient, force_release, request).map(|done| SessionId::from_wire(done.session))
    }

    /// All sessions, by home group and id.
    ///
    /// # Errors
    /// As the member answers, or none did.
    pub async fn sessions(&self) -> Result<SessionPage, Error> {
        ask!(self, AdminClient, list_sessions, v1::ListSessionsRequest {}).map(Into::into)
    }

    /// One session.
    ///
    /// # Errors
    /// [`ErrorCode::NotFound`] when there is none; or as the member answers, or none did.
    pub async fn session(&self, session: SessionId) -> Result<SessionInfo, Error> {
        ask!(self, AdminClient, get_session, v1::GetSessionRequest { session: session.get() }).map(Into::into)
    }

    /// Ends a session: all its locks come free at once. `reason` and `actor` go to the audit log.
    ///
    /// # Errors
    /// [`ErrorCode::SessionLost`] when it is gone already; or as the member answers, or none did.
    pub async fn end_session(&self, session: SessionId, reason: &str, actor: &str) -> Result<(), Error> {
        let request = v1::EndSessionRequest {
            session: session.get(),
            reason: reason.to_owned(),
            actor: actor.to_owned(),
        };
        ask!(self, AdminClient, end_session, request).map(|_| ())
    }

    /// Who leads an election; `None` while nobody does.
    ///
    /// ```no_run
    /// # async fn example(client: holdfast_client::Client) -> Result<(), holdfast_client::Error> {
    /// if let Some(leader) = client.admin().leader("scheduler").await? {
    ///     println!("{} leads with token {}", leader.session, leader.token);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As the member answers, or none did.
    pub async fn leader(&self, election: &str) -> Result<Option<LeaderView>, Error> {
        match ask!(self, LockClient, leader, v1::LeaderRequest { name: election.to_owned() }) {
            Ok(leader) => Ok(Some(leader.into())),
            Err(Error::Api(error)) if error.code == ErrorCode::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// What the answering member says of itself and its cluster.
    ///
    /// # Errors
    /// As the member answers, or none did.
    pub async fn status(&self) -> Result<StatusView, Error> {
        ask!(self, AdminClient, status, v1::StatusRequest {}).map(Into::into)
    }

    /// The cluster's members.
    ///
    /// # Errors
    /// As the member answers, or none did.
    pub async fn members(&self) -> Result<Vec<MemberView>, Error> {
        let answer = ask!(self, AdminClient, members, v1::MembersRequest {})?;
        Ok(answer.members.into_iter().map(Into::into).collect())
    }

    /// The cluster's groups.
    ///
    /// # Errors
    /// As the member answers, or none did.
    pub async fn groups(&self) -> Result<Vec<GroupView>, Error> {
        let answer = ask!(self, AdminClient, groups, v1::GroupsRequest {})?;
        Ok(answer.groups.into_iter().map(Into::into).collect())
    }

    /// The partition map.
    ///
    /// # Errors
    /// As the member answers, or none did.
    pub async fn partitions(&self) -> Result<PartitionMap, Error> {
        ask!(self, AdminClient, partitions, v1::PartitionsRequest {}).map(Into::into)
    }

    /// Snapshots in the snapshot store.
    ///
    /// # Errors
    /// As the member answers, or none did.
    pub async fn snapshots(&self) -> Result<Vec<SnapshotView>, Error> {
        let answer = ask!(self, AdminClient, snapshots, v1::SnapshotsRequest {})?;
        Ok(answer.snapshots.into_iter().map(Into::into).collect())
    }

    /// Takes snapshots of one group, or of all, and answers once they are durable.
    ///
    /// # Errors
    /// As the member answers, or none did.
    pub async fn take_snapshot(&self, group: Option<u32>, actor: &str) -> Result<Vec<SnapshotView>, Error> {
        let request = v1::TakeSnapshotRequest { group, actor: actor.to_owned() };
        let answer = ask!(self, AdminClient, take_snapshot, request)?;
        Ok(answer.snapshots.into_iter().map(Into::into).collect())
    }

    /// The newest lines of the audit log, oldest first. `limit` is 1 to 1,000.
    ///
    /// # Errors
    /// As the member answers, or none did.
    pub async fn audit(&self, limit: u32) -> Result<Vec<AuditEntry>, Error> {
        let answer = ask!(self, AdminClient, audit, v1::AuditRequest { limit })?;
        Ok(answer.entries.into_iter().map(Into::into).collect())
    }
}

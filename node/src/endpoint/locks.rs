//! The verbs of locks; campaigns in elections are acquires too.

use holdfast_locktable::{
    command::{CancelReason, IfGranted, RequestId},
    ids::{SessionId, Token},
    name::{Name, NameKind},
    outcome::CancelOutcome,
};

use super::{
    Answer, ApiError, Endpoint, about_name,
    convert::About,
    sessions::check_reason,
    types::{AcquireRequest, ForceRelease, Granted, LockDetail, LockPage, LockView},
};
use crate::{
    group::call::{GroupAnswer, GroupCall},
    watch::told::AttemptId,
};

/// Most locks on one page.
const MAX_PAGE: u32 = 1_000;

impl Endpoint {
    /// Asks for a lock or campaigns. Dropping the future while it waits detaches the caller: the wait is cancelled, or
    /// its grant released, within 2 s, unless the same request id comes again before.
    pub async fn acquire(&self, request: AcquireRequest) -> Answer<Granted> {
        self.map().await?;
        let attempt = AttemptId(rand::random());
        let mut caller =
            Caller { endpoint: self.clone(), request: request.clone(), attempt, answered: false };
        let answer = self.acquire_as(attempt, request).await;
        caller.answered = true;
        answer
    }

    async fn acquire_as(&self, attempt: AttemptId, request: AcquireRequest) -> Answer<Granted> {
        let (name, session) = (request.name.clone(), request.session);
        let (group, answer) = self.call_owner(&name, GroupCall::Acquire(attempt, request)).await?;
        let about = about_name(group, &name, Some(session));
        match answer {
            Ok(GroupAnswer::Granted { token, epoch }) => Ok(Granted { token, group, epoch }),
            Ok(GroupAnswer::NotGranted(removal)) => Err(about.not_granted(removal)),
            Ok(other) => Err(about.surprise(&other)),
            Err(error) => Err(about.error(error)),
        }
    }

    /// Cancels a wait by its request id. A grant that came first is left alone and answered with its token.
    pub async fn cancel(&self, name: Name, session: SessionId, request: RequestId) -> Answer<CancelOutcome> {
        self.cancel_with(name, session, request, IfGranted::Keep).await
    }

    /// Cancels a wait whose caller is gone: a grant that came first is released.
    pub async fn abandon(&self, name: Name, session: SessionId, request: RequestId) -> Answer<CancelOutcome> {
        self.cancel_with(name, session, request, IfGranted::Release).await
    }

    async fn cancel_with(
        &self,
        name: Name,
        session: SessionId,
        request: RequestId,
        granted: IfGranted,
    ) -> Answer<CancelOutcome> {
        let reason = CancelReason::Cancelled;
        let call = GroupCall::Cancel { name: name.clone(), session, request, reason, granted };
        let (group, answer) = self.call_owner(&name, call).await?;
        let about = about_name(group, &name, Some(session));
        match answer {
            Ok(GroupAnswer::Cancel(outcome)) => Ok(outcome),
            Ok(other) => Err(about.surprise(&other)),
            Err(error) => Err(about.error(error)),
        }
    }

    /// Releases a hold; `false` where this session has ended that very hold before.
    pub async fn release(&self, name: Name, session: SessionId, token: Token) -> Answer<bool> {
        let call = GroupCall::Release { name: name.clone(), session, token };
        let (group, answer) = self.call_owner(&name, call).await?;
        let about = about_name(group, &name, Some(session));
        match answer {
            Ok(GroupAnswer::Released(released)) => Ok(released),
            Ok(other) => Err(about.surprise(&other)),
            Err(error) => Err(about.error(error)),
        }
    }

    /// An operator ends a hold at once; recorded in the audit log. Answers the session that held. The holder's process
    /// is not stopped by it: until it notices, only the fence protects.
    pub async fn force_release(&self, request: ForceRelease) -> Answer<SessionId> {
        check_reason(&request.reason)?;
        let target = format!("{:?} token {}", request.name, request.token);
        self.audited("force_release", &target, &request.reason, &request.actor, || self.force(&request)).await
    }

    async fn force(&self, request: &ForceRelease) -> Answer<SessionId> {
        let call = GroupCall::ForceRelease { name: request.name.clone(), token: request.token };
        let (group, answer) = self.call_owner(&request.name, call).await?;
        let about = about_name(group, &request.name, None);
        match answer {
            Ok(GroupAnswer::ForceReleased(session)) => Ok(session),
            Ok(other) => Err(about.surprise(&other)),
            Err(error) => Err(about.error(error)),
        }
    }

    /// Locks (or elections) whose name begins with `prefix`, in name order over all groups. `limit` 1 to 1000. The
    /// cursor is the last name of the page before.
    pub async fn locks(
        &self,
        kind: NameKind,
        prefix: &str,
        limit: u32,
        cursor: Option<&str>,
    ) -> Answer<LockPage> {
        check_limit(limit)?;
        let after = cursor.map(|cursor| name_of_kind(kind, cursor)).transpose()?;
        let groups = self.parts.router.all_groups();
        let asked = groups.iter().map(|group| {
            let call = GroupCall::Locks { kind, prefix: prefix.to_owned(), after: after.clone(), limit };
            self.parts.router.call(*group, call)
        });
        let (mut locks, mut unavailable_groups, mut more) = (Vec::<LockView>::new(), Vec::new(), false);
        for (group, answer) in groups.iter().zip(futures::future::join_all(asked).await) {
            match answer {
                Ok(GroupAnswer::Locks { locks: page, more: rest }) => {
                    locks.extend(page);
                    more |= rest;
                }
                Ok(other) => return Err(About { group: *group, name: None, session: None }.surprise(&other)),
                Err(_) => unavailable_groups.push(*group),
            }
        }
        locks.sort_by(|a, b| a.name.cmp(&b.name));
        // A range that is just changing hands shows in both groups, the same in both.
        locks.dedup_by(|a, b| a.name == b.name);
        more |= locks.len() > limit as usize;
        locks.truncate(limit as usize);
        let next_cursor = locks.last().filter(|_| more).map(|lock| lock.name.clone());
        Ok(LockPage { locks, next_cursor, unavailable_groups })
    }

    /// One lock or election with its queue and history. A free one that has no history is an empty detail, no error.
    pub async fn lock(&self, name: &Name) -> Answer<LockDetail> {
        let (group, answer) = self.call_owner(name, GroupCall::Lock(name.clone())).await?;
        let about = about_name(group, name, None);
        match answer {
            Ok(GroupAnswer::Lock(detail)) => Ok(*detail),
            Ok(other) => Err(about.surprise(&other)),
            Err(error) => Err(about.error(error)),
        }
    }
}

pub(super) fn check_limit(limit: u32) -> Answer<()> {
    if (1..=MAX_PAGE).contains(&limit) {
        return Ok(());
    }
    Err(ApiError::invalid(format!("limit is {limit}; it must be 1 to {MAX_PAGE}")))
}

pub(super) fn name_of_kind(kind: NameKind, text: &str) -> Answer<Name> {
    let name = match kind {
        NameKind::Lock => Name::lock(text),
        NameKind::Election => Name::election(text),
        NameKind::Claim => Name::claim(text),
    };
    name.map_err(|error| ApiError::invalid(format!("cursor: {error}")))
}

/// The caller of an acquire. Dropped without an answer, it tells the leader that nobody is there any more; also where
/// the leader has answered already and the answer was on its way.
struct Caller {
    endpoint: Endpoint,
    request: AcquireRequest,
    attempt: AttemptId,
    answered: bool,
}

impl Drop for Caller {
    fn drop(&mut self) {
        if self.answered {
            return;
        }
        let (router, attempt) = (self.endpoint.parts.router.clone(), self.attempt);
        let AcquireRequest { name, session, request, .. } = self.request.clone();
        let gone = GroupCall::Detached { name: name.clone(), session, request, attempt };
        // Outside a runtime the process is ending, and with it everything that was attached.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                if let (group, Err(error)) = router.call_owner(&name, gone).await {
                    tracing::debug!(%group, %error, "a caller's going away was not noted; the next leader notices by itself");
                }
            });
        }
    }
}

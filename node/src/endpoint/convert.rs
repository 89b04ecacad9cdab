//! Turns what groups answer into errors for people: what happened, to which name, what to do next.

use holdfast_locktable::{
    event::Removal,
    ids::SessionId,
    name::{Name, NameKind},
    outcome::{Bound, Rejection, RequestEnd},
};
use holdfast_partitioner::GroupId;

use super::error::{ApiError, ErrorCode};
use crate::group::{call::GroupAnswer, proposer::GroupError, read::removal_text};

/// What a call was about, for the words of its errors.
#[derive(Clone, Copy, Debug)]
pub(super) struct About<'a> {
    pub group: GroupId,
    pub name: Option<&'a Name>,
    pub session: Option<SessionId>,
}

impl About<'_> {
    fn what(&self) -> String {
        match (self.name, self.session) {
            (Some(name), _) => match name.kind() {
                NameKind::Lock => format!("lock {:?}", name.text()),
                NameKind::Election => format!("election {:?}", name.text()),
                NameKind::Claim => format!("claim {:?}", name.text()),
            },
            (None, Some(session)) => format!("session {session}"),
            (None, None) => format!("group {}", self.group),
        }
    }

    fn session(&self) -> String {
        self.session.map_or_else(|| "the session".to_owned(), |session| format!("session {session}"))
    }

    /// A group's error in the words of the API.
    pub(super) fn error(&self, error: GroupError) -> ApiError {
        match error {
            GroupError::NotLeader { .. } => ApiError::no_leader(self.group),
            GroupError::HomeUnavailable { home } => ApiError::no_leader(home),
            GroupError::Unknown => ApiError::new(
                ErrorCode::UnknownOutcome,
                format!(
                    "the leader was lost while it worked on {}; it may or may not have been done; look before you repeat it",
                    self.what()
                ),
            ),
            GroupError::Overloaded => ApiError::new(
                ErrorCode::Overloaded,
                format!(
                    "group {} has too much to do right now; nothing was changed; try again later",
                    self.group
                ),
            ),
            GroupError::Rejected(rejection) => self.rejection(rejection),
            GroupError::Refused { why } => ApiError::new(ErrorCode::InvalidArgument, why),
            GroupError::Conflict { why } => ApiError::new(ErrorCode::Changed, why),
            GroupError::Fatal(reason) => {
                tracing::error!(group = %self.group, reason, "a call failed");
                ApiError::new(ErrorCode::Internal, format!("{} could not be handled: {reason}", self.what()))
            }
        }
    }

    /// An answer that the verb cannot have.
    pub(super) fn surprise(&self, answer: &GroupAnswer) -> ApiError {
        self.error(GroupError::Fatal(format!("unexpected answer: {}", answer.kind())))
    }

    /// A wait that ended without a grant.
    pub(super) fn not_granted(&self, removal: Removal) -> ApiError {
        let what = self.what();
        match removal {
            Removal::TimedOut => ApiError::new(
                ErrorCode::Timeout,
                format!("{what} did not come free within the wait limit; the wait is out of the queue"),
            ),
            Removal::Cancelled | Removal::Abandoned => {
                ApiError::new(ErrorCode::Cancelled, format!("the wait for {what} was cancelled"))
            }
            Removal::SessionEnded(_) => self.session_lost(),
            Removal::Released | Removal::ForceReleased | Removal::Deleted => ApiError::new(
                ErrorCode::Removed,
                format!("the wait for {what} was ended by somebody else ({})", removal_text(removal)),
            ),
        }
    }

    fn session_lost(&self) -> ApiError {
        self.session.map_or_else(
            || ApiError::new(ErrorCode::SessionLost, "the session has ended"),
            ApiError::session_lost,
        )
    }

    fn rejection(&self, rejection: Rejection) -> ApiError {
        let what = self.what();
        match rejection {
            Rejection::Busy { holder, token, waiters } => {
                let mut error = ApiError::new(
                    ErrorCode::Busy,
                    format!(
                        "{what} is held by session {holder} with {waiters} waiting; wait with wait_ms, or try later"
                    ),
                );
                (error.facts.holder, error.facts.token, error.facts.waiters) =
                    (Some(holder), Some(token), Some(waiters));
                error
            }
            Rejection::SessionLost { session } | Rejection::SessionUnknown { session } => {
                ApiError::session_lost(session)
            }
            Rejection::SessionExists { session } => {
                ApiError::new(ErrorCode::Internal, format!("the id of session {session} is taken; try again"))
            }
            Rejection::AlreadyHeld { token } => {
                let mut error = ApiError::new(
                    ErrorCode::AlreadyHeld,
                    format!(
                        "{} holds {what} already, with token {token}, under another request id; release it first",
                        self.session()
                    ),
                );
                error.facts.token = Some(token);
                error
            }
            Rejection::AlreadyWaiting => ApiError::new(
                ErrorCode::AlreadyWaiting,
                format!(
                    "{} waits for {what} already, under another request id; cancel that wait or repeat its request id",
                    self.session()
                ),
            ),
            Rejection::NotHolder => ApiError::new(
                ErrorCode::NotHolder,
                format!("{} does not hold {what} with that token; nothing was changed", self.session()),
            ),
            Rejection::StaleRequest { ended } => self.stale(ended),
            Rejection::TooManyOutstanding => ApiError::new(
                ErrorCode::TooManyOutstanding,
                format!("{} has 256 requests without an answer in group {}", self.session(), self.group),
            ),
            Rejection::Changed { holder } => self.changed(holder),
            Rejection::NotOwner | Rejection::Sealed { .. } => ApiError::no_leader(self.group),
            Rejection::Compacted { oldest } => compacted(self.group, oldest),
            Rejection::OutOfBounds(bound) => ApiError::invalid(bound_text(bound)),
            Rejection::InvalidTxn(error) => ApiError::invalid(error.to_string()),
            Rejection::CounterFull => ApiError::new(
                ErrorCode::Internal,
                format!("group {} has used up its revisions; restore it into a new incarnation", self.group),
            ),
            Rejection::StaleTerm => ApiError::no_leader(self.group),
            Rejection::AlreadyOwned => ApiError::new(ErrorCode::Internal, "the group has its ranges already"),
            Rejection::ClaimPartitions { partitions } => {
                let mut error = ApiError::new(
                    ErrorCode::OtherPartitions,
                    format!("{what} has {partitions} partitions; join with that number, or use another name"),
                );
                error.facts.partitions = Some(partitions);
                error
            }
            Rejection::ClaimFull { members } => ApiError::new(
                ErrorCode::ClaimFull,
                format!("{what} has {members} members already; no more can join it"),
            ),
            Rejection::GrantsPaused { pause_ms } => ApiError::new(
                ErrorCode::Overloaded,
                format!(
                    "{what} is not granted yet: the cluster was restored, and group {} grants nothing in its first {} s, so that \
                     whoever held a lock in the lost cluster has stopped by then; nothing was changed; try again later",
                    self.group,
                    pause_ms.div_ceil(1_000)
                ),
            ),
            Rejection::NotMember => ApiError::new(
                ErrorCode::NotMember,
                format!("{} takes no part in {what} (any more); nothing was changed", self.session()),
            ),
            // Only the driver of a move meets these.
            Rejection::StaleMove { .. }
            | Rejection::MoveUnderWay { .. }
            | Rejection::ImportOutOfOrder { .. }
            | Rejection::NotPrepared => {
                ApiError::new(ErrorCode::Internal, "a step of a move came out of turn")
            }
        }
    }

    fn stale(&self, ended: Option<RequestEnd>) -> ApiError {
        let how = match ended {
            // As the first attempt was told.
            Some(RequestEnd::SessionEnded) => return self.session_lost(),
            Some(RequestEnd::Released) => Some("released"),
            Some(RequestEnd::TimedOut) => Some("timed_out"),
            Some(RequestEnd::Cancelled) => Some("cancelled"),
            Some(RequestEnd::Removed) => Some("removed"),
            None => None,
        };
        let ended = how.map_or_else(String::new, |how| format!(" ({how})"));
        let mut error = ApiError::new(
            ErrorCode::StaleRequest,
            format!(
                "this request for {} has ended already{ended} and is not executed again; use a new request id",
                self.what()
            ),
        );
        error.facts.ended = how.map(str::to_owned);
        error
    }

    fn changed(&self, holder: Option<(SessionId, holdfast_locktable::ids::Token)>) -> ApiError {
        let now = match holder {
            Some((session, token)) => format!("session {session} holds it now, with token {token}"),
            None => "nobody holds it now".to_owned(),
        };
        let mut error = ApiError::new(
            ErrorCode::Changed,
            format!("{} is not held with that token any more: {now}; nothing was changed", self.what()),
        );
        (error.facts.holder, error.facts.token) = (holder.map(|h| h.0), holder.map(|h| h.1));
        error
    }
}

/// History that is gone.
pub(super) fn compacted(group: GroupId, oldest: holdfast_locktable::ids::Revision) -> ApiError {
    let mut error = ApiError::new(
        ErrorCode::Compacted,
        format!(
            "history of group {group} begins at revision {oldest}; list the locks anew and watch from now on"
        ),
    );
    (error.facts.oldest, error.facts.group) = (Some(oldest), Some(group));
    error
}

const fn bound_text(bound: Bound) -> &'static str {
    match bound {
        Bound::Ttl => "ttl_ms must be 1000 to 86400000",
        Bound::Value => "the value has more than 65536 bytes",
        Bound::RequestId => "request_id has 1 to 256 bytes",
        Bound::Key => "the key has more than 4096 bytes",
        Bound::Partitions => "partitions must be 1 to 4096",
        Bound::Weight => "weight must be 1 to 1000",
        Bound::Claims => {
            "a session may take part in at most 256 claims of one group; leave one, or use another session"
        }
    }
}

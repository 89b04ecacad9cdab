//! What a verb is to whoever sends it: whether it may be sent again, what ends it for good, and what its errors say.
//!
//! Knows no group and no member.

use std::time::Duration;

use holdfast_locktable::{
    command::{CancelReason, IfGranted, Wait},
    outcome::Rejection,
};

use crate::{
    endpoint::types::AcquireRequest,
    group::{
        call::{GroupAnswer, GroupCall},
        claims::ClaimCall,
        proposer::GroupError,
    },
};

/// Whether another group owns the name by now, or will in a moment; nothing was done.
pub(super) fn elsewhere(error: &GroupError) -> bool {
    matches!(error, GroupError::Rejected(Rejection::NotOwner | Rejection::Sealed { .. }))
}

/// Whether an acquire was refused for what stands in the queue or is outstanding now, so that a copy of it could be executed
/// later. Of all other refusals the group keeps a record, or they hold for ever.
pub(super) fn leaves_no_record(refusal: &GroupError) -> bool {
    matches!(
        refusal,
        GroupError::Rejected(
            Rejection::Busy { .. }
                | Rejection::AlreadyHeld { .. }
                | Rejection::AlreadyWaiting
                | Rejection::TooManyOutstanding
                | Rejection::GrantsPaused { .. }
        )
    )
}

/// What ends an acquire for good, so that no copy of it is executed any more; a hold it has already is left alone.
pub(super) fn end_of_acquire(call: &GroupCall) -> Option<GroupCall> {
    let GroupCall::Acquire(_, AcquireRequest { name, session, request, .. }) = call else { return None };
    Some(GroupCall::Cancel {
        name: name.clone(),
        session: *session,
        request: request.clone(),
        reason: CancelReason::Cancelled,
        granted: IfGranted::Keep,
    })
}

/// Whether a verb may be sent again after it may have been executed.
pub(super) fn repeatable(call: &GroupCall) -> bool {
    match call {
        GroupCall::Acquire(..)
        | GroupCall::AttachSession { .. }
        | GroupCall::LearnEnds(_)
        | GroupCall::Detached { .. }
        | GroupCall::Cancel { .. }
        | GroupCall::Release { .. }
        | GroupCall::Proclaim { .. }
        | GroupCall::Locks { .. }
        | GroupCall::Lock(_)
        | GroupCall::Sessions
        | GroupCall::Session(_)
        | GroupCall::Locate(_)
        | GroupCall::Status
        | GroupCall::Move(_)
        | GroupCall::Claim(_)
        | GroupCall::Load
        | GroupCall::Members(_) => true,
        GroupCall::OpenSession { .. }
        | GroupCall::EndSession { .. }
        | GroupCall::ForceRelease { .. }
        | GroupCall::TakeSnapshot => false,
    }
}

impl GroupCall {
    /// The call as it is to be repeated after so long: a wait limit counts from the first sending.
    pub(super) fn after(&self, elapsed: Duration) -> Self {
        let mut call = self.clone();
        if let Self::Acquire(_, request) = &mut call
            && let Wait::AtMost(ms) = &mut request.wait
        {
            *ms = ms.saturating_sub(elapsed.as_millis() as u64);
        }
        if let Self::Claim(ClaimCall::Await { wait_ms, .. }) = &mut call {
            *wait_ms = wait_ms.saturating_sub(elapsed.as_millis() as u64);
        }
        call
    }
}

impl GroupAnswer {
    /// The name of the variant, for messages about answers that make no sense.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Session { .. } => "session",
            Self::Granted { .. } => "granted",
            Self::NotGranted(_) => "not granted",
            Self::Cancel(_) => "cancel",
            Self::Released(_) => "released",
            Self::ForceReleased(_) => "force released",
            Self::Proclaimed(_) => "proclaimed",
            Self::Locks { .. } => "locks",
            Self::Lock(_) => "lock",
            Self::Sessions(_) => "sessions",
            Self::Located { .. } => "located",
            Self::Status(_) => "status",
            Self::Snapshot(_) => "snapshot",
            Self::Move(_) => "move",
            Self::Claim(_) => "claim",
            Self::Load(_) => "load",
        }
    }
}

//! Cancelling at the leader: ends exactly one request, and where it has not come yet, keeps it from being executed later
//! (rules R9, R11).
//!
//! A group that does not know the session asks its home, as for an acquire: only a session that lives needs to be
//! remembered, and its home then tells this group of its end. Does not know who cancels, or why it matters to them.

use holdfast_locktable::{
    command::{Cancel, CancelReason, Command},
    mutant,
    outcome::{CancelOutcome, Outcome, Rejection},
};

use super::{Group, acquire::MEETINGS, proposer::GroupError};

impl Group {
    /// Cancels a request and says how it was found.
    pub(super) async fn cancel(&self, cancel: Cancel) -> Result<CancelOutcome, GroupError> {
        for _ in 0..MEETINGS {
            let command = match self.cancel_command(&cancel).await {
                // Whatever the session asked for, nothing of it is executed any more.
                Err(GroupError::Rejected(Rejection::SessionLost { .. })) => return Ok(CancelOutcome::None),
                command => command?,
            };
            match self.parts.proposer.propose(command).await {
                Ok(Outcome::Cancel(outcome)) => return Ok(outcome),
                Ok(other) => return Err(GroupError::Fatal(format!("a cancel was answered with {other:?}"))),
                Err(GroupError::Rejected(Rejection::SessionLost { .. })) => return Ok(CancelOutcome::None),
                // The term changed between the home's word and the entry.
                Err(GroupError::Rejected(Rejection::StaleTerm)) => {}
                Err(error) => return Err(error),
            }
        }
        Err(GroupError::NotLeader { leader: self.leader() })
    }

    /// The entry that cancels. With the word of the session's home where a client's cancel must be remembered and the group
    /// does not know the session.
    async fn cancel_command(&self, cancel: &Cancel) -> Result<Command, GroupError> {
        let session = cancel.session;
        let to_remember = match cancel.reason {
            CancelReason::Cancelled => !self.locks(|table| table.remembers(session)),
            CancelReason::TimedOut | CancelReason::Abandoned => false,
        };
        // What is not known at its home has ended, or is not known to this replica yet: the entry finds out.
        if !to_remember
            || (self.parts.home_of)(session) == self.id()
            || mutant!("cancel-by-a-stranger-forgotten")
        {
            return Ok(Command::Cancel(cancel.clone()));
        }
        let (epoch, attach) = self.meet(session).await?;
        Ok(Command::AttachCancel { epoch, attach, cancel: cancel.clone() })
    }
}

//! One lock that a session holds, or one claim that it takes part in, as the session's books have it.

use std::sync::Arc;

use super::lease::Place;
use crate::{clock::Moment, state::LossReason};

/// One hold.
#[derive(Clone, Debug)]
pub(crate) struct Hold {
    pub(crate) name: Arc<str>,
    pub(crate) election: bool,
    /// It stands for a part in a claim, which has neither a token nor a release of its own.
    pub(crate) claim: bool,
    pub(crate) token: u64,
    /// Where it is known to stand: whose acknowledgements count.
    pub(crate) place: Place,
    /// When its acquire was first sent.
    pub(crate) first_send: Moment,
    pub(crate) standing: Standing,
    /// Whether it has been handed to its caller.
    pub(crate) confirmed: bool,
    /// Whether nobody asks about it any more.
    pub(crate) orphan: bool,
}

/// How a hold stands, apart from time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// Held, as far as anybody has said.
    Held,
    /// A release has been sent, and its answer is not here.
    Releasing,
    /// Ended by its own release.
    Released,
    /// Ended otherwise.
    Lost(LossReason),
}

impl Hold {
    /// Whether it is not over.
    pub(crate) const fn is_live(&self) -> bool {
        match self.standing {
            Standing::Held | Standing::Releasing => true,
            Standing::Released | Standing::Lost(_) => false,
        }
    }
}

//! Asking the lock service about a token that is higher than anything seen here.
//!
//! Without this, one mistaken or hostile write with a huge token would lock every later holder out of a lock's objects.
//! The guards ask before they begin to write, hold no row of theirs meanwhile, and never ask about a token at or below
//! the mark. How the lock service is reached is the implementer's business.

use std::{fmt, future::Future, pin::Pin, sync::Arc, time::Duration};

use crate::{claim::Claim, error::FenceError};

/// How long the lock service may take to answer before the write is refused as not confirmed.
const CHECK_TIMEOUT: Duration = Duration::from_secs(5);

/// What the lock service knows about a token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TokenVerdict {
    /// The token is not above the highest one granted for this lock.
    Plausible,
    /// No holder was given so high a token.
    NotGranted {
        /// The highest token granted for this lock; 0 if none.
        highest: u64,
    },
    /// There was no answer.
    Unavailable {
        /// Why, for people.
        reason: String,
    },
}

/// The answer of a [`TokenCheck`], when it comes.
pub type VerdictFuture<'a> = Pin<Box<dyn Future<Output = TokenVerdict> + Send + 'a>>;

/// Something that can ask the lock service. An answer must be current: a read that may be older than the grant in
/// question would refuse its holder.
///
/// ```
/// use holdfast_fence::{TokenCheck, TokenVerdict, VerdictFuture};
///
/// /// Believes everything up to a number.
/// struct UpTo(u64);
///
/// impl TokenCheck for UpTo {
///     fn check<'a>(&'a self, _lock: &'a str, token: u64) -> VerdictFuture<'a> {
///         Box::pin(async move {
///             if token <= self.0 { TokenVerdict::Plausible } else { TokenVerdict::NotGranted { highest: self.0 } }
///         })
///     }
/// }
/// ```
pub trait TokenCheck: Send + Sync {
    /// Whether `token` may have been granted for `lock`. The guard waits five seconds at most.
    fn check<'a>(&'a self, lock: &'a str, token: u64) -> VerdictFuture<'a>;
}

/// The check a guard was given, if any.
#[derive(Clone)]
pub(crate) struct TokenGate {
    check: Option<Arc<dyn TokenCheck>>,
    limit: Duration,
}

impl TokenGate {
    pub(crate) fn new(check: Option<Arc<dyn TokenCheck>>) -> Self {
        Self { check, limit: CHECK_TIMEOUT }
    }

    /// Whether anybody has to be asked at all; if not, the guards skip reading the mark beforehand.
    pub(crate) fn asks(&self) -> bool {
        self.check.is_some()
    }

    /// Lets pass what is at or below `mark` (marks only grow, so it stays so) and what the lock service confirms.
    pub(crate) async fn admit(&self, claim: &Claim, mark: Option<u64>) -> Result<(), FenceError> {
        let Some(check) = &self.check else { return Ok(()) };
        if mark.is_some_and(|mark| claim.token() <= mark) {
            return Ok(());
        }
        let verdict = tokio::time::timeout(self.limit, check.check(claim.lock(), claim.token())).await;
        let verdict = verdict.unwrap_or_else(|_elapsed| TokenVerdict::Unavailable {
            reason: format!("no answer within {:?}", self.limit),
        });
        let (lock, token) = (claim.lock().to_owned(), claim.token());
        match verdict {
            TokenVerdict::Plausible => Ok(()),
            TokenVerdict::NotGranted { highest } => {
                Err(FenceError::UnknownToken { lock, token, highest_granted: highest })
            }
            TokenVerdict::Unavailable { reason } => Err(FenceError::CheckUnavailable { lock, token, reason }),
        }
    }
}

impl fmt::Debug for TokenGate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.asks() { "TokenGate(asks the lock service)" } else { "TokenGate(open)" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Silent;

    impl TokenCheck for Silent {
        fn check<'a>(&'a self, _lock: &'a str, _token: u64) -> VerdictFuture<'a> {
            Box::pin(std::future::pending())
        }
    }

    #[tokio::test]
    async fn a_lock_service_that_never_answers_does_not_hang_the_write() {
        let gate = TokenGate { check: Some(Arc::new(Silent)), limit: Duration::from_millis(1) };
        let claim = Claim::new("jobs/42", 7).unwrap();
        let refused = gate.admit(&claim, Some(6)).await.unwrap_err();
        assert!(matches!(refused, FenceError::CheckUnavailable { token: 7, .. }), "{refused}");
        gate.admit(&claim, Some(7)).await.expect("a token at the mark is not asked about");
    }
}

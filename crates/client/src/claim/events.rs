//! Changes of what a member has, as a stream: the difference between what was told and what there is.
//!
//! Nothing queues up: who looks late is told of the newest state, and never of one that was skipped.

use std::{
    collections::BTreeMap,
    pin::Pin,
    task::{Context, Poll},
};

use async_stream::stream;
use futures::{Stream, StreamExt, stream::BoxStream};
use tokio::sync::watch;

use super::{
    books::{Books, Partition},
    error::ClaimEnd,
};

/// One change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClaimEvent {
    /// The partition is this member's, with this token.
    Assigned(Partition),
    /// The partition is to be given back: stop using it, then call [`Claim::give_back`](super::Claim::give_back). Nobody
    /// else has it until then.
    Revoked(Partition),
    /// It is over: stop using everything. The last one.
    Ended(ClaimEnd),
}

/// A stream of changes, from [`Claim::events`](super::Claim::events). Ends after [`ClaimEvent::Ended`].
pub struct ClaimEvents {
    events: BoxStream<'static, ClaimEvent>,
}

impl std::fmt::Debug for ClaimEvents {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ClaimEvents").finish_non_exhaustive()
    }
}

impl Stream for ClaimEvents {
    type Item = ClaimEvent;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.events.poll_next_unpin(context)
    }
}

impl ClaimEvents {
    pub(super) fn new(mut books: watch::Receiver<Books>) -> Self {
        let events = stream! {
            let mut told = BTreeMap::new();
            loop {
                let (changes, end) = {
                    let now = books.borrow_and_update();
                    (difference(&mut told, now.has()), now.end().cloned())
                };
                if let Some(end) = end {
                    yield ClaimEvent::Ended(end);
                    return;
                }
                for change in changes {
                    yield change;
                }
                if books.changed().await.is_err() {
                    yield ClaimEvent::Ended(ClaimEnd::Left);
                    return;
                }
            }
        };
        Self { events: events.boxed() }
    }
}

/// What leads from what was told to what there is, and tells it. What was given back is no news to who gave it back.
fn difference(told: &mut BTreeMap<u32, Partition>, has: &BTreeMap<u32, Partition>) -> Vec<ClaimEvent> {
    let mut changes = Vec::new();
    for (number, now) in has {
        let before = told.get(number).filter(|before| before.token == now.token);
        if before.is_none() {
            changes.push(ClaimEvent::Assigned(Partition { revoking: false, ..*now }));
        }
        if now.revoking && before.is_none_or(|before| !before.revoking) {
            changes.push(ClaimEvent::Revoked(*now));
        }
    }
    told.clone_from(has);
    changes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::Token;

    fn has(partitions: &[(u32, u64, bool)]) -> BTreeMap<u32, Partition> {
        let partition = |(number, token, revoking): (u32, u64, bool)| Partition {
            number,
            token: Token::new(token),
            revoking,
        };
        partitions.iter().map(|told| (told.0, partition(*told))).collect()
    }

    fn words(changes: &[ClaimEvent]) -> Vec<String> {
        let word = |change: &ClaimEvent| match change {
            ClaimEvent::Assigned(partition) => format!("+{}@{}", partition.number, partition.token),
            ClaimEvent::Revoked(partition) => format!("-{}@{}", partition.number, partition.token),
            ClaimEvent::Ended(end) => end.to_string(),
        };
        changes.iter().map(word).collect()
    }

    #[test]
    fn each_change_is_told_once_and_in_an_order_that_makes_sense() {
        let mut told = BTreeMap::new();
        let mut look = |partitions: &[(u32, u64, bool)]| words(&difference(&mut told, &has(partitions)));
        assert_eq!(look(&[(0, 1, false), (1, 1, true)]), ["+0@1", "+1@1", "-1@1"]);
        assert!(look(&[(0, 1, false), (1, 1, true)]).is_empty());
        assert_eq!(look(&[(0, 1, true)]), ["-0@1"], "1 was given back, which is no news");
        assert_eq!(look(&[(0, 7, false), (1, 8, false)]), ["+0@7", "+1@8"], "given anew, with higher tokens");
    }
}

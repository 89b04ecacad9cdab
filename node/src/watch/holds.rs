//! Who wants to hear of the ends of which holds: plain state, one look-up per end.
//!
//! Knows tokens and listeners. Does not know why anybody listens.

use std::collections::BTreeMap;

use holdfast_locktable::{
    event::Removal,
    ids::{SessionId, Token},
    name::Name,
};
use holdfast_partitioner::{MapEpoch, Range};
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc::UnboundedSender;

use super::watchers::Audience;

/// Followed holds below which nobody looks for listeners that are gone.
const FEW: usize = 1_024;

/// One hold of one session.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Hold {
    /// Whose.
    pub session: SessionId,
    /// Of which lock or election.
    pub name: Name,
    /// Its token, which no other key of the same lock ever has.
    pub token: Token,
}

/// What a listener hears of a hold, once; then it is not followed any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HoldNews {
    /// It has ended.
    Ended {
        /// Which.
        hold: Hold,
        /// Why.
        reason: Removal,
    },
    /// The table was replaced by a snapshot, or the range has another owner: whether it has ended must be looked up anew.
    LookAgain {
        /// Which.
        hold: Hold,
        /// The map epoch under which it stood somewhere at least: who knows only of earlier ones cannot say.
        epoch: MapEpoch,
    },
}

/// Where a listener listens. Bounded by the holds it follows: each is told of once.
pub type Listener = UnboundedSender<HoldNews>;

/// The followed holds of one group on one member.
#[derive(Debug)]
pub struct Holds {
    /// By token and name: a range that came brings tokens that another lock of the group may have.
    by_token: BTreeMap<(Token, Name), (Hold, Listener)>,
    audience: Audience,
    /// At this many, those whose listener is gone are dropped.
    sweep_at: usize,
}

impl Holds {
    /// None yet; `audience` counts those on their way here too.
    pub fn new(audience: Audience) -> Self {
        Self { by_token: BTreeMap::new(), audience, sweep_at: FEW }
    }

    /// Follows a hold, which has joined the audience. A newer listener takes the place of an older one.
    pub fn follow(&mut self, hold: Hold, listener: Listener) {
        if self.by_token.len() >= self.sweep_at {
            let before = self.by_token.len();
            self.by_token.retain(|_, (_, listener)| !listener.is_closed());
            self.audience.leaves(before - self.by_token.len());
            self.sweep_at = (self.by_token.len() * 2).max(FEW);
        }
        if self.by_token.insert((hold.token, hold.name.clone()), (hold, listener)).is_some() {
            self.audience.leaves(1);
        }
    }

    /// A hold has ended.
    pub fn ended(&mut self, name: Name, token: Token, reason: Removal) {
        if let Some((hold, listener)) = self.by_token.remove(&(token, name)) {
            self.audience.leaves(1);
            // A listener that went away need not hear.
            let _ = listener.send(HoldNews::Ended { hold, reason });
        }
    }

    /// A range has another owner since this map epoch, which knows whether a hold in it has ended.
    pub fn left(&mut self, range: &Range, epoch: MapEpoch) {
        let gone = self.by_token.extract_if(.., |_, (hold, _)| range.contains(hold.name.internal()));
        let gone: Vec<(Hold, Listener)> = gone.map(|(_, followed)| followed).collect();
        self.audience.leaves(gone.len());
        for (hold, listener) in gone {
            // As above.
            let _ = listener.send(HoldNews::LookAgain { hold, epoch });
        }
    }

    /// The table was replaced by a snapshot, or is not up to date any more.
    pub fn restored(&mut self) {
        self.audience.leaves(self.by_token.len());
        for (hold, listener) in std::mem::take(&mut self.by_token).into_values() {
            // As above.
            let _ = listener.send(HoldNews::LookAgain { hold, epoch: MapEpoch::NONE });
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::mpsc::unbounded_channel;

    use super::*;

    fn hold(token: u64) -> Hold {
        let session = SessionId::new(1).unwrap();
        Hold { session, name: Name::lock("a").unwrap(), token: holdfast_locktable::ids::Revision(token) }
    }

    fn followed(holds: &mut Holds, token: u64, listener: &Listener) {
        holds.audience.joins();
        holds.follow(hold(token), listener.clone());
    }

    #[test]
    fn an_end_is_told_once_and_to_the_newest_listener() {
        let audience = Audience::default();
        let mut holds = Holds::new(audience.clone());
        let (old, mut old_hears) = unbounded_channel();
        let (new, mut new_hears) = unbounded_channel();
        followed(&mut holds, 7, &old);
        followed(&mut holds, 7, &new);
        followed(&mut holds, 8, &new);
        holds.ended(hold(9).name, hold(9).token, Removal::Released);
        holds.ended(hold(7).name, hold(7).token, Removal::ForceReleased);
        holds.ended(hold(7).name, hold(7).token, Removal::ForceReleased);
        let ended = HoldNews::Ended { hold: hold(7), reason: Removal::ForceReleased };
        assert_eq!(new_hears.try_recv(), Ok(ended));
        assert!(new_hears.try_recv().is_err() && old_hears.try_recv().is_err());
        assert!(!audience.is_empty());
        holds.restored();
        assert_eq!(new_hears.try_recv(), Ok(HoldNews::LookAgain { hold: hold(8), epoch: MapEpoch::NONE }));
        assert!(audience.is_empty());
    }

    #[test]
    fn holds_of_two_locks_may_have_the_same_token() {
        let mut holds = Holds::new(Audience::default());
        let (listener, mut hears) = unbounded_channel();
        let other = Hold { name: Name::lock("b").unwrap(), ..hold(7) };
        followed(&mut holds, 7, &listener);
        holds.audience.joins();
        holds.follow(other.clone(), listener);
        holds.ended(other.name.clone(), other.token, Removal::Released);
        assert_eq!(hears.try_recv(), Ok(HoldNews::Ended { hold: other, reason: Removal::Released }));
        holds.left(&Range::everything(), MapEpoch(4));
        assert_eq!(hears.try_recv(), Ok(HoldNews::LookAgain { hold: hold(7), epoch: MapEpoch(4) }));
        assert!(holds.audience.is_empty() && hears.try_recv().is_err());
    }

    #[test]
    fn holds_of_listeners_that_are_gone_are_swept() {
        let audience = Audience::default();
        let mut holds = Holds::new(audience.clone());
        let (gone, hears) = unbounded_channel();
        drop(hears);
        let (here, _hears) = unbounded_channel();
        followed(&mut holds, 1, &here);
        for token in 2..5_000 {
            followed(&mut holds, token, &gone);
            assert!(holds.by_token.len() <= FEW, "{token}");
        }
        assert!(holds.by_token.contains_key(&(hold(1).token, hold(1).name)));
        holds.restored();
        assert!(audience.is_empty());
    }
}

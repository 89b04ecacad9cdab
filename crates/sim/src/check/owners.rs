//! No partition of a claim has two owners that rightly count on it, and its tokens only grow from owner to owner.
//!
//! Claimants say what they count on: until when by their own deadline, and no longer from before they send that they give it
//! back.

use std::{collections::BTreeMap, sync::Arc};

use holdfast_locktable::{
    ids::{SessionId, Token},
    name::Name,
};
use parking_lot::Mutex;

use super::Findings;

/// A partition that a claimant counts on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stake {
    /// With which session.
    pub session: SessionId,
    /// Its fencing token.
    pub token: Token,
    /// Until when.
    pub deadline_ms: u64,
}

/// Who counts on which partition, and the highest token of each. Clones are the same list.
#[derive(Clone, Debug, Default)]
pub struct Owners(Arc<Mutex<BTreeMap<(Name, u32), Partition>>>);

#[derive(Debug, Default)]
struct Partition {
    owners: BTreeMap<SessionId, Stake>,
    newest: Option<Stake>,
}

impl Owners {
    /// A claimant counts on a partition from now on, or for longer than before.
    pub fn count(&self, now: u64, claim: &Name, partition: u32, stake: Stake, findings: &Findings) {
        let mut partitions = self.0.lock();
        let known = partitions.entry((claim.clone(), partition)).or_default();
        known.owners.retain(|_, other| other.deadline_ms > now);
        let rival = known.owners.values().find(|other| other.session != stake.session);
        let outdone = known.newest.filter(|newest| {
            newest.token > stake.token || newest.token == stake.token && newest.session != stake.session
        });
        let wrong = match (rival, outdone) {
            (Some(rival), _) => Some(format!("and so does {rival:?}")),
            // Of an owner that heard of it late somebody else may be the next already; then it is not counted on.
            (None, Some(newest)) => Some(format!("and {newest:?} was its owner before")),
            (None, None) => None,
        };
        if let Some(wrong) = wrong {
            let sentence =
                format!("{stake:?} counts on partition {partition} of {:?}, {wrong}", claim.text());
            findings.add("owners", now, sentence);
        }
        known.newest = Some(stake);
        known.owners.insert(stake.session, stake);
    }

    /// A session is over, as its claimant sees it; where an operator has ended it, at that moment.
    pub fn strike_all(&self, session: SessionId) {
        for known in self.0.lock().values_mut() {
            known.owners.remove(&session);
        }
    }

    /// A claimant counts on a partition no more.
    pub fn strike(&self, claim: &Name, partition: u32, session: SessionId) {
        if let Some(known) = self.0.lock().get_mut(&(claim.clone(), partition)) {
            known.owners.remove(&session);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stake(session: u64, token: u64, deadline_ms: u64) -> Stake {
        Stake { session: SessionId::new(session).unwrap(), token: Token(token), deadline_ms }
    }

    fn counted(stakes: &[(u64, Stake)]) -> usize {
        let (owners, findings) = (Owners::default(), Findings::default());
        let claim = Name::claim("c").unwrap();
        for (now, stake) in stakes {
            owners.count(*now, &claim, 0, *stake, &findings);
        }
        findings.all().len()
    }

    #[test]
    fn one_after_the_other_with_growing_tokens_is_right() {
        assert_eq!(counted(&[(0, stake(1, 5, 10)), (5, stake(1, 5, 20)), (20, stake(2, 9, 30))]), 0);
    }

    #[test]
    fn two_at_a_time_and_a_lower_or_the_same_token_are_found() {
        assert_eq!(counted(&[(0, stake(1, 5, 10)), (9, stake(2, 9, 30))]), 1);
        assert_eq!(counted(&[(0, stake(1, 5, 10)), (10, stake(2, 4, 30))]), 1);
        assert_eq!(counted(&[(0, stake(1, 5, 10)), (10, stake(2, 5, 30))]), 1);
    }

    #[test]
    fn what_is_struck_off_is_no_rival() {
        let (owners, findings) = (Owners::default(), Findings::default());
        let claim = Name::claim("c").unwrap();
        owners.count(0, &claim, 3, stake(1, 5, 100), &findings);
        owners.strike(&claim, 3, SessionId::new(1).unwrap());
        owners.count(1, &claim, 3, stake(2, 6, 100), &findings);
        assert!(findings.is_empty(), "{:?}", findings.all());
        owners.strike_all(SessionId::new(2).unwrap());
        owners.count(2, &claim, 3, stake(3, 7, 100), &findings);
        assert!(findings.is_empty(), "{:?}", findings.all());
    }
}

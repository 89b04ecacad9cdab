//! What a member has of a claim: answers of the service and wishes of handles go in, changes come out. Pure.
//!
//! Only newer answers count. What was given back here is not this member's any more, whatever an answer says that was made
//! before the service knew.

use std::collections::BTreeMap;

use holdfast_proto::v1;
use serde::Serialize;

use super::error::ClaimEnd;
use crate::ids::Token;

/// One partition that a member has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Partition {
    /// Its number, from 0.
    pub number: u32,
    /// Its fencing token: what the partition protects should refuse a lower one than it has seen.
    pub token: Token,
    /// Whether it is to be given back.
    pub revoking: bool,
}

/// The books of one member.
#[derive(Clone, Debug, Default)]
pub(super) struct Books {
    /// Of the newest answer.
    revision: u64,
    size: u32,
    has: BTreeMap<u32, Partition>,
    /// Given back here, and the service does not know yet.
    giving: BTreeMap<u32, u64>,
    end: Option<ClaimEnd>,
    over: bool,
}

impl Books {
    /// What the service says this member has.
    pub(super) fn learn(&mut self, member: &v1::ClaimMembership) {
        if member.revision <= self.revision || self.end.is_some() {
            return;
        }
        (self.revision, self.size) = (member.revision, member.partitions);
        let stakes = member.stakes.iter();
        let still: BTreeMap<u32, u64> = stakes.clone().map(|stake| (stake.partition, stake.token)).collect();
        // Once the service has another word on a partition, it knows.
        self.giving.retain(|partition, token| still.get(partition) == Some(token));
        let mine = stakes.filter(|stake| !self.giving.contains_key(&stake.partition));
        let partition = |stake: &v1::Stake| Partition {
            number: stake.partition,
            token: Token::new(stake.token),
            revoking: stake.revoking,
        };
        self.has = mine.map(|stake| (stake.partition, partition(stake))).collect();
    }

    /// This member uses partitions no more. Answers those that it was to give back.
    pub(super) fn give_back(&mut self, partitions: impl IntoIterator<Item = u32>) -> Vec<(u32, u64)> {
        let mut given = Vec::new();
        for number in partitions {
            if let Some(partition) = self.has.get(&number).filter(|partition| partition.revoking) {
                given.push((number, partition.token.get()));
                self.giving.insert(number, partition.token.get());
                self.has.remove(&number);
            }
        }
        given
    }

    /// What the service is still to be told.
    pub(super) fn to_give(&self) -> Vec<(u32, u64)> {
        self.giving.iter().map(|(partition, token)| (*partition, *token)).collect()
    }

    /// The service knows that these were given back.
    pub(super) fn given(&mut self, given: &[(u32, u64)]) {
        self.giving.retain(|partition, token| !given.contains(&(*partition, *token)));
    }

    /// Whether the service is still to be told of any of these.
    pub(super) fn is_giving(&self, given: &[(u32, u64)]) -> bool {
        given.iter().any(|(partition, token)| self.giving.get(partition) == Some(token))
    }

    /// A handle wants to leave, or the last one is gone.
    pub(super) fn leave(&mut self) {
        self.ended(ClaimEnd::Left);
    }

    /// It is over, in whatever manner; the first one counts.
    pub(super) fn ended(&mut self, end: ClaimEnd) {
        if self.end.is_none() {
            self.end = Some(end);
            self.has.clear();
            self.giving.clear();
        }
    }

    /// Nothing more is done about it.
    pub(super) const fn close(&mut self) {
        self.over = true;
    }

    pub(super) const fn is_over(&self) -> bool {
        self.over
    }

    pub(super) const fn end(&self) -> Option<&ClaimEnd> {
        self.end.as_ref()
    }

    pub(super) const fn revision(&self) -> u64 {
        self.revision
    }

    pub(super) const fn size(&self) -> u32 {
        self.size
    }

    pub(super) fn partitions(&self) -> Vec<Partition> {
        self.has.values().copied().collect()
    }

    pub(super) const fn has(&self) -> &BTreeMap<u32, Partition> {
        &self.has
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(revision: u64, stakes: &[(u32, u64, bool)]) -> v1::ClaimMembership {
        let stake = |(partition, token, revoking): &(u32, u64, bool)| v1::Stake {
            partition: *partition,
            token: *token,
            revoking: *revoking,
        };
        let stakes = stakes.iter().map(stake).collect();
        v1::ClaimMembership { group: 1, revision, partitions: 4, weight: 1, draining: false, stakes }
    }

    fn numbers(books: &Books) -> Vec<u32> {
        books.partitions().iter().map(|partition| partition.number).collect()
    }

    #[test]
    fn older_answers_change_nothing() {
        let mut books = Books::default();
        books.learn(&answer(5, &[(0, 1, false)]));
        books.learn(&answer(4, &[(0, 1, false), (1, 1, false)]));
        books.learn(&answer(5, &[]));
        assert_eq!((numbers(&books), books.size()), (vec![0], 4));
    }

    #[test]
    fn what_was_given_back_is_not_ours_whatever_late_answers_say() {
        let mut books = Books::default();
        books.learn(&answer(5, &[(0, 1, true), (1, 1, false)]));
        assert_eq!(books.give_back([0, 1, 2]), [(0, 1)], "only what is revoked");
        assert_eq!((numbers(&books), books.to_give()), (vec![1], vec![(0, 1)]));
        // An answer that was made before the service knew.
        books.learn(&answer(6, &[(0, 1, true), (1, 1, true)]));
        assert_eq!((numbers(&books), books.to_give()), (vec![1], vec![(0, 1)]));
        // It knows, and gives the partition anew.
        books.learn(&answer(8, &[(0, 8, false)]));
        assert_eq!((numbers(&books), books.to_give()), (vec![0], vec![]));
    }

    #[test]
    fn an_acknowledged_return_is_told_once_and_stays_returned() {
        let mut books = Books::default();
        books.learn(&answer(5, &[(0, 1, true)]));
        let given = books.give_back([0]);
        assert!(books.is_giving(&given));
        books.given(&given);
        assert!(!books.is_giving(&given) && books.to_give().is_empty());
        assert!(numbers(&books).is_empty());
    }

    #[test]
    fn after_the_end_there_is_nothing_and_the_first_end_counts() {
        let mut books = Books::default();
        books.learn(&answer(5, &[(0, 1, true)]));
        books.ended(ClaimEnd::Removed);
        books.leave();
        books.learn(&answer(6, &[(0, 1, false)]));
        assert_eq!((books.end(), numbers(&books)), (Some(&ClaimEnd::Removed), vec![]));
    }
}

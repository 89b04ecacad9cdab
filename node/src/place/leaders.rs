//! Which group should be led by another member: away from drained members, and so that leaders carry their groups' load evenly.
//!
//! Pure, and sticky: what gains little stays. Only to a voter that has caught up, never where a group is just changing.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    time::Duration,
};

use holdfast_partitioner::GroupId;
use tokio::time::Instant;

use crate::raft::types::MemberId;

/// The part of its load that the most loaded leader must lose, so that a transfer is worth the pause it makes.
const WORTH: f64 = 0.25;
/// Entries per second that a group counts for although nothing happens in it, so that idle groups are spread as well.
const IDLE: f64 = 1.0;
/// Transfers for the sake of load in [`PERIOD`].
const MOST_TRANSFERS: usize = 2;
const PERIOD: Duration = Duration::from_secs(60);

/// One group as its leader says.
#[derive(Clone, Debug, PartialEq)]
pub struct Led {
    /// The group.
    pub group: GroupId,
    /// Its leader.
    pub leader: MemberId,
    /// Voters that have caught up.
    pub ready: BTreeSet<MemberId>,
    /// Entries per second.
    pub rate: f64,
}

/// A leader to replace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// Of this group.
    pub group: GroupId,
    /// By this member.
    pub to: MemberId,
}

/// The next group that a drained member must not lead any more.
#[must_use]
pub fn off_drained(groups: &[Led], drained: &BTreeSet<MemberId>) -> Option<Transfer> {
    let loads = loads(groups);
    groups.iter().filter(|led| drained.contains(&led.leader)).find_map(|led| {
        let ready = led.ready.iter().filter(|member| !drained.contains(member));
        let to = ready.min_by(|a, b| load(&loads, **a).total_cmp(&load(&loads, **b)))?;
        Some(Transfer { group: led.group, to: *to })
    })
}

/// The transfer that makes the load of leaders most even, if one is worth it.
#[must_use]
pub fn spread(groups: &[Led], drained: &BTreeSet<MemberId>) -> Option<Transfer> {
    let loads = loads(groups);
    let mut best: Option<(f64, Transfer)> = None;
    for led in groups {
        let (weight, from) = (led.rate + IDLE, load(&loads, led.leader));
        for to in led.ready.iter().filter(|to| **to != led.leader && !drained.contains(to)) {
            // What the more loaded of the two has afterwards.
            let after = (from - weight).max(load(&loads, *to) + weight);
            let gain = from - after;
            if gain >= WORTH * from && best.is_none_or(|(most, _)| gain > most) {
                best = Some((gain, Transfer { group: led.group, to: *to }));
            }
        }
    }
    best.map(|(_, transfer)| transfer)
}

fn loads(groups: &[Led]) -> BTreeMap<MemberId, f64> {
    let mut loads = BTreeMap::new();
    for led in groups {
        *loads.entry(led.leader).or_insert(0.0) += led.rate + IDLE;
    }
    loads
}

fn load(loads: &BTreeMap<MemberId, f64>, member: MemberId) -> f64 {
    loads.get(&member).copied().unwrap_or(0.0)
}

/// How many transfers there may be: two a minute.
#[derive(Debug, Default)]
pub struct Budget(VecDeque<Instant>);

impl Budget {
    /// Whether there may be one now.
    pub fn allows(&mut self, now: Instant) -> bool {
        while self.0.front().is_some_and(|at| now.duration_since(*at) >= PERIOD) {
            self.0.pop_front();
        }
        self.0.len() < MOST_TRANSFERS
    }

    /// There is one now.
    pub fn spend(&mut self, now: Instant) {
        self.0.push_back(now);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn led(group: u32, leader: MemberId, ready: &[MemberId], rate: f64) -> Led {
        Led { group: GroupId(group), leader, ready: ready.iter().copied().collect(), rate }
    }

    #[test]
    fn two_groups_on_one_leader_are_spread_and_one_stays() {
        let none = BTreeSet::new();
        let both = [led(1, 1, &[1, 2, 3], 500.0), led(2, 1, &[1, 2, 3], 480.0)];
        assert_eq!(spread(&both, &none), Some(Transfer { group: GroupId(1), to: 2 }));
        assert_eq!(spread(&both[..1], &none), None);
        let spread_out = [led(1, 2, &[1, 2, 3], 500.0), led(2, 1, &[1, 2, 3], 480.0)];
        assert_eq!(spread(&spread_out, &none), None);
    }

    #[test]
    fn only_a_voter_that_has_caught_up_and_is_not_drained_takes_over() {
        let both = [led(1, 1, &[1], 500.0), led(2, 1, &[1, 3], 480.0)];
        assert_eq!(spread(&both, &BTreeSet::new()), Some(Transfer { group: GroupId(2), to: 3 }));
        assert_eq!(spread(&both, &BTreeSet::from([3])), None);
        assert_eq!(off_drained(&both, &BTreeSet::from([1])), Some(Transfer { group: GroupId(2), to: 3 }));
        assert_eq!(off_drained(&both, &BTreeSet::from([1, 3])), None);
    }

    #[test]
    fn little_is_not_worth_a_transfer() {
        let groups = [led(1, 1, &[1, 2], 100.0), led(2, 1, &[1, 2], 10.0), led(3, 2, &[1, 2], 90.0)];
        assert_eq!(spread(&groups, &BTreeSet::new()), None);
    }

    #[test]
    fn there_are_two_transfers_a_minute() {
        let (mut budget, now) = (Budget::default(), Instant::now());
        for after_s in [0, 1] {
            let at = now + Duration::from_secs(after_s);
            assert!(budget.allows(at));
            budget.spend(at);
        }
        assert!(!budget.allows(now + Duration::from_secs(59)));
        assert!(budget.allows(now + Duration::from_secs(60)));
    }

    proptest! {
        /// With the same load it comes to rest, and each transfer takes from the more loaded of two.
        #[test]
        fn transfers_come_to_rest(rates in prop::collection::vec((1_u64..5, 0.0_f64..1_000.0), 1..12)) {
            let all: Vec<MemberId> = (1..5).collect();
            let mut groups: Vec<Led> = (1..).zip(&rates).map(|(n, (leader, rate))| led(n, *leader, &all, *rate)).collect();
            for transfers in 0.. {
                prop_assert!(transfers < 200, "it goes on and on");
                let Some(Transfer { group, to }) = spread(&groups, &BTreeSet::new()) else { break };
                let before = loads(&groups);
                let at = groups.iter().position(|led| led.group == group).unwrap();
                let from = std::mem::replace(&mut groups[at].leader, to);
                let after = loads(&groups);
                prop_assert!(load(&after, from).max(load(&after, to)) < load(&before, from));
            }
        }
    }
}

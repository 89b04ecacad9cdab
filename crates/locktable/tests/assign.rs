//! Laws of the assignment of partitions, against a check that tries every balanced outcome. `HOLDFAST_SOAK=1` runs fifty
//! times as many.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::{collections::BTreeMap, env};

use holdfast_locktable::{
    assign::{Owner, Part, Plan, plan},
    ids::{Revision, SessionId},
};
use proptest::{prelude::*, test_runner::Config};

fn config() -> Config {
    let soak = if env::var_os("HOLDFAST_SOAK").is_some() { 50 } else { 1 };
    Config { cases: 4_000 * soak, failure_persistence: None, ..Config::default() }
}

fn id(session: u64) -> SessionId {
    SessionId::new(session).unwrap()
}

/// Members with weights, some of them 0, and owners among them.
fn claims() -> impl Strategy<Value = (Vec<Part>, Vec<Option<Owner>>)> {
    let weight = prop_oneof![3 => Just(1_u32), 2 => 1..6_u32, 1 => Just(0_u32), 1 => 900..=1_000_u32];
    prop::collection::vec(weight, 0..6).prop_flat_map(|weights| {
        let members: Vec<Part> =
            (1..).zip(weights).map(|(session, weight)| Part { session: id(session), weight }).collect();
        let sessions = members.len() as u64;
        let owner =
            (0..=sessions, 1..40_u64, prop::bool::weighted(0.2)).prop_map(|(session, token, revoking)| {
                (session > 0).then(|| Owner { session: id(session), token: Revision(token), revoking })
            });
        (Just(members), prop::collection::vec(owner, 1..20))
    })
}

/// How many partitions of each member stay with it, by the owners before or after.
fn kept(owners: &[Option<Owner>]) -> BTreeMap<SessionId, u64> {
    let mut kept = BTreeMap::new();
    for owner in owners.iter().flatten().filter(|owner| !owner.revoking) {
        *kept.entry(owner.session).or_default() += 1;
    }
    kept
}

/// The owners once the plan is carried out.
fn carried_out(plan: &Plan, owners: &[Option<Owner>]) -> Vec<Option<Owner>> {
    let mut after = owners.to_vec();
    for partition in &plan.revoke {
        let owner = after[*partition as usize].as_mut().expect("only what somebody has is revoked");
        assert!(!owner.revoking, "revoked twice");
        owner.revoking = true;
    }
    for (partition, session) in &plan.give {
        assert_eq!(after[*partition as usize], None, "partition {partition} has two owners");
        after[*partition as usize] = Some(Owner { session: *session, token: Revision(99), revoking: false });
    }
    after
}

/// The owners once everybody has given back what it was to give back, and the rest was dealt out.
fn settled(members: &[Part], mut owners: Vec<Option<Owner>>) -> Vec<Option<Owner>> {
    for owner in &mut owners {
        owner.take_if(|owner| owner.revoking);
    }
    let plan = plan(members, &owners);
    assert_eq!(plan.revoke, [], "what was settled is revoked again");
    carried_out(&plan, &owners)
}

/// The fewest revocations that lead to any balanced outcome.
fn fewest_moves(members: &[Part], has: &BTreeMap<SessionId, u64>, partitions: u64) -> u64 {
    let total: u64 = members.iter().map(|member| u64::from(member.weight)).sum();
    if total == 0 {
        return has.values().sum();
    }
    let mut fewest = u64::MAX;
    for choice in 0..1_u32 << members.len() {
        let (mut sum, mut moves) = (0, 0);
        for (at, member) in members.iter().enumerate() {
            let exact = u64::from(member.weight) * partitions;
            let up = choice >> at & 1 == 1;
            let share = if up { exact.div_ceil(total) } else { exact / total };
            sum += share;
            moves += has.get(&member.session).copied().unwrap_or_default().saturating_sub(share);
        }
        if sum == partitions {
            fewest = fewest.min(moves);
        }
    }
    fewest
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn it_is_balanced_sticky_and_whole((members, owners) in claims()) {
        let plan = plan(&members, &owners);
        let has = kept(&owners);
        let partitions = owners.len() as u64;
        prop_assert_eq!(plan.revoke.len() as u64, fewest_moves(&members, &has, partitions), "needless moves");

        let next = carried_out(&plan, &owners);
        let again = holdfast_locktable::assign::plan(&members, &next);
        prop_assert!(again.is_empty(), "not settled: {:?}", again);
        let after = settled(&members, next.clone());
        let total: u64 = members.iter().map(|member| u64::from(member.weight)).sum();
        prop_assert!(total == 0 || next.iter().all(Option::is_some), "free, though somebody may have it");
        prop_assert!(total == 0 || after.iter().all(Option::is_some));
        for member in &members {
            let has = kept(&after).get(&member.session).copied().unwrap_or_default();
            let exact = u64::from(member.weight) * partitions;
            let low = exact.checked_div(total);
            let balanced = low.map_or(has == 0, |low| low <= has && has <= exact.div_ceil(total));
            prop_assert!(balanced, "{:?} has {} of {}", member, has, partitions);
        }
        for (before, after) in owners.iter().zip(&after) {
            let stayed = before.filter(|owner| !owner.revoking).is_none_or(|owner| after.is_none_or(|a| {
                a.session == owner.session || plan.revoke.iter().any(|p| owners[*p as usize] == Some(owner))
            }));
            prop_assert!(stayed, "taken without having been revoked");
        }
    }
}

/// The numbers that people look for first.
#[test]
fn sixty_four_partitions_over_a_growing_and_shrinking_crew() {
    let crew = |size: u64| -> Vec<Part> { (1..=size).map(|s| Part { session: id(s), weight: 1 }).collect() };
    let mut owners = vec![None; 64];
    let mut moved = Vec::new();
    for size in 1..=8 {
        let plan = plan(&crew(size), &owners);
        moved.push(plan.revoke.len());
        owners = settled(&crew(size), carried_out(&plan, &owners));
    }
    assert_eq!(moved, [0, 32, 21, 16, 12, 10, 9, 8], "the n-th takes the n-th part, rounded down");
    let counts: Vec<u64> = kept(&owners).into_values().collect();
    assert_eq!(counts, [8; 8]);
    // One dies: only what it had goes to others.
    for owner in &mut owners {
        owner.take_if(|owner| owner.session == id(8));
    }
    let plan = plan(&crew(7), &owners);
    assert_eq!((plan.revoke.len(), plan.give.len()), (0, 8));
}

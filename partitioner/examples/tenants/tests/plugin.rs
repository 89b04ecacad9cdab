//! A strategy of another crate, from registration to routing. Knows only what is public.

// Fatal to a member, right in a test.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::collections::BTreeSet;
use std::sync::Arc;

use holdfast_example_tenants::Tenants;
use holdfast_partitioner::change::{Change, ChangeError, Given, Groups, Request, change};
use holdfast_partitioner::{GroupId, PartitionMap, Registry, RegistryError, StrategyRecord};

fn with_tenants() -> Registry {
    let mut registry = Registry::built_in();
    registry.register(Arc::new(Tenants)).unwrap();
    registry
}

fn record(settings: &[(&str, &str)]) -> StrategyRecord {
    let params = settings.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
    StrategyRecord { name: Tenants::NAME.into(), params }
}

fn groups(ids: impl IntoIterator<Item = u32>) -> BTreeSet<GroupId> {
    ids.into_iter().map(GroupId).collect()
}

fn asked(map: &PartitionMap, registry: &Registry, request: &Request) -> Result<Change, ChangeError> {
    let groups = Groups { usable: groups(1..=4), retired: BTreeSet::new() };
    change(&Given { map, groups: &groups, registry, names: &[] }, request)
}

fn split(settings: &[(&str, &str)], depth: u16) -> Request {
    Request::Split { prefix: "apps/".into(), into: groups([1, 2, 3]), depth, strategy: record(settings) }
}

fn start() -> PartitionMap {
    PartitionMap::initial(&[GroupId(1), GroupId(2), GroupId(3), GroupId(4)]).unwrap()
}

#[test]
fn tenants_stand_together_and_are_spread_by_weight() {
    let map = start();
    let request = split(&[("weights", "acme=5,globex=3,initech=2"), ("rest", "3")], 1);
    let map = asked(&map, &with_tenants(), &request).unwrap().apply(&map).unwrap();
    let of = |name: &str| map.locate(name);
    assert_eq!(of("apps/acme/db"), of("apps/acme"));
    assert_eq!(of("apps/acme/db/shard/7"), of("apps/acme"));
    assert_eq!(of("apps/initech/a"), of("apps/initech"));
    // 5, 3 + 2 and 3 are the most even way to spread these weights over three groups.
    let listed = [of("apps/acme"), of("apps/globex"), of("apps/anybody")];
    assert_eq!(listed.into_iter().collect::<BTreeSet<_>>(), groups([1, 2, 3]));
    assert_ne!(of("apps/initech"), of("apps/acme"));
    for other in ["apps/acm", "apps/acme2", "apps/zebra/x", "apps/acme-eu/db"] {
        assert_eq!(of(other), of("apps/anybody"), "{other} is not listed");
    }
}

#[test]
fn a_member_without_the_strategy_routes_and_moves_and_says_what_it_cannot_plan() {
    let map = start();
    let request = split(&[("weights", "acme=5")], 1);
    let map = asked(&map, &with_tenants(), &request).unwrap().apply(&map).unwrap();
    let without = Registry::built_in();
    assert_eq!(map.locate("apps/acme/db"), map.rules()["apps/"].table.owner("apps/acme").unwrap());

    let spread = Request::Spread { prefix: "apps/".into(), over: groups([1, 2]) };
    let refused = asked(&map, &without, &spread).unwrap_err();
    let known = ["hash", "pinned", "range", "rendezvous"].map(str::to_owned).to_vec();
    let unknown = RegistryError::Unknown { name: "tenants".into(), known };
    assert_eq!(refused, ChangeError::Strategy(unknown));
    assert!(refused.to_string().ends_with("known are hash, pinned, range, rendezvous"), "{refused}");

    let moved = Request::Move { prefix: "apps/".into(), to: GroupId(4) };
    let map = asked(&map, &without, &moved).unwrap().apply(&map).unwrap();
    assert_eq!(map.locate("apps/acme/db"), GroupId(4));
}

#[test]
fn a_new_group_takes_tenants_from_the_fullest_and_nothing_else_moves() {
    let map = start();
    let weights = "a=4,b=4,c=4,d=4,e=4,f=4";
    let registry = with_tenants();
    let map = asked(&map, &registry, &split(&[("weights", weights)], 1)).unwrap().apply(&map).unwrap();
    let spread = Request::Spread { prefix: "apps/".into(), over: groups(1..=4) };
    let change = asked(&map, &registry, &spread).unwrap();
    let moved: Vec<_> = change.steps.iter().filter_map(|step| step.moved.as_ref()).collect();
    assert!(!moved.is_empty() && moved.iter().all(|moved| moved.to == GroupId(4)), "{moved:?}");
    let after = change.apply(&map).unwrap();
    let nothing_more = asked(&after, &registry, &spread);
    assert!(matches!(nothing_more, Err(ChangeError::NothingToDo { .. })), "{nothing_more:?}");
}

#[test]
fn settings_and_depth_are_refused_with_what_is_allowed() {
    let map = start();
    let refusal = |settings: &[(&str, &str)], depth| {
        asked(&map, &with_tenants(), &split(settings, depth)).unwrap_err().to_string()
    };
    assert_eq!(
        refusal(&[("weights", "acme=5")], 2),
        "strategy `tenants` cannot use depth 2; it must be 1, so that the first segment after the prefix stands together"
    );
    assert_eq!(
        refusal(&[], 1),
        "strategy `tenants` needs the setting `weights`: tenants with weights from 1 to 1000, such as `acme=5,globex=2`"
    );
    assert_eq!(
        refusal(&[("weights", "acme=5"), ("size", "3")], 1),
        "strategy `tenants` has no setting `size`; it knows rest, weights"
    );
    for weights in ["", "acme", "acme=0", "acme=1001", "acme=1,acme=2", "a/b=1", "=1", "acme=x"] {
        let refused = refusal(&[("weights", weights)], 1);
        assert!(refused.contains("must be tenants with weights from 1 to 1000"), "{refused}");
    }
    assert!(refusal(&[("weights", "acme=1"), ("rest", "0")], 1).contains("a number from 1 to 1000"));
}

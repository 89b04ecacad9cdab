//! Bytes of what is recorded and sent about changes: requests, steps, load, the planner's memory. A difference here is a
//! broken upgrade: never update these files, add a new encoding beside the old one.

// Fatal to a member, right in a test.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;

use holdfast_partitioner::change::{Change, Given, Groups, Request, change};
use holdfast_partitioner::load::{GroupLoad, Loads, NameLoad, PrefixLoad};
use holdfast_partitioner::planner::{Condition, Held, History, Mode, Plan, Planner, Policy, Wait};
use holdfast_partitioner::{
    GroupId, MapEpoch, PartitionMap, Registry, Rule, SplitKeys, StrategyRecord, Table,
};
use serde::{Serialize, de::DeserializeOwned};

const ONE: GroupId = GroupId(1);
const TWO: GroupId = GroupId(2);
const THREE: GroupId = GroupId(3);

fn hex(bytes: &[u8]) -> String {
    let lines =
        bytes.chunks(32).map(|line| line.iter().map(|byte| format!("{byte:02x}")).collect::<String>());
    lines.map(|line| line + "\n").collect()
}

#[track_caller]
fn keeps<T: Serialize + DeserializeOwned + PartialEq + Debug>(value: &T, bytes: &str, json: &str) {
    let encoded = postcard::to_allocvec(value).unwrap();
    assert_eq!(hex(&encoded), bytes);
    assert_eq!(serde_json::to_string_pretty(value).unwrap() + "\n", json);
    assert_eq!(&postcard::from_bytes::<T>(&encoded).unwrap(), value);
    assert_eq!(&serde_json::from_str::<T>(json).unwrap(), value);
}

/// One of each.
fn requests() -> Vec<Request> {
    let (both, jobs) = (BTreeSet::from([ONE, TWO]), || "jobs/".to_owned());
    vec![
        Request::Split { prefix: jobs(), into: both.clone(), depth: 1, strategy: StrategyRecord::hash(4) },
        Request::Move { prefix: jobs(), to: TWO },
        Request::Merge { prefix: jobs(), to: None },
        Request::Pin { prefix: jobs(), to: Some(TWO) },
        Request::Unpin { prefix: jobs() },
        Request::Isolate { name: "jobs/hot".into(), to: THREE },
        Request::Spread { prefix: jobs(), over: both },
    ]
}

fn changed(request: &Request, names: &[NameLoad]) -> Change {
    let map = PartitionMap::initial(&[ONE]).unwrap();
    let groups = Groups { usable: BTreeSet::from([ONE, TWO, THREE]), retired: BTreeSet::new() };
    change(&Given { map: &map, groups: &groups, registry: &Registry::built_in(), names }, request).unwrap()
}

/// Slots, split keys, a rule that goes.
fn changes() -> Vec<Change> {
    let names = [("jobs/a", 40), ("jobs/m", 60)].map(|(name, entries_per_s)| NameLoad {
        name: name.into(),
        entries_per_s,
        waiters: 0,
    });
    let into = BTreeSet::from([ONE, TWO]);
    let strategy = SplitKeys::record();
    let mut gone = changed(&requests()[1], &[]);
    gone.steps[0].rule = None;
    gone.steps[0].moved = None;
    vec![
        changed(&requests()[0], &[]),
        changed(&Request::Split { prefix: "jobs/".into(), into, depth: 1, strategy }, &names),
        gone,
    ]
}

fn loads() -> Loads {
    let names = vec![NameLoad { name: "jobs/hot".into(), entries_per_s: 2_900, waiters: 7 }];
    let group = GroupLoad { entries_per_s: 3_100, queue_ms: 12, electing: false, retired: false };
    Loads {
        epoch: MapEpoch(300),
        groups: BTreeMap::from([(ONE, group), (TWO, GroupLoad { electing: true, retired: true, ..group })]),
        prefixes: vec![PrefixLoad {
            prefix: "jobs/".into(),
            group: ONE,
            entries_per_s: 3_000,
            queue_ms: 12,
            waiters: 9,
            names,
        }],
    }
}

fn history() -> History {
    let conditions = [
        Condition::Hot { prefix: "jobs/".into(), group: ONE },
        Condition::Overloaded { group: TWO },
        Condition::Quiet { prefix: "old/".into() },
    ];
    let held = conditions.map(|condition| Held { condition, since_ms: 1_500_000 });
    History {
        seen_ms: Some(1_600_000),
        held: held.into(),
        starts_ms: vec![1_000_000, 1_300_000],
        changing: true,
    }
}

fn plans() -> Vec<Plan> {
    let policy = Policy::standard(Mode::Suggest);
    let map = PartitionMap::initial(&[ONE, TWO]).unwrap();
    let mut loads = Loads { epoch: map.epoch(), ..loads() };
    loads.groups.insert(TWO, GroupLoad::default());
    let group = map.locate("jobs/hot");
    loads.prefixes[0].group = group;
    loads.prefixes[0].names[0].entries_per_s = 1_400;
    loads.prefixes[0].names.push(NameLoad { name: "jobs/b".into(), entries_per_s: 1_300, waiters: 0 });
    loads.groups.insert(group, GroupLoad { entries_per_s: 3_000, ..GroupLoad::default() });
    let mut history = History::default();
    let planner = Planner { policy: &policy, registry: &Registry::built_in() };
    let mut plans: Vec<Plan> =
        [0, 60_000].map(|now_ms| planner.plan(now_ms, &map, &loads, &mut history)).into();
    // Words are for people and may change.
    plans[1].proposal.as_mut().unwrap().why = "why".into();
    let waits = [
        Wait::Off,
        Wait::BadPolicy { why: "why".into() },
        Wait::OtherMap { map: MapEpoch(2), measured: MapEpoch(1) },
        Wait::Unmeasured { group: TWO },
        Wait::Electing { group: TWO },
        Wait::Changing,
        Wait::CoolDown { left_ms: 300_000 },
        Wait::Budget { moves_per_hour: 12 },
    ];
    let waiting =
        waits.map(|wait| Plan { mode: Mode::Auto, proposal: None, wait: Some(wait), notes: vec![] });
    plans.extend(waiting);
    plans
}

#[test]
fn requests_keep_their_bytes_and_json() {
    keeps(&requests(), include_str!("golden/requests.hex"), include_str!("golden/requests.json"));
}

#[test]
fn changes_keep_their_bytes_and_json() {
    keeps(&changes(), include_str!("golden/changes.hex"), include_str!("golden/changes.json"));
}

#[test]
fn loads_keep_their_bytes_and_json() {
    keeps(&loads(), include_str!("golden/loads.hex"), include_str!("golden/loads.json"));
}

#[test]
fn the_planner_s_memory_keeps_its_bytes_and_json() {
    keeps(&history(), include_str!("golden/history.hex"), include_str!("golden/history.json"));
}

#[test]
fn the_standard_policy_keeps_its_bytes_and_json() {
    let policy = Policy::standard(Mode::Off);
    keeps(&policy, include_str!("golden/policy.hex"), include_str!("golden/policy.json"));
}

#[test]
fn plans_keep_their_bytes_and_json() {
    keeps(&plans(), include_str!("golden/plans.hex"), include_str!("golden/plans.json"));
}

#[test]
fn strategies_keep_their_tables() {
    let over = BTreeSet::from([ONE, TWO, THREE]);
    let slots = [("slots".to_owned(), "48".to_owned())].into();
    let record = StrategyRecord { name: "rendezvous".into(), params: slots };
    let rule: Rule = Registry::built_in().rule("jobs/", 1, record, &over).unwrap();
    let owners = match rule.table {
        Table::Slots(owners) => owners,
        Table::Splits(_) => panic!("slots expected"),
    };
    let text: String = owners.iter().map(ToString::to_string).collect();
    assert_eq!(text + "\n", include_str!("golden/rendezvous_48.txt"));
}

//! A cluster in virtual time: names with steady rates, leaders that measure, a planner that is asked every ten seconds,
//! and moves that take one look each. Knows no real time and no randomness but a hash.

use std::collections::{BTreeMap, BTreeSet};

use holdfast_partitioner::change::Request;
use holdfast_partitioner::hash::hash64;
use holdfast_partitioner::load::{Loads, Meter};
use holdfast_partitioner::planner::{History, Plan, Planner, Policy};
use holdfast_partitioner::{GroupId, PartitionMap, Registry};

/// Time between two looks, unless a world says otherwise.
pub(crate) const LOOK_MS: u64 = 10_000;
pub(crate) const MINUTE_MS: u64 = 60_000;
pub(crate) const HOUR_MS: u64 = 60 * MINUTE_MS;

pub(crate) struct World {
    /// Every lock group there is.
    all: BTreeSet<GroupId>,
    pub map: PartitionMap,
    pub policy: Policy,
    pub history: History,
    pub now_ms: u64,
    pub look_ms: u64,
    /// Entries per second of each name.
    pub rates: BTreeMap<String, u64>,
    /// Rates go up and down by at most so many percent from look to look.
    pub noise_percent: u64,
    /// How long every entry waits in its commit queue.
    pub queue_ms: u64,
    pub electing: BTreeSet<GroupId>,
    /// What was carried out, and when it began.
    pub changes: Vec<(u64, Request)>,
    /// How often each name was moved.
    pub moves: BTreeMap<String, usize>,
    /// The last outcome.
    pub last: Option<Plan>,
}

impl World {
    pub(crate) fn new(groups: u32, policy: Policy, rates: impl IntoIterator<Item = (String, u64)>) -> Self {
        let groups: Vec<GroupId> = (1..=groups).map(GroupId).collect();
        Self {
            all: groups.iter().copied().collect(),
            map: PartitionMap::initial(&groups).unwrap(),
            policy,
            history: History::default(),
            now_ms: 1_000_000,
            look_ms: LOOK_MS,
            rates: rates.into_iter().collect(),
            noise_percent: 0,
            queue_ms: 2,
            electing: BTreeSet::new(),
            changes: Vec::new(),
            moves: BTreeMap::new(),
            last: None,
        }
    }

    fn groups(&self) -> BTreeSet<GroupId> {
        self.all.iter().copied().chain(self.map.groups()).collect()
    }

    /// The rate of a name at this look.
    fn rate(&self, name: &str, rate: u64) -> u64 {
        let drawn = hash64(format!("{name} at {}", self.now_ms).as_bytes()) % (2 * self.noise_percent + 1);
        rate * (100 + drawn - self.noise_percent) / 100
    }

    /// What the leaders of all groups have measured since the last look.
    pub(crate) fn loads(&self) -> Loads {
        let since_ms = self.now_ms - self.look_ms;
        let mut meters: BTreeMap<GroupId, Meter> =
            self.groups().into_iter().map(|group| (group, Meter::new(since_ms))).collect();
        for (name, rate) in &self.rates {
            let entries = self.rate(name, *rate) * self.look_ms / 1000;
            let meter = meters.get_mut(&self.map.locate(name)).unwrap();
            meter.count(&self.map, name, entries, self.queue_ms);
        }
        let mut loads = Loads { epoch: self.map.epoch(), groups: BTreeMap::new(), prefixes: Vec::new() };
        for (group, meter) in meters {
            let (mut all, prefixes) = meter.report(self.now_ms, group, &self.map, &BTreeMap::new());
            all.electing = self.electing.contains(&group);
            loads.groups.insert(group, all);
            loads.prefixes.extend(prefixes);
        }
        loads
    }

    /// One look, and what comes of it.
    pub(crate) fn look(&mut self) {
        self.now_ms += self.look_ms;
        let loads = self.loads();
        let registry = Registry::built_in();
        let planner = Planner { policy: &self.policy, registry: &registry };
        let plan = planner.plan(self.now_ms, &self.map, &loads, &mut self.history);
        if let Some(proposal) = plan.to_carry_out() {
            self.changes.push((self.now_ms, proposal.request.clone()));
            for step in &proposal.change.steps {
                if step.moved.is_some() {
                    self.history.move_started(self.now_ms);
                    self.now_ms += self.look_ms;
                }
                let after = step.apply(&self.map).expect("a plan applies to the map it was made for");
                for name in self.rates.keys().filter(|name| self.map.locate(name) != after.locate(name)) {
                    *self.moves.entry(name.clone()).or_default() += 1;
                }
                self.map = after;
            }
            self.history.change_ended();
        }
        self.last = Some(plan);
    }

    pub(crate) fn run(&mut self, ms: u64) {
        let until_ms = self.now_ms + ms;
        while self.now_ms < until_ms {
            self.look();
        }
    }

    /// Entries per second of each group, without noise.
    pub(crate) fn per_group(&self) -> BTreeMap<GroupId, u64> {
        let mut sums: BTreeMap<GroupId, u64> = self.groups().into_iter().map(|group| (group, 0)).collect();
        for (name, rate) in &self.rates {
            *sums.entry(self.map.locate(name)).or_default() += rate;
        }
        sums
    }

    pub(crate) fn notes(&self) -> String {
        self.last.as_ref().map(|plan| plan.notes.join("\n")).unwrap_or_default()
    }
}

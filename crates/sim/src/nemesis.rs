//! What goes wrong in a run: crashes, pauses, cuts, slow and full disks, bad networks, stepped clocks, moved leaders and snapshots
//! at awkward moments; several at once, each repaired after a while.
//!
//! Draws everything from its own dice. Judges nothing, and knows nothing of locks.

pub mod aim;
mod deaf;
mod depose;
mod power;

use std::collections::BTreeMap;

use holdfast_node::raft::group::RaftGroup;
use holdfast_partitioner::GroupId;
use rand::{Rng, SeedableRng, seq::IndexedRandom};

use self::aim::{Aim, Target};
use crate::{
    cluster::Cluster,
    entropy::Dice,
    network::{Network, Node, Way},
    trace::Trace,
};

/// Pause between two faults, in milliseconds, at most.
const BETWEEN_MS: u64 = 2_500;
/// So many entries stay when a log is shortened at an awkward moment.
const KEPT_ENTRIES: u64 = 20;

/// Share of the faults that depose a leader behind its back, and the share where leaders are made deaf, too.
const DEPOSED: f64 = 0.25;
const DEPOSED_ONE_WAY: f64 = 0.4;

/// Share of the faults by which a leader does not hear one of the others, where leaders are made deaf.
const HALF_DEAF: f64 = 0.15;

/// Share of the others that are a failure of the power.
const POWERLESS: f64 = 0.04;

/// A fault, or the end of one.
#[derive(Clone, Debug)]
enum Act {
    Crash(Node),
    Start(Node),
    Pause(Node),
    /// The machine is suspended: the process does not know for how long.
    Suspend(Node),
    GoOn(Node),
    Cut(Vec<(Node, Node)>),
    Heal(Vec<(Node, Node)>),
    SlowDisk(Node, (u64, u64)),
    QuickDisk(Node),
    /// The disk takes nothing any more: the member must end itself.
    FullDisk(Node),
    /// There is room again, and the member is started.
    RoomyDisk(Node),
    BadNetwork(Way),
    GoodNetwork,
    StepWall(Node, i64),
    MoveLeader(GroupId, Node),
    Shorten(GroupId, Node),
    /// These, after so many milliseconds.
    Later(u64, Vec<Act>),
}

/// A fault, how many milliseconds it lasts, and its repair.
type Plan = (Vec<Act>, u64, Vec<Act>);

/// The source of all trouble of one run.
#[derive(Debug)]
pub struct Nemesis {
    dice: Dice,
    trace: Trace,
    /// Before, nothing goes wrong.
    begin_ms: u64,
    next: u64,
    due: BTreeMap<u64, Vec<Act>>,
    faults: u64,
    aim: Aim,
    habits: Habits,
}

/// What a nemesis does and leaves.
#[derive(Clone, Copy, Debug, Default)]
pub struct Habits {
    /// Faults that are left out, by their numbers.
    pub spared: Spared,
    /// Whether leaders are made deaf, too: what they send arrives, and they hear nothing of it.
    pub one_way: bool,
}

impl Nemesis {
    /// A nemesis that begins at a moment.
    #[must_use]
    pub fn new(mut dice: Dice, trace: Trace, begin_ms: u64, habits: Habits) -> Self {
        let aim = Aim::new(Dice::from_rng(&mut dice), habits.one_way);
        Self { dice, trace, begin_ms, next: begin_ms, due: BTreeMap::new(), faults: 0, aim, habits }
    }

    /// How many faults there were.
    #[must_use]
    pub fn faults(&self) -> u64 {
        self.faults
    }

    /// How often faults that were aimed at moves have hit what.
    #[must_use]
    pub fn hits(&self) -> &BTreeMap<Target, u64> {
        self.aim.hits()
    }

    /// Time has come: what is due is done, and now and then something new is begun.
    pub fn step(&mut self, now: u64, cluster: &mut Cluster, network: &Network) {
        while let Some(due) = self.due.first_entry().filter(|due| *due.key() <= now) {
            for act in due.remove() {
                self.carry_out(now, &act, cluster, network);
            }
        }
        if now >= self.next {
            self.next = now + self.dice.random_range(100..BETWEEN_MS);
            let plan = self.choose(cluster);
            self.begin(now, plan, cluster, network);
        }
        if now >= self.begin_ms
            && let Some(plan) = self.aim.look(cluster, network)
        {
            self.begin(now, plan, cluster, network);
        }
    }

    /// Begins a fault, unless it is to be left out.
    fn begin(&mut self, now: u64, (acts, lasts, repairs): Plan, cluster: &mut Cluster, network: &Network) {
        let number = self.faults;
        self.faults += 1;
        if self.habits.spared.contains(number) {
            return;
        }
        for act in &acts {
            self.carry_out(now, act, cluster, network);
        }
        self.due.entry(now + lasts).or_default().extend(repairs);
    }

    /// Repairs everything, at once.
    pub fn heal(&mut self, now: u64, cluster: &mut Cluster, network: &Network) {
        self.trace.line(now, "all faults are over");
        self.due.clear();
        let ids = cluster.ids();
        let ways = ids.iter().flat_map(|a| ids.iter().map(|b| (*a, *b))).collect();
        self.carry_out(now, &Act::Heal(ways), cluster, network);
        self.carry_out(now, &Act::GoodNetwork, cluster, network);
        for id in ids {
            for act in [Act::GoOn(id), Act::QuickDisk(id), Act::RoomyDisk(id), Act::Start(id)] {
                self.carry_out(now, &act, cluster, network);
            }
        }
    }

    /// A fault, how long it lasts, and its repair.
    fn choose(&mut self, cluster: &Cluster) -> Plan {
        let ids = cluster.ids();
        let member = ids.choose(&mut self.dice).copied().unwrap_or_default();
        let other = ids.iter().copied().filter(|id| *id != member).collect::<Vec<_>>();
        let group = GroupId(self.dice.random_range(0..=cluster.groups().count() as u32));
        let dice = &mut self.dice;
        if self.habits.one_way
            && dice.random_bool(HALF_DEAF)
            && let Some(plan) = deaf::half_deaf(cluster, group, dice)
        {
            return plan;
        }
        if dice.random_bool(if self.habits.one_way { DEPOSED_ONE_WAY } else { DEPOSED })
            && let Some(plan) = depose::depose(cluster, group, self.habits.one_way, dice)
        {
            return plan;
        }
        if dice.random_bool(POWERLESS) {
            return power::cut(cluster, dice);
        }
        match dice.random_range(0..100) {
            0..18 => (vec![Act::Crash(member)], dice.random_range(100..4_000), vec![Act::Start(member)]),
            18..21 => {
                let all = |act: fn(Node) -> Act| ids.iter().map(|id| act(*id)).collect();
                (all(Act::Crash), dice.random_range(100..2_000), all(Act::Start))
            }
            21..30 => (vec![Act::Pause(member)], dice.random_range(100..6_000), vec![Act::GoOn(member)]),
            30..35 => (vec![Act::Suspend(member)], dice.random_range(100..6_000), vec![Act::GoOn(member)]),
            35..50 => {
                let ways: Vec<_> = other.iter().flat_map(|o| [(member, *o), (*o, member)]).collect();
                (vec![Act::Cut(ways.clone())], dice.random_range(200..7_000), vec![Act::Heal(ways)])
            }
            50..62 => {
                let ways: Vec<_> = match dice.random_range(0..3) {
                    0 => other.iter().map(|o| (member, *o)).collect(),
                    1 => other.iter().map(|o| (*o, member)).collect(),
                    _ => other.first().map(|o| (member, *o)).into_iter().collect(),
                };
                (vec![Act::Cut(ways.clone())], dice.random_range(200..7_000), vec![Act::Heal(ways)])
            }
            62..64 => {
                (vec![Act::FullDisk(member)], dice.random_range(200..4_000), vec![Act::RoomyDisk(member)])
            }
            64..72 => {
                let least = dice.random_range(5..300);
                let slow = Act::SlowDisk(member, (least, least * 2));
                (vec![slow], dice.random_range(500..6_000), vec![Act::QuickDisk(member)])
            }
            72..82 => {
                let way = Way {
                    cut: false,
                    delay_ms: dice.random_range(1..20),
                    jitter_ms: dice.random_range(1..120),
                    lost: dice.random_range(0..40),
                    doubled: dice.random_range(0..300),
                };
                (vec![Act::BadNetwork(way)], dice.random_range(500..6_000), vec![Act::GoodNetwork])
            }
            82..86 => {
                let by = dice.random_range(-3_600_000..3_600_000);
                (vec![Act::StepWall(member, by)], 0, Vec::new())
            }
            86..93 => (vec![Act::MoveLeader(group, member)], 0, Vec::new()),
            _ => {
                let mut again = Vec::new();
                if dice.random_bool(0.5) {
                    again = vec![
                        Act::Crash(member),
                        Act::Later(dice.random_range(20..500), vec![Act::Start(member)]),
                    ];
                }
                (vec![Act::Shorten(group, member)], dice.random_range(50..1_000), again)
            }
        }
    }

    fn start(&self, now: u64, id: Node, cluster: &mut Cluster) {
        let trace = self.trace.clone();
        on(cluster, id, |member| {
            if let Err(fault) = member.start() {
                trace.line(now, format!("member {} does not start: {fault:?}", member.id));
            }
        });
    }

    fn carry_out(&mut self, now: u64, act: &Act, cluster: &mut Cluster, network: &Network) {
        self.trace.line(now, format!("nemesis: {act:?}"));
        match act {
            Act::Crash(id) => on(cluster, *id, |member| member.crash()),
            Act::Start(id) => self.start(now, *id, cluster),
            Act::Pause(id) => on(cluster, *id, |member| member.set_paused(true)),
            Act::Suspend(id) => on(cluster, *id, crate::member::SimMember::suspend),
            Act::GoOn(id) => on(cluster, *id, |member| member.set_paused(false)),
            Act::Cut(ways) => {
                for (from, to) in ways {
                    network.set_way(*from, *to, Some(Way { cut: true, ..Way::default() }));
                }
            }
            Act::Heal(ways) => ways.iter().for_each(|(from, to)| network.set_way(*from, *to, None)),
            Act::SlowDisk(id, fsync) => on(cluster, *id, |member| member.disk.set_fsync(Some(*fsync))),
            Act::QuickDisk(id) => on(cluster, *id, |member| member.disk.set_fsync(None)),
            Act::FullDisk(id) => on(cluster, *id, |member| member.disk.fill()),
            Act::RoomyDisk(id) => {
                on(cluster, *id, |member| {
                    if member.disk.is_full() {
                        member.crash();
                        member.disk.empty();
                    }
                });
                self.start(now, *id, cluster);
            }
            Act::BadNetwork(way) => network.set_usual(*way),
            Act::GoodNetwork => network.set_usual(Way::default()),
            Act::StepWall(id, by) => on(cluster, *id, |member| member.clock.step_wall(*by)),
            Act::MoveLeader(group, to) => each_replica(cluster, *group, |replica| move_leader(replica, *to)),
            Act::Later(ms, acts) => self.due.entry(now + ms).or_default().extend(acts.iter().cloned()),
            Act::Shorten(group, id) => {
                let id = *id;
                each_replica(cluster, *group, move |replica| shorten(replica, id));
            }
        }
    }
}

/// Numbers below 128, as a set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spared(pub u128);

impl Spared {
    /// Whether a number is in it.
    #[must_use]
    pub fn contains(self, number: u64) -> bool {
        number < 128 && self.0 >> number & 1 == 1
    }

    /// With one more number.
    #[must_use]
    pub fn with(self, number: u64) -> Self {
        if number < 128 { Self(self.0 | 1 << number) } else { self }
    }

    /// Its numbers, rising.
    pub fn numbers(self) -> impl Iterator<Item = u64> {
        (0..128).filter(move |number| self.contains(*number))
    }
}

fn on(cluster: &mut Cluster, id: Node, act: impl FnOnce(&mut crate::member::SimMember)) {
    if let Some(member) = cluster.member(id) {
        act(member);
    }
}

/// Starts something on every replica of a group, in its own process.
fn each_replica<F>(cluster: &Cluster, group: GroupId, act: impl Fn(RaftGroup) -> F)
where
    F: Future<Output = ()> + Send + 'static,
{
    for member in cluster.members() {
        let Some(seat) = member.seat() else { continue };
        if let Some(replica) = seat.service.group(group) {
            seat.handle.spawn(act(replica));
        }
    }
}

/// Hands leadership on where the replica leads; nothing is lost where that fails.
async fn move_leader(replica: RaftGroup, to: Node) {
    if replica.leadership().borrow().here {
        let _ = replica.transfer_leader(to).await;
    }
}

/// On one member, takes a snapshot and shortens the log to little more than nothing, so that whoever lags needs the snapshot.
async fn shorten(replica: RaftGroup, member: Node) {
    if replica.member() == member
        && let Ok(at) = replica.build_snapshot().await
    {
        drop(replica.purge_upto(at.index.saturating_sub(KEPT_ENTRIES)).await);
    }
}

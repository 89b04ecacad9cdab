//! Faults that wait for a step of a move and hit one of those who take part in it, at that very moment or a little later.
//!
//! Looks at what the members have applied. Composes faults out of those that there are, and judges nothing.

use std::collections::BTreeMap;

use holdfast_locktable::{ids::MoveNumber, table::Arrival};
use holdfast_node::meta::changes::Stage;
use holdfast_partitioner::{GroupId, change::Moved};
use rand::Rng;

use super::{Act, Plan, deaf};
use crate::{
    cluster::Cluster,
    entropy::Dice,
    network::{Network, Node},
};

/// Share of the moves that a fault is aimed at, and the share where leaders are made deaf, too.
const AIMED: f64 = 0.35;
const AIMED_ONE_WAY: f64 = 0.6;
/// How long after a step it may hit, in milliseconds: a step takes some ten.
const LATER_MS: u64 = 12;

/// How far a move is, as anybody knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Point {
    /// It has a number.
    Reserved,
    /// Its source is sealed.
    Sealed,
    /// Some of it has come to its destination.
    Begun,
    /// All of it has come to its destination.
    Complete,
    /// It is decided.
    Decided,
    /// Its destination owns it.
    Activated,
    /// Its source has let go of it.
    Dropped,
    /// It is given up.
    GivenUp,
}

/// Who is hit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// The leader of the source.
    Source,
    /// The leader of the destination.
    Destination,
    /// The leader of the meta group, which drives the move.
    Driver,
    /// Somebody who leads none of them; the driver where there is nobody like that.
    Bystander,
}

/// What hits them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Blow {
    /// The process ends.
    Kill,
    /// It stands still for a while.
    Pause,
    /// It hears nobody, and everybody hears it.
    Deaf,
    /// It does not hear one of the others.
    HalfDeaf,
    /// The disks of all others are slow, so that what it proposes is under way for long.
    Slow,
}

/// What a fault was aimed at.
pub type Target = (Point, Role, Blow);

/// All points.
const POINTS: [Point; 8] = [
    Point::Reserved,
    Point::Sealed,
    Point::Begun,
    Point::Complete,
    Point::Decided,
    Point::Activated,
    Point::Dropped,
    Point::GivenUp,
];
/// All roles.
const ROLES: [Role; 4] = [Role::Source, Role::Destination, Role::Driver, Role::Bystander];
/// All blows.
const BLOWS: [Blow; 5] = [Blow::Kill, Blow::Pause, Blow::Deaf, Blow::HalfDeaf, Blow::Slow];
/// So many of them hit the process and not the network.
const PROCESS_BLOWS: usize = 2;
/// Where a destination that does not hear can do harm: while its first entry as the owner is under way, and while the source
/// still acknowledges what it has given away. Where it does not hear a member already, sessions end there that live on at
/// the source: then its first entry takes long.
const SORE: [Target; 5] = [
    (Point::Complete, Role::Destination, Blow::Deaf),
    (Point::Decided, Role::Destination, Blow::Deaf),
    (Point::Decided, Role::Destination, Blow::HalfDeaf),
    (Point::Activated, Role::Destination, Blow::HalfDeaf),
    (Point::Dropped, Role::Destination, Blow::HalfDeaf),
];

/// Everything that a fault can be aimed at.
pub fn targets() -> impl Iterator<Item = Target> {
    let of = |point| ROLES.into_iter().flat_map(move |role| BLOWS.map(|blow| (point, role, blow)));
    POINTS.into_iter().flat_map(of)
}

/// A target in words.
#[must_use]
pub fn name((point, role, blow): Target) -> String {
    format!("{point:?} {role:?} {blow:?}").to_lowercase()
}

/// Takes aim at moves.
#[derive(Debug)]
pub(super) struct Aim {
    dice: Dice,
    /// The newest move that was seen, and what is aimed at in it.
    seen: MoveNumber,
    target: Option<Target>,
    one_way: bool,
    hits: BTreeMap<Target, u64>,
}

/// A move that goes on.
struct Going {
    number: MoveNumber,
    moved: Moved,
    stage: Stage,
}

impl Aim {
    pub(super) fn new(dice: Dice, one_way: bool) -> Self {
        Self { dice, seen: MoveNumber::default(), target: None, one_way, hits: BTreeMap::new() }
    }

    /// How often each was hit.
    pub(super) fn hits(&self) -> &BTreeMap<Target, u64> {
        &self.hits
    }

    /// A fault, if the moment has come.
    pub(super) fn look(&mut self, cluster: &Cluster, network: &Network) -> Option<Plan> {
        let going = going(cluster)?;
        if going.number > self.seen {
            self.seen = going.number;
            let aimed = if self.one_way { AIMED_ONE_WAY } else { AIMED };
            self.target = match self.one_way && half_deaf(cluster, network, &going.moved) {
                true => Some((Point::Complete, Role::Destination, Blow::Slow)),
                false => self.dice.random_bool(aimed).then(|| self.choose()),
            };
        }
        let target @ (point, role, blow) = self.target?;
        if reached(cluster, &going) < point || (point == Point::GivenUp) != given_up(&going) {
            return None;
        }
        self.target = None;
        let member = member(cluster, role, &going.moved)?;
        *self.hits.entry(target).or_default() += 1;
        let lasts = self.dice.random_range(if blow == Blow::HalfDeaf { deaf::HALF_MS } else { 50..4_000 });
        let (hit, repair) = self.blow(blow, member, cluster);
        Some(match self.dice.random_range(0..LATER_MS) {
            0..4 => (hit, lasts, repair),
            later => (vec![Act::Later(later, hit)], later + lasts, repair),
        })
    }

    fn blow(&mut self, blow: Blow, member: Node, cluster: &Cluster) -> (Vec<Act>, Vec<Act>) {
        let mut ways = deaf::ways(cluster, member);
        match blow {
            Blow::Kill => (vec![Act::Crash(member)], vec![Act::Start(member)]),
            Blow::Pause => (vec![Act::Pause(member)], vec![Act::GoOn(member)]),
            Blow::Slow => deaf::slow_others(&ways, &mut self.dice),
            Blow::Deaf | Blow::HalfDeaf => {
                if blow == Blow::HalfDeaf {
                    ways.swap_remove(self.dice.random_range(0..ways.len()));
                }
                (vec![Act::Cut(ways.clone())], vec![Act::Heal(ways)])
            }
        }
    }

    fn choose(&mut self) -> Target {
        let mut one_of = |count: usize| self.dice.random_range(0..count);
        if self.one_way && one_of(2) == 0 {
            return SORE[one_of(SORE.len())];
        }
        let blows = if self.one_way { BLOWS.len() } else { PROCESS_BLOWS };
        (POINTS[one_of(POINTS.len())], ROLES[one_of(ROLES.len())], BLOWS[one_of(blows)])
    }
}

/// The move that goes on, by the replica that knows of the newest.
fn going(cluster: &Cluster) -> Option<Going> {
    let known = cluster.replicas(GroupId::META).into_iter().filter_map(|(_, replica)| {
        replica
            .with_meta(|meta, _| {
                let change = meta.changes().under_way()?;
                let (moving, moved) = (change.moving.as_ref()?, change.step()?.moved.as_ref()?);
                Some(Going { number: moving.number, moved: moved.clone(), stage: moving.stage.clone() })
            })
            .flatten()
    });
    known.max_by_key(|going| (going.number, !matches!(going.stage, Stage::Reserved)))
}

fn given_up(going: &Going) -> bool {
    matches!(going.stage, Stage::GivenUp { .. })
}

/// How far a move is by whichever replica is furthest.
fn reached(cluster: &Cluster, going: &Going) -> Point {
    let number = going.number;
    let sealed = any(cluster, going.moved.from, |table| {
        table.sealed().is_some_and(|(sealed, _)| sealed == number).then_some(())
    });
    let arrival = any(cluster, going.moved.to, |table| table.arrival(number));
    match (&going.stage, arrival) {
        (Stage::GivenUp { .. }, _) => Point::GivenUp,
        (Stage::Decided { .. }, Some(Arrival::Activated)) => {
            let dropped = any(cluster, going.moved.from, |table| {
                (table.highest_move() == number && table.sealed().is_none()).then_some(())
            });
            if dropped.is_some() { Point::Dropped } else { Point::Activated }
        }
        (Stage::Decided { .. }, _) => Point::Decided,
        (Stage::Reserved, Some(Arrival::Complete | Arrival::Activated)) => Point::Complete,
        (Stage::Reserved, Some(Arrival::Begun)) => Point::Begun,
        (Stage::Reserved, None) if sealed.is_some() => Point::Sealed,
        (Stage::Reserved, None) => Point::Reserved,
    }
}

/// The most that any replica of a group says.
fn any<T: Ord>(
    cluster: &Cluster,
    group: GroupId,
    read: impl Fn(&holdfast_locktable::table::LockTable) -> Option<T>,
) -> Option<T> {
    let replicas = cluster.replicas(group).into_iter();
    replicas.filter_map(|(_, replica)| replica.with_locks(|table, _| read(table)).flatten()).max()
}

/// Whether the leader of the destination does not hear one of the others.
fn half_deaf(cluster: &Cluster, network: &Network, moved: &Moved) -> bool {
    let Some(leader) = member(cluster, Role::Destination, moved) else { return false };
    deaf::ways(cluster, leader).into_iter().filter(|(from, to)| network.is_cut(*from, *to)).count() == 1
}

fn member(cluster: &Cluster, role: Role, moved: &Moved) -> Option<Node> {
    let leader = |group| {
        let leads = |(member, replica): (Node, holdfast_node::raft::group::RaftGroup)| {
            replica.leadership().borrow().here.then_some(member)
        };
        cluster.replicas(group).into_iter().find_map(leads)
    };
    match role {
        Role::Source => leader(moved.from),
        Role::Destination => leader(moved.to),
        Role::Driver => leader(GroupId::META),
        Role::Bystander => {
            let lead = [leader(moved.from), leader(moved.to), leader(GroupId::META)];
            let free = cluster.ids().into_iter().find(|id| !lead.contains(&Some(*id)));
            free.or_else(|| leader(GroupId::META))
        }
    }
}

//! Leaders that are heard and do not hear: everybody goes on following them, and what they are asked does not arrive.
//!
//! Composes faults out of those that there are. Judges nothing.

use holdfast_node::raft::group::RaftGroup;
use holdfast_partitioner::GroupId;
use rand::{Rng, seq::IndexedRandom};

use super::{Act, Plan};
use crate::{cluster::Cluster, entropy::Dice, network::Node};

/// How long a leader does not hear one of the others, in milliseconds: sessions end meanwhile that ask it by way of that
/// one.
pub(super) const HALF_MS: std::ops::Range<u64> = 1_000..6_000;

/// All ways by which a member hears.
pub(super) fn ways(cluster: &Cluster, member: Node) -> Vec<(Node, Node)> {
    cluster.ids().into_iter().filter(|id| *id != member).map(|id| (id, member)).collect()
}

/// The leader hears nothing for so long that it leads no more as far as it knows, while everybody hears it and waits for no
/// other: it comes back in the same term, with what it had proposed still on its way to disks that are slow. Then it loses its
/// office.
pub(super) fn deaf(leads: (Node, GroupId), cluster: &Cluster, dice: &mut Dice) -> Plan {
    let ways = ways(cluster, leads.0);
    let (mut acts, quick) = slow_others(&ways, dice);
    acts.push(Act::Cut(ways.clone()));
    let after = [quick, lost(leads, &ways, dice)].concat();
    let repairs = vec![Act::Heal(ways), Act::Later(dice.random_range(30..600), after)];
    (acts, dice.random_range(1_050..2_500), repairs)
}

/// Whoever follows the leader has a slow disk, so that what it proposes is under way for long, and keepalives, which need no
/// disk, overtake it. Then it loses its office.
pub(super) fn overtaken(leads: (Node, GroupId), cluster: &Cluster, dice: &mut Dice) -> Plan {
    let ways = ways(cluster, leads.0);
    let (acts, quick) = slow_others(&ways, dice);
    (acts, dice.random_range(1_000..3_000), [lost(leads, &ways, dice), quick].concat())
}

/// Whoever is on the other side of these ways has a slow disk; and the repair.
pub(super) fn slow_others(ways: &[(Node, Node)], dice: &mut Dice) -> (Vec<Act>, Vec<Act>) {
    let least = dice.random_range(50..400);
    let each = |act: &dyn Fn(Node) -> Act| ways.iter().map(|(other, _)| act(*other)).collect();
    (each(&|other| Act::SlowDisk(other, (least, least * 2))), each(&Act::QuickDisk))
}

/// A leader loses its office: it gives it away, or it dies or stands still for a while.
fn lost((leader, group): (Node, GroupId), ways: &[(Node, Node)], dice: &mut Dice) -> Vec<Act> {
    match dice.random_range(0..3) {
        0 => vec![Act::MoveLeader(group, ways[dice.random_range(0..ways.len())].0)],
        1 => vec![Act::Crash(leader), Act::Later(dice.random_range(100..3_000), vec![Act::Start(leader)])],
        _ => vec![Act::Pause(leader), Act::Later(dice.random_range(1_500..3_000), vec![Act::GoOn(leader)])],
    }
}

/// The leader of a group does not hear one of the others for a while; `None` where nobody leads.
pub(super) fn half_deaf(cluster: &Cluster, group: GroupId, dice: &mut Dice) -> Option<Plan> {
    let leads = |(member, replica): (Node, RaftGroup)| replica.leadership().borrow().here.then_some(member);
    let leader = cluster.replicas(group).into_iter().find_map(leads)?;
    let way = vec![*ways(cluster, leader).choose(dice)?];
    Some((vec![Act::Cut(way.clone())], dice.random_range(HALF_MS), vec![Act::Heal(way)]))
}

//! A leader that is deposed and does not know it: the moments in which rules R1 and R12 and the votes on disk matter.
//!
//! Composes faults out of those that there are. Judges nothing.

use holdfast_partitioner::GroupId;
use rand::Rng;

use super::{Act, Plan, deaf};
use crate::{cluster::Cluster, entropy::Dice, network::Node};

/// Deposes the leader of a group in one of several ways; `None` where nobody leads, or too few run.
pub(super) fn depose(cluster: &Cluster, group: GroupId, one_way: bool, dice: &mut Dice) -> Option<Plan> {
    let leads = |(member, replica): (Node, holdfast_node::raft::group::RaftGroup)| {
        replica.leadership().borrow().here.then_some(member)
    };
    let leader = cluster.replicas(group).into_iter().find_map(leads)?;
    let others: Vec<Node> = cluster.ids().into_iter().filter(|id| *id != leader).collect();
    let &[one, another] = others.as_slice() else { return None };
    let away = both_ways(leader, &[one, another]);
    Some(match dice.random_range(0..if one_way { 9 } else { 5 }) {
        0 => forgotten(away, [one, another], dice),
        1 => asleep(leader, away, dice),
        2 => suspended(leader, away, dice),
        3 => returning((leader, group), away, dice),
        4 => voted_out(leader, one, another, dice),
        5..7 => deaf::deaf((leader, group), cluster, dice),
        _ => deaf::overtaken((leader, group), cluster, dice),
    })
}

/// The leader is cut off and the others restart: they have forgotten that they follow it, and elect sooner than it can
/// know.
fn forgotten(away: Vec<(Node, Node)>, others: [Node; 2], dice: &mut Dice) -> Plan {
    let mut acts = vec![Act::Cut(away.clone())];
    acts.extend(others.map(Act::Crash));
    let mut repairs: Vec<Act> = others.map(Act::Start).into();
    repairs.push(Act::Later(dice.random_range(1_500..5_000), vec![Act::Heal(away)]));
    (acts, dice.random_range(1..60), repairs)
}

/// The leader sleeps through an election, and is cut off when it wakes up: soon enough for its clients' connections to
/// have survived.
fn asleep(leader: Node, away: Vec<(Node, Node)>, dice: &mut Dice) -> Plan {
    let heal = Act::Later(dice.random_range(1_000..5_000), vec![Act::Heal(away.clone())]);
    let repairs = vec![Act::Cut(away), Act::GoOn(leader), heal];
    (vec![Act::Pause(leader)], dice.random_range(1_250..1_740), repairs)
}

/// The leader's machine is suspended through an election, and is cut off when it wakes up. By its clock no time has passed:
/// its lease is not over, and it goes on believing for a while.
fn suspended(leader: Node, away: Vec<(Node, Node)>, dice: &mut Dice) -> Plan {
    let (_, lasts, repairs) = asleep(leader, away, dice);
    (vec![Act::Suspend(leader)], lasts, repairs)
}

/// The leader is cut off for so long that sessions end by its clock, comes back, and is soon given its office again.
fn returning((leader, group): (Node, GroupId), away: Vec<(Node, Node)>, dice: &mut Dice) -> Plan {
    let again = Act::Later(dice.random_range(100..1_200), vec![Act::MoveLeader(group, leader)]);
    (vec![Act::Cut(away.clone())], dice.random_range(1_200..2_800), vec![Act::Heal(away), again])
}

/// The leader sleeps through an election; then one of those who voted restarts, and hears from the old leader before it
/// hears from the new one.
fn voted_out(leader: Node, one: Node, another: Node, dice: &mut Dice) -> Plan {
    let (voter, elected) = if dice.random_bool(0.5) { (one, another) } else { (another, one) };
    let away = both_ways(elected, &[leader, voter]);
    let heal = Act::Later(dice.random_range(500..3_000), vec![Act::Heal(away.clone())]);
    let again = Act::Later(dice.random_range(1..60), vec![Act::Start(voter), Act::GoOn(leader), heal]);
    let repairs = vec![Act::Cut(away), Act::Crash(voter), again];
    (vec![Act::Pause(leader)], dice.random_range(1_000..2_500), repairs)
}

fn both_ways(one: Node, others: &[Node]) -> Vec<(Node, Node)> {
    others.iter().flat_map(|other| [(one, *other), (*other, one)]).collect()
}

//! The power fails while disks have much to write: what was acknowledged and is not on disk is gone.
//!
//! Composes faults out of those that there are. Judges nothing.

use rand::{Rng, seq::IndexedRandom};

use super::{Act, Plan};
use crate::{cluster::Cluster, entropy::Dice};

/// All disks are slow for a while; then all members stop at once, or all but one.
pub(super) fn cut(cluster: &Cluster, dice: &mut Dice) -> Plan {
    let ids = cluster.ids();
    let spared = ids.choose(dice).copied().filter(|_| dice.random_bool(0.5));
    let least = dice.random_range(10..120);
    let slow = ids.iter().map(|id| Act::SlowDisk(*id, (least, least * 2))).collect();
    let stopped: Vec<_> = ids.iter().copied().filter(|id| Some(*id) != spared).collect();
    let mut repairs: Vec<Act> = stopped.iter().map(|id| Act::Crash(*id)).collect();
    let mut starts: Vec<Act> = ids.iter().map(|id| Act::QuickDisk(*id)).collect();
    starts.extend(stopped.iter().map(|id| Act::Start(*id)));
    repairs.push(Act::Later(dice.random_range(20..1_000), starts));
    (slow, dice.random_range(300..1_500), repairs)
}

//! Where lock groups are, as this member knows it, for whoever needs to reach one that is not here.
//!
//! Follows the meta group's replica. Knows leaders only as somebody saw them last.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use holdfast_partitioner::{GroupId, MapEpoch};
use parking_lot::Mutex;
use tokio::sync::watch;

use crate::{config::MemberConfig, meta::placement::Placement, raft::types::MemberId};

/// Where the placement shows up once this member knows it.
pub type PlacesWatch = watch::Receiver<Option<Arc<Placement>>>;

/// Tells a member's parts where groups are.
#[derive(Debug)]
pub struct PlacesTell {
    tell: watch::Sender<Option<Arc<Placement>>>,
    everywhere: Arc<Placement>,
    spreads: bool,
    /// Whether this member joins a living cluster: that has a placement, whatever stands in the log before it.
    joins: bool,
}

/// The placement of a cluster that has none, by what a member was told at its start: every group on every member.
pub fn everywhere(config: &MemberConfig) -> Placement {
    let members = config.members.iter().map(|entry| entry.id).collect();
    let groups: Vec<GroupId> = (1..=u32::from(config.groups.lock_groups)).map(GroupId).collect();
    Placement::everywhere(&members, &groups, config.replicas())
}

impl PlacesTell {
    /// By what the member was told at its start; nothing is known yet.
    pub fn new(config: &MemberConfig) -> (Self, PlacesWatch) {
        let everywhere = Arc::new(everywhere(config));
        let (tell, places) = watch::channel(None);
        (Self { tell, everywhere, spreads: config.spreads(), joins: config.join }, places)
    }

    /// The placement of a cluster that has none: every group on every member.
    pub fn everywhere(&self) -> Arc<Placement> {
        self.everywhere.clone()
    }

    /// Says what the meta group's replica has. A cluster of more members than replicas gets its placement before its map: one
    /// that has a map and no placement is from before there were any.
    pub fn tell(&self, placement: Option<Placement>, has_map: bool) {
        let now = match placement {
            Some(placement) => Some(Arc::new(placement)),
            None if self.joins => None,
            None if has_map || !self.spreads => Some(self.everywhere.clone()),
            None => None,
        };
        self.tell.send_if_modified(|known| {
            let changed = *known != now;
            *known = now;
            changed
        });
    }
}

/// What is known of groups that have no replica on this member. Each line is as good as the last answer of its group.
#[derive(Debug, Default)]
pub struct Far(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    leaders: BTreeMap<GroupId, MemberId>,
    /// Ownership epochs under which groups have answered.
    epochs: BTreeMap<GroupId, MapEpoch>,
    /// Groups that gave no answer when they were asked last.
    silent: BTreeSet<GroupId>,
}

impl Far {
    /// Who led a group when it was last heard of.
    pub fn leader(&self, group: GroupId) -> Option<MemberId> {
        self.0.lock().leaders.get(&group).copied()
    }

    /// A member has shown that it leads a group.
    pub fn led(&self, group: GroupId, leader: MemberId) {
        let mut known = self.0.lock();
        known.leaders.insert(group, leader);
        known.silent.remove(&group);
    }

    /// A member does not lead a group any more, if it ever did.
    pub fn lost(&self, group: GroupId, leader: MemberId) {
        let mut known = self.0.lock();
        if known.leaders.get(&group) == Some(&leader) {
            known.leaders.remove(&group);
        }
    }

    /// Nobody has answered for a group.
    pub fn silent(&self, group: GroupId) {
        let mut known = self.0.lock();
        known.leaders.remove(&group);
        known.silent.insert(group);
    }

    /// Whether nobody answered for a group when it was asked last.
    pub fn is_silent(&self, group: GroupId) -> bool {
        self.0.lock().silent.contains(&group)
    }

    /// A group has answered under this ownership epoch.
    pub fn answered_under(&self, group: GroupId, epoch: MapEpoch) {
        let mut known = self.0.lock();
        let newest = known.epochs.entry(group).or_insert(epoch);
        *newest = epoch.max(*newest);
    }

    /// The newest ownership epochs under which groups have answered: each was in force before now.
    pub fn epochs(&self) -> BTreeMap<GroupId, MapEpoch> {
        self.0.lock().epochs.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(members: u64) -> MemberConfig {
        let entry = |id| crate::config::MemberEntry { id, ..Default::default() };
        MemberConfig { members: (1..=members).map(entry).collect(), ..MemberConfig::default() }
    }

    #[test]
    fn a_cluster_without_a_placement_has_every_group_everywhere_once_that_is_known() {
        let (tell, places) = PlacesTell::new(&config(6));
        tell.tell(None, false);
        assert!(places.borrow().is_none(), "its placement is still to come");
        tell.tell(None, true);
        let everywhere = places.borrow().clone().unwrap();
        assert_eq!((everywhere.version, everywhere.carried_by(6).count()), (0, 4));
        let (tell, places) = PlacesTell::new(&config(3));
        tell.tell(None, false);
        assert_eq!(places.borrow().as_ref().map(|all| all.carried_by(2).count()), Some(4));
    }

    #[test]
    fn a_leader_that_was_replaced_is_not_forgotten_with_the_old_one() {
        let far = Far::default();
        far.led(GroupId(1), 2);
        far.led(GroupId(1), 3);
        far.lost(GroupId(1), 2);
        assert_eq!(far.leader(GroupId(1)), Some(3));
        far.silent(GroupId(1));
        assert_eq!((far.leader(GroupId(1)), far.is_silent(GroupId(1))), (None, true));
        far.answered_under(GroupId(1), MapEpoch(4));
        far.answered_under(GroupId(1), MapEpoch(3));
        assert_eq!(far.epochs()[&GroupId(1)], MapEpoch(4));
    }
}

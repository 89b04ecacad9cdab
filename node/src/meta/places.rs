//! What operators ask of the placement, at the leader of the meta group.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use holdfast_partitioner::GroupId;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use super::{
    group::{MetaAnswer, MetaGroup, MetaResult},
    placement::{PlaceCommand, Placed, Placement},
};
use crate::{group::proposer::GroupError, raft::types::MemberId};

/// A verb about the placement.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PlaceAsk {
    /// Which members carry which groups, and what is going on?
    Show,
    /// Add lock groups, which own nothing yet.
    AddGroups {
        /// How many.
        count: u16,
        /// The members that whoever asks could reach.
        reachable: BTreeSet<MemberId>,
        /// Why.
        reason: String,
        /// A number of whoever asks, so that a repeat adds nothing again.
        request: u64,
    },
    /// A member is to carry and to lead nothing.
    Drain {
        /// The member.
        member: MemberId,
    },
    /// A drained member may carry something again.
    Undrain {
        /// The member.
        member: MemberId,
    },
}

/// What goes on with one group, as the meta group's leader has seen it last.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Doing {
    /// What is under way.
    pub under_way: Option<String>,
    /// Its load.
    pub entries_per_s: f64,
}

/// What goes on with all groups. Clones are the same.
#[derive(Clone, Debug, Default)]
pub(super) struct Doings(Arc<Mutex<BTreeMap<GroupId, Doing>>>);

/// The placement, and what goes on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlacementNow {
    /// Which members carry which groups.
    pub placement: Placement,
    /// By group.
    pub doing: BTreeMap<GroupId, Doing>,
}

impl MetaGroup {
    /// Says what goes on with groups, for whoever asks this member while it leads.
    pub fn set_doing(&self, doing: BTreeMap<GroupId, Doing>) {
        *self.doings().0.lock() = doing;
    }

    /// What goes on with one group.
    pub(super) fn doing(&self, group: GroupId) -> Option<Doing> {
        self.doings().0.lock().get(&group).cloned()
    }

    pub(super) async fn place_ask(&self, ask: PlaceAsk) -> MetaResult {
        let command = match ask {
            PlaceAsk::Show => {
                self.confirm().await?;
                let doing = self.doings().0.lock().clone();
                let placement = self.placement_or_everywhere();
                return Ok(MetaAnswer::Placement(Box::new(PlacementNow { placement, doing })));
            }
            PlaceAsk::AddGroups { count, reachable, reason, request } => {
                PlaceCommand::AddGroups { count, reachable, why: reason, request }
            }
            PlaceAsk::Drain { member } => PlaceCommand::Drain { member },
            PlaceAsk::Undrain { member } => PlaceCommand::Undrain { member },
        };
        match self.place_from_here(command).await? {
            Placed::Set => Ok(MetaAnswer::Done),
            Placed::GroupsAdded { groups } => Ok(MetaAnswer::GroupsAdded(groups)),
        }
    }

    /// Changes the placement, also where the cluster has none yet: then it gets the one that it lives by.
    async fn place_from_here(&self, command: PlaceCommand) -> Result<Placed, GroupError> {
        self.confirm().await?;
        if self.placement().is_none() {
            let here = self.placement_or_everywhere();
            // What would be refused needs no placement first.
            let tried = Placement::apply(&mut Some(here.clone()), command.clone());
            tried.map_err(|refusal| GroupError::Conflict { why: refusal.to_string() })?;
            // One that came meanwhile is as good.
            match self.place(PlaceCommand::Begin(here)).await {
                Ok(_) | Err(GroupError::Conflict { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        self.place(command).await
    }
}

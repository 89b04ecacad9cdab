//! Which members carry which lock groups, what of that is just changing, and which members are drained: what of it is
//! replicated.
//!
//! ```text
//!   settled ── SetReplicas ──► wanted replicas and those that still carry it ── Settle ──► settled
//! ```
//! A group is carried by its wanted replicas and by those that leave it, until its own members are exactly the wanted ones.
//! A cluster without a placement has every group on every member. Knows nothing of who carries a change out.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use holdfast_partitioner::GroupId;
use serde::{Deserialize, Serialize};

use crate::{config::MAX_LOCK_GROUPS, raft::types::MemberId};

/// Most lock groups of a cluster.
const MOST_GROUPS: usize = MAX_LOCK_GROUPS as usize;
/// Requests for more groups that are remembered; a repeat comes within seconds.
const REQUESTS: usize = 16;

/// What can be asked of the placement.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PlaceCommand {
    /// Sets the first placement. Refused ([`PlaceRefusal::Exists`]) once there is one.
    Begin(Placement),
    /// Adds lock groups, which own nothing yet.
    AddGroups {
        /// How many.
        count: u16,
        /// The members that whoever asks could reach.
        reachable: BTreeSet<MemberId>,
        /// Why.
        why: String,
        /// A number of whoever asks, so that a repeat adds nothing again.
        request: u64,
    },
    /// Says on which members a group is to be.
    SetReplicas {
        /// The group.
        group: GroupId,
        /// The members, the one that should lead it first.
        replicas: Vec<MemberId>,
        /// Why.
        why: String,
        /// The version of the placement by which this was planned; refused where there is a newer one.
        planned: u64,
    },
    /// The members of a group are exactly these, agreed on in its own log.
    Settle {
        /// The group.
        group: GroupId,
        /// Its members.
        members: BTreeSet<MemberId>,
        /// The version with which they were set, as it was when they were read.
        since: u64,
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

/// A command that did what it was asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Placed {
    /// Done, now or before.
    Set,
    /// There are more groups.
    GroupsAdded {
        /// The new ones.
        groups: Vec<GroupId>,
    },
}

/// A command that was refused; nothing has changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum PlaceRefusal {
    /// There is a placement already.
    #[error("the cluster has a placement already")]
    Exists,
    /// There is no placement yet.
    #[error("the cluster has no placement yet; try again in a moment")]
    None,
    /// Too many, or none.
    #[error("{asked} more lock groups cannot be added to {found}: add at least 1, to at most {most} in all")]
    TooManyGroups {
        /// Groups there are.
        found: usize,
        /// Groups asked for.
        asked: u16,
        /// Most groups of a cluster.
        most: usize,
    },
    /// New groups could not begin.
    #[error(
        "a group of {replicas} replicas cannot begin: only {found} members that are not drained can be reached, which is no \
         majority; bring members back and try again"
    )]
    TooFewMembers {
        /// Members that can be given a replica and be reached.
        found: usize,
        /// Replicas of a group.
        replicas: usize,
    },
    /// No such group.
    #[error("there is no lock group {group}; `holdfast groups list` shows those there are")]
    NoSuchGroup {
        /// The group asked for.
        group: GroupId,
    },
    /// Its voters are not known yet.
    #[error("group {group} has not begun yet; try again in a moment")]
    GroupFresh {
        /// The group.
        group: GroupId,
    },
    /// None, one twice, or one that there is not.
    #[error("group {group} needs at least one replica, each on another member of the cluster")]
    BadReplicas {
        /// The group.
        group: GroupId,
    },
    /// It was planned by an older placement.
    #[error("the placement has changed since version {planned}; it is at version {now}")]
    Outdated {
        /// The version of the plan.
        planned: u64,
        /// The version in force.
        now: u64,
    },
    /// The group is to be elsewhere by now.
    #[error("group {group} is to be on other members by now")]
    OtherReplicas {
        /// The group.
        group: GroupId,
    },
    /// No such member.
    #[error("there is no member {member}; `holdfast members list` shows those there are")]
    NoSuchMember {
        /// The member asked for.
        member: MemberId,
    },
    /// Groups would not find enough members.
    #[error(
        "member {member} cannot be drained: {left} members would be left for groups of {replicas} replicas; \
         take another member back first (`holdfast members undrain`), or have more members"
    )]
    TooFewLeft {
        /// The member.
        member: MemberId,
        /// Members that would be left.
        left: usize,
        /// Replicas of a group.
        replicas: usize,
    },
}

/// Where one lock group is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupPlace {
    /// The members that are to carry it, the one that should lead it first.
    pub replicas: Vec<MemberId>,
    /// The voters that it begins with, until it has begun: then none.
    pub founders: Vec<MemberId>,
    /// Members that carried it before and may still be in it.
    pub leaving: BTreeSet<MemberId>,
    /// Why it is changing, where it is.
    pub why: String,
    /// The version of the placement with which its replicas were set.
    pub since: u64,
}

/// Where all lock groups are.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Placement {
    /// Raised by one for each change; 0 where nothing is replicated.
    pub version: u64,
    /// How many replicas a group has.
    pub replicas: u16,
    /// All members that there were when it was set.
    pub members: BTreeSet<MemberId>,
    /// The lock groups.
    pub groups: BTreeMap<GroupId, GroupPlace>,
    /// Members that are to carry and to lead nothing.
    pub drained: BTreeSet<MemberId>,
    /// The last requests for more groups, and what they were given.
    pub added: VecDeque<(u64, Vec<GroupId>)>,
}

impl GroupPlace {
    /// A group that begins on these members.
    #[must_use]
    pub fn fresh(replicas: Vec<MemberId>, why: &str, since: u64) -> Self {
        let founders = replicas.clone();
        Self { replicas, founders, leaving: BTreeSet::new(), why: why.to_owned(), since }
    }

    /// The members that carry it now.
    pub fn carriers(&self) -> impl Iterator<Item = MemberId> + '_ {
        self.replicas.iter().chain(self.leaving.iter()).copied()
    }

    /// Whether it has begun and is where it is to be.
    #[must_use]
    pub fn settled(&self) -> bool {
        self.founders.is_empty() && self.leaving.is_empty() && self.why.is_empty()
    }

    /// Whether it has had a leader.
    #[must_use]
    pub fn has_begun(&self) -> bool {
        self.founders.is_empty()
    }
}

impl Placement {
    /// A fresh cluster of these members and groups, each group on so many members: round robin, over the members that have the
    /// fewest yet, and led by those that lead the fewest.
    #[must_use]
    pub fn spread(members: &BTreeSet<MemberId>, groups: &[GroupId], replicas: u16) -> Self {
        let mut placement = Self { replicas, members: members.clone(), ..Self::default() };
        for group in groups {
            let chosen = placement.choose(members);
            placement.groups.insert(*group, GroupPlace::fresh(chosen, "", 0));
        }
        placement
    }

    /// A cluster that has been without a placement so far: every group is on every member.
    #[must_use]
    pub fn everywhere(members: &BTreeSet<MemberId>, groups: &[GroupId], replicas: u16) -> Self {
        let all = GroupPlace {
            replicas: members.iter().copied().collect(),
            founders: Vec::new(),
            leaving: BTreeSet::new(),
            why: String::new(),
            since: 0,
        };
        Self {
            version: 0,
            replicas,
            members: members.clone(),
            groups: groups.iter().map(|group| (*group, all.clone())).collect(),
            drained: BTreeSet::new(),
            added: VecDeque::new(),
        }
    }

    /// As [`Placement::spread`], for groups that have begun: their members are agreed on.
    #[must_use]
    pub fn settled_spread(members: &BTreeSet<MemberId>, groups: &[GroupId], replicas: u16) -> Self {
        let mut placement = Self { version: 1, ..Self::spread(members, groups, replicas) };
        for place in placement.groups.values_mut() {
            place.founders.clear();
        }
        placement
    }

    /// The groups that a member carries.
    pub fn carried_by(&self, member: MemberId) -> impl Iterator<Item = GroupId> + '_ {
        let carries = move |place: &GroupPlace| place.carriers().any(|carrier| carrier == member);
        self.groups.iter().filter(move |(_, place)| carries(place)).map(|(group, _)| *group)
    }

    /// Members that may be given something.
    pub fn usable(&self) -> impl Iterator<Item = MemberId> + '_ {
        self.members.difference(&self.drained).copied()
    }

    /// How many groups a member is to carry, and how many of them it should lead.
    #[must_use]
    pub fn shares_of(&self, member: MemberId) -> (usize, usize) {
        let of = |place: &&GroupPlace| place.replicas.contains(&member);
        let first = |place: &&GroupPlace| place.replicas.first() == Some(&member);
        (self.groups.values().filter(of).count(), self.groups.values().filter(first).count())
    }

    /// The members for one more group, the one that should lead it first: others than these only where there are too few.
    #[must_use]
    pub fn choose(&self, reachable: &BTreeSet<MemberId>) -> Vec<MemberId> {
        let missing = |member: &MemberId| !reachable.contains(member);
        let mut members: Vec<MemberId> = self.usable().collect();
        members.sort_by_key(|member| (missing(member), self.shares_of(*member).0, *member));
        members.truncate(usize::from(self.replicas));
        members.sort_by_key(|member| (missing(member), self.shares_of(*member).1, *member));
        members
    }

    /// The member for one more replica of a group, among these: the one that carries the fewest groups.
    #[must_use]
    pub fn choose_one(&self, group: GroupId, among: &BTreeSet<MemberId>) -> Option<MemberId> {
        let place = self.groups.get(&group)?;
        let free = self.usable().filter(|member| among.contains(member) && !place.replicas.contains(member));
        free.min_by_key(|member| (self.shares_of(*member).0, *member))
    }

    /// Groups whose members are being changed, or that have not begun.
    pub fn unsettled(&self) -> impl Iterator<Item = (GroupId, &GroupPlace)> {
        self.groups.iter().filter(|(_, place)| !place.settled()).map(|(group, place)| (*group, place))
    }

    /// Applies a command to the placement of a cluster, where it has one. Where it is refused, nothing has changed.
    pub(super) fn apply(placement: &mut Option<Self>, command: PlaceCommand) -> Result<Placed, PlaceRefusal> {
        let here = match placement.as_mut() {
            Some(here) => here,
            None => {
                let PlaceCommand::Begin(first) = command else { return Err(PlaceRefusal::None) };
                *placement = Some(Self { version: 1, ..first });
                return Ok(Placed::Set);
            }
        };
        let before = here.version;
        here.version += 1;
        let placed = match command {
            PlaceCommand::Begin(_) => Err(PlaceRefusal::Exists),
            PlaceCommand::AddGroups { count, reachable, why, request } => {
                here.add_groups(count, &reachable, &why, request)
            }
            PlaceCommand::SetReplicas { planned, .. } if planned != before => {
                Err(PlaceRefusal::Outdated { planned, now: before })
            }
            PlaceCommand::SetReplicas { group, replicas, why, planned: _ } => {
                here.set_replicas(group, replicas, &why)
            }
            PlaceCommand::Settle { group, members, since } => here.settle(group, &members, since),
            PlaceCommand::Drain { member } => here.drain(member),
            PlaceCommand::Undrain { member } => here.undrain(member),
        };
        if placed.is_err() {
            here.version = before;
        }
        placed
    }

    fn add_groups(
        &mut self,
        count: u16,
        reachable: &BTreeSet<MemberId>,
        why: &str,
        request: u64,
    ) -> Result<Placed, PlaceRefusal> {
        if let Some((_, groups)) = self.added.iter().find(|(known, _)| *known == request) {
            return Ok(Placed::GroupsAdded { groups: groups.clone() });
        }
        let next = self.groups.keys().next_back().map_or(1, |last| last.0 + 1);
        if count == 0 || self.groups.len() + usize::from(count) > MOST_GROUPS {
            let (found, most) = (self.groups.len(), MOST_GROUPS);
            return Err(PlaceRefusal::TooManyGroups { found, asked: count, most });
        }
        let found = self.usable().filter(|member| reachable.contains(member)).count();
        let replicas = usize::from(self.replicas);
        if found <= replicas / 2 {
            return Err(PlaceRefusal::TooFewMembers { found, replicas });
        }
        let groups: Vec<GroupId> = (next..).take(usize::from(count)).map(GroupId).collect();
        for group in &groups {
            let chosen = self.choose(reachable);
            self.groups.insert(*group, GroupPlace::fresh(chosen, why, self.version));
        }
        while self.added.len() >= REQUESTS {
            self.added.pop_front();
        }
        self.added.push_back((request, groups.clone()));
        Ok(Placed::GroupsAdded { groups })
    }

    fn set_replicas(
        &mut self,
        group: GroupId,
        replicas: Vec<MemberId>,
        why: &str,
    ) -> Result<Placed, PlaceRefusal> {
        let distinct: BTreeSet<MemberId> = replicas.iter().copied().collect();
        let known = distinct.iter().all(|member| self.members.contains(member));
        if replicas.is_empty() || distinct.len() != replicas.len() || !known {
            return Err(PlaceRefusal::BadReplicas { group });
        }
        let place = self.groups.get_mut(&group).ok_or(PlaceRefusal::NoSuchGroup { group })?;
        // Until it has begun nobody knows which voters it has.
        if !place.has_begun() {
            return Err(PlaceRefusal::GroupFresh { group });
        }
        let before: BTreeSet<MemberId> = place.carriers().collect();
        place.leaving = before.difference(&distinct).copied().collect();
        place.since = self.version;
        place.replicas = replicas;
        why.clone_into(&mut place.why);
        Ok(Placed::Set)
    }

    /// The group's own members are exactly these, agreed on: where they are the wanted ones, nobody else carries it any more.
    fn settle(
        &mut self,
        group: GroupId,
        members: &BTreeSet<MemberId>,
        since: u64,
    ) -> Result<Placed, PlaceRefusal> {
        let place = self.groups.get_mut(&group).ok_or(PlaceRefusal::NoSuchGroup { group })?;
        let wanted: BTreeSet<MemberId> = place.replicas.iter().copied().collect();
        if wanted != *members || place.since != since {
            return Err(PlaceRefusal::OtherReplicas { group });
        }
        place.founders.clear();
        place.leaving.clear();
        place.why.clear();
        Ok(Placed::Set)
    }

    fn drain(&mut self, member: MemberId) -> Result<Placed, PlaceRefusal> {
        if !self.members.contains(&member) {
            return Err(PlaceRefusal::NoSuchMember { member });
        }
        let left = self.usable().filter(|other| *other != member).count();
        let replicas = usize::from(self.replicas);
        if left < replicas {
            return Err(PlaceRefusal::TooFewLeft { member, left, replicas });
        }
        self.drained.insert(member);
        Ok(Placed::Set)
    }

    /// A member that is on the roster from now on may carry groups.
    pub(super) fn admit(&mut self, member: MemberId) {
        self.version += 1;
        self.members.insert(member);
    }

    /// A member that is to go from the roster carries and leads nothing more. That enough are left was seen to before.
    pub(super) fn retire(&mut self, member: MemberId) {
        self.version += 1;
        self.drained.insert(member);
    }

    /// A member stays after all.
    pub(super) fn take_back(&mut self, member: MemberId) {
        self.version += 1;
        self.drained.remove(&member);
    }

    /// A member that carries nothing is off the roster.
    pub(super) fn dismiss(&mut self, member: MemberId) {
        self.version += 1;
        self.members.remove(&member);
        self.drained.remove(&member);
    }

    fn undrain(&mut self, member: MemberId) -> Result<Placed, PlaceRefusal> {
        if !self.members.contains(&member) {
            return Err(PlaceRefusal::NoSuchMember { member });
        }
        self.drained.remove(&member);
        Ok(Placed::Set)
    }
}

#[cfg(test)]
mod tests;

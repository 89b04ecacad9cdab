//! Who the members are while the cluster runs, on which disks, and the one change of that which is under way: what of it is
//! replicated.
//!
//! ```text
//!   add       place on the roster ── Meet ──► follows the meta group, may carry groups ── Finish
//!   remove    drained ──────────────────────► carries nothing, out of the meta group ─── Finish: off the roster
//!   replace   place ── Meet: old one drained ► old one carries nothing, out of the group ── Finish: off the roster
//! ```
//! A cluster without a roster lives by its members' configuration. An id that has been off the roster is never on it again.
//! Knows nothing of who carries a change out, and no clock: times come with commands and are shown only.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use serde::{Deserialize, Serialize};

pub use self::refusal::RosterRefusal;
use super::{command::MemberRecord, placement::Placement};
use crate::{log::disk_id::DiskId, raft::types::MemberId};

mod refusal;

/// Changes that are remembered once they are over.
const PAST: usize = 16;
/// Most members of a cluster.
pub const MAX_MEMBERS: usize = 64;

/// What can be asked of the roster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum RosterCommand {
    /// Sets the first roster. Changes nothing once there is one.
    Begin(Vec<MemberRecord>),
    /// A member has come with this disk.
    Meet {
        /// The member, and where it can be reached; replaces what was known before.
        record: MemberRecord,
        /// Its disk.
        disk: DiskId,
    },
    /// Begins a change; there is one at a time.
    Change(NewMemberChange),
    /// What a change needed is done.
    Finish {
        /// Its number.
        change: u64,
        /// Milliseconds since 1970; for display only.
        at_ms: u64,
    },
    /// Stops a change.
    Cancel {
        /// Its number.
        change: u64,
        /// Why.
        why: String,
        /// Milliseconds since 1970; for display only.
        at_ms: u64,
    },
}

/// What is wanted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum MemberChangeKind {
    /// A new member.
    Add(MemberRecord),
    /// A member less.
    Remove {
        /// The member.
        member: MemberId,
    },
    /// A new member in the place of another.
    Replace {
        /// The one that goes.
        old: MemberId,
        /// The one that comes.
        new: MemberRecord,
    },
}

impl MemberChangeKind {
    /// The member that goes.
    #[must_use]
    pub const fn goes(&self) -> Option<MemberId> {
        match self {
            Self::Add(_) => None,
            Self::Remove { member } => Some(*member),
            Self::Replace { old, .. } => Some(*old),
        }
    }

    /// The member that comes.
    #[must_use]
    pub const fn comes(&self) -> Option<MemberId> {
        match self {
            Self::Add(new) | Self::Replace { new, .. } => Some(new.id),
            Self::Remove { .. } => None,
        }
    }

    /// In words, as `remove member 3`.
    #[must_use]
    pub fn words(&self) -> String {
        match self {
            Self::Add(new) => format!("add member {}", new.id),
            Self::Remove { member } => format!("remove member {member}"),
            Self::Replace { old, new } => format!("replace member {old} with member {}", new.id),
        }
    }
}

/// A change that is asked for. A new member with id 0 gets the next one that was never used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewMemberChange {
    /// What is wanted.
    pub kind: MemberChangeKind,
    /// Who wants it.
    pub actor: String,
    /// Why.
    pub reason: String,
    /// A number of whoever asks, so that a repeat begins nothing again.
    pub request: u64,
    /// Milliseconds since 1970; for display only.
    pub at_ms: u64,
}

/// A change with its number.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemberChange {
    /// From 1.
    pub number: u64,
    /// What was asked for.
    pub asked: NewMemberChange,
}

/// A change that is over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PastMemberChange {
    /// The change.
    pub change: MemberChange,
    /// Why it was stopped, where it was.
    pub stopped: Option<String>,
    /// Milliseconds since 1970; for display only.
    pub at_ms: u64,
}

/// One member on the roster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RosterMember {
    /// Where it can be reached.
    pub record: MemberRecord,
    /// Its disk, once it has come.
    pub disk: Option<DiskId>,
}

/// Who the members are.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Roster {
    members: BTreeMap<MemberId, RosterMember>,
    /// Ids that are never used again.
    removed: BTreeSet<MemberId>,
    /// The highest number of a change.
    changes: u64,
    under_way: Option<MemberChange>,
    past: VecDeque<PastMemberChange>,
}

/// A command that did what it was asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum RosterDone {
    /// Done, now or before.
    Set,
    /// The change has begun, now or before.
    Begun(MemberChange),
}

impl Roster {
    /// The members by id.
    #[must_use]
    pub const fn members(&self) -> &BTreeMap<MemberId, RosterMember> {
        &self.members
    }

    /// The change under way.
    #[must_use]
    pub const fn under_way(&self) -> Option<&MemberChange> {
        self.under_way.as_ref()
    }

    /// Changes that are over, oldest first.
    pub fn past(&self) -> impl Iterator<Item = &PastMemberChange> {
        self.past.iter()
    }

    /// Whether it has ever been changed: until then the meta group stays as it began.
    #[must_use]
    pub const fn has_changed(&self) -> bool {
        self.changes > 0
    }

    /// Whether a member has come.
    #[must_use]
    pub fn has_met(&self, member: MemberId) -> bool {
        self.members.get(&member).is_some_and(|known| known.disk.is_some())
    }

    /// Whether nothing is new about a member: it has come from this disk, and is reached there.
    #[must_use]
    pub fn knows(&self, record: &MemberRecord, disk: DiskId) -> bool {
        self.members.get(&record.id).is_some_and(|known| known.disk == Some(disk) && known.record == *record)
    }

    /// Whether a member may take part from a disk.
    ///
    /// # Errors
    /// It is not on the roster, or runs on another disk than before.
    pub fn greets(&self, member: MemberId, disk: DiskId) -> Result<(), RosterRefusal> {
        if self.removed.contains(&member) {
            return Err(RosterRefusal::Removed { member });
        }
        match self.members.get(&member).ok_or(RosterRefusal::NotOnRoster { member })?.disk {
            Some(known) if known != disk => Err(RosterRefusal::OtherDisk { member, known, came: disk }),
            Some(_) | None => Ok(()),
        }
    }

    /// Applies a command to the roster of a cluster, where it has one. Where it is refused, nothing has changed.
    pub(super) fn apply(
        roster: &mut Option<Self>,
        placement: &mut Option<Placement>,
        command: RosterCommand,
    ) -> Result<RosterDone, RosterRefusal> {
        let Some(here) = roster.as_mut() else {
            let RosterCommand::Begin(first) = command else { return Err(RosterRefusal::None) };
            let members = first.into_iter().map(|record| (record.id, RosterMember { record, disk: None }));
            *roster = Some(Self { members: members.collect(), ..Self::default() });
            return Ok(RosterDone::Set);
        };
        match (command, placement.as_mut()) {
            (RosterCommand::Begin(_), _) => Ok(RosterDone::Set),
            (RosterCommand::Meet { record, disk }, placement) => here.meet(placement, record, disk),
            (_, None) => Err(RosterRefusal::None),
            (RosterCommand::Change(new), Some(placement)) => here.change(placement, new),
            (RosterCommand::Finish { change, at_ms }, Some(placement)) => {
                here.finish(placement, change, at_ms)
            }
            (RosterCommand::Cancel { change, why, at_ms }, Some(placement)) => {
                here.cancel(placement, change, why, at_ms)
            }
        }
    }

    fn meet(
        &mut self,
        placement: Option<&mut Placement>,
        record: MemberRecord,
        disk: DiskId,
    ) -> Result<RosterDone, RosterRefusal> {
        let member = record.id;
        self.greets(member, disk)?;
        let known = self.members.get_mut(&member).ok_or(RosterRefusal::NotOnRoster { member })?;
        known.record = record;
        if known.disk.replace(disk).is_some() {
            return Ok(RosterDone::Set);
        }
        let comes = self.under_way.as_ref().filter(|change| change.asked.kind.comes() == Some(member));
        if let (Some(change), Some(placement)) = (comes, placement) {
            placement.admit(member);
            if let Some(old) = change.asked.kind.goes() {
                placement.retire(old);
            }
        }
        Ok(RosterDone::Set)
    }

    fn change(
        &mut self,
        placement: &mut Placement,
        mut new: NewMemberChange,
    ) -> Result<RosterDone, RosterRefusal> {
        let past = self.past.iter().map(|past| &past.change);
        if let Some(same) = self.under_way.iter().chain(past).find(|known| known.asked.request == new.request)
        {
            return Ok(RosterDone::Begun(same.clone()));
        }
        if let Some(other) = &self.under_way {
            return Err(RosterRefusal::UnderWay(Box::new(other.clone())));
        }
        if let Some(old) = new.kind.goes() {
            if !self.members.contains_key(&old) {
                return Err(RosterRefusal::NoSuchMember { member: old });
            }
            let others = placement.usable().filter(|other| *other != old).count();
            let left = others + usize::from(new.kind.comes().is_some());
            let replicas = usize::from(placement.replicas);
            if left < replicas {
                return Err(RosterRefusal::TooFewLeft { member: old, left, replicas });
            }
        }
        match &mut new.kind {
            MemberChangeKind::Add(record) => self.make_place(record, None)?,
            MemberChangeKind::Replace { old, new } => self.make_place(new, Some(*old))?,
            MemberChangeKind::Remove { member } => placement.retire(*member),
        }
        self.changes += 1;
        let begun = MemberChange { number: self.changes, asked: new };
        self.under_way = Some(begun.clone());
        Ok(RosterDone::Begun(begun))
    }

    /// Puts a new member on the roster, which may be where `instead_of` was.
    fn make_place(
        &mut self,
        record: &mut MemberRecord,
        instead_of: Option<MemberId>,
    ) -> Result<(), RosterRefusal> {
        if self.members.len() >= MAX_MEMBERS {
            return Err(RosterRefusal::TooMany);
        }
        let others = self.members.values().map(|known| &known.record);
        for other in others.filter(|other| Some(other.id) != instead_of) {
            let pairs =
                [(&record.peer, &other.peer), (&record.http, &other.http), (&record.grpc, &other.grpc)];
            if let Some((address, _)) = pairs.into_iter().find(|(mine, theirs)| mine == theirs) {
                return Err(RosterRefusal::AddressInUse { address: address.clone(), member: other.id });
            }
        }
        if record.id == 0 {
            let highest = self.members.keys().chain(&self.removed).max().copied().unwrap_or(0);
            record.id = highest.saturating_add(1);
        }
        let member = record.id;
        if self.members.contains_key(&member) {
            return Err(RosterRefusal::Exists { member });
        }
        if self.removed.contains(&member) {
            return Err(RosterRefusal::Removed { member });
        }
        self.members.insert(member, RosterMember { record: record.clone(), disk: None });
        Ok(())
    }

    fn the_change(&self, change: u64) -> Result<MemberChange, RosterRefusal> {
        let here = self.under_way.clone().filter(|here| here.number == change);
        here.ok_or(RosterRefusal::NoSuchChange { change })
    }

    fn finish(
        &mut self,
        placement: &mut Placement,
        change: u64,
        at_ms: u64,
    ) -> Result<RosterDone, RosterRefusal> {
        let here = self.the_change(change)?;
        let kind = &here.asked.kind;
        let has_come = kind.comes().is_none_or(|new| self.has_met(new));
        let has_gone = kind.goes().is_none_or(|old| placement.carried_by(old).next().is_none());
        if !has_come || !has_gone {
            return Err(RosterRefusal::NotDone { change });
        }
        if let Some(old) = kind.goes() {
            self.take_off(old);
            placement.dismiss(old);
        }
        self.end(here, None, at_ms);
        Ok(RosterDone::Set)
    }

    fn cancel(
        &mut self,
        placement: &mut Placement,
        change: u64,
        why: String,
        at_ms: u64,
    ) -> Result<RosterDone, RosterRefusal> {
        let here = self.the_change(change)?;
        match (here.asked.kind.comes(), here.asked.kind.goes()) {
            (Some(new), _) if !self.has_met(new) => self.take_off(new),
            (Some(new), None) => return Err(RosterRefusal::HasCome { member: new }),
            (_, Some(old)) => placement.take_back(old),
            (None, None) => {}
        }
        self.end(here, Some(why), at_ms);
        Ok(RosterDone::Set)
    }

    fn take_off(&mut self, member: MemberId) {
        self.members.remove(&member);
        self.removed.insert(member);
    }

    fn end(&mut self, change: MemberChange, stopped: Option<String>, at_ms: u64) {
        self.under_way = None;
        while self.past.len() >= PAST {
            self.past.pop_front();
        }
        self.past.push_back(PastMemberChange { change, stopped, at_ms });
    }
}

#[cfg(test)]
mod tests;

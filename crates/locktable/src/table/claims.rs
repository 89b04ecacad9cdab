//! Claims: partitions that sessions share. What is replicated of them, and how the assignment follows from a change.
//!
//! Commands note what they change; who gets what is decided once, after all writes of the entry, by [`assign`]. A partition
//! that shall move stays its owner's until the owner has stopped, left or ended: so nobody is given what another may use.

use alloc::{
    collections::{BTreeMap, BTreeSet},
    vec::Vec,
};

use holdfast_partitioner::Range;
use serde::{Deserialize, Serialize};

use super::{Changes, LockTable};
use crate::{
    assign::{self, Owner, Part},
    event::Fact,
    ids::{Revision, SessionId, Token},
    metadata::Metadata,
    name::Name,
};

/// All claims of a group.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Claims {
    pub(crate) live: BTreeMap<Name, Claim>,
    /// Those of an import under way; nothing of them can be read or changed.
    pub(crate) arriving: BTreeMap<Name, Claim>,
}

/// One claim. It has members; without any it goes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Claim {
    /// One for each partition.
    pub(crate) owners: Vec<Option<Owner>>,
    pub(crate) members: BTreeMap<SessionId, Member>,
}

/// One session's part in a claim.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Member {
    pub(crate) weight: u32,
    /// It gives everything back and goes once it has nothing.
    pub(crate) draining: bool,
    pub(crate) metadata: Metadata,
    pub(crate) joined_at_ms: u64,
    /// When something changed last that it must know.
    pub(crate) changed: Revision,
}

impl Claim {
    /// Its members as the assignment sees them.
    pub(crate) fn parts(&self) -> Vec<Part> {
        let part = |(session, member): (&SessionId, &Member)| Part {
            session: *session,
            weight: if member.draining { 0 } else { member.weight },
        };
        self.members.iter().map(part).collect()
    }

    /// Takes a session out; what it had is free.
    fn remove(&mut self, session: SessionId) -> bool {
        // First, because of very many sessions that end most take no part.
        if self.members.remove(&session).is_none() {
            return false;
        }
        for owner in &mut self.owners {
            if owner.is_some_and(|owner| owner.session == session) {
                *owner = None;
            }
        }
        true
    }

    /// Makes the assignment what it shall be, at this revision. Adds to `told` whose view has changed.
    fn settle(&mut self, revision: Revision, told: &mut BTreeSet<SessionId>) {
        let plan = assign::plan(&self.parts(), &self.owners);
        for partition in plan.revoke {
            if let Some(Some(owner)) = self.owners.get_mut(partition as usize) {
                owner.revoking = true;
                told.insert(owner.session);
            }
        }
        for (partition, session) in plan.give {
            if let Some(place) = self.owners.get_mut(partition as usize) {
                *place = Some(Owner { session, token: revision, revoking: false });
                told.insert(session);
            }
        }
        let owning: BTreeSet<SessionId> = self.owners.iter().flatten().map(|owner| owner.session).collect();
        let drained = |session: &SessionId, member: &mut Member| member.draining && !owning.contains(session);
        told.extend(self.members.extract_if(.., drained).map(|(session, _)| session));
        for session in told.iter() {
            if let Some(member) = self.members.get_mut(session) {
                member.changed = revision;
            }
        }
    }
}

/// Which claims each session is a member of. Derived, never in a snapshot.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Joined(BTreeMap<SessionId, BTreeSet<Name>>);

impl Joined {
    pub(crate) fn of(claims: &BTreeMap<Name, Claim>) -> Self {
        let mut joined = Self::default();
        for (name, claim) in claims {
            for session in claim.members.keys() {
                joined.add(*session, name);
            }
        }
        joined
    }

    fn add(&mut self, session: SessionId, name: &Name) {
        self.0.entry(session).or_default().insert(name.clone());
    }

    fn remove(&mut self, session: SessionId, name: &Name) {
        if let Some(names) = self.0.get_mut(&session) {
            names.remove(name);
            if names.is_empty() {
                self.0.remove(&session);
            }
        }
    }

    /// The claims of a session, in order of names.
    pub(crate) fn claims_of(&self, session: SessionId) -> impl Iterator<Item = &Name> {
        self.0.get(&session).into_iter().flatten()
    }
}

impl LockTable {
    /// Takes a session in, or gives it another weight. The revision is reserved.
    pub(crate) fn join(
        &mut self,
        changes: &mut Changes,
        name: &Name,
        session: SessionId,
        partitions: u32,
        member: Member,
    ) {
        let claim = self.state.claims.live.entry(name.clone()).or_default();
        if claim.owners.is_empty() {
            claim.owners.resize(partitions as usize, None);
        }
        claim.members.insert(session, member);
        self.joined.add(session, name);
        changes.claim(name, session);
    }

    /// Takes a session out of a claim; what it had is free. The revision is reserved. Whether it was a member.
    pub(crate) fn leave(&mut self, changes: &mut Changes, name: &Name, session: SessionId) -> bool {
        let Some(claim) = self.state.claims.live.get_mut(name) else { return false };
        let was = claim.remove(session);
        if was {
            self.joined.remove(session, name);
            changes.claim(name, session);
        }
        was
    }

    /// A member is to have nothing any more. The revision is reserved.
    pub(crate) fn drain(&mut self, changes: &mut Changes, name: &Name, session: SessionId) {
        let claim = self.state.claims.live.get_mut(name);
        if let Some(member) = claim.and_then(|claim| claim.members.get_mut(&session)) {
            member.draining = true;
            changes.claim(name, session);
        }
    }

    /// A member has stopped using these partitions, which it was to give back. The revision is reserved.
    pub(crate) fn give_back(
        &mut self,
        changes: &mut Changes,
        name: &Name,
        session: SessionId,
        partitions: &[(u32, Token)],
    ) {
        let Some(claim) = self.state.claims.live.get_mut(name) else { return };
        for (partition, token) in partitions {
            if let Some(place) = claim.owners.get_mut(*partition as usize)
                && place.is_some_and(|owner| owner.is_revoked_of(session, *token))
            {
                *place = None;
                changes.claim(name, session);
            }
        }
    }

    /// Decides who has what in the claims that this entry has changed, and tells the members concerned.
    pub(super) fn settle_claims(&mut self, changes: &mut Changes) {
        for (name, mut told) in changes.take_claims() {
            let Some(claim) = self.state.claims.live.get_mut(&name) else { continue };
            claim.settle(changes.revision(), &mut told);
            for session in &told {
                if !claim.members.contains_key(session) {
                    self.joined.remove(*session, &name);
                }
            }
            if claim.members.is_empty() {
                self.state.claims.live.remove(&name);
            }
            for session in told {
                changes.fact(Fact::ClaimChanged { name: name.clone(), session });
            }
        }
    }

    /// The claims of a session, copied.
    pub(crate) fn claims_of(&self, session: SessionId) -> Vec<Name> {
        self.joined.claims_of(session).cloned().collect()
    }

    /// Puts claims in place that came from another group, without the sessions that have ended. Nobody else is told:
    /// nothing happened to them. The revision is reserved.
    pub(crate) fn install_claims(&mut self, ended: &BTreeSet<SessionId>, changes: &mut Changes) {
        for (name, mut claim) in core::mem::take(&mut self.state.claims.arriving) {
            for session in ended {
                if claim.remove(*session) {
                    changes.claim(&name, *session);
                }
            }
            for session in claim.members.keys() {
                self.joined.add(*session, &name);
            }
            self.state.claims.live.insert(name, claim);
        }
    }

    /// Takes the claims of a range away that another group has. Nobody is told.
    pub(crate) fn take_claims_away(&mut self, range: &Range) {
        let gone = self.state.claims.live.extract_if(.., |name, _| range.contains(name.internal()));
        for (name, claim) in gone {
            for session in claim.members.keys() {
                self.joined.remove(*session, &name);
            }
        }
    }
}

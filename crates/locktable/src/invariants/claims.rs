//! Rules of claims.

use alloc::collections::BTreeSet;

use super::Violation;
use crate::{
    assign,
    commands::{MAX_MEMBERS, MAX_PARTITIONS, MAX_WEIGHT},
    ids::SessionId,
    name::{Name, NameKind},
    table::{Claim, LockTable, Member},
};

pub(super) fn all(table: &LockTable) -> Result<(), Violation> {
    for (name, claim) in &table.state.claims.live {
        let name = || name.clone();
        if !bounds_fit(table, &name(), claim) {
            return Err(Violation::Claim { name: name() });
        }
        for (partition, owner) in (0..).zip(&claim.owners) {
            let fits = owner.is_none_or(|owner| {
                claim.members.contains_key(&owner.session)
                    && owner.token.0 > 0
                    && owner.token <= table.state.revision
            });
            if !fits {
                return Err(Violation::PartitionOwner { name: name(), partition });
            }
        }
        let owning: BTreeSet<SessionId> = claim.owners.iter().flatten().map(|owner| owner.session).collect();
        let drained =
            claim.members.iter().any(|(session, member)| member.draining && !owning.contains(session));
        if drained || !assign::plan(&claim.parts(), &claim.owners).is_empty() {
            return Err(Violation::Assignment { name: name() });
        }
    }
    // What is on its way here belongs to an import.
    match table.state.claims.arriving.keys().next().filter(|_| table.state.moves.incoming.is_none()) {
        Some(name) => Err(Violation::Claim { name: name.clone() }),
        None => Ok(()),
    }
}

fn bounds_fit(table: &LockTable, name: &Name, claim: &Claim) -> bool {
    let member_fits =
        |member: &Member| (1..=MAX_WEIGHT).contains(&member.weight) && member.changed <= table.state.revision;
    name.kind() == NameKind::Claim
        && table.holds_range_of(name)
        && (1..=MAX_PARTITIONS as usize).contains(&claim.owners.len())
        && (1..=MAX_MEMBERS).contains(&claim.members.len())
        && claim.members.keys().all(|session| table.state.sessions.contains_key(session))
        && claim.members.values().all(member_fits)
}

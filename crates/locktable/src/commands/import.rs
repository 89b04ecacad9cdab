//! `Import`: the destination takes in what was exported, part by part, and keeps it apart: nothing of it can be read or
//! changed before `Activate` (rule R18).

use alloc::{boxed::Box, collections::BTreeMap};

use crate::{
    codec::Digest,
    command::Import,
    moved::Moved,
    name::Name,
    outcome::{Outcome, Rejection},
    table::{Arriving, Claim, Incoming, Index, LockTable},
};

pub(crate) fn apply(table: &mut LockTable, import: &Import) -> Result<Outcome, Rejection> {
    begin(table, import)?;
    let Some(incoming) = table.state.moves.incoming.as_mut() else {
        return Err(Rejection::StaleMove { highest: table.state.moves.highest });
    };
    // A part that came before; or the whole, whichever attempt brought it.
    if incoming.complete.is_none() && import.part == incoming.next {
        take(incoming, &mut table.arriving, &mut table.state.claims.arriving, import);
    }
    let complete = incoming.complete.map(|_| incoming.digest);
    Ok(Outcome::Imported { next: incoming.next, complete })
}

/// Makes room for the import, if this is its first part; refuses parts that do not belong to it. Changes nothing where it
/// refuses.
fn begin(table: &mut LockTable, import: &Import) -> Result<(), Rejection> {
    let moves = &mut table.state.moves;
    let same = moves.incoming.as_ref().filter(|incoming| incoming.move_number == import.move_number);
    let Some(incoming) = same else {
        moves.check_new(import.move_number)?;
        return start(table, import);
    };
    if incoming.complete.is_some() || import.attempt == incoming.attempt {
        let late = incoming.complete.is_none() && import.part > incoming.next;
        return if late { Err(Rejection::ImportOutOfOrder { next: incoming.next }) } else { Ok(()) };
    }
    if import.attempt < incoming.attempt {
        return Err(Rejection::StaleMove { highest: moves.highest });
    }
    start(table, import)
}

fn start(table: &mut LockTable, import: &Import) -> Result<(), Rejection> {
    if import.part > 0 {
        return Err(Rejection::ImportOutOfOrder { next: 0 });
    }
    table.state.moves.highest = import.move_number;
    table.state.claims.arriving.clear();
    table.arriving = Index::default();
    table.state.moves.incoming = Some(Box::new(Incoming {
        move_number: import.move_number,
        attempt: import.attempt,
        range: import.range.clone(),
        next: 0,
        digest: Digest::NOTHING,
        complete: None,
        sessions: BTreeMap::new(),
        keys: BTreeMap::new(),
    }));
    Ok(())
}

fn take(incoming: &mut Incoming, index: &mut Index, claims: &mut BTreeMap<Name, Claim>, import: &Import) {
    incoming.digest = incoming.digest.with(&import.moved);
    for piece in &import.moved {
        match piece {
            Moved::Session(moved) => {
                let arriving = Arriving { moved: (**moved).clone(), ended: None };
                incoming.sessions.insert(moved.session, arriving);
            }
            Moved::Key(moved) => {
                index.add(&moved.key, &moved.record);
                incoming.keys.insert(moved.key.clone(), moved.record.clone());
            }
            Moved::Claim(moved) => {
                claims.entry(moved.name.clone()).or_default().owners.clone_from(&moved.owners);
            }
            Moved::Member(moved) => {
                let claim = claims.entry(moved.claim.clone()).or_default();
                claim.members.insert(moved.session, moved.member.clone());
            }
        }
    }
    incoming.next += 1;
    incoming.complete = import.last;
}

//! Rules of the whole table: indexes, revision, history.

use super::Violation;
use crate::{
    ids::Revision,
    table::{HISTORY_BYTES, HISTORY_EVENTS, Index, Joined, LockTable},
};

pub(super) fn indexes(table: &LockTable) -> Result<(), Violation> {
    let keys = table.index == Index::of(&table.state.keys);
    let arriving = match &table.state.moves.incoming {
        Some(incoming) => Index::of(&incoming.keys),
        None => Index::default(),
    };
    let claims = table.joined == Joined::of(&table.state.claims.live);
    if keys && claims && table.arriving == arriving { Ok(()) } else { Err(Violation::Indexes) }
}

pub(super) fn revision(table: &LockTable) -> Result<(), Violation> {
    let revision = table.state.revision;
    if revision.0 < Revision::LIMIT { Ok(()) } else { Err(Violation::RevisionBound { revision }) }
}

pub(super) fn history(table: &LockTable) -> Result<(), Violation> {
    let history = &table.state.history;
    let mut before = history.oldest();
    for event in history.events() {
        if event.revision < before || event.revision > table.state.revision {
            return Err(Violation::History { at: event.revision });
        }
        before = event.revision;
    }
    let mut copy = history.clone();
    copy.recount();
    let over = history.events().len() > HISTORY_EVENTS || history.bytes() > HISTORY_BYTES;
    let one_entry =
        history.events().front().map(|e| e.revision) == history.events().back().map(|e| e.revision);
    if copy.bytes() != history.bytes()
        || (over && !one_entry)
        || history.oldest().0 > table.state.revision.0 + 1
    {
        return Err(Violation::History { at: before });
    }
    Ok(())
}

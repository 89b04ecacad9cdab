//! `OpenSession`: a session begins at its home. Its epoch is the index of this entry.

use alloc::{boxed::Box, collections::BTreeSet};

use super::check_ttl;
use crate::{
    command::OpenSession,
    event::Fact,
    ids::SessionEpoch,
    outcome::{Outcome, Rejection},
    table::{Changes, LockTable, Role, Session},
};

pub(crate) fn apply(
    table: &mut LockTable,
    changes: &mut Changes,
    open: &OpenSession,
) -> Result<Outcome, Rejection> {
    check_ttl(open.ttl_ms)?;
    let id = open.session;
    if table.remembers(id) || table.state.ended(id) {
        return Err(Rejection::SessionExists { session: id });
    }
    let epoch = SessionEpoch(changes.at.index);
    let role = Role::Home { attached: BTreeSet::new() };
    let session = Session::new(epoch, open.ttl_ms, open.metadata.clone(), role, changes.at_ms);
    table.state.sessions.insert(id, Box::new(session));
    changes.fact(Fact::SessionOpened { session: id, epoch, ttl_ms: open.ttl_ms });
    Ok(Outcome::SessionOpened { epoch })
}

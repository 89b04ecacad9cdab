//! Hearing of the ends of holds on this member's own replica (promise P8).
//!
//! One look-up when a hold is followed and one when it ends; nothing else that happens in its group costs anything here.

use holdfast_locktable::{
    event::{Change, Removal},
    ids::Token,
    name::Name,
    table::LockTable,
};

use super::{Answer, ApiError, Endpoint};
use crate::watch::{
    Follow,
    holds::{Hold, HoldNews, Listener},
};

impl Endpoint {
    /// Has the listener told when the hold ends: at once where it has ended already. `NoLeader` where this member does not
    /// know who owns the name; then nobody will be told.
    pub async fn follow_hold(&self, hold: &Hold, listener: &Listener) -> Answer<()> {
        let id = self.group_of(&hold.name).await?;
        let group = self.parts.router.group(id).ok_or_else(|| ApiError::no_leader(id))?;
        group.locks(|table| {
            // A replica that lags has not seen its grant yet, and will see its end after that.
            if table.revision() < hold.token || table.stands(&hold.name, hold.token) {
                group.audiences().followers.joins();
                let (hold, listener) = (hold.clone(), listener.clone());
                group.fanout().do_send(Follow { hold, listener });
            } else {
                let reason = removal_of(table, &hold.name, hold.token);
                // A listener that went away need not hear.
                let _ = listener.send(HoldNews::Ended { hold: hold.clone(), reason });
            }
        });
        Ok(())
    }
}

/// Why a key went, as far as that is remembered.
fn removal_of(table: &LockTable, name: &Name, token: Token) -> Removal {
    let removal = |change: &Change| match change {
        Change::Delete { create_revision, reason, .. } if *create_revision == token => Some(*reason),
        Change::Delete { .. } | Change::Put { .. } | Change::Grant { .. } => None,
    };
    let history = table.history_of(name, usize::MAX);
    history.iter().rev().find_map(|event| removal(&event.change)).unwrap_or(Removal::Deleted)
}

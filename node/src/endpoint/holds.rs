//! Hearing of the ends of holds on this member's own replica (promise P8), where it is current, and of those elsewhere ([`far`]).
//!
//! One look-up when a hold is followed and one when it ends; nothing else that happens in its group costs anything here.

pub mod far;

use holdfast_locktable::{event::Removal, table::LockTable};
use holdfast_partitioner::MapEpoch;

use super::{Answer, ApiError, Endpoint};
use crate::{
    group::read::removal_of,
    watch::{
        Follow,
        holds::{Hold, HoldNews, Listener},
    },
};

/// What this member's replica of a group says of a hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Word {
    /// It will say when the hold ends.
    Follows,
    /// It has ended.
    Ended(Removal),
    /// Nothing: the range is not here, or not yet, or was here before and has been elsewhere since.
    None,
}

impl Endpoint {
    /// Has the listener told when the hold ends: at once where it has ended already. The hold is known to have stood somewhere
    /// under the map epoch. `NoLeader` where this member does not know yet what has become of it; then nobody will be told.
    pub async fn follow_hold(&self, hold: &Hold, epoch: MapEpoch, listener: &Listener) -> Answer<()> {
        let id = self.group_of(&hold.name).await?;
        let Some(group) = self.parts.router.current_group(id) else {
            self.parts.far_holds.follow(hold, epoch, listener);
            return Ok(());
        };
        group.locks(|table| match word_of(table, hold, epoch) {
            Word::Follows => {
                group.audiences().followers.joins();
                let (hold, listener) = (hold.clone(), listener.clone());
                group.fanout().do_send(Follow { hold, listener });
                Ok(())
            }
            Word::Ended(reason) => {
                // A listener that went away need not hear.
                let _ = listener.send(HoldNews::Ended { hold: hold.clone(), reason });
                Ok(())
            }
            Word::None => Err(ApiError::no_leader(id)),
        })
    }
}

/// A replica may lag behind in two ways: it has not seen the grant yet, and will see the hold's end after that; or it has
/// not seen the range come, and knows of the hold as little as of any other group's. An earlier time that the range was here
/// proves nothing: whose ranges are older than what is known of the hold does not say.
fn word_of(table: &LockTable, hold: &Hold, epoch: MapEpoch) -> Word {
    // Of a hold of which it is not known when it stood where, only a group says anything whose ranges have never changed.
    let unknown = epoch == MapEpoch::NONE && table.ownership_epoch() > MapEpoch::FIRST;
    if unknown || !table.holds_range_of(&hold.name) || table.ownership_epoch() < epoch {
        return Word::None;
    }
    if table.revision() < hold.token || table.stands(&hold.name, hold.token) {
        return Word::Follows;
    }
    Word::Ended(removal_of(table, &hold.name, hold.token).unwrap_or(Removal::Deleted))
}

#[cfg(test)]
mod tests;

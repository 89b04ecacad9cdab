//! Saying of holds, and of parts in claims, whether they stand in this group (rules R3, R17).
//!
//! Answered by a proven leader, from one look at its table: all of an answer is true under the one ownership epoch that it
//! names. Of names whose range is on its way or elsewhere the group says nothing but that. Does not know where they are.

use holdfast_locktable::{event::Removal, name::NameKind, table::LockTable};
use serde::{Deserialize, Serialize};

use super::{
    Group,
    call::{GroupAnswer, GroupResult},
    read::removal_of,
};
use crate::watch::holds::Hold;

/// How a group finds a hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Found {
    /// It stands here.
    Stands,
    /// It has ended; why, where that is remembered.
    Ended(Option<Removal>),
    /// Its range is not here, or not settled: another group knows, or this one in a moment.
    Elsewhere,
}

impl Group {
    pub(super) async fn locate(&self, holds: &[Hold]) -> GroupResult {
        self.confirm().await?;
        Ok(self.locks(|table| GroupAnswer::Located {
            epoch: table.ownership_epoch(),
            holds: holds.iter().map(|hold| find(table, hold)).collect(),
        }))
    }
}

fn find(table: &LockTable, hold: &Hold) -> Found {
    if table.owns(&hold.name).is_err() {
        return Found::Elsewhere;
    }
    if hold.name.kind() == NameKind::Claim {
        let stands = table.is_member(&hold.name, hold.session);
        return if stands { Found::Stands } else { Found::Ended(None) };
    }
    match table.holder(&hold.name) {
        Some((session, token, _)) if session == hold.session && token == hold.token => Found::Stands,
        Some(_) | None => Found::Ended(removal_of(table, &hold.name, hold.token)),
    }
}

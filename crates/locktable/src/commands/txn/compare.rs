//! One comparison of a transaction. A missing key has zeroes, and no value that equals anything.

use core::cmp::Ordering;

use crate::{
    table::LockTable,
    txn::{Compare, CompareOrder, CompareTarget},
};

/// Whether a comparison holds now.
pub(super) fn holds(table: &LockTable, compare: &Compare) -> bool {
    let key = table.state.keys.get(&compare.key);
    let ordering = match &compare.target {
        CompareTarget::Create(revision) => key.map_or(0, |k| k.create.0).cmp(&revision.0),
        CompareTarget::Mod(revision) => key.map_or(0, |k| k.modified.0).cmp(&revision.0),
        CompareTarget::Version(version) => key.map_or(0, |k| k.version).cmp(version),
        CompareTarget::Lease(lease) => key.and_then(|k| k.lease).cmp(lease),
        CompareTarget::Value(value) => match key {
            Some(key) => key.value.cmp(value),
            None => return false,
        },
    };
    match compare.order {
        CompareOrder::Equal => ordering == Ordering::Equal,
        CompareOrder::NotEqual => ordering != Ordering::Equal,
        CompareOrder::Greater => ordering == Ordering::Greater,
        CompareOrder::Less => ordering == Ordering::Less,
    }
}

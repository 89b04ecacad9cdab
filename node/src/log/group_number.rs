//! A group's number, checked to fit the log's row key, and that key itself.
//!
//! One table holds the entries of all groups under an integer key, because an integer primary key is what SQLite stores
//! fastest. This module refuses to know what a group is.

use std::{fmt, ops::Range};

use serde::{Deserialize, Serialize};

/// Bits of the row key that hold the entry's index.
const INDEX_BITS: u32 = 44;
/// Bits of the row key that hold the group, so that the key stays a positive 64-bit integer.
const GROUP_BITS: u32 = 19;

/// First index that does not fit a row key any more.
pub const INDEX_END: u64 = 1 << INDEX_BITS;

/// A group's number, below 2^19.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "u32", into = "u32")]
pub struct GroupNumber(u32);

/// The number is too large for a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("group {number} is out of range: the log numbers groups from 0 to {max}", max = GroupNumber::MAX)]
pub struct GroupOutOfRange {
    /// What was asked for.
    pub number: u32,
}

/// The index is too large for an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("index {index} of group {group} is out of range: the log numbers entries below {INDEX_END}")]
pub struct IndexOutOfRange {
    /// The group whose entry it is.
    pub group: GroupNumber,
    /// What was asked for.
    pub index: u64,
}

impl GroupNumber {
    /// The largest number a group can have.
    pub const MAX: u32 = (1 << GROUP_BITS) - 1;

    /// Checks that `number` fits.
    ///
    /// # Errors
    /// [`GroupOutOfRange`] above [`GroupNumber::MAX`].
    pub fn new(number: u32) -> Result<GroupNumber, GroupOutOfRange> {
        if number <= Self::MAX { Ok(GroupNumber(number)) } else { Err(GroupOutOfRange { number }) }
    }

    /// The plain number.
    #[must_use]
    pub fn get(self) -> u32 {
        self.0
    }

    /// The row key of entry `index`.
    ///
    /// # Errors
    /// [`IndexOutOfRange`] from [`INDEX_END`] on.
    pub(crate) fn row(self, index: u64) -> Result<i64, IndexOutOfRange> {
        if index >= INDEX_END {
            return Err(IndexOutOfRange { group: self, index });
        }
        Ok((i64::from(self.0) << INDEX_BITS) | i64::try_from(index).unwrap_or(i64::MAX))
    }

    /// First and last row key of the entries in `range`, as far as they fit; nothing when it is empty.
    pub(crate) fn rows(self, range: &Range<u64>) -> Option<(i64, i64)> {
        let last = range.end.min(INDEX_END).checked_sub(1)?;
        if range.start > last {
            return None;
        }
        Some((self.row(range.start).ok()?, self.row(last).ok()?))
    }

    /// The entry index within a row key of this group.
    pub(crate) fn index_of(row: i64) -> u64 {
        u64::try_from(row).unwrap_or(0) & (INDEX_END - 1)
    }
}

impl TryFrom<u32> for GroupNumber {
    type Error = GroupOutOfRange;

    fn try_from(number: u32) -> Result<GroupNumber, GroupOutOfRange> {
        GroupNumber::new(number)
    }
}

impl From<GroupNumber> for u32 {
    fn from(group: GroupNumber) -> u32 {
        group.0
    }
}

impl fmt::Display for GroupNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_groups_never_overlap() {
        let low = GroupNumber::new(0).unwrap();
        let high = GroupNumber::new(GroupNumber::MAX).unwrap();
        assert_eq!(low.row(0).unwrap(), 0);
        assert_eq!(low.row(INDEX_END - 1).unwrap() + 1, GroupNumber::new(1).unwrap().row(0).unwrap());
        assert_eq!(high.row(INDEX_END - 1).unwrap(), i64::MAX);
        assert_eq!(GroupNumber::index_of(high.row(77).unwrap()), 77);
    }

    #[test]
    fn numbers_out_of_range_are_refused() {
        let err = GroupNumber::new(GroupNumber::MAX + 1).unwrap_err();
        assert_eq!(err.to_string(), "group 524288 is out of range: the log numbers groups from 0 to 524287");
        let err = GroupNumber::new(3).unwrap().row(INDEX_END).unwrap_err();
        assert_eq!(
            err.to_string(),
            "index 17592186044416 of group 3 is out of range: the log numbers entries below 17592186044416"
        );
    }

    #[test]
    fn ranges_are_clamped_to_the_group() {
        let group = GroupNumber::new(GroupNumber::MAX).unwrap();
        assert_eq!(group.rows(&(5..u64::MAX)), Some((group.row(5).unwrap(), i64::MAX)));
        assert_eq!(group.rows(&(5..7)), Some((group.row(5).unwrap(), group.row(6).unwrap())));
        assert_eq!(group.rows(&(5..5)), None);
        assert_eq!(group.rows(&(0..0)), None);
        assert_eq!(group.rows(&(INDEX_END..u64::MAX)), None);
    }
}

//! How a record of the log stands on disk: a version byte, a checksum, then postcard.
//!
//! The checksum covers the record's place (group, slot, index) as well, so that a record that turns up elsewhere is
//! an error and not another group's entry. In format 1 it does not cover the version byte; from format 2 on it must, as
//! the last byte, and version and checksum keep their places. So a newer record is told from a damaged version byte.
//! This module knows no file and no table.

use std::fmt;

use serde::{Serialize, de::DeserializeOwned};

use super::group_number::GroupNumber;

/// Version of the record format, the first byte of every record.
const FORMAT: u8 = 1;
/// Version byte and checksum.
const HEADER_LEN: usize = 5;

/// What a record is, within its group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Slot {
    /// The entry at an index.
    Entry(u64),
    /// The vote.
    Vote,
    /// The last entry known to be committed.
    Committed,
    /// The last purged entry.
    Purged,
    /// How many transactions the file has seen; kept for group 0, and speaks of all groups.
    Commits,
}

impl Slot {
    /// Stable numbers that go into the checksum.
    fn tag(self) -> (u8, u64) {
        match self {
            Slot::Entry(index) => (0, index),
            Slot::Vote => (1, 0),
            Slot::Committed => (2, 0),
            Slot::Purged => (3, 0),
            Slot::Commits => (4, 0),
        }
    }
}

impl fmt::Display for Slot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Slot::Entry(index) => write!(f, "entry {index}"),
            Slot::Vote => f.write_str("the vote"),
            Slot::Committed => f.write_str("the commit mark"),
            Slot::Purged => f.write_str("the purge mark"),
            Slot::Commits => f.write_str("the count of commits"),
        }
    }
}

/// Why a record cannot be written or read: it is damaged as a rule, and of a newer format at times.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{slot} of group {group} in the log {fault}; {}", fault.advice())]
pub struct DamagedRecord {
    /// The group.
    pub group: GroupNumber,
    /// Which of its records.
    pub slot: Slot,
    /// What is wrong with it.
    pub fault: RecordFault,
}

/// What is wrong with a record.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecordFault {
    /// Fewer bytes than a header has.
    #[error("is cut short ({len} bytes)")]
    Short {
        /// Its length.
        len: usize,
    },
    /// Written by a newer version.
    #[error("has format {found}, newer than the {FORMAT} this version of Holdfast knows")]
    Format {
        /// Its version byte.
        found: u8,
    },
    /// The version byte is not the one that was written.
    #[error("is damaged (version byte {found} before content of format {FORMAT})")]
    Version {
        /// Its version byte.
        found: u8,
    },
    /// The checksum does not match.
    #[error("is damaged (checksum {stored:08x} stored, {computed:08x} computed)")]
    Checksum {
        /// What stands in the record.
        stored: u32,
        /// What its content gives.
        computed: u32,
    },
    /// The checksum matches and still the content makes no sense.
    #[error("cannot be decoded ({0})")]
    Content(postcard::Error),
    /// The entry says that it stands at another index.
    #[error("says that it is entry {found}")]
    OtherIndex {
        /// The index inside.
        found: u64,
    },
    /// There is no such record although its neighbours are there.
    #[error("is missing")]
    Missing,
}

impl RecordFault {
    /// What to do about it.
    #[must_use]
    pub fn advice(&self) -> &'static str {
        match self {
            RecordFault::Format { .. } => "run the newer version",
            RecordFault::Short { .. }
            | RecordFault::Version { .. }
            | RecordFault::Checksum { .. }
            | RecordFault::Content(_)
            | RecordFault::OtherIndex { .. }
            | RecordFault::Missing => {
                "remove this member from the cluster and add it again with an empty folder"
            }
        }
    }
}

/// The checksum of a record of this format.
fn checksum(format: u8, group: GroupNumber, slot: Slot, content: &[u8]) -> u32 {
    let (kind, index) = slot.tag();
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&group.get().to_le_bytes());
    hasher.update(&[kind]);
    hasher.update(&index.to_le_bytes());
    hasher.update(content);
    if format > FORMAT {
        hasher.update(&[format]);
    }
    hasher.finalize()
}

/// Appends the record of `value` to `out` and gives `out` back.
///
/// # Errors
/// [`RecordFault::Content`] when `value` cannot be encoded.
pub(crate) fn seal<T: Serialize>(
    group: GroupNumber,
    slot: Slot,
    value: &T,
    mut out: Vec<u8>,
) -> Result<Vec<u8>, DamagedRecord> {
    let start = out.len();
    out.push(FORMAT);
    out.extend_from_slice(&[0; HEADER_LEN - 1]);
    let mut out = postcard::to_extend(value, out).map_err(|err| DamagedRecord {
        group,
        slot,
        fault: RecordFault::Content(err),
    })?;
    let sum = checksum(FORMAT, group, slot, &out[start + HEADER_LEN..]);
    out[start + 1..start + HEADER_LEN].copy_from_slice(&sum.to_le_bytes());
    Ok(out)
}

/// Reads the record back.
///
/// # Errors
/// Any [`RecordFault`] but `OtherIndex` and `Missing`.
pub(crate) fn unseal<T: DeserializeOwned>(
    group: GroupNumber,
    slot: Slot,
    record: &[u8],
) -> Result<T, DamagedRecord> {
    let content = content(group, slot, record)?;
    postcard::from_bytes(content).map_err(|err| DamagedRecord {
        group,
        slot,
        fault: RecordFault::Content(err),
    })
}

/// What is sealed in the record, once its checksum has been found right.
///
/// # Errors
/// [`RecordFault::Short`], [`RecordFault::Format`], [`RecordFault::Version`] or [`RecordFault::Checksum`].
pub(crate) fn content(group: GroupNumber, slot: Slot, record: &[u8]) -> Result<&[u8], DamagedRecord> {
    let damaged = |fault| DamagedRecord { group, slot, fault };
    let Some((header, content)) = record.split_first_chunk::<HEADER_LEN>() else {
        return Err(damaged(RecordFault::Short { len: record.len() }));
    };
    let [format, sum @ ..] = *header;
    let stored = u32::from_le_bytes(sum);
    let computed = checksum(FORMAT, group, slot, content);
    if stored == computed {
        return if format == FORMAT {
            Ok(content)
        } else {
            Err(damaged(RecordFault::Version { found: format }))
        };
    }
    if format > FORMAT && stored == checksum(format, group, slot, content) {
        return Err(damaged(RecordFault::Format { found: format }));
    }
    Err(damaged(RecordFault::Checksum { stored, computed }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(number: u32) -> GroupNumber {
        GroupNumber::new(number).unwrap()
    }

    #[test]
    fn records_survive_the_round_trip_behind_other_records() {
        let out = seal(group(3), Slot::Entry(7), &"seven", Vec::new()).unwrap();
        let first = out.len();
        let out = seal(group(3), Slot::Entry(8), &"eight", out).unwrap();
        assert_eq!(unseal::<String>(group(3), Slot::Entry(7), &out[..first]).unwrap(), "seven");
        assert_eq!(unseal::<String>(group(3), Slot::Entry(8), &out[first..]).unwrap(), "eight");
    }

    #[test]
    fn every_flipped_bit_is_found() {
        let good = seal(group(3), Slot::Entry(7), &"seven", Vec::new()).unwrap();
        for bit in 0..good.len() * 8 {
            let mut bad = good.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            assert!(unseal::<String>(group(3), Slot::Entry(7), &bad).is_err(), "bit {bit}");
        }
    }

    #[test]
    fn a_record_in_another_place_is_damaged() {
        let record = seal(group(3), Slot::Entry(7), &"seven", Vec::new()).unwrap();
        for (other, slot) in [(4, Slot::Entry(7)), (3, Slot::Entry(8)), (3, Slot::Vote)] {
            let err = unseal::<String>(group(other), slot, &record).unwrap_err();
            assert!(matches!(err.fault, RecordFault::Checksum { .. }));
            assert!(err.to_string().starts_with(&format!("{slot} of group {other} in the log is damaged")));
        }
    }

    /// Frozen: a change of these bytes is a new format.
    #[test]
    fn the_format_is_frozen() {
        let record = seal(group(3), Slot::Entry(7), &1u64, Vec::new()).unwrap();
        assert_eq!(record, [1, 67, 1, 188, 190, 1]);
    }

    /// A record as format 9 would write it. Its header is frozen: it tells a newer record from a damaged one.
    fn newer(slot: Slot) -> Vec<u8> {
        let content = b"of a later time";
        let sum = checksum(9, group(3), slot, content).to_le_bytes();
        [[9].as_slice(), &sum, content].concat()
    }

    #[test]
    fn a_newer_format_is_named() {
        assert_eq!(newer(Slot::Vote)[..5], [9, 35, 247, 89, 156]);
        let err = unseal::<u64>(group(3), Slot::Vote, &newer(Slot::Vote)).unwrap_err();
        assert_eq!(
            err.to_string(),
            "the vote of group 3 in the log has format 9, newer than the 1 this version of Holdfast knows; run the newer version"
        );
        let mut torn = newer(Slot::Vote);
        torn.pop();
        let err = unseal::<u64>(group(3), Slot::Vote, &torn).unwrap_err();
        assert!(matches!(err.fault, RecordFault::Checksum { .. }), "{err}");
    }

    #[test]
    fn a_flipped_bit_in_the_version_byte_is_damage_and_not_a_newer_format() {
        let good = seal(group(3), Slot::Vote, &1u64, Vec::new()).unwrap();
        for bit in 0..8 {
            let mut record = good.clone();
            record[0] ^= 1 << bit;
            let err = unseal::<u64>(group(3), Slot::Vote, &record).unwrap_err();
            assert_eq!(err.fault, RecordFault::Version { found: record[0] });
            assert!(err.to_string().contains("is damaged (version byte"), "{err}");
            assert!(err.to_string().ends_with("with an empty folder"), "{err}");
        }
    }
}

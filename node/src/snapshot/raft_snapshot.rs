//! The file format of openraft's own snapshots.
//!
//! ```text
//! magic 8 | format u16 | group u32 | length of meta u32 | length of data u64 | meta (postcard) | data | sha256 of all that
//! ```
//! Integers are little-endian. Magic, format, and the checksum of all before it at the end stay in every format, so that a
//! newer file is told from a damaged one. This module knows no file system.

use bytes::Bytes;
use openraft::type_config::alias::SnapshotMetaOf;
use sha2::{Digest, Sha256};

use crate::{log::group_number::GroupNumber, raft::types::TypeConfig};

/// openraft's description of a snapshot: the last entry in it and the membership.
pub type SnapshotMeta = SnapshotMetaOf<TypeConfig>;

const MAGIC: [u8; 8] = *b"HFSNAP\0\n";
const FORMAT: u16 = 1;
const HEADER_LEN: usize = 8 + 2 + 4 + 4 + 8;
const DIGEST_LEN: usize = 32;

/// Why a file is no snapshot that can be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SnapshotFault {
    /// It does not begin as one.
    #[error("it is no snapshot file")]
    Foreign,
    /// A newer version wrote it.
    #[error("it has format {found}, newer than the {FORMAT} this version of Holdfast knows")]
    Format {
        /// Its format.
        found: u16,
    },
    /// It has another length than it says.
    #[error("it is torn: {found} bytes instead of {expected}")]
    Torn {
        /// Bytes in the file.
        found: u64,
        /// Bytes that there should be.
        expected: u64,
    },
    /// The checksum does not match.
    #[error("it is damaged: its checksum does not match")]
    Checksum,
    /// It is of another group.
    #[error("it is of group {found}")]
    OtherGroup {
        /// Whose it is.
        found: u32,
    },
    /// Its meta cannot be encoded or decoded.
    #[error("its meta cannot be decoded ({0})")]
    Meta(postcard::Error),
}

/// What stands before the data, and the checksum behind them.
pub(crate) fn frame(
    group: GroupNumber,
    meta: &SnapshotMeta,
    data: &[u8],
) -> Result<(Vec<u8>, [u8; DIGEST_LEN]), SnapshotFault> {
    let meta = postcard::to_allocvec(meta).map_err(SnapshotFault::Meta)?;
    let meta_len = u32::try_from(meta.len()).map_err(|_too_long| SnapshotFault::Foreign)?;
    let data_len = u64::try_from(data.len()).map_err(|_too_long| SnapshotFault::Foreign)?;
    let mut head = Vec::with_capacity(HEADER_LEN + meta.len());
    head.extend_from_slice(&MAGIC);
    head.extend_from_slice(&FORMAT.to_le_bytes());
    head.extend_from_slice(&group.get().to_le_bytes());
    head.extend_from_slice(&meta_len.to_le_bytes());
    head.extend_from_slice(&data_len.to_le_bytes());
    head.extend_from_slice(&meta);
    let digest = Sha256::new().chain_update(&head).chain_update(data).finalize();
    Ok((head, digest.into()))
}

/// Reads a whole file back; the data are a part of `file` and not copied.
///
/// # Errors
/// Any [`SnapshotFault`].
pub(crate) fn parse(group: GroupNumber, file: &Bytes) -> Result<(SnapshotMeta, Bytes), SnapshotFault> {
    let mut fields = Fields { rest: file };
    if fields.take::<8>() != Some(MAGIC) {
        return Err(SnapshotFault::Foreign);
    }
    let torn = |expected: u64| SnapshotFault::Torn { found: file.len() as u64, expected };
    let header = || torn(HEADER_LEN as u64);
    let format = u16::from_le_bytes(fields.take().ok_or_else(header)?);
    let whole = is_whole(file);
    if whole && format > FORMAT {
        return Err(SnapshotFault::Format { found: format });
    }
    let found_group = u32::from_le_bytes(fields.take().ok_or_else(header)?);
    let meta_len = u32::from_le_bytes(fields.take().ok_or_else(header)?);
    let data_len = u64::from_le_bytes(fields.take().ok_or_else(header)?);
    let frame_len = (HEADER_LEN + DIGEST_LEN) as u64 + u64::from(meta_len);
    let expected = frame_len.saturating_add(data_len);
    if file.len() as u64 != expected {
        return Err(torn(expected));
    }
    if !whole {
        return Err(SnapshotFault::Checksum);
    }
    if format != FORMAT {
        return Err(SnapshotFault::Foreign);
    }
    if found_group != group.get() {
        return Err(SnapshotFault::OtherGroup { found: found_group });
    }
    let data_start = HEADER_LEN + meta_len as usize;
    let meta = postcard::from_bytes(&file[HEADER_LEN..data_start]).map_err(SnapshotFault::Meta)?;
    Ok((meta, file.slice(data_start..file.len() - DIGEST_LEN)))
}

/// Whether the checksum at the end is right.
fn is_whole(file: &[u8]) -> bool {
    file.split_last_chunk::<DIGEST_LEN>()
        .is_some_and(|(content, digest)| Sha256::digest(content).as_slice() == digest)
}

struct Fields<'file> {
    rest: &'file [u8],
}

impl Fields<'_> {
    fn take<const LEN: usize>(&mut self) -> Option<[u8; LEN]> {
        let (field, rest) = self.rest.split_first_chunk::<LEN>()?;
        self.rest = rest;
        Some(*field)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use openraft::{RaftTypeConfig, vote::RaftLeaderId};

    use super::*;
    use crate::raft::types::LogId;

    pub(crate) fn meta(term: u64, index: u64) -> SnapshotMeta {
        let leader = <TypeConfig as RaftTypeConfig>::LeaderId::new(term, 1).to_committed();
        SnapshotMeta { last_log_id: Some(LogId::new(leader, index)), ..SnapshotMeta::default() }
    }

    fn file(group: u32) -> Vec<u8> {
        let (mut file, digest) = frame(GroupNumber::new(group).unwrap(), &meta(2, 17), b"the state").unwrap();
        file.extend_from_slice(b"the state");
        file.extend_from_slice(&digest);
        file
    }

    fn fault(file: Vec<u8>) -> SnapshotFault {
        parse(GroupNumber::new(3).unwrap(), &file.into()).unwrap_err()
    }

    #[test]
    fn a_snapshot_survives_the_round_trip() {
        let (found, data) = parse(GroupNumber::new(3).unwrap(), &file(3).into()).unwrap();
        assert_eq!((found, data.as_ref()), (meta(2, 17), b"the state".as_slice()));
    }

    #[test]
    fn torn_and_damaged_files_are_found() {
        let good = file(3);
        for len in 0..good.len() {
            assert!(
                parse(GroupNumber::new(3).unwrap(), &good[..len].to_vec().into()).is_err(),
                "length {len}"
            );
        }
        for position in 0..good.len() {
            let mut bad = good.clone();
            bad[position] ^= 0x40;
            assert!(parse(GroupNumber::new(3).unwrap(), &bad.into()).is_err(), "byte {position}");
        }
        let mut long = good.clone();
        long.push(0);
        assert!(matches!(fault(long), SnapshotFault::Torn { .. }));
        assert_eq!(fault(file(4)), SnapshotFault::OtherGroup { found: 4 });
    }

    #[test]
    fn a_newer_format_is_told_from_a_damaged_one() {
        let good = file(3);
        for position in [8, 9] {
            for bit in 0..8 {
                let mut bad = good.clone();
                bad[position] ^= 1 << bit;
                assert_eq!(fault(bad), SnapshotFault::Checksum, "bit {bit} of byte {position}");
            }
        }
        let mut newer = [MAGIC.as_slice(), &9u16.to_le_bytes(), b"as it will be"].concat();
        let digest = Sha256::digest(&newer);
        newer.extend_from_slice(&digest);
        assert_eq!(
            fault(newer.clone()).to_string(),
            "it has format 9, newer than the 1 this version of Holdfast knows"
        );
        newer.pop();
        assert!(matches!(fault(newer), SnapshotFault::Torn { .. } | SnapshotFault::Checksum));
    }

    /// Frozen: a change of these bytes is a new format.
    #[test]
    fn the_header_is_frozen() {
        let head = &file(3)[..HEADER_LEN + 6];
        assert_eq!(&head[..14], b"HFSNAP\0\n\x01\0\x03\0\0\0");
        assert_eq!(&head[18..26], 9u64.to_le_bytes());
        assert_eq!(
            &head[26..30],
            [1, 2, 1, 17],
            "the last entry: there is one, term 2 of member 1, index 17"
        );
    }
}

//! Bytes of proposals and snapshots: a version, then postcard. Frozen by golden tests.
//!
//! A snapshot also carries a checksum, and is checked against all invariants before it is used. In version 1 the checksum
//! does not cover the version; from version 2 on it must, as the last byte, so that another version is told from a damaged
//! one. Version 2 adds sessions without a lease, version 3 moves, version 4 claims, version 5 a pause of grants; all earlier ones
//! are read. Equal states have equal bytes. Knows nothing of where the bytes lie.

use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::{
    command::Proposal,
    invariants::{self, Violation},
    mutant,
    table::{LockTable, State},
};

/// First byte of a proposal.
pub const PROPOSAL_VERSION: u8 = 1;
/// First byte of a snapshot.
pub const SNAPSHOT_VERSION: u8 = 5;
/// The version without a checksum over itself.
const FIRST_VERSION: u8 = 1;
/// The version without moves.
const SECOND_VERSION: u8 = 2;
/// The version without claims.
const THIRD_VERSION: u8 = 3;
/// The version without a pause of grants.
const FOURTH_VERSION: u8 = 4;
/// What version 1 lacks at its end: an empty map, and what version 2 lacks.
const NO_ABSENT: [u8; 9] = [0; 9];
/// What version 2 lacks at its end: two move numbers, two ranges on their way, and a list of those that came; and what
/// version 3 lacks.
const NO_MOVES: [u8; 8] = [0; 8];
/// What version 3 lacks at its end: two empty maps, and what version 4 lacks.
const NO_CLAIMS: [u8; 3] = [0; 3];
/// What version 4 lacks at its end: a pause.
const NO_PAUSE: [u8; 1] = [0; 1];

/// Why bytes are no proposal, or no snapshot.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// Fewer bytes than the header has.
    #[error("the bytes end too early")]
    Truncated,
    /// Written by another version of this program.
    #[error("version {found} of the format is unknown; this program reads version {known}")]
    UnknownVersion {
        /// The version byte.
        found: u8,
        /// What this program reads.
        known: u8,
    },
    /// The checksum does not fit: the bytes were changed or cut after they were written.
    #[error("the checksum does not fit the bytes")]
    Checksum,
    /// The checksum fits without the version byte: it was changed after it was written.
    #[error("the version {found} is damaged: the bytes behind it are of another version")]
    DamagedVersion {
        /// The version byte.
        found: u8,
    },
    /// Not what the version says.
    #[error("the bytes are no well-formed encoding, or some are left over")]
    Malformed,
    /// Well-formed, but no state that commands lead to.
    #[error("the state breaks a rule: {0}")]
    Inconsistent(Violation),
}

/// A fingerprint of a whole state: equal for equal states. Against accidents, not against malice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Digest(pub u64);

impl Digest {
    /// The fingerprint of nothing.
    pub const NOTHING: Self = Self(0xcbf2_9ce4_8422_2325);

    /// The fingerprint of what was there with these bytes behind it: FNV-1a, 64 bits.
    #[must_use]
    pub(crate) fn and(self, bytes: &[u8]) -> Self {
        let fold = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        Self(bytes.iter().fold(self.0, fold))
    }
}

/// The bytes of a proposal as they go into the log.
pub fn encode_proposal(proposal: &Proposal) -> Vec<u8> {
    let mut bytes = Vec::from([PROPOSAL_VERSION]);
    bytes.extend(body(proposal));
    bytes
}

/// Reads a proposal from the log.
///
/// # Errors
/// Anything that [`encode_proposal`] of this version has not written.
pub fn decode_proposal(bytes: &[u8]) -> Result<Proposal, DecodeError> {
    let (version, body) = bytes.split_first().ok_or(DecodeError::Truncated)?;
    check_version(*version, PROPOSAL_VERSION)?;
    parse(body)
}

impl LockTable {
    /// The whole state as bytes: version, CRC-32 of the rest (little-endian), the rest.
    pub fn encode(&self) -> Vec<u8> {
        let body = body(&self.state);
        let mut bytes = Vec::with_capacity(body.len() + 5);
        bytes.push(SNAPSHOT_VERSION);
        bytes.extend(checksum(SNAPSHOT_VERSION, &body).to_le_bytes());
        bytes.extend(body);
        bytes
    }

    /// Reads what [`encode`](Self::encode) wrote, builds the indexes, and checks all invariants.
    ///
    /// # Errors
    /// An unknown version, damaged bytes, or a state that breaks an invariant.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let Some(([found, crc @ ..], body)) = bytes.split_first_chunk::<5>() else {
            return Err(DecodeError::Truncated);
        };
        check_snapshot(*found, u32::from_le_bytes(*crc), body)?;
        let state: State = match *found {
            FIRST_VERSION => parse(&[body, &NO_ABSENT].concat())?,
            SECOND_VERSION => parse(&[body, &NO_MOVES].concat())?,
            THIRD_VERSION => parse(&[body, &NO_CLAIMS].concat())?,
            FOURTH_VERSION => parse(&[body, &NO_PAUSE].concat())?,
            _ => parse(body)?,
        };
        let mut table = Self::from_state(state);
        invariants::check(&table).map_err(DecodeError::Inconsistent)?;
        if mutant!("token-not-raised-after-restart") {
            // What the keys that stand would need; keys that are gone had higher ones.
            table.state.revision =
                table.state.keys.values().map(|key| key.modified).max().unwrap_or_default();
        }
        Ok(table)
    }

    /// A fingerprint of the whole state. Costs as much as encoding it.
    pub fn digest(&self) -> Digest {
        Digest::NOTHING.and(&body(&self.state))
    }
}

/// Whether the bytes behind a version and a checksum are what was written, by a version that is known.
fn check_snapshot(found: u8, crc: u32, body: &[u8]) -> Result<(), DecodeError> {
    let fits = |version| crc == checksum(version, body);
    match found {
        FIRST_VERSION..=SNAPSHOT_VERSION if fits(found) => Ok(()),
        _ if (FIRST_VERSION..=SNAPSHOT_VERSION).any(fits) => Err(DecodeError::DamagedVersion { found }),
        _ if fits(found) => Err(DecodeError::UnknownVersion { found, known: SNAPSHOT_VERSION }),
        _ => Err(DecodeError::Checksum),
    }
}

/// The checksum of a snapshot of this version.
fn checksum(version: u8, body: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(body);
    if version > FIRST_VERSION {
        hasher.update(&[version]);
    }
    hasher.finalize()
}

/// Postcard refuses only sequences of unknown length, which none of our types has; should that ever change, the empty
/// body is refused on decoding.
pub(crate) fn body<T: Serialize>(value: &T) -> Vec<u8> {
    postcard::to_allocvec(value).unwrap_or_default()
}

fn parse<'b, T: serde::Deserialize<'b>>(body: &'b [u8]) -> Result<T, DecodeError> {
    match postcard::take_from_bytes(body) {
        Ok((value, [])) => Ok(value),
        Ok(_) | Err(_) => Err(DecodeError::Malformed),
    }
}

fn check_version(found: u8, known: u8) -> Result<(), DecodeError> {
    if found == known { Ok(()) } else { Err(DecodeError::UnknownVersion { found, known }) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        command::Command,
        ids::Revision,
        sample::{hold, table, text, with_sessions},
    };

    fn some_table() -> LockTable {
        let mut table = with_sessions(2);
        hold(&mut table, 1, "l", text("t"));
        table
    }

    #[test]
    fn what_was_encoded_is_decoded() {
        let table = some_table();
        assert_eq!(LockTable::decode(&table.encode()), Ok(table.clone()));
        let proposal = Proposal { at_ms: 1, command: Command::Compact { keep_from: Revision(7) } };
        assert_eq!(decode_proposal(&encode_proposal(&proposal)), Ok(proposal));
    }

    #[test]
    fn other_versions_are_named() {
        let newer = [[9].as_slice(), &crc32fast::hash(b"later\x09").to_le_bytes(), b"later"].concat();
        let unknown = DecodeError::UnknownVersion { found: 9, known: SNAPSHOT_VERSION };
        assert_eq!(LockTable::decode(&newer), Err(unknown));
        let unknown = DecodeError::UnknownVersion { found: 0, known: PROPOSAL_VERSION };
        assert_eq!(decode_proposal(&[0, 1, 2]), Err(unknown));
    }

    #[test]
    fn a_damaged_version_is_no_other_version() {
        let good = some_table().encode();
        for bit in 0..8 {
            let mut bytes = good.clone();
            bytes[0] ^= 1 << bit;
            assert_eq!(LockTable::decode(&bytes), Err(DecodeError::DamagedVersion { found: bytes[0] }));
        }
    }

    #[test]
    fn damage_anywhere_is_noticed() {
        let bytes = some_table().encode();
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 0x10;
            assert!(LockTable::decode(&damaged).is_err(), "byte {at}");
            assert!(LockTable::decode(&bytes[..at]).is_err(), "cut at {at}");
        }
        let mut longer = bytes;
        longer.push(0);
        assert_eq!(LockTable::decode(&longer), Err(DecodeError::Checksum));
    }

    #[test]
    fn left_over_and_missing_bytes_of_a_proposal_are_errors() {
        let proposal = Proposal { at_ms: 300, command: Command::Compact { keep_from: Revision(300) } };
        let mut bytes = encode_proposal(&proposal);
        for at in 1..bytes.len() {
            assert_eq!(decode_proposal(&bytes[..at]), Err(DecodeError::Malformed), "cut at {at}");
        }
        assert_eq!(decode_proposal(&[]), Err(DecodeError::Truncated));
        bytes.push(0);
        assert_eq!(decode_proposal(&bytes), Err(DecodeError::Malformed));
    }

    #[test]
    fn a_well_formed_state_that_breaks_a_rule_is_refused() {
        let mut table = some_table();
        table.state.sessions.clear();
        let Err(DecodeError::Inconsistent(violation)) = LockTable::decode(&table.encode()) else {
            panic!("decoded a key without session");
        };
        assert!(matches!(violation, Violation::OrphanKey { .. }), "{violation}");
    }

    #[test]
    fn digests_tell_states_apart() {
        assert_eq!(some_table().digest(), some_table().digest());
        assert_ne!(some_table().digest(), table().digest());
    }
}

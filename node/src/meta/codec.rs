//! How commands and the state of the meta group stand in logs and snapshots: a version byte, for the state also a
//! checksum, then postcard. Equal states have equal bytes. In format 1 the checksum of a state does not cover the version
//! byte; from format 2 on it does, as the last byte, so that a newer state is told from a damaged version byte. What a format
//! has more than the one before it stands last: the changes of the map in format 2, the planner's policy and the placement
//! in format 3, the roster in format 4.

use holdfast_partitioner::planner::Policy;
use serde::Serialize;

use super::{changes::Changes, command::MetaCommand, placement::Placement, roster::Roster, table::MetaTable};

/// What format 4 has more than format 3.
type SinceThird = Option<Roster>;
/// What format 4 has more than format 2.
type SinceSecond = ((Option<Policy>, Option<Placement>), SinceThird);

/// Version of the command encoding, its first byte.
const COMMAND_FORMAT: u8 = 1;
/// Version of the state encoding, its first byte.
const TABLE_FORMAT: u8 = 4;
/// Version byte and checksum before the state.
const TABLE_HEADER: usize = 5;

/// Why bytes are no command or state of the meta group.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MetaDecodeError {
    /// Fewer bytes than a header has.
    #[error("the meta group's {what} is cut short ({len} bytes)")]
    Short {
        /// Command or state.
        what: &'static str,
        /// Its length.
        len: usize,
    },
    /// Written by a newer version of the program.
    #[error(
        "the meta group's {what} has format {found}, and this version knows only up to {known}; run the newer version"
    )]
    Format {
        /// Command or state.
        what: &'static str,
        /// Its version byte.
        found: u8,
        /// The newest known here.
        known: u8,
    },
    /// The checksum does not match.
    #[error("the meta group's state is damaged (checksum {stored:08x} stored, {computed:08x} computed)")]
    Checksum {
        /// What stands in the header.
        stored: u32,
        /// What the content gives.
        computed: u32,
    },
    /// The version byte is not the one that was written.
    #[error("the meta group's state is damaged (version byte {found} before content of format 1)")]
    Version {
        /// Its version byte.
        found: u8,
    },
    /// The content makes no sense.
    #[error("the meta group's {what} cannot be decoded ({reason})")]
    Content {
        /// Command or state.
        what: &'static str,
        /// What the decoder said.
        reason: postcard::Error,
    },
}

/// The bytes of a command as they are proposed.
///
/// # Errors
/// [`MetaDecodeError::Content`] where it cannot be encoded, which no value that can be built does.
pub fn encode_command(command: &MetaCommand) -> Result<Vec<u8>, MetaDecodeError> {
    postcard::to_extend(command, vec![COMMAND_FORMAT])
        .map_err(|reason| MetaDecodeError::Content { what: "command", reason })
}

/// Reads a command back.
///
/// # Errors
/// Anything that [`encode_command`] would not have written, trailing bytes included.
pub fn decode_command(bytes: &[u8]) -> Result<MetaCommand, MetaDecodeError> {
    let what = "command";
    let (format, content) = bytes.split_first().ok_or(MetaDecodeError::Short { what, len: 0 })?;
    if *format != COMMAND_FORMAT {
        return Err(MetaDecodeError::Format { what, found: *format, known: COMMAND_FORMAT });
    }
    exactly(what, content)
}

impl MetaTable {
    /// The state as it stands in snapshots.
    ///
    /// # Errors
    /// [`MetaDecodeError::Content`] where it cannot be encoded, which no state that can be reached does.
    pub fn encode(&self) -> Result<Vec<u8>, MetaDecodeError> {
        let mut out = vec![TABLE_FORMAT, 0, 0, 0, 0];
        out = postcard::to_extend(self, out)
            .map_err(|reason| MetaDecodeError::Content { what: "state", reason })?;
        let sum = checksum(TABLE_FORMAT, &out[TABLE_HEADER..]).to_le_bytes();
        out[1..TABLE_HEADER].copy_from_slice(&sum);
        Ok(out)
    }

    /// Reads a state back.
    ///
    /// # Errors
    /// Anything that [`MetaTable::encode`] would not have written.
    pub fn decode(bytes: &[u8]) -> Result<Self, MetaDecodeError> {
        let what = "state";
        let Some(([format, sum @ ..], content)) = bytes.split_first_chunk::<TABLE_HEADER>() else {
            return Err(MetaDecodeError::Short { what, len: bytes.len() });
        };
        let (found, stored) = (*format, u32::from_le_bytes(*sum));
        if stored == checksum(found, content) {
            return match found {
                1 => exactly(what, &with(&(Changes::default(), SinceSecond::default()), content)?),
                2 => exactly(what, &with(&SinceSecond::default(), content)?),
                3 => exactly(what, &with(&SinceThird::default(), content)?),
                TABLE_FORMAT => exactly(what, content),
                _ if found > TABLE_FORMAT => {
                    Err(MetaDecodeError::Format { what, found, known: TABLE_FORMAT })
                }
                _ => Err(MetaDecodeError::Version { found }),
            };
        }
        // Of format 1 with a damaged version byte.
        if stored == checksum(1, content) {
            return Err(MetaDecodeError::Version { found });
        }
        Err(MetaDecodeError::Checksum { stored, computed: checksum(found, content) })
    }
}

/// A state of an older format in the present one, with what it does not have.
fn with(missing: &impl Serialize, content: &[u8]) -> Result<Vec<u8>, MetaDecodeError> {
    postcard::to_extend(missing, content.to_vec())
        .map_err(|reason| MetaDecodeError::Content { what: "state", reason })
}

/// The checksum of a state of this format.
fn checksum(format: u8, content: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(content);
    if format > 1 {
        hasher.update(&[format]);
    }
    hasher.finalize()
}

/// Decodes all of `content`: bytes left over are an error.
fn exactly<T: serde::de::DeserializeOwned>(what: &'static str, content: &[u8]) -> Result<T, MetaDecodeError> {
    let (value, rest) =
        postcard::take_from_bytes(content).map_err(|reason| MetaDecodeError::Content { what, reason })?;
    if rest.is_empty() {
        Ok(value)
    } else {
        Err(MetaDecodeError::Content { what, reason: postcard::Error::DeserializeBadEncoding })
    }
}

#[cfg(test)]
mod tests {
    use holdfast_partitioner::{GroupId, PartitionMap};

    use super::*;
    use crate::log::disk_id::DiskId;
    use crate::meta::{
        command::{AuditRecord, MemberRecord},
        placement::PlaceCommand,
        roster::RosterCommand,
    };

    fn record() -> MetaCommand {
        MetaCommand::Record(AuditRecord {
            at_ms: 7,
            actor: "a".into(),
            action: "b".into(),
            target: "c".into(),
            reason: "d".into(),
            outcome: "e".into(),
        })
    }

    fn member() -> MetaCommand {
        MetaCommand::SetMember(MemberRecord { id: 3, http: "h".into(), grpc: "g".into(), peer: "p".into() })
    }

    fn init() -> MetaCommand {
        MetaCommand::InitMap { map: PartitionMap::initial(&[GroupId(1), GroupId(2)]).unwrap() }
    }

    fn place() -> MetaCommand {
        let members = [1, 2, 3, 4].into();
        MetaCommand::Place(PlaceCommand::Begin(Placement::spread(&members, &[GroupId(1)], 3)))
    }

    fn roster() -> MetaCommand {
        let MetaCommand::SetMember(record) = member() else { unreachable!("it is one") };
        MetaCommand::Roster(RosterCommand::Begin(vec![record]))
    }

    fn meet() -> MetaCommand {
        let MetaCommand::SetMember(record) = member() else { unreachable!("it is one") };
        MetaCommand::Roster(RosterCommand::Meet { record, disk: DiskId::new(5) })
    }

    fn table() -> MetaTable {
        let mut table = MetaTable::new();
        for command in [record(), member(), init(), place(), roster(), meet()] {
            table.apply(command).result.unwrap();
        }
        table
    }

    /// Frozen: a change of these bytes is a new format.
    #[test]
    fn the_formats_are_frozen() {
        assert_eq!(encode_command(&record()).unwrap(), b"\x01\x01\x07\x01a\x01b\x01c\x01d\x01e");
        assert_eq!(encode_command(&member()).unwrap(), b"\x01\x02\x03\x01h\x01g\x01p");
        let mut small = MetaTable::new();
        small.apply(record()).result.unwrap();
        small.apply(member()).result.unwrap();
        let bytes = small.encode().unwrap();
        let first = b"\x00\x01\x03\x03\x01h\x01g\x01p\x01\x01\x07\x01a\x01b\x01c\x01d\x01e";
        assert_eq!(bytes[0], 4);
        let second = [first.as_slice(), b"\0\0\0\0"].concat();
        let third = [second.as_slice(), b"\0\0"].concat();
        assert_eq!(bytes[5..], [third.as_slice(), b"\0"].concat());
        let stored = [[1].as_slice(), &crc32fast::hash(first).to_le_bytes(), first].concat();
        assert_eq!(MetaTable::decode(&stored).as_ref(), Ok(&small), "format 1 is read");
        let sum = crc32fast::hash(&[second.as_slice(), &[2]].concat());
        let stored = [[2].as_slice(), &sum.to_le_bytes(), &second].concat();
        assert_eq!(MetaTable::decode(&stored).as_ref(), Ok(&small), "format 2 is read");
        let sum = crc32fast::hash(&[third.as_slice(), &[3]].concat());
        let stored = [[3].as_slice(), &sum.to_le_bytes(), &third].concat();
        assert_eq!(MetaTable::decode(&stored).as_ref(), Ok(&small), "format 3 is read");
        assert_eq!(encode_command(&roster()).unwrap(), b"\x01\x0c\x00\x01\x03\x01h\x01g\x01p");
        assert_eq!(encode_command(&meet()).unwrap(), b"\x01\x0c\x01\x03\x01h\x01g\x01p\x05");
    }

    #[test]
    fn commands_and_states_survive_the_round_trip() {
        for command in [record(), member(), init(), place(), roster(), meet()] {
            let bytes = encode_command(&command).unwrap();
            assert_eq!(decode_command(&bytes).unwrap(), command);
        }
        let bytes = table().encode().unwrap();
        let read = MetaTable::decode(&bytes).unwrap();
        assert_eq!(read, table());
        assert_eq!(read.encode().unwrap(), bytes);
    }

    #[test]
    fn every_flipped_bit_of_a_state_is_found() {
        let good = table().encode().unwrap();
        for bit in 0..good.len() * 8 {
            let mut bad = good.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            assert!(MetaTable::decode(&bad).is_err(), "bit {bit}");
        }
    }

    #[test]
    fn a_newer_state_is_told_from_a_damaged_version_byte() {
        let first = b"\0\0\0\0";
        let damaged = [[5].as_slice(), &crc32fast::hash(first).to_le_bytes(), first].concat();
        assert_eq!(MetaTable::decode(&damaged), Err(MetaDecodeError::Version { found: 5 }));
        let newer = [[5].as_slice(), &crc32fast::hash(b"later\x05").to_le_bytes(), b"later"].concat();
        let said = MetaTable::decode(&newer).unwrap_err().to_string();
        assert!(said.contains("state has format 5") && said.ends_with("run the newer version"), "{said}");
    }

    #[test]
    fn what_is_cut_short_or_too_long_or_newer_is_refused() {
        let mut bytes = encode_command(&member()).unwrap();
        assert!(matches!(decode_command(&[]), Err(MetaDecodeError::Short { .. })));
        assert!(decode_command(&bytes[..bytes.len() - 1]).is_err());
        bytes.push(0);
        assert!(decode_command(&bytes).is_err());
        bytes[0] = 2;
        let newer = decode_command(&bytes).unwrap_err();
        assert!(newer.to_string().contains("format 2"), "{newer}");
    }
}

//! What a client says about itself: host, pid, label. Shown to operators, never interpreted.

use alloc::{collections::BTreeMap, string::String, sync::Arc, vec::Vec};
use core::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer, ser::SerializeMap};

/// Most entries of one metadata map.
pub const MAX_ENTRIES: usize = 32;
/// Most bytes of all keys and values together.
pub const MAX_BYTES: usize = 4_096;

/// A small map of texts, attached to a session or to an acquire. Packed, since every session and every place in a queue has
/// one: with a map in each they would be the largest part of the table.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Metadata {
    /// Keys and values in turn and in key order, each after its length in four bytes; `None` for no entries.
    packed: Option<Arc<[u8]>>,
}

/// Why a map is too large to be metadata.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
pub enum MetadataError {
    /// More than [`MAX_ENTRIES`].
    #[error("metadata has {entries} entries; at most 32 are kept")]
    TooMany {
        /// How many there are.
        entries: usize,
    },
    /// More than [`MAX_BYTES`].
    #[error("metadata has {bytes} bytes; at most 4096 are kept")]
    TooLarge {
        /// Bytes of all keys and values.
        bytes: usize,
    },
}

impl Metadata {
    /// Checks the bounds.
    pub fn new(map: BTreeMap<String, String>) -> Result<Self, MetadataError> {
        if map.len() > MAX_ENTRIES {
            return Err(MetadataError::TooMany { entries: map.len() });
        }
        let bytes = map.iter().map(|(k, v)| k.len() + v.len()).sum();
        if bytes > MAX_BYTES {
            return Err(MetadataError::TooLarge { bytes });
        }
        Ok(Self::pack(&map))
    }

    fn pack(map: &BTreeMap<String, String>) -> Self {
        let mut packed = Vec::new();
        for text in map.iter().flat_map(|(key, value)| [key, value]) {
            // What does not fit into four bytes of length does not fit into a log entry either.
            packed.extend_from_slice(&u32::try_from(text.len()).unwrap_or(u32::MAX).to_le_bytes());
            packed.extend_from_slice(text.as_bytes());
        }
        Self { packed: (!packed.is_empty()).then(|| packed.into()) }
    }

    /// The entries in key order.
    pub fn entries(&self) -> impl Iterator<Item = (&str, &str)> {
        let mut rest = self.packed.as_deref().unwrap_or_default();
        core::iter::from_fn(move || Some((next_text(&mut rest)?, next_text(&mut rest)?)))
    }
}

/// Takes one packed text off the front.
fn next_text<'p>(packed: &mut &'p [u8]) -> Option<&'p str> {
    let (length, rest) = packed.split_first_chunk::<4>()?;
    let (text, rest) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
    *packed = rest;
    core::str::from_utf8(text).ok()
}

impl fmt::Debug for Metadata {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.entries()).finish()
    }
}

impl Serialize for Metadata {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.entries().count()))?;
        for (key, value) in self.entries() {
            map.serialize_entry(key, value)?;
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for Metadata {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        BTreeMap::deserialize(deserializer).map(|map| Self::pack(&map))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_come_back_in_key_order() {
        let map = |entries: &[(&str, &str)]| -> BTreeMap<String, String> {
            entries.iter().map(|(key, value)| ((*key).into(), (*value).into())).collect()
        };
        for entries in [
            &[][..],
            &[("", "")],
            &[("host", "a1"), ("pid", "7"), ("user", "")],
            &[("\u{0}", "\u{1f980}"), ("b", "\n"), ("c", "3")],
        ] {
            let metadata = Metadata::new(map(entries)).unwrap();
            assert_eq!(metadata.entries().collect::<Vec<_>>(), entries);
            let bytes = postcard::to_allocvec(&metadata).unwrap();
            assert_eq!(bytes, postcard::to_allocvec(&map(entries)).unwrap());
            assert_eq!(postcard::from_bytes::<Metadata>(&bytes).unwrap(), metadata);
        }
        assert_eq!(Metadata::default(), Metadata::new(map(&[])).unwrap());
    }

    #[test]
    fn bounds_are_kept() {
        let many = (0..33).map(|n: u32| (alloc::format!("{n}"), String::new())).collect();
        assert_eq!(Metadata::new(many), Err(MetadataError::TooMany { entries: 33 }));
        let large = BTreeMap::from([("k".into(), "v".repeat(4_096))]);
        assert_eq!(Metadata::new(large), Err(MetadataError::TooLarge { bytes: 4_097 }));
        let most = BTreeMap::from([("k".into(), "v".repeat(4_095))]);
        assert!(Metadata::new(most).is_ok());
    }
}

//! What a client says about itself: host, pid, label. Shown to operators, never interpreted.

use alloc::{collections::BTreeMap, string::String};

use serde::{Deserialize, Serialize};

/// Most entries of one metadata map.
pub const MAX_ENTRIES: usize = 32;
/// Most bytes of all keys and values together.
pub const MAX_BYTES: usize = 4_096;

/// A small map of texts, attached to a session or to an acquire.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Metadata(BTreeMap<String, String>);

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
        Ok(Self(map))
    }

    /// The entries in key order.
    pub fn entries(&self) -> &BTreeMap<String, String> {
        &self.0
    }
}

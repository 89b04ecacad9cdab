//! Whose log a folder holds: the cluster and the member, written into the file when it is made.
//!
//! A folder that comes back under another member's id would bring back votes that this member never cast.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

use crate::raft::types::MemberId;

/// Longest cluster id, in bytes; it is also a folder name in snapshot stores.
const MAX_CLUSTER_ID_LEN: usize = 64;

/// Name of a cluster: 1–64 of `a-z`, `0-9` and `-`, beginning and ending with a letter or digit.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ClusterId(String);

/// The text is no cluster id.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{text:?} is no cluster id: use 1 to 64 of a-z, 0-9 and -, beginning and ending with a letter or a digit"
)]
pub struct InvalidClusterId {
    /// What was given.
    pub text: String,
}

impl ClusterId {
    /// The id as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for ClusterId {
    type Err = InvalidClusterId;

    fn from_str(text: &str) -> Result<ClusterId, InvalidClusterId> {
        let word = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
        let ends_well = text.starts_with(word) && text.ends_with(word);
        if ends_well && text.len() <= MAX_CLUSTER_ID_LEN && text.chars().all(|c| word(c) || c == '-') {
            Ok(ClusterId(text.to_owned()))
        } else {
            Err(InvalidClusterId { text: text.to_owned() })
        }
    }
}

impl TryFrom<String> for ClusterId {
    type Error = InvalidClusterId;

    fn try_from(text: String) -> Result<ClusterId, InvalidClusterId> {
        text.parse()
    }
}

impl From<ClusterId> for String {
    fn from(id: ClusterId) -> String {
        id.0
    }
}

impl fmt::Display for ClusterId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The one member of the one cluster that a folder belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogIdentity {
    /// The cluster.
    pub cluster: ClusterId,
    /// The member.
    pub member: MemberId,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_path_safe_ids_pass() {
        for good in ["a", "prod-1", "0", &"x".repeat(64)] {
            assert!(good.parse::<ClusterId>().is_ok(), "{good}");
        }
        for bad in ["", "-a", "a-", "A", "a/b", "..", "a b", &"x".repeat(65)] {
            assert!(bad.parse::<ClusterId>().is_err(), "{bad}");
        }
    }
}

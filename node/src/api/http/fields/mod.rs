//! The typed fields of requests. A value of one of these types has been checked: every bound of the API stands here
//! once, with the words that clients read when they break it.
//!
//! Each type reads JSON and query parameters alike, and describes itself in the OpenAPI document.

mod names;
mod numbers;
mod snapshots;
mod texts;

pub(crate) use names::{ClaimName, ElectionName, LockName, NamePrefix};
pub(crate) use numbers::{
    GroupNumber, LookMs, PageLimit, PartitionCount, PartitionNumber, RevisionNumber, TokenNumber, TtlMs,
    WaitMs, Weight,
};
pub(crate) use snapshots::{SetText, SnapshotText};
pub(crate) use texts::{CandidateValue, Cursor, MetadataMap, Reason, RequestText, SessionHex};

use std::{fmt, marker::PhantomData};

use serde::{
    Deserialize, Deserializer,
    de::{Error, Visitor},
};

/// Reads an optional field that, where it stands, has a value: `null` is refused like any other wrong type.
pub(crate) fn present<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    T::deserialize(deserializer).map(Some)
}

/// Reads a text and checks it.
fn text<'de, D, T, E>(
    deserializer: D,
    expected: &'static str,
    check: fn(&str) -> Result<T, E>,
) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    E: fmt::Display,
{
    struct Text<T, E> {
        expected: &'static str,
        check: fn(&str) -> Result<T, E>,
        of: PhantomData<T>,
    }
    impl<T, E: fmt::Display> Visitor<'_> for Text<T, E> {
        type Value = T;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str(self.expected)
        }

        fn visit_str<F: Error>(self, text: &str) -> Result<T, F> {
            (self.check)(text).map_err(F::custom)
        }
    }
    deserializer.deserialize_str(Text { expected, check, of: PhantomData })
}

#[cfg(test)]
mod tests;

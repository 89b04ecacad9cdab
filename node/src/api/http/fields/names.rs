//! Names of locks, elections and claims, and the prefixes that lists and watches ask for.

use holdfast_locktable::name::{MAX_NAME_BYTES, Name, NameError};
use serde::{Deserialize, Deserializer};
use utoipa::{
    PartialSchema, ToSchema,
    openapi::{ObjectBuilder, RefOr, Schema, schema::Type},
};

use super::text;

/// No control characters: U+0000–001F and U+007F–009F.
const NO_CONTROL: &str = r"^[^\u0000-\u001f\u007f-\u009f]*$";

/// The name of a lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LockName(pub(crate) Name);

/// The name of an election.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ElectionName(pub(crate) Name);

/// The name of a claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ClaimName(pub(crate) Name);

/// What names have to begin with; empty for all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct NamePrefix(pub(crate) String);

const EXPECTED: &str = "a name of 1 to 2047 bytes";

impl<'de> Deserialize<'de> for LockName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        text(deserializer, EXPECTED, Name::lock).map(Self)
    }
}

impl<'de> Deserialize<'de> for ElectionName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        text(deserializer, EXPECTED, Name::election).map(Self)
    }
}

impl<'de> Deserialize<'de> for ClaimName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        text(deserializer, EXPECTED, Name::claim).map(Self)
    }
}

impl<'de> Deserialize<'de> for NamePrefix {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        text(deserializer, "a prefix of 0 to 2047 bytes", prefix).map(Self)
    }
}

/// A prefix obeys the rule of names, but may be empty.
fn prefix(text: &str) -> Result<String, NameError> {
    if !text.is_empty() {
        Name::lock(text)?;
    }
    Ok(text.to_owned())
}

fn schema(description: &'static str, min_length: usize) -> RefOr<Schema> {
    ObjectBuilder::new()
        .schema_type(Type::String)
        .min_length(Some(min_length))
        .max_length(Some(MAX_NAME_BYTES))
        .pattern(Some(NO_CONTROL))
        .description(Some(description))
        .into()
}

impl PartialSchema for LockName {
    fn schema() -> RefOr<Schema> {
        schema("The name of a lock: 1 to 2047 bytes of UTF-8 without control characters.", 1)
    }
}

impl ToSchema for LockName {}

impl PartialSchema for ElectionName {
    fn schema() -> RefOr<Schema> {
        schema("The name of an election: 1 to 2047 bytes of UTF-8 without control characters.", 1)
    }
}

impl ToSchema for ElectionName {}

impl PartialSchema for ClaimName {
    fn schema() -> RefOr<Schema> {
        schema("The name of a claim: 1 to 2047 bytes of UTF-8 without control characters.", 1)
    }
}

impl ToSchema for ClaimName {}

impl PartialSchema for NamePrefix {
    fn schema() -> RefOr<Schema> {
        schema("What names have to begin with: up to 2047 bytes of UTF-8 without control characters.", 0)
    }
}

impl ToSchema for NamePrefix {}

//! Ids of snapshots and of snapshot sets.

use serde::{Deserialize, Deserializer};
use utoipa::{
    PartialSchema, ToSchema,
    openapi::{ObjectBuilder, RefOr, Schema, schema::Type},
};

use super::text;
use crate::snapshot::{manifest::SnapshotId, set::SetId};

/// Longest id in bytes.
const MAX_ID_BYTES: usize = 64;

/// The id of a snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SnapshotText(pub(crate) SnapshotId);

/// The id of a snapshot set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SetText(pub(crate) SetId);

impl<'de> Deserialize<'de> for SnapshotText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        text(deserializer, "the id of a snapshot", |text| text.parse().map(Self))
    }
}

impl<'de> Deserialize<'de> for SetText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        text(deserializer, "the id of a snapshot set", |text| text.parse().map(Self))
    }
}

fn schema(description: &'static str, pattern: &'static str) -> RefOr<Schema> {
    ObjectBuilder::new()
        .schema_type(Type::String)
        .min_length(Some(3))
        .max_length(Some(MAX_ID_BYTES))
        .pattern(Some(pattern))
        .description(Some(description))
        .into()
}

impl PartialSchema for SnapshotText {
    fn schema() -> RefOr<Schema> {
        schema("The id of a snapshot, as the list shows it.", "^[0-9]+-[a-z0-9-]+$")
    }
}

impl ToSchema for SnapshotText {}

impl PartialSchema for SetText {
    fn schema() -> RefOr<Schema> {
        schema("The id of a snapshot set, as the list shows it.", "^set-[a-z0-9-]+$")
    }
}

impl ToSchema for SetText {}

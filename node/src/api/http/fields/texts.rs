//! Texts with a form or a bound of their own: session ids, request ids, values, reasons, cursors, metadata.

use std::{collections::BTreeMap, fmt, sync::Arc};

use bytes::Bytes;
use holdfast_locktable::{
    command::RequestId,
    ids::SessionId,
    metadata::{self, Metadata},
};
use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{Error, MapAccess, Visitor},
};
use utoipa::{
    PartialSchema, ToSchema,
    openapi::{ObjectBuilder, RefOr, Schema, schema::Type},
};

use super::text;

/// Longest request id in bytes.
const MAX_REQUEST_ID_BYTES: usize = 256;
/// Longest value of a candidate in bytes.
const MAX_VALUE_BYTES: usize = 64 * 1_024;
/// Longest reason in bytes.
const MAX_REASON_BYTES: usize = 1_024;
/// Longest cursor in bytes; far more than any that a member hands out.
const MAX_CURSOR_BYTES: usize = 8_192;

/// A session's id as it travels: lower-case hex.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SessionHex(pub(crate) SessionId);

/// A request id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RequestText(Arc<str>);

/// The value of a candidate.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct CandidateValue(pub(crate) Bytes);

/// Why an operator acts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Reason(pub(crate) String);

/// Where to go on; an opaque text that a member handed out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Cursor(pub(crate) String);

/// What a client says about itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub(crate) struct MetadataMap(pub(crate) Metadata);

impl Serialize for SessionHex {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

const SESSION: &str = "a session id: 1 to 16 digits of lower-case hex, as the answer that opened it shows it";

impl<'de> Deserialize<'de> for SessionHex {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        text(deserializer, SESSION, |text| {
            SessionId::parse(text).map(Self).ok_or_else(|| format!("expected {SESSION}"))
        })
    }
}

impl RequestText {
    /// The id of a request: the client's, or one that nobody else uses.
    pub(crate) fn or_unique(text: Option<Self>) -> RequestId {
        RequestId::Text(
            text.map_or_else(|| Arc::from(format!("{:032x}", rand::random::<u128>())), |text| text.0),
        )
    }

    pub(crate) fn request(self) -> RequestId {
        RequestId::Text(self.0)
    }
}

impl<'de> Deserialize<'de> for RequestText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        text(deserializer, "a text of 1 to 256 bytes", |text| {
            bounded(text, 1, MAX_REQUEST_ID_BYTES).map(|text| Self(Arc::from(text)))
        })
    }
}

impl<'de> Deserialize<'de> for CandidateValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        text(deserializer, "a text of at most 65536 bytes", |text| {
            bounded(text, 0, MAX_VALUE_BYTES).map(|text| Self(Bytes::copy_from_slice(text.as_bytes())))
        })
    }
}

impl<'de> Deserialize<'de> for Reason {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        text(deserializer, "a text of 1 to 1024 bytes", |text| {
            if text.trim().is_empty() {
                return Err("the reason is empty; say why in 1 to 1024 bytes".to_owned());
            }
            bounded(text, 1, MAX_REASON_BYTES).map(|text| Self(text.to_owned()))
        })
    }
}

impl<'de> Deserialize<'de> for Cursor {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        text(deserializer, "a cursor", Self::parse)
    }
}

impl Cursor {
    /// Checks a cursor that did not come in a body or query.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        bounded(text, 1, MAX_CURSOR_BYTES).map(|text| Self(text.to_owned()))
    }
}

fn bounded(text: &str, min: usize, max: usize) -> Result<&str, String> {
    if (min..=max).contains(&text.len()) {
        return Ok(text);
    }
    Err(format!("has {} bytes; {min} to {max} are allowed", text.len()))
}

impl<'de> Deserialize<'de> for MetadataMap {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Entries;
        impl<'de> Visitor<'de> for Entries {
            type Value = MetadataMap;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object of texts, at most 32 entries and 4096 bytes")
            }

            fn visit_map<M: MapAccess<'de>>(self, mut entries: M) -> Result<MetadataMap, M::Error> {
                let mut map: BTreeMap<String, String> = BTreeMap::new();
                while let Some((key, value)) = entries.next_entry::<String, String>()? {
                    if map.contains_key(&key) {
                        return Err(M::Error::custom(format!("has the key {key:?} twice")));
                    }
                    map.insert(key, value);
                }
                Metadata::new(map).map(MetadataMap).map_err(M::Error::custom)
            }
        }
        deserializer.deserialize_map(Entries)
    }
}

fn schema(description: &'static str, min_length: usize, max_length: usize) -> ObjectBuilder {
    ObjectBuilder::new()
        .schema_type(Type::String)
        .min_length(Some(min_length))
        .max_length(Some(max_length))
        .description(Some(description))
}

impl PartialSchema for SessionHex {
    fn schema() -> RefOr<Schema> {
        schema("The id of a session: lower-case hex without padding.", 1, 16)
            .pattern(Some("^[1-9a-f][0-9a-f]{0,15}$"))
            .into()
    }
}

impl ToSchema for SessionHex {}

impl PartialSchema for RequestText {
    fn schema() -> RefOr<Schema> {
        schema("Makes a repeat of the request harmless: 1 to 256 bytes.", 1, MAX_REQUEST_ID_BYTES).into()
    }
}

impl ToSchema for RequestText {}

impl PartialSchema for CandidateValue {
    fn schema() -> RefOr<Schema> {
        schema("What a candidate says, shown to observers: at most 64 KiB.", 0, MAX_VALUE_BYTES).into()
    }
}

impl ToSchema for CandidateValue {}

impl PartialSchema for Reason {
    fn schema() -> RefOr<Schema> {
        schema("Why, for the audit log: 1 to 1024 bytes.", 1, MAX_REASON_BYTES).into()
    }
}

impl ToSchema for Reason {}

impl PartialSchema for Cursor {
    fn schema() -> RefOr<Schema> {
        schema("Where to go on: an opaque text from an earlier answer.", 1, MAX_CURSOR_BYTES).into()
    }
}

impl ToSchema for Cursor {}

impl PartialSchema for MetadataMap {
    fn schema() -> RefOr<Schema> {
        ObjectBuilder::new()
            .schema_type(Type::Object)
            .additional_properties(Some(ObjectBuilder::new().schema_type(Type::String)))
            .max_properties(Some(metadata::MAX_ENTRIES))
            .description(Some(
                "What a client says about itself; shown to operators, never interpreted. At most 4096 bytes.",
            ))
            .into()
    }
}

impl ToSchema for MetadataMap {}

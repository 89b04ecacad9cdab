//! Values of elections as JSON shows them.

use base64::{Engine, engine::general_purpose::STANDARD};
use bytes::Bytes;
use serde::Serialize;
use utoipa::ToSchema;

/// A value: as `value` where it is UTF-8, else as `value_base64` (other surfaces take any bytes).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub(crate) struct ValueJson {
    /// The value, where it is UTF-8.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    value: Option<String>,
    /// The value in Base64, where it is not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    value_base64: Option<String>,
}

impl From<Bytes> for ValueJson {
    fn from(bytes: Bytes) -> Self {
        match std::str::from_utf8(&bytes) {
            Ok(text) => Self { value: Some(text.to_owned()), value_base64: None },
            Err(_) => Self { value: None, value_base64: Some(STANDARD.encode(&bytes)) },
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_that_are_no_text_are_shown_in_base64() {
        let shown =
            |bytes: &'static [u8]| serde_json::to_value(ValueJson::from(Bytes::from_static(bytes))).unwrap();
        assert_eq!(shown("é".as_bytes()), json!({ "value": "é" }));
        assert_eq!(shown(b""), json!({ "value": "" }));
        assert_eq!(shown(b"\xff\x00"), json!({ "value_base64": "/wA=" }));
    }
}

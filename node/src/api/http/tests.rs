//! What the tests of all resources share: an answer is compared with its golden form and with the published document.

use serde::Serialize;
use serde_json::Value;

use super::openapi::tests::schema_of_response;

/// Asserts that an answer has exactly this form, and that the document describes it under this operation and status.
pub(super) fn assert_answer(operation: (&str, &str), status: u16, answer: impl Serialize, expected: &Value) {
    let shown = serde_json::to_value(answer).unwrap();
    assert_eq!(&shown, expected, "{operation:?}");
    let schema = schema_of_response(operation, status, "application/json");
    let faults: Vec<String> = schema.iter_errors(&shown).map(|fault| fault.to_string()).collect();
    assert!(faults.is_empty(), "{operation:?} {status}: {shown} is not as documented: {faults:?}");
}

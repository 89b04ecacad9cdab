//! The published OpenAPI document, and what answers owe it.

use std::sync::LazyLock;

use serde_json::{Value, json};

use super::Answer;

static PROBLEM: LazyLock<jsonschema::Validator> =
    LazyLock::new(|| Document::published().schema("#/components/schemas/Problem"));

/// Asserts that a document has the published form of problems.
pub(super) fn assert_is_problem(about: &str, problem: &Value) {
    assert!(PROBLEM.is_valid(problem), "{about}: {problem} is not as documented");
}

/// Asserts that an operation may answer so.
pub(super) fn assert_documented(about: &str, method: &str, path: &str, answer: &Answer) {
    let document = Document::published();
    let path = path.split('?').next().unwrap();
    let operation = &document.json()["paths"][path][method.to_ascii_lowercase()]["responses"];
    let response = operation.get(answer.status.to_string());
    let Some(response) = response else { panic!("{about}: {} is not documented", answer.status) };
    let Some(content) = response.get("content").and_then(Value::as_object) else {
        // A shared error, or no content at all.
        assert_eq!(response.get("$ref").is_none(), answer.text.is_empty(), "{about}: {}", answer.text);
        return if answer.text.is_empty() {
        } else {
            assert_is_problem(about, &answer.json())
        };
    };
    let media = answer.header("content-type").split(';').next().unwrap();
    assert!(content.contains_key(media), "{about}: {media} is not documented");
    if media.ends_with("json") {
        let pointer = |token: &str| token.replace('/', "~1");
        let (path, method) = (pointer(path), method.to_ascii_lowercase());
        let status = answer.status;
        let place = format!("#/paths/{path}/{method}/responses/{status}/content/{}/schema", pointer(media));
        let shown = answer.json();
        let faults: Vec<String> =
            document.schema(&place).iter_errors(&shown).map(|fault| fault.to_string()).collect();
        assert!(faults.is_empty(), "{about}: {shown} is not as documented: {faults:?}");
    }
}

/// The published OpenAPI document.
pub(crate) struct Document(Value);

impl Document {
    pub(crate) fn published() -> Self {
        let text = include_str!("../../openapi.json");
        Self(serde_json::from_str(text).unwrap())
    }

    pub(crate) fn json(&self) -> &Value {
        &self.0
    }

    /// A validator of what the document has at a place.
    pub(crate) fn schema(&self, reference: &str) -> jsonschema::Validator {
        assert!(self.0.pointer(&reference[1..]).is_some(), "the document lacks {reference}");
        let mut document = self.0.clone();
        document["$ref"] = json!(reference);
        jsonschema::options().with_draft(jsonschema::Draft::Draft202012).build(&document).unwrap()
    }

    /// A validator of the body that a POST takes.
    pub(crate) fn body(&self, path: &str) -> jsonschema::Validator {
        let path = path.replace('/', "~1");
        self.schema(&format!("#/paths/{path}/post/requestBody/content/application~1json/schema"))
    }

    /// Whether an operation may answer with a status.
    pub(crate) fn has_status(&self, method: &str, path: &str, status: u16) -> bool {
        let method = method.to_ascii_lowercase();
        self.0["paths"][path][method]["responses"].get(status.to_string()).is_some()
    }
}

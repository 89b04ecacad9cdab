//! The published document is valid OpenAPI, equal to the code, complete, and true.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::document;
use crate::api::http::{probes::OPENAPI, routes::table};

/// The official schema of OpenAPI 3.1 documents (published by the OpenAPI Initiative under the Apache licence 2.0).
const META_SCHEMA: &str = include_str!("../../../../tests/openapi-3.1-schema.json");

fn published() -> Value {
    serde_json::from_str(OPENAPI).unwrap()
}

/// A validator of what one operation answers.
pub(crate) fn schema_of_response(
    (method, path): (&str, &str),
    status: u16,
    media: &str,
) -> jsonschema::Validator {
    let pointer = |token: &str| token.replace('~', "~0").replace('/', "~1");
    let response = format!("#/paths/{}/{method}/responses/{status}", pointer(path));
    let shared = published().pointer(&format!("{}/$ref", &response[1..])).cloned();
    let response = shared.as_ref().and_then(Value::as_str).unwrap_or(&response);
    schema_at(&format!("{response}/content/{}/schema", pointer(media)))
}

fn schema_at(reference: &str) -> jsonschema::Validator {
    let mut document = published();
    assert!(document.pointer(&reference[1..]).is_some(), "the document lacks {reference}");
    document["$ref"] = json!(reference);
    jsonschema::options().with_draft(jsonschema::Draft::Draft202012).build(&document).unwrap()
}

#[test]
fn the_checked_in_document_is_what_the_code_says() {
    let said = document().unwrap();
    if std::env::var_os("HOLDFAST_UPDATE_OPENAPI").is_some() {
        std::fs::write(concat!(env!("CARGO_MANIFEST_DIR"), "/openapi.json"), &said).unwrap();
        return;
    }
    assert!(
        said == OPENAPI,
        "node/openapi.json is old: run the tests of holdfast-node once with HOLDFAST_UPDATE_OPENAPI=1"
    );
}

#[test]
fn the_document_is_valid_openapi() {
    let meta: Value = serde_json::from_str(META_SCHEMA).unwrap();
    let validator = jsonschema::options().with_draft(jsonschema::Draft::Draft202012).build(&meta).unwrap();
    let document = published();
    let faults: Vec<String> =
        validator.iter_errors(&document).map(|fault| format!("{}: {fault}", fault.instance_path())).collect();
    assert!(faults.is_empty(), "{faults:#?}");
    assert!(!validator.is_valid(&json!({ "openapi": "3.1.0" })), "the validator refuses what is none");
    // The official schema leaves the schemas inside to JSON Schema.
    for (name, schema) in document["components"]["schemas"].as_object().unwrap() {
        assert!(jsonschema::draft202012::meta::is_valid(schema), "{name}");
    }
}

#[test]
fn every_reference_in_the_document_leads_somewhere() {
    fn walk(value: &Value, found: &mut Vec<String>) {
        match value {
            Value::Object(map) => {
                if let Some(Value::String(reference)) = map.get("$ref") {
                    found.push(reference.clone());
                }
                map.values().for_each(|value| walk(value, found));
            }
            Value::Array(list) => list.iter().for_each(|value| walk(value, found)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    let document = published();
    let mut references = Vec::new();
    walk(&document, &mut references);
    assert!(references.len() > 50);
    for reference in references {
        assert!(document.pointer(&reference[1..]).is_some(), "{reference}");
    }
}

#[test]
fn the_document_has_every_route_and_no_other() {
    let routes: BTreeSet<(String, String)> = table()
        .iter()
        .flat_map(|path| path.published().map(|(pattern, method)| (pattern.to_owned(), method)))
        .collect();
    let document = published();
    let documented: BTreeSet<(String, String)> = document["paths"]
        .as_object()
        .unwrap()
        .iter()
        .flat_map(|(path, item)| {
            item.as_object().unwrap().keys().map(move |method| (path.clone(), method.clone()))
        })
        .collect();
    assert_eq!(documented, routes);
}

#[test]
fn operation_ids_are_distinct_and_errors_are_problems() {
    let document = published();
    let mut ids = BTreeSet::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let id = operation["operationId"].as_str().unwrap();
            assert!(ids.insert(id.to_owned()), "{method} {path}: {id} twice");
            assert!(operation["summary"].is_string(), "{method} {path} has no summary");
            for (status, response) in operation["responses"].as_object().unwrap() {
                if status.starts_with(['4', '5']) {
                    let shared =
                        response["$ref"].as_str().map(|reference| document.pointer(&reference[1..]).unwrap());
                    let response = shared.unwrap_or(response);
                    let schema = &response["content"]["application/problem+json"]["schema"];
                    assert_eq!(schema["$ref"], "#/components/schemas/Problem", "{method} {path} {status}");
                }
            }
        }
    }
}

//! How a request becomes typed values: the body of a POST, the query of a GET. Refuses before anything is asked of the
//! endpoint, always in the same order: length, content type, query, JSON.
//!
//! Does not know any field; those are in [`super::fields`].

mod body;
mod query;

pub(crate) use body::JsonBody;
pub(crate) use query::QueryArgs;

use std::fmt;

use super::problem::Problem;

/// A request that takes nothing.
#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct NoArgs {}

/// The problem of a value that does not fit, with the field it stands in.
fn misfit(what: &str, error: serde_path_to_error::Error<impl fmt::Display>) -> Problem {
    let field = error.path().to_string();
    let why = error.inner().to_string();
    // serde_json adds a position to what is wrong with a value; the field says more.
    let why = why.split_once(" at line ").map_or(why.as_str(), |(why, _)| why);
    if field == "." {
        Problem::invalid(format!("{what}: {why}"))
    } else {
        Problem::invalid(format!("`{field}`: {why}"))
    }
}

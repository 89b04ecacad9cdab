//! Makes the OpenAPI document from the handlers and their bodies. `node/openapi.json` is this document, checked in; a
//! test keeps the two equal.

use utoipa::{
    Modify, OpenApi,
    openapi::{
        ContentBuilder, Ref, RefOr, ResponseBuilder,
        path::{Operation, PathItem},
    },
};

use super::{
    cluster, elections, locks, probes,
    problem::{PROBLEM_JSON, Problem},
    sessions,
};

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Holdfast",
        description = "Named locks and leader elections with fencing tokens.\n\n\
            Times are milliseconds, sizes bytes, tokens integers below 2^53. Every error is a `Problem` \
            (`application/problem+json`) with a stable `code`. Unknown fields and unknown or repeated query parameters \
            are errors. HEAD works wherever GET does."
    ),
    tags(
        (name = "sessions", description = "A session is a client's presence; its locks live as long as it does."),
        (name = "locks", description = "Exclusive locks, granted in order of arrival."),
        (name = "elections", description = "Leader elections; an election is a queue of its own, apart from the lock of \
            the same name."),
        (name = "cluster", description = "What operators look at and do."),
        (name = "probes", description = "For machines that look after the member."),
    ),
    paths(
        sessions::open, sessions::keepalive, sessions::list, sessions::close, sessions::end,
        locks::acquire::acquire, locks::acquire::cancel, locks::release::release, locks::release::force_release,
        locks::show::show, locks::watch::watch,
        elections::campaign::campaign, elections::campaign::proclaim, elections::campaign::resign,
        elections::show::show, elections::show::observe,
        cluster::status::status, cluster::status::members, cluster::status::groups, cluster::partitions::show,
        cluster::snapshots::list, cluster::snapshots::take, cluster::audit::show,
        probes::livez, probes::readyz, probes::metrics, probes::openapi,
    ),
    components(schemas(Problem, locks::watch::LockEventJson, elections::show::VacantJson)),
    modifiers(&Problems)
)]
struct Document;

/// The document as it is checked in: JSON with two spaces of indentation and a line break at the end.
///
/// # Errors
/// The document does not become JSON, which a test would have found.
pub fn document() -> Result<String, serde_json::Error> {
    Document::openapi().to_pretty_json().map(|json| json + "\n")
}

/// Adds the answers that operations have in common, and the form of every error.
struct Problems;

impl Modify for Problems {
    fn modify(&self, document: &mut utoipa::openapi::OpenApi) {
        document.info.version = "1".into();
        document.info.license = None;
        document.info.contact = None;
        for (path, item) in &mut document.paths.paths {
            for (operation, posts) in operations(item) {
                complete(operation, path.starts_with("/v1/"), posts);
            }
        }
    }
}

fn operations(item: &mut PathItem) -> impl Iterator<Item = (&mut Operation, bool)> {
    let PathItem { get, post, delete, .. } = item;
    let others = get.iter_mut().chain(delete.iter_mut()).map(|operation| (operation, false));
    others.chain(post.iter_mut().map(|operation| (operation, true)))
}

fn complete(operation: &mut Operation, asks_endpoint: bool, posts: bool) {
    let mut common = vec![("500", "`internal`: a defect or a dying disk.")];
    if asks_endpoint {
        common.push(("400", "`invalid_argument`: the request breaks a published bound or form."));
        common.push((
            "503",
            "`no_leader`, `overloaded`: nothing was changed, try again. `unknown_outcome`: repeat it with the same \
             request id.",
        ));
    }
    if posts {
        common.push(("413", "`payload_too_large`: the body is longer than 1 MiB."));
        common.push(("415", "`unsupported_media_type`: the body is not JSON."));
    }
    for (status, description) in common {
        let response = ResponseBuilder::new().description(description).build();
        operation.responses.responses.entry(status.to_owned()).or_insert(RefOr::T(response));
    }
    for (status, response) in &mut operation.responses.responses {
        if let (true, RefOr::T(response)) = (status.starts_with(['4', '5']), response) {
            let problem = ContentBuilder::new().schema(Some(Ref::from_schema_name("Problem"))).build();
            response.content.insert(PROBLEM_JSON.to_owned(), problem.into());
        }
    }
}

#[cfg(test)]
mod tests;

//! Makes the OpenAPI document from the handlers and their bodies. `node/openapi.json` is this document, checked in; a
//! test keeps the two equal.

use utoipa::{
    Modify, OpenApi,
    openapi::{
        ContentBuilder, Ref, RefOr, Response, ResponseBuilder,
        path::{Operation, PathItem},
    },
};

use super::{
    claims, cluster, elections,
    fields::{
        ClaimName, Cursor, ElectionName, LockName, LookMs, NamePrefix, PageLimit, RevisionNumber, SessionHex,
    },
    locks, probes,
    problem::{PROBLEM_JSON, ProblemJson},
    sessions,
};

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Holdfast",
        description = "Named locks, leader elections and shared partitions with fencing tokens.\n\n\
            Times are milliseconds, sizes bytes, tokens integers below 2^53. Every error is a `Problem` \
            (`application/problem+json`) with a stable `code`. Unknown fields and unknown or repeated query parameters \
            are errors. HEAD works wherever GET does."
    ),
    tags(
        (name = "sessions", description = "A session is a client's presence; its locks live as long as it does."),
        (name = "locks", description = "Exclusive locks, granted in order of arrival."),
        (name = "elections", description = "Leader elections; an election is a queue of its own, apart from the lock of \
            the same name."),
        (name = "claims", description = "Partitions that live sessions share: sticky, balanced, each with a fencing token of \
            its own."),
        (name = "cluster", description = "What operators look at and do."),
        (name = "probes", description = "For machines that look after the member."),
    ),
    paths(
        sessions::open, sessions::keepalive, sessions::list, sessions::close, sessions::end,
        locks::acquire::acquire, locks::acquire::cancel, locks::release::release, locks::release::force_release,
        locks::show::show, locks::watch::watch,
        elections::campaign::campaign, elections::campaign::proclaim, elections::campaign::resign,
        elections::show::show, elections::show::observe,
        claims::part::join, claims::part::leave, claims::part::drain, claims::part::ack, claims::show::show,
        cluster::status::status, cluster::status::members, cluster::status::groups, cluster::partitions::show,
        cluster::changes::change, cluster::changes::show, cluster::changes::stop,
        cluster::planner::show, cluster::planner::edit,
        cluster::placement::show, cluster::placement::add, cluster::placement::transfer, cluster::placement::drain,
        cluster::placement::undrain, cluster::members::change, cluster::members::show, cluster::members::cancel,
        cluster::snapshots::list, cluster::snapshots::take, cluster::snapshots::look::show,
        cluster::snapshots::look::verify, cluster::snapshots::look::delete, cluster::snapshots::sets::list,
        cluster::snapshots::sets::take, cluster::snapshots::sets::verify, cluster::audit::show,
        probes::livez, probes::readyz, probes::metrics, probes::openapi,
    ),
    components(schemas(
        ProblemJson, locks::watch::LockEventJson, elections::show::VacantJson,
        ClaimName, Cursor, ElectionName, LockName, LookMs, NamePrefix, PageLimit, RevisionNumber, SessionHex,
    )),
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

/// Errors that many operations have in common: status, name of the shared response, codes.
const SHARED: [(&str, &str, &str); 5] = [
    ("400", "InvalidArgument", "`invalid_argument`: the request breaks a published bound or form."),
    ("413", "PayloadTooLarge", "`payload_too_large`: the body is longer than 1 MiB."),
    ("415", "UnsupportedMediaType", "`unsupported_media_type`: the body is not JSON."),
    ("500", "Internal", "`internal`: a defect or a dying disk."),
    (
        "503",
        "Unavailable",
        "`no_leader`, `overloaded`: nothing was changed, try again. `unknown_outcome`: repeat it with the same request \
         id.",
    ),
];

/// Adds the errors that operations have in common, and gives every error its form.
struct Problems;

impl Modify for Problems {
    fn modify(&self, document: &mut utoipa::openapi::OpenApi) {
        document.info.version = "1".into();
        document.info.license = None;
        document.info.contact = None;
        let components = document.components.get_or_insert_default();
        for (_, name, description) in SHARED {
            components.responses.insert(name.to_owned(), RefOr::T(problem_response(description)));
        }
        for (path, item) in &mut document.paths.paths {
            let PathItem { get, post, delete, .. } = item;
            let asks_endpoint = path.starts_with("/v1/");
            for operation in get.iter_mut().chain(delete) {
                complete(operation, asks_endpoint, false);
            }
            if let Some(operation) = post {
                complete(operation, asks_endpoint, true);
            }
        }
    }
}

fn complete(operation: &mut Operation, asks_endpoint: bool, posts: bool) {
    for (status, response) in &mut operation.responses.responses {
        if let (true, RefOr::T(response)) = (status.starts_with(['4', '5']), response) {
            *response = problem_response(&response.description);
        }
    }
    for (status, name, _) in SHARED {
        let applies = match status {
            "413" | "415" => posts,
            "400" | "503" => asks_endpoint,
            _ => true,
        };
        if applies {
            let shared = RefOr::Ref(Ref::from_response_name(name));
            operation.responses.responses.entry(status.to_owned()).or_insert(shared);
        }
    }
}

fn problem_response(description: &str) -> Response {
    let problem = ContentBuilder::new().schema(Some(Ref::from_schema_name("Problem"))).build();
    ResponseBuilder::new().description(description).content(PROBLEM_JSON, problem).build()
}

#[cfg(test)]
pub(crate) mod tests;

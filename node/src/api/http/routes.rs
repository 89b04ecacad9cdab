//! The table of routes: every path with its methods, once. Everything else on a known path is 405 with `Allow`, and
//! every other path is 404.

use actix_web::{
    FromRequest, Handler, HttpRequest, Resource, Responder, ResponseError,
    guard::{self, Guard},
    http::Method,
    web::{self, ServiceConfig},
};

use super::{
    claims,
    cluster::{audit, changes, members, partitions, placement, planner, snapshots, status},
    elections::{self, campaign},
    locks::{acquire, release, show, watch},
    probes,
    problem::{Code, Problem},
    sessions,
};
use crate::endpoint::ErrorCode;

/// One path with what it knows.
pub(crate) struct Path {
    #[cfg_attr(not(test), expect(dead_code, reason = "compared with the published document"))]
    pattern: &'static str,
    methods: Vec<Method>,
    resource: Resource,
}

impl Path {
    fn at(pattern: &'static str) -> Self {
        Self { pattern, methods: Vec::new(), resource: web::resource(pattern) }
    }

    /// GET, and HEAD with it.
    fn get<F, Args>(self, handler: F) -> Self
    where
        F: Handler<Args>,
        Args: FromRequest + 'static,
        F::Output: Responder + 'static,
    {
        self.on(&[Method::GET, Method::HEAD], guard::Any(guard::Get()).or(guard::Head()), handler)
    }

    fn post<F, Args>(self, handler: F) -> Self
    where
        F: Handler<Args>,
        Args: FromRequest + 'static,
        F::Output: Responder + 'static,
    {
        self.on(&[Method::POST], guard::Post(), handler)
    }

    fn delete<F, Args>(self, handler: F) -> Self
    where
        F: Handler<Args>,
        Args: FromRequest + 'static,
        F::Output: Responder + 'static,
    {
        self.on(&[Method::DELETE], guard::Delete(), handler)
    }

    fn on<F, Args>(mut self, methods: &[Method], guard: impl Guard + 'static, handler: F) -> Self
    where
        F: Handler<Args>,
        Args: FromRequest + 'static,
        F::Output: Responder + 'static,
    {
        self.methods.extend_from_slice(methods);
        self.resource = self.resource.route(web::route().guard(guard).to(handler));
        self
    }

    fn into_resource(self) -> Resource {
        let allow = self.methods.iter().map(Method::as_str).collect::<Vec<_>>().join(", ");
        self.resource.default_service(web::to(move |request: HttpRequest| {
            let problem = Problem::method_not_allowed(request.method().as_str(), request.path(), &allow);
            std::future::ready(problem.error_response())
        }))
    }

    /// Path and methods, as the published document must show them; HEAD goes with GET and is not shown.
    #[cfg(test)]
    pub(crate) fn published(&self) -> impl Iterator<Item = (&'static str, String)> {
        let pattern = self.pattern;
        let shown = self.methods.iter().filter(|method| **method != Method::HEAD);
        shown.map(move |method| (pattern, method.as_str().to_ascii_lowercase()))
    }
}

/// Every path there is.
pub(crate) fn table() -> Vec<Path> {
    vec![
        Path::at("/v1/sessions").get(sessions::list).post(sessions::open).delete(sessions::close),
        Path::at("/v1/sessions/keepalive").post(sessions::keepalive),
        Path::at("/v1/sessions/end").post(sessions::end),
        Path::at("/v1/locks").get(show::show),
        Path::at("/v1/locks/acquire").post(acquire::acquire),
        Path::at("/v1/locks/cancel").post(acquire::cancel),
        Path::at("/v1/locks/release").post(release::release),
        Path::at("/v1/locks/force-release").post(release::force_release),
        Path::at("/v1/locks/watch").get(watch::watch),
        Path::at("/v1/elections").get(elections::show::show),
        Path::at("/v1/elections/campaign").post(campaign::campaign),
        Path::at("/v1/elections/proclaim").post(campaign::proclaim),
        Path::at("/v1/elections/resign").post(campaign::resign),
        Path::at("/v1/elections/observe").get(elections::show::observe),
        Path::at("/v1/claims").get(claims::show::show),
        Path::at("/v1/claims/join").post(claims::part::join),
        Path::at("/v1/claims/leave").post(claims::part::leave),
        Path::at("/v1/claims/drain").post(claims::part::drain),
        Path::at("/v1/claims/ack").post(claims::part::ack),
        Path::at("/v1/status").get(status::status),
        Path::at("/v1/members").get(status::members),
        Path::at("/v1/members/drain").post(placement::drain),
        Path::at("/v1/members/undrain").post(placement::undrain),
        Path::at("/v1/members/change").post(members::change),
        Path::at("/v1/members/changes").get(members::show),
        Path::at("/v1/members/cancel").post(members::cancel),
        Path::at("/v1/groups").get(status::groups),
        Path::at("/v1/groups/show").get(placement::show),
        Path::at("/v1/groups/add").post(placement::add),
        Path::at("/v1/groups/transfer-leader").post(placement::transfer),
        Path::at("/v1/partitions").get(partitions::show),
        Path::at("/v1/partitions/change").post(changes::change),
        Path::at("/v1/partitions/changes").get(changes::show),
        Path::at("/v1/partitions/stop").post(changes::stop),
        Path::at("/v1/partitions/plan").get(planner::show),
        Path::at("/v1/partitions/policy").post(planner::edit),
        Path::at("/v1/snapshots").get(snapshots::list).post(snapshots::take),
        Path::at("/v1/snapshots/show").get(snapshots::look::show),
        Path::at("/v1/snapshots/verify").post(snapshots::look::verify),
        Path::at("/v1/snapshots/delete").post(snapshots::look::delete),
        Path::at("/v1/snapshots/sets").get(snapshots::sets::list).post(snapshots::sets::take),
        Path::at("/v1/snapshots/sets/verify").post(snapshots::sets::verify),
        Path::at("/v1/audit").get(audit::show),
        Path::at("/livez").get(probes::livez),
        Path::at("/readyz").get(probes::readyz),
        Path::at("/metrics").get(probes::metrics),
        Path::at("/openapi.json").get(probes::openapi),
    ]
}

/// Puts all paths into an app.
pub(crate) fn configure(config: &mut ServiceConfig) {
    for path in table() {
        config.service(path.into_resource());
    }
    config.default_service(web::to(|request: HttpRequest| {
        let detail = format!("there is no {}; GET /openapi.json lists every path", request.path());
        std::future::ready(Problem::new(Code::Endpoint(ErrorCode::NotFound), detail).error_response())
    }));
}

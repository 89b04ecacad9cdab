//! `/livez`, `/readyz`, `/metrics` and `/openapi.json`: for machines that look after the member. They take any query,
//! so that scrapers may add their own.

use actix_web::{HttpResponse, web::Data};
use serde::Serialize;
use utoipa::ToSchema;

use super::{
    api::Api,
    problem::{Code, Problem},
};
use crate::{endpoint::ErrorCode, metrics::exporter::TEXT_FORMAT};

/// The published document, as it is checked in.
pub(crate) const OPENAPI: &str = include_str!("../../../openapi.json");

/// All is well.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ProbeAnswer {
    status: &'static str,
}

const OK: ProbeAnswer = ProbeAnswer { status: "ok" };

/// Whether the process and its disk loop live
///
/// Never depends on other members: restart the member where this fails.
#[utoipa::path(get, path = "/livez", operation_id = "livez", tag = "probes",
    responses((status = 200, description = "It lives.", body = ProbeAnswer),
        (status = 503, description = "`not_alive`: the process or its disk loop hangs.")))]
pub(crate) async fn livez(api: Data<Api>) -> Result<HttpResponse, Problem> {
    api.endpoint.alive().map_err(|why| Problem::new(Code::NotAlive, why))?;
    Ok(HttpResponse::Ok().json(OK))
}

/// Whether the member may serve
///
/// It has caught up with every group since its start, and every group has a leader.
#[utoipa::path(get, path = "/readyz", operation_id = "readyz", tag = "probes",
    responses((status = 200, description = "It may serve.", body = ProbeAnswer),
        (status = 503, description = "`not_ready`: what is missing stands in `detail`.")))]
pub(crate) async fn readyz(api: Data<Api>) -> Result<HttpResponse, Problem> {
    if api.stopping.is_cancelled() {
        return Err(Problem::new(Code::NotReady, "the member stops"));
    }
    api.endpoint.ready().map_err(|why| Problem::new(Code::NotReady, why))?;
    Ok(HttpResponse::Ok().json(OK))
}

/// Metrics in the text format of Prometheus
#[utoipa::path(get, path = "/metrics", operation_id = "metrics", tag = "probes",
    responses((status = 200, description = "All metrics of the member.", body = String, content_type = "text/plain")))]
pub(crate) async fn metrics(api: Data<Api>) -> Result<HttpResponse, Problem> {
    let text = api.metrics.render().map_err(|error| {
        tracing::error!(%error, "metrics do not render");
        Problem::new(Code::Endpoint(ErrorCode::Internal), error.to_string())
    })?;
    Ok(HttpResponse::Ok().content_type(TEXT_FORMAT).body(text))
}

/// This document
#[utoipa::path(get, path = "/openapi.json", operation_id = "openapi", tag = "probes",
    responses((status = 200, description = "This document.", body = serde_json::Value)))]
pub(crate) async fn openapi() -> HttpResponse {
    HttpResponse::Ok().content_type("application/json").body(OPENAPI)
}

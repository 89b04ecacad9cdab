//! `/v1/audit`.

use actix_web::{HttpResponse, web::Data};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::{
    api::http::{
        api::Api,
        fields::{PageLimit, present},
        input::QueryArgs,
        problem::Problem,
    },
    endpoint::types::AuditEntry,
};

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct AuditArgs {
    /// Most lines; 100 where it is absent.
    #[serde(default, deserialize_with = "present")]
    #[param(nullable = false)]
    limit: Option<PageLimit>,
}

/// The newest lines of the audit log, oldest first.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct AuditAnswer {
    entries: Vec<AuditJson>,
}

impl From<Vec<AuditEntry>> for AuditAnswer {
    fn from(entries: Vec<AuditEntry>) -> Self {
        Self { entries: entries.into_iter().map(AuditJson::from).collect() }
    }
}

/// One line of the audit log.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct AuditJson {
    /// Its number.
    index: u64,
    /// Milliseconds since 1970 by the recording leader's wall clock.
    at_ms: u64,
    /// Who.
    actor: String,
    /// `force_release`, `end_session`, `take_snapshot`. New ones may come.
    action: String,
    /// On what.
    target: String,
    /// Why.
    reason: String,
    /// `requested`, `ok` or an error code.
    outcome: String,
}

impl From<AuditEntry> for AuditJson {
    fn from(entry: AuditEntry) -> Self {
        Self {
            index: entry.index,
            at_ms: entry.at_ms,
            actor: entry.actor,
            action: entry.action,
            target: entry.target,
            reason: entry.reason,
            outcome: entry.outcome,
        }
    }
}

/// Show the audit log
#[utoipa::path(get, path = "/v1/audit", operation_id = "audit", tag = "cluster", params(AuditArgs),
    responses((status = 200, description = "The newest lines, oldest first.", body = AuditAnswer)))]
pub(crate) async fn show(
    api: Data<Api>,
    QueryArgs(args): QueryArgs<AuditArgs>,
) -> Result<HttpResponse, Problem> {
    let entries = api.endpoint.audit(PageLimit::of(args.limit)).await?;
    Ok(HttpResponse::Ok().json(AuditAnswer::from(entries)))
}

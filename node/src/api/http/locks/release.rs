//! `/v1/locks/release` and `/v1/locks/force-release`.

use actix_web::{HttpRequest, HttpResponse, web::Data};
use holdfast_locktable::ids::SessionId;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{
    api::http::{
        api::{Api, actor, to_the_end},
        fields::{LockName, Reason, SessionHex, TokenNumber},
        input::JsonBody,
        problem::Problem,
    },
    endpoint::types::ForceRelease,
};

/// Ends a hold.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ReleaseBody {
    name: LockName,
    session: SessionHex,
    token: TokenNumber,
}

/// Whether this very call ended the hold; `false` where this session had ended that hold before.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ReleaseAnswer {
    pub(crate) released: bool,
}

/// An operator ends somebody else's hold.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ForceReleaseBody {
    name: LockName,
    /// The token the operator saw; another holder is `changed`.
    token: TokenNumber,
    reason: Reason,
    /// The lock comes free at once, whatever its holder does; only the fence protects then. This version knows no other way: absent means true, and false is refused.
    #[serde(default = "at_once")]
    now: bool,
}

/// What a forced release is where the request does not say: at once, until asking the holder first is built (rule R14).
const fn at_once() -> bool {
    true
}

/// Whose hold a forced release ended.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ForceReleaseAnswer {
    released: bool,
    /// The session that held.
    session: SessionHex,
    /// What it does not do.
    warning: &'static str,
}

impl ForceReleaseAnswer {
    pub(super) fn new(session: SessionId) -> Self {
        Self {
            released: true,
            session: SessionHex(session),
            warning: "the process that held goes on until it notices; only fencing keeps its writes out",
        }
    }
}

/// Release a lock
#[utoipa::path(post, path = "/v1/locks/release", operation_id = "release_lock", tag = "locks", request_body = ReleaseBody,
    responses((status = 200, description = "The hold has ended, by this call or by an earlier one.", body = ReleaseAnswer),
        (status = 409, description = "`not_holder`: session, name and token name no hold."),
        (status = 410, description = "`session_lost`: the session has ended or never was.")))]
pub(crate) async fn release(
    api: Data<Api>,
    JsonBody(body): JsonBody<ReleaseBody>,
) -> Result<HttpResponse, Problem> {
    let released = api.endpoint.release(body.name.0, body.session.0, body.token.token()).await?;
    Ok(HttpResponse::Ok().json(ReleaseAnswer { released }))
}

/// Force a lock free
///
/// For operators; the audit log says who did it and why.
#[utoipa::path(post, path = "/v1/locks/force-release", operation_id = "force_release_lock", tag = "locks", request_body = ForceReleaseBody,
    responses((status = 200, description = "The hold has ended.", body = ForceReleaseAnswer),
        (status = 409, description = "`changed`: the lock is free or has another holder (with `holder` and `token`).")))]
pub(crate) async fn force_release(
    api: Data<Api>,
    request: HttpRequest,
    JsonBody(body): JsonBody<ForceReleaseBody>,
) -> Result<HttpResponse, Problem> {
    if !body.now {
        return Err(Problem::invalid(
            "`now`: false is not possible: this version frees a lock at once only; look whether its holder still works first",
        ));
    }
    let forced = ForceRelease {
        name: body.name.0,
        token: body.token.token(),
        reason: body.reason.0,
        actor: actor(&request),
    };
    let endpoint = api.endpoint.clone();
    let session = to_the_end(async move { endpoint.force_release(forced).await }).await?;
    Ok(HttpResponse::Ok().json(ForceReleaseAnswer::new(session)))
}

//! What every handler has: the endpoint, the metrics, and word of when the member stops.

use std::future::Future;

use actix_web::HttpRequest;
use tokio_util::sync::CancellationToken;

use super::problem::Problem;
use crate::{
    endpoint::{ApiError, Endpoint},
    metrics::exporter::Metrics,
};

/// The state that handlers share. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Api {
    pub(crate) endpoint: Endpoint,
    pub(crate) metrics: Metrics,
    pub(crate) stopping: CancellationToken,
}

impl Api {
    /// Awaits a call that may wait long. A member that stops gives it up: the wait is detached and its client told to
    /// come again with the same request id.
    pub(crate) async fn waiting<T>(
        &self,
        call: impl Future<Output = Result<T, ApiError>>,
    ) -> Result<T, Problem> {
        tokio::select! {
            biased;
            answer = call => answer.map_err(Problem::from),
            () = self.stopping.cancelled() => Err(Problem::stopped_while_waiting()),
        }
    }
}

/// Who asks, for the audit log: there are no accounts yet, so the address it comes from.
pub(crate) fn actor(request: &HttpRequest) -> String {
    match request.peer_addr() {
        Some(address) => format!("http {}", address.ip()),
        None => "http".to_owned(),
    }
}

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
        until_stopped(&self.stopping, call).await
    }
}

/// Carries an operator's action to its end, also where its caller goes away meanwhile, so that the audit log tells how
/// it ended. The endpoint bounds how long that takes.
pub(crate) async fn to_the_end<T: 'static>(
    action: impl Future<Output = Result<T, ApiError>> + 'static,
) -> Result<T, Problem> {
    match actix_web::rt::spawn(action).await {
        Ok(answer) => answer.map_err(Problem::from),
        Err(_) => Err(Problem::stopped_while_waiting()),
    }
}

async fn until_stopped<T>(
    stopping: &CancellationToken,
    call: impl Future<Output = Result<T, ApiError>>,
) -> Result<T, Problem> {
    tokio::select! {
        biased;
        answer = call => answer.map_err(Problem::from),
        () = stopping.cancelled() => Err(Problem::stopped_while_waiting()),
    }
}

/// Who asks, for the audit log: there are no accounts yet, so the address it comes from.
pub(crate) fn actor(request: &HttpRequest) -> String {
    match request.peer_addr() {
        Some(address) => format!("http {}", address.ip()),
        None => "http".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;
    use serde_json::json;

    use super::*;

    #[tokio::test]
    async fn a_stopping_member_tells_waiting_clients_to_come_again() {
        let stopping = CancellationToken::new();
        let mut waiting = Box::pin(until_stopped::<()>(&stopping, std::future::pending()));
        assert!((&mut waiting).now_or_never().is_none(), "it waits");
        stopping.cancel();
        let problem = serde_json::to_value(waiting.await.unwrap_err()).unwrap();
        assert_eq!((&problem["code"], &problem["status"]), (&json!("unknown_outcome"), &json!(503)));
        let answered = until_stopped(&stopping, std::future::ready(Ok(7))).await;
        assert_eq!(answered, Ok(7), "an answer that is there goes first");
    }

    #[actix_web::test]
    async fn an_action_ends_without_its_caller() {
        let (tell, told) = tokio::sync::oneshot::channel();
        let mut action = Box::pin(to_the_end(async move {
            tokio::task::yield_now().await;
            let _ = tell.send("done");
            Ok(())
        }));
        assert!((&mut action).now_or_never().is_none(), "it has begun and is not done");
        drop(action);
        assert_eq!(told.await, Ok("done"));
    }
}

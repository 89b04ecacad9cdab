//! What happens around every request: it is measured, and its answer gets the headers that browsers obey.

use std::time::Instant;

use actix_web::{
    Error,
    body::MessageBody,
    dev::{ServiceRequest, ServiceResponse},
    http::{
        Method,
        header::{self, HeaderMap, HeaderName, HeaderValue},
    },
    middleware::Next,
    web::Data,
};

use super::api::Api;
use crate::metrics::service::{HttpEnd, ServiceMetrics};

/// Measures a request. One whose client goes away is dropped before it has an answer, and counts as that.
pub(crate) async fn measure<B: MessageBody>(
    request: ServiceRequest,
    next: Next<B>,
) -> Result<ServiceResponse<B>, Error> {
    let metrics = request.app_data::<Data<Api>>().map(|api| api.metrics.instruments.service.clone());
    let mut running = Running {
        metrics,
        method: known(request.method()),
        route: request.match_pattern(),
        begin: Instant::now(),
        end: HttpEnd::Disconnected,
    };
    let answer = next.call(request).await;
    let status = match &answer {
        Ok(response) => response.status(),
        Err(error) => error.as_response_error().status_code(),
    };
    running.end = HttpEnd::Status(status.as_u16());
    answer
}

struct Running {
    metrics: Option<ServiceMetrics>,
    method: &'static str,
    route: Option<String>,
    begin: Instant,
    end: HttpEnd,
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(metrics) = &self.metrics {
            metrics.http_ended(self.method, self.route.take(), self.end, self.begin.elapsed());
        }
    }
}

/// Methods as attributes: anybody can invent one, so the others share a name.
fn known(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::HEAD => "HEAD",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::PATCH => "PATCH",
        Method::DELETE => "DELETE",
        Method::OPTIONS => "OPTIONS",
        _ => "_OTHER",
    }
}

/// Headers of every answer that does not set them itself: nothing is cached, sniffed, framed or leaked as referrer, and
/// no other origin is let in.
const SAFE: [(HeaderName, HeaderValue); 4] = [
    (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
    (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
    (header::CONTENT_SECURITY_POLICY, HeaderValue::from_static("default-src 'none'; frame-ancestors 'none'")),
    (header::REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
];

/// Adds the headers of [`SAFE`].
pub(crate) async fn secure<B: MessageBody>(
    request: ServiceRequest,
    next: Next<B>,
) -> Result<ServiceResponse<B>, Error> {
    let mut response = next.call(request).await?;
    add_missing(response.headers_mut());
    Ok(response)
}

fn add_missing(headers: &mut HeaderMap) {
    for (name, value) in SAFE {
        if !headers.contains_key(&name) {
            headers.insert(name, value);
        }
    }
}

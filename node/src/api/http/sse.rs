//! Server-Sent Events: a stream of typed events becomes a response that stays open.
//!
//! Knows the text format, the heartbeat and how a stream ends. Does not know what is watched.

use std::time::Duration;

use actix_web::{
    HttpRequest, HttpResponse,
    http::{Method, header},
    web::Bytes,
};
use futures::{Stream, StreamExt, stream::BoxStream};
use serde::Serialize;
use tokio_util::sync::CancellationToken;

use super::{
    fields::Cursor,
    problem::{Code, Problem},
};

/// A comment goes out this often, so that both sides notice a dead connection.
pub(crate) const HEARTBEAT: Duration = Duration::from_secs(10);

/// Tells browsers how soon to come again, in milliseconds.
const RETRY_MS: u64 = 1_000;

/// One event of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Event {
    /// What happened.
    event: String,
    /// Where to go on after it; absent where there is nothing to go on from.
    id: Option<String>,
    /// One line of JSON.
    data: String,
}

impl Event {
    pub(crate) fn new(
        event: impl Into<String>,
        id: Option<String>,
        data: &impl Serialize,
    ) -> Result<Self, Problem> {
        let data = serde_json::to_string(data).map_err(|error| {
            Problem::new(
                Code::Endpoint(crate::endpoint::ErrorCode::Internal),
                format!("the event does not become JSON: {error}"),
            )
        })?;
        Ok(Self { event: event.into(), id, data })
    }

    #[cfg(test)]
    pub(crate) fn name_and_id(&self) -> (&str, Option<&str>) {
        (&self.event, self.id.as_deref())
    }

    #[cfg(test)]
    pub(crate) fn data(&self) -> &str {
        &self.data
    }

    /// The last event of a stream that failed.
    fn failure(problem: &Problem) -> Self {
        // A problem is strings and numbers and always becomes JSON.
        Self { event: "error".into(), id: None, data: serde_json::to_string(problem).unwrap_or_default() }
    }

    fn to_text(&self) -> String {
        let mut text = format!("event: {}\n", one_line(&self.event));
        if let Some(id) = &self.id {
            text.push_str(&format!("id: {}\n", one_line(id)));
        }
        text.push_str(&format!("data: {}\n\n", self.data));
        text
    }
}

/// The format ends a field at a line break and forgets an id with a NUL; neither may come from inside a field.
fn one_line(field: &str) -> String {
    field.replace(['\r', '\n', '\0'], " ")
}

/// Where a client wants to go on: what its last event said.
pub(crate) fn last_event_id(request: &HttpRequest) -> Result<Option<String>, Problem> {
    let Some(header) = request.headers().get("last-event-id") else { return Ok(None) };
    let text = header.to_str().map_err(|_| Problem::invalid("`Last-Event-ID`: is no text"))?;
    if text.is_empty() {
        return Ok(None);
    }
    Cursor::parse(text)
        .map(|cursor| Some(cursor.0))
        .map_err(|why| Problem::invalid(format!("`Last-Event-ID`: {why}")))
}

/// Answers with a stream. An error is its last event; a client that resumes comes again with its last id.
pub(crate) fn respond(
    request: &HttpRequest,
    events: BoxStream<'static, Result<Event, Problem>>,
    stopping: CancellationToken,
) -> HttpResponse {
    let mut response = HttpResponse::Ok();
    response
        .insert_header((header::CONTENT_TYPE, "text/event-stream"))
        .insert_header((header::CACHE_CONTROL, "no-store"))
        // Proxies that buffer would hold events back.
        .insert_header(("x-accel-buffering", "no"));
    if request.method() == Method::HEAD {
        return response.finish();
    }
    response
        .streaming(text_of(events, stopping).map(|text| Ok::<_, std::convert::Infallible>(Bytes::from(text))))
}

fn text_of(
    mut events: BoxStream<'static, Result<Event, Problem>>,
    stopping: CancellationToken,
) -> impl Stream<Item = String> {
    async_stream::stream! {
        yield format!("retry: {RETRY_MS}\n\n");
        let mut heartbeat = tokio::time::interval(HEARTBEAT);
        heartbeat.reset();
        loop {
            tokio::select! {
                biased;
                () = stopping.cancelled() => {
                    let problem = Problem::new(Code::Stopping, "this member stops; go on at another one");
                    yield Event::failure(&problem).to_text();
                    return;
                }
                next = events.next() => match next {
                    Some(Ok(event)) => yield event.to_text(),
                    Some(Err(problem)) => {
                        yield Event::failure(&problem).to_text();
                        return;
                    }
                    None => return,
                },
                _ = heartbeat.tick() => yield ": heartbeat\n\n".to_owned(),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::{FutureExt, stream};
    use serde_json::json;

    use super::*;
    use crate::endpoint::{ApiError, ErrorCode};

    fn event(n: u64) -> Result<Event, Problem> {
        Event::new("granted", Some(format!("c{n}")), &json!({ "token": n }))
    }

    #[tokio::test]
    async fn events_carry_what_id_and_data_and_an_error_ends_the_stream() {
        let lagging = Problem::from(ApiError::new(ErrorCode::Overloaded, "the watcher lags"));
        let events = stream::iter([event(1), event(2), Err(lagging), event(3)]).boxed();
        let text: Vec<String> = text_of(events, CancellationToken::new()).collect().await;
        assert_eq!(
            text.concat(),
            "retry: 1000\n\n\
             event: granted\nid: c1\ndata: {\"token\":1}\n\n\
             event: granted\nid: c2\ndata: {\"token\":2}\n\n\
             event: error\ndata: {\"type\":\"urn:holdfast:problem:overloaded\",\"title\":\"The member is overloaded\",\
             \"status\":503,\"detail\":\"the watcher lags\",\"code\":\"overloaded\"}\n\n"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_silent_stream_sends_a_comment_every_ten_seconds() {
        let begin = tokio::time::Instant::now();
        let mut text = text_of(stream::pending().boxed(), CancellationToken::new()).boxed();
        assert_eq!(text.next().await.as_deref(), Some("retry: 1000\n\n"));
        for n in 1..=3 {
            assert_eq!(text.next().await.as_deref(), Some(": heartbeat\n\n"));
            assert_eq!(begin.elapsed(), HEARTBEAT * n);
        }
    }

    #[tokio::test]
    async fn a_stopping_member_says_so_and_ends_the_stream() {
        let stopping = CancellationToken::new();
        let mut text = text_of(stream::pending().boxed(), stopping.clone()).boxed();
        assert!(text.next().await.is_some());
        assert!(text.next().now_or_never().is_none(), "nothing to say yet");
        stopping.cancel();
        assert!(text.next().await.is_some_and(|text| text.contains("\"code\":\"stopping\"")));
        assert_eq!(text.next().await, None);
    }

    #[actix_web::test]
    async fn a_head_gets_the_headers_and_no_stream() {
        use actix_web::{body::MessageBody, test::TestRequest};
        let request = TestRequest::default().method(Method::HEAD).to_http_request();
        let response = respond(&request, stream::pending().boxed(), CancellationToken::new());
        assert_eq!(response.headers().get(header::CONTENT_TYPE).unwrap(), "text/event-stream");
        assert!(response.into_body().size().is_eof());
    }

    #[test]
    fn a_field_cannot_break_out_of_its_line() {
        let event = Event::new("a\nb", Some("c\r\nd\0".into()), &json!("x\ny")).unwrap();
        assert_eq!(event.to_text(), "event: a b\nid: c  d \ndata: \"x\\ny\"\n\n");
    }
}

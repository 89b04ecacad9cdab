//! `/v1/locks/watch`: changes of locks as they happen.

use actix_web::{HttpRequest, HttpResponse, web::Data};
use futures::StreamExt;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::{
    api::http::{
        api::Api,
        fields::{GroupNumber, LockName, NamePrefix, RevisionNumber, SessionHex, present},
        input::QueryArgs,
        problem::Problem,
        sse::{self, Event},
    },
    endpoint::types::{WatchEvent, WatchRequest},
};

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct WatchArgs {
    /// Locks whose name begins with it; all where it and `name` are absent.
    #[serde(default, deserialize_with = "present")]
    #[param(nullable = false)]
    prefix: Option<NamePrefix>,
    /// Only this lock. Excludes `prefix`.
    #[serde(default, deserialize_with = "present")]
    #[param(nullable = false)]
    name: Option<LockName>,
    /// Starts with the changes of this revision, where one group owns everything that is watched. Absent starts now. A
    /// `Last-Event-ID` goes before it.
    #[serde(default, deserialize_with = "present")]
    #[param(nullable = false)]
    from_revision: Option<RevisionNumber>,
}

impl WatchArgs {
    fn into_request(self, last_event_id: Option<String>) -> Result<WatchRequest, Problem> {
        if self.name.is_some() && self.prefix.is_some() {
            return Err(Problem::invalid("`name` asks for one lock: leave out `prefix`"));
        }
        let exact = self.name.is_some();
        let prefix = match self.name {
            Some(name) => name.0.text().to_owned(),
            None => self.prefix.unwrap_or_default().0,
        };
        let from = last_event_id.or_else(|| self.from_revision.map(|revision| revision.get().to_string()));
        Ok(WatchRequest { prefix, elections: false, exact, from })
    }
}

/// One change of a lock: the data of an event.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct LockEventJson {
    /// The group it happened in.
    group: GroupNumber,
    /// Its revision there.
    revision: u64,
    /// Milliseconds since 1970 by the leader's wall clock.
    at_ms: u64,
    /// The event's name again: as `what` of a lock's history.
    what: String,
    name: String,
    /// Whose key; absent for keys that belong to no session.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    session: Option<SessionHex>,
    /// Its create revision.
    token: u64,
}

fn event(change: WatchEvent) -> Result<Event, Problem> {
    let data = LockEventJson {
        group: change.group.into(),
        revision: change.revision.0,
        at_ms: change.at_ms,
        what: change.what,
        name: change.name,
        session: change.session.map(SessionHex),
        token: change.token.0,
    };
    Event::new(data.what.clone(), Some(change.cursor), &data)
}

/// Watch locks
///
/// Server-Sent Events: `event` is what happened, `id` is where to go on after it (send it as `Last-Event-ID`), `data` is
/// a `LockEventJson`. A comment comes every 10 s. An `error` event with a `Problem` ends the stream: `compacted` where
/// the position is gone, `overloaded` where the watcher lags, `no_leader`, `stopping`.
#[utoipa::path(get, path = "/v1/locks/watch", operation_id = "watch_locks", tag = "locks",
    params(WatchArgs, ("Last-Event-ID" = Option<String>, Header, description = "`id` of the last event seen.")),
    responses((status = 200, description = "The stream.", body = String, content_type = "text/event-stream"),
        (status = 410, description = "`compacted` (with `oldest`): the history asked for is gone.")))]
pub(crate) async fn watch(
    api: Data<Api>,
    request: HttpRequest,
    QueryArgs(args): QueryArgs<WatchArgs>,
) -> Result<HttpResponse, Problem> {
    let watched = args.into_request(sse::last_event_id(&request)?)?;
    let changes = api.endpoint.watch(watched).await?;
    let events = changes.map(|change| change.map_err(Problem::from).and_then(event)).boxed();
    Ok(sse::respond(&request, events, api.stopping.clone()))
}

#[cfg(test)]
mod tests {
    use holdfast_locktable::ids::{Revision, SessionId};
    use holdfast_partitioner::GroupId;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_change_becomes_an_event_with_its_cursor() {
        let change = WatchEvent {
            group: GroupId(2),
            revision: Revision(17),
            at_ms: 1_700_000_000_000,
            what: "granted".into(),
            name: "jobs/x".into(),
            session: SessionId::new(0x2f),
            token: Revision(17),
            value: bytes::Bytes::new(),
            cursor: "v1.2-17".into(),
        };
        let data = json!({
            "group": 2, "revision": 17, "at_ms": 1_700_000_000_000_u64, "what": "granted", "name": "jobs/x",
            "session": "2f", "token": 17,
        });
        let expected = Event::new("granted", Some("v1.2-17".into()), &data).unwrap();
        let shown = event(change).unwrap();
        assert_eq!(shown.name_and_id(), expected.name_and_id());
        assert_eq!(serde_json::from_str::<serde_json::Value>(shown.data()).unwrap(), data);
    }

    #[test]
    fn a_last_event_id_goes_before_the_revision_of_the_url() {
        let args = |prefix: Option<&str>, revision: Option<u64>| {
            serde_json::from_value::<WatchArgs>(match (prefix, revision) {
                (Some(prefix), Some(revision)) => json!({ "prefix": prefix, "from_revision": revision }),
                (Some(prefix), None) => json!({ "prefix": prefix }),
                (None, Some(revision)) => json!({ "name": "a", "from_revision": revision }),
                (None, None) => json!({ "name": "a", "prefix": "b" }),
            })
            .unwrap()
        };
        let request = args(Some("jobs/"), Some(5)).into_request(Some("v1.2-17".into())).unwrap();
        assert_eq!(
            (request.prefix.as_str(), request.exact, request.from.as_deref()),
            ("jobs/", false, Some("v1.2-17"))
        );
        let request = args(None, Some(5)).into_request(None).unwrap();
        assert_eq!((request.prefix.as_str(), request.exact, request.from.as_deref()), ("a", true, Some("5")));
        assert_eq!(args(Some("b"), None).into_request(None).unwrap().from, None);
        assert!(args(None, None).into_request(None).is_err());
    }
}

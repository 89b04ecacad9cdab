//! `GET /v1/elections` and `/v1/elections/observe`.

use actix_web::{HttpRequest, HttpResponse, web::Data};
use futures::StreamExt;
use holdfast_locktable::name::NameKind;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::{
    api::http::{
        api::Api,
        fields::{
            Cursor, ElectionName, GroupNumber, MetadataMap, NamePrefix, PageLimit, SessionHex, TokenNumber,
            present,
        },
        input::QueryArgs,
        problem::Problem,
        sse::{self, Event},
        value::ValueJson,
    },
    endpoint::types::{HolderView, LeaderView, LockPage, LockView},
};

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct ElectionsArgs {
    /// Only this election's leader; 404 while nobody leads. Stands alone.
    #[serde(default, deserialize_with = "present")]
    #[param(nullable = false)]
    name: Option<ElectionName>,
    /// Elections whose name begins with it; all where it is absent.
    #[serde(default, deserialize_with = "present")]
    #[param(nullable = false)]
    prefix: Option<NamePrefix>,
    /// Most elections of this page; 100 where it is absent.
    #[serde(default, deserialize_with = "present")]
    #[param(nullable = false)]
    limit: Option<PageLimit>,
    /// `next_cursor` of the page before.
    #[serde(default, deserialize_with = "present")]
    #[param(nullable = false)]
    cursor: Option<Cursor>,
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct ObserveArgs {
    /// The election.
    name: ElectionName,
}

/// A page of elections in name order.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ElectionsAnswer {
    elections: Vec<ElectionJson>,
    /// Where the next page starts; absent on the last.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    next_cursor: Option<String>,
    /// Groups that had no leader, so that their elections are missing here.
    unavailable_groups: Vec<GroupNumber>,
}

impl From<LockPage> for ElectionsAnswer {
    fn from(page: LockPage) -> Self {
        Self {
            elections: page.locks.into_iter().map(ElectionJson::from).collect(),
            next_cursor: page.next_cursor,
            unavailable_groups: page.unavailable_groups.into_iter().map(GroupNumber::from).collect(),
        }
    }
}

/// One election.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ElectionJson {
    name: String,
    /// The group that owns it.
    group: GroupNumber,
    /// Who leads; null where nobody does.
    #[schema(required)]
    leader: Option<ElectionLeaderJson>,
    /// Candidates behind the leader.
    candidates: u32,
}

impl From<LockView> for ElectionJson {
    fn from(election: LockView) -> Self {
        Self {
            name: election.name,
            group: election.group.into(),
            leader: election.holder.map(ElectionLeaderJson::from),
            candidates: election.waiters,
        }
    }
}

/// Who leads an election, in a list.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ElectionLeaderJson {
    session: SessionHex,
    token: TokenNumber,
    /// Milliseconds since it was elected, as leaders saw it.
    leading_ms: u64,
    /// Milliseconds of lease left at the group's leader; null where it did not say.
    #[schema(required)]
    ttl_left_ms: Option<u64>,
    metadata: MetadataMap,
    #[serde(flatten)]
    value: ValueJson,
}

impl From<HolderView> for ElectionLeaderJson {
    fn from(holder: HolderView) -> Self {
        Self {
            session: SessionHex(holder.session),
            token: holder.token.into(),
            leading_ms: holder.held_ms,
            ttl_left_ms: holder.ttl_left_ms,
            metadata: MetadataMap(holder.metadata),
            value: holder.value.into(),
        }
    }
}

/// Who leads an election.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct LeaderAnswer {
    name: String,
    session: SessionHex,
    token: TokenNumber,
    #[serde(flatten)]
    value: ValueJson,
    /// Milliseconds since it was elected, as leaders saw it.
    leading_ms: u64,
    /// Candidates behind it.
    candidates: u32,
}

impl From<LeaderView> for LeaderAnswer {
    fn from(leader: LeaderView) -> Self {
        Self {
            name: leader.name,
            session: SessionHex(leader.session),
            token: leader.token.into(),
            value: leader.value.into(),
            leading_ms: leader.leading_ms,
            candidates: leader.candidates,
        }
    }
}

/// Nobody leads.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct VacantJson {
    name: String,
}

/// A page of elections, or the leader of the one that was asked for.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
pub(crate) enum ElectionsOrLeader {
    /// Without `name`.
    Page(ElectionsAnswer),
    /// With `name`.
    Leader(LeaderAnswer),
}

/// List elections, or show the leader of one
#[utoipa::path(get, path = "/v1/elections", operation_id = "list_elections", tag = "elections", params(ElectionsArgs),
    responses((status = 200, description = "A page of elections, or the leader asked for.", body = ElectionsOrLeader),
        (status = 404, description = "`not_found`: nobody leads.")))]
pub(crate) async fn show(
    api: Data<Api>,
    QueryArgs(args): QueryArgs<ElectionsArgs>,
) -> Result<HttpResponse, Problem> {
    let answer = match args.name {
        Some(_) if args.prefix.is_some() || args.limit.is_some() || args.cursor.is_some() => {
            return Err(Problem::invalid(
                "`name` asks for one election: leave out `prefix`, `limit` and `cursor`",
            ));
        }
        Some(name) => ElectionsOrLeader::Leader(api.endpoint.leader(&name.0).await?.into()),
        None => {
            let prefix = args.prefix.unwrap_or_default().0;
            let cursor = args.cursor.as_ref().map(|cursor| cursor.0.as_str());
            let limit = PageLimit::of(args.limit);
            ElectionsOrLeader::Page(
                api.endpoint.locks(NameKind::Election, &prefix, limit, cursor).await?.into(),
            )
        }
    };
    Ok(HttpResponse::Ok().json(answer))
}

/// What observers see: `leader` with who leads, `vacant` while nobody does.
fn event(name: &str, leader: Option<LeaderView>) -> Result<Event, Problem> {
    match leader {
        Some(leader) => Event::new("leader", Some(leader.token.to_string()), &LeaderAnswer::from(leader)),
        None => Event::new("vacant", None, &VacantJson { name: name.to_owned() }),
    }
}

/// Observe an election
///
/// Server-Sent Events: first who leads now, then each change of leader or value. `event` is `leader` (`data` is a
/// `LeaderAnswer`, `id` its token) or `vacant` (`data` is a `VacantJson`). An observer that comes again starts with who
/// leads then, whatever it saw last. A comment comes every 10 s. An `error` event with a `Problem` ends the stream.
#[utoipa::path(get, path = "/v1/elections/observe", operation_id = "observe_election", tag = "elections",
    params(ObserveArgs, ("Last-Event-ID" = Option<String>, Header, description = "Read and not needed.")),
    responses((status = 200, description = "The stream.", body = String, content_type = "text/event-stream")))]
pub(crate) async fn observe(
    api: Data<Api>,
    request: HttpRequest,
    QueryArgs(args): QueryArgs<ObserveArgs>,
) -> Result<HttpResponse, Problem> {
    sse::last_event_id(&request)?;
    let name = args.name.0.text().to_owned();
    let leaders = api.endpoint.observe(args.name.0).await?;
    let events = leaders
        .map(move |leader| leader.map_err(Problem::from).and_then(|leader| event(&name, leader)))
        .boxed();
    Ok(sse::respond(&request, events, api.stopping.clone()))
}

#[cfg(test)]
mod tests {
    use holdfast_locktable::ids::{Revision, SessionId};
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn observers_see_leaders_and_vacancies() {
        let leader = LeaderView {
            name: "db".into(),
            session: SessionId::new(0xa).unwrap(),
            token: Revision(9),
            value: bytes::Bytes::from_static(b"10.0.0.1"),
            leading_ms: 5,
            candidates: 2,
        };
        let shown = event("db", Some(leader)).unwrap();
        assert_eq!(shown.name_and_id(), ("leader", Some("9")));
        assert_eq!(
            serde_json::from_str::<Value>(shown.data()).unwrap(),
            json!({ "name": "db", "session": "a", "token": 9, "value": "10.0.0.1", "leading_ms": 5, "candidates": 2 })
        );
        let shown = event("db", None).unwrap();
        assert_eq!(shown.name_and_id(), ("vacant", None));
        assert_eq!(serde_json::from_str::<Value>(shown.data()).unwrap(), json!({ "name": "db" }));
    }
}

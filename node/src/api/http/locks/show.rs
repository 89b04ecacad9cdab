//! `GET /v1/locks`: lists, and one lock with its queue and history.

use actix_web::{HttpResponse, web::Data};
use holdfast_locktable::name::NameKind;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::{
    api::http::{
        api::Api,
        fields::{
            Cursor, GroupNumber, LockName, MetadataMap, NamePrefix, PageLimit, SessionHex, TokenNumber,
            present,
        },
        input::QueryArgs,
        problem::Problem,
    },
    endpoint::types::{HistoryView, HolderView, LockDetail, LockPage, LockView, WaiterView},
};

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct LocksArgs {
    /// Only this lock, with its queue and history. Stands alone.
    #[serde(default, deserialize_with = "present")]
    #[param(nullable = false)]
    name: Option<LockName>,
    /// Locks whose name begins with it; all where it is absent.
    #[serde(default, deserialize_with = "present")]
    #[param(nullable = false)]
    prefix: Option<NamePrefix>,
    /// Most locks of this page; 100 where it is absent.
    #[serde(default, deserialize_with = "present")]
    #[param(nullable = false)]
    limit: Option<PageLimit>,
    /// `next_cursor` of the page before.
    #[serde(default, deserialize_with = "present")]
    #[param(nullable = false)]
    cursor: Option<Cursor>,
}

/// A page of locks in name order.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct LocksAnswer {
    locks: Vec<LockJson>,
    /// Where the next page starts; absent on the last.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    next_cursor: Option<String>,
    /// Groups that had no leader, so that their locks are missing here.
    unavailable_groups: Vec<GroupNumber>,
}

impl From<LockPage> for LocksAnswer {
    fn from(page: LockPage) -> Self {
        Self {
            locks: page.locks.into_iter().map(LockJson::from).collect(),
            next_cursor: page.next_cursor,
            unavailable_groups: page.unavailable_groups.into_iter().map(GroupNumber::from).collect(),
        }
    }
}

/// One lock.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct LockJson {
    name: String,
    /// The group that owns it.
    group: GroupNumber,
    /// Who holds it; null where nobody does.
    #[schema(required)]
    holder: Option<HolderJson>,
    /// How many wait.
    waiters: u32,
}

impl From<LockView> for LockJson {
    fn from(lock: LockView) -> Self {
        Self {
            name: lock.name,
            group: lock.group.into(),
            holder: lock.holder.map(HolderJson::from),
            waiters: lock.waiters,
        }
    }
}

/// Who holds a lock.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct HolderJson {
    session: SessionHex,
    token: TokenNumber,
    /// Milliseconds since the grant, as leaders saw it.
    held_ms: u64,
    /// Milliseconds of lease left at the group's leader; null where it did not say.
    #[schema(required)]
    ttl_left_ms: Option<u64>,
    metadata: MetadataMap,
}

impl From<HolderView> for HolderJson {
    fn from(holder: HolderView) -> Self {
        Self {
            session: SessionHex(holder.session),
            token: holder.token.into(),
            held_ms: holder.held_ms,
            ttl_left_ms: holder.ttl_left_ms,
            metadata: MetadataMap(holder.metadata),
        }
    }
}

/// One lock with its queue and what happened to it lately.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct LockDetailAnswer {
    #[serde(flatten)]
    lock: LockJson,
    /// The waiters in order.
    queue: Vec<WaiterJson>,
    /// The last transitions, oldest first.
    history: Vec<HistoryJson>,
}

impl From<LockDetail> for LockDetailAnswer {
    fn from(detail: LockDetail) -> Self {
        Self {
            lock: detail.lock.into(),
            queue: detail.queue.into_iter().map(WaiterJson::from).collect(),
            history: detail.history.into_iter().map(HistoryJson::from).collect(),
        }
    }
}

/// One waiter.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct WaiterJson {
    session: SessionHex,
    /// Its place in the queue; the holder has 1, so the first waiter has 2.
    position: u32,
    /// Create revision of its key: its token, once it is granted.
    revision: u64,
    /// Milliseconds since it came, as leaders saw it.
    waiting_ms: u64,
    metadata: MetadataMap,
}

impl From<WaiterView> for WaiterJson {
    fn from(waiter: WaiterView) -> Self {
        Self {
            session: SessionHex(waiter.session),
            position: waiter.position,
            revision: waiter.revision.0,
            waiting_ms: waiter.waiting_ms,
            metadata: MetadataMap(waiter.metadata),
        }
    }
}

/// One transition of a lock.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct HistoryJson {
    revision: u64,
    /// Milliseconds since 1970 by the leader's wall clock.
    at_ms: u64,
    /// `queued`, `granted`, `released`, `timed_out`, `cancelled`, `abandoned`, `force_released`, `session_closed`,
    /// `session_expired`, `session_forced`, `deleted`, `proclaimed`. New ones may come.
    what: String,
    /// Whose key; absent for keys that belong to no session.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    session: Option<SessionHex>,
    /// Its create revision.
    token: u64,
}

impl From<HistoryView> for HistoryJson {
    fn from(line: HistoryView) -> Self {
        Self {
            revision: line.revision.0,
            at_ms: line.at_ms,
            what: line.what,
            session: line.session.map(SessionHex),
            token: line.token.0,
        }
    }
}

/// A page of locks, or the one that was asked for.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
pub(crate) enum LocksOrOne {
    /// Without `name`.
    Page(LocksAnswer),
    /// With `name`.
    One(LockDetailAnswer),
}

/// List locks, or show one
///
/// Each group answers as of one moment that is not older than the request. A lock that is free and has no history is
/// shown as free, not as an error.
#[utoipa::path(get, path = "/v1/locks", operation_id = "list_locks", tag = "locks", params(LocksArgs),
    responses((status = 200, description = "A page of locks, or the one asked for.", body = LocksOrOne)))]
pub(crate) async fn show(
    api: Data<Api>,
    QueryArgs(args): QueryArgs<LocksArgs>,
) -> Result<HttpResponse, Problem> {
    let answer = match args.name {
        Some(_) if args.prefix.is_some() || args.limit.is_some() || args.cursor.is_some() => {
            return Err(Problem::invalid(
                "`name` asks for one lock: leave out `prefix`, `limit` and `cursor`",
            ));
        }
        Some(name) => LocksOrOne::One(api.endpoint.lock(&name.0).await?.into()),
        None => {
            let prefix = args.prefix.unwrap_or_default().0;
            let cursor = args.cursor.as_ref().map(|cursor| cursor.0.as_str());
            let limit = PageLimit::of(args.limit);
            LocksOrOne::Page(api.endpoint.locks(NameKind::Lock, &prefix, limit, cursor).await?.into())
        }
    };
    Ok(HttpResponse::Ok().json(answer))
}

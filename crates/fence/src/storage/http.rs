//! The routes: from a request to a call of the store, and back.
//!
//! How objects are kept, and what a token means, is not known here.

use actix_web::{
    HttpRequest, HttpResponse,
    web::{self, Data, Payload, ServiceConfig},
};
use percent_encoding::percent_decode_str;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::{
    body::read_json,
    problem::Problem,
    store::{Page, Store, Summary, Write},
};
use crate::claim::{MAX_TOKEN, ObjectName};

/// Path in front of an object's name.
const OBJECTS: &str = "/v1/objects/";

/// Objects per page of a list, unless told otherwise.
const DEFAULT_LIMIT: u32 = 100;

/// Objects per page at most.
const MAX_LIMIT: u32 = 1_000;

type Answer = Result<HttpResponse, Problem>;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PutBody {
    lock: String,
    token: serde_json::Number,
    data: Box<RawValue>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct FenceBody {
    lock: String,
    token: serde_json::Number,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ListQuery {
    #[serde(default)]
    prefix: String,
    limit: Option<u32>,
    #[serde(default)]
    cursor: String,
}

#[derive(Debug, Serialize)]
struct ListAnswer {
    objects: Vec<Summary>,
    next_cursor: Option<String>,
}

pub(super) fn routes(config: &mut ServiceConfig) {
    let readers = "GET, HEAD";
    config
        .service(
            web::resource("/v1/objects/{name:.*}")
                .route(web::get().to(get_object))
                .route(web::head().to(get_object))
                .route(web::put().to(put_object))
                .default_service(not_allowed("GET, HEAD, PUT")),
        )
        .service(
            web::resource("/v1/objects")
                .route(web::get().to(list_objects))
                .route(web::head().to(list_objects))
                .default_service(not_allowed(readers)),
        )
        .service(
            web::resource("/v1/fence").route(web::post().to(advance)).default_service(not_allowed("POST")),
        )
        .service(
            web::resource("/livez")
                .route(web::get().to(live))
                .route(web::head().to(live))
                .default_service(not_allowed(readers)),
        )
        .service(
            web::resource("/readyz")
                .route(web::get().to(ready))
                .route(web::head().to(ready))
                .default_service(not_allowed(readers)),
        )
        .default_service(web::to(unknown_path));
}

fn not_allowed(allow: &'static str) -> actix_web::Route {
    web::route().to(move || async move { Answer::Err(Problem::method_not_allowed(allow)) })
}

async fn unknown_path(req: HttpRequest) -> Answer {
    Err(Problem::not_found(format!("there is nothing at {}", req.uri().path())))
}

async fn put_object(req: HttpRequest, payload: Payload, store: Data<Store>) -> Answer {
    let body: PutBody = read_json(&req, payload).await?;
    let name = object_name(&req)?;
    let write = Write { name, lock: body.lock, token: token(&body.token)?, data: body.data };
    Ok(HttpResponse::Ok().json(store.put(write).await?))
}

async fn get_object(req: HttpRequest, store: Data<Store>) -> Answer {
    let name = object_name(&req)?;
    match store.get(&name).await? {
        Some(object) => Ok(HttpResponse::Ok().json(object)),
        None => Err(Problem::not_found(format!("object {name:?} was never written"))),
    }
}

async fn list_objects(req: HttpRequest, store: Data<Store>) -> Answer {
    let query = web::Query::<ListQuery>::from_query(req.query_string())
        .map_err(|error| Problem::invalid(format!("the query cannot be read: {error}")))?
        .into_inner();
    let limit = query.limit.unwrap_or(DEFAULT_LIMIT);
    if !(1..=MAX_LIMIT).contains(&limit) {
        return Err(Problem::invalid(format!("limit {limit} is not between 1 and {MAX_LIMIT}")));
    }
    // One more than asked for, to know whether there is a next page.
    let page = Page { prefix: query.prefix, after: query.cursor, limit: limit + 1 };
    let mut objects = store.list(page).await?;
    let more = objects.len() > limit as usize;
    objects.truncate(limit as usize);
    let next_cursor = objects.last().filter(|_| more).map(|object| object.name.clone());
    Ok(HttpResponse::Ok().json(ListAnswer { objects, next_cursor }))
}

async fn advance(req: HttpRequest, payload: Payload, store: Data<Store>) -> Answer {
    let body: FenceBody = read_json(&req, payload).await?;
    let highest = store.advance(&body.lock, token(&body.token)?).await?;
    Ok(HttpResponse::Ok().json(serde_json::json!({ "lock": body.lock, "highest": highest })))
}

async fn live() -> Answer {
    Ok(HttpResponse::Ok().json(serde_json::json!({ "status": "ok" })))
}

async fn ready(store: Data<Store>) -> Answer {
    store.ready().await?;
    Ok(HttpResponse::Ok().json(serde_json::json!({ "status": "ok" })))
}

/// The rest of the path, decoded once. Taken from the raw path, as the router replaces what is no UTF-8.
fn object_name(req: &HttpRequest) -> Result<String, Problem> {
    let raw = req.uri().path().strip_prefix(OBJECTS).unwrap_or_default();
    let name = percent_decode_str(raw)
        .decode_utf8()
        .map_err(|_| Problem::invalid("the object name is not valid: it is no UTF-8".to_owned()))?;
    ObjectName::new(&name)?;
    Ok(name.into_owned())
}

/// The guard refuses 0 and what is too large; what is no such integer at all is refused here.
fn token(number: &serde_json::Number) -> Result<u64, Problem> {
    number.as_u64().ok_or_else(|| {
        Problem::invalid(format!("the token is not valid: {number} is no integer from 1 to {MAX_TOKEN}"))
    })
}

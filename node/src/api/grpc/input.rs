//! From messages to typed values: every bound of the protocol stands here once. What passes has been checked; what does
//! not is `invalid_argument` in the words of the bound, the same as over HTTP.

use std::collections::{BTreeMap, HashMap};

use bytes::Bytes;
use holdfast_locktable::{
    command::Wait,
    ids::{Revision, SessionId, Token},
    metadata::Metadata,
    name::{Name, NameKind},
};
use holdfast_proto::v1;

use crate::{
    endpoint::{
        ApiError,
        types::{DEFAULT_TTL_MS, MAX_TTL_MS, MAX_WAIT_MS, MIN_TTL_MS},
    },
    watch::holds::Hold,
};

type Checked<T> = Result<T, ApiError>;

/// Most bytes of a candidate's value.
const MAX_VALUE_BYTES: usize = 64 << 10;
/// Locks or audit lines on one page where the request does not say.
const DEFAULT_PAGE: u32 = 100;
/// Most locks or audit lines on one page.
const MAX_PAGE: u32 = 1_000;
/// Most holds in one request that asks where they stand.
const MAX_LOCATED: usize = 1_000;
/// Most bytes of an operator's name.
const MAX_ACTOR_BYTES: usize = 256;
/// Most bytes of a cursor; one of a prefix over all groups is far shorter.
const MAX_CURSOR_BYTES: usize = 8_192;

pub(super) fn name(name: Option<v1::Name>) -> Checked<Name> {
    let name = name.ok_or_else(|| ApiError::invalid("the request has no name"))?;
    let checked = if name.election { Name::election(&name.text) } else { Name::lock(&name.text) };
    checked.map_err(|error| ApiError::invalid(error.to_string()))
}

pub(super) fn election(text: &str) -> Checked<Name> {
    Name::election(text).map_err(|error| ApiError::invalid(error.to_string()))
}

pub(super) fn claim(text: &str) -> Checked<Name> {
    Name::claim(text).map_err(|error| ApiError::invalid(error.to_string()))
}

pub(super) const fn kind(elections: bool) -> NameKind {
    if elections { NameKind::Election } else { NameKind::Lock }
}

/// What names have to begin with: itself a name, or empty.
pub(super) fn prefix(text: String) -> Checked<String> {
    if !text.is_empty() {
        Name::lock(&text).map_err(|error| ApiError::invalid(format!("prefix: {error}")))?;
    }
    Ok(text)
}

pub(super) fn session(id: u64) -> Checked<SessionId> {
    SessionId::new(id).ok_or_else(|| {
        ApiError::invalid(format!("{id} is no session id; ids are numbers from 1 to 2^63 - 1"))
    })
}

pub(super) fn token(number: u64) -> Checked<Token> {
    if number == 0 || number >= Revision::LIMIT {
        return Err(ApiError::invalid(format!(
            "{number} is no fencing token; tokens are numbers from 1 to 2^53 - 1"
        )));
    }
    Ok(Revision(number))
}

/// Holds of a session that are to be looked for.
pub(super) fn holds(session: SessionId, holds: Vec<v1::Hold>) -> Checked<Vec<Hold>> {
    if holds.len() > MAX_LOCATED {
        return Err(ApiError::invalid(format!(
            "the request names {} holds; at most {MAX_LOCATED} can be looked for at once",
            holds.len()
        )));
    }
    let checked = |hold: v1::Hold| {
        if hold.claim {
            let text = hold.name.map(|name| name.text).unwrap_or_default();
            let name = Name::claim(&text).map_err(|error| ApiError::invalid(error.to_string()))?;
            return Ok(Hold { session, name, token: Revision(0) });
        }
        Ok(Hold { session, name: name(hold.name)?, token: token(hold.token)? })
    };
    holds.into_iter().map(checked).collect()
}

pub(super) fn ttl_ms(ttl_ms: u64) -> Checked<u64> {
    match ttl_ms {
        0 => Ok(DEFAULT_TTL_MS),
        MIN_TTL_MS..=MAX_TTL_MS => Ok(ttl_ms),
        _ => Err(ApiError::invalid(format!("ttl_ms is {ttl_ms}; it must be {MIN_TTL_MS} to {MAX_TTL_MS}"))),
    }
}

pub(super) fn wait(wait: Option<v1::acquire::Wait>) -> Checked<Wait> {
    match wait {
        Some(v1::acquire::Wait::Try(_) | v1::acquire::Wait::AtMostMs(0)) => Ok(Wait::Try),
        Some(v1::acquire::Wait::AtMostMs(ms)) if ms <= MAX_WAIT_MS => Ok(Wait::AtMost(ms)),
        Some(v1::acquire::Wait::AtMostMs(ms)) => {
            Err(ApiError::invalid(format!("the wait limit is {ms} ms; it must be at most {MAX_WAIT_MS} ms")))
        }
        Some(v1::acquire::Wait::Unlimited(_)) => Ok(Wait::Unlimited),
        None => Err(ApiError::invalid("the request does not say whether and how long to wait")),
    }
}

pub(super) fn metadata(map: HashMap<String, String>) -> Checked<Metadata> {
    Metadata::new(BTreeMap::from_iter(map)).map_err(|error| ApiError::invalid(error.to_string()))
}

pub(super) fn value(value: Bytes) -> Checked<Bytes> {
    if value.len() > MAX_VALUE_BYTES {
        return Err(ApiError::invalid(format!(
            "the value has {} bytes; at most 65536 are kept",
            value.len()
        )));
    }
    Ok(value)
}

/// Sequence numbers: the request's own and the lowest without an answer.
pub(super) fn sequence(sequence: u64, lowest: u64) -> Checked<(u64, u64)> {
    if sequence == 0 || lowest == 0 || lowest > sequence {
        return Err(ApiError::invalid(format!(
            "sequence {sequence} and lowest outstanding {lowest} must be at least 1, and the latter not above the former"
        )));
    }
    Ok((sequence, lowest))
}

pub(super) fn page_limit(limit: u32) -> Checked<u32> {
    match limit {
        0 => Ok(DEFAULT_PAGE),
        1..=MAX_PAGE => Ok(limit),
        _ => Err(ApiError::invalid(format!("limit is {limit}; it must be 1 to {MAX_PAGE}"))),
    }
}

pub(super) fn cursor(cursor: Option<String>) -> Checked<Option<String>> {
    match cursor {
        Some(text) if text.len() > MAX_CURSOR_BYTES => {
            Err(ApiError::invalid("the cursor is not one of this service's"))
        }
        Some(_) | None => Ok(cursor),
    }
}

/// Who asks, for the audit log.
pub(super) fn actor(actor: String) -> Checked<String> {
    if actor.trim().is_empty() || actor.len() > MAX_ACTOR_BYTES {
        return Err(ApiError::invalid("actor must have 1 to 256 bytes; it goes into the audit log"));
    }
    Ok(actor)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::endpoint::ErrorCode;

    fn refused<T: std::fmt::Debug>(checked: Checked<T>) -> bool {
        checked.is_err_and(|error| error.code == ErrorCode::InvalidArgument)
    }

    #[test]
    fn numbers_outside_their_bounds_are_refused() {
        assert!(refused(session(0)) && refused(session(1 << 63)) && session(1).is_ok());
        assert!(refused(token(0)) && refused(token(1 << 53)) && token((1 << 53) - 1).is_ok());
        assert!(refused(ttl_ms(999)) && refused(ttl_ms(86_400_001)) && refused(ttl_ms(u64::MAX)));
        assert_eq!((ttl_ms(0), ttl_ms(1_000)), (Ok(DEFAULT_TTL_MS), Ok(1_000)));
        assert!(refused(page_limit(1_001)) && page_limit(0) == Ok(DEFAULT_PAGE));
        assert!(refused(sequence(0, 0)) && refused(sequence(3, 4)) && sequence(4, 4) == Ok((4, 4)));
    }

    #[test]
    fn an_acquire_says_whether_it_waits() {
        assert!(refused(wait(None)));
        assert!(refused(wait(Some(v1::acquire::Wait::AtMostMs(MAX_WAIT_MS + 1)))));
        assert_eq!(wait(Some(v1::acquire::Wait::AtMostMs(0))), Ok(Wait::Try));
    }

    #[test]
    fn names_follow_the_one_rule() {
        let text = |text: &str| name(Some(v1::Name { text: text.into(), election: true }));
        assert!(refused(name(None)) && refused(text("")) && refused(text("a\u{1}")) && text("a//b").is_ok());
        assert!(refused(prefix("\n".into())) && prefix(String::new()).is_ok());
    }

    #[test]
    fn texts_and_values_have_bounds() {
        assert!(refused(value(Bytes::from(vec![0; MAX_VALUE_BYTES + 1]))));
        assert!(refused(actor(" ".into())) && actor("eve".into()).is_ok());
        assert!(refused(cursor(Some("x".repeat(MAX_CURSOR_BYTES + 1)))));
        assert!(refused(metadata(HashMap::from([("k".into(), "v".repeat(5_000))]))));
    }
}

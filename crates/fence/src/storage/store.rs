//! Objects behind the HTTP routes, in whichever database.
//!
//! HTTP is not known here, and the fence is the guards' business.

use std::sync::Arc;

use serde::Serialize;
use serde_json::value::RawValue;

use super::{options::Database, postgres_store::PostgresStore, sqlite_store::SqliteStore};
use crate::{
    check::TokenCheck,
    error::{DatabaseError, FenceError},
};

/// A write that asks to be accepted.
#[derive(Debug)]
pub(super) struct Write {
    pub(super) name: String,
    pub(super) lock: String,
    pub(super) token: u64,
    pub(super) data: Box<RawValue>,
}

/// An object without its data.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Summary {
    pub(super) name: String,
    /// Lock of the last accepted write.
    pub(super) lock: String,
    /// Token of the last accepted write.
    pub(super) token: u64,
    /// Number of accepted writes.
    pub(super) version: u64,
}

/// An object.
#[derive(Debug, Serialize)]
pub(super) struct Object {
    #[serde(flatten)]
    pub(super) summary: Summary,
    /// As it was written, byte for byte.
    pub(super) data: Box<RawValue>,
}

/// Which objects to list: names that start with `prefix`, after `after`, in byte order.
#[derive(Debug)]
pub(super) struct Page {
    pub(super) prefix: String,
    pub(super) after: String,
    pub(super) limit: u32,
}

impl Page {
    /// The first name behind all that start with the prefix; `None` if there is no such name.
    pub(super) fn end(&self) -> Option<String> {
        let mut end = self.prefix.clone();
        while let Some(last) = end.pop() {
            // In UTF-8 the order of bytes is the order of code points, with a gap where surrogates are.
            let next =
                if last == '\u{d7ff}' { Some('\u{e000}') } else { char::from_u32(u32::from(last) + 1) };
            if let Some(next) = next {
                end.push(next);
                return Some(end);
            }
        }
        None
    }
}

/// The objects.
#[derive(Clone, Debug)]
pub(super) enum Store {
    Sqlite(SqliteStore),
    Postgres(PostgresStore),
}

impl Store {
    pub(super) async fn open(
        database: &Database,
        check: Option<Arc<dyn TokenCheck>>,
    ) -> Result<Self, FenceError> {
        match database {
            Database::Sqlite(path) => Ok(Self::Sqlite(SqliteStore::open(path, check).await?)),
            Database::Postgres(config) => Ok(Self::Postgres(PostgresStore::open(config, check).await?)),
        }
    }

    /// Stores and answers after the commit.
    pub(super) async fn put(&self, write: Write) -> Result<Summary, FenceError> {
        match self {
            Self::Sqlite(store) => store.put(write).await,
            Self::Postgres(store) => store.put(write).await,
        }
    }

    pub(super) async fn get(&self, name: &str) -> Result<Option<Object>, FenceError> {
        let found = match self {
            Self::Sqlite(store) => store.get(name).await?,
            Self::Postgres(store) => store.get(name).await?,
        };
        let Some((summary, data)) = found else { return Ok(None) };
        match RawValue::from_string(data) {
            Ok(data) => Ok(Some(Object { summary, data })),
            Err(_) => Err(DatabaseError::DamagedObject { object: summary.name }.into()),
        }
    }

    pub(super) async fn list(&self, page: Page) -> Result<Vec<Summary>, FenceError> {
        match self {
            Self::Sqlite(store) => store.list(page).await,
            Self::Postgres(store) => store.list(page).await,
        }
    }

    /// Raises the mark of a lock and returns it.
    pub(super) async fn advance(&self, lock: &str, token: u64) -> Result<u64, FenceError> {
        match self {
            Self::Sqlite(store) => store.guard().advance(lock, token).await,
            Self::Postgres(store) => store.guard().advance(lock, token).await,
        }
    }

    /// Whether the database answers.
    pub(super) async fn ready(&self) -> Result<(), FenceError> {
        let nothing = Page { prefix: String::new(), after: String::new(), limit: 1 };
        self.list(nothing).await.map(|_objects| ())
    }

    pub(super) async fn close(&self) -> Result<(), FenceError> {
        match self {
            Self::Sqlite(store) => store.guard().clone().close().await,
            Self::Postgres(store) => {
                store.close();
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_prefix_is_behind_every_name_that_starts_with_it() {
        for (prefix, end) in [
            ("", None),
            ("a/", Some("a0")),
            ("a\u{10ffff}", Some("b")),
            ("\u{10ffff}", None),
            ("\u{d7ff}", Some("\u{e000}")),
            ("é", Some("ê")),
        ] {
            let page = Page { prefix: prefix.into(), after: String::new(), limit: 1 };
            assert_eq!(page.end().as_deref(), end, "{prefix:?}");
            assert!(end.is_none_or(|end| format!("{prefix}\u{10ffff}\u{10ffff}").as_str() < end));
        }
    }
}

//! The seam to wherever snapshots are kept for disasters: named objects, as every object store has them.
//!
//! Nothing here assumes a file system: no folders, no rename, no append. The one thing beyond put and get is creating an
//! object only if it does not exist, which S3 offers as `If-None-Match: *`. Large objects go and come in chunks, so that no
//! store needs more memory than a few parts of one.

use std::{fmt, str::FromStr};

use bytes::Bytes;
use futures::{future::BoxFuture, stream::BoxStream};

pub use super::store_error::{StoreCause, StoreError};

/// Longest object name, bytes: the limit of S3.
const MAX_NAME_LEN: usize = 1_024;

/// Name of an object: segments of `a-z A-Z 0-9 . _ -` with `/` between; no segment is empty or begins with a dot.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectName(String);

impl ObjectName {
    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for ObjectName {
    type Err = StoreError;

    fn from_str(text: &str) -> Result<ObjectName, StoreError> {
        let letter = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
        let segment = |s: &str| !s.is_empty() && !s.starts_with('.') && s.chars().all(letter);
        if text.len() <= MAX_NAME_LEN && text.split('/').all(segment) {
            Ok(ObjectName(text.to_owned()))
        } else {
            Err(StoreError::InvalidName { name: text.to_owned() })
        }
    }
}

impl fmt::Display for ObjectName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What happens to an object of that name that is there already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PutMode {
    /// It is replaced.
    Replace,
    /// It stays, and the put fails with [`StoreError::AlreadyExists`]. Of several at the same time exactly one succeeds.
    CreateOnly,
}

/// An object in a listing.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ObjectInfo {
    /// Its name.
    pub name: ObjectName,
    /// Its length, bytes.
    pub size_bytes: u64,
}

/// An object on its way into the store. It is not there before [`Upload::finish`] has answered; dropped, it never is.
pub trait Upload: fmt::Debug + Send {
    /// Takes the next bytes, of any length. Waits while the store has enough of them.
    fn write(&mut self, chunk: Bytes) -> BoxFuture<'_, Result<(), StoreError>>;

    /// Makes the object durable and visible, as a whole.
    fn finish(self: Box<Self>) -> BoxFuture<'static, Result<(), StoreError>>;

    /// Takes back what was written. What that leaves behind, [`SnapshotStore::sweep`] finds later.
    fn abort(self: Box<Self>) -> BoxFuture<'static, ()>;
}

/// The bytes of an object, in chunks of any length; ends after the first error.
pub type ObjectStream = BoxStream<'static, Result<Bytes, StoreError>>;

/// A place for objects. A put is durable and whole once it has answered: readers never see a part of an object.
pub trait SnapshotStore: fmt::Debug + Send + Sync + 'static {
    /// Writes a small object.
    fn put<'a>(
        &'a self,
        name: &'a ObjectName,
        data: Bytes,
        mode: PutMode,
    ) -> BoxFuture<'a, Result<(), StoreError>>;

    /// Begins an object that comes in chunks; `mode` is decided when it is finished.
    fn upload<'a>(
        &'a self,
        name: &'a ObjectName,
        mode: PutMode,
    ) -> BoxFuture<'a, Result<Box<dyn Upload>, StoreError>>;

    /// Reads a small object.
    fn get<'a>(&'a self, name: &'a ObjectName) -> BoxFuture<'a, Result<Bytes, StoreError>>;

    /// Reads an object in chunks.
    fn stream<'a>(&'a self, name: &'a ObjectName) -> BoxFuture<'a, Result<ObjectStream, StoreError>>;

    /// The objects whose names begin with `prefix`, by name. An object put before the call is in the list.
    fn list<'a>(&'a self, prefix: &'a str) -> BoxFuture<'a, Result<Vec<ObjectInfo>, StoreError>>;

    /// Deletes an object; that there is none is no error.
    fn delete<'a>(&'a self, name: &'a ObjectName) -> BoxFuture<'a, Result<(), StoreError>>;

    /// Removes what uploads of objects below `prefix` have left behind that began before `before_unix_ms`. Answers how
    /// many there were.
    fn sweep<'a>(&'a self, prefix: &'a str, before_unix_ms: u64) -> BoxFuture<'a, Result<usize, StoreError>>;
}

#[cfg(test)]
pub(crate) mod tests {
    use futures::TryStreamExt as _;

    use super::*;

    pub(crate) fn name(text: &str) -> ObjectName {
        text.parse().unwrap()
    }

    #[test]
    fn only_names_that_every_store_takes_pass() {
        for good in ["a", "cluster/c-1/group/0/x/manifest.json", "A_b.c"] {
            assert!(good.parse::<ObjectName>().is_ok(), "{good}");
        }
        for bad in ["", "/a", "a/", "a//b", "..", "a/../b", ".hidden", "a b", "ä", &"x".repeat(1_025)] {
            assert!(bad.parse::<ObjectName>().is_err(), "{bad}");
        }
    }

    /// What every store must do.
    pub(crate) async fn conforms(store: &dyn SnapshotStore) {
        let put = |text: &'static str, mode| store.put(Box::leak(Box::new(name(text))), text.into(), mode);
        put("a/b/1", PutMode::CreateOnly).await.unwrap();
        let again = store.put(&name("a/b/1"), "other".into(), PutMode::CreateOnly).await;
        assert_eq!(again, Err(StoreError::AlreadyExists { name: name("a/b/1") }));
        assert_eq!(store.get(&name("a/b/1")).await.unwrap(), "a/b/1");
        store.put(&name("a/b/1"), "new".into(), PutMode::Replace).await.unwrap();
        assert_eq!(store.get(&name("a/b/1")).await.unwrap(), "new");
        assert_eq!(store.get(&name("a/b/2")).await, Err(StoreError::NotFound { name: name("a/b/2") }));

        put("a/b/10", PutMode::Replace).await.unwrap();
        put("a/bc", PutMode::Replace).await.unwrap();
        put("b/x", PutMode::Replace).await.unwrap();
        let list = async |prefix: &str| -> Vec<(String, u64)> {
            let infos = store.list(prefix).await.unwrap();
            infos.into_iter().map(|info| (info.name.to_string(), info.size_bytes)).collect()
        };
        let all: Vec<_> =
            [("a/b/1", 3), ("a/b/10", 6), ("a/bc", 4), ("b/x", 3)].map(|(n, s)| (n.to_owned(), s)).into();
        assert_eq!(list("").await, all);
        assert_eq!(list("a/b").await, all[..3]);
        assert_eq!(list("a/b/").await, all[..2]);
        assert_eq!(list("nothing/here").await, []);

        store.delete(&name("a/b/1")).await.unwrap();
        store.delete(&name("a/b/1")).await.unwrap();
        assert_eq!(list("a/").await, all[1..3]);

        uploads_conform(store).await;

        let together =
            (0..8).map(|_| store.put(ONCE.get_or_init(|| name("once")), "x".into(), PutMode::CreateOnly));
        let results = futures::future::join_all(together).await;
        assert_eq!(results.iter().filter(|result| result.is_ok()).count(), 1, "{results:?}");
    }

    /// What every store must do with objects in chunks.
    async fn uploads_conform(store: &dyn SnapshotStore) {
        let large = name("large/1");
        // Several parts of every store, and a rest.
        let chunk = Bytes::from((0..1_000_003_u32).map(|at| (at % 251) as u8).collect::<Vec<u8>>());
        let begin = async |mode| {
            let mut upload = store.upload(&large, mode).await.unwrap();
            for _ in 0..18 {
                upload.write(chunk.clone()).await.unwrap();
            }
            upload
        };
        let upload = begin(PutMode::CreateOnly).await;
        assert_eq!(store.list("large/").await.unwrap(), [], "half an object is none");
        upload.finish().await.unwrap();
        let chunks: Vec<Bytes> = store.stream(&large).await.unwrap().try_collect().await.unwrap();
        assert!(chunks.concat() == chunk.repeat(18), "what was written is read");

        let again = begin(PutMode::CreateOnly).await.finish().await;
        assert_eq!(again, Err(StoreError::AlreadyExists { name: large.clone() }));
        begin(PutMode::Replace).await.abort().await;
        assert_eq!(store.list("large/").await.unwrap()[0].size_bytes, 18 * 1_000_003);
        let empty = store.upload(&large, PutMode::Replace).await.unwrap();
        empty.finish().await.unwrap();
        assert!(store.get(&large).await.unwrap().is_empty());

        drop(begin(PutMode::Replace).await);
        store.sweep("", u64::MAX).await.unwrap();
        assert_eq!(store.sweep("", u64::MAX).await.unwrap(), 0, "all that was left is gone");
        store.delete(&large).await.unwrap();
        let missing = store.stream(&large).await.err();
        assert_eq!(missing, Some(StoreError::NotFound { name: large }));
    }

    static ONCE: std::sync::OnceLock<ObjectName> = std::sync::OnceLock::new();
}

//! A snapshot store in memory: for simulations, and for `demo`, which keeps nothing.

use std::{collections::BTreeMap, sync::Arc};

use bytes::Bytes;
use futures::{FutureExt, future::BoxFuture};
use parking_lot::Mutex;

use super::store::{ObjectInfo, ObjectName, PutMode, SnapshotStore, StoreError};

/// Objects in memory. Clones are the same store.
#[derive(Clone, Debug, Default)]
pub struct MemoryStore {
    objects: Arc<Mutex<BTreeMap<ObjectName, Bytes>>>,
}

impl MemoryStore {
    fn put_now(&self, name: &ObjectName, data: Bytes, mode: PutMode) -> Result<(), StoreError> {
        let mut objects = self.objects.lock();
        match mode {
            PutMode::CreateOnly if objects.contains_key(name) => {
                Err(StoreError::AlreadyExists { name: name.clone() })
            }
            PutMode::CreateOnly | PutMode::Replace => {
                objects.insert(name.clone(), data);
                Ok(())
            }
        }
    }
}

impl SnapshotStore for MemoryStore {
    fn put<'a>(
        &'a self,
        name: &'a ObjectName,
        data: Bytes,
        mode: PutMode,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        async move { self.put_now(name, data, mode) }.boxed()
    }

    fn get<'a>(&'a self, name: &'a ObjectName) -> BoxFuture<'a, Result<Bytes, StoreError>> {
        async move {
            let found = self.objects.lock().get(name).cloned();
            found.ok_or_else(|| StoreError::NotFound { name: name.clone() })
        }
        .boxed()
    }

    fn list<'a>(&'a self, prefix: &'a str) -> BoxFuture<'a, Result<Vec<ObjectInfo>, StoreError>> {
        async move {
            let objects = self.objects.lock();
            let infos = objects.iter().filter(|(name, _data)| name.as_str().starts_with(prefix));
            Ok(infos
                .map(|(name, data)| ObjectInfo { name: name.clone(), size_bytes: data.len() as u64 })
                .collect())
        }
        .boxed()
    }

    fn delete<'a>(&'a self, name: &'a ObjectName) -> BoxFuture<'a, Result<(), StoreError>> {
        async move {
            self.objects.lock().remove(name);
            Ok(())
        }
        .boxed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_memory_store_conforms() {
        super::super::store::tests::conforms(&MemoryStore::default()).await;
    }
}

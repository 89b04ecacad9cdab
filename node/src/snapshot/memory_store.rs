//! A snapshot store in memory: for simulations, and for `demo`, which keeps nothing.

use std::{collections::BTreeMap, sync::Arc};

use bytes::Bytes;
use futures::{FutureExt, StreamExt, future::BoxFuture, stream};
use parking_lot::Mutex;

use super::{
    compression::CHUNK_BYTES,
    store::{ObjectInfo, ObjectName, ObjectStream, PutMode, SnapshotStore, StoreError, Upload},
};

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

    fn get_now(&self, name: &ObjectName) -> Result<Bytes, StoreError> {
        let found = self.objects.lock().get(name).cloned();
        found.ok_or_else(|| StoreError::NotFound { name: name.clone() })
    }
}

/// An object that is not there yet.
#[derive(Debug)]
struct MemoryUpload {
    store: MemoryStore,
    name: ObjectName,
    mode: PutMode,
    data: Vec<u8>,
}

impl Upload for MemoryUpload {
    fn write(&mut self, chunk: Bytes) -> BoxFuture<'_, Result<(), StoreError>> {
        self.data.extend_from_slice(&chunk);
        async { Ok(()) }.boxed()
    }

    fn finish(self: Box<Self>) -> BoxFuture<'static, Result<(), StoreError>> {
        async move { self.store.put_now(&self.name, self.data.into(), self.mode) }.boxed()
    }

    fn abort(self: Box<Self>) -> BoxFuture<'static, ()> {
        async {}.boxed()
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

    fn upload<'a>(
        &'a self,
        name: &'a ObjectName,
        mode: PutMode,
    ) -> BoxFuture<'a, Result<Box<dyn Upload>, StoreError>> {
        let upload = MemoryUpload { store: self.clone(), name: name.clone(), mode, data: Vec::new() };
        async move { Ok(Box::new(upload) as Box<dyn Upload>) }.boxed()
    }

    fn get<'a>(&'a self, name: &'a ObjectName) -> BoxFuture<'a, Result<Bytes, StoreError>> {
        async move { self.get_now(name) }.boxed()
    }

    fn stream<'a>(&'a self, name: &'a ObjectName) -> BoxFuture<'a, Result<ObjectStream, StoreError>> {
        async move {
            let mut rest = self.get_now(name)?;
            let chunks = std::iter::from_fn(move || {
                let next = rest.split_to(rest.len().min(CHUNK_BYTES));
                (!next.is_empty()).then_some(Ok(next))
            });
            Ok(stream::iter(chunks).boxed())
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

    /// An upload that is dropped leaves nothing behind here.
    fn sweep<'a>(
        &'a self,
        _prefix: &'a str,
        _before_unix_ms: u64,
    ) -> BoxFuture<'a, Result<usize, StoreError>> {
        async { Ok(0) }.boxed()
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

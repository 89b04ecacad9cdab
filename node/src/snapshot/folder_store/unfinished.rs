//! Objects of the folder store that have no name yet. Whatever happens to the process that writes one, it is never read.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::{
        LazyLock,
        atomic::{AtomicU64, Ordering},
    },
};

use bytes::Bytes;
use futures::{FutureExt, future::BoxFuture};
use tokio::{fs::File, io::AsyncWriteExt};

use super::{FolderStore, UNFINISHED, store_error};
use crate::snapshot::store::{ObjectName, PutMode, StoreError, Upload};

/// Tells apart the processes that write to one folder. Their numbers do not: each container counts from 1.
static PROCESS: LazyLock<u64> = LazyLock::new(rand::random);
/// Tells apart the unfinished objects of one process.
static NEXT: AtomicU64 = AtomicU64::new(0);

/// The file of an unfinished object; it goes when this is dropped, unless it was renamed.
#[derive(Debug)]
pub(super) struct Unfinished(PathBuf);

impl Unfinished {
    /// A name that nobody else has.
    pub(super) fn within(folder: &Path) -> Unfinished {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        Unfinished(folder.join(format!("{:016x}-{number}", *PROCESS)))
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        match fs::remove_file(&self.0) {
            Ok(()) => {}
            Err(err) if err.kind() == std::io::ErrorKind::NotFound => {}
            Err(err) => {
                tracing::debug!(path = %self.0.display(), error = %err, "cannot delete an unfinished object");
            }
        }
    }
}

/// An object on its way into a folder.
#[derive(Debug)]
pub(super) struct FolderUpload {
    store: FolderStore,
    name: ObjectName,
    mode: PutMode,
    file: File,
    unfinished: Unfinished,
}

impl FolderUpload {
    pub(super) async fn begin(
        store: &FolderStore,
        name: &ObjectName,
        mode: PutMode,
    ) -> Result<FolderUpload, StoreError> {
        let unfinished = Unfinished::within(&store.root.join(UNFINISHED));
        let file = File::create_new(unfinished.path())
            .await
            .map_err(|err| store_error("write", &store.path(name), &err))?;
        Ok(FolderUpload { store: store.clone(), name: name.clone(), mode, file, unfinished })
    }

    fn failed(&self, err: &std::io::Error) -> StoreError {
        store_error("write", &self.store.path(&self.name), err)
    }

    async fn finish_now(mut self) -> Result<(), StoreError> {
        self.file.flush().await.map_err(|err| self.failed(&err))?;
        self.file.sync_all().await.map_err(|err| self.failed(&err))?;
        let FolderUpload { store, name, mode, unfinished, .. } = self;
        let object = name.clone();
        let publish = move |store: &FolderStore| store.publish_now(&unfinished, &object, mode);
        store.blocking("write", name.as_str(), publish).await
    }
}

impl Upload for FolderUpload {
    fn write(&mut self, chunk: Bytes) -> BoxFuture<'_, Result<(), StoreError>> {
        async move { self.file.write_all(&chunk).await.map_err(|err| self.failed(&err)) }.boxed()
    }

    fn finish(self: Box<Self>) -> BoxFuture<'static, Result<(), StoreError>> {
        (*self).finish_now().boxed()
    }

    fn abort(self: Box<Self>) -> BoxFuture<'static, ()> {
        async move { drop(self) }.boxed()
    }
}

//! The snapshot store in a folder, also one that several members share: the embedded default.
//!
//! Objects are written in a folder of their own for unfinished ones, fsynced, and then given their name: by rename, or by
//! a hard link where they must not replace another.

use std::{
    fs::{self, File},
    io::{self, Write},
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use bytes::{Bytes, BytesMut};
use futures::{FutureExt, StreamExt, future::BoxFuture, stream};
use tokio::io::AsyncReadExt;

use self::unfinished::{FolderUpload, Unfinished};
use super::{
    compression::CHUNK_BYTES,
    store::{ObjectInfo, ObjectName, ObjectStream, PutMode, SnapshotStore, StoreCause, StoreError, Upload},
};
use crate::log::durable_folder::{make_folder, sync_folder};

mod unfinished;

/// Folder of unfinished objects within the store; no object name begins with a dot.
const UNFINISHED: &str = ".unfinished";
/// How often a put makes the object's folder again because somebody deleted the last object in it.
const FOLDER_ATTEMPTS: u32 = 5;

/// Objects as files below a folder.
#[derive(Clone, Debug)]
pub struct FolderStore {
    root: PathBuf,
}

impl FolderStore {
    /// Opens the store in `root`; makes the folder if need be. Blocks on the disk shortly.
    ///
    /// # Errors
    /// [`StoreError::Refused`] when the folder cannot be made or listed.
    pub fn open(root: &Path) -> Result<FolderStore, StoreError> {
        make_folder(&root.join(UNFINISHED)).map_err(|err| store_error("open", root, &err))?;
        Ok(FolderStore { root: root.to_owned() })
    }

    fn path(&self, name: &ObjectName) -> PathBuf {
        self.root.join(name.as_str())
    }

    fn put_now(&self, name: &ObjectName, data: &[u8], mode: PutMode) -> Result<(), StoreError> {
        let target = self.path(name);
        let unfinished = Unfinished::within(&self.root.join(UNFINISHED));
        write_durably(unfinished.path(), data).map_err(|err| store_error("write", &target, &err))?;
        self.publish_now(&unfinished, name, mode)
    }

    fn publish_now(
        &self,
        unfinished: &Unfinished,
        name: &ObjectName,
        mode: PutMode,
    ) -> Result<(), StoreError> {
        let target = self.path(name);
        publish(unfinished.path(), &target, mode).map_err(|err| match (mode, err.kind()) {
            (PutMode::CreateOnly, io::ErrorKind::AlreadyExists) => {
                StoreError::AlreadyExists { name: name.clone() }
            }
            (PutMode::CreateOnly | PutMode::Replace, _) => store_error("write", &target, &err),
        })
    }

    fn get_now(&self, name: &ObjectName) -> Result<Bytes, StoreError> {
        let path = self.path(name);
        match fs::read(&path) {
            Ok(data) => Ok(data.into()),
            Err(err) => Err(self.read_error(name, &err)),
        }
    }

    fn read_error(&self, name: &ObjectName, err: &io::Error) -> StoreError {
        match err.kind() {
            io::ErrorKind::NotFound => StoreError::NotFound { name: name.clone() },
            _ => store_error("read", &self.path(name), err),
        }
    }

    async fn stream_now(&self, name: &ObjectName) -> Result<ObjectStream, StoreError> {
        let file = tokio::fs::File::open(self.path(name)).await.map_err(|err| self.read_error(name, &err))?;
        let (store, name) = (self.clone(), name.clone());
        let chunks = stream::try_unfold(file, move |mut file| {
            let (store, name) = (store.clone(), name.clone());
            async move {
                let mut chunk = BytesMut::with_capacity(CHUNK_BYTES);
                let read = file.read_buf(&mut chunk).await.map_err(|err| store.read_error(&name, &err))?;
                Ok((read > 0).then(|| (chunk.freeze(), file)))
            }
        });
        Ok(chunks.boxed())
    }

    /// Whoever writes an object touches it all the time: what is old was left by a process that is gone.
    fn sweep_now(&self, before: SystemTime) -> Result<usize, StoreError> {
        let folder = self.root.join(UNFINISHED);
        let failed = |err: io::Error| store_error("clean", &folder, &err);
        let mut removed = 0;
        for entry in fs::read_dir(&folder).map_err(failed)? {
            let path = entry.map_err(failed)?.path();
            let modified = path.metadata().and_then(|metadata| metadata.modified());
            if modified.is_ok_and(|modified| modified < before) && fs::remove_file(&path).is_ok() {
                removed += 1;
            }
        }
        Ok(removed)
    }

    fn list_now(&self, prefix: &str) -> Result<Vec<ObjectInfo>, StoreError> {
        // Everything up to the last slash is a folder; it must not lead out of the store.
        let folder = prefix.rsplit_once('/').map_or("", |(folder, _rest)| folder);
        if !folder.is_empty() {
            folder.parse::<ObjectName>()?;
        }
        let mut infos = Vec::new();
        let path = self.root.join(folder);
        collect(&path, folder, &mut infos).map_err(|err| store_error("list", &path, &err))?;
        infos.retain(|info| info.name.as_str().starts_with(prefix));
        infos.sort_unstable();
        Ok(infos)
    }

    fn delete_now(&self, name: &ObjectName) -> Result<(), StoreError> {
        let path = self.path(name);
        let failed = |err: io::Error| store_error("delete", &path, &err);
        match fs::remove_file(&path) {
            Ok(()) => {}
            Err(err) if err.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(err) => return Err(failed(err)),
        }
        if let Some(folder) = path.parent() {
            sync_folder(folder).map_err(failed)?;
            // Only an empty folder goes, and that one is in nobody's way: what this says is of no interest.
            drop(fs::remove_dir(folder));
        }
        Ok(())
    }

    fn blocking<'a, T, F>(
        &self,
        act: &'static str,
        name: &str,
        run: F,
    ) -> BoxFuture<'a, Result<T, StoreError>>
    where
        T: Send + 'static,
        F: FnOnce(&FolderStore) -> Result<T, StoreError> + Send + 'static,
    {
        let (store, name) = (self.clone(), name.to_owned());
        async move {
            let joined = tokio::task::spawn_blocking(move || run(&store)).await;
            joined.unwrap_or_else(|err| {
                let (cause, reason) = (StoreCause::Other, err.to_string());
                Err(StoreError::Unavailable { act, name, cause, reason })
            })
        }
        .boxed()
    }
}

impl SnapshotStore for FolderStore {
    fn put<'a>(
        &'a self,
        name: &'a ObjectName,
        data: Bytes,
        mode: PutMode,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        let object = name.clone();
        self.blocking("write", name.as_str(), move |store| store.put_now(&object, &data, mode))
    }

    fn upload<'a>(
        &'a self,
        name: &'a ObjectName,
        mode: PutMode,
    ) -> BoxFuture<'a, Result<Box<dyn Upload>, StoreError>> {
        async move {
            let upload = FolderUpload::begin(self, name, mode).await?;
            Ok(Box::new(upload) as Box<dyn Upload>)
        }
        .boxed()
    }

    fn get<'a>(&'a self, name: &'a ObjectName) -> BoxFuture<'a, Result<Bytes, StoreError>> {
        let object = name.clone();
        self.blocking("read", name.as_str(), move |store| store.get_now(&object))
    }

    fn stream<'a>(&'a self, name: &'a ObjectName) -> BoxFuture<'a, Result<ObjectStream, StoreError>> {
        self.stream_now(name).boxed()
    }

    fn list<'a>(&'a self, prefix: &'a str) -> BoxFuture<'a, Result<Vec<ObjectInfo>, StoreError>> {
        let begin = prefix.to_owned();
        self.blocking("list", prefix, move |store| store.list_now(&begin))
    }

    fn delete<'a>(&'a self, name: &'a ObjectName) -> BoxFuture<'a, Result<(), StoreError>> {
        let object = name.clone();
        self.blocking("delete", name.as_str(), move |store| store.delete_now(&object))
    }

    /// Of all prefixes: the names of unfinished objects do not say where they belong.
    fn sweep<'a>(
        &'a self,
        _prefix: &'a str,
        before_unix_ms: u64,
    ) -> BoxFuture<'a, Result<usize, StoreError>> {
        let before = SystemTime::UNIX_EPOCH.checked_add(Duration::from_millis(before_unix_ms));
        // A time that the system cannot name lies behind every file.
        let before = before.unwrap_or_else(SystemTime::now);
        self.blocking("clean", UNFINISHED, move |store| store.sweep_now(before))
    }
}

fn write_durably(path: &Path, data: &[u8]) -> io::Result<()> {
    let mut file = File::create_new(path)?;
    file.write_all(data)?;
    file.sync_all()
}

/// Gives the finished object its name, durably.
fn publish(unfinished: &Path, target: &Path, mode: PutMode) -> io::Result<()> {
    let folder = target.parent().unwrap_or(Path::new("."));
    for attempt in 1.. {
        make_folder(folder)?;
        let named = match mode {
            PutMode::Replace => fs::rename(unfinished, target),
            PutMode::CreateOnly => fs::hard_link(unfinished, target),
        };
        match named {
            Ok(()) => break,
            Err(err) if err.kind() == io::ErrorKind::NotFound && attempt < FOLDER_ATTEMPTS => {}
            Err(err) => return Err(err),
        }
    }
    sync_folder(folder)
}

/// All objects at or below `folder`, whose name in the store is `name`.
fn collect(folder: &Path, name: &str, infos: &mut Vec<ObjectInfo>) -> io::Result<()> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(err) if err.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(err) => return Err(err),
    };
    for entry in entries {
        let entry = entry?;
        let Ok(segment) = entry.file_name().into_string() else { continue };
        let inner = if name.is_empty() { segment } else { format!("{name}/{segment}") };
        // What has no object's name (unfinished ones, files that somebody else put here) is not ours.
        let Ok(object) = inner.parse::<ObjectName>() else { continue };
        let metadata = match entry.metadata() {
            Ok(metadata) => metadata,
            // Deleted meanwhile.
            Err(err) if err.kind() == io::ErrorKind::NotFound => continue,
            Err(err) => return Err(err),
        };
        if metadata.is_dir() {
            collect(&entry.path(), &inner, infos)?;
        } else {
            infos.push(ObjectInfo { name: object, size_bytes: metadata.len() });
        }
    }
    Ok(())
}

/// Names the file and not only the object: whoever has to make room needs to know where.
fn store_error(act: &'static str, path: &Path, err: &io::Error) -> StoreError {
    let (name, reason) = (path.display().to_string(), err.to_string());
    let refused = |cause| StoreError::Refused { act, name: name.clone(), cause, reason: reason.clone() };
    let unavailable =
        |cause| StoreError::Unavailable { act, name: name.clone(), cause, reason: reason.clone() };
    match err.kind() {
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            refused(StoreCause::Permission)
        }
        io::ErrorKind::AlreadyExists
        | io::ErrorKind::NotADirectory
        | io::ErrorKind::IsADirectory
        | io::ErrorKind::Unsupported => refused(StoreCause::Other),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => unavailable(StoreCause::Space),
        _ => unavailable(StoreCause::Other),
    }
}

#[cfg(test)]
mod tests {
    use super::{super::store::tests::name, *};

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn the_folder_store_conforms() {
        let folder = tempfile::tempdir().unwrap();
        let store = FolderStore::open(&folder.path().join("made/when/needed")).unwrap();
        super::super::store::tests::conforms(&store).await;
        let unfinished = fs::read_dir(folder.path().join("made/when/needed/.unfinished")).unwrap();
        assert_eq!(unfinished.count(), 0, "nothing is left behind");
    }

    #[tokio::test]
    async fn what_dead_processes_left_is_swept() {
        let folder = tempfile::tempdir().unwrap();
        let store = FolderStore::open(folder.path()).unwrap();
        let left = folder.path().join(".unfinished/7-1");
        fs::write(&left, "half").unwrap();
        assert_eq!(store.sweep("", 1_000).await.unwrap(), 0, "it may still be written");
        assert_eq!(store.sweep("", u64::MAX).await.unwrap(), 1);
        assert!(!left.exists());
    }

    #[tokio::test]
    async fn what_others_put_into_the_folder_is_not_listed() {
        let folder = tempfile::tempdir().unwrap();
        let store = FolderStore::open(folder.path()).unwrap();
        store.put(&name("a/1"), "x".into(), PutMode::Replace).await.unwrap();
        fs::write(folder.path().join(".unfinished/7-1"), "half").unwrap();
        fs::write(folder.path().join("a/read me.txt"), "hello").unwrap();
        let names: Vec<String> =
            store.list("").await.unwrap().into_iter().map(|info| info.name.to_string()).collect();
        assert_eq!(names, ["a/1"]);
        assert!(matches!(store.list("../").await, Err(StoreError::InvalidName { .. })));
    }

    #[tokio::test]
    async fn the_last_object_takes_its_folder_along() {
        let folder = tempfile::tempdir().unwrap();
        let store = FolderStore::open(folder.path()).unwrap();
        store.put(&name("a/b/1"), "x".into(), PutMode::Replace).await.unwrap();
        store.put(&name("a/b/2"), "x".into(), PutMode::Replace).await.unwrap();
        store.delete(&name("a/b/1")).await.unwrap();
        assert!(folder.path().join("a/b").exists());
        store.delete(&name("a/b/2")).await.unwrap();
        assert!(!folder.path().join("a/b").exists());
        store.put(&name("a/b/3"), "x".into(), PutMode::CreateOnly).await.unwrap();
    }

    #[test]
    fn a_root_that_cannot_be_a_folder_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("file"), "x").unwrap();
        let err = FolderStore::open(&folder.path().join("file")).unwrap_err();
        assert!(!err.retryable() && err.to_string().contains("refuses to open"), "{err}");
    }

    #[test]
    fn a_full_disk_is_said_with_the_file_and_what_to_do() {
        let err = store_error("write", Path::new("/snaps/a/1"), &io::ErrorKind::StorageFull.into());
        assert!(err.retryable(), "there may be room later");
        assert_eq!(
            err.to_string(),
            "the snapshot store cannot write /snaps/a/1 now: no storage space; make room there, or keep fewer snapshots (snapshots.keep, snapshots.max_age)"
        );
    }

    #[tokio::test]
    async fn errors_name_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let store = FolderStore::open(folder.path()).unwrap();
        fs::create_dir(folder.path().join("a")).unwrap();
        let path = folder.path().join("a").display().to_string();
        let object = name("a");
        let refused = [
            store.put(&object, "x".into(), PutMode::Replace).await.unwrap_err(),
            store.get(&object).await.unwrap_err(),
            store.delete(&object).await.unwrap_err(),
        ];
        for err in refused {
            assert!(err.to_string().contains(&path), "{err}");
        }
    }
}

//! The snapshot store in a folder, also one that several members share: the embedded default.
//!
//! Objects are written in a folder of their own for unfinished ones, fsynced, and then given their name: by rename, or by
//! a hard link where they must not replace another.

use std::{
    fs::{self, File},
    io::{self, Write},
    path::{Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, SystemTime},
};

use bytes::Bytes;
use futures::{FutureExt, future::BoxFuture};

use super::store::{ObjectInfo, ObjectName, PutMode, SnapshotStore, StoreError};
use crate::log::durable_folder::{make_folder, sync_folder};

/// Folder of unfinished objects within the store; no object name begins with a dot.
const UNFINISHED: &str = ".unfinished";
/// Age at which an unfinished object was surely left by a process that is gone.
const LEFTOVER_AGE: Duration = Duration::from_secs(24 * 3600);
/// How often a put makes the object's folder again because somebody deleted the last object in it.
const FOLDER_ATTEMPTS: u32 = 5;

/// Tells apart the unfinished objects of one process.
static NEXT_UNFINISHED: AtomicU64 = AtomicU64::new(0);

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
        let failed = |err: io::Error| store_error("open", root, &err);
        let unfinished = root.join(UNFINISHED);
        make_folder(&unfinished).map_err(failed)?;
        for entry in fs::read_dir(&unfinished).map_err(failed)? {
            let path = entry.map_err(failed)?.path();
            if age(&path).is_some_and(|age| age > LEFTOVER_AGE)
                && let Err(err) = fs::remove_file(&path)
            {
                tracing::warn!(path = %path.display(), error = %err, "cannot delete an unfinished object");
            }
        }
        Ok(FolderStore { root: root.to_owned() })
    }

    fn path(&self, name: &ObjectName) -> PathBuf {
        self.root.join(name.as_str())
    }

    fn put_now(&self, name: &ObjectName, data: &[u8], mode: PutMode) -> Result<(), StoreError> {
        let number = NEXT_UNFINISHED.fetch_add(1, Ordering::Relaxed);
        let unfinished = self.root.join(UNFINISHED).join(format!("{}-{number}", std::process::id()));
        let target = self.path(name);
        let result = write_durably(&unfinished, data).and_then(|()| publish(&unfinished, &target, mode));
        if (mode == PutMode::CreateOnly || result.is_err())
            && let Err(err) = fs::remove_file(&unfinished)
        {
            tracing::debug!(path = %unfinished.display(), error = %err, "cannot delete an unfinished object");
        }
        result.map_err(|err| match (mode, err.kind()) {
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
            Err(err) if err.kind() == io::ErrorKind::NotFound => {
                Err(StoreError::NotFound { name: name.clone() })
            }
            Err(err) => Err(store_error("read", &path, &err)),
        }
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
            joined.unwrap_or_else(|err| Err(StoreError::Unavailable { act, name, reason: err.to_string() }))
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

    fn get<'a>(&'a self, name: &'a ObjectName) -> BoxFuture<'a, Result<Bytes, StoreError>> {
        let object = name.clone();
        self.blocking("read", name.as_str(), move |store| store.get_now(&object))
    }

    fn list<'a>(&'a self, prefix: &'a str) -> BoxFuture<'a, Result<Vec<ObjectInfo>, StoreError>> {
        let begin = prefix.to_owned();
        self.blocking("list", prefix, move |store| store.list_now(&begin))
    }

    fn delete<'a>(&'a self, name: &'a ObjectName) -> BoxFuture<'a, Result<(), StoreError>> {
        let object = name.clone();
        self.blocking("delete", name.as_str(), move |store| store.delete_now(&object))
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

fn age(path: &Path) -> Option<Duration> {
    SystemTime::now().duration_since(path.metadata().ok()?.modified().ok()?).ok()
}

/// Names the file and not only the object: whoever has to make room needs to know where.
fn store_error(act: &'static str, path: &Path, err: &io::Error) -> StoreError {
    let (name, reason) = (path.display().to_string(), err.to_string());
    match err.kind() {
        io::ErrorKind::PermissionDenied
        | io::ErrorKind::ReadOnlyFilesystem
        | io::ErrorKind::AlreadyExists
        | io::ErrorKind::NotADirectory
        | io::ErrorKind::IsADirectory
        | io::ErrorKind::Unsupported => StoreError::Refused { act, name, reason },
        _ => StoreError::Unavailable { act, name, reason },
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
            "the snapshot store cannot write /snaps/a/1 now: no storage space; see that it can be reached and that its disk is well and has space"
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

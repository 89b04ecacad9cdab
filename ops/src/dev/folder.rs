//! The folder of a local cluster: one subfolder per member with its configuration, state and log.
//!
//! Refuses folders that are somebody else's, or in use, or of a cluster of another shape.

use std::{
    fs::{self, File, TryLockError},
    io,
    path::{Path, PathBuf},
};

use holdfast_node::config::{GroupsConfig, ListenConfig, MemberConfig, MemberEntry, SnapshotsConfig};
use serde::{Deserialize, Serialize};
use tempfile::TempDir;

use super::ports::{Block, Listener};
use crate::{failure::Failure, say};

/// Marks a folder as a local cluster's, and says of which shape.
const MARKER: &str = "holdfast-dev.toml";

/// What a local cluster is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Shape {
    members: u16,
    groups: u16,
    /// As many as members where it is absent: so it was before it could be said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    replicas: Option<u16>,
}

/// What stands in the marker.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Marker {
    #[serde(flatten)]
    shape: Shape,
    /// The cluster's name, where it is not the usual one: it was restored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    cluster: Option<String>,
    /// Where its snapshots go, where that is not a folder within: to those that it was restored from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    store: Option<String>,
}

/// The name of a cluster that was not restored.
const CLUSTER: &str = "dev";

/// Marks a folder as that of a local cluster of this shape, name and snapshot store, for [`Folder::open`].
pub(crate) fn leave_marker(
    folder: &Path,
    members: u16,
    groups: u16,
    replicas: u16,
    cluster: &str,
    store: Option<&str>,
) -> io::Result<()> {
    let shape = Shape::new(members, groups, replicas);
    let (cluster, store) = (Some(cluster.to_owned()), store.map(str::to_owned));
    let marker = Marker { shape, cluster, store };
    fs::write(folder.join(MARKER), toml::to_string(&marker).map_err(io::Error::other)?)
}

impl Shape {
    /// So many members and lock groups, each group on so many members or on all where there are fewer.
    pub(crate) fn new(members: u16, groups: u16, replicas: u16) -> Self {
        Self { members, groups, replicas: Some(replicas).filter(|replicas| *replicas < members) }
    }

    fn replicas(&self) -> u16 {
        self.replicas.unwrap_or(self.members)
    }
}

/// The folder, locked for this process.
#[derive(Debug)]
pub(crate) struct Folder {
    path: PathBuf,
    shape: Shape,
    cluster: String,
    store: Option<String>,
    /// Held while the file is open.
    _lock: File,
    /// Removed at the end.
    temporary: Option<TempDir>,
}

impl Folder {
    /// Opens the folder, creates it where it is missing, or makes a temporary one.
    pub(crate) fn open(path: Option<&Path>, shape: Shape) -> Result<Self, Failure> {
        let (path, temporary) = match path {
            Some(path) => {
                fs::create_dir_all(path).map_err(|e| failed("create", path, &e))?;
                (path.canonicalize().map_err(|e| failed("open", path, &e))?, None)
            }
            None => {
                let made = TempDir::with_prefix("holdfast-dev-");
                let made = made.map_err(|e| failed("create a folder in", &std::env::temp_dir(), &e))?;
                (made.path().to_owned(), Some(made))
            }
        };
        let (lock, marker) = claim(&path, &shape)?;
        let cluster = marker.cluster.unwrap_or_else(|| CLUSTER.to_owned());
        Ok(Self { path, shape, cluster, store: marker.store, _lock: lock, temporary })
    }

    /// Its path for people.
    pub(crate) fn shown(&self) -> String {
        self.path.display().to_string()
    }

    /// Where a member's output goes.
    pub(crate) fn log(&self, number: u16) -> PathBuf {
        self.member(number).join("log")
    }

    /// All logs, for people.
    pub(crate) fn logs_hint(&self) -> String {
        self.path.join("member-*").join("log").display().to_string()
    }

    /// Writes a member's configuration and answers where. Snapshots go to `store`; without one to that of the
    /// cluster that this one was restored from, or to a folder within this one.
    pub(crate) fn write_config(
        &self,
        block: &Block,
        number: u16,
        store: Option<&str>,
    ) -> Result<PathBuf, Failure> {
        let entry = |number: u16| MemberEntry {
            id: number.into(),
            http: format!("http://{}", block.address(number, Listener::Http)),
            grpc: format!("http://{}", block.address(number, Listener::Grpc)),
            peer: block.address(number, Listener::Peer).to_string(),
        };
        let config = MemberConfig {
            cluster: self.cluster.clone(),
            member: number.into(),
            data_dir: self.member(number).join("data"),
            listen: ListenConfig {
                http: block.address(number, Listener::Http),
                grpc: block.address(number, Listener::Grpc),
                peer: block.address(number, Listener::Peer),
                insecure: false,
            },
            members: (1..=block.members()).map(entry).collect(),
            groups: GroupsConfig { lock_groups: self.shape.groups, replicas: self.shape.replicas() },
            // One store for all members, as a bucket would be: any of them lists what any of them took.
            snapshots: SnapshotsConfig {
                store: Some(self.snapshot_store(store)?),
                ..SnapshotsConfig::default()
            },
            ..MemberConfig::default()
        };
        config.snapshot_place().map_err(|e| Failure::usage(format!("--snapshot-store: {e}")))?;
        let path = self.member(number).join("config.toml");
        let text = toml::to_string(&config)
            .map_err(|e| Failure::other(format!("cannot write {}: {e}", path.display())))?;
        fs::create_dir_all(self.member(number)).map_err(|e| failed("create", &self.member(number), &e))?;
        fs::write(&path, text).map_err(|e| failed("write", &path, &e))?;
        Ok(path)
    }

    fn snapshot_store(&self, given: Option<&str>) -> Result<String, Failure> {
        match given.or(self.store.as_deref()) {
            Some(store) => store_from_here(store),
            None => Ok(self.path.join("snapshots").display().to_string()),
        }
    }

    fn member(&self, number: u16) -> PathBuf {
        self.path.join(format!("member-{number}"))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if let Some(temporary) = self.temporary.take()
            && let Err(e) = temporary.close()
        {
            say::line(&format!("the temporary folder {} could not be removed: {e}", self.path.display()));
        }
    }
}

/// A snapshot store as members find it: a folder is meant from here, and members run elsewhere.
pub(crate) fn store_from_here(store: &str) -> Result<String, Failure> {
    if store.contains("://") {
        return Ok(store.to_owned());
    }
    let folder = std::path::absolute(store).map_err(|e| failed("use", Path::new(store), &e))?;
    Ok(folder.display().to_string())
}

/// Takes the folder for this process, or says whose it is.
fn claim(path: &Path, wanted: &Shape) -> Result<(File, Marker), Failure> {
    let marker = path.join(MARKER);
    let found = match fs::read_to_string(&marker) {
        Ok(text) => check_shape(path, &text, wanted)?,
        Err(e) if e.kind() == io::ErrorKind::NotFound => {
            let mut entries = fs::read_dir(path).map_err(|e| failed("read", path, &e))?;
            if entries.next().is_some() {
                return Err(Failure::other(format!(
                    "{} is not empty and holds no local cluster; give an empty or new folder",
                    path.display()
                )));
            }
            let text = toml::to_string(wanted).map_err(|e| Failure::other(e.to_string()))?;
            fs::write(&marker, text).map_err(|e| failed("write", &marker, &e))?;
            Marker { shape: *wanted, cluster: None, store: None }
        }
        Err(e) => return Err(failed("read", &marker, &e)),
    };
    let file = File::open(&marker).map_err(|e| failed("open", &marker, &e))?;
    match file.try_lock() {
        Ok(()) => Ok((file, found)),
        Err(TryLockError::WouldBlock) => {
            Err(Failure::other(format!("another `holdfast dev` is running in {}", path.display())))
        }
        Err(TryLockError::Error(e)) => Err(failed("lock", &marker, &e)),
    }
}

/// Refuses another shape; answers what stands in the marker.
fn check_shape(path: &Path, text: &str, wanted: &Shape) -> Result<Marker, Failure> {
    let marker: Marker = toml::from_str(text)
        .map_err(|e| Failure::other(format!("{} is damaged: {e}", path.join(MARKER).display())))?;
    let found = marker.shape;
    if found == *wanted {
        return Ok(marker);
    }
    Err(Failure::other(format!(
        "{} holds a cluster of {} members with {} lock groups of {} replicas, not {} with {} of {}; start it with \
         --members {} --groups {} --replicas {}, or give another folder",
        path.display(),
        found.members,
        found.groups,
        found.replicas(),
        wanted.members,
        wanted.groups,
        wanted.replicas(),
        found.members,
        found.groups,
        found.replicas()
    )))
}

fn failed(act: &str, path: &Path, error: &io::Error) -> Failure {
    Failure::other(format!("cannot {act} {}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_former_folder_is_taken_again_only_in_the_same_shape() {
        let dir = TempDir::new().unwrap();
        drop(Folder::open(Some(dir.path()), Shape::new(3, 4, 3)).unwrap());
        drop(Folder::open(Some(dir.path()), Shape::new(3, 4, 3)).unwrap());
        let error = Folder::open(Some(dir.path()), Shape::new(3, 2, 3)).unwrap_err().to_string();
        assert!(error.contains("holds a cluster of 3 members with 4 lock groups"), "{error}");
    }

    #[test]
    fn a_restored_folder_keeps_the_name_of_its_cluster_and_its_store() {
        let dir = TempDir::new().unwrap();
        leave_marker(dir.path(), 3, 4, 3, "dev-r1", Some("/mnt/snapshots")).unwrap();
        let folder = Folder::open(Some(dir.path()), Shape::new(3, 4, 3)).unwrap();
        let block = Block::new(7600, 3).unwrap();
        let text = fs::read_to_string(folder.write_config(&block, 1, None).unwrap()).unwrap();
        assert!(text.contains("cluster = \"dev-r1\"") && text.contains("\"/mnt/snapshots\""), "{text}");
    }

    #[test]
    fn a_folder_with_other_things_is_left_alone() {
        let dir = TempDir::new().unwrap();
        fs::write(dir.path().join("thesis.txt"), "x").unwrap();
        let error = Folder::open(Some(dir.path()), Shape::new(3, 4, 3)).unwrap_err().to_string();
        assert!(error.contains("not empty"), "{error}");
        assert!(!dir.path().join(MARKER).exists());
    }

    #[test]
    fn a_folder_in_use_is_refused() {
        let dir = TempDir::new().unwrap();
        let _first = Folder::open(Some(dir.path()), Shape::new(3, 4, 3)).unwrap();
        let error = Folder::open(Some(dir.path()), Shape::new(3, 4, 3)).unwrap_err().to_string();
        assert!(error.contains("another `holdfast dev` is running"), "{error}");
    }

    #[test]
    fn written_configurations_validate() {
        let dir = TempDir::new().unwrap();
        let folder = Folder::open(Some(dir.path()), Shape::new(3, 4, 3)).unwrap();
        let block = Block::new(7600, 3).unwrap();
        for (number, store) in [(1, "s3://backups/dev"), (2, "snapshots"), (3, "/mnt/snapshots")] {
            let text = fs::read_to_string(folder.write_config(&block, number, Some(store)).unwrap()).unwrap();
            let config: MemberConfig = toml::from_str(&text).unwrap();
            assert_eq!(config.validate(), []);
        }
    }

    #[test]
    fn atemporary_folder_is_gone_at_the_end() {
        let folder = Folder::open(None, Shape::new(1, 1, 3)).unwrap();
        let path = folder.path.clone();
        assert!(path.exists());
        drop(folder);
        assert!(!path.exists());
    }
}

//! Which disk a member runs on: a random id, written into its folder at the first start, and whether the cluster has let the
//! member take part since.
//!
//! A folder that was emptied has another id, so that the cluster can tell that what the member promised is lost. Knows neither
//! the cluster nor the log's content.

use std::{
    fmt,
    fs::{self, File},
    io::{self, Write as _},
    path::Path,
};

use serde::{Deserialize, Serialize};

use super::{
    durable_folder::{make_folder, sync_folder},
    schema, witness,
};

/// Name of the file within the member's folder.
const FILE: &str = "disk.json";

/// A disk, as the cluster tells it from others. Never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiskId(u128);

impl DiskId {
    /// The id with this number.
    #[must_use]
    pub const fn new(number: u128) -> Self {
        Self(number)
    }
}

impl fmt::Display for DiskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

/// What a folder says of its disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiskIdentity {
    /// Which disk it is.
    pub id: DiskId,
    /// Whether the member may take part in elections at once: it has before, on this disk.
    pub admitted: bool,
}

#[derive(Serialize, Deserialize)]
struct Stored {
    disk: String,
    admitted: bool,
}

impl DiskIdentity {
    /// Reads the identity of a member's folder before its log is opened. A folder without a log is a new disk; one with a log
    /// and without an identity is from before there were any.
    ///
    /// # Errors
    /// The folder cannot be read or written, or the file in it makes no sense.
    pub fn open(folder: &Path) -> io::Result<Self> {
        make_folder(folder)?;
        let has_log = schema::log_path(folder).exists();
        if has_log && let Some(known) = Self::read(folder)? {
            return Ok(known);
        }
        let fresh = Self { id: DiskId(rand::random()), admitted: has_log };
        // Where more is left than a log leaves that never was, the log is refused when it is opened: it may come back.
        if has_log || witness::check_log_exists(folder, &schema::log_path(folder)).is_ok() {
            fresh.write(folder)?;
        }
        Ok(fresh)
    }

    /// Notes durably that the cluster has let the member take part.
    ///
    /// # Errors
    /// The folder cannot be written.
    pub fn admit(self, folder: &Path) -> io::Result<Self> {
        let admitted = Self { admitted: true, ..self };
        admitted.write(folder)?;
        Ok(admitted)
    }

    fn read(folder: &Path) -> io::Result<Option<Self>> {
        let path = folder.join(FILE);
        let text = match fs::read(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            text => text?,
        };
        let damaged = |why: String| {
            io::Error::new(io::ErrorKind::InvalidData, format!("{} is damaged: {why}", path.display()))
        };
        let stored: Stored = serde_json::from_slice(&text).map_err(|error| damaged(error.to_string()))?;
        let id = u128::from_str_radix(&stored.disk, 16).map_err(|error| damaged(error.to_string()))?;
        Ok(Some(Self { id: DiskId(id), admitted: stored.admitted }))
    }

    fn write(self, folder: &Path) -> io::Result<()> {
        let stored = Stored { disk: self.id.to_string(), admitted: self.admitted };
        replace_file(folder, FILE, &serde_json::to_vec(&stored)?)
    }
}

/// Replaces a file durably: after a power cut there is the old one or the new one.
///
/// # Errors
/// The folder cannot be written.
pub(crate) fn replace_file(folder: &Path, name: &str, content: &[u8]) -> io::Result<()> {
    let beside = folder.join(format!("{name}.new"));
    let mut file = File::create(&beside)?;
    file.write_all(content)?;
    file.sync_all()?;
    fs::rename(&beside, folder.join(name))?;
    sync_folder(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_keeps_its_disk_until_it_is_emptied() {
        let folder = tempfile::tempdir().unwrap();
        let first = DiskIdentity::open(folder.path()).unwrap();
        assert!(!first.admitted, "a new disk has to ask");
        File::create(schema::log_path(folder.path())).unwrap();
        assert_eq!(DiskIdentity::open(folder.path()).unwrap(), first);
        let admitted = first.admit(folder.path()).unwrap();
        assert_eq!(DiskIdentity::open(folder.path()).unwrap(), admitted);
        fs::remove_file(schema::log_path(folder.path())).unwrap();
        let emptied = DiskIdentity::open(folder.path()).unwrap();
        assert!(emptied.id != first.id && !emptied.admitted);
    }

    #[test]
    fn a_log_that_is_gone_for_a_while_is_on_the_same_disk_when_it_is_back() {
        let folder = tempfile::tempdir().unwrap();
        let first = DiskIdentity::open(folder.path()).unwrap().admit(folder.path()).unwrap();
        fs::create_dir(folder.path().join(crate::snapshot::local::FOLDER)).unwrap();
        DiskIdentity::open(folder.path()).unwrap();
        File::create(schema::log_path(folder.path())).unwrap();
        assert_eq!(DiskIdentity::open(folder.path()).unwrap(), first);
    }

    #[test]
    fn a_log_from_before_there_were_ids_takes_part_at_once() {
        let folder = tempfile::tempdir().unwrap();
        File::create(schema::log_path(folder.path())).unwrap();
        let known = DiskIdentity::open(folder.path()).unwrap();
        assert!(known.admitted);
        assert_eq!(DiskIdentity::open(folder.path()).unwrap(), known);
        fs::write(folder.path().join(FILE), "{").unwrap();
        assert!(DiskIdentity::open(folder.path()).unwrap_err().to_string().contains("damaged"));
    }
}

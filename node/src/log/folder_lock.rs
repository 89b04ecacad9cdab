//! The lock on a member's folder: one process at a time, released by the system however the process ends.

use std::{
    fs::{File, OpenOptions, TryLockError},
    io::{self, Read, Seek, Write},
    path::Path,
};

use super::{durable_folder::make_folder, error::OpenLogError};

/// Name of the lock file within the folder. It stays behind; only the lock on it counts.
const LOCK_FILE: &str = "lock";

/// Holds the lock until it is dropped.
#[derive(Debug)]
pub(crate) struct FolderLock {
    _file: File,
}

impl FolderLock {
    /// Makes the folder if need be and locks it.
    pub(crate) fn acquire(folder: &Path) -> Result<FolderLock, OpenLogError> {
        let unusable = |source: io::Error| OpenLogError::Folder { path: folder.to_owned(), source };
        make_folder(folder).map_err(unusable)?;
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(folder.join(LOCK_FILE))
            .map_err(unusable)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut text = String::new();
                let holder = match file.read_to_string(&mut text) {
                    Ok(_) if !text.trim().is_empty() => format!(" (pid {})", text.trim()),
                    Ok(_) | Err(_) => String::new(),
                };
                return Err(OpenLogError::InUse { path: folder.to_owned(), holder });
            }
            Err(TryLockError::Error(source)) => return Err(unusable(source)),
        }
        // The pid is for people only.
        file.set_len(0).map_err(unusable)?;
        file.rewind().map_err(unusable)?;
        file.write_all(std::process::id().to_string().as_bytes()).map_err(unusable)?;
        Ok(FolderLock { _file: file })
    }
}

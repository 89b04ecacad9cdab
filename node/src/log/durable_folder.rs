//! Folders whose names survive a power cut.

use std::{
    fs::{self, File},
    io,
    path::Path,
};

/// Makes `folder` and whatever is missing above it, durably.
pub(crate) fn make_folder(folder: &Path) -> io::Result<()> {
    if folder.is_dir() {
        return Ok(());
    }
    if let Some(parent) = folder.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        make_folder(parent)?;
    }
    match fs::create_dir(folder) {
        Ok(()) => {}
        Err(err) if err.kind() == io::ErrorKind::AlreadyExists && folder.is_dir() => {}
        Err(err) => return Err(err),
    }
    sync_folder(folder.parent().unwrap_or(Path::new(".")))
}

/// Makes the names in `folder` durable.
pub(crate) fn sync_folder(folder: &Path) -> io::Result<()> {
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    File::open(folder)?.sync_all()
}

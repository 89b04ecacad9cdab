//! A really small disk: a tmpfs in the mount namespace of a cluster's processes, gone with them.

use std::{
    fs,
    io::Write as _,
    path::{Path, PathBuf},
};

use nix::{
    errno::Errno,
    mount::{MsFlags, mount},
    sched::{CloneFlags, unshare},
};

use crate::{FaultError, spawner::Spawner};

/// A mounted tmpfs, and the file that fills it.
#[derive(Debug)]
pub struct Tmpfs {
    seen_from_outside: PathBuf,
}

impl Tmpfs {
    /// Mounts `size_mib` MiB at `folder`, for the processes that are started from now on.
    pub(crate) fn mount(spawner: &Spawner, folder: &Path, size_mib: u32) -> Result<Self, FaultError> {
        fs::create_dir_all(folder).map_err(FaultError::system(format!("create {}", folder.display())))?;
        let place = folder.to_owned();
        spawner.run(move || mount_here(&place, size_mib))?.map_err(|errno| match errno {
            Errno::EPERM | Errno::EACCES | Errno::ENODEV => FaultError::Impossible {
                what: "a small disk",
                missing: format!("mounting a tmpfs is refused ({errno}): run as root with CAP_SYS_ADMIN"),
            },
            _ => FaultError::errno(format!("mount a tmpfs at {}", folder.display()))(errno),
        })?;
        let inside = folder.strip_prefix("/").unwrap_or(folder);
        Ok(Self { seen_from_outside: spawner.root().join(inside) })
    }

    /// The folder, as this process sees it.
    pub fn path(&self) -> &Path {
        &self.seen_from_outside
    }

    /// Fills it to the last byte.
    ///
    /// # Errors
    /// Anything but a full disk.
    pub fn fill(&self) -> Result<(), FaultError> {
        let path = self.path().join("ballast");
        let mut file = fs::File::create(&path).map_err(FaultError::system("create the ballast"))?;
        for length in [1 << 16, 1 << 12, 1] {
            let block = vec![0; length];
            loop {
                match file.write_all(&block) {
                    Ok(()) => {}
                    Err(error) if error.raw_os_error() == Some(Errno::ENOSPC as i32) => break,
                    Err(error) => return Err(FaultError::system("fill a small disk")(error)),
                }
            }
        }
        Ok(())
    }

    /// Gives the space back.
    ///
    /// # Errors
    /// The ballast cannot be removed.
    pub fn free(&self) -> Result<(), FaultError> {
        fs::remove_file(self.path().join("ballast")).map_err(FaultError::system("remove the ballast"))
    }
}

fn mount_here(folder: &Path, size_mib: u32) -> Result<(), Errno> {
    unshare(CloneFlags::CLONE_NEWNS)?;
    // What is mounted from here on is nobody else's business.
    let none = None::<&str>;
    mount(none, "/", none, MsFlags::MS_REC | MsFlags::MS_PRIVATE, none)?;
    let options = format!("size={size_mib}m");
    mount(Some("tmpfs"), folder, Some("tmpfs"), MsFlags::empty(), Some(options.as_str()))
}

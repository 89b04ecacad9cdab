//! Disks that are slow, that fail, or that are full, and wall clocks that step: a library loaded in front of libc, steered
//! through a shared file.
//!
//! The shim is C, because it must be there before anything of the victim runs. It is compiled when it is needed first.
//! It leaves monotonic clocks alone, and timers on them: libfaketime does not (absolute timers on the boot clock fire at
//! the wrong time under it).

use std::{
    fs::{self, File},
    os::unix::fs::FileExt as _,
    path::{Path, PathBuf},
    process::Command,
    sync::Arc,
    time::Duration,
};

use nix::errno::Errno;

use crate::FaultError;

const SOURCE: &str = include_str!("../shim/shim.c");
/// Environment variable that names the control file.
const CONTROL: &str = "HOLDFAST_FAULTS";
/// Size of the control file, and where its numbers stand: see the struct `control` of the shim.
const SIZE: u64 = 24;
const DELAY_MS: u64 = 0;
const SYNC_ERRNO: u64 = 4;
const WRITE_ERRNO: u64 = 8;
const SYNCS: u64 = 12;
const BITTEN: u64 = 16;
const CLOCK_S: u64 = 20;

/// The compiled shim.
#[derive(Clone, Debug)]
pub struct Shim {
    library: PathBuf,
}

impl Shim {
    /// Compiles the shim into `folder`.
    ///
    /// # Errors
    /// [`FaultError::Impossible`] without a C compiler; the folder cannot be written; the compiler complains.
    pub fn compile(folder: &Path) -> Result<Self, FaultError> {
        fs::create_dir_all(folder).map_err(FaultError::system(format!("create {}", folder.display())))?;
        let (source, library) = (folder.join("shim.c"), folder.join("shim.so"));
        fs::write(&source, SOURCE).map_err(FaultError::system(format!("write {}", source.display())))?;
        let mut cc = Command::new("cc");
        cc.args(["-shared", "-fPIC", "-O1", "-o"]);
        let ran = cc.arg(&library).arg(&source).arg("-ldl").output();
        let ran = ran.map_err(|error| FaultError::Impossible {
            what: "a disk that fails or a clock that steps",
            missing: format!("the C compiler `cc` does not run ({error}); install build-essential"),
        })?;
        if ran.status.success() {
            return Ok(Self { library });
        }
        let said = String::from_utf8_lossy(&ran.stderr).into_owned();
        Err(FaultError::system("compile the shim")(std::io::Error::other(said)))
    }

    /// Loads the shim into a process that is to be started, and answers its switch, whose file is `control`. It may be
    /// loaded into several processes, or the same one again after a restart.
    ///
    /// # Errors
    /// The control file cannot be made.
    pub fn load(&self, command: &mut Command, control: &Path) -> Result<Switch, FaultError> {
        let switch = Switch::open(control)?;
        command.env("LD_PRELOAD", &self.library).env(CONTROL, control);
        Ok(switch)
    }
}

/// Switches the faults of the processes that share it.
#[derive(Clone, Debug)]
pub struct Switch {
    file: Arc<File>,
}

impl Switch {
    fn open(control: &Path) -> Result<Self, FaultError> {
        let act = || format!("open {}", control.display());
        let file = File::options().read(true).write(true).create(true).truncate(false).open(control);
        let file = file.map_err(FaultError::system(act()))?;
        file.set_len(SIZE).map_err(FaultError::system(act()))?;
        Ok(Self { file: Arc::new(file) })
    }

    /// Each fsync and fdatasync takes so much longer, in steps of 5 ms; those that wait already end with the change.
    ///
    /// # Errors
    /// The control file cannot be written.
    pub fn delay_syncs(&self, by: Duration) -> Result<(), FaultError> {
        self.put(DELAY_MS, i32::try_from(by.as_millis()).unwrap_or(i32::MAX))
    }

    /// Each fsync and fdatasync fails with this error, after its delay.
    ///
    /// # Errors
    /// The control file cannot be written.
    pub fn fail_syncs(&self, with: Errno) -> Result<(), FaultError> {
        self.put(SYNC_ERRNO, with as i32)
    }

    /// Each write to a regular file fails with this error: `ENOSPC` is a full disk.
    ///
    /// # Errors
    /// The control file cannot be written.
    pub fn fail_writes(&self, with: Errno) -> Result<(), FaultError> {
        self.put(WRITE_ERRNO, with as i32)
    }

    /// From now on the wall clock shows the real time and so many seconds more (less, where negative).
    ///
    /// # Errors
    /// The control file cannot be written.
    pub fn step_clock(&self, offset_s: i32) -> Result<(), FaultError> {
        self.put(CLOCK_S, offset_s)
    }

    /// The disk is well again. The clock stays as it is.
    ///
    /// # Errors
    /// The control file cannot be written.
    pub fn heal(&self) -> Result<(), FaultError> {
        [DELAY_MS, SYNC_ERRNO, WRITE_ERRNO].into_iter().try_for_each(|place| self.put(place, 0))
    }

    /// How many fsyncs and fdatasyncs there were: that it grows proves that the shim is in their way.
    ///
    /// # Errors
    /// The control file cannot be read.
    pub fn syncs(&self) -> Result<i32, FaultError> {
        self.get(SYNCS)
    }

    /// How many calls a disk fault has hit.
    ///
    /// # Errors
    /// The control file cannot be read.
    pub fn bitten(&self) -> Result<i32, FaultError> {
        self.get(BITTEN)
    }

    fn put(&self, place: u64, value: i32) -> Result<(), FaultError> {
        self.file.write_all_at(&value.to_ne_bytes(), place).map_err(FaultError::system("switch a fault"))
    }

    fn get(&self, place: u64) -> Result<i32, FaultError> {
        let mut bytes = [0; 4];
        self.file.read_exact_at(&mut bytes, place).map_err(FaultError::system("read a switch"))?;
        Ok(i32::from_ne_bytes(bytes))
    }
}

//! What was measured on: kernel, processors, disk, versions. Figures without these say nothing.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write as _},
    path::Path,
    process::Command,
    time::Instant,
};

use nix::sys::statfs::{TMPFS_MAGIC, statfs};
use serde::Serialize;

use super::service::Places;
use crate::{
    clock::nanos,
    failure::Failure,
    figures::{Quantiles, Times},
};

/// So many small writes are synced to see how long that takes.
const SYNCS: u32 = 200;
/// As large as a small transaction's page.
const WRITE: [u8; 4096] = [0x5a; 4096];

/// The machine and the versions of a bench.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Machine {
    pub(crate) kernel: String,
    pub(crate) cpu: String,
    pub(crate) cpus: usize,
    /// Writing 4 KiB and syncing them, in the folder of the data.
    pub(crate) fsync_us: Quantiles,
    pub(crate) holdfast: String,
    pub(crate) etcd: String,
    pub(crate) redis: String,
}

impl Machine {
    /// Looks at the machine, and refuses one that would measure nothing: without a disk, or without a service.
    pub(crate) fn look(places: &Places) -> Result<Self, Failure> {
        fs::create_dir_all(&places.data)
            .map_err(|error| Failure::other(&places.data.display().to_string(), error))?;
        if statfs(&places.data).is_ok_and(|found| found.filesystem_type() == TMPFS_MAGIC) {
            return Err(Failure::Usage(format!(
                "{} is in memory (tmpfs), where syncing costs nothing; give --dir on a disk",
                places.data.display()
            )));
        }
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let cpuinfo = read("/proc/cpuinfo");
        let model = cpuinfo.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
        Ok(Self {
            kernel: read("/proc/sys/kernel/osrelease").trim().to_owned(),
            cpu: model.map_or("unknown", |(_, model)| model).to_owned(),
            cpus: std::thread::available_parallelism().map_or(1, usize::from),
            fsync_us: syncs(&places.data).map_err(|error| Failure::other("cannot probe the disk", error))?,
            holdfast: version(&places.holdfast)?,
            etcd: version(&places.etcd)?,
            redis: version(&places.redis)?,
        })
    }
}

/// The first line of what a program says of itself.
fn version(program: &Path) -> Result<String, Failure> {
    let failed = |error: io::Error| {
        Failure::Usage(format!(
            "{} cannot be run: {error}; `make bench` builds and installs what is needed",
            program.display()
        ))
    };
    let output = Command::new(program).arg("--version").output().map_err(failed)?;
    Ok(String::from_utf8_lossy(&output.stdout).lines().next().unwrap_or("unknown").to_owned())
}

fn syncs(folder: &Path) -> io::Result<Quantiles> {
    let path = folder.join("fsync-probe");
    let mut file: File = OpenOptions::new().create(true).write(true).truncate(true).open(&path)?;
    let mut times = Times::default();
    for _ in 0..SYNCS {
        let begin = Instant::now();
        file.write_all(&WRITE)?;
        file.sync_data()?;
        times.record(nanos(begin.elapsed()));
    }
    fs::remove_file(&path)?;
    Ok(times.quantiles())
}

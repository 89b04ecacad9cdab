//! A throw-away cluster of one member with two lock groups: `holdfast dev` as its own process.

use std::{
    fs::{self, File},
    path::Path,
    process::{Child, Command, Stdio},
    time::Duration,
};

use tempfile::TempDir;

use crate::wait::eventually;

const READY_WITHIN: Duration = Duration::from_secs(60);
/// Blocks of a hundred ports, below those that systems give out by themselves.
const BLOCKS: std::ops::Range<u16> = 100..300;

/// What is said where a block is not free.
pub(crate) const PORTS_IN_USE: &str = "ports cannot be used";

/// First ports of blocks to try, other ones in other processes.
pub(crate) fn bases() -> impl Iterator<Item = u16> {
    let blocks = BLOCKS.len() as u16;
    let first = std::process::id() as u16 % blocks;
    (0..20).map(move |attempt| (BLOCKS.start + (first + attempt * 7) % blocks) * 100)
}

/// A running cluster; ended when dropped.
#[derive(Debug)]
pub(crate) struct Cluster {
    dev: Child,
    base: u16,
    _folder: TempDir,
}

impl Cluster {
    /// Starts one on a free block of ports.
    pub(crate) fn start() -> Self {
        for base in bases() {
            match Self::start_at(base) {
                Ok(cluster) => return cluster,
                Err(error) if error.contains(PORTS_IN_USE) => {}
                Err(error) => panic!("{error}"),
            }
        }
        panic!("no free block of ports");
    }

    fn start_at(base: u16) -> Result<Self, String> {
        let holdfast = Path::new(env!("CARGO_BIN_EXE_holdfast-loadtest")).with_file_name("holdfast");
        assert!(holdfast.exists(), "{} is missing: build it first, cargo build", holdfast.display());
        let folder = TempDir::with_prefix("holdfast-loadtest-").unwrap();
        let (out, err) = (folder.path().join("out"), folder.path().join("err"));
        let dev = Command::new(holdfast)
            .args(["dev", "--members=1", "--groups=2"])
            .arg(format!("--base-port={base}"))
            .arg(format!("--parent-pid={}", std::process::id()))
            .arg("--dir")
            .arg(folder.path().join("cluster"))
            .stdin(Stdio::null())
            .stdout(File::create(&out).unwrap())
            .stderr(File::create(&err).unwrap())
            .spawn()
            .unwrap();
        let mut cluster = Self { dev, base, _folder: folder };
        let ready = eventually("the cluster is ready", READY_WITHIN, || {
            if fs::read_to_string(&out).unwrap().lines().any(|line| line.starts_with("ready ")) {
                return Some(true);
            }
            cluster.dev.try_wait().unwrap().map(|_| false)
        });
        if ready { Ok(cluster) } else { Err(fs::read_to_string(&err).unwrap()) }
    }

    /// gRPC URL of its member.
    pub(crate) fn endpoint(&self) -> String {
        format!("http://127.0.0.1:{}", self.base + 11)
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        // Its member ends with it.
        let _ = self.dev.kill();
        let _ = self.dev.wait();
    }
}

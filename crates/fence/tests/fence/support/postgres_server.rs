//! A PostgreSQL server of the test's own, from Debian's package `postgresql`.
//!
//! It runs on a free port of 127.0.0.1 in a temporary folder, waits for its disk, and is stopped when dropped, or by the
//! system when the test process is killed.

use std::{
    fs::{self, File},
    net::TcpListener,
    os::unix::fs::chown,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::Duration,
};

use super::wait::found_within;
use deadpool_postgres::{Manager, Pool};
use nix::{
    sys::signal::{Signal, kill},
    unistd::{Pid, User, geteuid},
};
use tempfile::TempDir;
use tokio_postgres::NoTls;

const MISSING: &str = "PostgreSQL is needed by this test: install the Debian package `postgresql`";

/// A running server.
pub(crate) struct PostgresServer {
    child: Child,
    port: u16,
    _folder: TempDir,
}

impl PostgresServer {
    /// Makes a new cluster and starts a server on it.
    pub(crate) fn start() -> Self {
        let folder = tempfile::Builder::new().prefix("holdfast-pg-").tempdir().unwrap();
        own_by_postgres(folder.path());
        let data = folder.path().join("data");
        let made = as_postgres("initdb", folder.path())
            .args(["--username=postgres", "--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync", "-D"])
            .arg(&data)
            .stdout(Stdio::null())
            .status()
            .unwrap_or_else(|error| panic!("{MISSING} ({error})"));
        assert!(made.success(), "initdb failed: {made}");
        // Between choosing a port and listening on it somebody else may take it.
        for _try in 0..5 {
            let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
            let log = File::create(folder.path().join("log")).unwrap();
            let mut child = as_postgres("postgres", folder.path())
                .arg("-D")
                .arg(&data)
                .arg(format!("--port={port}"))
                .args(["--fsync=on", "--listen_addresses=127.0.0.1", "--unix_socket_directories="])
                .args(["--max_connections=100", "--shared_buffers=32MB", "--autovacuum=off"])
                .stderr(log)
                .spawn()
                .unwrap();
            if is_up(&mut child, port) {
                return Self { child, port, _folder: folder };
            }
        }
        panic!("PostgreSQL did not start: {}", fs::read_to_string(folder.path().join("log")).unwrap());
    }

    /// The URL of a database.
    pub(crate) fn url(&self, database: &str) -> String {
        format!("postgres://postgres@127.0.0.1:{}/{database}", self.port)
    }

    /// Makes a database and returns a pool to it.
    pub(crate) async fn new_database(&self, database: &str) -> Pool {
        self.pool().get().await.unwrap().batch_execute(&format!("CREATE DATABASE {database}")).await.unwrap();
        self.pool_for(&self.url(database))
    }

    /// A pool of up to 40 connections to the database `postgres`, with the server's defaults.
    pub(crate) fn pool(&self) -> Pool {
        self.pool_for(&self.url("postgres"))
    }

    /// A pool of up to 40 connections to a URL.
    pub(crate) fn pool_for(&self, url: &str) -> Pool {
        Pool::builder(Manager::new(url.parse().unwrap(), NoTls)).max_size(40).build().unwrap()
    }
}

impl Drop for PostgresServer {
    fn drop(&mut self) {
        let pid = Pid::from_raw(self.child.id() as i32);
        // The immediate shutdown: there is nothing to keep, but all its processes must be gone.
        let _ = kill(pid, Signal::SIGQUIT);
        let ended = || matches!(self.child.try_wait(), Ok(Some(_)) | Err(_)).then_some(());
        if found_within(Duration::from_secs(10), ended).is_none() {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

/// A command of the newest installed PostgreSQL. The server refuses to run as root, so root steps down to `postgres`.
fn as_postgres(program: &str, folder: &Path) -> Command {
    let mut versions: Vec<PathBuf> = fs::read_dir("/usr/lib/postgresql")
        .unwrap_or_else(|error| panic!("{MISSING} (/usr/lib/postgresql: {error})"))
        .map(|entry| entry.unwrap().path().join("bin").join(program))
        .filter(|path| path.exists())
        .collect();
    versions.sort();
    let program = versions.pop().unwrap_or_else(|| panic!("{MISSING} (no {program})"));
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "INT"]).current_dir(folder).stdin(Stdio::null());
    if geteuid().is_root() {
        command.args(["--reuid=postgres", "--regid=postgres", "--clear-groups"]);
    }
    command.arg(program);
    command
}

fn own_by_postgres(folder: &Path) {
    if geteuid().is_root() {
        let user =
            User::from_name("postgres").unwrap().unwrap_or_else(|| panic!("{MISSING} (no user postgres)"));
        chown(folder, Some(user.uid.as_raw()), Some(user.gid.as_raw())).unwrap();
    }
}

/// Waits until the server takes a connection; `false` if it ended instead.
fn is_up(child: &mut Child, port: u16) -> bool {
    let up = found_within(Duration::from_secs(60), || {
        if child.try_wait().unwrap().is_some() {
            return Some(false);
        }
        let ready = as_postgres("pg_isready", Path::new("/"))
            .args(["--host=127.0.0.1", &format!("--port={port}"), "--quiet"])
            .status()
            .unwrap();
        ready.success().then_some(true)
    });
    up.unwrap_or_else(|| panic!("PostgreSQL does not answer on port {port}"))
}

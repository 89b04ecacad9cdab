//! The services that are compared: how each is started on loopback with its data in one folder, and when it is ready.

use std::{
    fs, io,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use serde::Serialize;
use tokio::time::sleep;

use super::process::Process;
use crate::{
    driver::{Driver as _, Etcd, LockClient as _, Redis, Target},
    failure::Failure,
};

const READY_WITHIN: Duration = Duration::from_secs(60);
const LOOK: Duration = Duration::from_millis(50);
const MEMBERS: u16 = 3;
/// Long enough for the question whether a service is ready.
const PROBE_TTL: Duration = Duration::from_secs(5);

/// A service with its settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Service {
    /// Three members, so many lock groups.
    Holdfast(u16),
    /// Three members, as they come.
    Etcd,
    /// One, which keeps nothing on disk.
    RedisMemory,
    /// One, which writes and syncs each change before it answers.
    RedisAlways,
}

impl Service {
    pub(crate) const fn target(self) -> Target {
        match self {
            Self::Holdfast(_) => Target::Holdfast,
            Self::Etcd => Target::Etcd,
            Self::RedisMemory | Self::RedisAlways => Target::Redis,
        }
    }

    /// Its name in tables.
    pub(crate) fn name(self) -> String {
        match self {
            Self::Holdfast(1) => "holdfast, 1 group".into(),
            Self::Holdfast(groups) => format!("holdfast, {groups} groups"),
            Self::Etcd => "etcd, 3 members".into(),
            Self::RedisMemory => "redis, no disk".into(),
            Self::RedisAlways => "redis, fsync always".into(),
        }
    }
}

/// Where things are.
#[derive(Clone, Debug)]
pub(crate) struct Places {
    pub(crate) holdfast: PathBuf,
    pub(crate) etcd: PathBuf,
    pub(crate) redis: PathBuf,
    /// Where data goes; a folder of its own for each start.
    pub(crate) data: PathBuf,
    pub(crate) base_port: u16,
}

/// A service that runs; ended when dropped.
#[derive(Debug)]
pub(crate) struct Running {
    processes: Vec<Process>,
    folder: PathBuf,
    pub(crate) endpoints: Vec<String>,
}

impl Running {
    /// Starts a service with empty data, and waits until it serves.
    pub(crate) async fn start(service: Service, places: &Places) -> Result<Self, Failure> {
        let folder = places.data.join("now");
        let failed = |error: io::Error| Failure::other(&folder.display().to_string(), error);
        if folder.exists() {
            fs::remove_dir_all(&folder).map_err(failed)?;
        }
        fs::create_dir_all(&folder).map_err(failed)?;
        let mut running = match service {
            Service::Holdfast(groups) => holdfast(groups, places, &folder)?,
            Service::Etcd => etcd(places, &folder)?,
            Service::RedisMemory => redis(places, &folder, &[])?,
            Service::RedisAlways => {
                redis(places, &folder, &["--appendonly", "yes", "--appendfsync", "always"])?
            }
        };
        running.wait_ready(service).await?;
        Ok(running)
    }

    async fn wait_ready(&mut self, service: Service) -> Result<(), Failure> {
        let begin = Instant::now();
        loop {
            for process in &mut self.processes {
                process.check()?;
            }
            if self.is_ready(service).await {
                return Ok(());
            }
            if begin.elapsed() > READY_WITHIN {
                let limit = READY_WITHIN.as_secs();
                return Err(Failure::Other(format!("{} does not serve after {limit} s", service.name())));
            }
            sleep(LOOK).await;
        }
    }

    async fn is_ready(&self, service: Service) -> bool {
        match service {
            Service::Holdfast(_) => self
                .processes
                .iter()
                .all(|process| process.said().lines().any(|line| line.starts_with("ready "))),
            Service::Etcd => {
                // Each member must grant a lease: then it knows the leader.
                let Ok(driver) = Etcd::new(&self.endpoints, u32::from(MEMBERS), PROBE_TTL).await else {
                    return false;
                };
                for member in 0..u32::from(MEMBERS) {
                    match driver.client(member).await {
                        Ok(client) => client.close().await,
                        Err(_) => return false,
                    }
                }
                true
            }
            Service::RedisMemory | Service::RedisAlways => {
                Redis::new(&self.endpoints, 1, PROBE_TTL).await.is_ok()
            }
        }
    }

    /// Its processes, but for their children.
    pub(crate) fn pids(&self) -> Vec<u32> {
        self.processes.iter().map(Process::id).collect()
    }

    /// Where its data is.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Ends it and removes its data.
    pub(crate) async fn stop(mut self) {
        for process in self.processes.drain(..) {
            process.stop().await;
        }
        let _ = fs::remove_dir_all(&self.folder);
    }
}

fn holdfast(groups: u16, places: &Places, folder: &Path) -> Result<Running, Failure> {
    let base = places.base_port;
    let arguments = [
        "dev".to_owned(),
        format!("--members={MEMBERS}"),
        format!("--groups={groups}"),
        format!("--base-port={base}"),
        format!("--dir={}", folder.join("data").display()),
    ];
    let process = Process::start("holdfast", folder, &places.holdfast, &arguments)?;
    let endpoints = (1..=MEMBERS).map(|i| format!("http://127.0.0.1:{}", base + 10 * i + 1)).collect();
    Ok(Running { processes: vec![process], folder: folder.to_owned(), endpoints })
}

fn etcd(places: &Places, folder: &Path) -> Result<Running, Failure> {
    let client = |i: u16| format!("http://127.0.0.1:{}", places.base_port + 50 + i);
    let peer = |i: u16| format!("http://127.0.0.1:{}", places.base_port + 60 + i);
    let cluster: Vec<String> = (1..=MEMBERS).map(|i| format!("m{i}={}", peer(i))).collect();
    let mut running = Running {
        processes: Vec::new(),
        folder: folder.to_owned(),
        endpoints: (1..=MEMBERS).map(client).collect(),
    };
    for i in 1..=MEMBERS {
        let arguments = [
            format!("--name=m{i}"),
            format!("--data-dir={}", folder.join(format!("m{i}")).display()),
            format!("--listen-client-urls={}", client(i)),
            format!("--advertise-client-urls={}", client(i)),
            format!("--listen-peer-urls={}", peer(i)),
            format!("--initial-advertise-peer-urls={}", peer(i)),
            format!("--initial-cluster={}", cluster.join(",")),
            "--initial-cluster-state=new".to_owned(),
            "--log-level=error".to_owned(),
        ];
        running.processes.push(Process::start(&format!("etcd-{i}"), folder, &places.etcd, &arguments)?);
    }
    Ok(running)
}

fn redis(places: &Places, folder: &Path, more: &[&str]) -> Result<Running, Failure> {
    let port = places.base_port + 70;
    let mut arguments = vec![
        "--bind".to_owned(),
        "127.0.0.1".to_owned(),
        "--port".to_owned(),
        port.to_string(),
        "--save".to_owned(),
        String::new(),
        "--dir".to_owned(),
        folder.display().to_string(),
    ];
    arguments.extend(more.iter().map(|&argument| argument.to_owned()));
    let process = Process::start("redis", folder, &places.redis, &arguments)?;
    let endpoints = vec![format!("redis://127.0.0.1:{port}")];
    Ok(Running { processes: vec![process], folder: folder.to_owned(), endpoints })
}

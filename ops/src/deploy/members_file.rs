//! The list of members that a cluster is planned from: what may stand in it, and what is wrong with it, by line and key.
//!
//! Bounds of a member's settings are the node's business ([`MemberConfig::validate`]); here stands only what no single
//! member can know.

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
};

use holdfast_node::config::{
    GroupsConfig, ListenConfig, LogConfig, MemberConfig, MemberEntry, RaftConfig, SnapshotsConfig,
};
use serde::Deserialize;

use super::places::Places;
use crate::failure::Failure;

mod faults;

/// The whole file. Every key has a default that serves where the file says nothing.
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct MembersFile {
    /// Name of the cluster.
    pub cluster: String,
    /// How many lock groups.
    pub lock_groups: u16,
    /// Members that carry each of them.
    pub replicas: u16,
    /// Accepts listeners that other machines reach.
    pub insecure: bool,
    /// Folder of a member's log and state, where the member names none.
    pub data_dir: PathBuf,
    /// Ports, where a member names none.
    pub ports: Ports,
    /// As in a member's configuration.
    pub raft: RaftConfig,
    /// As in a member's configuration.
    pub snapshots: SnapshotsConfig,
    /// As in a member's configuration.
    pub log: LogConfig,
    /// The members.
    pub members: Vec<Entry>,
}

/// Ports of a member's listeners.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Ports {
    http: u16,
    grpc: u16,
    peer: u16,
}

/// One member.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Entry {
    /// Its id, from 1; never used again for another disk.
    pub id: u64,
    /// What people call it, and its folder in a written plan; `member-ID` where it has none.
    pub name: Option<String>,
    /// Its address or host name, as the other members and the clients reach it.
    pub host: String,
    /// The address it listens on; the host's where that is an address, otherwise all.
    pub listen: Option<IpAddr>,
    /// What fails together with it: a zone, a rack, a power supply.
    pub zone: Option<String>,
    /// Its own folder.
    pub data_dir: Option<PathBuf>,
    http: Option<u16>,
    grpc: Option<u16>,
    peer: Option<u16>,
}

impl Default for MembersFile {
    fn default() -> Self {
        let GroupsConfig { lock_groups, replicas } = GroupsConfig::default();
        Self {
            cluster: MemberConfig::default().cluster,
            lock_groups,
            replicas,
            insecure: false,
            data_dir: "/var/lib/holdfast".into(),
            ports: Ports::default(),
            raft: RaftConfig::default(),
            snapshots: SnapshotsConfig::default(),
            log: LogConfig::default(),
            members: Vec::new(),
        }
    }
}

impl Default for Ports {
    fn default() -> Self {
        let ListenConfig { http, grpc, peer, .. } = ListenConfig::default();
        Self { http: http.port(), grpc: grpc.port(), peer: peer.port() }
    }
}

impl Entry {
    /// What people call it.
    pub(crate) fn name(&self) -> String {
        self.name.clone().unwrap_or_else(|| format!("member-{}", self.id))
    }

    fn ports(&self, usual: Ports) -> Ports {
        Ports {
            http: self.http.unwrap_or(usual.http),
            grpc: self.grpc.unwrap_or(usual.grpc),
            peer: self.peer.unwrap_or(usual.peer),
        }
    }

    /// The host as an address, if it is one.
    fn address(&self) -> Option<IpAddr> {
        self.host.trim_start_matches('[').trim_end_matches(']').parse().ok()
    }

    fn listens_on(&self) -> IpAddr {
        self.listen.or_else(|| self.address()).unwrap_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED))
    }

    /// The host as it stands in a URL.
    fn authority(&self, port: u16) -> String {
        match self.address() {
            Some(address) => SocketAddr::new(address, port).to_string(),
            None => format!("{}:{port}", self.host),
        }
    }

    fn folder<'a>(&'a self, usual: &'a Path) -> &'a Path {
        self.data_dir.as_deref().unwrap_or(usual)
    }
}

impl MembersFile {
    /// Reads the file.
    ///
    /// # Errors
    /// It cannot be read, or anything in it is wrong: then everything that is, each with its line and key.
    pub(crate) fn read(path: &Path) -> Result<Self, Failure> {
        let text = std::fs::read_to_string(path)
            .map_err(|e| Failure::other(format!("cannot read {}: {e}", path.display())))?;
        Self::parse(&text).map_err(|wrong| {
            let mut message = format!("{} is refused, nothing was planned or written:", path.display());
            for Wrong { line, key, message: why } in wrong {
                let key = if key.is_empty() { String::new() } else { format!("{key}: ") };
                let _ = write!(message, "\n  line {line}: {key}{why}");
            }
            Failure::other(message)
        })
    }

    /// Reads the text of a file, or answers all that is wrong with it.
    pub(crate) fn parse(text: &str) -> Result<Self, Vec<Wrong>> {
        let places = Places::of(text).map_err(|e| vec![Wrong::of_toml(text, &e)])?;
        let file: Self = toml::from_str(text).map_err(|e| {
            let at = e.span().map_or(0, |span| span.start);
            let (line, key) = places.at(at);
            vec![Wrong { line, key, message: one_line(e.message()) }]
        })?;
        let faults = faults::of(&file);
        if faults.is_empty() {
            return Ok(file);
        }
        let wrong = faults.into_iter().map(|(key, message)| Wrong { line: places.line(&key), key, message });
        let mut wrong: Vec<Wrong> = wrong.collect();
        wrong.sort_by_key(|wrong| wrong.line);
        Err(wrong)
    }

    /// The configuration of each member, in the file's order.
    pub(crate) fn configs(&self) -> impl Iterator<Item = (&Entry, MemberConfig)> {
        let members: Vec<MemberEntry> = self.members.iter().map(|entry| self.address_book(entry)).collect();
        self.members.iter().map(move |entry| {
            let (ip, ports) = (entry.listens_on(), entry.ports(self.ports));
            let listen = ListenConfig {
                http: SocketAddr::new(ip, ports.http),
                grpc: SocketAddr::new(ip, ports.grpc),
                peer: SocketAddr::new(ip, ports.peer),
                insecure: self.insecure && !ip.is_loopback(),
            };
            let config = MemberConfig {
                cluster: self.cluster.clone(),
                member: entry.id,
                data_dir: entry.folder(&self.data_dir).to_owned(),
                join: false,
                listen,
                members: members.clone(),
                groups: GroupsConfig { lock_groups: self.lock_groups, replicas: self.replicas },
                raft: self.raft.clone(),
                snapshots: self.snapshots.clone(),
                log: self.log.clone(),
            };
            (entry, config)
        })
    }

    fn address_book(&self, entry: &Entry) -> MemberEntry {
        let ports = entry.ports(self.ports);
        MemberEntry {
            id: entry.id,
            http: format!("http://{}", entry.authority(ports.http)),
            grpc: format!("http://{}", entry.authority(ports.grpc)),
            peer: entry.authority(ports.peer),
        }
    }

    /// How many members each zone has; empty where no zones are named.
    pub(crate) fn zones(&self) -> BTreeMap<&str, Vec<u64>> {
        let mut zones: BTreeMap<&str, Vec<u64>> = BTreeMap::new();
        for entry in &self.members {
            if let Some(zone) = &entry.zone {
                zones.entry(zone).or_default().push(entry.id);
            }
        }
        zones
    }
}

/// One thing that is wrong in a members file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Wrong {
    /// The line, from 1; of the table that lacks the key where it is not there.
    pub line: usize,
    /// The key, as `members[1].host`; empty where the text is no TOML.
    pub key: String,
    /// What is wrong and what to do.
    pub message: String,
}

impl Wrong {
    fn of_toml(text: &str, error: &toml::de::Error) -> Self {
        let at = error.span().map_or(0, |span| span.start);
        let line = super::places::line_of(text, at);
        Self { line, key: String::new(), message: format!("no TOML: {}", one_line(error.message())) }
    }
}

fn one_line(text: &str) -> String {
    text.lines().collect::<Vec<_>>().join("; ")
}

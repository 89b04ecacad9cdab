//! What `snapshots restore`, `snapshots drill` and `members recover` share: where the new cluster's members are, their
//! configurations, and the report.
//!
//! How states are restored is the node's matter.

use std::{
    fs, io,
    net::SocketAddr,
    path::{Path, PathBuf},
    time::{SystemTime, UNIX_EPOCH},
};

use clap::Args;
use holdfast_node::{
    config::{DEFAULT_REPLICAS, GroupsConfig, ListenConfig, MemberConfig, MemberEntry, SnapshotsConfig},
    log::identity::ClusterId,
    restore::{
        Prepared, Wanted,
        rebuild::Grants,
        write::{self, data_folder, member_folder},
    },
};
use serde::Serialize;

use crate::{
    dev::{
        folder::{leave_marker, store_from_here},
        ports::{Block, Listener},
    },
    failure::Failure,
    output::Table,
    times,
};

/// What the new cluster is to be.
#[derive(Debug, Args)]
pub(crate) struct NewCluster {
    /// Folder for the new cluster: new or empty; each member gets a folder of its own in it
    #[arg(long, value_name = "FOLDER")]
    pub to: PathBuf,
    /// How many members, all on this machine, as `holdfast dev --dir FOLDER` runs them
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=9))]
    pub members: Option<u16>,
    /// Configuration of a member (TOML): the members, replicas and everything else are taken from it, but for the cluster's
    /// name and the folders
    #[arg(long, value_name = "FILE", conflicts_with_all = ["members", "base_port", "replicas"])]
    pub members_file: Option<PathBuf>,
    /// How many members carry each lock group; all of them where there are no more
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=9))]
    pub replicas: Option<u16>,
    /// First port of the block that members on this machine listen on
    #[arg(long, value_name = "PORT", default_value_t = 7600)]
    pub base_port: u16,
    /// Name of the new cluster [default: the lost one's with -r and the incarnation]
    #[arg(long, value_name = "NAME")]
    pub cluster: Option<ClusterId>,
    /// Incarnation of the new cluster, where the snapshot store cannot be written: above that of every cluster that was ever
    /// restored from the lost one
    #[arg(long, value_name = "N")]
    pub incarnation: Option<u64>,
    /// Grant locks at once instead of after the longest TTL: only where surely nobody still holds a lock of the lost cluster
    #[arg(long)]
    pub grant_at_once: bool,
}

/// Where the new members are, and what they have in common.
#[derive(Debug)]
pub(crate) struct Ground {
    to: PathBuf,
    common: MemberConfig,
    /// The block of ports of members on this machine.
    block: Option<Block>,
}

/// One group of the new cluster.
#[derive(Debug, Serialize)]
pub(crate) struct GroupLine {
    /// The group.
    pub group: u32,
    /// What it was restored from.
    pub from: String,
    /// Index of the last entry in that.
    pub log_index: u64,
    /// Revision in that.
    pub revision: u64,
}

/// One member of the new cluster.
#[derive(Debug, Serialize)]
pub(crate) struct MemberLine {
    /// Its id.
    pub member: u64,
    /// Its configuration.
    pub config: PathBuf,
    /// Its data folder.
    pub data: PathBuf,
}

/// What was made.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    /// The new cluster.
    pub cluster: String,
    /// The lost one.
    pub from_cluster: String,
    /// The incarnation.
    pub incarnation: u64,
    /// Every token of the new cluster is above this.
    pub tokens_above: u64,
    /// How long nothing is granted.
    pub pause_ms: u64,
    /// The groups.
    pub groups: Vec<GroupLine>,
    /// The members.
    pub members: Vec<MemberLine>,
    /// What is not whole and was passed over.
    pub passed_over: Vec<String>,
}

impl NewCluster {
    /// Where the members are. Those on this machine go on with the store in these settings: it has the incarnations that are in
    /// use, and whoever restores their snapshots must find them; without one, they have one of their own.
    pub(crate) fn ground(&self, store: Option<&SnapshotsConfig>) -> Result<Ground, Failure> {
        let to = std::path::absolute(&self.to).map_err(|e| failed("use", &self.to, &e))?;
        // Before an incarnation is used up.
        write::check_free(&to).map_err(|error| Failure::other(error.to_string()))?;
        if let Some(file) = &self.members_file {
            return Ok(Ground { to, common: read_config(file)?, block: None });
        }
        let members = self.members.unwrap_or(3);
        let replicas = self.replicas.unwrap_or(DEFAULT_REPLICAS).min(members);
        let block = Block::new(self.base_port, members)?;
        let common = MemberConfig {
            members: (1..=members).map(|number| entry(&block, number)).collect(),
            groups: GroupsConfig { replicas, ..GroupsConfig::default() },
            snapshots: snapshots_of(&to, store)?,
            ..MemberConfig::default()
        };
        Ok(Ground { to, common, block: Some(block) })
    }

    /// What is wanted of the restore.
    pub(crate) fn wanted(&self, ground: &Ground) -> Wanted {
        Wanted {
            cluster: self.cluster.clone(),
            members: ground.common.members.clone(),
            replicas: ground.common.groups.replicas,
            incarnation: self.incarnation,
            grants: if self.grant_at_once { Grants::AtOnce } else { Grants::AfterLongestTtl },
            at_ms: now_ms(),
        }
    }
}

impl Ground {
    /// Writes the folders, with a configuration for each member.
    pub(crate) async fn write(&self, prepared: &Prepared) -> Result<Vec<MemberLine>, Failure> {
        let configs = prepared.members.iter().map(|member| self.config_of(prepared, member));
        let configs = configs.collect::<Result<Vec<_>, Failure>>()?;
        let more = |folder: &Path| -> io::Result<()> {
            for (member, text) in &configs {
                fs::write(member_folder(folder, *member).join("config.toml"), text)?;
            }
            let Some(block) = self.block else { return Ok(()) };
            let rebuilt = &prepared.rebuilt;
            // A store within goes with the folder.
            let store = self.common.snapshots.store.as_deref();
            let store = store.filter(|store| !Path::new(store).starts_with(&self.to));
            leave_marker(
                folder,
                block.members(),
                rebuilt.lock_groups,
                rebuilt.replicas,
                prepared.cluster.as_str(),
                store,
            )
        };
        write::write(prepared, &self.to, more).await.map_err(|error| Failure::other(error.to_string()))?;
        let line = |member: &MemberEntry| MemberLine {
            member: member.id,
            config: member_folder(&self.to, member.id).join("config.toml"),
            data: data_folder(&self.to, member.id),
        };
        Ok(prepared.members.iter().map(line).collect())
    }

    fn config_of(&self, prepared: &Prepared, member: &MemberEntry) -> Result<(u64, String), Failure> {
        let rebuilt = &prepared.rebuilt;
        let config = MemberConfig {
            cluster: prepared.cluster.to_string(),
            member: member.id,
            data_dir: data_folder(&self.to, member.id),
            // The file may be of a member that had joined the lost cluster; there is none to join now.
            join: false,
            listen: self.listen_of(member),
            groups: GroupsConfig { lock_groups: rebuilt.lock_groups, replicas: rebuilt.replicas },
            ..self.common.clone()
        };
        let text = toml::to_string(&config).map_err(|e| Failure::other(e.to_string()))?;
        Ok((member.id, text))
    }

    /// The sockets of a member: those that its addresses name, where they are numbers; the common ones otherwise.
    fn listen_of(&self, member: &MemberEntry) -> ListenConfig {
        let common = &self.common.listen;
        let numeric = |url: &str, common: SocketAddr| {
            let address = url.trim_start_matches("http://").trim_start_matches("https://");
            address.parse().unwrap_or(common)
        };
        ListenConfig {
            http: numeric(&member.http, common.http),
            grpc: numeric(&member.grpc, common.grpc),
            peer: numeric(&member.peer, common.peer),
            insecure: common.insecure,
        }
    }
}

impl Report {
    /// The report for people.
    pub(crate) fn text(&self) -> String {
        let mut groups = Table::new(&["GROUP", "FROM", "LOG INDEX", "REVISION"], "no groups");
        for group in &self.groups {
            let (index, revision) = (group.log_index.to_string(), group.revision.to_string());
            groups.row([group.group.to_string(), group.from.clone(), index, revision]);
        }
        let mut members = Table::new(&["MEMBER", "CONFIG"], "no members");
        for member in &self.members {
            members.row([member.member.to_string(), member.config.display().to_string()]);
        }
        let pause = match self.pause_ms {
            0 => "locks are granted at once".to_owned(),
            pause => format!("locks are granted {} after each group has a leader", times::length(pause)),
        };
        format!(
            "cluster {} from {}, incarnation {}: every token is above {}; {pause}\n\n{}\n\n{}",
            self.cluster,
            self.from_cluster,
            self.incarnation,
            self.tokens_above,
            groups.text(),
            members.text()
        )
    }
}

/// Where members on this machine have their snapshots.
fn snapshots_of(to: &Path, lost: Option<&SnapshotsConfig>) -> Result<SnapshotsConfig, Failure> {
    let own = || to.join("snapshots").display().to_string();
    let lost = lost.cloned().unwrap_or_default();
    let store = lost.store.as_deref().map_or_else(|| Ok(own()), store_from_here)?;
    Ok(SnapshotsConfig { store: Some(store), ..lost })
}

/// A member of a block of ports on this machine.
fn entry(block: &Block, number: u16) -> MemberEntry {
    MemberEntry {
        id: number.into(),
        http: format!("http://{}", block.address(number, Listener::Http)),
        grpc: format!("http://{}", block.address(number, Listener::Grpc)),
        peer: block.address(number, Listener::Peer).to_string(),
    }
}

/// A member's configuration as it stands in its file.
pub(crate) fn read_config(file: &Path) -> Result<MemberConfig, Failure> {
    let text = fs::read_to_string(file).map_err(|e| failed("read", file, &e))?;
    let config: MemberConfig = toml::from_str(&text)
        .map_err(|e| Failure::other(format!("{} is no configuration of a member: {e}", file.display())))?;
    if config.members.is_empty() {
        return Err(Failure::other(format!("{} names no members", file.display())));
    }
    Ok(config)
}

/// Milliseconds since 1970.
fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

fn failed(act: &str, path: &Path, error: &io::Error) -> Failure {
    Failure::other(format!("cannot {act} {}: {error}", path.display()))
}

//! A change of the members from the operator's side: whether it shall be, what the new member is to be told, and how it goes.

use std::{
    net::{Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
    time::Duration,
};

use clap::Args;
use holdfast_client::{Admin, MemberChange, MemberChanges, MemberView, MembersWanted, NewMember};
use holdfast_node::config::{ListenConfig, MemberConfig, MemberEntry};

use crate::{
    cli::Global,
    cluster::{self, failed},
    failure::{self, Ended, Failure},
    output::{self, Table},
    say,
    verbs::ask::agreed,
};

/// How often a change is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// How long members may be without an answer before that ends the wait: fail-overs are a part of the change.
const SILENCE: u32 = 150;
/// Where a member keeps its state unless told otherwise.
const DATA_DIR: &str = "/var/lib/holdfast";

/// How a change is made.
#[derive(Debug, Args)]
pub(super) struct How {
    /// Only say whether it could begin
    #[arg(long)]
    dry_run: bool,
    /// Do not ask back
    #[arg(long)]
    yes: bool,
    /// Return once it is under way, without waiting for its end
    #[arg(long)]
    no_wait: bool,
    /// Why, for the audit log
    #[arg(long, value_name = "TEXT", default_value = "asked for by an operator")]
    reason: String,
}

/// What the new member is to be told.
#[derive(Debug, Args)]
pub(super) struct Told {
    /// Write the new member's configuration into this file, instead of showing it
    #[arg(long, value_name = "FILE")]
    write_config: Option<PathBuf>,
    /// Its data folder
    #[arg(long, value_name = "DIR", default_value = DATA_DIR)]
    data_dir: PathBuf,
}

/// Begins a change, unless it is only to be tried, says what the new member is to be told, and follows the change to its end.
pub(super) async fn carry_out(
    global: &Global,
    admin: &Admin,
    mut wanted: MembersWanted,
    told: Option<&Told>,
    how: &How,
) -> Ended {
    let actor = cluster::actor();
    wanted.dry_run = true;
    let would = admin.change_members(&wanted, &how.reason, &actor).await.map_err(|e| failed(&e))?;
    if how.dry_run {
        output::print(global.output, &would, |would| format!("would {}\n", would.what))?;
        return Ok(failure::OK);
    }
    if !how.yes && !agreed(&format!("this will {}", would.what))? {
        say::line("nothing was changed");
        return Ok(failure::OK);
    }
    wanted.dry_run = false;
    let begun = admin.change_members(&wanted, &how.reason, &actor).await.map_err(|e| failed(&e))?;
    if let (Some(told), Some(new)) = (told, &begun.comes) {
        tell(admin, told, new, begun.goes).await.inspect_err(|_failure| {
            let (number, id) = (begun.number, new.id);
            say::line(&format!(
                "member change {number} is under way: start member {id} with a configuration that you write, or stop it \
                 with `holdfast members cancel {number}`"
            ));
        })?;
    }
    if how.no_wait {
        output::print(global.output, &begun, words)?;
        return Ok(failure::OK);
    }
    let change = follow(admin, begun.number).await?;
    output::print(global.output, &change, words)?;
    match &change.stopped {
        Some(why) => Err(Failure::other(format!("member change {} was stopped: {why}", change.number))),
        None => Ok(failure::OK),
    }
}

/// Writes or shows the configuration with which the new member is to be started.
async fn tell(admin: &Admin, told: &Told, new: &NewMember, goes: Option<u64>) -> Result<(), Failure> {
    let status = admin.status().await.map_err(|e| failed(&e))?;
    let members = admin.members().await.map_err(|e| failed(&e))?;
    let text = config_of(status.cluster, &told.data_dir, new, goes, &members)?;
    match &told.write_config {
        Some(path) => {
            std::fs::write(path, text)
                .map_err(|e| Failure::other(format!("cannot write {}: {e}", path.display())))?;
            say::line(&format!("start member {} now: holdfast node --config {}", new.id, path.display()));
        }
        None => {
            say::line(&format!(
                "start member {} now, with `holdfast node --config FILE` and this in FILE:",
                new.id
            ));
            text.lines().for_each(say::line);
        }
    }
    Ok(())
}

fn config_of(
    cluster: String,
    data_dir: &Path,
    new: &NewMember,
    goes: Option<u64>,
    members: &[MemberView],
) -> Result<String, Failure> {
    let contacts = members.iter().filter(|member| member.id != new.id && Some(member.id) != goes);
    let entry = |member: &MemberView| MemberEntry {
        id: member.id,
        http: member.http.clone(),
        grpc: member.grpc.clone(),
        peer: member.peer.clone(),
    };
    let NewMember { id, http, grpc, peer } = new.clone();
    let listen =
        ListenConfig { http: socket(&http), grpc: socket(&grpc), peer: socket(&peer), insecure: false };
    let this = MemberEntry { id, http, grpc, peer };
    let config = MemberConfig {
        cluster,
        member: id,
        join: true,
        data_dir: data_dir.to_owned(),
        listen,
        members: contacts.map(entry).chain([this]).collect(),
        ..MemberConfig::default()
    };
    toml::to_string(&config).map_err(|e| Failure::other(format!("cannot write the configuration: {e}")))
}

/// Where to listen for what is reached there: on all addresses, where it has a name.
fn socket(address: &str) -> SocketAddr {
    let authority = address.split_once("://").map_or(address, |(_, rest)| rest).trim_end_matches('/');
    authority.parse().unwrap_or_else(|_| {
        let port = authority.rsplit_once(':').and_then(|(_, port)| port.parse().ok()).unwrap_or(0);
        SocketAddr::from((Ipv4Addr::UNSPECIFIED, port))
    })
}

/// Waits for the end of a change, and says on the way what it is at.
async fn follow(admin: &Admin, number: u64) -> Result<MemberChange, Failure> {
    let (mut said, mut silent) = (String::new(), 0);
    loop {
        match admin.member_changes().await {
            Err(error) if silent >= SILENCE => return Err(failed(&error)),
            Err(_) => silent += 1,
            Ok(changes) => {
                silent = 0;
                if let Some(over) = changes.past.into_iter().find(|change| change.number == number) {
                    return Ok(over);
                }
                let here = changes.under_way.filter(|change| change.number == number);
                if let Some(doing) = here.and_then(|change| change.doing).filter(|doing| *doing != said) {
                    say::line(&format!("member change {number}: {doing}"));
                    said = doing;
                }
            }
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

/// Waits for the end of the change under way, where there is one.
pub(super) async fn wait(admin: &Admin) -> Result<(), Failure> {
    let changes = admin.member_changes().await.map_err(|e| failed(&e))?;
    match changes.under_way {
        Some(change) => follow(admin, change.number).await.map(drop),
        None => Ok(()),
    }
}

/// A change in a sentence.
fn words(change: &MemberChange) -> String {
    let how = match (&change.stopped, change.ended_ms, &change.doing) {
        (Some(why), _, _) => format!("stopped: {why}"),
        (None, Some(_), _) => "done".to_owned(),
        (None, None, Some(doing)) => doing.clone(),
        (None, None, None) => "under way".to_owned(),
    };
    format!("member change {}, {}: {how}\n", change.number, change.what)
}

/// The changes as a table, the newest last.
pub(super) fn table(changes: &MemberChanges) -> String {
    let mut table =
        Table::new(&["CHANGE", "WHAT", "BY", "REASON", "STATE"], "the members were never changed");
    for change in changes.past.iter().chain(&changes.under_way) {
        let how = match (&change.stopped, change.ended_ms) {
            (Some(why), _) => format!("stopped: {why}"),
            (None, Some(_)) => "done".to_owned(),
            (None, None) => change.doing.clone().unwrap_or_else(|| "under way".to_owned()),
        };
        table.row([
            change.number.to_string(),
            change.what.clone(),
            change.actor.clone(),
            change.reason.clone(),
            how,
        ]);
    }
    table.text()
}

//! `holdfast members`: the processes of the cluster, which of them are to carry nothing, and who comes and goes.

mod change;

mod recover;

use clap::{Args, Subcommand};
use holdfast_client::{MemberView, MembersWanted, NewMember};

use self::change::{How, Told};

use crate::{
    cli::Global,
    cluster::{self, failed},
    failure::{self, Ended},
    output::{self, Table},
    say,
};

const HELP: &str = "\
Examples:
  holdfast members list
  holdfast members add --peer 10.0.0.4:7612 --http http://10.0.0.4:7610 --grpc http://10.0.0.4:7611
  holdfast members remove 4
  holdfast members replace 3 --with 4 --write-config member.toml     a dead member, on the same machine
  holdfast members changes                                           what is under way, and what was before

There is one change at a time. Locks stay held, waiting calls wait, and sessions live on meanwhile.";

/// List the members of the cluster, add, remove, replace and drain them
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct MembersArgs {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// List members, where they listen, and which groups they carry and lead, as the answering member sees them
    List,
    /// Have a member carry and lead no lock group any more; its groups go to others one after the other
    Drain(Which),
    /// Allow a drained member to carry groups again
    Undrain(Which),
    Recover(Box<recover::RecoverArgs>),
    /// Make a place for a new member and wait until it has come: it follows, catches up and may carry groups
    Add {
        /// Address of its peer listener, as `10.0.0.4:7612`
        #[arg(long, value_name = "HOST:PORT")]
        peer: String,
        /// Base URL of its HTTP listener, as `http://10.0.0.4:7610`
        #[arg(long, value_name = "URL")]
        http: String,
        /// URL of its gRPC listener, as `http://10.0.0.4:7611`
        #[arg(long, value_name = "URL")]
        grpc: String,
        /// Its id; the next that was never used where it is not given
        #[arg(long, value_name = "ID", default_value_t = 0, hide_default_value = true)]
        id: u64,
        #[command(flatten)]
        told: Told,
        #[command(flatten)]
        how: How,
    },
    /// Take a member off: it gives its groups away first, and its id is never used again
    Remove {
        /// Its id
        id: u64,
        #[command(flatten)]
        how: How,
    },
    /// Have a new member in the place of one that is dead or lost its disk: first the new one comes, then the old one goes
    Replace {
        /// The id of the old one
        old: u64,
        /// The id of the new one; the next that was never used where it is not given
        #[arg(long = "with", value_name = "ID", default_value_t = 0, hide_default_value = true)]
        with: u64,
        /// Address of the new one's peer listener; that of the old one where it is not given
        #[arg(long, value_name = "HOST:PORT", default_value = "", hide_default_value = true)]
        peer: String,
        /// Base URL of its HTTP listener; that of the old one where it is not given
        #[arg(long, value_name = "URL", default_value = "", hide_default_value = true)]
        http: String,
        /// URL of its gRPC listener; that of the old one where it is not given
        #[arg(long, value_name = "URL", default_value = "", hide_default_value = true)]
        grpc: String,
        #[command(flatten)]
        told: Told,
        #[command(flatten)]
        how: How,
    },
    /// Show the change of the members under way and the last ones before it
    Changes {
        /// Wait for the one under way to end first
        #[arg(long)]
        wait: bool,
    },
    /// Stop a change: a new member that has not come stays out, one that was to go stays
    Cancel {
        /// Its number
        change: u64,
        /// Why, for the audit log
        #[arg(long, value_name = "TEXT", default_value = "stopped by an operator")]
        reason: String,
    },
}

/// Which member, and why.
#[derive(Debug, Args)]
struct Which {
    /// Its id
    id: u64,
    /// Why, for the audit log
    #[arg(long, value_name = "TEXT", default_value = "asked for by an operator")]
    reason: String,
}

/// Asks, shows.
pub(crate) fn run(global: &Global, args: MembersArgs) -> Ended {
    if let Verb::Recover(args) = &args.verb {
        return recover::run(global, args);
    }
    let client = cluster::client(global)?;
    cluster::block_on(async {
        let admin = client.admin();
        match args.verb {
            Verb::List | Verb::Recover(_) => {
                let members = admin.members().await.map_err(|e| failed(&e))?;
                output::print(global.output, &members, |members| table(members))?;
            }
            Verb::Drain(Which { id, reason }) => {
                admin.drain_member(id, true, &reason, &cluster::actor()).await.map_err(|e| failed(&e))?;
                say::line(&format!(
                    "member {id} is being drained; `holdfast members list` shows what it still carries"
                ));
            }
            Verb::Undrain(Which { id, reason }) => {
                admin.drain_member(id, false, &reason, &cluster::actor()).await.map_err(|e| failed(&e))?;
                say::line(&format!("member {id} may carry groups again"));
            }
            Verb::Add { peer, http, grpc, id, told, how } => {
                let add = Some(NewMember { id, http, grpc, peer });
                let wanted = MembersWanted { add, ..MembersWanted::default() };
                return change::carry_out(global, &admin, wanted, Some(&told), &how).await;
            }
            Verb::Remove { id, how } => {
                let wanted = MembersWanted { remove: Some(id), ..MembersWanted::default() };
                return change::carry_out(global, &admin, wanted, None, &how).await;
            }
            Verb::Replace { old, with, peer, http, grpc, told, how } => {
                let add = Some(NewMember { id: with, http, grpc, peer });
                let wanted = MembersWanted { add, remove: Some(old), dry_run: false };
                return change::carry_out(global, &admin, wanted, Some(&told), &how).await;
            }
            Verb::Changes { wait } => {
                if wait {
                    change::wait(&admin).await?;
                }
                let changes = admin.member_changes().await.map_err(|e| failed(&e))?;
                output::print(global.output, &changes, change::table)?;
            }
            Verb::Cancel { change, reason } => {
                let cancelled = admin.cancel_member_change(change, &reason, &cluster::actor()).await;
                cancelled.map_err(|e| failed(&e))?;
                say::line(&format!("member change {change} is stopped"));
            }
        }
        Ok(failure::OK)
    })
}

fn table(members: &[MemberView]) -> String {
    let header = ["ID", "HTTP", "GRPC", "PEER", "REACHABLE", "LEADS", "CARRIES", "DRAINED"];
    let mut table = Table::new(&header, "no members");
    let listed = |groups: &[u32]| groups.iter().map(u32::to_string).collect::<Vec<_>>().join(" ");
    let yes_no = |yes: bool| if yes { "yes" } else { "no" }.to_owned();
    for member in members {
        table.row([
            if member.this { format!("{} (answered)", member.id) } else { member.id.to_string() },
            member.http.clone(),
            member.grpc.clone(),
            member.peer.clone(),
            yes_no(member.reachable),
            listed(&member.leads),
            listed(&member.carries),
            yes_no(member.drained),
        ]);
    }
    table.text()
}

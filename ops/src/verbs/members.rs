//! `holdfast members`: the processes of the cluster, and which of them are to carry nothing.

mod recover;

use clap::{Args, Subcommand};
use holdfast_client::MemberView;

use crate::{
    cli::Global,
    cluster::{self, failed},
    failure::{self, Ended},
    output::{self, Table},
    say,
};

/// List the members of the cluster, drain them and take them back
#[derive(Debug, Args)]
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

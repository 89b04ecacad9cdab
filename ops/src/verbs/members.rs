//! `holdfast members`: the processes of the cluster.

use clap::{Args, Subcommand};

use crate::{
    cli::Global,
    cluster::{self, failed},
    failure::{self, Ended},
    output::{self, Table},
};

/// List the members of the cluster
#[derive(Debug, Args)]
pub(crate) struct MembersArgs {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// List members, where they listen, and which groups they lead, as the answering member sees them
    List,
}

/// Asks, shows.
pub(crate) fn run(global: &Global, args: MembersArgs) -> Ended {
    let client = cluster::client(global)?;
    cluster::block_on(async {
        match args.verb {
            Verb::List => {
                let members = client.admin().members().await.map_err(|e| failed(&e))?;
                output::print(global.output, &members, |members| {
                    let mut table =
                        Table::new(&["ID", "HTTP", "GRPC", "PEER", "REACHABLE", "LEADS"], "no members");
                    for member in members {
                        let leads: Vec<String> = member.leads.iter().map(u32::to_string).collect();
                        table.row([
                            if member.this {
                                format!("{} (answered)", member.id)
                            } else {
                                member.id.to_string()
                            },
                            member.http.clone(),
                            member.grpc.clone(),
                            member.peer.clone(),
                            if member.reachable { "yes" } else { "no" }.into(),
                            leads.join(" "),
                        ]);
                    }
                    table.text()
                })?;
            }
        }
        Ok(failure::OK)
    })
}

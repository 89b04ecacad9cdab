//! The commands of a plan: how its members are started, one step after the other, and what to look at then.
//!
//! Every command stands in one line as a shell takes it.

use serde::Serialize;

use super::plan::{PlannedGroup, PlannedMember};

/// One step of a bootstrap. Its commands may run in any order and at the same time, but for starts, which are best made in
/// theirs.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Step {
    /// What it is for.
    pub what: &'static str,
    /// Its commands, one per member.
    pub commands: Vec<OnMember>,
}

/// A command on one member's host.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct OnMember {
    /// The member's id.
    pub member: u64,
    /// Its host.
    pub host: String,
    /// The command.
    pub run: String,
}

/// A question to the running cluster.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Check {
    /// What it is about.
    pub check: &'static str,
    /// The command, from any machine that reaches the members.
    pub run: String,
    /// What it must answer; each of them must exit with 0.
    pub expect: String,
}

/// How the members are started. Those that vote in the meta group come first: without a majority of them nothing begins.
pub(super) fn bootstrap(members: &[PlannedMember], meta: &[u64]) -> Vec<Step> {
    let mut order: Vec<&PlannedMember> = members.iter().collect();
    order.sort_by_key(|member| (!meta.contains(&member.id), member.id));
    let each = |what, run: &dyn Fn(&PlannedMember) -> String| Step {
        what,
        commands: order
            .iter()
            .map(|member| OnMember { member: member.id, host: member.host.clone(), run: run(member) })
            .collect(),
    };
    vec![
        each("check what the members will be told; it changes nothing", &|member| {
            format!("holdfast config check --config {}/member.toml", member.name)
        }),
        each("install configuration and unit, from the folder of the plan", &|member| {
            format!(
                "install -D -m 0644 {0}/member.toml /etc/holdfast/member.toml && install -m 0644 \
                 {0}/holdfast.service /etc/systemd/system/ && systemctl daemon-reload",
                member.name
            )
        }),
        each("start; a member waits until a majority of each of its groups is there", &|_| {
            "systemctl enable --now --no-block holdfast".to_owned()
        }),
        each("wait until all serve", &|member| format!("holdfast health --http {} --wait 2m", member.http)),
    ]
}

/// What to look at once the members serve.
pub(super) fn checks(members: &[PlannedMember], groups: &[PlannedGroup]) -> Vec<Check> {
    let endpoints = members.iter().map(|member| member.grpc.as_str()).collect::<Vec<_>>().join(",");
    let voters = groups.iter().filter(|group| group.group != 0).map(|group| group.voters.len()).max();
    let (voters, locks) = (voters.unwrap_or(0), groups.len().saturating_sub(1));
    vec![
        Check {
            check: "the members hear each other",
            run: format!("holdfast members list --endpoints {endpoints}"),
            expect: format!("{} members, each REACHABLE", members.len()),
        },
        Check {
            check: "every group has a leader",
            run: format!("holdfast groups list --endpoints {endpoints}"),
            expect: format!("the meta group and {locks} lock groups of {voters} voters, each with a leader"),
        },
        Check {
            check: "a lock is granted and released",
            run: format!("holdfast lock deploy-check --wait 30s --endpoints {endpoints} -- true"),
            expect: "nothing on the terminal".to_owned(),
        },
        Check {
            check: "snapshots can be stored",
            run: format!("holdfast snapshots take --endpoints {endpoints}"),
            expect: format!("{} snapshots, one of each group", groups.len()),
        },
    ]
}

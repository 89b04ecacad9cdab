//! What follows from a members file: each member's configuration, where the groups lie at first, and whether that is sound.
//!
//! Pure: the same file gives the same plan. Where groups lie is what the members themselves will come to ([`Layout`]).

use std::collections::BTreeMap;

use holdfast_node::{config::MemberConfig, member::layout::Layout};
use serde::Serialize;

use super::{
    commands::{self, Check, Step},
    members_file::{Entry, MembersFile},
};
use crate::failure::Failure;

/// A planned cluster. Field names are published.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Plan {
    /// Its name.
    pub cluster: String,
    /// Its members, in the file's order.
    pub members: Vec<PlannedMember>,
    /// Where its groups lie at first; group 0 is the meta group.
    pub groups: Vec<PlannedGroup>,
    /// Whether that is sound.
    pub layout: Vec<Finding>,
    /// How to start it, step by step.
    pub bootstrap: Vec<Step>,
    /// What to look at then.
    pub checks: Vec<Check>,
    /// What is unwise.
    pub warnings: Vec<String>,
}

/// One member of a plan.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct PlannedMember {
    /// Its id.
    pub id: u64,
    /// What people call it.
    pub name: String,
    /// Where it is reached.
    pub host: String,
    /// What fails together with it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub zone: Option<String>,
    /// Base URL of its HTTP listener.
    pub http: String,
    /// URL of its gRPC listener.
    pub grpc: String,
    /// Lock groups it carries at first.
    pub carries: Vec<u32>,
    /// Lock groups it leads at first.
    pub leads: Vec<u32>,
    /// Its configuration, as `holdfast node --config` takes it.
    pub config_toml: String,
}

/// One group of a plan.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct PlannedGroup {
    /// Its number.
    pub group: u32,
    /// The members that vote in it, the one that leads it first first.
    pub voters: Vec<u64>,
    /// How many of them may fail.
    pub survives: usize,
}

/// One thing that makes a layout sound.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Finding {
    /// What was looked at.
    pub check: &'static str,
    /// Whether it is as it should be.
    pub ok: bool,
    /// What was found.
    pub found: String,
}

impl Plan {
    /// Plans the cluster.
    ///
    /// # Errors
    /// A configuration that cannot be written as TOML.
    pub(crate) fn of(file: &MembersFile) -> Result<Self, Failure> {
        let configs: Vec<(&Entry, MemberConfig)> = file.configs().collect();
        let layout = configs.first().map(|(_, config)| Layout::of(config));
        let layout = layout.unwrap_or_else(|| Layout { meta: Vec::new(), groups: BTreeMap::new() });
        let members: Result<Vec<_>, _> =
            configs.iter().map(|(entry, config)| member(entry, config, &layout)).collect();
        let (members, groups) = (members?, groups(&layout));
        let findings = findings(file, &members, &groups);
        let bad = findings.iter().filter(|finding| !finding.ok);
        let bad = bad.map(|finding| format!("{}: {}", finding.check, finding.found));
        let unwise = configs.first().map(|(_, config)| config.validate()).unwrap_or_default();
        let unwise = unwise.into_iter().filter(|fault| !fault.is_error()).map(|fault| fault.to_string());
        Ok(Self {
            cluster: file.cluster.clone(),
            bootstrap: commands::bootstrap(&members, &layout.meta),
            checks: commands::checks(&members, &groups),
            warnings: unwise.chain(bad).collect(),
            layout: findings,
            members,
            groups,
        })
    }
}

fn member(entry: &Entry, config: &MemberConfig, layout: &Layout) -> Result<PlannedMember, Failure> {
    let carries = layout.groups.iter().filter(|(_, replicas)| replicas.contains(&entry.id));
    let leads = layout.groups.iter().filter(|(_, replicas)| replicas.first() == Some(&entry.id));
    let own = config.this_member().cloned().unwrap_or_default();
    let name = entry.name();
    let text = toml::to_string(config)
        .map_err(|e| Failure::other(format!("the configuration of {name} cannot be written: {e}")))?;
    let title = format!("# Member {} ({name}) of the cluster {}.\n", entry.id, config.cluster);
    Ok(PlannedMember {
        id: entry.id,
        host: entry.host.clone(),
        zone: entry.zone.clone(),
        http: own.http,
        grpc: own.grpc,
        carries: carries.map(|(group, _)| *group).collect(),
        leads: leads.map(|(group, _)| *group).collect(),
        config_toml: title + &text,
        name,
    })
}

fn groups(layout: &Layout) -> Vec<PlannedGroup> {
    let group = |group, voters: &Vec<u64>| PlannedGroup {
        group,
        voters: voters.clone(),
        survives: voters.len().saturating_sub(1) / 2,
    };
    let locks = layout.groups.iter().map(|(number, voters)| group(*number, voters));
    [group(0, &layout.meta)].into_iter().chain(locks).collect()
}

fn findings(file: &MembersFile, members: &[PlannedMember], groups: &[PlannedGroup]) -> Vec<Finding> {
    let (meta, locks): (Vec<&PlannedGroup>, Vec<&PlannedGroup>) =
        groups.iter().partition(|group| group.group == 0);
    let mut findings = vec![
        survival("the meta group survives the loss of a member", &meta),
        survival("each lock group survives the loss of a member", &locks),
        evenness("replicas are spread", "carries", members.iter().map(|member| member.carries.len())),
        evenness("leaders are spread", "leads", members.iter().map(|member| member.leads.len())),
    ];
    let zones = file.zones();
    if !zones.is_empty() {
        findings.push(zone_survival(&zones, groups));
    }
    findings
}

fn survival(check: &'static str, groups: &[&PlannedGroup]) -> Finding {
    let worst = groups.iter().min_by_key(|group| group.survives);
    let (voters, survives) = worst.map_or((0, 0), |group| (group.voters.len(), group.survives));
    Finding { check, ok: survives > 0, found: format!("of {voters} voters {survives} may fail") }
}

fn evenness(check: &'static str, verb: &str, counts: impl Iterator<Item = usize> + Clone) -> Finding {
    let (least, most) = (counts.clone().min().unwrap_or(0), counts.max().unwrap_or(0));
    let share = if least == most { least.to_string() } else { format!("{least} to {most}") };
    Finding {
        check,
        ok: most - least <= 1,
        found: format!("each member {verb} {share} lock groups at first"),
    }
}

/// Whether every group keeps its majority when all members of any one zone are gone.
fn zone_survival(zones: &BTreeMap<&str, Vec<u64>>, groups: &[PlannedGroup]) -> Finding {
    let mut stopped = Vec::new();
    for (zone, members) in zones {
        let lost = |group: &&PlannedGroup| {
            group.voters.iter().filter(|voter| members.contains(voter)).count() > group.survives
        };
        let lost: Vec<String> = groups.iter().filter(lost).map(|group| group.group.to_string()).collect();
        if !lost.is_empty() {
            stopped.push(format!("without zone {zone} these groups stop: {}", lost.join(" ")));
        }
    }
    let ok = stopped.is_empty();
    let found = if ok {
        format!("every group keeps its majority without any one of {} zones", zones.len())
    } else {
        format!("{}; have the ids go round the zones in turn, or use more zones", stopped.join(", "))
    };
    Finding { check: "each group survives the loss of a zone", ok, found }
}

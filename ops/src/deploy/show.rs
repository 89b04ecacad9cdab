//! A plan as text for people.

use std::fmt::Write as _;

use super::plan::{Plan, PlannedMember};
use crate::output::Table;

/// The whole plan.
pub(super) fn text(plan: &Plan) -> String {
    let mut out = format!("Cluster {}\n\n{}\n\n{}\n", plan.cluster, members(plan), groups(plan));
    out.push_str("\nLayout\n");
    for finding in &plan.layout {
        let verdict = if finding.ok { "ok " } else { "BAD" };
        let _ = writeln!(out, "  {verdict} {}: {}", finding.check, finding.found);
    }
    for member in &plan.members {
        let _ = write!(out, "\n{}", config(member));
    }
    out.push_str("\nBootstrap\n");
    for (step, number) in plan.bootstrap.iter().zip(1..) {
        let _ = writeln!(out, "  {number}. {}", step.what);
        for command in &step.commands {
            let _ = writeln!(out, "     {}: {}", command.host, command.run);
        }
    }
    out.push_str("\nChecks; each command must exit with 0\n");
    for (check, number) in plan.checks.iter().zip(1..) {
        let _ = writeln!(out, "  {number}. {}: {}\n     {}", check.check, check.expect, check.run);
    }
    out.trim_end().to_owned()
}

fn members(plan: &Plan) -> String {
    let mut table = Table::new(&["ID", "NAME", "HOST", "ZONE", "CARRIES", "LEADS FIRST"], "no members");
    for member in &plan.members {
        table.row([
            member.id.to_string(),
            member.name.clone(),
            member.host.clone(),
            member.zone.clone().unwrap_or_default(),
            listed(&member.carries),
            listed(&member.leads),
        ]);
    }
    table.text()
}

fn groups(plan: &Plan) -> String {
    let mut table = Table::new(&["GROUP", "VOTERS", "MAY FAIL"], "no groups");
    for group in &plan.groups {
        let name = if group.group == 0 { "meta".to_owned() } else { group.group.to_string() };
        table.row([name, listed(&group.voters), group.survives.to_string()]);
    }
    table.text()
}

fn config(member: &PlannedMember) -> String {
    format!("--- {}/member.toml\n{}", member.name, member.config_toml)
}

fn listed<T: ToString>(numbers: &[T]) -> String {
    numbers.iter().map(T::to_string).collect::<Vec<_>>().join(" ")
}

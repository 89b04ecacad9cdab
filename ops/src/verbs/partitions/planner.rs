//! `holdfast partitions plan` and `policy`: what the planner makes of the load, and when it acts.

use std::time::Duration;

use clap::Args;
use holdfast_client::{Admin, GroupLoad, PlannerEdit, PlannerLook, PlannerPolicy, PlannerState, PrefixLoad};

use super::{
    change::{self, How},
    words,
};
use crate::{
    cli::{self, Global},
    cluster::{self, failed},
    escape,
    failure::{self, Ended, Failure},
    output::{self, Table},
    say, times,
};

/// Longest reason that the audit log takes, in bytes.
const LONGEST_REASON: usize = 1_024;

/// Which plan is shown, and whether it is carried out.
#[derive(Debug, Args)]
pub(super) struct PlanArgs {
    /// Carry out what is proposed
    #[arg(long)]
    apply: bool,
    #[command(flatten)]
    how: How,
}

/// What is to be changed of the policy; without any of it the policy is shown.
#[derive(Debug, Args)]
pub(super) struct PolicyArgs {
    /// What becomes of a proposal: off, suggest (shown), auto (carried out)
    #[arg(long, value_name = "MODE", value_parser = ["off", "suggest", "auto"])]
    mode: Option<String>,
    /// A prefix is hot in a group from so many log entries in a second on
    #[arg(long, value_name = "N")]
    hot_entries: Option<u64>,
    /// Or where its entries wait so long in the group's commit queue, if it has half of the group's
    #[arg(long, value_name = "TIME", value_parser = cli::duration)]
    hot_queue: Option<Duration>,
    /// A group is overloaded from so many log entries in a second on
    #[arg(long, value_name = "N")]
    group_entries: Option<u64>,
    /// A prefix with a rule of its own is quiet up to so many log entries in a second
    #[arg(long, value_name = "N")]
    quiet_entries: Option<u64>,
    /// A name with more than this share of a hot prefix is isolated, 50 to 100
    #[arg(long, value_name = "PERCENT")]
    isolate: Option<u64>,
    /// A change must leave every group it touches this much below what the relieved one has, 1 to 50
    #[arg(long, value_name = "PERCENT")]
    gain: Option<u64>,
    /// How long a prefix must be hot, or a group overloaded
    #[arg(long, value_name = "TIME", value_parser = cli::duration)]
    hold: Option<Duration>,
    /// How long a prefix must be quiet before its rule goes
    #[arg(long, value_name = "TIME", value_parser = cli::duration)]
    quiet: Option<Duration>,
    /// From the start of a move until the next change
    #[arg(long, value_name = "TIME", value_parser = cli::duration)]
    cool_down: Option<Duration>,
    /// Moves within any hour
    #[arg(long, value_name = "N")]
    moves_per_hour: Option<u32>,
    /// Never move names that begin with this; may be given again; empty for all names
    #[arg(long, value_name = "PREFIX")]
    veto: Vec<String>,
    /// Lift the veto on this prefix; may be given again
    #[arg(long, value_name = "PREFIX")]
    allow: Vec<String>,
    /// Why, for the audit log
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
}

impl PolicyArgs {
    fn edit(self) -> (PlannerEdit, Option<String>) {
        let ms = |time: Option<Duration>| time.map(|time| time.as_millis() as u64);
        let edit = PlannerEdit {
            mode: self.mode,
            hot_entries_per_s: self.hot_entries,
            hot_queue_ms: ms(self.hot_queue),
            group_entries_per_s: self.group_entries,
            quiet_entries_per_s: self.quiet_entries,
            isolate_percent: self.isolate,
            gain_percent: self.gain,
            hold_ms: ms(self.hold),
            quiet_ms: ms(self.quiet),
            cool_down_ms: ms(self.cool_down),
            moves_per_hour: self.moves_per_hour,
            veto: self.veto,
            allow: self.allow,
        };
        (edit, self.reason)
    }
}

/// Shows what the planner saw and proposes, and has it done if that is asked for.
pub(super) async fn plan(global: &Global, admin: &Admin, args: PlanArgs) -> Ended {
    let PlanArgs { apply, mut how } = args;
    if !apply && (how.dry_run || how.yes || how.no_wait || how.reason.is_some()) {
        return Err(Failure::usage(
            "--dry-run, --yes, --no-wait and --reason say how it is done; add --apply",
        ));
    }
    let state = admin.planner().await.map_err(|e| failed(&e))?;
    if !apply {
        output::print(global.output, &state, in_words)?;
        return Ok(failure::OK);
    }
    let Some(proposal) = state.look.as_ref().and_then(|look| look.proposal.clone()) else {
        return Err(Failure::other(format!("the planner proposes nothing: {}", nothing(&state))));
    };
    say::line(&format!("{}: {}", proposal.what, proposal.why));
    how.reason = Some(how.reason.unwrap_or_else(|| shortened(&proposal.why)));
    change::carry_out(global, admin, proposal.change, &how).await
}

/// Shows or changes when the planner acts.
pub(super) async fn policy(global: &Global, admin: &Admin, args: PolicyArgs) -> Ended {
    let (edit, reason) = args.edit();
    let state = match (edit == PlannerEdit::default(), reason) {
        (true, Some(_)) => {
            return Err(Failure::usage("--reason says why something changes; name what shall change"));
        }
        (true, None) => admin.planner().await,
        (false, reason) => {
            let reason = reason.unwrap_or_else(|| change::ASKED.to_owned());
            admin.edit_planner(edit, &reason, &cluster::actor()).await
        }
    };
    let PlannerState { policy, .. } = state.map_err(|e| failed(&e))?;
    output::print(global.output, &policy, policy_in_words)?;
    Ok(failure::OK)
}

fn shortened(text: &str) -> String {
    let end = (0..=LONGEST_REASON.min(text.len())).rev().find(|end| text.is_char_boundary(*end));
    text[..end.unwrap_or(0)].to_owned()
}

/// Why there is no proposal.
fn nothing(state: &PlannerState) -> String {
    match &state.look {
        None => "its leader is new and has not looked yet; ask again in a few seconds".to_owned(),
        Some(PlannerLook { wait: Some(wait), .. }) => wait.clone(),
        Some(PlannerLook { notes, .. }) if !notes.is_empty() => notes.join("; "),
        Some(_) => format!("nothing has been hot for {}", times::length(state.policy.hold_ms)),
    }
}

fn in_words(state: &PlannerState) -> String {
    let mode = escape::shown(&format!("mode {}{}", state.policy.mode, vetoes(&state.policy)));
    let Some(look) = &state.look else { return format!("{mode}; {}", nothing(state)) };
    let proposal = match &look.proposal {
        Some(proposal) => {
            let next = match state.policy.mode.as_str() {
                "auto" => "it is being carried out",
                _ => "holdfast partitions plan --apply does it",
            };
            let what = escape::shown(&format!("{}: {}", proposal.what, proposal.why));
            format!("{what}\n{next}\n\n{}", words::plan(&proposal.plan))
        }
        None => escape::shown(&format!("nothing to do: {}", nothing(state))),
    };
    let groups = groups(&look.groups);
    let ago = times::length(look.ago_ms);
    let hottest = hottest(&look.hottest);
    let epoch = look.map_epoch;
    format!("{mode}; measured {ago} ago under map epoch {epoch}\n\n{groups}\n\n{hottest}\n\n{proposal}")
}

fn vetoes(policy: &PlannerPolicy) -> String {
    if policy.vetoes.is_empty() {
        return String::new();
    }
    let listed: Vec<String> = policy.vetoes.iter().map(|prefix| format!("{prefix:?}")).collect();
    format!(", vetoes on {}", listed.join(", "))
}

fn groups(groups: &[GroupLoad]) -> String {
    let mut table = Table::new(&["GROUP", "ENTRIES/S", "COMMIT QUEUE", "STATE"], "there are no groups");
    for load in groups {
        let state = match (load.electing, load.retired) {
            (true, _) => "electing, or not answering",
            (false, true) => "retired",
            (false, false) => "",
        };
        let (entries, queue) = match load.electing {
            true => ("?".to_owned(), "?".to_owned()),
            false => (load.entries_per_s.to_string(), times::length(load.queue_ms)),
        };
        table.row([load.group.to_string(), entries, queue, state.to_owned()]);
    }
    table.text()
}

fn hottest(prefixes: &[PrefixLoad]) -> String {
    let header = ["PREFIX", "GROUP", "ENTRIES/S", "WAITING", "HOTTEST NAMES"];
    let mut table = Table::new(&header, "no prefix has any load");
    for load in prefixes {
        let name = |name: &holdfast_client::NameLoad| format!("{} ({})", name.name, name.entries_per_s);
        table.row([
            if load.prefix.is_empty() { "(all)".to_owned() } else { load.prefix.clone() },
            load.group.to_string(),
            load.entries_per_s.to_string(),
            load.waiters.to_string(),
            load.names.iter().take(3).map(name).collect::<Vec<_>>().join(", "),
        ]);
    }
    table.text()
}

fn policy_in_words(policy: &PlannerPolicy) -> String {
    let mut table = Table::new(&["SETTING", "VALUE", "MEANING"], "");
    let mut row = |setting: &str, value: String, meaning: &str| {
        table.row([setting.to_owned(), value, meaning.to_owned()]);
    };
    row("mode", policy.mode.clone(), "off, suggest or auto");
    row(
        "hot-entries",
        policy.hot_entries_per_s.to_string(),
        "entries/s from which a prefix is hot in a group",
    );
    row(
        "hot-queue",
        times::length(policy.hot_queue_ms),
        "or so long in the commit queue, with half of the group's entries",
    );
    row(
        "group-entries",
        policy.group_entries_per_s.to_string(),
        "entries/s from which a group is overloaded",
    );
    row(
        "quiet-entries",
        policy.quiet_entries_per_s.to_string(),
        "entries/s up to which a split prefix is quiet",
    );
    row(
        "isolate",
        format!("{}%", policy.isolate_percent),
        "share of a hot prefix that makes a name go by itself",
    );
    row("gain", format!("{}%", policy.gain_percent), "how far below the relieved group all must end");
    row("hold", times::length(policy.hold_ms), "how long it must be hot");
    row("quiet", times::length(policy.quiet_ms), "how long it must be quiet");
    row("cool-down", times::length(policy.cool_down_ms), "from the start of a move to the next change");
    row(
        "moves-per-hour",
        policy.moves_per_hour.to_string(),
        "moves within any hour, those of operators included",
    );
    row(
        "veto",
        if policy.vetoes.is_empty() { "none".to_owned() } else { policy.vetoes.join(", ") },
        "prefixes that the planner never moves",
    );
    table.text()
}

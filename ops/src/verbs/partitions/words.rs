//! How plans and changes of the partition map are shown to people.

use holdfast_client::{PartitionChange, PartitionChanges, PartitionPlan};

use crate::{output::Table, times};

/// What a change comes to.
pub(super) fn plan(plan: &PartitionPlan) -> String {
    if plan.steps.is_empty() {
        return format!("the rule of {:?} changes, and every name stays where it is", plan.prefix);
    }
    let header = ["FROM", "TO", "NAMES", "HELD", "WAITING", "SESSIONS"];
    let mut table = Table::new(&header, "nothing moves");
    for step in &plan.steps {
        let count = |count: u64| if step.counted { count.to_string() } else { "?".into() };
        table.row([
            step.from.to_string(),
            step.to.to_string(),
            step.range.clone(),
            count(step.held),
            count(step.waiting),
            count(step.sessions),
        ]);
    }
    let begun = plan.number.map_or_else(String::new, |number| format!("change {number} is under way\n\n"));
    format!(
        "{begun}{}\n\neach range pauses for some ten milliseconds, 3 s at the most; holders, queues and tokens stay",
        table.text()
    )
}

/// One change.
pub(super) fn change(change: &PartitionChange) -> String {
    let took = change.end.as_ref().map_or_else(String::new, |end| {
        format!(" in {}", times::length(end.at_ms.saturating_sub(change.begun_ms)))
    });
    format!(
        "change {}: {}; {} of {} steps {}{took}",
        change.number,
        change.what,
        change.done,
        change.steps,
        state(change)
    )
}

/// What a change is at right now.
pub(super) fn progress(change: &PartitionChange) -> String {
    let moving = change.moving.as_ref().map_or_else(String::new, |moving| {
        let again = match moving.given_up_before {
            0 => String::new(),
            times => format!(", try {}", times + 1),
        };
        let stage = moving.stage.replace('_', " ");
        format!(": {stage} {} from group {} to {}{again}", moving.range, moving.from, moving.to)
    });
    let stopping = if change.stopping.is_some() { " (stopping)" } else { "" };
    format!("step {} of {}{moving}{stopping}", (change.done + 1).min(change.steps), change.steps)
}

/// The change under way, and those before it.
pub(super) fn changes(changes: &PartitionChanges) -> String {
    let header = ["NUMBER", "BEGUN", "WHAT", "WHO", "STEPS", "STATE", "WHY"];
    let mut table = Table::new(&header, "the partition map was never changed");
    for change in changes.past.iter().chain(&changes.under_way) {
        let why = change.end.as_ref().and_then(|end| end.why.clone());
        table.row([
            change.number.to_string(),
            times::point(change.begun_ms),
            change.what.clone(),
            change.actor.clone(),
            format!("{} of {}", change.done, change.steps),
            state(change),
            why.or_else(|| change.stopping.clone()).unwrap_or_else(|| change.reason.clone()),
        ]);
    }
    table.text()
}

fn state(change: &PartitionChange) -> String {
    match (&change.end, &change.moving) {
        (Some(end), _) => end.how.clone(),
        (None, Some(moving)) => moving.stage.replace('_', " "),
        (None, None) => "under way".into(),
    }
}

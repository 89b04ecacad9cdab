//! Somebody who has ranges moved between groups all the time: prefixes are split, moved, isolated and merged again, and now and
//! then a change is stopped on its way, or the planner is told to do as it likes.
//!
//! Clients know nothing of it and expect nothing less.

use std::{collections::BTreeSet, ops::Range, sync::Arc};

use holdfast_node::endpoint::types::{ChangesView, PlanView, planner::PlannerView};
use holdfast_partitioner::{
    GroupId, StrategyRecord,
    change::Request,
    planner::{Mode, PolicyEdit},
};
use rand::Rng;

use super::{
    Setting,
    ask::{self, Answer, Verb},
    pause,
};
use crate::{entropy::Dice, network::Node};

/// Who signs for it.
const ACTOR: &str = "mover";
/// Why.
const REASON: &str = "simulated";
/// Slots of a split: few, so that each holds some of the names.
const SLOTS: u16 = 8;

/// Share of the rounds in which the planner is told when to act.
const PLANNED: f64 = 0.1;

/// Acts until the run comes to an end, with pauses of so many milliseconds.
pub async fn keep_moving(setting: Setting, node: Node, groups: u32, pauses_ms: Range<u64>, mut dice: Dice) {
    setting.begins();
    while !setting.stopping() {
        pause(dice.random_range(pauses_ms.clone())).await;
        if dice.random_bool(PLANNED) {
            plan(&setting, node, &mut dice).await;
        }
        let request = request(&setting, groups, &mut dice);
        let verb: Verb<PlanView> = Arc::new(move |endpoint| {
            let request = request.clone();
            Box::pin(
                async move { endpoint.change_partitions(request, REASON.to_owned(), ACTOR.to_owned()).await },
            )
        });
        // That there is nothing to do, or another change goes on, is all the same.
        let begun = ask::ask(&setting, node, ask::any(&setting, &mut dice), "change the map", verb).await;
        if matches!(begun, Answer::Done(_)) && dice.random_bool(0.1) {
            pause(dice.random_range(1..300)).await;
            stop(&setting, node, &mut dice).await;
        }
    }
    setting.ends();
}

/// Has the planner act on next to nothing, and soon; or leaves all to operators again.
async fn plan(setting: &Setting, node: Node, dice: &mut Dice) {
    let edit = PolicyEdit {
        mode: Some(if dice.random_bool(0.5) { Mode::Auto } else { Mode::Off }),
        hot_entries_per_s: Some(4),
        group_entries_per_s: Some(8),
        quiet_entries_per_s: Some(1),
        gain_percent: Some(1),
        hold_ms: Some(1_000),
        quiet_ms: Some(2_000),
        cool_down_ms: Some(1_000),
        moves_per_hour: Some(1_000),
        ..PolicyEdit::default()
    };
    let verb: Verb<PlannerView> = Arc::new(move |endpoint| {
        let edit = edit.clone();
        Box::pin(async move { endpoint.edit_planner(edit, REASON.to_owned(), ACTOR.to_owned()).await })
    });
    drop(ask::ask(setting, node, ask::any(setting, dice), "edit the planner", verb).await);
}

fn request(setting: &Setting, groups: u32, dice: &mut Dice) -> Request {
    let group = |dice: &mut Dice| GroupId(dice.random_range(1..=groups));
    let name = setting.names[dice.random_range(0..setting.names.len())].text().to_owned();
    let prefix = if dice.random_bool(0.3) { "lock-".to_owned() } else { name.clone() };
    match dice.random_range(0..10) {
        0..4 => Request::Move { prefix, to: group(dice) },
        4..6 => Request::Split {
            prefix,
            into: (1..=groups).map(GroupId).collect::<BTreeSet<_>>(),
            depth: 1,
            strategy: StrategyRecord::hash(SLOTS),
        },
        6..8 => Request::Isolate { name, to: group(dice) },
        8 => Request::Merge { prefix, to: Some(group(dice)) },
        _ => Request::Merge { prefix, to: None },
    }
}

/// Stops whatever change is under way.
async fn stop(setting: &Setting, node: Node, dice: &mut Dice) {
    let look: Verb<ChangesView> =
        Arc::new(|endpoint| Box::pin(async move { endpoint.partition_changes().await }));
    let looked = ask::ask(setting, node, ask::any(setting, dice), "look at changes", look).await;
    let Answer::Done(ChangesView { under_way: Some(change), .. }) = looked else { return };
    let verb: Verb<()> = Arc::new(move |endpoint| {
        Box::pin(
            async move { endpoint.stop_change(change.number, REASON.to_owned(), ACTOR.to_owned()).await },
        )
    });
    drop(ask::ask(setting, node, ask::any(setting, dice), "stop a change", verb).await);
}

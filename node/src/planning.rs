//! Looks at the load of all groups again and again, at the leader of the meta group, and has the planner judge it. What it
//! proposes is shown to whoever asks; in mode `auto` it is begun as an operator would begin it.
//!
//! Gathers and remembers; what is hot, and what helps, is for [`holdfast_partitioner::planner`] to say.

use std::{collections::BTreeMap, time::Duration};

use holdfast_locktable::ids::{MoveNumber, Term};
use holdfast_partitioner::{
    GroupId, PartitionMap,
    change::Change,
    load::{GroupLoad, Loads},
    planner::{History, Plan, Planner, Policy, Proposal},
};

use crate::{
    endpoint::{partitions::words, router::Router},
    group::{
        call::{GroupAnswer, GroupCall},
        load::Measured,
        proposer::GroupError,
    },
    meta::{
        AuditRecord, MetaCommand,
        changes::Past,
        group::{ChangesNow, MetaGroup},
    },
};

/// Who signs for changes that nobody asked for.
pub const PLANNER: &str = "planner";
/// How long a group's leader may take to say what its names cost; then it counts as electing.
const ANSWER: Duration = Duration::from_secs(1);
/// The longest and the shortest pause between two looks, in milliseconds.
const PAUSE_MS: (u64, u64) = (250, 5_000);

/// The planner of a member, which works while the member leads the meta group.
#[derive(Clone, Debug)]
pub struct Planning {
    meta: MetaGroup,
    router: Router,
}

/// What a leader remembers between two looks. A new one begins with the changes that stand in the meta group.
#[derive(Debug)]
struct Memory {
    history: History,
    /// The newest move that is counted in the history.
    counted: MoveNumber,
    /// What was last proposed, in words.
    proposed: Option<String>,
}

impl Memory {
    /// With the moves of the last hour, as old as the wall clock says they are.
    fn of(changes: &ChangesNow, now_ms: u64, wall_ms: u64) -> Self {
        let mut history = History::default();
        for past in &changes.past {
            let age_ms = wall_ms.saturating_sub(past.ended_ms);
            (0..moves_done(past)).for_each(|_| history.move_started(now_ms.saturating_sub(age_ms)));
        }
        Self { history, counted: changes.moves, proposed: None }
    }

    /// Counts what has begun and ended since the last look, by whomever.
    fn catch_up(&mut self, changes: &ChangesNow, now_ms: u64) {
        (self.counted.0..changes.moves.0).for_each(|_| self.history.move_started(now_ms));
        self.counted = changes.moves;
        self.history.changing = changes.under_way.is_some();
    }
}

fn moves_done(past: &Past) -> usize {
    past.new.change.steps.iter().take(past.done as usize).filter(|step| step.moved.is_some()).count()
}

impl Planning {
    /// The planner for a member.
    pub const fn new(meta: MetaGroup, router: Router) -> Self {
        Self { meta, router }
    }

    /// Looks until the meta group's Raft half ends.
    pub async fn run(self) {
        let mut leadership = self.meta.raft().leadership();
        let mut memory: Option<(Term, Memory)> = None;
        loop {
            leadership.borrow_and_update();
            let look = async {
                match self.meta.leads_in() {
                    Some(term) => {
                        self.look_as(term, &mut memory).await;
                        tokio::time::sleep(pause(&self.meta.policy())).await;
                    }
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                changed = leadership.changed() => if changed.is_err() { return },
                () = look => {}
            }
        }
    }

    /// One look as the leader of a term.
    async fn look_as(&self, term: Term, memory: &mut Option<(Term, Memory)>) {
        let Some(map) = self.meta.map() else { return };
        let loads = self.loads(&map).await;
        let (changes, now_ms) = (self.meta.changes(), self.meta.boot_ms());
        let memory = match memory {
            Some((known, memory)) if *known == term => memory,
            other => {
                let fresh = Memory::of(&changes, now_ms, self.meta.wall_ms());
                &mut other.insert((term, fresh)).1
            }
        };
        memory.catch_up(&changes, now_ms);
        let policy = self.meta.policy();
        let planner = Planner { policy: &policy, registry: &self.meta.plans().strategies };
        let plan = planner.plan(now_ms, &map, &loads, &mut memory.history);
        memory.say(&plan);
        self.meta.looked(term, loads, plan.clone());
        if let Some(proposal) = plan.to_carry_out()
            && let Err(error) = self.begin(proposal).await
        {
            tracing::info!(%error, "what the planner proposed was not begun");
        }
    }

    /// What all groups say of the last window.
    async fn loads(&self, map: &PartitionMap) -> Loads {
        let groups = &self.meta.lock_groups();
        let all = groups.usable.iter().chain(&groups.retired);
        let asked = all.map(|group| async move {
            let answer = tokio::time::timeout(ANSWER, self.router.call(*group, GroupCall::Load)).await;
            match answer {
                Ok(Ok(GroupAnswer::Load(Some(measured)))) => (*group, Some(*measured)),
                Ok(_) | Err(_) => (*group, None),
            }
        });
        let answers = futures::future::join_all(asked).await;
        together(map, answers, |group| groups.retired.contains(&group))
    }

    async fn begin(&self, proposal: &Proposal) -> Result<(), GroupError> {
        let Proposal { request, change, why } = proposal;
        let change: Change = change.clone();
        let begun = self.meta.begin(change, request.clone(), PLANNER.to_owned(), why.clone()).await;
        let record = AuditRecord {
            at_ms: self.meta.wall_ms(),
            actor: PLANNER.to_owned(),
            action: "change_partitions".to_owned(),
            target: words(request),
            reason: why.clone(),
            outcome: begun.as_ref().map_or_else(ToString::to_string, |_| "ok".to_owned()),
        };
        self.meta.ask(MetaCommand::Record(record)).await?;
        begun.map(drop)
    }
}

impl Memory {
    /// Says in the log what is new.
    fn say(&mut self, plan: &Plan) {
        let proposed = plan.proposal.as_ref().map(|proposal| words(&proposal.request));
        if let (Some(proposal), true) = (&plan.proposal, proposed != self.proposed) {
            tracing::info!(mode = ?plan.mode, what = proposed, why = proposal.why, "the planner proposes");
        }
        self.proposed = proposed;
    }
}

/// Often enough that what must hold for a while is seen to hold.
fn pause(policy: &Policy) -> Duration {
    let (shortest, longest) = PAUSE_MS;
    Duration::from_millis((policy.hold_ms / 4).clamp(shortest, longest))
}

/// The answers of all groups as one measurement. A group that did not answer counts as electing; one that measured under
/// another map makes all of it a measurement under that.
fn together(
    map: &PartitionMap,
    answers: Vec<(GroupId, Option<Measured>)>,
    retired: impl Fn(GroupId) -> bool,
) -> Loads {
    let mut loads = Loads { epoch: map.epoch(), groups: BTreeMap::new(), prefixes: Vec::new() };
    for (group, measured) in answers {
        let mut load = GroupLoad { electing: true, ..GroupLoad::default() };
        if let Some(measured) = measured {
            if measured.epoch != map.epoch() {
                loads.epoch = measured.epoch;
            }
            load = measured.group;
            loads.prefixes.extend(measured.prefixes);
        }
        loads.groups.insert(group, GroupLoad { retired: retired(group), ..load });
    }
    loads
}

#[cfg(test)]
mod tests {
    use holdfast_partitioner::{
        MapEpoch,
        change::{Given, Groups, Request, change},
        planner::Mode,
        strategy::Registry,
    };

    use super::*;
    use crate::meta::changes::{ChangeEnd, NewChange};

    fn map() -> PartitionMap {
        PartitionMap::initial(&[GroupId(1), GroupId(2)]).unwrap()
    }

    fn measured(epoch: MapEpoch, entries_per_s: u64) -> Option<Measured> {
        let group = GroupLoad { entries_per_s, ..GroupLoad::default() };
        Some(Measured { epoch, group, prefixes: Vec::new() })
    }

    #[test]
    fn a_group_that_does_not_answer_elects_and_another_map_spoils_all() {
        let epoch = map().epoch();
        let answers = vec![(GroupId(1), measured(epoch, 7)), (GroupId(2), None)];
        let loads = together(&map(), answers, |group| group == GroupId(2));
        assert_eq!((loads.epoch, loads.groups[&GroupId(1)].entries_per_s), (epoch, 7));
        let silent = loads.groups[&GroupId(2)];
        assert!(silent.electing && silent.retired && !loads.groups[&GroupId(1)].electing);
        let later = MapEpoch(epoch.0 + 1);
        let answers = vec![(GroupId(1), measured(later, 7)), (GroupId(2), measured(epoch, 7))];
        assert_eq!(together(&map(), answers, |_| false).epoch, later);
    }

    /// A change of so many moves, ended then.
    fn past(ended_ms: u64) -> Past {
        let (map, registry) = (map(), Registry::built_in());
        let groups = Groups { usable: [GroupId(1), GroupId(2)].into(), ..Groups::default() };
        let given = Given { map: &map, groups: &groups, registry: &registry, names: &[] };
        let prefix = ["a/", "b/"].into_iter().find(|prefix| map.locate(&format!("{prefix}x")) == GroupId(1));
        let request = Request::Move { prefix: prefix.unwrap_or("c/").to_owned(), to: GroupId(2) };
        let change = change(&given, &request).unwrap();
        let done = change.steps.len() as u32;
        let (actor, reason) = (String::new(), String::new());
        let new = NewChange { request, change, actor, reason, at_ms: ended_ms };
        Past { number: 1, new, done, ended_ms, end: ChangeEnd::Done }
    }

    #[test]
    fn a_new_leader_knows_of_the_moves_of_the_last_hour_and_counts_each_new_one_once() {
        let (now_ms, wall_ms, minute) = (10_000_000, 1_000_000_000, 60_000);
        let ended = [90 * minute, 30 * minute, minute].map(|ago| past(wall_ms - ago));
        let mut changes = ChangesNow { under_way: None, past: ended.into(), moves: MoveNumber(3) };
        let mut memory = Memory::of(&changes, now_ms, wall_ms);
        memory.catch_up(&changes, now_ms);
        assert_eq!(memory.history.moves_within_hour(now_ms), 2);
        assert_eq!(memory.history.starts_ms.iter().max(), Some(&(now_ms - minute)));
        changes.moves = MoveNumber(5);
        memory.catch_up(&changes, now_ms);
        memory.catch_up(&changes, now_ms);
        assert_eq!(memory.history.moves_within_hour(now_ms), 4);
    }

    #[test]
    fn it_looks_often_enough_to_see_that_something_holds() {
        let mut policy = Policy::standard(Mode::Auto);
        assert_eq!(pause(&policy), Duration::from_secs(5));
        policy.hold_ms = 2_000;
        assert_eq!(pause(&policy), Duration::from_millis(500));
        policy.hold_ms = 1;
        assert_eq!(pause(&policy), Duration::from_millis(250));
    }
}

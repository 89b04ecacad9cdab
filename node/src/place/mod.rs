//! Brings groups to the members that the placement names, and leaders to where their load is even: at the leader of the meta
//! group, one group after the other.
//!
//! ```text
//!   meta log     SetReplicas ─────────────────────────────────────────────────────────► Settle
//!   group                      learner added ─► caught up ─► leader stays ─► voters replaced │
//!   members      new one starts the group                                                    └─► old one stops it
//! ```
//! What stands in the meta log and in the group's own says how far a change is, so that another member goes on where one stopped.
//! [`steps`], [`plan`], [`leaders`], [`voters`]: what to do. Here it is done.

pub mod leaders;
pub mod plan;
pub mod steps;
pub mod voters;

mod roster;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use holdfast_partitioner::GroupId;
use tokio::{
    sync::Notify,
    time::{Instant, timeout},
};

use self::{
    leaders::{Budget, Led, Transfer},
    steps::{Step, caught_up, next_step},
};
use crate::{
    endpoint::{
        router::{ReplicaAnswer, ReplicaCall, Router},
        types::cluster::GroupView,
    },
    group::{
        call::{GroupAnswer, GroupCall},
        members::MembersCall,
        proposer::GroupError,
    },
    meta::{
        group::MetaGroup,
        placement::{GroupPlace, PlaceCommand, Placement},
        places::Doing,
    },
    raft::types::MemberId,
};

/// Pause between two looks while nothing is under way.
const CALM: Duration = Duration::from_secs(1);
/// Pause between two looks while something is.
const BUSY: Duration = Duration::from_millis(150);
/// How long a group's leader may take to say how it is.
const LOOK: Duration = Duration::from_secs(1);
/// How long after the last change of its members or leader a group is left alone.
const REST: Duration = Duration::from_secs(10);
/// How long a member that a group waits for may be out of reach before another one takes its place.
const ABSENT: Duration = Duration::from_secs(30);
/// How much of a group's measured load is from the last look; the rest is from before.
const FRESH: f64 = 0.2;

/// Drives changes of the placement while this member leads the meta group.
#[derive(Debug)]
pub struct Placer {
    meta: MetaGroup,
    router: Router,
    budget: Budget,
    seen: BTreeMap<GroupId, Seen>,
    /// Groups that wait for a member that cannot be reached, and since when.
    absent: BTreeMap<GroupId, Instant>,
}

/// What was seen of a group so far.
#[derive(Clone, Copy, Debug)]
struct Seen {
    leader: Option<MemberId>,
    /// Since when it has that leader.
    since: Instant,
    last_log: u64,
    at: Instant,
    rate: f64,
}

impl Placer {
    /// A placer for a member.
    pub fn new(meta: MetaGroup, router: Router) -> Self {
        Self { meta, router, budget: Budget::default(), seen: BTreeMap::new(), absent: BTreeMap::new() }
    }

    /// Drives until the meta group's Raft half ends. `news` is notified when the placement changes. A cluster without one is
    /// left alone.
    pub async fn run(mut self, news: Arc<Notify>) {
        let mut leadership = self.meta.raft().leadership();
        loop {
            leadership.borrow_and_update();
            let leads = self.meta.leads();
            let Some(placement) = self.meta.placement().filter(|_| leads) else {
                self.seen.clear();
                self.absent.clear();
                tokio::select! {
                    biased;
                    changed = leadership.changed() => if changed.is_err() { return },
                    () = news.notified() => {}
                }
                continue;
            };
            tokio::select! {
                biased;
                // A leader that was deposed stops here; what it has under way is harmless, and the next one goes on.
                changed = leadership.changed() => if changed.is_err() { return },
                busy = self.round(&placement) => {
                    // Whichever comes first, the next look decides.
                    drop(timeout(if busy { BUSY } else { CALM }, news.notified()).await);
                }
            }
        }
    }

    /// One look at everything and a step where one is due. Answers whether something is under way.
    async fn round(&mut self, placement: &Placement) -> bool {
        self.follow_meta(placement).await;
        let asked = futures::future::join_all(placement.groups.keys().map(|group| self.look(*group)));
        // That a voter had caught up says nothing of whether it is there.
        let (views, reachable) = tokio::join!(asked, self.router.reachable());
        let views: BTreeMap<GroupId, GroupView> = views.into_iter().map(|view| (view.group, view)).collect();
        views.values().for_each(|view| self.measure(view));
        let mut doing = BTreeMap::new();
        for (group, place) in &placement.groups {
            let Some(view) = views.get(group) else { continue };
            let step = next_step(place, view, &reachable);
            if step == Step::Nothing || (place.settled() && view.leader.is_none()) {
                continue;
            }
            let mut words = words(&step);
            if let Err(why) = self.take(*group, place, view, step).await {
                words = format!("{words}; tried again: {why}");
            }
            doing.insert(*group, words);
        }
        let members = self.follow_roster(placement, &reachable).await;
        let members_change = members.is_some();
        let groups_change = !doing.is_empty() || placement.unsettled().next().is_some();
        self.tell(&views, doing, members);
        self.replace_absent(placement, &views, &reachable).await;
        // A change of the members waits for what begins here: a member that goes gives its groups away first.
        let begun = !groups_change
            && (self.move_leader(placement, &views, &reachable).await
                || self.begin_change(placement, &reachable).await);
        members_change || groups_change || begun
    }

    async fn look(&self, group: GroupId) -> GroupView {
        let call = GroupCall::Members(MembersCall::Look);
        match timeout(LOOK, self.router.call(group, call)).await {
            Ok(Ok(GroupAnswer::Status(view))) => *view,
            Ok(_) | Err(_) => GroupView::unreachable(group),
        }
    }

    /// Every member follows the meta group, so that it knows the map and the placement. Once the roster has changed that goes by it.
    async fn follow_meta(&self, placement: &Placement) {
        if self.meta.roster().is_some_and(|roster| roster.has_changed()) {
            return;
        }
        let status = self.meta.raft().status();
        let known: BTreeSet<MemberId> =
            status.voters.iter().chain(&status.learners).map(|voter| voter.member).collect();
        let missing = placement.members.difference(&known).copied().collect::<BTreeSet<_>>();
        if missing.is_empty() {
            return;
        }
        let learners = self.router.addresses(missing.iter().copied());
        match timeout(LOOK, self.meta.raft().add_learners(learners)).await {
            Ok(Ok(())) => {
                tracing::info!(members = ?missing, "these members follow the meta group from now on")
            }
            Ok(Err(error)) => tracing::debug!(%error, "members were not added to the meta group yet"),
            Err(_) => {}
        }
    }

    /// Takes a step, or says why it did not go through.
    async fn take(
        &self,
        group: GroupId,
        place: &GroupPlace,
        view: &GroupView,
        step: Step,
    ) -> Result<(), String> {
        if matches!(step, Step::Nothing | Step::Wait(_)) {
            return Ok(());
        }
        // Whoever leads no more goes by a placement that may be replaced.
        self.meta.confirm().await.map_err(|error| error.to_string())?;
        let call = match step {
            Step::Nothing | Step::Wait(_) => return Ok(()),
            Step::AddLearner(member) => {
                self.carries(group, member, place.since).await?;
                MembersCall::AddLearners(self.router.addresses([member]))
            }
            Step::RemoveLearners(learners) => MembersCall::RemoveLearners(learners),
            Step::Transfer(to) => MembersCall::Transfer { to },
            Step::ChangeVoters(voters) => {
                for member in voters.iter().filter(|member| view.voters.iter().all(|v| v.member != **member))
                {
                    self.carries(group, *member, place.since).await?;
                }
                tracing::info!(%group, ?voters, why = place.why, "replacing the voters of a group");
                MembersCall::ChangeVoters(voters)
            }
            Step::Settle(members) => {
                let settle = PlaceCommand::Settle { group, members, since: place.since };
                return self.meta.place(settle).await.map(drop).map_err(|error| error.to_string());
            }
        };
        match self.router.call(group, GroupCall::Members(call)).await {
            Ok(_) => Ok(()),
            Err(error) => Err(error.to_string()),
        }
    }

    /// A member must know that it is to carry the group, and must have begun to: one that still acts on an earlier placement
    /// would stop the group again.
    async fn carries(&self, group: GroupId, member: MemberId, version: u64) -> Result<(), String> {
        let asked = self.router.ask_member(member, group, ReplicaCall::Carries { version });
        match timeout(LOOK, asked).await {
            Ok(Ok(ReplicaAnswer::Carries(true))) => Ok(()),
            Ok(Ok(_)) => Err(format!("member {member} has not started the group yet")),
            Ok(Err(GroupError::NotLeader { .. })) | Err(_) => {
                Err(format!("member {member} cannot be reached"))
            }
            Ok(Err(error)) => Err(error.to_string()),
        }
    }

    fn measure(&mut self, view: &GroupView) {
        let now = Instant::now();
        let seen = self.seen.get(&view.group).copied();
        let changed = seen.is_none_or(|seen| seen.leader != view.leader);
        let rate = match seen {
            Some(seen) if view.leader.is_some() && view.last_log_index >= seen.last_log => {
                let passed = now.duration_since(seen.at).as_secs_f64().max(0.01);
                // A first figure is better than none; entries of a few milliseconds say little.
                let fresh = (view.last_log_index - seen.last_log) as f64 / passed;
                let part = (FRESH * passed).min(1.0);
                seen.rate + (fresh - seen.rate) * part
            }
            Some(seen) => seen.rate,
            None => 0.0,
        };
        let since = if changed { now } else { seen.map_or(now, |seen| seen.since) };
        let last_log =
            view.leader.map_or_else(|| seen.map_or(0, |seen| seen.last_log), |_| view.last_log_index);
        self.seen.insert(view.group, Seen { leader: view.leader, since, last_log, at: now, rate });
    }

    fn tell(
        &self,
        views: &BTreeMap<GroupId, GroupView>,
        mut doing: BTreeMap<GroupId, String>,
        members: Option<String>,
    ) {
        let of = |group: &GroupId| Doing {
            under_way: doing.remove(group),
            entries_per_s: self.seen.get(group).map_or(0.0, |seen| seen.rate),
        };
        let meta = (GroupId::META, Doing { under_way: members, entries_per_s: 0.0 });
        self.meta.set_doing(views.keys().copied().zip(views.keys().map(of)).chain([meta]).collect());
    }

    /// Lets another member lead a group, where that is due. Answers whether it was.
    async fn move_leader(
        &mut self,
        placement: &Placement,
        views: &BTreeMap<GroupId, GroupView>,
        reachable: &BTreeSet<MemberId>,
    ) -> bool {
        let (now, seen) = (Instant::now(), &self.seen);
        let mut led: Vec<Led> = views.values().filter_map(|view| led(view, seen.get(&view.group)?)).collect();
        led.iter_mut().for_each(|led| led.ready.retain(|member| reachable.contains(member)));
        if let Some(transfer) = leaders::off_drained(&led, &placement.drained) {
            return self.transfer(transfer, "its leader is drained").await;
        }
        // A picture that lacks a group, or one that was led by another a moment ago, is no picture of the load.
        let calm =
            |group: &GroupId| self.seen.get(group).is_some_and(|seen| now.duration_since(seen.since) >= REST);
        if led.len() < placement.groups.len()
            || !placement.groups.keys().all(calm)
            || !self.budget.allows(now)
        {
            return false;
        }
        let Some(transfer) = leaders::spread(&led, &placement.drained) else { return false };
        self.budget.spend(now);
        self.transfer(transfer, "its leader has more load than others").await
    }

    async fn transfer(&self, Transfer { group, to }: Transfer, why: &str) -> bool {
        tracing::info!(%group, to, why, "another member is to lead a group");
        let call = GroupCall::Members(MembersCall::Transfer { to });
        if let Err(error) = self.router.call(group, call).await {
            tracing::debug!(%group, to, %error, "the leader of a group was not replaced");
        }
        true
    }

    /// Begins the next change of replicas, where one is due. Answers whether it has begun.
    async fn begin_change(&self, placement: &Placement, reachable: &BTreeSet<MemberId>) -> bool {
        match plan::next_change(placement, reachable) {
            Some(change) => self.set_replicas(placement, change).await,
            None => false,
        }
    }

    /// Where a group waits for a member that has been out of reach for long, another one comes in its place.
    async fn replace_absent(
        &mut self,
        placement: &Placement,
        views: &BTreeMap<GroupId, GroupView>,
        reachable: &BTreeSet<MemberId>,
    ) {
        let now = Instant::now();
        let instead = |view: &GroupView| {
            let voters = view.voters.iter().map(|voter| voter.member).collect();
            plan::instead_of_absent(placement, view.group, &voters, reachable)
        };
        // A group without a leader says nothing of its voters.
        let changes: Vec<plan::Change> =
            views.values().filter(|view| view.leader.is_some()).filter_map(instead).collect();
        self.absent.retain(|group, _| changes.iter().any(|change| change.group == *group));
        for change in changes {
            let since = *self.absent.entry(change.group).or_insert(now);
            // Where it has not begun, the next round has a newer placement to plan by.
            if now.duration_since(since) >= ABSENT {
                self.set_replicas(placement, change).await;
                return;
            }
        }
    }

    async fn set_replicas(
        &self,
        placement: &Placement,
        plan::Change { group, replicas, why }: plan::Change,
    ) -> bool {
        tracing::info!(%group, ?replicas, why, "a group is to be on other members");
        let planned = placement.version;
        match self.meta.place(PlaceCommand::SetReplicas { group, replicas, why, planned }).await {
            Ok(_) => true,
            Err(error) => {
                tracing::debug!(%group, %error, "a change of replicas has not begun");
                false
            }
        }
    }
}

fn led(view: &GroupView, seen: &Seen) -> Option<Led> {
    let ready = view.voters.iter().filter(|voter| caught_up(view, voter)).map(|voter| voter.member).collect();
    Some(Led { group: view.group, leader: view.leader?, ready, rate: seen.rate })
}

/// A step in words, for `groups show`.
fn words(step: &Step) -> String {
    let listed =
        |members: &BTreeSet<MemberId>| members.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    match step {
        Step::Nothing => "nothing".to_owned(),
        Step::Wait(what) => what.clone(),
        Step::AddLearner(member) => format!("member {member} is being sent the log"),
        Step::RemoveLearners(members) => format!("members {} are sent the log no more", listed(members)),
        Step::Transfer(member) => format!("member {member} is to lead"),
        Step::ChangeVoters(members) => format!("members {} are to be the voters", listed(members)),
        Step::Settle(members) => format!("members {} are the voters; this is being noted", listed(members)),
    }
}

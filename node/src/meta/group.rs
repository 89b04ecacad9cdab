//! The meta group on one member: verbs for its leader, and the partition map for everybody.
//!
//! No verb here forwards: a member that does not lead the group says so.

use std::sync::Arc;

use holdfast_locktable::ids::{MoveNumber, Revision, Term};
use holdfast_partitioner::{
    GroupId, PartitionMap, Registry,
    change::{Change, Given, Groups, Request, change},
    planner::{Mode, Policy, PolicyEdit},
};
use serde::{Deserialize, Serialize};

use super::{
    AuditRecord, MetaCommand, MetaOutcome,
    changes::{NewChange, Past, UnderWay},
    encode_command,
    looks::{Looks, PlannerNow},
    placement::{PlaceCommand, Placed, Placement},
    places::{Doings, PlaceAsk, PlacementNow},
    roster::MemberChange,
    roster_asks::{RosterAsk, RosterNow},
    sets::SetDesk,
};
use crate::{
    clock::Clock,
    config::MemberConfig,
    endpoint::{
        places::everywhere,
        types::{AuditEntry, SnapshotView, cluster::GroupView},
    },
    group::{members::transfer, proposer::GroupError, read::group_view},
    raft::{
        group::RaftGroup,
        types::{MemberId, Reply},
    },
    snapshot::set::SetManifest,
};

/// A verb for the leader of the meta group.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum MetaCall {
    /// Add a line to the audit log.
    Record {
        /// Who.
        actor: String,
        /// What.
        action: String,
        /// On what.
        target: String,
        /// Why.
        reason: String,
        /// How it went so far.
        outcome: String,
    },
    /// Read the newest lines of the audit log.
    Audit {
        /// At most so many.
        limit: u32,
    },
    /// Figures of the group.
    Status,
    /// Change the partition map, or say only what that would come to.
    Change {
        /// What is wanted.
        request: Request,
        /// Who wants it.
        actor: String,
        /// Why.
        reason: String,
        /// Whether it is only to be planned.
        dry_run: bool,
    },
    /// Stop a change of the map where it is.
    StopChange {
        /// Its number.
        change: u64,
        /// Why.
        reason: String,
    },
    /// Read the changes of the map, under way and over.
    Changes,
    /// Read when the planner acts, and what it last made of the load.
    Planner,
    /// Change when the planner acts.
    EditPolicy(PolicyEdit),
    /// A verb about which members carry which groups.
    Place(PlaceAsk),
    /// Let this member lead the meta group.
    Transfer {
        /// The member.
        to: MemberId,
    },
    /// Take a snapshot to the store.
    TakeSnapshot,
    /// Take snapshots of all groups that go together.
    TakeSnapshotSet,
    /// A verb about who the members are.
    Roster(RosterAsk),
}

/// What a verb answers.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum MetaAnswer {
    /// Done.
    Done,
    /// Lines of the audit log, oldest first.
    Audit(Vec<AuditEntry>),
    /// Figures.
    Status(Box<GroupView>),
    /// What a change of the map comes to.
    Planned {
        /// Its steps.
        change: Box<Change>,
        /// Its number, where it is carried out.
        number: Option<u64>,
    },
    /// The changes of the map.
    Changes(Box<ChangesNow>),
    /// The planner's policy, and its last look.
    Planner(Box<PlannerNow>),
    /// The placement.
    Placement(Box<PlacementNow>),
    /// New lock groups.
    GroupsAdded(Vec<GroupId>),
    /// A snapshot that is in the store.
    Snapshot(Box<SnapshotView>),
    /// A snapshot set.
    SnapshotSet(Box<SetManifest>),
    /// A change of the members that is under way, or would be.
    MemberChange(Box<MemberChange>),
    /// The changes of the members.
    Roster(Box<RosterNow>),
}

/// The changes of the map as the leader of the meta group knows them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangesNow {
    /// The one that is carried out.
    pub under_way: Option<UnderWay>,
    /// Those that are over, oldest first.
    pub past: Vec<Past>,
    /// The highest number that a move was ever given.
    pub moves: MoveNumber,
}

/// The result of a verb.
pub type MetaResult = Result<MetaAnswer, GroupError>;

/// The meta group on this member. Cheap to clone.
#[derive(Clone, Debug)]
pub struct MetaGroup {
    raft: RaftGroup,
    clock: Clock,
    plans: Arc<Plans>,
    looks: Looks,
    doings: Doings,
    sets: SetDesk,
}

/// What this member plans changes of the map with.
#[derive(Clone, Debug)]
pub struct Plans {
    /// Its strategies.
    pub strategies: Registry,
    /// What it was told at its start: the lock groups and members of a cluster without a placement.
    pub config: Arc<MemberConfig>,
}

impl Plans {
    /// The placement of a cluster that has none.
    pub fn everywhere(&self) -> Placement {
        everywhere(&self.config)
    }
}

impl MetaGroup {
    /// The meta group of a member.
    pub fn new(raft: RaftGroup, clock: Clock, plans: Plans, sets: SetDesk) -> Self {
        let (looks, doings) = (Looks::default(), Doings::default());
        Self { raft, clock, plans: Arc::new(plans), looks, doings, sets }
    }

    /// Where snapshot sets are asked for, and moves are held.
    pub const fn sets(&self) -> &SetDesk {
        &self.sets
    }

    /// The planner's last look.
    pub(super) const fn looks(&self) -> &Looks {
        &self.looks
    }

    /// What goes on with groups.
    pub(super) fn doings(&self) -> &Doings {
        &self.doings
    }

    /// The placement, also of a cluster that has none: there every group is on every member.
    pub(super) fn placement_or_everywhere(&self) -> Placement {
        self.placement().unwrap_or_else(|| self.plans.everywhere())
    }

    /// Its Raft half.
    pub fn raft(&self) -> &RaftGroup {
        &self.raft
    }

    /// Its leader as this member knows it.
    pub fn leader(&self) -> Option<MemberId> {
        self.raft.leadership().borrow().leader
    }

    /// Whether this member leads it and has applied an entry of its own term.
    pub fn leads(&self) -> bool {
        self.raft.leadership().borrow().here
    }

    /// The term in which it leads the group, as [`MetaGroup::leads`] has it.
    pub fn leads_in(&self) -> Option<Term> {
        let leadership = self.raft.leadership();
        let now = leadership.borrow();
        now.here.then_some(now.term)
    }

    /// Carries out a verb, if this member leads the group.
    pub async fn call(&self, call: MetaCall) -> MetaResult {
        if !self.leads() {
            return Err(GroupError::NotLeader { leader: self.leader() });
        }
        match call {
            MetaCall::Record { actor, action, target, reason, outcome } => {
                let at_ms = self.clock.wall_ms();
                let record = AuditRecord { at_ms, actor, action, target, reason, outcome };
                self.ask(MetaCommand::Record(record)).await?;
                Ok(MetaAnswer::Done)
            }
            MetaCall::Audit { limit } => {
                self.confirm().await?;
                Ok(MetaAnswer::Audit(self.audit(limit as usize)))
            }
            MetaCall::Status => Ok(MetaAnswer::Status(Box::new(self.status()))),
            MetaCall::Change { request, actor, reason, dry_run } => {
                self.confirm().await?;
                let change = self.plan(&request)?;
                let number = match dry_run {
                    true => None,
                    false => Some(self.begin(change.clone(), request, actor, reason).await?),
                };
                Ok(MetaAnswer::Planned { change: Box::new(change), number })
            }
            MetaCall::StopChange { change, reason } => {
                let at_ms = self.clock.wall_ms();
                self.ask(MetaCommand::StopChange { change, why: reason, at_ms }).await?;
                Ok(MetaAnswer::Done)
            }
            MetaCall::Changes => {
                self.confirm().await?;
                Ok(MetaAnswer::Changes(Box::new(self.changes())))
            }
            MetaCall::Planner => {
                let term = self.confirm().await?;
                Ok(MetaAnswer::Planner(Box::new(self.planner(term))))
            }
            MetaCall::EditPolicy(edit) => {
                self.ask(MetaCommand::EditPolicy(edit)).await?;
                Ok(MetaAnswer::Done)
            }
            MetaCall::Place(ask) => Box::pin(self.place_ask(ask)).await,
            MetaCall::Transfer { to } => {
                transfer(&self.raft, &self.status(), to).await?;
                Ok(MetaAnswer::Done)
            }
            MetaCall::TakeSnapshot => {
                Ok(MetaAnswer::Snapshot(Box::new(self.sets.take_snapshot().await?.into())))
            }
            MetaCall::TakeSnapshotSet => {
                self.confirm().await?;
                Ok(MetaAnswer::SnapshotSet(Box::new(self.sets.take().await?)))
            }
            MetaCall::Roster(ask) => Box::pin(self.roster_ask(ask)).await,
        }
    }

    /// Proves by a quorum round that this member leads.
    pub async fn confirm(&self) -> Result<Term, GroupError> {
        let confirmed = self.raft.confirm_leadership().await;
        confirmed.map_err(|error| GroupError::NotLeader { leader: error.leader })
    }

    /// The lock groups that a change of the map may use.
    pub fn lock_groups(&self) -> Groups {
        Groups { usable: self.placement_or_everywhere().groups.into_keys().collect(), ..Groups::default() }
    }

    /// What a request comes to, by the map of this replica.
    fn plan(&self, request: &Request) -> Result<Change, GroupError> {
        let map = self.map().ok_or(GroupError::NotLeader { leader: None })?;
        let groups = self.lock_groups();
        let given = Given { map: &map, groups: &groups, registry: &self.plans.strategies, names: &[] };
        change(&given, request).map_err(|error| GroupError::Refused { why: error.to_string() })
    }

    /// Begins a change that was planned with this replica's map; answers its number.
    pub async fn begin(
        &self,
        change: Change,
        request: Request,
        actor: String,
        reason: String,
    ) -> Result<u64, GroupError> {
        let at_ms = self.clock.wall_ms();
        let new = NewChange { request, change, actor, reason, at_ms };
        match self.ask(MetaCommand::BeginChange(new)).await? {
            MetaOutcome::ChangeBegun { change } => Ok(change),
            other => Err(GroupError::Fatal(format!("a change was answered with {other:?}"))),
        }
    }

    /// The changes of the map as this replica has them.
    pub fn changes(&self) -> ChangesNow {
        let read = self.raft.with_meta(|meta, _| {
            let changes = meta.changes();
            ChangesNow {
                under_way: changes.under_way().cloned(),
                past: changes.past().iter().cloned().collect(),
                moves: changes.moves(),
            }
        });
        read.unwrap_or_else(|| ChangesNow { under_way: None, past: Vec::new(), moves: MoveNumber(0) })
    }

    /// When the planner acts, as this replica has it.
    pub fn policy(&self) -> Policy {
        self.raft.with_meta(|meta, _| meta.policy()).unwrap_or_else(|| Policy::standard(Mode::Off))
    }

    /// What this member plans changes with.
    pub fn plans(&self) -> &Plans {
        &self.plans
    }

    /// Proposes a command; a refusal is an error with its sentence.
    pub async fn ask(&self, command: MetaCommand) -> Result<MetaOutcome, GroupError> {
        let payload = encode_command(&command).map_err(|error| GroupError::Fatal(error.to_string()))?;
        match self.raft.propose(payload.into()).await? {
            Reply::Meta(Ok(outcome)) => Ok(outcome),
            Reply::Meta(Err(refusal)) => {
                let why = refusal.to_string();
                Err(match refusal.is_bad_input() {
                    true => GroupError::Refused { why },
                    false => GroupError::Conflict { why },
                })
            }
            other => Err(GroupError::Fatal(format!("the meta group answered {other:?}"))),
        }
    }

    /// The boot clock, in milliseconds.
    pub fn boot_ms(&self) -> u64 {
        self.clock.now().0
    }

    /// The wall clock, for what is displayed.
    pub fn wall_ms(&self) -> u64 {
        self.clock.wall_ms()
    }

    /// Which members carry which groups, as this member's replica has it; none where every member carries every group.
    pub fn placement(&self) -> Option<Placement> {
        self.raft.with_meta(|meta, _| meta.placement().cloned()).flatten()
    }

    /// Changes the placement.
    pub async fn place(&self, command: PlaceCommand) -> Result<Placed, GroupError> {
        match self.ask(MetaCommand::Place(command)).await? {
            MetaOutcome::Placed(placed) => Ok(placed),
            other => Err(GroupError::Fatal(format!("a change of the placement was answered with {other:?}"))),
        }
    }

    /// Sets the first placement and the first partition map, where there are none.
    pub async fn begin_with(
        &self,
        placement: Option<Placement>,
        map: PartitionMap,
    ) -> Result<(), GroupError> {
        if let Some(placement) = placement
            && self.placement().is_none()
        {
            // One that is there already is what was wanted.
            match self.place(PlaceCommand::Begin(placement)).await {
                Ok(_) | Err(GroupError::Conflict { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        self.init_map(map).await
    }

    /// Sets the first partition map, where there is none.
    async fn init_map(&self, map: PartitionMap) -> Result<(), GroupError> {
        match self.ask(MetaCommand::InitMap { map }).await {
            // A map that is there already is what was wanted.
            Ok(_) | Err(GroupError::Conflict { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// The partition map as this member's replica has it.
    pub fn map(&self) -> Option<PartitionMap> {
        self.raft.with_meta(|meta, _| meta.map().cloned()).flatten()
    }

    fn audit(&self, limit: usize) -> Vec<AuditEntry> {
        let entry = |line: super::AuditLine<'_>| AuditEntry {
            index: line.index,
            at_ms: line.record.at_ms,
            actor: line.record.actor.clone(),
            action: line.record.action.clone(),
            target: line.record.target.clone(),
            reason: line.record.reason.clone(),
            outcome: line.record.outcome.clone(),
        };
        self.raft.with_meta(|meta, _| meta.audit(limit).map(entry).collect()).unwrap_or_default()
    }

    /// Figures of the group as this member knows them.
    pub fn status(&self) -> GroupView {
        group_view(
            GroupId::META,
            self.raft.status(),
            Revision(0),
            holdfast_locktable::view::Counts::default(),
        )
    }
}

//! What members and operators ask of the roster, at the leader of the meta group.

use std::collections::BTreeSet;

use holdfast_partitioner::GroupId;
use serde::{Deserialize, Serialize};

use super::{
    command::{MemberRecord, MetaCommand, MetaOutcome},
    group::{MetaAnswer, MetaGroup, MetaResult},
    placement::PlaceCommand,
    roster::{
        MemberChange, MemberChangeKind, NewMemberChange, PastMemberChange, Roster, RosterCommand, RosterDone,
    },
};
use crate::{config::MemberEntry, group::proposer::GroupError, log::disk_id::DiskId, raft::types::MemberId};

/// A verb about the roster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum RosterAsk {
    /// A member has come with this disk.
    Hello {
        /// The member, and where it can be reached.
        at: MemberEntry,
        /// Its disk.
        disk: DiskId,
    },
    /// Begin a change, or say only whether it could.
    Change {
        /// What is wanted.
        kind: MemberChangeKind,
        /// Who wants it.
        actor: String,
        /// Why.
        reason: String,
        /// A number of whoever asks, so that a repeat begins nothing again.
        request: u64,
        /// The members that whoever asks could reach.
        reachable: BTreeSet<MemberId>,
        /// Whether it is only to be tried.
        dry_run: bool,
    },
    /// Stop a change.
    Cancel {
        /// Its number.
        change: u64,
        /// Why.
        reason: String,
    },
    /// What is under way, and what was?
    Show,
}

/// The changes of the roster as the leader of the meta group knows them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RosterNow {
    /// The one under way.
    pub under_way: Option<MemberChange>,
    /// How far it is, in words.
    pub doing: Option<String>,
    /// Those that are over, oldest first.
    pub past: Vec<PastMemberChange>,
}

impl MetaGroup {
    /// The roster as this member's replica has it.
    pub fn roster(&self) -> Option<Roster> {
        self.raft().with_meta(|meta, _| meta.roster().cloned()).flatten()
    }

    /// The members as this member's replica has them; none where they have never changed: there the configurations count.
    pub fn entries(&self) -> Option<Vec<MemberEntry>> {
        let roster = self.roster().filter(Roster::has_changed)?;
        Some(roster.members().values().map(|known| entry(&known.record)).collect())
    }

    /// Changes the roster.
    pub async fn change_roster(&self, command: RosterCommand) -> Result<RosterDone, GroupError> {
        match self.ask(MetaCommand::Roster(command)).await? {
            MetaOutcome::Roster(done) => Ok(done),
            other => Err(GroupError::Fatal(format!("a change of the roster was answered with {other:?}"))),
        }
    }

    pub(super) async fn roster_ask(&self, ask: RosterAsk) -> MetaResult {
        match ask {
            RosterAsk::Hello { at, disk } => {
                self.have_roster().await?;
                self.change_roster(RosterCommand::Meet { record: record(&at), disk }).await?;
                Ok(MetaAnswer::Done)
            }
            RosterAsk::Change { kind, actor, reason, request, reachable, dry_run } => {
                self.confirm().await?;
                let new = NewMemberChange { kind, actor, reason, request, at_ms: self.wall_ms() };
                let tried = self.try_change(&new, &reachable)?;
                let begun = if dry_run { tried } else { self.begin_member_change(new).await? };
                Ok(MetaAnswer::MemberChange(Box::new(begun)))
            }
            RosterAsk::Cancel { change, reason } => {
                let at_ms = self.wall_ms();
                self.change_roster(RosterCommand::Cancel { change, why: reason, at_ms }).await?;
                Ok(MetaAnswer::Done)
            }
            RosterAsk::Show => {
                self.confirm().await?;
                let roster = self.roster().unwrap_or_default();
                let doing = self.doing(GroupId::META).and_then(|doing| doing.under_way);
                Ok(MetaAnswer::Roster(Box::new(RosterNow {
                    under_way: roster.under_way().cloned(),
                    doing: doing.filter(|_| roster.under_way().is_some()),
                    past: roster.past().cloned().collect(),
                })))
            }
        }
    }

    /// What a change would begin as; nothing is changed.
    fn try_change(
        &self,
        new: &NewMemberChange,
        reachable: &BTreeSet<MemberId>,
    ) -> Result<MemberChange, GroupError> {
        let mut roster = Some(self.roster().unwrap_or_else(|| first_roster(&self.plans().config.members)));
        let mut placement = Some(self.placement_or_everywhere());
        let tried = Roster::apply(&mut roster, &mut placement, RosterCommand::Change(new.clone()));
        let RosterDone::Begun(change) = tried.map_err(|refusal| conflict(&refusal))? else {
            return Err(GroupError::Fatal("a change of the roster has not begun".to_owned()));
        };
        let known = self.roster().is_some_and(|roster| {
            let past = roster.past().map(|past| &past.change);
            roster.under_way().into_iter().chain(past).any(|known| known.asked.request == new.request)
        });
        if let Some(old) = change.asked.kind.goes().filter(|_| !known) {
            enough_answer(old, &change.asked.kind, &self.placement_or_everywhere(), reachable)?;
        }
        Ok(change)
    }

    async fn begin_member_change(&self, new: NewMemberChange) -> Result<MemberChange, GroupError> {
        self.have_roster().await?;
        if self.placement().is_none() {
            // One that came meanwhile is as good.
            match self.place(PlaceCommand::Begin(self.placement_or_everywhere())).await {
                Ok(_) | Err(GroupError::Conflict { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        match self.change_roster(RosterCommand::Change(new)).await? {
            RosterDone::Begun(change) => Ok(change),
            RosterDone::Set => Err(GroupError::Fatal("a change of the roster has not begun".to_owned())),
        }
    }

    /// A cluster gets its roster with the first that needs it, from what its members were told.
    async fn have_roster(&self) -> Result<(), GroupError> {
        if self.roster().is_some() {
            return Ok(());
        }
        let members = self.plans().config.members.iter().map(record).collect();
        self.change_roster(RosterCommand::Begin(members)).await.map(drop)
    }
}

/// Those that stay must be able to take what the member has, and to agree on it.
fn enough_answer(
    old: MemberId,
    kind: &MemberChangeKind,
    placement: &super::placement::Placement,
    reachable: &BTreeSet<MemberId>,
) -> Result<(), GroupError> {
    let others: BTreeSet<MemberId> = placement.usable().filter(|other| *other != old).collect();
    let silent: Vec<String> =
        others.iter().filter(|other| !reachable.contains(other)).map(ToString::to_string).collect();
    let answer = others.len() - silent.len() + usize::from(kind.comes().is_some());
    let replicas = usize::from(placement.replicas);
    if answer >= replicas {
        return Ok(());
    }
    let others = if silent.is_empty() {
        "add a member first (`holdfast members add`)".to_owned()
    } else {
        format!("members {} do not answer: bring them back, or replace them first", silent.join(", "))
    };
    let why = format!(
        "member {old} cannot be taken away: with it gone only {answer} members answer, and groups of {replicas} replicas \
         could lose their majority; {others}"
    );
    Err(GroupError::Conflict { why })
}

fn conflict(refusal: &impl ToString) -> GroupError {
    GroupError::Conflict { why: refusal.to_string() }
}

fn first_roster(members: &[MemberEntry]) -> Roster {
    let (mut roster, records) = (None, members.iter().map(record).collect());
    // The first roster of a cluster is taken as it is.
    drop(Roster::apply(&mut roster, &mut None, RosterCommand::Begin(records)));
    roster.unwrap_or_default()
}

/// A member's addresses as they stand on the roster.
pub fn record(entry: &MemberEntry) -> MemberRecord {
    let MemberEntry { id, http, grpc, peer } = entry.clone();
    MemberRecord { id, http, grpc, peer }
}

/// A member's addresses as they stand in configurations.
pub fn entry(record: &MemberRecord) -> MemberEntry {
    let MemberRecord { id, http, grpc, peer } = record.clone();
    MemberEntry { id, http, grpc, peer }
}

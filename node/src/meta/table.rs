//! The state of the meta group, and the one way it changes.

use std::collections::{BTreeMap, VecDeque};

use holdfast_partitioner::{
    PartitionMap,
    planner::{Mode, Policy, PolicyEdit},
};
use serde::{Deserialize, Serialize};

use super::{
    changes::Changes,
    command::{AuditRecord, MemberRecord, MetaCommand, MetaOutcome, MetaRejection},
    placement::Placement,
    roster::Roster,
};
use crate::raft::types::MemberId;

/// Lines that the audit log keeps; the oldest make room for new ones.
pub const AUDIT_RECORDS: usize = 10_000;

/// Partition map, members, audit log, changes of the map, and when the planner acts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MetaTable {
    map: Option<PartitionMap>,
    members: BTreeMap<MemberId, MemberRecord>,
    /// How many lines were ever recorded: the number of the newest.
    recorded: u64,
    audit: VecDeque<AuditRecord>,
    /// Not in format 1. Fields are read in this order: new ones come last.
    changes: Changes,
    /// When the planner acts, once somebody has said so. Not in format 2.
    policy: Option<Policy>,
    /// Not in formats 1 and 2. A cluster without one has every group on every member.
    placement: Option<Placement>,
    /// Who the members are. Not in formats 1 to 3. A cluster without one lives by its members' configuration.
    roster: Option<Roster>,
}

/// Everything that applying one entry gives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MetaApplied {
    /// For the one who asked, and for whoever follows the meta group's changes.
    pub result: Result<MetaOutcome, MetaRejection>,
}

/// One line of the audit log with its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AuditLine<'a> {
    /// Its number, from 1; numbers have no gaps.
    pub index: u64,
    /// What was recorded.
    pub record: &'a AuditRecord,
}

impl MetaTable {
    /// A cluster without map, members or history.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Applies one entry of the log. Never panics; where the result is `Err`, nothing has changed.
    pub fn apply(&mut self, command: MetaCommand) -> MetaApplied {
        let result = match command {
            MetaCommand::InitMap { map } => self.init_map(map),
            MetaCommand::Record(record) => Ok(self.record(record)),
            MetaCommand::SetMember(record) => Ok(self.set_member(record)),
            MetaCommand::BeginChange(new) => match &self.map {
                Some(map) => self.changes.begin(map, new),
                None => Err(MetaRejection::NoMap),
            },
            MetaCommand::Reserve { change, step } => self.changes.reserve(change, step),
            MetaCommand::Decide { move_number, digest } => {
                self.with_map(|changes, map| changes.decide(map, move_number, digest))
            }
            MetaCommand::GiveUp { move_number, why } => self.changes.give_up(move_number, &why),
            MetaCommand::FinishMove { move_number, at_ms } => self.changes.finish(move_number, at_ms),
            MetaCommand::TakeStep { change, step, at_ms } => {
                self.with_map(|changes, map| changes.take_step(map, change, step, at_ms).map(Some))
            }
            MetaCommand::StopChange { change, why, at_ms } => self.changes.stop(change, &why, at_ms),
            MetaCommand::EditPolicy(edit) => self.edit_policy(&edit),
            MetaCommand::Place(command) => {
                let placed = Placement::apply(&mut self.placement, command);
                placed.map(MetaOutcome::Placed).map_err(MetaRejection::Place)
            }
            MetaCommand::Roster(command) => {
                let done = Roster::apply(&mut self.roster, &mut self.placement, command);
                done.map(MetaOutcome::Roster).map_err(MetaRejection::Roster)
            }
        };
        MetaApplied { result }
    }

    /// What may give another map, from the present one.
    fn with_map(
        &mut self,
        step: impl FnOnce(&mut Changes, &PartitionMap) -> Result<Option<PartitionMap>, MetaRejection>,
    ) -> Result<MetaOutcome, MetaRejection> {
        let map = self.map.as_mut().ok_or(MetaRejection::NoMap)?;
        if let Some(after) = step(&mut self.changes, map)? {
            *map = after;
        }
        Ok(MetaOutcome::MapSet { epoch: map.epoch() })
    }

    /// Changes of the map, under way and over.
    #[must_use]
    pub const fn changes(&self) -> &Changes {
        &self.changes
    }

    /// Which members carry which groups; none where every member carries every group.
    #[must_use]
    pub const fn placement(&self) -> Option<&Placement> {
        self.placement.as_ref()
    }

    /// The state for a restored cluster: with this map and placement, this line in the audit log, and nothing under way. Where
    /// its members can be reached is said anew. Whoever calls this has refused undecided moves.
    #[must_use]
    pub fn restored(&self, map: PartitionMap, placement: Option<Placement>, line: AuditRecord) -> Self {
        let changes = self.changes.restored(line.at_ms);
        // Members of the lost cluster are none of this one, which begins by its configuration.
        let (members, roster) = (BTreeMap::new(), None);
        let mut after = Self { map: Some(map), members, roster, changes, placement, ..self.clone() };
        after.record(line);
        after
    }

    /// Who the members are; none in a cluster that lives by its members' configuration.
    #[must_use]
    pub const fn roster(&self) -> Option<&Roster> {
        self.roster.as_ref()
    }

    /// The partition map, once there is one.
    #[must_use]
    pub fn map(&self) -> Option<&PartitionMap> {
        self.map.as_ref()
    }

    /// When the planner acts; until somebody says otherwise, it only suggests.
    #[must_use]
    pub fn policy(&self) -> Policy {
        self.policy.clone().unwrap_or_else(|| Policy::standard(Mode::Suggest))
    }

    /// The members by id.
    #[must_use]
    pub const fn members(&self) -> &BTreeMap<MemberId, MemberRecord> {
        &self.members
    }

    /// The newest `limit` lines of the audit log, oldest first.
    pub fn audit(&self, limit: usize) -> impl Iterator<Item = AuditLine<'_>> {
        let skip = self.audit.len().saturating_sub(limit);
        let before = self.recorded.saturating_sub(self.audit.len() as u64);
        (before + 1..).zip(&self.audit).skip(skip).map(|(index, record)| AuditLine { index, record })
    }

    fn init_map(&mut self, map: PartitionMap) -> Result<MetaOutcome, MetaRejection> {
        if let Some(existing) = &self.map {
            return Err(MetaRejection::MapExists { epoch: existing.epoch() });
        }
        let epoch = map.epoch();
        self.map = Some(map);
        Ok(MetaOutcome::MapSet { epoch })
    }

    fn edit_policy(&mut self, edit: &PolicyEdit) -> Result<MetaOutcome, MetaRejection> {
        let edited = self.policy().edited(edit);
        self.policy = Some(edited.map_err(|faults| MetaRejection::BadPolicy { why: faults.to_string() })?);
        Ok(MetaOutcome::Done)
    }

    fn record(&mut self, record: AuditRecord) -> MetaOutcome {
        while self.audit.len() >= AUDIT_RECORDS {
            self.audit.pop_front();
        }
        self.audit.push_back(record);
        self.recorded = self.recorded.saturating_add(1);
        MetaOutcome::Recorded { index: self.recorded }
    }

    fn set_member(&mut self, record: MemberRecord) -> MetaOutcome {
        let changed = self.members.get(&record.id) != Some(&record);
        self.members.insert(record.id, record);
        MetaOutcome::MemberSet { changed }
    }
}

#[cfg(test)]
mod tests {
    use holdfast_partitioner::{GroupId, MapEpoch};

    use super::*;

    fn map(groups: u32) -> PartitionMap {
        let groups: Vec<GroupId> = (1..=groups).map(GroupId).collect();
        PartitionMap::initial(&groups).unwrap()
    }

    fn record(n: u64) -> AuditRecord {
        AuditRecord {
            at_ms: n,
            actor: "ada".into(),
            action: "force_release".into(),
            target: format!("lock {n}"),
            reason: "stuck".into(),
            outcome: "ok".into(),
        }
    }

    fn member(id: MemberId, port: u16) -> MemberRecord {
        MemberRecord {
            id,
            http: format!("http://127.0.0.1:{port}"),
            grpc: format!("http://127.0.0.1:{}", port + 1),
            peer: format!("127.0.0.1:{}", port + 2),
        }
    }

    #[test]
    fn the_first_map_stays() {
        let mut table = MetaTable::new();
        let first = table.apply(MetaCommand::InitMap { map: map(4) });
        assert_eq!(first.result, Ok(MetaOutcome::MapSet { epoch: MapEpoch::FIRST }));
        let before = table.clone();
        let second = table.apply(MetaCommand::InitMap { map: map(2) });
        assert_eq!(second.result, Err(MetaRejection::MapExists { epoch: MapEpoch::FIRST }));
        assert_eq!(table, before);
        assert_eq!(table.map(), Some(&map(4)));
    }

    #[test]
    fn a_member_that_moves_is_known_at_its_new_place_only() {
        let mut table = MetaTable::new();
        let set = |table: &mut MetaTable, port| table.apply(MetaCommand::SetMember(member(1, port))).result;
        assert_eq!(set(&mut table, 7610), Ok(MetaOutcome::MemberSet { changed: true }));
        assert_eq!(set(&mut table, 7610), Ok(MetaOutcome::MemberSet { changed: false }));
        assert_eq!(set(&mut table, 7710), Ok(MetaOutcome::MemberSet { changed: true }));
        assert_eq!(table.members().values().collect::<Vec<_>>(), [&member(1, 7710)]);
    }

    #[test]
    fn a_policy_is_edited_whole_or_not_at_all() {
        let mut table = MetaTable::new();
        assert_eq!(table.policy(), Policy::standard(Mode::Suggest));
        let good = PolicyEdit {
            mode: Some(Mode::Auto),
            hold_ms: Some(2_000),
            veto: ["jobs/".to_owned()].into(),
            ..PolicyEdit::default()
        };
        assert_eq!(table.apply(MetaCommand::EditPolicy(good)).result, Ok(MetaOutcome::Done));
        let before = table.clone();
        assert_eq!((before.policy().mode, before.policy().hold_ms), (Mode::Auto, 2_000));
        let bad = PolicyEdit {
            mode: Some(Mode::Off),
            quiet_ms: Some(1),
            allow: ["other/".to_owned()].into(),
            ..PolicyEdit::default()
        };
        let refusal = table.apply(MetaCommand::EditPolicy(bad)).result.unwrap_err();
        assert!(refusal.is_bad_input() && !MetaRejection::ChangeUnderWay { change: 1 }.is_bad_input());
        let refused = refusal.to_string();
        assert!(refused.contains("no veto on \"other/\"") && refused.contains("quiet_ms"), "{refused}");
        assert_eq!(table, before);
        let lifted = PolicyEdit { allow: ["jobs/".to_owned()].into(), ..PolicyEdit::default() };
        table.apply(MetaCommand::EditPolicy(lifted)).result.unwrap();
        assert!(table.policy().vetoes.is_empty() && table.policy().mode == Mode::Auto);
    }

    #[test]
    fn the_audit_log_keeps_the_newest_lines_and_their_numbers() {
        let mut table = MetaTable::new();
        let extra = 5;
        for n in 1..=(AUDIT_RECORDS as u64 + extra) {
            let applied = table.apply(MetaCommand::Record(record(n)));
            assert_eq!(applied.result, Ok(MetaOutcome::Recorded { index: n }));
        }
        let all: Vec<_> = table.audit(usize::MAX).collect();
        assert_eq!(all.len(), AUDIT_RECORDS);
        assert!(all.iter().all(|line| line.record.at_ms == line.index));
        assert_eq!(all[0].index, extra + 1);
        let last: Vec<_> = table.audit(2).map(|line| line.index).collect();
        assert_eq!(last, [AUDIT_RECORDS as u64 + extra - 1, AUDIT_RECORDS as u64 + extra]);
    }
}

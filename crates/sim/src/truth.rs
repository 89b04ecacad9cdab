//! What the log says: a lock table of the simulation's own for every lock group, fed with the commands that the members
//! have agreed on. So everything that ever happened is known, in order, once.
//!
//! Reads the members' disks, and tells each command to whoever judges it. Finds by itself only that a member's table is not
//! what its log leads to.

use std::collections::BTreeMap;

use holdfast_locktable::{
    codec,
    command::{Command, Wait},
    ids::Term,
    outcome::Applied,
    table::{LockTable, Position},
};
use holdfast_node::log::group_number::GroupNumber;
use holdfast_partitioner::GroupId;

use crate::{check::Findings, cluster::Cluster, coverage::Coverage, member::SimMember};

/// One of so many commands is looked at twice: that a refusal changes nothing is seen by comparing whole tables.
const COMPARED_EVERY: u64 = 8;

/// One command of one group's log, and what came of it.
#[derive(Debug)]
pub struct Step<'a> {
    /// When it was seen, in milliseconds of the run.
    pub now: u64,
    /// The group.
    pub group: GroupId,
    /// Where it stands in the log.
    pub at: Position,
    /// The command.
    pub command: &'a Command,
    /// What it did.
    pub applied: &'a Applied,
    /// Whether the table is the same as before; `None` where nobody looked.
    pub unchanged: Option<bool>,
    /// The table afterwards.
    pub table: &'a LockTable,
}

#[derive(Debug)]
struct Known {
    table: LockTable,
    next: u64,
}

/// The log of every lock group as far as it is known.
#[derive(Debug, Default)]
pub struct Truth {
    groups: BTreeMap<GroupId, Known>,
    coverage: Coverage,
    missed: u64,
    compared: u64,
}

impl Truth {
    /// Reads on, and tells every command that is new.
    pub fn look(
        &mut self,
        now: u64,
        cluster: &Cluster,
        findings: &Findings,
        mut tell: impl FnMut(&Step<'_>),
    ) {
        for group in cluster.groups() {
            let Ok(number) = GroupNumber::new(group.0) else { continue };
            let fresh = || Known { table: LockTable::new(group), next: 0 };
            let mut known = self.groups.remove(&group).unwrap_or_else(fresh);
            let mut purged = None;
            for member in cluster.members() {
                let Some(applied) = applied(member, group).filter(|applied| *applied >= known.next) else {
                    continue;
                };
                // Where writes wait, the disk may still hold what they replace.
                if member.disk.log().waiting() > 0 {
                    continue;
                }
                match member.disk.log().commands(number, &(known.next..applied + 1)) {
                    Ok(commands) if commands.first().is_some_and(|first| first.0 == known.next) => {
                        for (index, term, bytes) in commands {
                            let at = Position { index, term: Term(term) };
                            self.take(now, group, at, &bytes, &mut known, findings, &mut tell);
                        }
                        self.compare(now, group, member, &known, findings);
                    }
                    Ok(_) => purged = Some(member),
                    Err(damaged) => findings.add("log", now, format!("member {}: {damaged}", member.id)),
                }
            }
            if let Some(member) = purged
                && applied(member, group).is_some_and(|applied| applied >= known.next)
            {
                self.skip(group, member, &mut known);
            }
            self.groups.insert(group, known);
        }
    }

    #[expect(clippy::too_many_arguments, reason = "an entry with all that belongs to it")]
    fn take(
        &mut self,
        now: u64,
        group: GroupId,
        at: Position,
        bytes: &[u8],
        known: &mut Known,
        findings: &Findings,
        tell: &mut impl FnMut(&Step<'_>),
    ) {
        known.next = at.index + 1;
        if bytes.is_empty() {
            return;
        }
        let proposal = match codec::decode_proposal(bytes) {
            Ok(proposal) => proposal,
            Err(error) => {
                let sentence = format!("entry {} of group {group} cannot be read: {error}", at.index);
                findings.add("log", now, sentence);
                return;
            }
        };
        let may_be_refused = matches!(&proposal.command, Command::Acquire(ask) if ask.wait == Wait::Try);
        let before = (may_be_refused || at.index.is_multiple_of(COMPARED_EVERY)).then(|| known.table.clone());
        let applied = known.table.apply(at, &proposal);
        self.coverage.count(&proposal.command, &applied.result);
        let unchanged = before.map(|before| before == known.table);
        let (command, table) = (&proposal.command, &known.table);
        tell(&Step { now, group, at, command, applied: &applied, unchanged, table });
    }

    /// A member that has applied exactly what is known has exactly the same table.
    fn compare(&mut self, now: u64, group: GroupId, member: &SimMember, known: &Known, findings: &Findings) {
        let Some(replica) = member.seat().and_then(|seat| seat.service.group(group)) else { return };
        let same = replica.with_locks(|table, at| {
            at.filter(|at| at.index + 1 == known.next).map(|_| *table == known.table)
        });
        if let Some(Some(same)) = same {
            self.compared += 1;
            if !same {
                let sentence = format!(
                    "group {group} on member {} at index {} is not what its log leads to",
                    member.id,
                    known.next - 1
                );
                findings.add("log", now, sentence);
            }
        }
    }

    /// The log was shortened before it was read: goes on from a member's table.
    fn skip(&mut self, group: GroupId, member: &SimMember, known: &mut Known) {
        let Some(replica) = member.seat().and_then(|seat| seat.service.group(group)) else { return };
        let taken = replica.with_locks(|table, at| at.map(|at| (table.clone(), at.index + 1)));
        if let Some(Some((table, next))) = taken {
            self.missed += next - known.next;
            *known = Known { table, next };
        }
    }

    /// Index that comes next in a group.
    #[must_use]
    pub fn next(&self, group: GroupId) -> u64 {
        self.groups.get(&group).map_or(0, |known| known.next)
    }

    /// The last index of a group that is durable on any disk: all that was agreed on so far is at or below it, also where
    /// those who applied it have crashed since.
    #[must_use]
    pub fn logged(&self, group: GroupId, cluster: &Cluster) -> Option<u64> {
        let (number, unread) = (GroupNumber::new(group.0).ok()?, self.next(group)..u64::MAX);
        let last = |member: &SimMember| {
            let commands = member.disk.log().commands(number, &unread).ok()?;
            commands.last().map(|(index, ..)| *index)
        };
        let last = cluster.members().iter().filter_map(last).max();
        last.or_else(|| unread.start.checked_sub(1))
    }

    /// Which commands were answered how.
    #[must_use]
    pub fn coverage(&self) -> &Coverage {
        &self.coverage
    }

    /// How many entries were shortened away before they were read.
    #[must_use]
    pub fn missed(&self) -> u64 {
        self.missed
    }

    /// How many tables of members were compared with what their log leads to.
    #[must_use]
    pub fn compared(&self) -> u64 {
        self.compared
    }
}

/// The last index that a member has applied.
fn applied(member: &SimMember, group: GroupId) -> Option<u64> {
    member.seat()?.service.group(group)?.with_locks(|_, at| at.map(|at| at.index)).flatten()
}

//! P2: the fencing token of a lock only grows, over all grants that any log ever made, also where the lock has moved from
//! group to group.
//!
//! Moves are numbered, so that the times in which one group after the other had a lock are in order, in whatever order the
//! groups' logs are read.

use std::collections::BTreeMap;

use holdfast_locktable::{
    command::Command,
    event::Change,
    ids::{MoveNumber, Token},
    name::Name,
};
use holdfast_partitioner::{GroupId, Range};

use super::Findings;
use crate::truth::Step;

/// The tokens of each lock so far.
#[derive(Debug, Default)]
pub struct Tokens {
    /// The lowest and the highest token of each lock since each move that brought it somewhere.
    granted: BTreeMap<Name, BTreeMap<MoveNumber, (Token, Token)>>,
    moving: BTreeMap<MoveNumber, Range>,
    /// What came to each group, with which move.
    arrived: BTreeMap<GroupId, Vec<(MoveNumber, Range)>>,
}

impl Tokens {
    /// Judges one entry.
    pub fn judge(&mut self, step: &Step<'_>, findings: &Findings) {
        self.learn(step);
        for event in &step.applied.events {
            let Change::Grant { name, token, .. } = &event.change else { continue };
            let since = self.brought(step.group, name);
            let granted = self.granted.entry(name.clone()).or_default();
            let before = granted.range(..=since).map(|(_, (_, highest))| *highest).max();
            let after =
                granted.range(since..).skip_while(|(at, _)| **at == since).map(|(_, (lowest, _))| *lowest);
            let after = after.min();
            if before.is_some_and(|before| before >= *token) || after.is_some_and(|after| after <= *token) {
                let sentence = format!(
                    "{:?}: group {} granted token {}, between {before:?} before it and {after:?} after it",
                    name.text(),
                    step.group,
                    token.0
                );
                findings.add("P2", step.now, sentence);
            }
            let (_, highest) = granted.entry(since).or_insert((*token, *token));
            *highest = (*highest).max(*token);
        }
    }

    fn learn(&mut self, step: &Step<'_>) {
        match (step.command, &step.applied.result) {
            (Command::Import(import), Ok(_)) => {
                self.moving.insert(import.move_number, import.range.clone());
            }
            (Command::Activate(activate), Ok(_)) => {
                if let Some(range) = self.moving.remove(&activate.move_number) {
                    self.arrived.entry(step.group).or_default().push((activate.move_number, range));
                }
            }
            _ => {}
        }
    }

    /// The move that brought a lock to a group; the lowest number where none did.
    fn brought(&self, group: GroupId, name: &Name) -> MoveNumber {
        let arrived = self.arrived.get(&group).into_iter().flatten();
        let with_it = arrived.filter(|(_, range)| range.contains(name.internal()));
        with_it.map(|(number, _)| *number).max().unwrap_or_default()
    }
}

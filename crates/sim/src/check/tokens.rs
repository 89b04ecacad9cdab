//! P2: the fencing token of a lock only grows, over all grants that any log ever made.

use std::collections::BTreeMap;

use holdfast_locktable::{event::Change, ids::Token, name::Name};

use super::Findings;
use crate::truth::Step;

/// The highest token of each lock so far.
#[derive(Debug, Default)]
pub struct Tokens(BTreeMap<Name, Token>);

impl Tokens {
    /// Judges one entry.
    pub fn judge(&mut self, step: &Step<'_>, findings: &Findings) {
        for event in &step.applied.events {
            let Change::Grant { name, token, .. } = &event.change else { continue };
            let before = self.0.insert(name.clone(), *token);
            if let Some(before) = before.filter(|before| before >= token) {
                let sentence = format!("{:?}: token {} was granted after {}", name.text(), token.0, before.0);
                findings.add("P2", step.now, sentence);
            }
        }
    }
}

//! P6: whatever ends a hold grants the lock to the next in line, to that one only, in the same entry of the log.
//!
//! Looks at what each entry did to the queues. That only one client is woken is seen by I1 and I2.

use std::collections::BTreeMap;

use holdfast_locktable::{
    event::Change,
    ids::{SessionId, Token},
    name::Name,
};

use super::Findings;
use crate::truth::Step;

/// What one entry did to one queue.
#[derive(Debug, Default)]
struct Touched {
    freed: bool,
    grants: Vec<(SessionId, Token)>,
}

/// Judges one entry.
pub fn judge(step: &Step<'_>, findings: &Findings) {
    let mut touched: BTreeMap<&Name, Touched> = BTreeMap::new();
    for event in &step.applied.events {
        match &event.change {
            Change::Delete { name: Some(name), held: true, .. } => {
                touched.entry(name).or_default().freed = true;
            }
            Change::Grant { name, session, token } => {
                touched.entry(name).or_default().grants.push((*session, *token));
            }
            Change::Delete { .. } | Change::Put { .. } => {}
        }
    }
    for (name, touched) in touched {
        let holder = step.table.holder(name).map(|(session, token, _)| (session, token));
        let right = match touched.grants.as_slice() {
            [] => holder.is_none(),
            [granted] => holder == Some(*granted),
            _ => false,
        };
        if !right {
            let sentence = format!(
                "{:?} in group {} at index {}: granted to {:?}, the first in line is {holder:?}; freed: {}",
                name.text(),
                step.group,
                step.at.index,
                touched.grants,
                touched.freed
            );
            findings.add("P6", step.now, sentence);
        }
    }
}

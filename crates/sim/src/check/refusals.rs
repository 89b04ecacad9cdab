//! P7 and P9: a command that is refused changes nothing: no key, no revision, no event; a try that finds the lock held
//! least of all.

use super::Findings;
use crate::truth::Step;

/// Judges one entry.
pub fn judge(step: &Step<'_>, findings: &Findings) {
    let Err(rejection) = &step.applied.result else { return };
    let silent = step.applied.events.is_empty() && step.applied.facts.is_empty();
    if step.unchanged == Some(false) || !silent {
        let sentence = format!(
            "{:?} in group {} at index {} was refused with {rejection:?} and changed something",
            step.command, step.group, step.at.index
        );
        findings.add("P7", step.now, sentence);
    }
}

//! I3: once the fenced resource has accepted a token for an object, it accepts no lower one.

use crate::{
    event::{Event, Fact},
    violation::{Check, Violation},
};

/// Enough to judge writes that overlap with this many higher ones.
const STEPS: usize = 64;

/// The accepted writes to one object that can convict a later one: higher tokens that were answered later. Ascending.
#[derive(Debug, Default)]
pub(crate) struct Fence {
    accepted: Vec<(u64, Event)>,
}

impl Fence {
    pub(crate) fn observe(&mut self, event: &Event, found: &mut Vec<Violation>) {
        let Fact::FencedWrite { lock, token, sent, accepted: true, .. } = &event.fact else { return };
        // Only what was answered before this write was sent certainly came before it.
        let higher = self.accepted.iter().rev().find(|(_, before)| before.at <= *sent);
        if let Some((_, before)) = higher.filter(|(higher, _)| higher > token) {
            let sentence = format!("{event}, after {before}");
            found.push(Violation {
                check: Check::Fence,
                lock: Some(lock.clone()),
                first: Some(before.clone()),
                second: event.clone(),
                sentence,
            });
        }
        self.keep(*token, event);
    }

    fn keep(&mut self, token: u64, event: &Event) {
        let convicts_more = |(kept, before): &(u64, Event)| *kept >= token && before.at <= event.at;
        if self.accepted.iter().any(convicts_more) {
            return;
        }
        self.accepted.retain(|(kept, before)| *kept > token || before.at < event.at);
        let place = self.accepted.partition_point(|(kept, _)| *kept < token);
        self.accepted.insert(place, (token, event.clone()));
        if self.accepted.len() > STEPS {
            self.accepted.remove(0);
        }
    }
}

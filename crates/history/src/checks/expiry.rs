//! I4: a session that the service ends by itself has not been heard of for its TTL.

use crate::{
    event::{Event, Fact, SessionEnd},
    sessions::Sessions,
    violation::{Check, Seconds, Violation},
};

/// Judges the end of a session, before the sessions take it in.
pub(crate) fn observe(event: &Event, sessions: &Sessions, found: &mut Vec<Violation>) {
    let Fact::SessionEnded { session, end: SessionEnd::Lost } = event.fact else { return };
    let Some(known) = sessions.get(session) else { return };
    let earliest = known.renewed.saturating_add(known.ttl);
    // What its client ended, or gave up, or an operator ended, may well be over.
    if known.ended.is_some() || event.at >= earliest {
        return;
    }
    let sentence = format!(
        "{event}, but it had to live until {}, its TTL after the last acknowledged keepalive: {}",
        Seconds(earliest),
        known.renewed_by
    );
    let first = Some(known.renewed_by.clone());
    found.push(Violation { check: Check::EarlyExpiry, lock: None, first, second: event.clone(), sentence });
}

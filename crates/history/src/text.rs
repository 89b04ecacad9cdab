//! Histories as JSON lines, one event each. Opens no file.

use crate::{
    checker::{Checker, Limits},
    event::Event,
    violation::Violation,
};

/// A line that is no event.
#[derive(Debug, thiserror::Error)]
#[error("line {line} of the history cannot be read: {source}")]
pub struct HistoryError {
    /// Which line, from 1.
    pub line: usize,
    /// Why.
    #[source]
    pub source: serde_json::Error,
}

/// One event as one line of JSON, without the line's end.
///
/// # Errors
/// None that an event can cause; the serializer's type has one.
pub fn to_line(event: &Event) -> Result<String, serde_json::Error> {
    serde_json::to_string(event)
}

/// Reads lines of JSON, blank ones left out, and puts the events in the order of their times. Lines of several
/// recorders may simply be put one after the other, as long as they read the same clock.
///
/// # Errors
/// The first line that is no event.
pub fn parse(text: &str) -> Result<Vec<Event>, HistoryError> {
    let mut events = Vec::new();
    for (line, text) in (1..).zip(text.lines()).filter(|(_, text)| !text.trim().is_empty()) {
        events.push(serde_json::from_str(text).map_err(|source| HistoryError { line, source })?);
    }
    events.sort_by_key(|event: &Event| event.at);
    Ok(events)
}

/// Judges a whole history, whose calls must all have ended by its last event. Events come in the order of their times,
/// as [`parse`] puts them.
#[must_use]
pub fn judge(events: &[Event], limits: Limits) -> Vec<Violation> {
    let mut checker = Checker::new(limits);
    for event in events {
        checker.observe(event);
    }
    checker.finish(events.last().map_or(0, |event| event.at));
    checker.violations().to_vec()
}

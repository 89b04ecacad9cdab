//! What a session has asked for, so that a repeat is answered instead of executed (rules R8, R11).

use alloc::sync::Arc;

use holdfast_partitioner::Range;
use litemap::LiteMap;
use serde::{Deserialize, Serialize};

use super::rare::{MaybeRare, Rare};
use crate::{
    command::RequestId,
    ids::{Revision, Token},
    name::Name,
    outcome::{Rejection, RequestEnd},
};

/// Most sequence-numbered requests of one session above its floor in one group.
pub const MAX_OUTSTANDING: usize = 256;
/// Most text records of one session whose key is gone; the one that ended first is dropped.
pub const MAX_ENDED_TEXTS: usize = 1_024;
/// How many holds that a session ended itself are remembered, for repeated releases.
pub const MAX_ENDED_HOLDS: usize = 64;
/// In place of a create revision: there never was a key.
const NO_KEY: Revision = Revision(0);

/// The requests of one session in one group.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Requests {
    /// Sequence numbers up to here are answered and never executed.
    pub(crate) floor: u64,
    /// Acquires above the floor that created a key.
    pub(crate) results: LiteMap<u64, Record>,
    /// What few sessions have.
    pub(crate) rare: MaybeRare,
}

/// A request that created a key, or must not do so any more.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Record {
    pub(crate) name: Name,
    /// Create revision of its key.
    pub(crate) revision: Revision,
    /// How it ended; `None` while the key is there.
    pub(crate) end: Option<RequestEnd>,
}

/// A text request that created a key, or must not do so any more.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TextRecord {
    pub(crate) text: Arc<str>,
    pub(crate) revision: Revision,
    pub(crate) end: Option<RequestEnd>,
}

/// What is known of a request before it is executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Earlier {
    /// Never seen.
    New,
    /// Its key is there, with this create revision: it holds or stands in line.
    Live(Revision),
    /// Its key is gone.
    Ended(RequestEnd),
    /// At or below the floor, or the number was used for another name.
    Stale,
}

impl Requests {
    /// Looks up a request whose key is gone, if there ever was one.
    pub(crate) fn find(&self, name: &Name, request: &RequestId) -> Earlier {
        let end = match request {
            RequestId::Sequence { sequence, lowest } => {
                if *sequence <= self.floor.max(lowest.saturating_sub(1)) {
                    return Earlier::Stale;
                }
                match self.results.get(sequence) {
                    None => return Earlier::New,
                    Some(record) if record.name != *name => return Earlier::Stale,
                    Some(record) => record.end,
                }
            }
            RequestId::Text(text) => match self.rare.get().texts.get(name) {
                Some(record) if record.text == *text => record.end,
                Some(_) | None => return Earlier::New,
            },
        };
        // A record without end has its key, which is asked before the records.
        end.map_or(Earlier::Stale, Earlier::Ended)
    }

    /// Whether one more request may be recorded, once its `lowest` has raised the floor.
    pub(crate) fn room(&self, request: &RequestId) -> Result<(), Rejection> {
        let RequestId::Sequence { lowest, .. } = request else { return Ok(()) };
        let outstanding = self.results.keys().filter(|sequence| *sequence >= lowest).count();
        if outstanding < MAX_OUTSTANDING { Ok(()) } else { Err(Rejection::TooManyOutstanding) }
    }

    /// Records a request that has just created a key.
    pub(crate) fn record(&mut self, name: &Name, request: &RequestId, revision: Revision) {
        match request {
            RequestId::Sequence { sequence, lowest } => {
                self.raise_floor(lowest.saturating_sub(1));
                if self.results.is_empty() {
                    // Most sessions have one at a time.
                    self.results = LiteMap::with_capacity(1);
                }
                self.results.insert(*sequence, Record { name: name.clone(), revision, end: None });
            }
            RequestId::Text(text) => {
                let record = TextRecord { text: text.clone(), revision, end: None };
                self.rare.get_mut().texts.insert(name.clone(), record);
            }
        }
    }

    /// Records a request that has ended without a key, so that it is never executed. Beyond what may be outstanding nothing
    /// is recorded, and nothing in place of a request whose key is there.
    pub(crate) fn keep_out(&mut self, name: &Name, request: &RequestId) {
        let (revision, end) = (NO_KEY, Some(RequestEnd::Cancelled));
        match request {
            RequestId::Sequence { sequence, .. } if self.results.len() < MAX_OUTSTANDING => {
                self.results.insert(*sequence, Record { name: name.clone(), revision, end });
            }
            RequestId::Sequence { .. } => {}
            RequestId::Text(text) => {
                if self.rare.get().texts.get(name).is_some_and(|record| record.end.is_none()) {
                    return;
                }
                let record = TextRecord { text: text.clone(), revision, end };
                self.rare.get_mut().texts.insert(name.clone(), record);
                self.text_ended(name, revision);
            }
        }
    }

    fn raise_floor(&mut self, floor: u64) {
        if floor > self.floor {
            self.floor = floor;
            self.results.retain(|sequence, _| *sequence > floor);
        }
    }

    /// Records that the key a request created is gone.
    pub(crate) fn ended(&mut self, name: &Name, request: &RequestId, revision: Revision, end: RequestEnd) {
        match request {
            RequestId::Sequence { sequence, .. } => {
                if let Some(record) = self.results.get_mut(sequence).filter(|r| r.revision == revision) {
                    record.end = Some(end);
                }
            }
            RequestId::Text(_) => {
                if self.rare.get().texts.get(name).is_none_or(|record| record.revision != revision) {
                    return;
                }
                if let Some(record) = self.rare.get_mut().texts.get_mut(name) {
                    record.end = Some(end);
                }
                self.text_ended(name, revision);
            }
        }
    }

    fn text_ended(&mut self, name: &Name, revision: Revision) {
        let rare = self.rare.get_mut();
        rare.ended_texts.push_back((name.clone(), revision));
        if rare.ended_texts.len() <= MAX_ENDED_TEXTS {
            return;
        }
        let Some((name, revision)) = rare.ended_texts.pop_front() else { return };
        if rare.texts.get(&name).is_some_and(|record| record.revision == revision) {
            rare.texts.remove(&name);
        }
    }

    /// The floor and what was asked for in a range, for another group; `None` where there is nothing to remember.
    pub(crate) fn within(&self, range: &Range) -> Option<Self> {
        let mut part = self.clone();
        part.retain(|name| range.contains(name.internal()));
        (part != Self::default()).then_some(part)
    }

    /// Forgets what was asked for in a range that belongs to another group now. The floor stays.
    pub(crate) fn forget(&mut self, range: &Range) {
        self.retain(|name| !range.contains(name.internal()));
    }

    fn retain(&mut self, stays: impl Fn(&Name) -> bool) {
        self.results.retain(|_, record| stays(&record.name));
        self.rare.retain(stays);
    }

    /// Adds what another group remembered of the same session. Sequence numbers are the session's, and so is the lowest
    /// without an answer: the higher floor is right for both.
    pub(crate) fn take_in(&mut self, other: Self) {
        let floor = self.floor.max(other.floor);
        self.results.extend(other.results);
        self.floor = 0;
        self.raise_floor(floor);
        let other = other.rare.get();
        if *other == Rare::default() {
            return;
        }
        let rare = self.rare.get_mut();
        rare.texts.extend(other.texts.iter().map(|(name, record)| (name.clone(), record.clone())));
        for (name, revision) in &other.ended_texts {
            self.text_ended(name, *revision);
        }
        for (name, token) in &other.ended_holds {
            self.remember_hold(name, *token);
        }
    }

    /// Remembers a hold that the session ended itself.
    pub(crate) fn remember_hold(&mut self, name: &Name, token: Token) {
        let holds = &mut self.rare.get_mut().ended_holds;
        if holds.len() >= MAX_ENDED_HOLDS {
            holds.pop_front();
        }
        holds.push_back((name.clone(), token));
    }

    /// Whether the session ended this hold itself, and it is still remembered.
    pub(crate) fn has_ended(&self, name: &Name, token: Token) -> bool {
        self.rare.get().ended_holds.iter().any(|(n, t)| t == &token && n == name)
    }
}

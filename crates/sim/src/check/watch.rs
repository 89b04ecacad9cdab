//! A watch gives every change of a group's locks in the order of the log, each once and none left out, also where it is
//! resumed at another member; what it cannot give it says.
//!
//! Compares what watchers were given, cursor after cursor, with what the log says. Order between groups means nothing.

use std::{collections::BTreeMap, sync::Arc};

use holdfast_locktable::{
    ids::{Revision, SessionId},
    name::NameKind,
};
use holdfast_node::{
    endpoint::{cursor::Cursor, types::WatchEvent},
    group::read::history_view,
    watch::watchers::name_of,
};
use holdfast_partitioner::GroupId;
use parking_lot::Mutex;

use super::Findings;
use crate::truth::Step;

/// One change as a watcher sees it, without the time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    revision: Revision,
    what: String,
    name: String,
    session: Option<SessionId>,
    token: Revision,
}

/// What one watcher was given without a break.
#[derive(Debug)]
struct Watched {
    watcher: u32,
    /// The changes of each group.
    given: BTreeMap<GroupId, Vec<Seen>>,
    /// The cursor after the last change.
    cursor: Option<Cursor>,
}

/// What all watchers were given. Clones are the same list.
#[derive(Clone, Debug, Default)]
pub struct Watches(Arc<Mutex<Vec<Watched>>>);

impl Watches {
    /// A watcher begins anew, from now on. Answers the number of what it will be given.
    #[must_use]
    pub fn begin(&self, watcher: u32) -> usize {
        let mut all = self.0.lock();
        all.push(Watched { watcher, given: BTreeMap::new(), cursor: None });
        all.len() - 1
    }

    /// A watcher was given a change.
    pub fn given(&self, number: usize, event: &WatchEvent) {
        let mut all = self.0.lock();
        let Some(watched) = all.get_mut(number) else { return };
        watched.given.entry(event.group).or_default().push(Seen {
            revision: event.revision,
            what: event.what.clone(),
            name: event.name.clone(),
            session: event.session,
            token: event.token,
        });
        watched.cursor = Cursor::parse(&event.cursor);
    }

    /// How many changes watchers were given.
    #[must_use]
    pub fn count(&self) -> usize {
        self.0.lock().iter().flat_map(|watched| watched.given.values()).map(Vec::len).sum()
    }
}

/// All changes of locks, as the log has them.
#[derive(Debug, Default)]
pub struct Changes(BTreeMap<GroupId, Vec<Seen>>);

impl Changes {
    /// Takes in one entry.
    pub fn take(&mut self, step: &Step<'_>) {
        for event in &step.applied.events {
            let Some(name) = name_of(event).filter(|name| name.kind() == NameKind::Lock) else { continue };
            let view = history_view(event);
            self.0.entry(step.group).or_default().push(Seen {
                revision: view.revision,
                what: view.what,
                name: name.text().to_owned(),
                session: view.session,
                token: view.token,
            });
        }
    }

    /// Compares all that watchers were given, once the run is over.
    pub fn finish(&self, now: u64, watches: &Watches, findings: &Findings) {
        for watched in watches.0.lock().iter() {
            for (group, given) in &watched.given {
                let changes = self.0.get(group).map_or(&[][..], Vec::as_slice);
                if let Err(wrong) = follows(changes, given) {
                    let sentence = format!("watcher {} in group {group}: {wrong}", watched.watcher);
                    findings.add("watch", now, sentence);
                }
            }
            self.judge_cursor(now, watched, findings);
        }
    }

    /// Between the last change that was given and the cursor there is none.
    fn judge_cursor(&self, now: u64, watched: &Watched, findings: &Findings) {
        let Some(cursor) = &watched.cursor else { return };
        for (group, given) in &watched.given {
            let (Some(last), Some(place)) = (given.last(), cursor.0.get(group)) else { continue };
            let changes = self.0.get(group).map_or(&[][..], Vec::as_slice);
            let left_out = changes.iter().find(|c| c.revision > last.revision && c.revision < place.revision);
            if let Some(left_out) = left_out {
                let sentence = format!(
                    "watcher {} in group {group}: the cursor {cursor} passes {left_out:?}, which was not given",
                    watched.watcher
                );
                findings.add("watch", now, sentence);
            }
        }
    }
}

/// Whether what was given stands in the log in one piece; otherwise where not.
fn follows(changes: &[Seen], given: &[Seen]) -> Result<(), String> {
    let Some(first) = given.first() else { return Ok(()) };
    let begin = changes.iter().position(|change| change == first);
    let begin = begin.ok_or_else(|| format!("{first:?} is not in the log"))?;
    for (at, given) in given.iter().enumerate() {
        match changes.get(begin + at) {
            Some(change) if change == given => {}
            Some(change) => return Err(format!("{given:?} was given where the log has {change:?}")),
            None => return Err(format!("{given:?} was given and is not in the log")),
        }
    }
    Ok(())
}

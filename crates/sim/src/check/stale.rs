//! Whoever is told who holds a lock is told of a hold that was not over when the question was sent (rule R12).
//!
//! A hold is over once some member has applied what came after it: a later holder, or nobody while the group's revision
//! has reached its token. Looks now and then, so that it learns of an end a little late and never too early.

use std::{collections::BTreeMap, sync::Arc};

use holdfast_locktable::{
    ids::{Revision, Token},
    name::Name,
};
use parking_lot::Mutex;

use super::Findings;
use crate::cluster::Cluster;

/// For each lock since when which tokens are over: all up to the number.
type Over = BTreeMap<Name, Vec<(u64, Token)>>;

/// Which holds are over. Clones are the same.
#[derive(Clone, Debug, Default)]
pub struct Past(Arc<Mutex<Over>>);

impl Past {
    /// Looks who holds these locks now.
    pub fn look(&self, now: u64, names: &[Name], cluster: &Cluster) {
        let mut over = self.0.lock();
        cluster.each_table(|_, _, table, _| {
            for name in names.iter().filter(|name| table.owns(name).is_ok()) {
                let end = table.holder(name).map_or(table.revision(), |(_, token, _)| before(token));
                let known = over.entry(name.clone()).or_default();
                if known.last().is_none_or(|(_, last)| *last < end) {
                    known.push((now, end));
                }
            }
        });
    }

    /// Judges an answer to a question sent at `sent` that named the holder with this token.
    pub fn judge(&self, now: u64, sent: u64, name: &Name, token: Token, findings: &Findings) {
        let over = self.0.lock();
        let since = over.get(name).and_then(|known| known.iter().find(|(_, end)| *end >= token));
        if let Some((since, _)) = since.filter(|(since, _)| *since < sent) {
            let sentence = format!(
                "{:?}: asked at {sent} ms, answered that token {} holds, and that hold was over by {since} ms",
                name.text(),
                token.0
            );
            findings.add("stale", now, sentence);
        }
    }
}

fn before(token: Token) -> Token {
    Revision(token.0.saturating_sub(1))
}

//! What must never be seen in a run, one property per file.
//!
//! | property | looks at |
//! |---|---|
//! | [`history`]: I1 to I7 | what clients saw |
//! | [`linear`]: each lock is linearizable | what clients saw |
//! | [`tokens`]: P2, tokens only grow | the log |
//! | [`grants`]: P3, no acknowledged grant is lost while its client counts on it | all tables and what clients count on |
//! | [`sessions`]: P4, no live session is expired | the log and what clients were acknowledged |
//! | [`answers`]: P5, every acquire ends once | the log and what clients were told |
//! | [`handover`]: P6, an end of a hold grants to the next in the same entry | the log |
//! | [`refusals`]: P7 and P9, what is refused changes nothing | the log |
//! | [`owners`]: a partition of a claim has one owner at a time | what clients count on |
//! | [`fence`]: P8, whoever rightly counts on a lock is not refused by the resource | writes |
//! | [`input`]: P9, nonsense is refused in so many words | answers |
//! | [`watch`]: watches are complete and in order | the log and what watchers were given |
//! | [`agreement`]: members are in the same state at the same index | all tables |
//! | [`rules`]: the rules of the lock table hold in every state | all tables |
//! | [`tries`]: P7, a try never stands in line | all tables |
//! | [`stale`]: who is told of a holder is told of one that held when it was asked | answers and all tables |
//! | [`rest`]: once the faults are over everything comes to rest | all tables at the end |
//!
//! P1 is I1 and the lock model. That every table is what its log leads to is looked at where the log is read
//! ([`crate::truth`]). Two clients judge by themselves what they are answered: [`audit`](crate::workload::audit) and
//! [`echo`](crate::workload::echo). That no member ends itself and that nothing panics is looked at where members run.

pub mod agreement;
pub mod answers;
pub mod fence;
pub mod grants;
pub mod handover;
pub mod history;
pub mod input;
pub mod judges;
pub mod linear;
mod moments;
pub mod owners;
pub mod refusals;
pub mod rest;
pub mod rules;
pub mod sessions;
pub mod stale;
pub mod tokens;
pub mod tries;
pub mod watch;

use std::{fmt, sync::Arc};

use parking_lot::Mutex;

/// Something that must not be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The property that is broken.
    pub property: String,
    /// When, in milliseconds of the run.
    pub at_ms: u64,
    /// What was seen.
    pub sentence: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (s, ms) = (self.at_ms / 1_000, self.at_ms % 1_000);
        write!(f, "{} at {s}.{ms:03} s: {}", self.property, self.sentence)
    }
}

/// What was found so far. Clones are the same list.
#[derive(Clone, Debug, Default)]
pub struct Findings(Arc<Mutex<Vec<Finding>>>);

impl Findings {
    /// Adds one.
    pub fn add(&self, property: &str, at_ms: u64, sentence: impl Into<String>) {
        let finding = Finding { property: property.to_owned(), at_ms, sentence: sentence.into() };
        self.0.lock().push(finding);
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.lock().is_empty()
    }

    /// All of them.
    #[must_use]
    pub fn all(&self) -> Vec<Finding> {
        self.0.lock().clone()
    }
}

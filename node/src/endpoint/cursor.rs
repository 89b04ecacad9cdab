//! Where a watch stands: for each group the revision of the last change it gave, and how many changes of that revision.
//!
//! The text form is opaque to clients; over several groups it is a vector.

use std::{collections::BTreeMap, fmt};

use holdfast_locktable::ids::Revision;
use holdfast_partitioner::GroupId;
use serde::{Deserialize, Serialize};

/// A place in one group's history: the changes of `revision` from number `skip` on, and all later ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Place {
    /// The revision.
    pub revision: Revision,
    /// Changes of that revision (of those the watch asks for) that were given already.
    pub skip: u32,
}

impl Place {
    /// From the first change of a revision on.
    pub const fn at(revision: Revision) -> Self {
        Self { revision, skip: 0 }
    }

    /// Passes one change that the watch asks for: whether it is new, counting it where it is.
    pub fn pass(&mut self, revision: Revision, seen: &mut u32) -> bool {
        if revision < self.revision {
            return false;
        }
        if revision > self.revision {
            (*self, *seen) = (Self::at(revision), 0);
        }
        *seen += 1;
        if *seen <= self.skip {
            return false;
        }
        self.skip = *seen;
        true
    }
}

/// A vector of places over groups.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cursor(pub BTreeMap<GroupId, Place>);

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, (group, place)) in self.0.iter().enumerate() {
            let dash = if at == 0 { "" } else { "-" };
            write!(f, "{dash}{}.{}.{}", group.0, place.revision, place.skip)?;
        }
        Ok(())
    }
}

impl Cursor {
    /// Reads what [`fmt::Display`] writes.
    pub fn parse(text: &str) -> Option<Self> {
        let place = |part: &str| {
            let mut numbers = part.split('.');
            let group = GroupId(numbers.next()?.parse().ok()?);
            let revision = Revision(numbers.next()?.parse().ok()?);
            let skip = numbers.next()?.parse().ok()?;
            numbers.next().is_none().then_some((group, Place { revision, skip }))
        };
        text.split('-').map(place).collect::<Option<BTreeMap<_, _>>>().map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_is_read_as_it_was_written() {
        let place = Place { revision: Revision(17), skip: 2 };
        let cursor = Cursor(BTreeMap::from([(GroupId(1), place), (GroupId(3), Place::at(Revision(4)))]));
        assert_eq!(cursor.to_string(), "1.17.2-3.4.0");
        assert_eq!(Cursor::parse(&cursor.to_string()), Some(cursor));
        for bad in ["", "1", "1.2", "x.1.0", "1.2.3.4", "1.-1.0"] {
            assert_eq!(Cursor::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn a_resumed_watch_neither_repeats_nor_skips_within_a_revision() {
        let mut first = Place::at(Revision(5));
        let mut seen = 0;
        assert!(!first.pass(Revision(4), &mut seen));
        assert!(first.pass(Revision(5), &mut seen));
        assert!(first.pass(Revision(5), &mut seen));
        assert_eq!(first, Place { revision: Revision(5), skip: 2 });
        let (mut resumed, mut seen) = (first, 0);
        assert!(!resumed.pass(Revision(5), &mut seen));
        assert!(!resumed.pass(Revision(5), &mut seen));
        assert!(resumed.pass(Revision(5), &mut seen), "the third change of the revision is new");
        assert!(resumed.pass(Revision(6), &mut seen));
    }
}

//! What few sessions have beside their numbered requests: a pointer in each session instead of four maps and queues.

use alloc::{
    boxed::Box,
    collections::{BTreeMap, VecDeque},
};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::requests::TextRecord;
use crate::{
    ids::{Revision, Token},
    name::Name,
};

/// Text requests, and holds that the session ended itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Rare {
    /// The latest text request per name that created a key.
    pub(crate) texts: BTreeMap<Name, TextRecord>,
    /// Text records whose key is gone, in the order in which it went; some may have been replaced since.
    pub(crate) ended_texts: VecDeque<(Name, Revision)>,
    /// Holds the session ended itself, the latest last.
    pub(crate) ended_holds: VecDeque<(Name, Token)>,
}

static NOTHING: Rare =
    Rare { texts: BTreeMap::new(), ended_texts: VecDeque::new(), ended_holds: VecDeque::new() };

/// A [`Rare`] that takes room only while there is something in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct MaybeRare(Option<Box<Rare>>);

impl MaybeRare {
    /// What there is.
    pub(crate) fn get(&self) -> &Rare {
        self.0.as_deref().unwrap_or(&NOTHING)
    }

    /// To add to it.
    pub(crate) fn get_mut(&mut self) -> &mut Rare {
        self.0.get_or_insert_default()
    }

    /// Keeps what is of these names.
    pub(crate) fn retain(&mut self, stays: impl Fn(&Name) -> bool) {
        let Some(rare) = &mut self.0 else { return };
        rare.texts.retain(|name, _| stays(name));
        rare.ended_texts.retain(|(name, _)| stays(name));
        rare.ended_holds.retain(|(name, _)| stays(name));
        if **rare == NOTHING {
            self.0 = None;
        }
    }
}

/// The bytes are those of the [`Rare`], empty or not.
impl Serialize for MaybeRare {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.get().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for MaybeRare {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let rare = Rare::deserialize(deserializer)?;
        Ok(Self((rare != NOTHING).then(|| Box::new(rare))))
    }
}

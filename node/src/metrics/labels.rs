//! The attributes that instruments carry, and the guards that keep their number of values bounded.

use std::{collections::BTreeMap, sync::Arc};

use holdfast_partitioner::GroupId;
use opentelemetry::{KeyValue, StringValue};
use parking_lot::RwLock;

/// Most prefixes that become attribute values; names below any other prefix count as [`OTHER_PREFIX`].
pub const MAX_PREFIXES: usize = 64;

/// What the prefixes beyond [`MAX_PREFIXES`] are called.
pub const OTHER_PREFIX: &str = "_other";

/// `holdfast.group.id`.
pub(super) fn group(group: GroupId) -> KeyValue {
    KeyValue::new("holdfast.group.id", i64::from(group.0))
}

/// `outcome`, for things that work or do not.
pub(super) fn outcome(ok: bool) -> KeyValue {
    KeyValue::new("outcome", if ok { "ok" } else { "error" })
}

/// Turns prefixes into attribute values and admits the first [`MAX_PREFIXES`] of them.
///
/// Callers pass the prefix of the partition map's rule that a name falls under, never a piece of the name itself.
#[derive(Debug, Default)]
pub struct PrefixLabels {
    admitted: RwLock<BTreeMap<Box<str>, Arc<str>>>,
}

impl PrefixLabels {
    /// `holdfast.prefix` of a rule's prefix.
    pub fn of(&self, prefix: &str) -> KeyValue {
        KeyValue::new("holdfast.prefix", StringValue::from(self.admit(prefix)))
    }

    fn admit(&self, prefix: &str) -> Arc<str> {
        if let Some(known) = self.admitted.read().get(prefix) {
            return Arc::clone(known);
        }
        let mut admitted = self.admitted.write();
        if admitted.len() >= MAX_PREFIXES && !admitted.contains_key(prefix) {
            return Arc::from(OTHER_PREFIX);
        }
        Arc::clone(admitted.entry(Box::from(prefix)).or_insert_with(|| Arc::from(prefix)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_beyond_the_cap_share_one_value() {
        let labels = PrefixLabels::default();
        for n in 0..MAX_PREFIXES {
            assert_eq!(labels.of(&format!("p{n}/")).value.as_str(), format!("p{n}/"));
        }
        assert_eq!(labels.of("late/").value.as_str(), OTHER_PREFIX);
        assert_eq!(labels.of("p7/").value.as_str(), "p7/", "the admitted ones keep their own");
    }
}

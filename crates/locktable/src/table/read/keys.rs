//! Keys and ranges of keys, as the etcd surface reads them.

use alloc::vec::Vec;
use core::{cmp::Reverse, ops::Bound};

use bytes::Bytes;

use super::super::{Key, LockTable};
use crate::txn::{KeyValue, Range, Sort, TxnAnswer};

impl LockTable {
    /// Reads a key or a range of keys; always a [`TxnAnswer::Range`]. The count is of all keys in the range, whatever
    /// the limit and the filter; `more` says that the limit cut it.
    pub fn range(&self, range: &Range) -> TxnAnswer {
        let mut count = 0;
        let mut found: Vec<(&Bytes, &Key)> = Vec::new();
        for (key, record) in self.span(&range.key, &range.range_end) {
            count += 1;
            if range.max_create_revision.is_none_or(|max| record.create <= max) {
                found.push((key, record));
            }
        }
        match range.sort {
            Sort::Key => {}
            Sort::KeyDescending => found.reverse(),
            Sort::Create => found.sort_by_key(|(_, record)| record.create),
            Sort::CreateDescending => found.sort_by_key(|(_, record)| Reverse(record.create)),
            Sort::Mod => found.sort_by_key(|(_, record)| record.modified),
            Sort::ModDescending => found.sort_by_key(|(_, record)| Reverse(record.modified)),
        }
        let limit = if range.limit == 0 { usize::MAX } else { range.limit as usize };
        let more = found.len() > limit;
        let keys = found.into_iter().take(limit).map(|(key, record)| key_value(key, record)).collect();
        TxnAnswer::Range { keys, count, more }
    }

    /// One key with all that is known of it.
    pub fn key_value(&self, key: &[u8]) -> Option<KeyValue> {
        self.state.keys.get_key_value(key).map(|(key, record)| key_value(key, record))
    }

    /// The keys of a range, in order.
    pub(crate) fn keys_in(&self, key: &[u8], range_end: &[u8]) -> Vec<Bytes> {
        self.span(key, range_end).map(|(key, _)| key.clone()).collect()
    }

    fn span(&self, key: &[u8], range_end: &[u8]) -> impl Iterator<Item = (&Bytes, &Key)> {
        let to = match range_end {
            [] => Bound::Included(key),
            [0] => Bound::Unbounded,
            end => Bound::Excluded(end.max(key)),
        };
        // An empty range has equal ends; only one of them may be excluded then.
        self.state.keys.range::<[u8], _>((Bound::Included(key), to)).map(|(key, record)| (key, &**record))
    }
}

fn key_value(key: &Bytes, record: &Key) -> KeyValue {
    KeyValue {
        key: key.clone(),
        create_revision: record.create,
        mod_revision: record.modified,
        version: record.version,
        value: record.value.clone(),
        lease: record.lease,
    }
}

//! What can be wrong with a transaction before any state is looked at: etcd's own limits.

use alloc::{collections::BTreeSet, vec::Vec};

use super::{MAX_ALL_STEPS, MAX_DEPTH, MAX_STEPS, Txn, TxnError, TxnOp};

impl Txn {
    /// Checks the bounds, and that no key is written twice, in either branch. Endpoints may ask before proposing;
    /// apply asks in any case.
    ///
    /// # Errors
    /// The first fault found.
    pub fn check(&self) -> Result<(), TxnError> {
        let mut all = 0;
        size(self, 1, &mut all)?;
        footprint(&self.success)?;
        footprint(&self.failure)?;
        Ok(())
    }
}

/// Checks depth, lengths and keys, and counts everything inside.
fn size(txn: &Txn, depth: usize, all: &mut usize) -> Result<(), TxnError> {
    if depth > MAX_DEPTH {
        return Err(TxnError::TooDeep);
    }
    for length in [txn.compare.len(), txn.success.len(), txn.failure.len()] {
        *all += length;
        if length > MAX_STEPS || *all > MAX_ALL_STEPS {
            return Err(TxnError::TooManySteps);
        }
    }
    if txn.compare.iter().any(|compare| compare.key.is_empty()) {
        return Err(TxnError::EmptyKey);
    }
    for op in txn.success.iter().chain(&txn.failure) {
        let key = match op {
            TxnOp::Range(range) => &range.key,
            TxnOp::Put(put) => &put.key,
            TxnOp::Delete(delete) => &delete.key,
            TxnOp::Txn(inner) => {
                size(inner, depth + 1, all)?;
                continue;
            }
        };
        if key.is_empty() {
            return Err(TxnError::EmptyKey);
        }
    }
    Ok(())
}

/// What a list of steps may write.
#[derive(Default)]
struct Footprint<'t> {
    puts: BTreeSet<&'t [u8]>,
    deletes: Vec<(&'t [u8], &'t [u8])>,
}

/// The writes of a list; steps of one list may not write the same key, unless all of them delete it.
fn footprint(ops: &[TxnOp]) -> Result<Footprint<'_>, TxnError> {
    let mut list = Footprint::default();
    for op in ops {
        let step = match op {
            TxnOp::Range(_) => Footprint::default(),
            TxnOp::Put(put) => Footprint { puts: BTreeSet::from([&*put.key]), deletes: Vec::new() },
            TxnOp::Delete(delete) => {
                Footprint { puts: BTreeSet::new(), deletes: Vec::from([(&*delete.key, &*delete.range_end)]) }
            }
            TxnOp::Txn(inner) => {
                // Only one of both branches will be executed, so they may overlap.
                let mut either = footprint(&inner.success)?;
                either.union(footprint(&inner.failure)?);
                either
            }
        };
        if list.conflicts(&step) {
            return Err(TxnError::DuplicateKey);
        }
        list.union(step);
    }
    Ok(list)
}

impl<'t> Footprint<'t> {
    fn conflicts(&self, other: &Self) -> bool {
        !self.puts.is_disjoint(&other.puts) || self.deletes_a_put_of(other) || other.deletes_a_put_of(self)
    }

    fn deletes_a_put_of(&self, other: &Self) -> bool {
        self.deletes.iter().any(|(key, range_end)| other.puts.iter().any(|put| spans(key, range_end, put)))
    }

    fn union(&mut self, other: Self) {
        self.puts.extend(other.puts);
        self.deletes.extend(other.deletes);
    }
}

/// Whether a range of keys, as etcd writes them, holds a key.
fn spans(key: &[u8], range_end: &[u8], wanted: &[u8]) -> bool {
    match range_end {
        [] => wanted == key,
        [0] => wanted >= key,
        end => wanted >= key && wanted < end,
    }
}

#[cfg(test)]
mod tests;

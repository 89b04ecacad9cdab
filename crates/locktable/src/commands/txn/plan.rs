//! Which steps of a transaction will be executed, and whether they may be.

use alloc::{collections::BTreeSet, vec::Vec};

use super::{
    super::{MAX_KEY_BYTES, check_value, contact},
    compare,
};
use crate::{
    command::Contact,
    ids::{SessionId, Term},
    name::Name,
    outcome::{Bound, Rejection},
    route,
    table::{LockTable, queue_for},
    txn::{Delete, Put, Range, Txn, TxnError, TxnOp},
};

/// A transaction with its branch chosen.
pub(super) struct Plan<'t> {
    pub(super) succeeded: bool,
    pub(super) steps: Vec<Step<'t>>,
}

/// One step to be executed.
pub(super) enum Step<'t> {
    Range(&'t Range),
    Put(&'t Put),
    Delete(&'t Delete),
    Txn(Plan<'t>),
}

impl<'t> Plan<'t> {
    /// Makes all comparisons, those of inner transactions that will be executed included. Every key compared must be
    /// this group's: elsewhere it would only seem to be missing.
    pub(super) fn choose(table: &LockTable, txn: &'t Txn) -> Result<Self, Rejection> {
        let mut succeeded = true;
        for compare in &txn.compare {
            table.owns_key(&compare.key)?;
            succeeded = succeeded && compare::holds(table, compare);
        }
        let branch = if succeeded { &txn.success } else { &txn.failure };
        let mut steps = Vec::with_capacity(branch.len());
        for op in branch {
            steps.push(match op {
                TxnOp::Range(range) => Step::Range(range),
                TxnOp::Put(put) => Step::Put(put),
                TxnOp::Delete(delete) => Step::Delete(delete),
                TxnOp::Txn(inner) => Step::Txn(Self::choose(table, inner)?),
            });
        }
        Ok(Self { succeeded, steps })
    }

    /// Checks all steps. Answers the sessions that are to be attached, each once.
    pub(super) fn check<'c>(
        &self,
        table: &LockTable,
        contacts: &'c [Contact],
        term: Term,
    ) -> Result<Vec<&'c Contact>, Rejection> {
        let mut check = Check { table, contacts, term, needed: Vec::new(), queues: BTreeSet::new() };
        check.plan(self)?;
        Ok(check.needed)
    }

    /// Whether executing changes any key.
    pub(super) fn writes(&self, table: &LockTable) -> bool {
        self.steps.iter().any(|step| match step {
            Step::Range(_) => false,
            Step::Put(_) => true,
            Step::Delete(delete) => !table.keys_in(&delete.key, &delete.range_end).is_empty(),
            Step::Txn(inner) => inner.writes(table),
        })
    }
}

/// The checks of one transaction, and what they gather.
struct Check<'a, 'c> {
    table: &'a LockTable,
    contacts: &'c [Contact],
    term: Term,
    needed: Vec<&'c Contact>,
    /// Queues that get a new key.
    queues: BTreeSet<Name>,
}

impl Check<'_, '_> {
    fn plan(&mut self, plan: &Plan<'_>) -> Result<(), Rejection> {
        for step in &plan.steps {
            match step {
                Step::Range(range) => self.range(range)?,
                Step::Put(put) => self.put(put)?,
                Step::Delete(delete) => self.delete(delete)?,
                Step::Txn(inner) => self.plan(inner)?,
            }
        }
        Ok(())
    }

    /// A read of one key or one queue must be this group's; a wider one sees what is here.
    fn range(&self, range: &Range) -> Result<(), Rejection> {
        match route::of_range(&range.key, &range.range_end) {
            Some(name) => self.table.state.ownership.check(&name),
            None => Ok(()),
        }
    }

    /// As a read: elsewhere the keys of a queue would only seem to be missing.
    fn delete(&self, delete: &Delete) -> Result<(), Rejection> {
        if let Some(name) = route::of_range(&delete.key, &delete.range_end) {
            return self.table.check_range(&name);
        }
        self.table.keys_in(&delete.key, &delete.range_end).iter().try_for_each(|key| self.table.owns_key(key))
    }

    fn put(&mut self, put: &Put) -> Result<(), Rejection> {
        self.table.owns_key(&put.key)?;
        check_value(&put.value)?;
        if put.key.len() > MAX_KEY_BYTES {
            return Err(Rejection::OutOfBounds(Bound::Key));
        }
        let existing = self.table.state.keys.get(&put.key);
        if let Some(lease) = put.lease {
            self.lease(lease, existing.is_none())?;
        }
        let queue = queue_for(&put.key, put.lease);
        match existing {
            // Rule R13: no put moves a key into a queue or out of it.
            Some(key) => match &key.place {
                Some(_) if key.lease != put.lease => Err(Rejection::InvalidTxn(TxnError::LockKeyLease)),
                None if queue.is_some() => Err(Rejection::InvalidTxn(TxnError::LockKeyLease)),
                Some(_) | None => Ok(()),
            },
            None if queue.is_some_and(|name| !self.queues.insert(name)) => {
                Err(Rejection::InvalidTxn(TxnError::TwoLockKeys))
            }
            None if queue_for(&put.key, put.lease).is_some() => self.table.check_may_grant(),
            None => Ok(()),
        }
    }

    /// The session of a put must live here, or be met now; one that its home has expired gets no new keys.
    fn lease(&mut self, session: SessionId, creates: bool) -> Result<(), Rejection> {
        let unknown = Rejection::InvalidTxn(TxnError::UnknownLease);
        if let Some(known) = self.table.state.sessions.get(&session) {
            return if creates && known.renewal_stopped { Err(unknown) } else { Ok(()) };
        }
        let Some(contact) = self.contacts.iter().find(|contact| contact.session == session) else {
            return Err(unknown);
        };
        contact::check(self.table, session, contact.epoch, Some(&contact.attach), self.term)?;
        if !self.needed.iter().any(|needed| needed.session == session) {
            self.needed.push(contact);
        }
        Ok(())
    }
}

//! `Txn`: reads and writes of keys in one step, wholly or not at all.
//!
//! All comparisons are made before anything is written, then the steps to be executed are checked, then executed. No key
//! is written twice, so checking against the state before the transaction is enough.

mod compare;
mod plan;

use alloc::vec::Vec;

use self::plan::{Plan, Step};
use super::contact;
use crate::{
    command::Contact,
    event::Removal,
    outcome::{Outcome, Rejection},
    table::{Changes, LockTable},
    txn::{Txn, TxnAnswer, TxnOutcome},
};

pub(crate) fn apply(
    table: &mut LockTable,
    changes: &mut Changes,
    contacts: &[Contact],
    txn: &Txn,
) -> Result<Outcome, Rejection> {
    txn.check().map_err(Rejection::InvalidTxn)?;
    let plan = Plan::choose(table, txn)?;
    let needed = plan.check(table, contacts, changes.at.term)?;
    if plan.writes(table) {
        changes.write_at(table.next_revision()?);
    }
    for contact in needed {
        contact::open(table, changes, contact.session, contact.epoch, &contact.attach);
    }
    Ok(Outcome::Txn(execute(table, changes, &plan)))
}

fn execute(table: &mut LockTable, changes: &mut Changes, plan: &Plan<'_>) -> TxnOutcome {
    let mut answers = Vec::with_capacity(plan.steps.len());
    for step in &plan.steps {
        answers.push(match step {
            Step::Range(range) => table.range(range),
            Step::Put(put) => {
                let previous = table.key_value(&put.key);
                table.put(changes, put.key.clone(), put.value.clone(), put.lease);
                TxnAnswer::Put { previous }
            }
            Step::Delete(delete) => {
                let mut previous = Vec::new();
                for key in table.keys_in(&delete.key, &delete.range_end) {
                    previous.extend(table.key_value(&key));
                    table.delete(changes, &key, Removal::Deleted);
                }
                TxnAnswer::Delete { previous }
            }
            Step::Txn(inner) => TxnAnswer::Txn(execute(table, changes, inner)),
        });
    }
    TxnOutcome { succeeded: plan.succeeded, revision: changes.revision(), answers }
}

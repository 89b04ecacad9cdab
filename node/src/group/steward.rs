//! What starts and stops with leadership: leases, waits, and the telling of ends.
//!
//! One task per group, fed by the leadership watch. It decides nothing itself.

use std::sync::Arc;

use holdfast_locktable::{ids::Term, mutant, table::LockTable};
use tokio::{sync::mpsc, task::JoinHandle};

use super::{
    Group,
    ends::{EndToTell, tell_ends},
    sink::GroupSink,
};
use crate::{
    lease::{self, state::Known},
    watch,
};

/// Follows the leadership of a group until the group's Raft half ends.
pub async fn follow_leadership(group: Group, sink: Arc<GroupSink>) {
    let mut leadership = group.raft().leadership();
    let mut leading: Option<(Term, JoinHandle<()>)> = None;
    loop {
        let here = group.leads();
        if leading.as_ref().map(|(term, _)| *term) != here {
            if let Some((term, teller)) = leading.take() {
                demote(&group, &sink, term, &teller);
            }
            leading = here.map(|term| (term, promote(&group, &sink, term)));
        }
        if leadership.changed().await.is_err() {
            if let Some((term, teller)) = leading {
                demote(&group, &sink, term, &teller);
            }
            return;
        }
    }
}

fn promote(group: &Group, sink: &GroupSink, term: Term) -> JoinHandle<()> {
    let (queue, ends) = mpsc::unbounded_channel();
    // Under the table's lock: whatever is applied later reaches the actors later, so nothing falls between the copy and
    // the facts.
    group.locks(|table| {
        let (known, tombstones) = (known_sessions(table, group.parts.clock.wall_ms()), table.tombstones());
        tracing::info!(group = %group.id(), term = term.0, sessions = known.len(), "leading");
        group.parts.lease.do_send(lease::Promoted { term, known, tombstones });
        let waits = table.waits().filter_map(|wait| Some((wait.name, wait.session, wait.request?)));
        group.parts.fanout.do_send(watch::Promoted { waits: waits.collect() });
        for end in table.pending_ends() {
            for told in &end.to_tell {
                let end =
                    EndToTell { session: end.session, epoch: end.epoch, reason: end.reason, group: *told };
                // The receiver is started below.
                let _ = queue.send(end);
            }
        }
        sink.tell_ends(Some(queue));
    });
    tokio::spawn(tell_ends(ends, group.parts.proposer.clone(), group.parts.outward.clone()))
}

fn demote(group: &Group, sink: &GroupSink, term: Term, teller: &JoinHandle<()>) {
    tracing::info!(group = %group.id(), term = term.0, "leading no more");
    teller.abort();
    sink.tell_ends(None);
    group.parts.sealing.end_all();
    group.parts.lease.do_send(lease::Demoted);
    group.parts.fanout.do_send(watch::Demoted);
}

fn known_sessions(table: &LockTable, wall_ms: u64) -> Vec<Known> {
    let known = |session: holdfast_locktable::view::SessionView| Known {
        session: session.session,
        epoch: session.epoch,
        ttl_ms: session.ttl_ms,
        marked_ms: if mutant!("leases-not-retimed") {
            Some(session.ttl_ms.saturating_sub(wall_ms.saturating_sub(session.opened_at_ms)))
        } else {
            session.marked_ms
        },
        renewal_stopped: session.renewal_stopped,
    };
    table.sessions(None, usize::MAX).0.into_iter().map(known).collect()
}

//! What starts and stops with leadership: leases, waits, and the telling of ends.
//!
//! One task per group, fed by the leadership watch. It decides nothing itself.

use std::sync::Arc;

use holdfast_locktable::{ids::Term, mutant, table::LockTable};
use tokio::{sync::mpsc, task::JoinSet};

use super::{
    Group, Outward,
    ends::{EndToTell, tell_ends},
    proposer::Proposer,
    sink::GroupSink,
};
use crate::{
    lease::{self, state::Known},
    watch,
};

/// Follows the leadership of a group until the group's Raft half ends. Whoever stops this before stops all that it has started.
pub async fn follow_leadership(group: Group, sink: Arc<GroupSink>) {
    let mut leadership = group.raft().leadership();
    let mut leading: Option<(Term, JoinSet<()>)> = None;
    loop {
        let here = group.leads();
        if leading.as_ref().map(|(term, _)| *term) != here {
            if let Some((term, teller)) = leading.take() {
                demote(&group, &sink, term, teller);
            }
            leading = here.map(|term| (term, promote(&group, &sink, term)));
        }
        if leadership.changed().await.is_err() {
            if let Some((term, teller)) = leading {
                demote(&group, &sink, term, teller);
            }
            return;
        }
    }
}

fn promote(group: &Group, sink: &GroupSink, term: Term) -> JoinSet<()> {
    let (queue, ends) = mpsc::unbounded_channel();
    // Under the table's lock: whatever is applied later reaches the actors later, so nothing falls between the copy and
    // the facts.
    group.locks(|table| {
        let (known, tombstones) = (known_sessions(table, group.parts.clock.wall_ms()), table.tombstones());
        tracing::info!(group = %group.id(), term = term.0, sessions = known.len(), "leading");
        let paused_ms = table.paused_ms();
        group.parts.lease.do_send(lease::Promoted { term, known, tombstones, paused_ms });
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
    start_telling(ends, group.parts.proposer.clone(), group.parts.outward.clone())
}

/// Has ends told until what this answers is dropped. The queue alone does not end it: the sink holds the other end.
fn start_telling(
    ends: mpsc::UnboundedReceiver<EndToTell>,
    proposer: Proposer,
    outward: Outward,
) -> JoinSet<()> {
    let mut teller = JoinSet::new();
    teller.spawn(tell_ends(ends, proposer, outward));
    teller
}

fn demote(group: &Group, sink: &GroupSink, term: Term, teller: JoinSet<()>) {
    tracing::info!(group = %group.id(), term = term.0, "leading no more");
    drop(teller);
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use holdfast_locktable::{
        command::SessionEndReason,
        ids::{SessionEpoch, SessionId},
    };
    use holdfast_partitioner::GroupId;

    use super::*;
    use crate::{
        clock::Clock,
        group::{call::GroupResult, figures::GroupMetrics},
    };

    #[tokio::test]
    async fn the_telling_of_ends_stops_with_whoever_started_it() {
        let metrics = crate::metrics::tests::metrics();
        let (_tell_map, map) = tokio::sync::watch::channel(None);
        let figures = GroupMetrics::new(GroupId(1), metrics.instruments.clone(), map);
        let proposer = Proposer::unbound(GroupId(1), Clock::system(), figures, Duration::from_secs(1));
        let (asked, mut was_asked) = mpsc::unbounded_channel();
        // A group that never answers.
        let outward: Outward = Arc::new(move |group, _| {
            asked.send(group).unwrap();
            Box::pin(std::future::pending::<GroupResult>())
        });
        let (queue, ends) = mpsc::unbounded_channel();
        let teller = start_telling(ends, proposer, outward);
        let end = EndToTell {
            session: SessionId::new(1).unwrap(),
            epoch: SessionEpoch(1),
            reason: SessionEndReason::Closed,
            group: GroupId(2),
        };
        queue.send(end).unwrap();
        let limit = Duration::from_secs(10);
        assert_eq!(tokio::time::timeout(limit, was_asked.recv()).await.unwrap(), Some(GroupId(2)));
        drop(teller);
        tokio::time::timeout(limit, queue.closed()).await.expect("nobody reads the queue any more");
        let asks = tokio::time::timeout(limit, was_asked.recv()).await;
        assert_eq!(asks.expect("nobody is left that could ask"), None);
    }
}

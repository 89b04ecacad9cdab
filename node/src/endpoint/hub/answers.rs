//! Puts together what groups say of a batch, and answers its callers.
//!
//! A caller is answered once everybody who was asked has answered, or with what is there once all who have not hang and its
//! sessions have waited a part of their TTL. Whoever is only slow is waited for: his answer would else come too late each time.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Range,
    pin::pin,
    time::Duration,
};

use futures::{Stream, StreamExt};
use holdfast_partitioner::{GroupId, MapEpoch};
use tokio::time::{Instant, timeout_at};

use super::{Keepalives, Renewals};
use crate::{
    endpoint::{
        router::{HANGS, MOMENT},
        types::{GroupLease, LeaseState},
    },
    group::keepalive::Renewal,
    raft::types::MemberId,
};

/// The part of its shortest TTL that a caller waits also for those who hang.
const TTL_PARTS: u32 = 6;
/// What another member's answer takes longer than that of its groups.
const WAY: Duration = Duration::from_millis(50);

/// Who says something of a batch: another member of all its groups, or a group that this one leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Source {
    Here(GroupId),
    Member(MemberId),
}

/// A batch on its way.
pub(super) struct Asking<A, S> {
    /// Who was asked.
    pub(super) asked: BTreeSet<Source>,
    /// What they say.
    pub(super) answers: A,
    /// Since when somebody has answered nothing, this or another batch.
    pub(super) silent_since: S,
}

/// What some groups say, with one renewal per session of the batch.
pub(super) type Answer = Vec<(GroupId, Vec<Renewal>)>;

/// A caller that has no answer yet.
struct Waiting {
    keepalives: Keepalives,
    /// Its sessions among those of the batch.
    mine: Range<usize>,
    /// The shortest TTL of its sessions, once anybody has renewed one.
    ttl: Option<Duration>,
}

/// A batch that was just sent.
struct Round<G, S> {
    sent: Instant,
    /// Everybody is answered then at the latest.
    end: Instant,
    /// Who has not answered.
    missing: BTreeSet<Source>,
    silent_since: S,
    /// When the first answer came, and a moment more.
    first: Option<Instant>,
    /// All groups there are now.
    groups: G,
    waiting: Vec<Waiting>,
    answers: BTreeMap<GroupId, Vec<Renewal>>,
}

/// Answers each caller of a batch that is sent now, and listens for as long as `patience` to whoever is slower than some of
/// them could wait. Which groups have answered by then.
pub(super) async fn answer_callers<S: Fn(Source) -> Option<Instant>>(
    batch: Vec<Keepalives>,
    Asking { asked, answers, silent_since }: Asking<impl Stream<Item = (Source, Answer)>, S>,
    groups: impl Fn() -> Vec<GroupId>,
    patience: Duration,
) -> BTreeSet<GroupId> {
    let mut answers = pin!(answers);
    let (sent, waiting) = (Instant::now(), waiting(batch));
    let end = sent + patience;
    let mut round = Round {
        sent,
        end,
        missing: asked,
        silent_since,
        first: None,
        groups,
        waiting,
        answers: BTreeMap::new(),
    };
    loop {
        match timeout_at(round.next_due(), answers.next()).await {
            Ok(Some((source, answer))) => round.take_in(source, answer),
            Ok(None) => break,
            Err(_) if Instant::now() >= end => break,
            Err(_) => {}
        }
        round.answer_until(Instant::now());
    }
    // Nobody waits beyond the end.
    round.answer_until(end);
    round.answers.into_keys().collect()
}

fn waiting(batch: Vec<Keepalives>) -> Vec<Waiting> {
    let mut next = 0;
    let waiting = batch.into_iter().map(|keepalives| {
        let mine = next..next + keepalives.sessions.len();
        next = mine.end;
        Waiting { keepalives, mine, ttl: None }
    });
    waiting.collect()
}

impl<G: Fn() -> Vec<GroupId>, S: Fn(Source) -> Option<Instant>> Round<G, S> {
    /// When the next caller is to be answered, as it looks now; the end where all are.
    fn next_due(&self) -> Instant {
        let hang = self.hang();
        self.waiting.iter().map(|waiting| self.due(waiting, hang)).min().unwrap_or(self.end)
    }

    /// From when on all who have not answered hang, should they go on as they do.
    fn hang(&self) -> Option<Instant> {
        let since = self.missing.iter().filter_map(|source| (self.silent_since)(*source)).max();
        since.map(|since| since + HANGS + WAY)
    }

    /// When a caller is answered.
    fn due(&self, waiting: &Waiting, hang: Option<Instant>) -> Instant {
        let Some((first, ttl)) = self.first.zip(waiting.ttl) else { return self.end };
        let long = (self.sent + ttl / TTL_PARTS).max(first);
        hang.map_or(long, |hang| hang.max(long)).min(self.end)
    }

    fn take_in(&mut self, source: Source, answer: Answer) {
        self.missing.remove(&source);
        for (group, renewals) in answer {
            // Where even the first comes late, all are slow, and others come in a moment.
            self.first.get_or_insert(Instant::now() + MOMENT);
            for waiting in &mut self.waiting {
                let mine = shortest_ttl(renewals.get(waiting.mine.clone()).unwrap_or_default());
                waiting.ttl = [waiting.ttl, mine].into_iter().flatten().min();
            }
            self.answers.insert(group, renewals);
        }
    }

    /// Answers those who wait until then and no longer.
    fn answer_until(&mut self, now: Instant) {
        let hang = self.hang();
        let (due, wait) = std::mem::take(&mut self.waiting)
            .into_iter()
            .partition::<Vec<_>, _>(|waiting| self.due(waiting, hang) <= now);
        self.waiting = wait;
        if due.is_empty() {
            return;
        }
        let groups = (self.groups)();
        for Waiting { keepalives, mine, .. } in due {
            let answer = mine.map(|at| renewals(at, &groups, &self.answers)).collect();
            // A caller that went away needs no answer.
            let _ = keepalives.caller.send(answer);
        }
    }
}

fn shortest_ttl(renewals: &[Renewal]) -> Option<Duration> {
    let renewed = renewals.iter().filter(|renewal| renewal.state == LeaseState::Renewed);
    renewed.map(|renewal| Duration::from_millis(renewal.ttl_ms)).min()
}

fn renewals(at: usize, groups: &[GroupId], answers: &BTreeMap<GroupId, Vec<Renewal>>) -> Renewals {
    let mut ttl_ms = None;
    let lease = |group: &GroupId| {
        let renewal = answers.get(group).and_then(|renewals| renewals.get(at)).copied();
        if let Some(renewal) = renewal.filter(|renewal| renewal.state == LeaseState::Renewed) {
            ttl_ms = Some(renewal.ttl_ms);
        }
        let (state, epoch) =
            renewal.map_or((LeaseState::Unavailable, MapEpoch::NONE), |r| (r.state, r.epoch));
        GroupLease { group: *group, state, epoch }
    };
    let groups = groups.iter().map(lease).collect();
    Renewals { groups, ttl_ms }
}

#[cfg(test)]
mod tests;

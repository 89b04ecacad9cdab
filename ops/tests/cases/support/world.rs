//! The cluster of one test, and the judge of its history.

use std::{ops::Deref, process::Command, sync::Arc, time::Duration};

use holdfast_faults::{Cluster, FaultError, Plan, Side};
use holdfast_history::{Fact, Limits, SessionId};
use serde_json::{Value, json};

use super::{F, Record, S, SOON, http::Client, native::Native, record::nanos, wait::eventually};
use crate::harness::{self, HOLDFAST, encoded};

/// A lock's holder and waiters, as one look showed them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Queue {
    /// Session and token of the holder.
    pub holder: Option<(String, u64)>,
    /// Sessions of the waiters, first in line first.
    pub waiting: Vec<String>,
}

impl Queue {
    pub(crate) fn is_free(&self) -> bool {
        self.holder.is_none() && self.waiting.is_empty()
    }
}

/// A cluster and what its clients saw.
#[derive(Debug)]
pub(crate) struct World {
    cluster: Cluster,
    pub(crate) record: Arc<Record>,
}

impl Deref for World {
    type Target = Cluster;

    fn deref(&self) -> &Cluster {
        &self.cluster
    }
}

impl World {
    /// Three members, two lock groups.
    pub(crate) fn start() -> Self {
        Self::of(Self::plan()).unwrap()
    }

    /// One member, for what needs no others.
    pub(crate) fn alone() -> Self {
        Self::of(Self::plan().members(1).groups(1)).unwrap()
    }

    /// A plan with the binary under test.
    pub(crate) fn plan() -> Plan {
        Plan::new(HOLDFAST)
    }

    /// A cluster of another shape, unless this machine cannot do its faults: then says so loudly.
    pub(crate) fn possible(plan: Plan) -> Option<Self> {
        match Self::of(plan) {
            Ok(world) => Some(world),
            Err(error) if error.is_impossible() => {
                eprintln!("SKIPPED, nothing was tested: {error}");
                None
            }
            Err(error) => panic!("{error}"),
        }
    }

    fn of(plan: Plan) -> Result<Self, FaultError> {
        Ok(Self { cluster: plan.start()?, record: Arc::new(Record::new()) })
    }

    /// A client over HTTP that talks to one member.
    pub(crate) fn client(&self, member: u16) -> Client {
        Client::new(self.record.clone(), self.http(member))
    }

    /// The Rust client, with all members.
    pub(crate) fn native(&self) -> Native {
        Native::connect(self.record.clone(), self.endpoints())
    }

    /// The Rust client behind a side.
    pub(crate) fn native_at(&self, side: &Side) -> Native {
        Native::connect(self.record.clone(), side.endpoints())
    }

    /// The command, talking to this cluster.
    pub(crate) fn holdfast(&self, arguments: &[&str]) -> Command {
        let mut command = harness::holdfast();
        command.env("HOLDFAST_ENDPOINTS", self.endpoints().join(",")).args(arguments);
        command
    }

    /// Asks a member about a lock; `None` where it cannot say.
    pub(crate) fn try_look(&self, member: u16, lock: &str) -> Option<Queue> {
        let asked = self.record.now();
        let answer = harness::get(&format!("{}/v1/locks?name={}", self.http(member), encoded(lock)));
        if answer.status != 200 {
            return None;
        }
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let holder = &answer.body["holder"];
        let holder = holder["token"].as_u64().map(|token| (text(&holder["session"]), token));
        let waiting: Vec<String> =
            answer.body["queue"].as_array()?.iter().map(|waiter| text(&waiter["session"])).collect();
        self.record.note(Fact::QueueObserved {
            lock: lock.into(),
            asked,
            holder: holder.as_ref().map(|(session, _)| number(session)),
            waiting: waiting.iter().map(|session| number(session)).collect(),
        });
        Some(Queue { holder, waiting })
    }

    /// A lock, as any member that answers shows it.
    #[track_caller]
    pub(crate) fn look(&self, lock: &str) -> Queue {
        eventually(&format!("a member shows {lock}"), SOON, || {
            self.numbers().find_map(|member| self.try_look(member, lock))
        })
    }

    /// Waits until a lock has so many waiters.
    #[track_caller]
    pub(crate) fn wait_for_waiters(&self, lock: &str, count: usize) {
        eventually(&format!("{lock} has {count} waiters"), SOON, || {
            (self.look(lock).waiting.len() == count).then_some(())
        });
    }

    /// Waits until nobody holds a lock or waits for it.
    #[track_caller]
    pub(crate) fn wait_free(&self, lock: &str, within: Duration) {
        eventually(&format!("{lock} is free"), within, || self.look(lock).is_free().then_some(()));
    }

    /// The group of a lock.
    #[track_caller]
    pub(crate) fn group_of(&self, lock: &str) -> u64 {
        eventually(&format!("a member knows the group of {lock}"), SOON, || {
            self.numbers().find_map(|member| {
                let url = format!("{}/v1/locks?name={}", self.http(member), encoded(lock));
                harness::get(&url).body["group"].as_u64()
            })
        })
    }

    /// The member that leads the group of a lock.
    #[track_caller]
    pub(crate) fn leader_of(&self, lock: &str) -> u16 {
        let group = self.group_of(lock);
        eventually(&format!("group {group} has a leader"), SOON, || self.leader(group))
    }

    /// An operator ends a session.
    pub(crate) fn end_session(&self, session: &str) {
        self.record.forced(number(session));
        let body = json!({"session": session, "reason": "a test"});
        let answer = harness::post(&format!("{}/v1/sessions/end", self.http(1)), &body);
        assert_eq!(answer.status, 204, "{}", answer.body);
    }

    /// Judges the history of a run in which no leader fell.
    #[track_caller]
    pub(crate) fn judge(&self) {
        self.record.judge(Limits { reclaim_slack: nanos(S + super::BUSY), ..Limits::default() });
    }

    /// Judges the history of a run in which leaders fell, with sessions of at most this TTL.
    #[track_caller]
    pub(crate) fn judge_with_failovers(&self, longest_ttl: Duration) {
        let slack = S + F + longest_ttl / 2 + super::BUSY;
        self.record.judge(Limits { reclaim_slack: nanos(slack), ..Limits::default() });
    }
}

/// A session's number, from its text.
pub(crate) fn number(session: &str) -> SessionId {
    SessionId(u64::from_str_radix(session, 16).unwrap())
}

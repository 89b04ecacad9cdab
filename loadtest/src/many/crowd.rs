//! The sessions of one process, each with some locks of its own, multiplexed over few connections.

use std::{
    collections::BTreeMap,
    sync::Arc,
    time::{Duration, Instant},
};

use futures::StreamExt as _;
use holdfast_client::{HoldState, LockGuard, Session, SessionState};
use tokio::time::timeout;

use crate::{
    driver::{Holdfast, refused},
    failure::Failure,
};

/// So many sessions are opened or closed at a time.
const AT_ONCE: usize = 256;
/// How long closing may take; what is left then ends by its TTL.
const CLOSE_WITHIN: Duration = Duration::from_secs(60);

/// What the sessions are like.
#[derive(Clone, Debug)]
pub(crate) struct Shape {
    pub(crate) count: u32,
    pub(crate) locks_each: u32,
    pub(crate) connections: u32,
    pub(crate) ttl: Duration,
    /// Locks are called this, and two numbers.
    pub(crate) prefix: String,
}

/// Sessions that are open.
#[derive(Debug)]
pub(crate) struct Crowd {
    members: Vec<(Session, Vec<LockGuard>)>,
    /// Sessions that did not get so far, and why.
    failed: BTreeMap<String, u64>,
    /// How long opening them took, with their locks.
    pub(crate) opened_in: Duration,
}

/// Opens one session, and acquires its locks.
async fn member(driver: &Holdfast, shape: &Shape, number: u32) -> Result<(Session, Vec<LockGuard>), String> {
    let (session, _) = driver.session(number).await.map_err(|failure| failure.to_string())?;
    let mut guards = Vec::new();
    for lock in 0..shape.locks_each {
        let name: Arc<str> = Arc::from(format!("{}{number}/{lock}", shape.prefix));
        guards.push(session.lock(name).acquire().await.map_err(|error| refused(&error).text)?);
    }
    Ok((session, guards))
}

impl Crowd {
    /// Opens all sessions, and acquires their locks.
    pub(crate) async fn open(endpoints: &[String], shape: &Shape) -> Result<Self, Failure> {
        let begin = Instant::now();
        let connections = shape.connections.min(shape.count).max(1);
        let driver = Holdfast::new(endpoints, connections, shape.ttl)?;
        let driver = &driver;
        let mut opening = futures::stream::iter(0..shape.count)
            .map(|number| member(driver, shape, number))
            .buffered(AT_ONCE);
        let (mut members, mut failed) = (Vec::new(), BTreeMap::new());
        while let Some(opened) = opening.next().await {
            match opened {
                Ok(member) => members.push(member),
                Err(reason) => *failed.entry(reason).or_default() += 1,
            }
        }
        if members.is_empty() {
            return Err(Failure::Unreachable(format!("not one session was opened: {failed:?}")));
        }
        Ok(Self { members, failed, opened_in: begin.elapsed() })
    }

    /// How many sessions are lost, or have lost a lock, those that did not get so far included.
    pub(crate) fn lost(&self) -> u64 {
        let is_lost = |(session, guards): &&(Session, Vec<LockGuard>)| {
            session.state() == SessionState::Lost
                || guards.iter().any(|guard| guard.state() == HoldState::Lost)
        };
        self.members.iter().filter(is_lost).count() as u64 + self.failed.values().sum::<u64>()
    }

    /// Why sessions are lost, the few first kinds.
    pub(crate) async fn reasons(&self) -> BTreeMap<String, u64> {
        let mut reasons = self.failed.clone();
        for (session, guards) in &self.members {
            let reason = if session.state() == SessionState::Lost {
                session.lost().await.to_string()
            } else if let Some(guard) = guards.iter().find(|guard| guard.state() == HoldState::Lost) {
                guard.lost().await.to_string()
            } else {
                continue;
            };
            *reasons.entry(reason).or_default() += 1;
        }
        reasons
    }

    /// One of the sessions.
    pub(crate) fn session(&self, number: usize) -> Option<&Session> {
        self.members.get(number).map(|(session, _)| session)
    }

    /// Closes all sessions.
    pub(crate) async fn close(self) {
        let closing = futures::stream::iter(self.members).for_each_concurrent(
            AT_ONCE,
            |(session, guards)| async move {
                // Where no member answers, the TTL ends it.
                let _ = session.close().await;
                drop(guards);
            },
        );
        let _ = timeout(CLOSE_WITHIN, closing).await;
    }
}

//! One session on a stream: what of its requests is under way, and how much may be.

use std::collections::BTreeMap;

use holdfast_locktable::ids::SessionId;
use holdfast_proto::v1::{self, session_request::Body as Ask};
use tokio::{sync::watch, task::JoinSet};
use tokio_util::sync::CancellationToken;

use super::{Done, calls::Calls, outbox::Outbox};
use crate::endpoint::{ApiError, Endpoint, ErrorCode};

/// Most acquires of one session under way; more are `too_many_outstanding`.
const MAX_ACQUIRES: usize = 256;
/// Most requests of one session under way, acquires included; more are `overloaded`.
const MAX_CALLS: usize = 1_024;

/// An acquire under way, as a cancel sees it.
#[derive(Clone)]
pub(super) struct Running {
    /// Turns true when the acquire has been answered.
    pub(super) answered: watch::Receiver<bool>,
    /// Ends it without an answer.
    pub(super) cut_off: CancellationToken,
}

/// A session that a stream carries.
pub(super) struct CarriedSession {
    calls: Calls,
    acquires: BTreeMap<u64, Running>,
    /// Requests other than acquires that are under way.
    others: usize,
}

impl CarriedSession {
    pub(super) fn new(endpoint: Endpoint, session: SessionId, outbox: Outbox) -> Self {
        Self { calls: Calls { endpoint, session, outbox }, acquires: BTreeMap::new(), others: 0 }
    }

    pub(super) fn acquire_done(&mut self, sequence: u64) {
        self.acquires.remove(&sequence);
        if self.acquires.is_empty() {
            // There may be very many sessions that wait for nothing: they keep no room for it.
            self.acquires = BTreeMap::new();
        }
    }

    pub(super) const fn call_done(&mut self) {
        self.others = self.others.saturating_sub(1);
    }

    /// Begins to carry out a request, in a task.
    pub(super) fn take(
        &mut self,
        sequence: u64,
        ask: Ask,
        tasks: &mut JoinSet<Done>,
    ) -> Result<(), ApiError> {
        if self.acquires.len() + self.others >= MAX_CALLS {
            let text = format!("the session has {MAX_CALLS} requests under way; wait for answers");
            return Err(ApiError::new(ErrorCode::Overloaded, text));
        }
        let calls = self.calls.clone();
        match ask {
            Ask::Acquire(acquire) => return self.take_acquire(sequence, acquire, tasks),
            Ask::Cancel(cancel) => {
                let running = self.acquires.get(&cancel.acquire_sequence).cloned();
                tasks.spawn(calls.cancel(sequence, cancel, running));
            }
            Ask::Release(release) => {
                tasks.spawn(calls.release(sequence, release));
            }
            Ask::Proclaim(proclaim) => {
                tasks.spawn(calls.proclaim(sequence, proclaim));
            }
            Ask::Close(_) => {
                tasks.spawn(calls.close(sequence));
            }
            Ask::Open(_) | Ask::Resume(_) | Ask::Keepalive(_) => {
                return Err(ApiError::new(ErrorCode::Internal, "the stream itself answers this request"));
            }
        }
        self.others += 1;
        Ok(())
    }

    fn take_acquire(
        &mut self,
        sequence: u64,
        acquire: v1::Acquire,
        tasks: &mut JoinSet<Done>,
    ) -> Result<(), ApiError> {
        if self.acquires.contains_key(&sequence) {
            return Err(ApiError::invalid(format!(
                "the acquire with sequence {sequence} is under way already"
            )));
        }
        if self.acquires.len() >= MAX_ACQUIRES {
            let text = format!("the session has {MAX_ACQUIRES} acquires under way; wait for answers");
            return Err(ApiError::new(ErrorCode::TooManyOutstanding, text));
        }
        let (tell, answered) = watch::channel(false);
        let cut_off = CancellationToken::new();
        self.acquires.insert(sequence, Running { answered, cut_off: cut_off.clone() });
        tasks.spawn(self.calls.clone().acquire(sequence, acquire, tell, cut_off));
        Ok(())
    }
}

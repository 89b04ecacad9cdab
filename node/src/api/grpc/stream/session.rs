//! One session on a stream: what of its requests is under way, and how much may be.

use std::collections::BTreeMap;

use holdfast_proto::v1::{self, session_request::Body as Ask};
use tokio::{sync::watch, task::JoinSet};
use tokio_util::sync::CancellationToken;

use super::{Done, calls::Calls};
use crate::endpoint::{ApiError, ErrorCode};

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

/// A session that a stream carries. Most have nothing under way, and keep no room for it.
#[derive(Default)]
pub(super) struct CarriedSession(Option<Box<UnderWay>>);

#[derive(Default)]
struct UnderWay {
    acquires: BTreeMap<u64, Running>,
    /// Requests other than acquires.
    others: usize,
}

impl CarriedSession {
    pub(super) fn acquire_done(&mut self, sequence: u64) {
        self.with(|under_way| {
            under_way.acquires.remove(&sequence);
        });
    }

    pub(super) fn call_done(&mut self) {
        self.with(|under_way| under_way.others = under_way.others.saturating_sub(1));
    }

    /// Begins to carry out a request, in a task.
    pub(super) fn take(
        &mut self,
        calls: Calls,
        sequence: u64,
        ask: Ask,
        tasks: &mut JoinSet<Done>,
    ) -> Result<(), ApiError> {
        self.with(|under_way| under_way.take(calls, sequence, ask, tasks))
    }

    fn with<T>(&mut self, change: impl FnOnce(&mut UnderWay) -> T) -> T {
        let result = change(self.0.get_or_insert_default());
        self.0.take_if(|under_way| under_way.acquires.is_empty() && under_way.others == 0);
        result
    }
}

impl UnderWay {
    fn take(
        &mut self,
        calls: Calls,
        sequence: u64,
        ask: Ask,
        tasks: &mut JoinSet<Done>,
    ) -> Result<(), ApiError> {
        if self.acquires.len() + self.others >= MAX_CALLS {
            let text = format!("the session has {MAX_CALLS} requests under way; wait for answers");
            return Err(ApiError::new(ErrorCode::Overloaded, text));
        }
        match ask {
            Ask::Acquire(acquire) => return self.take_acquire(calls, sequence, acquire, tasks),
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
            Ask::Open(_) | Ask::Resume(_) | Ask::Keepalive(_) | Ask::Locate(_) => {
                return Err(ApiError::new(ErrorCode::Internal, "the stream itself answers this request"));
            }
        }
        self.others += 1;
        Ok(())
    }

    fn take_acquire(
        &mut self,
        calls: Calls,
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
        tasks.spawn(calls.acquire(sequence, acquire, tell, cut_off));
        Ok(())
    }
}

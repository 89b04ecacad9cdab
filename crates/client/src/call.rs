//! One request to whichever member answers: fail-over, retries, one limit for all of it. Does not know which request.

use std::{
    future::Future,
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use tokio::time::{Instant, sleep, timeout};
use tonic::{Response, Status};

use crate::{
    channel::{Channel, Leased, Pool},
    error::{Error, from_status},
    random::Random,
};

/// First pause before a member is asked again.
pub(crate) const RETRY_BASE: Duration = Duration::from_millis(50);
/// Longest pause before a member is asked again.
pub(crate) const RETRY_MAX: Duration = Duration::from_secs(1);
/// Least time that one member of several gets for its answer.
const MIN_ATTEMPT: Duration = Duration::from_millis(500);

/// What every request needs: whom to ask, and for how long.
#[derive(Debug)]
pub(crate) struct Caller {
    pub(crate) pool: Pool,
    pub(crate) request_timeout: Duration,
    pub(crate) connect_timeout: Duration,
    pub(crate) random: Random,
    /// The endpoint that answered last.
    preferred: AtomicUsize,
}

impl Caller {
    pub(crate) fn new(pool: Pool, request_timeout: Duration, connect_timeout: Duration, seed: u64) -> Self {
        let random = Random::new(seed);
        let first = usize::try_from(random.next() % pool.len().max(1) as u64).unwrap_or(0);
        Self { pool, request_timeout, connect_timeout, random, preferred: AtomicUsize::new(first) }
    }

    /// The endpoint to begin with.
    pub(crate) fn preferred(&self) -> usize {
        self.preferred.load(Ordering::Relaxed)
    }

    /// Remembers an endpoint that answers.
    pub(crate) fn prefer(&self, index: usize) {
        self.preferred.store(index % self.pool.len(), Ordering::Relaxed);
    }

    /// Asks one member after the other until one gives an answer that a repeat would not change, or the request timeout
    /// has passed.
    pub(crate) async fn call<T, F, A>(&self, ask: F) -> Result<T, Error>
    where
        F: Fn(Channel) -> A,
        A: Future<Output = Result<Response<T>, Status>>,
    {
        let deadline = Instant::now() + self.request_timeout;
        let mut answered = None;
        let mut silent = String::from("the request timeout is zero");
        let mut attempt = 0;
        loop {
            let remaining = deadline.saturating_duration_since(Instant::now());
            if remaining.is_zero() {
                return Err(answered.map_or(Error::Unreachable { reason: silent }, Error::Api));
            }
            let index = self.preferred();
            match self.ask_once(index, remaining, &ask).await {
                Ok(answer) => return Ok(answer),
                Err(Error::Api(error)) if !error.code.retryable() => return Err(Error::Api(error)),
                Err(Error::Api(error)) => answered = Some(error),
                Err(Error::Unreachable { reason }) => silent = reason,
            }
            self.avoid(index);
            let round = u32::try_from(attempt / self.pool.len()).unwrap_or(u32::MAX);
            attempt += 1;
            if attempt % self.pool.len() == 0 || answered.is_some() {
                let pause = self.random.backoff(round, RETRY_BASE, RETRY_MAX);
                sleep(pause.min(deadline.saturating_duration_since(Instant::now()))).await;
            }
        }
    }

    /// Goes on at the next endpoint after one that does not answer. Another call may have found a better one already.
    pub(crate) fn avoid(&self, index: usize) {
        let next = (index + 1) % self.pool.len();
        let _ = self.preferred.compare_exchange(index, next, Ordering::Relaxed, Ordering::Relaxed);
    }

    async fn ask_once<T, F, A>(&self, index: usize, remaining: Duration, ask: &F) -> Result<T, Error>
    where
        F: Fn(Channel) -> A,
        A: Future<Output = Result<Response<T>, Status>>,
    {
        let share = u32::try_from(self.pool.len()).unwrap_or(u32::MAX);
        let limit = (self.request_timeout / share.max(1)).max(MIN_ATTEMPT).min(remaining);
        self.ask_within(index, limit, ask).await
    }

    /// Asks one member once, within `limit`.
    pub(crate) async fn ask_within<T, F, A>(&self, index: usize, limit: Duration, ask: &F) -> Result<T, Error>
    where
        F: Fn(Channel) -> A,
        A: Future<Output = Result<Response<T>, Status>>,
    {
        let started = Instant::now();
        let leased = self.lease(index, limit).await?;
        let limit = limit.saturating_sub(started.elapsed());
        match timeout(limit, ask(leased.channel.clone())).await {
            Ok(Ok(answer)) => {
                self.prefer(index);
                Ok(answer.into_inner())
            }
            Ok(Err(status)) => Err(from_status(&status)),
            Err(_) => {
                self.pool.evict(&leased);
                let endpoint = self.pool.endpoint(index);
                Err(Error::Unreachable {
                    reason: format!("{endpoint}: no answer within {} ms", limit.as_millis()),
                })
            }
        }
    }

    /// A connection to an endpoint, within the connect timeout and `limit`.
    pub(crate) async fn lease(&self, index: usize, limit: Duration) -> Result<Leased, Error> {
        let limit = limit.min(self.connect_timeout);
        let made = self.pool.channel(index, limit).await;
        made.map_err(|error| Error::Unreachable { reason: error.to_string() })
    }
}

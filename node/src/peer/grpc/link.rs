//! One connection to one member: made when needed, made again when it broke, not more often than sensible.
//!
//! A connection proves itself by its first answer. One that breaks before counts as a failed attempt: whatever stands
//! between members (a proxy, a balancer, a forwarded port) may take connections for a member that is not there.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use futures::{
    FutureExt,
    future::{BoxFuture, Shared},
};
use parking_lot::Mutex;
use tokio::time::Instant;
use tonic::transport::{Channel, Endpoint};

use super::{
    CONNECTION_WINDOW, MESSAGE, PING_INTERVAL, PING_TIMEOUT, STREAM_WINDOW,
    wire::proto::peer_client::PeerClient,
};
use crate::{peer::transport::LinkError, raft::types::MemberId};

/// How long making a connection may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);
/// Pause after the first failed attempt; doubles with each one until an answer comes.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
/// Longest pause: a member that comes back is found within it.
const LONGEST_PAUSE: Duration = Duration::from_millis(500);

/// One connection to one member.
#[derive(Debug)]
pub(crate) struct Link {
    to: MemberId,
    address: String,
    state: Mutex<State>,
    /// The last connection that something came back on. Apart from the state, because every answer looks at it.
    proven: AtomicU64,
}

/// Which connection a client is on: they are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Made(u64);

#[derive(Debug)]
struct State {
    phase: Phase,
    /// Attempts so far.
    made: u64,
    /// Pause after the next attempt, should it fail.
    pause: Duration,
}

#[derive(Debug)]
enum Phase {
    /// Never tried, or given up as broken.
    Idle,
    /// Being made. All who need it wait for the same attempt, which goes on also where one of them gives up.
    Connecting(Attempt),
    /// Made. The channel makes it again by itself where it broke without being noticed here.
    Up(Channel),
    /// The last attempt failed; no other before `retry_at`.
    Down { retry_at: Instant, reason: String },
}

type Attempt = Shared<BoxFuture<'static, Result<Channel, String>>>;

impl Link {
    pub(crate) fn new(to: MemberId, address: &str) -> Self {
        let state = State { phase: Phase::Idle, made: 0, pause: FIRST_PAUSE };
        Self { to, address: address.to_owned(), state: Mutex::new(state), proven: AtomicU64::new(0) }
    }

    /// A client on the connection. Fails at once while the pause after a failed attempt lasts.
    pub(crate) async fn client(&self) -> Result<(PeerClient<Channel>, Made), LinkError> {
        let (attempt, made) = {
            let mut state = self.state.lock();
            let attempt = match &state.phase {
                Phase::Up(channel) => return Ok((client(channel.clone()), Made(state.made))),
                Phase::Down { retry_at, reason } if Instant::now() < *retry_at => {
                    return Err(self.unreachable(reason.clone()));
                }
                Phase::Connecting(attempt) => attempt.clone(),
                Phase::Down { .. } | Phase::Idle => {
                    let attempt = connect(self.address.clone()).boxed().shared();
                    state.made += 1;
                    state.phase = Phase::Connecting(attempt.clone());
                    attempt
                }
            };
            (attempt, Made(state.made))
        };
        let result = attempt.await;
        self.attempted(made, &result);
        match result {
            Ok(channel) => Ok((client(channel), made)),
            Err(reason) => Err(self.unreachable(reason)),
        }
    }

    /// Gives a connection up, so that the next request makes a new one or learns that there is none: at once where this one
    /// was good for something, after a pause where it never was.
    pub(crate) fn broken(&self, made: Made, reason: &str) {
        let mut state = self.state.lock();
        if Made(state.made) != made || !matches!(state.phase, Phase::Up(_)) {
            return;
        }
        if self.proven.load(Ordering::Relaxed) == made.0 {
            state.phase = Phase::Idle;
        } else {
            state.failed(reason.to_owned());
        }
    }

    /// Something came back on a connection.
    pub(crate) fn answered(&self, made: Made) {
        if self.proven.load(Ordering::Relaxed) != made.0 {
            self.proven.store(made.0, Ordering::Relaxed);
            self.state.lock().pause = FIRST_PAUSE;
        }
    }

    /// Notes how an attempt ended; the first of those who waited for it does.
    fn attempted(&self, made: Made, result: &Result<Channel, String>) {
        let mut state = self.state.lock();
        if Made(state.made) != made || !matches!(state.phase, Phase::Connecting(_)) {
            return;
        }
        match result {
            Ok(channel) => {
                tracing::debug!(member = self.to, address = %self.address, "connected");
                state.phase = Phase::Up(channel.clone());
            }
            Err(reason) => {
                tracing::debug!(member = self.to, address = %self.address, %reason, "cannot connect");
                state.failed(reason.clone());
            }
        }
    }

    fn unreachable(&self, reason: String) -> LinkError {
        LinkError::Unreachable { to: self.to, reason }
    }
}

impl State {
    fn failed(&mut self, reason: String) {
        self.phase = Phase::Down { retry_at: Instant::now() + self.pause, reason };
        self.pause = (self.pause * 2).min(LONGEST_PAUSE);
    }
}

async fn connect(address: String) -> Result<Channel, String> {
    let described = |err: tonic::transport::Error| {
        let mut innermost: &dyn std::error::Error = &err;
        while let Some(cause) = innermost.source() {
            innermost = cause;
        }
        format!("{address}: {innermost}")
    };
    let endpoint = Endpoint::from_shared(format!("http://{address}")).map_err(described)?;
    endpoint
        .connect_timeout(CONNECT_TIMEOUT)
        .tcp_nodelay(true)
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_frame_size(super::FRAME)
        .http2_keep_alive_interval(PING_INTERVAL)
        .keep_alive_timeout(PING_TIMEOUT)
        .keep_alive_while_idle(true)
        .connect()
        .await
        .map_err(described)
}

fn client(channel: Channel) -> PeerClient<Channel> {
    PeerClient::new(channel).max_decoding_message_size(MESSAGE).max_encoding_message_size(MESSAGE)
}

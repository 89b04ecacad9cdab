//! One connection to one member: made when needed, made again when it broke, not more often than sensible.

use std::time::Duration;

use tokio::{sync::Mutex, time::Instant};
use tonic::transport::{Channel, Endpoint};

use super::{
    CONNECTION_WINDOW, MESSAGE, PING_INTERVAL, PING_TIMEOUT, STREAM_WINDOW,
    wire::proto::peer_client::PeerClient,
};
use crate::{peer::transport::LinkError, raft::types::MemberId};

/// How long making a connection may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);
/// Pause after the first failed attempt; doubles with each one.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
/// Longest pause: a member that comes back is found within it.
const LONGEST_PAUSE: Duration = Duration::from_millis(500);

/// One connection to one member.
#[derive(Debug)]
pub(crate) struct Link {
    to: MemberId,
    address: String,
    state: Mutex<State>,
}

/// Which connection a client is on: they are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Made(u64);

#[derive(Debug)]
struct State {
    phase: Phase,
    /// Connections made so far.
    made: u64,
}

#[derive(Debug)]
enum Phase {
    /// Never tried, or given up as broken.
    Idle,
    /// Made. The channel makes it again by itself where it broke without being noticed here.
    Up(Channel),
    /// The last attempt failed; no other before `retry_at`.
    Down { retry_at: Instant, pause: Duration, reason: String },
}

impl Link {
    pub(crate) fn new(to: MemberId, address: &str) -> Self {
        Self { to, address: address.to_owned(), state: Mutex::new(State { phase: Phase::Idle, made: 0 }) }
    }

    /// A client on the connection. Fails at once while the pause after a failed attempt lasts.
    pub(crate) async fn client(&self) -> Result<(PeerClient<Channel>, Made), LinkError> {
        // Held while connecting, so that all who need the connection wait for the same attempt.
        let mut state = self.state.lock().await;
        let pause = match &state.phase {
            Phase::Up(channel) => return Ok((client(channel.clone()), Made(state.made))),
            Phase::Down { retry_at, reason, .. } if Instant::now() < *retry_at => {
                return Err(LinkError::Unreachable { to: self.to, reason: reason.clone() });
            }
            Phase::Down { pause, .. } => (*pause * 2).min(LONGEST_PAUSE),
            Phase::Idle => FIRST_PAUSE,
        };
        match self.connect().await {
            Ok(channel) => {
                tracing::debug!(member = self.to, address = %self.address, "connected");
                state.phase = Phase::Up(channel.clone());
                state.made += 1;
                Ok((client(channel), Made(state.made)))
            }
            Err(reason) => {
                tracing::debug!(member = self.to, address = %self.address, %reason, "cannot connect");
                let err = LinkError::Unreachable { to: self.to, reason: reason.clone() };
                state.phase = Phase::Down { retry_at: Instant::now() + pause, pause, reason };
                Err(err)
            }
        }
    }

    /// Gives a connection up, so that the next request makes a new one or learns that there is none.
    pub(crate) fn broken(&self, made: Made) {
        // Held by somebody else: that one is connecting anew already.
        if let Ok(mut state) = self.state.try_lock()
            && Made(state.made) == made
            && matches!(state.phase, Phase::Up(_))
        {
            state.phase = Phase::Idle;
        }
    }

    async fn connect(&self) -> Result<Channel, String> {
        let described = |err: tonic::transport::Error| {
            let mut text = format!("{}: {err}", self.address);
            let mut source = std::error::Error::source(&err);
            while let Some(cause) = source {
                text = format!("{}: {cause}", self.address);
                source = cause.source();
            }
            text
        };
        let endpoint = Endpoint::from_shared(format!("http://{}", self.address)).map_err(described)?;
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
}

fn client(channel: Channel) -> PeerClient<Channel> {
    PeerClient::new(channel).max_decoding_message_size(MESSAGE).max_encoding_message_size(MESSAGE)
}

//! The task of one session: keeps a place on a stream and sends what the state machine wants sent. What comes back has
//! gone into the state machine already when it wakes the task.
//!
//! Thin on purpose: everything that is decided is decided in [`super::core`].

use std::{sync::Arc, time::Duration};

use futures::future::BoxFuture;
use holdfast_proto::v1;
use tokio::{
    sync::mpsc::{self, error::TrySendError},
    time::sleep,
};

use super::{link::Link, shared::Shared};
use crate::{call::RETRY_BASE, error::Error};

/// Longest pause between attempts to connect: far below any TTL.
const RECONNECT_MAX: Duration = Duration::from_millis(500);
/// Bounds of how long one attempt to open a stream may take.
const OPEN_LIMIT: (Duration, Duration) = (Duration::from_millis(250), Duration::from_secs(2));
/// Bounds of how long the task sleeps at most: timers stand still in suspend, deadlines do not.
const LOOK: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(1));

/// How the session is connected.
enum Connection {
    /// Not; the next attempt comes after this pause.
    Pause(BoxFuture<'static, ()>),
    /// Being made.
    Opening(BoxFuture<'static, Result<Link, Error>>),
    Open(Link),
}

/// What happened.
enum Happened {
    /// Time passed, or a handle asked for something.
    Nothing,
    PauseOver,
    Opened(Result<Link, Error>),
    /// The connection takes messages again, or is gone.
    Writable,
}

/// How sending went.
enum Flushed {
    /// There is nothing more to send.
    All,
    /// The connection takes no more for now.
    Full,
    /// The connection is gone.
    Closed,
    /// Answers are overdue.
    Stalled,
}

struct Driver {
    shared: Arc<Shared>,
    connection: Connection,
    index: usize,
    attempts: u32,
    open_limit: Duration,
    look: Duration,
}

/// Ends the session's books when the task goes away in whatever manner.
struct EndOnDrop(Arc<Shared>);

impl Drop for EndOnDrop {
    fn drop(&mut self) {
        self.0.stopped();
    }
}

/// Runs a session to its end, beginning with the stream that opened it.
pub(crate) async fn run(shared: Arc<Shared>, link: Link) {
    let end = EndOnDrop(shared.clone());
    let ttl = shared.core().ledger().ttl();
    let connect = shared.client.caller.connect_timeout;
    let mut driver = Driver {
        index: link.index(),
        shared,
        connection: Connection::Open(link),
        attempts: 0,
        open_limit: (ttl / 4).clamp(OPEN_LIMIT.0, OPEN_LIMIT.1).min(connect),
        look: (ttl / 10).clamp(LOOK.0, LOOK.1),
    };
    while driver.step().await {}
    drop(end);
}

impl Driver {
    /// Sends, waits for one thing to happen, and takes it in. `false` once the session is finished.
    async fn step(&mut self) -> bool {
        let blocked = self.send();
        let pause = {
            let mut core = self.shared.core();
            self.shared.publish(&mut core);
            if core.finished() {
                return false;
            }
            let now = self.shared.now();
            let can_send = !blocked && matches!(self.connection, Connection::Open(_));
            core.next_moment(now, can_send).map_or(self.look, |moment| moment.since(now).min(self.look))
        };
        let happened = self.wait(pause, blocked).await;
        self.take_in(happened);
        true
    }

    /// Sends what there is to send. Answers whether the connection is full.
    fn send(&mut self) -> bool {
        let Connection::Open(link) = &self.connection else { return false };
        if self.shared.take_answered() {
            self.attempts = 0;
        }
        let over = link.ended().or_else(|| self.shared.core().turned_away());
        if let Some(error) = over {
            self.disconnect(&error);
            return false;
        }
        match self.flush(link.outbox()) {
            Flushed::All => false,
            Flushed::Full => true,
            Flushed::Closed => {
                self.disconnect(&Error::Unreachable { reason: "the stream was closed".into() });
                false
            }
            Flushed::Stalled => {
                link.give_up(&self.shared);
                self.disconnect(&Error::Unreachable { reason: "keepalives are not answered".into() });
                false
            }
        }
    }

    fn flush(&self, outbox: &mpsc::Sender<v1::SessionRequest>) -> Flushed {
        let mut core = self.shared.core();
        let now = self.shared.now();
        if core.stalled(now) {
            return Flushed::Stalled;
        }
        while core.has_message(now) {
            let permit = match outbox.try_reserve() {
                Ok(permit) => permit,
                Err(TrySendError::Full(())) => return Flushed::Full,
                Err(TrySendError::Closed(())) => return Flushed::Closed,
            };
            let Some(message) = core.next_message(now) else { break };
            permit.send(message);
        }
        Flushed::All
    }

    async fn wait(&mut self, pause: Duration, blocked: bool) -> Happened {
        let timer = sleep(pause);
        let connection = &mut self.connection;
        let woken = self.shared.woken();
        let network = async {
            match connection {
                Connection::Pause(over) => {
                    over.await;
                    Happened::PauseOver
                }
                Connection::Opening(opening) => Happened::Opened(opening.await),
                Connection::Open(link) if blocked => {
                    // Closed is noticed by the next attempt to send.
                    let _ = link.outbox().reserve().await;
                    Happened::Writable
                }
                Connection::Open(_) => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            happened = network => happened,
            () = woken => Happened::Nothing,
            () = timer => Happened::Nothing,
        }
    }

    fn take_in(&mut self, happened: Happened) {
        match happened {
            Happened::Nothing | Happened::Writable => {}
            Happened::PauseOver => self.open(),
            Happened::Opened(Ok(link)) => {
                self.shared.client.caller.prefer(link.index());
                self.connection = Connection::Open(link);
            }
            Happened::Opened(Err(error)) => {
                tracing::debug!(session = %self.shared.session, %error, "no session stream");
                self.shared.core().not_connected(error.to_string());
                self.pause();
            }
        }
    }

    fn disconnect(&mut self, error: &Error) {
        tracing::debug!(session = %self.shared.session, %error, "session stream lost");
        let now = self.shared.now();
        self.shared.core().disconnected(error.to_string(), now);
        self.pause();
    }

    /// Goes to the next endpoint: at once after a break, then with growing pauses.
    fn pause(&mut self) {
        self.index += 1;
        let random = &self.shared.client.caller.random;
        let pause = match self.attempts {
            0 => Duration::ZERO,
            attempts => random.backoff(attempts - 1, RETRY_BASE, RECONNECT_MAX),
        };
        self.attempts = self.attempts.saturating_add(1);
        self.connection = Connection::Pause(Box::pin(sleep(pause)));
    }

    fn open(&mut self) {
        let shared = self.shared.clone();
        let (index, limit) = (self.index, self.open_limit);
        let opening = async move { Link::resume(&shared, index, limit).await };
        self.connection = Connection::Opening(Box::pin(opening));
    }
}

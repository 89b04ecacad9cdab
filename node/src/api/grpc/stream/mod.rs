//! One client's session stream: reads requests, runs each in a task of its own, lets answers out in the order they are
//! ready.
//!
//! The session outlives the stream. When the stream ends, whatever it was waiting for is dropped, and so detached: the
//! client repeats it on its next stream, or it is cancelled (rule R8).

mod calls;
mod holds;

use std::{collections::HashMap, time::Duration};

use holdfast_locktable::ids::SessionId;
use holdfast_proto::v1::{self, session_request::Body as Ask, session_response::Body as Answer};
use tokio::{
    sync::{mpsc, watch},
    task::{AbortHandle, JoinSet},
    time::timeout,
};
use tokio_util::sync::CancellationToken;
use tonic::{Status, Streaming};

use self::{calls::Calls, holds::Holds};
use super::input;
use crate::endpoint::{ApiError, Endpoint, ErrorCode};

/// Answers on their way to one client. A full queue holds the tasks that answer, and they hold the stream.
pub(super) const OUTBOX: usize = 256;
/// Most acquires of one stream under way; more are `too_many_outstanding`.
const MAX_ACQUIRES: usize = 256;
/// Most requests of one stream under way, acquires included; more are `overloaded`.
const MAX_CALLS: usize = 1_024;
/// How long a stream may take to say what it is about.
const FIRST_MESSAGE: Duration = Duration::from_secs(10);

/// Where answers go.
pub(super) type Outbox = mpsc::Sender<Result<v1::SessionResponse, Status>>;

/// Serves one stream to its end.
pub(super) async fn run(
    endpoint: Endpoint,
    mut inbox: Streaming<v1::SessionRequest>,
    outbox: Outbox,
    stopping: CancellationToken,
) {
    let served = async {
        let Some((session, holds)) = begin(&endpoint, &mut inbox, &outbox).await else { return };
        let mut stream = SessionStream::new(endpoint, session, outbox.clone());
        for hold in holds {
            stream.resume_hold(hold);
        }
        stream.serve(&mut inbox).await;
    };
    tokio::select! {
        biased;
        () = stopping.cancelled() => {
            // The client is told why and goes on elsewhere; one that does not read finds out by the closed connection.
            let _ = outbox.try_send(Err(Status::unavailable("the member is stopping")));
        }
        () = outbox.closed() => {}
        () = served => {}
    }
}

/// Sends an answer; a client that is gone does not need it.
async fn send(outbox: &Outbox, sequence: u64, body: Answer) {
    let _ = outbox.send(Ok(v1::SessionResponse { sequence, body: Some(body) })).await;
}

async fn refuse(outbox: &Outbox, sequence: u64, error: ApiError) {
    send(outbox, sequence, Answer::Error(error.into())).await;
}

/// The first message: opens a session or resumes one. `None` where it did not, and the client has been told.
async fn begin(
    endpoint: &Endpoint,
    inbox: &mut Streaming<v1::SessionRequest>,
    outbox: &Outbox,
) -> Option<(SessionId, Vec<v1::Hold>)> {
    let first = match timeout(FIRST_MESSAGE, inbox.message()).await {
        Ok(Ok(first)) => first?,
        Ok(Err(_)) => return None,
        Err(_) => {
            let _ = outbox.send(Err(Status::deadline_exceeded("no first message came within 10 s"))).await;
            return None;
        }
    };
    let begun = match first.body {
        Some(Ask::Open(open)) => opened(endpoint, open).await,
        Some(Ask::Resume(resume)) => resumed(resume),
        Some(_) | None => Err(ApiError::invalid("a session stream begins with `open` or `resume`")),
    };
    match begun {
        Ok((session, holds, answer)) => {
            send(outbox, first.sequence, answer).await;
            Some((session, holds))
        }
        Err(error) => {
            refuse(outbox, first.sequence, error).await;
            None
        }
    }
}

type Begun = (SessionId, Vec<v1::Hold>, Answer);

async fn opened(endpoint: &Endpoint, open: v1::Open) -> Result<Begun, ApiError> {
    let metadata = input::metadata(open.metadata)?;
    let opened = endpoint.open_session(input::ttl_ms(open.ttl_ms)?, metadata).await?;
    let answer = v1::Opened { session: opened.session.get(), ttl_ms: opened.ttl_ms };
    Ok((opened.session, Vec::new(), Answer::Opened(answer)))
}

fn resumed(resume: v1::Resume) -> Result<Begun, ApiError> {
    let session = input::session(resume.session)?;
    Ok((session, resume.holds, Answer::Resumed(v1::Resumed { session: session.get() })))
}

/// How a task ended.
enum Done {
    /// An acquire, with the hold it gave.
    Acquire { sequence: u64, hold: Option<holds::Held> },
    /// A release that ended a hold.
    Released(holds::Held),
    /// Anything else.
    Other,
}

/// An acquire under way, as a cancel sees it.
#[derive(Clone)]
struct Running {
    /// Turns true when the acquire has been answered.
    answered: watch::Receiver<bool>,
    task: AbortHandle,
}

struct SessionStream {
    calls: Calls,
    outbox: Outbox,
    tasks: JoinSet<Done>,
    acquires: HashMap<u64, Running>,
    holds: Holds,
}

impl SessionStream {
    fn new(endpoint: Endpoint, session: SessionId, outbox: Outbox) -> Self {
        Self {
            holds: Holds::new(endpoint.clone(), session, outbox.clone()),
            calls: Calls { endpoint, session, outbox: outbox.clone() },
            outbox,
            tasks: JoinSet::new(),
            acquires: HashMap::new(),
        }
    }

    async fn serve(&mut self, inbox: &mut Streaming<v1::SessionRequest>) {
        loop {
            tokio::select! {
                biased;
                Some(done) = self.tasks.join_next() => self.reap(done),
                message = inbox.message() => match message {
                    Ok(Some(message)) => self.take(message).await,
                    // The client is gone, or the connection is.
                    Ok(None) | Err(_) => return,
                },
            }
        }
    }

    fn resume_hold(&mut self, hold: v1::Hold) {
        // A hold that cannot exist cannot end either.
        if let (Ok(name), Ok(token)) = (input::name(hold.name), input::token(hold.token)) {
            self.holds.watch(holds::Held { name, token }, Duration::ZERO);
        }
    }

    fn reap(&mut self, done: Result<Done, tokio::task::JoinError>) {
        match done {
            Ok(Done::Acquire { sequence, hold }) => {
                self.acquires.remove(&sequence);
                if let Some(held) = hold {
                    self.holds.watch(held, holds::QUIET);
                }
            }
            Ok(Done::Released(held)) => self.holds.forget(&held),
            Ok(Done::Other) => {}
            // Aborted by a cancel that found no end.
            Err(_) => self.acquires.retain(|_, running| !running.task.is_finished()),
        }
    }

    async fn take(&mut self, message: v1::SessionRequest) {
        let sequence = message.sequence;
        if self.tasks.len() >= MAX_CALLS {
            let text = format!("the session has {MAX_CALLS} requests under way; wait for answers");
            return refuse(&self.outbox, sequence, ApiError::new(ErrorCode::Overloaded, text)).await;
        }
        let calls = self.calls.clone();
        match message.body {
            Some(Ask::Keepalive(_)) => {
                self.tasks.spawn(calls.keepalive(sequence));
            }
            Some(Ask::Acquire(acquire)) => self.take_acquire(sequence, acquire).await,
            Some(Ask::Cancel(cancel)) => {
                let running = self.acquires.get(&cancel.acquire_sequence).cloned();
                self.tasks.spawn(calls.cancel(sequence, cancel, running));
            }
            Some(Ask::Release(release)) => {
                self.tasks.spawn(calls.release(sequence, release));
            }
            Some(Ask::Proclaim(proclaim)) => {
                self.tasks.spawn(calls.proclaim(sequence, proclaim));
            }
            Some(Ask::Close(_)) => {
                self.tasks.spawn(calls.close(sequence));
            }
            Some(Ask::Open(_) | Ask::Resume(_)) => {
                let error = ApiError::invalid("this stream has its session already");
                refuse(&self.outbox, sequence, error).await;
            }
            None => refuse(&self.outbox, sequence, ApiError::invalid("the message is empty")).await,
        }
    }

    async fn take_acquire(&mut self, sequence: u64, acquire: v1::Acquire) {
        if self.acquires.contains_key(&sequence) {
            let error =
                ApiError::invalid(format!("the acquire with sequence {sequence} is under way already"));
            return refuse(&self.outbox, sequence, error).await;
        }
        if self.acquires.len() >= MAX_ACQUIRES {
            let text = format!("the session has {MAX_ACQUIRES} acquires under way; wait for answers");
            return refuse(&self.outbox, sequence, ApiError::new(ErrorCode::TooManyOutstanding, text)).await;
        }
        let (tell, answered) = watch::channel(false);
        let task = self.tasks.spawn(self.calls.clone().acquire(sequence, acquire, tell));
        self.acquires.insert(sequence, Running { answered, task });
    }
}

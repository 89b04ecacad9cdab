//! One client's session stream: reads requests of its sessions, runs each in a task of its own, lets answers out in the
//! order they are ready.
//!
//! Sessions outlive the stream. When it ends, whatever they were waiting for is dropped, and so detached: the client
//! repeats it on its next stream, or it is cancelled (rule R8).

mod calls;
mod holds;
mod outbox;
mod session;

use std::collections::BTreeMap;

use futures::Stream;
use holdfast_locktable::{event::Removal, ids::SessionId};
use holdfast_partitioner::MapEpoch;
use holdfast_proto::v1::{self, session_request::Body as Ask, session_response::Body as Answer};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tonic::{Status, Streaming};

use self::{calls::Calls, holds::Holds, outbox::Outbox, session::CarriedSession};
use super::input;
use crate::{
    endpoint::{ApiError, Endpoint, ErrorCode, types::SessionOpened},
    watch::holds::Hold,
};

/// Most sessions of one stream.
const MAX_SESSIONS: usize = 65_536;
/// Most holds of one stream that are being looked for; more are `overloaded`.
const MAX_LOCATING: usize = 131_072;
/// Most sessions of one stream that are being opened; more are `overloaded`.
const MAX_OPENINGS: usize = 1_024;

/// Serves one stream to its end, in a task; these are its answers.
pub(super) fn serve(
    endpoint: Endpoint,
    inbox: Streaming<v1::SessionRequests>,
    stopping: CancellationToken,
) -> impl Stream<Item = Result<v1::SessionResponses, Status>> {
    let (outbox, answers) = outbox::channel();
    tokio::spawn(run(endpoint, inbox, outbox, stopping));
    answers
}

async fn run(
    endpoint: Endpoint,
    mut inbox: Streaming<v1::SessionRequests>,
    outbox: Outbox,
    stopping: CancellationToken,
) {
    let mut stream = SessionStream::new(endpoint, outbox.clone());
    tokio::select! {
        biased;
        // The client is told why and goes on elsewhere.
        () = stopping.cancelled() => outbox.end(Status::unavailable("the member is stopping")),
        () = outbox.closed() => {}
        () = stream.serve(&mut inbox) => {}
    }
}

/// How a task ended.
enum Done {
    /// The opening of a session.
    Opened { sequence: u64, opened: Result<SessionOpened, ApiError> },
    /// These sessions have ended: of those that were renewed, or the one that was closed.
    Ended(Vec<SessionId>),
    /// An acquire, with the hold it gave and the map epoch before that.
    Acquire { session: SessionId, sequence: u64, hold: Option<(Hold, MapEpoch)> },
    /// So many holds were looked for.
    Located(usize),
    /// A release that ended a hold.
    Released(Hold),
    /// Anything else of a session.
    Other(SessionId),
}

struct SessionStream {
    endpoint: Endpoint,
    outbox: Outbox,
    tasks: JoinSet<Done>,
    openings: usize,
    locating: usize,
    sessions: BTreeMap<SessionId, CarriedSession>,
    holds: Holds,
}

impl SessionStream {
    fn new(endpoint: Endpoint, outbox: Outbox) -> Self {
        let (tasks, sessions) = (JoinSet::new(), BTreeMap::new());
        Self {
            holds: Holds::new(endpoint.clone()),
            endpoint,
            outbox,
            tasks,
            openings: 0,
            locating: 0,
            sessions,
        }
    }

    async fn serve(&mut self, inbox: &mut Streaming<v1::SessionRequests>) {
        loop {
            tokio::select! {
                biased;
                Some(done) = self.tasks.join_next() => match done {
                    Ok(done) => self.reap(done).await,
                    Err(error) => tracing::error!(%error, "a request of a session was not answered"),
                },
                (hold, reason) = self.holds.ended() => self.tell(&hold, reason).await,
                message = inbox.message() => match message {
                    Ok(Some(batch)) => self.take_all(batch.requests).await,
                    // The client is gone, or the connection is.
                    Ok(None) | Err(_) => return,
                },
            }
        }
    }

    async fn reap(&mut self, done: Done) {
        match done {
            Done::Opened { sequence, opened } => {
                self.openings -= 1;
                self.opened(sequence, opened).await;
            }
            Done::Ended(sessions) => {
                for session in sessions {
                    self.sessions.remove(&session);
                }
            }
            Done::Acquire { session, sequence, hold } => {
                if let Some(carried) = self.sessions.get_mut(&session) {
                    carried.acquire_done(sequence);
                }
                if let Some((hold, epoch)) = hold {
                    self.holds.began(hold, epoch);
                }
            }
            Done::Located(count) => self.locating -= count,
            Done::Released(hold) => {
                self.holds.forget(&hold);
                self.call_done(hold.session);
            }
            Done::Other(session) => self.call_done(session),
        }
    }

    fn call_done(&mut self, session: SessionId) {
        if let Some(carried) = self.sessions.get_mut(&session) {
            carried.call_done();
        }
    }

    /// The stream carries the session before its client hears of it.
    async fn opened(&mut self, sequence: u64, opened: Result<SessionOpened, ApiError>) {
        match opened {
            Ok(SessionOpened { session, ttl_ms }) => {
                self.carry(session);
                let opened = v1::Opened { session: session.get(), ttl_ms };
                self.outbox.send(0, sequence, Answer::Opened(opened)).await;
            }
            Err(error) => self.outbox.refuse(0, sequence, error).await,
        }
    }

    fn carry(&mut self, session: SessionId) {
        self.sessions.entry(session).or_default();
    }

    async fn tell(&self, hold: &Hold, reason: Removal) {
        self.outbox.send(hold.session.get(), 0, holds::ended(hold, reason)).await;
    }

    async fn take_all(&mut self, requests: Vec<v1::SessionRequest>) {
        let (mut keepalives, mut locates) = (Vec::new(), Vec::new());
        for request in requests {
            let (session, sequence) = (request.session, request.sequence);
            let taken = match request.body {
                Some(Ask::Open(open)) => self.take_open(session, sequence, open),
                Some(Ask::Resume(resume)) => self.take_resume(session, sequence, resume).await,
                Some(Ask::Keepalive(_)) => self.carried(session).map(|id| keepalives.push((id, sequence))),
                Some(Ask::Locate(locate)) => {
                    self.take_locate(session, locate).map(|(id, holds)| locates.push((id, sequence, holds)))
                }
                Some(ask) => self.take(session, sequence, ask),
                None => Err(ApiError::invalid("the request is empty")),
            };
            if let Err(error) = taken {
                self.outbox.refuse(session, sequence, error).await;
            }
        }
        if !keepalives.is_empty() {
            self.tasks.spawn(calls::keepalives(self.endpoint.clone(), self.outbox.clone(), keepalives));
        }
        if !locates.is_empty() {
            self.tasks.spawn(calls::locate(self.endpoint.clone(), self.outbox.clone(), locates));
        }
    }

    /// The id of a session that this stream carries.
    fn carried(&self, session: u64) -> Result<SessionId, ApiError> {
        let id = input::session(session)?;
        if self.sessions.contains_key(&id) { Ok(id) } else { Err(not_carried(id)) }
    }

    /// The holds that are to be looked for.
    fn take_locate(&mut self, session: u64, locate: v1::Locate) -> Result<(SessionId, Vec<Hold>), ApiError> {
        let id = self.carried(session)?;
        let holds = input::holds(id, locate.holds)?;
        if self.locating + holds.len() > MAX_LOCATING {
            let text = format!("{MAX_LOCATING} holds of the stream are being looked for; wait for answers");
            return Err(ApiError::new(ErrorCode::Overloaded, text));
        }
        self.locating += holds.len();
        Ok((id, holds))
    }

    fn check_room(&self) -> Result<(), ApiError> {
        if self.openings >= MAX_OPENINGS {
            let text = format!("{MAX_OPENINGS} sessions of the stream are being opened; wait for answers");
            return Err(ApiError::new(ErrorCode::Overloaded, text));
        }
        if self.sessions.len() + self.openings >= MAX_SESSIONS {
            let text = format!("the stream carries {MAX_SESSIONS} sessions; use another client for more");
            return Err(ApiError::new(ErrorCode::Overloaded, text));
        }
        Ok(())
    }

    fn take_open(&mut self, session: u64, sequence: u64, open: v1::Open) -> Result<(), ApiError> {
        if session != 0 {
            return Err(ApiError::invalid(format!(
                "`open` is for session 0, which has no id yet, and not {session}"
            )));
        }
        self.check_room()?;
        self.openings += 1;
        self.tasks.spawn(calls::open(self.endpoint.clone(), sequence, open));
        Ok(())
    }

    async fn take_resume(&mut self, session: u64, sequence: u64, resume: v1::Resume) -> Result<(), ApiError> {
        let id = input::session(session)?;
        if !self.sessions.contains_key(&id) {
            self.check_room()?;
        }
        self.carry(id);
        for hold in resume.holds {
            // A hold that cannot exist cannot end either.
            if let (Ok(name), Ok(token)) = (input::name(hold.name), input::token(hold.token)) {
                self.holds.resumed(Hold { session: id, name, token }, MapEpoch(hold.epoch));
            }
        }
        self.outbox.send(session, sequence, Answer::Resumed(v1::Resumed {})).await;
        Ok(())
    }

    fn take(&mut self, session: u64, sequence: u64, ask: Ask) -> Result<(), ApiError> {
        let id = input::session(session)?;
        let carried = self.sessions.get_mut(&id).ok_or_else(|| not_carried(id))?;
        let calls = Calls { endpoint: self.endpoint.clone(), session: id, outbox: self.outbox.clone() };
        carried.take(calls, sequence, ask, &mut self.tasks)
    }
}

fn not_carried(session: SessionId) -> ApiError {
    ApiError::invalid(format!("this stream does not carry session {session}; send `open` or `resume` first"))
}

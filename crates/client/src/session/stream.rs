//! Streams to members, each shared by all sessions of the client there.
//!
//! Brings what a member says to the session it is for. Does not know what the messages mean, nor when to go elsewhere.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use futures::Stream;
use holdfast_proto::v1::{self, lock_client::LockClient, session_request, session_response};
use parking_lot::Mutex;
use tokio::{
    sync::{mpsc, oneshot},
    task::AbortHandle,
    time::timeout,
};
use tonic::Streaming;

use super::shared::Shared;
use crate::{
    call::Caller,
    channel::Leased,
    error::{Error, from_status},
    ids::SessionId,
};

/// Requests on their way into a stream. What waits here has been sent as far as deadlines go.
const OUTBOX: usize = 1_024;
/// Most requests in one message.
const MAX_BATCH: usize = 1_024;
/// Weight of a message beyond which it takes no more, in bytes. With the longest names it stays below the 4 MiB that a
/// member takes.
const MAX_WEIGHT: usize = 1 << 20;
/// What an acquire weighs beside its value, in bytes: its name and metadata at their longest.
const ACQUIRE_WEIGHT: usize = 8 << 10;

/// The streams of a client, at most one per endpoint in use for new sessions.
#[derive(Debug)]
pub(crate) struct Streams {
    slots: Vec<tokio::sync::Mutex<Weak<SessionStream>>>,
}

impl Streams {
    pub(crate) fn new(endpoints: usize) -> Self {
        Self { slots: (0..endpoints).map(|_| tokio::sync::Mutex::default()).collect() }
    }

    /// The stream to one endpoint, opened now where there is none, within `limit`.
    pub(crate) async fn at(
        &self,
        caller: &Caller,
        index: usize,
        limit: Duration,
    ) -> Result<Arc<SessionStream>, Error> {
        let endpoint = caller.pool.endpoint(index);
        let silent = || Error::Unreachable {
            reason: format!("{endpoint}: no answer within {} ms", limit.as_millis()),
        };
        let mut made = None;
        let opening = async {
            let slot = self.slots.get(index % self.slots.len().max(1));
            let slot =
                slot.ok_or_else(|| Error::Unreachable { reason: "there is no such endpoint".into() })?;
            // Whoever else wants it meanwhile waits for this one attempt.
            let mut slot = slot.lock().await;
            if let Some(stream) = slot.upgrade().filter(|stream| stream.takes_sessions()) {
                return Ok(stream);
            }
            let leased = caller.lease(index, limit).await?;
            made = Some(leased.clone());
            let stream = SessionStream::open(leased).await?;
            *slot = Arc::downgrade(&stream);
            Ok(stream)
        };
        let opened = timeout(limit, opening).await.unwrap_or_else(|_| Err(silent()));
        if let (Err(Error::Unreachable { .. }), Some(leased)) = (&opened, &made) {
            caller.pool.evict(leased);
        }
        opened
    }
}

/// One open stream. It ends when the last session has left it.
#[derive(Debug)]
pub(crate) struct SessionStream {
    pub(super) leased: Leased,
    outbox: mpsc::Sender<v1::SessionRequest>,
    carried: Mutex<Carried>,
    given_up: AtomicBool,
    reader: AbortHandle,
}

#[derive(Debug, Default)]
struct Carried {
    sessions: BTreeMap<SessionId, Arc<Shared>>,
    openings: BTreeMap<u64, oneshot::Sender<Result<v1::Opened, Error>>>,
    last_opening: u64,
    ended: Option<Error>,
}

impl Drop for SessionStream {
    fn drop(&mut self) {
        self.reader.abort();
    }
}

impl SessionStream {
    async fn open(leased: Leased) -> Result<Arc<Self>, Error> {
        let (outbox, requests) = mpsc::channel(OUTBOX);
        let mut client = LockClient::new(leased.channel.clone());
        let answer = client.sessions(messages(requests)).await;
        let inbox = answer.map_err(|status| from_status(&status))?.into_inner();
        Ok(Arc::new_cyclic(|stream| Self {
            leased,
            outbox,
            carried: Mutex::default(),
            given_up: AtomicBool::new(false),
            reader: tokio::spawn(read(stream.clone(), inbox)).abort_handle(),
        }))
    }

    fn takes_sessions(&self) -> bool {
        !self.given_up.load(Ordering::Relaxed) && self.ended().is_none()
    }

    /// Why there will be no more answers, once that is so.
    pub(super) fn ended(&self) -> Option<Error> {
        self.carried.lock().ended.clone()
    }

    /// No session is to come here any more; those that are here leave when they find out.
    pub(super) fn give_up(&self) {
        self.given_up.store(true, Ordering::Relaxed);
    }

    pub(super) const fn outbox(&self) -> &mpsc::Sender<v1::SessionRequest> {
        &self.outbox
    }

    /// Opens a session. Where the future is dropped, a session that is opened all the same is closed again.
    pub(super) async fn open_session(&self, open: v1::Open) -> Result<v1::Opened, Error> {
        let (tell, answer) = oneshot::channel();
        let sequence = {
            let mut carried = self.carried.lock();
            if let Some(error) = &carried.ended {
                return Err(error.clone());
            }
            carried.last_opening += 1;
            let sequence = carried.last_opening;
            carried.openings.insert(sequence, tell);
            sequence
        };
        let body = Some(session_request::Body::Open(open));
        let closed = || Error::Unreachable { reason: "the stream was closed".into() };
        let sent = self.outbox.send(v1::SessionRequest { sequence, session: 0, body }).await;
        sent.map_err(|_| closed())?;
        answer.await.unwrap_or_else(|_| Err(closed()))
    }

    /// Brings messages to a session from now on.
    pub(super) fn carry(&self, shared: Arc<Shared>) {
        self.carried.lock().sessions.insert(shared.session, shared);
    }

    pub(super) fn leave(&self, session: SessionId) {
        self.carried.lock().sessions.remove(&session);
    }

    fn deliver(&self, message: v1::SessionResponse) {
        if message.session == 0 {
            self.deliver_opening(message);
            return;
        }
        let shared = self.carried.lock().sessions.get(&SessionId::from_wire(message.session)).cloned();
        // What is for a session that has left is of no use any more.
        if let Some(shared) = shared {
            shared.deliver(message);
        }
    }

    fn deliver_opening(&self, message: v1::SessionResponse) {
        let Some(tell) = self.carried.lock().openings.remove(&message.sequence) else { return };
        let answer = match message.body {
            Some(session_response::Body::Opened(opened)) => Ok(opened),
            Some(session_response::Body::Error(error)) => Err(Error::Api(error.into())),
            Some(_) | None => {
                Err(Error::Unreachable { reason: "the member's answer to `open` is none".into() })
            }
        };
        if let Err(Ok(unwanted)) = tell.send(answer) {
            let body = Some(session_request::Body::Close(v1::Close {}));
            // Without room it ends by itself when its TTL has passed.
            let _ = self.outbox.try_send(v1::SessionRequest { sequence: 2, session: unwanted.session, body });
        }
    }

    fn end(&self, error: &Error) {
        let (sessions, openings) = {
            let mut carried = self.carried.lock();
            carried.ended = Some(error.clone());
            let sessions: Vec<Arc<Shared>> = carried.sessions.values().cloned().collect();
            (sessions, std::mem::take(&mut carried.openings))
        };
        for shared in sessions {
            shared.wake();
        }
        for tell in openings.into_values() {
            // Whoever does not wait any more need not know.
            let _ = tell.send(Err(error.clone()));
        }
    }
}

/// Reads a stream until it ends or nobody needs it any more.
async fn read(stream: Weak<SessionStream>, mut inbox: Streaming<v1::SessionResponses>) {
    let error = loop {
        match inbox.message().await {
            Ok(Some(batch)) => {
                let Some(stream) = stream.upgrade() else { return };
                batch.responses.into_iter().for_each(|message| stream.deliver(message));
            }
            Ok(None) => break Error::Unreachable { reason: "the member ended the stream".into() },
            Err(status) => break from_status(&status),
        }
    };
    if let Some(stream) = stream.upgrade() {
        stream.end(&error);
    }
}

/// The requests as messages: whatever is ready becomes one.
fn messages(requests: mpsc::Receiver<v1::SessionRequest>) -> impl Stream<Item = v1::SessionRequests> {
    futures::stream::unfold(requests, |mut queue| async move {
        let first = queue.recv().await?;
        let mut weight = weight(&first);
        let mut requests = vec![first];
        while requests.len() < MAX_BATCH
            && weight < MAX_WEIGHT
            && let Ok(next) = queue.try_recv()
        {
            weight += self::weight(&next);
            requests.push(next);
        }
        Some((v1::SessionRequests { requests }, queue))
    })
}

fn weight(request: &v1::SessionRequest) -> usize {
    match &request.body {
        Some(session_request::Body::Acquire(acquire)) => ACQUIRE_WEIGHT + acquire.value.len(),
        Some(session_request::Body::Proclaim(proclaim)) => proclaim.value.len(),
        Some(session_request::Body::Resume(resume)) => resume.holds.len() * 64,
        Some(session_request::Body::Locate(locate)) => locate.holds.iter().map(hold_weight).sum(),
        Some(_) | None => 0,
    }
}

fn hold_weight(hold: &v1::Hold) -> usize {
    32 + hold.name.as_ref().map_or(0, |name| name.text.len())
}

#[cfg(test)]
mod tests {
    use futures::StreamExt;

    use super::*;

    #[tokio::test]
    async fn what_is_ready_is_one_message_as_far_as_members_take_it() {
        let (outbox, requests) = mpsc::channel(4_096);
        let request = |sequence, body| v1::SessionRequest { sequence, session: 1, body: Some(body) };
        for sequence in 1..=1_500 {
            let keepalive = session_request::Body::Keepalive(v1::Keepalive {});
            outbox.try_send(request(sequence, keepalive)).expect("room");
        }
        for sequence in 1_501..=1_540 {
            let value = vec![0; 64 << 10].into();
            let acquire = session_request::Body::Acquire(v1::Acquire { value, ..v1::Acquire::default() });
            outbox.try_send(request(sequence, acquire)).expect("room");
        }
        drop(outbox);
        let batches: Vec<Vec<u64>> = messages(requests)
            .map(|batch| batch.requests.iter().map(|r| r.sequence).collect())
            .collect()
            .await;
        assert_eq!(batches.concat(), (1..=1_540).collect::<Vec<_>>());
        assert_eq!(batches.iter().map(Vec::len).collect::<Vec<_>>(), [1_024, 476 + 15, 15, 10]);
    }
}

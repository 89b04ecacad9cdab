//! The sending side.

use std::{
    collections::BTreeMap,
    pin::Pin,
    sync::{Arc, Weak},
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use futures::{
    FutureExt, Stream, StreamExt,
    future::{BoxFuture, Shared},
    stream,
    stream::BoxStream,
};
use holdfast_partitioner::GroupId;
use parking_lot::{Mutex, RwLock};
use tokio::time::{Instant, sleep_until, timeout};
use tonic::{Status, Streaming, metadata::BinaryMetadataValue};

use super::{
    calls::{CallStream, Callers, call_stream},
    link::{Link, Made},
    wire::{
        self,
        proto::{self, snapshot_part::Part},
    },
};
use crate::{
    log::identity::ClusterId,
    peer::{
        heard::Heard,
        service::Envelope,
        told::LastTold,
        transport::{Answer, AppendAnswers, CallError, LinkError, Question, SnapshotParcel, Transport},
    },
    raft::types::{AppendRequest, MemberId, SnapshotResponse},
};

/// Bytes of a snapshot in one message.
const CHUNK: usize = 256 * 1024;
/// How long opening the stream of calls may take. A request that meets a connection in the moment in which it closes can
/// stay unanswered for ever in tonic's channel (0.14, about one in 10,000), and everybody waits for this one.
const OPEN_LIMIT: Duration = Duration::from_secs(2);

/// Carries messages to other processes. Clones are the same transport.
#[derive(Clone, Debug)]
pub struct GrpcTransport {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    cluster: ClusterId,
    member: MemberId,
    peers: RwLock<BTreeMap<MemberId, Arc<Peer>>>,
    heard: Heard,
}

/// One other member.
#[derive(Debug)]
struct Peer {
    to: MemberId,
    address: String,
    /// Whether the address was only suggested.
    suggested: bool,
    envelope: BinaryMetadataValue,
    /// For all but snapshots.
    main: Link,
    /// For snapshots.
    bulk: Link,
    calls: Mutex<Calls>,
    heard: Heard,
    refusals: LastTold,
}

impl GrpcTransport {
    /// A transport that knows nobody yet. `heard` is shared with the [`PeerService`](crate::peer::PeerService) of the
    /// same member.
    #[must_use]
    pub fn new(cluster: ClusterId, member: MemberId, heard: Heard) -> Self {
        Self { inner: Arc::new(Inner { cluster, member, peers: RwLock::default(), heard }) }
    }

    fn set(&self, to: MemberId, address: &str, suggested: bool) {
        let Inner { cluster, member, peers, heard } = &*self.inner;
        let mut peers = peers.write();
        match peers.get(&to) {
            Some(peer) if suggested && !peer.suggested => return,
            Some(peer) if peer.address == address && peer.suggested == suggested => return,
            Some(_) | None => {}
        }
        let envelope = wire::seal(&Envelope { cluster: cluster.clone(), from: *member, to });
        let peer = Peer {
            to,
            address: address.to_owned(),
            suggested,
            envelope,
            main: Link::new(to, address),
            bulk: Link::new(to, address),
            calls: Mutex::new(Calls::Closed),
            heard: heard.clone(),
            refusals: LastTold::default(),
        };
        peers.insert(to, Arc::new(peer));
    }

    fn peer(&self, to: MemberId) -> Result<Arc<Peer>, LinkError> {
        let unknown = || LinkError::Unreachable { to, reason: "its address is not known".to_owned() };
        self.inner.peers.read().get(&to).cloned().ok_or_else(unknown)
    }
}

impl Peer {
    /// What a status says, after giving up a connection that is good for nothing any more.
    fn failed(&self, link: &Link, made: Made, status: &Status) -> LinkError {
        let err = wire::link_error(self.to, status);
        match &err {
            LinkError::Refused { reason, .. } if self.refusals.is_news(reason) => {
                tracing::warn!(member = self.to, address = %self.address, %reason, "a member refused a message");
            }
            LinkError::Refused { .. } | LinkError::TimedOut { .. } => {}
            LinkError::Unreachable { reason, .. } | LinkError::Broken { reason, .. } => {
                link.broken(made, reason)
            }
        }
        err
    }

    fn answered(&self, made: Made) {
        self.main.answered(made);
        self.heard.note(self.to);
        self.refusals.forget();
    }

    fn broken(&self, reason: impl ToString) -> LinkError {
        LinkError::Broken { to: self.to, reason: reason.to_string() }
    }

    async fn append(
        self: Arc<Self>,
        group: GroupId,
        requests: BoxStream<'static, AppendRequest>,
    ) -> Result<AppendAnswers, LinkError> {
        let (answers, made) = self.open(Outbound { group, requests }).await?;
        Ok(self.inbound(answers, made))
    }

    fn inbound(self: Arc<Self>, answers: Streaming<proto::Message>, made: Made) -> AppendAnswers {
        let answers = answers.map(move |answer| match answer {
            Ok(message) => {
                self.answered(made);
                wire::decode(&message.body).map_err(|err| self.broken(err))
            }
            Err(status) => Err(self.failed(&self.main, made, &status)),
        });
        answers.boxed()
    }

    async fn open(&self, messages: Outbound) -> Result<(Streaming<proto::Message>, Made), LinkError> {
        let (mut client, made) = self.main.client().await?;
        match client.append(wire::stamp(&self.envelope, messages)).await {
            Ok(response) => Ok((response.into_inner(), made)),
            Err(status) => Err(self.failed(&self.main, made, &status)),
        }
    }

    async fn ask(
        self: Arc<Self>,
        group: GroupId,
        question: Question,
        limit: Duration,
    ) -> Result<Answer, LinkError> {
        let exchange = async {
            let (mut client, made) = self.main.client().await?;
            let body = wire::encode(&question).map_err(|err| self.broken(err))?;
            let request = wire::stamp(&self.envelope, proto::Message { group: group.0, body });
            match client.ask(request).await {
                Ok(response) => {
                    self.answered(made);
                    wire::decode(&response.into_inner().body).map_err(|err| self.broken(err))
                }
                Err(status) => Err(self.failed(&self.main, made, &status)),
            }
        };
        match timeout(limit, exchange).await {
            Ok(answer) => answer,
            Err(_) => Err(LinkError::TimedOut { to: self.to, limit }),
        }
    }

    async fn snapshot(
        self: Arc<Self>,
        group: GroupId,
        parcel: SnapshotParcel,
        limit: Duration,
    ) -> Result<SnapshotResponse, LinkError> {
        let (mut client, made) = self.bulk.client().await?;
        let body = wire::encode(&(&parcel.vote, &parcel.meta)).map_err(|err| self.broken(err))?;
        let head = proto::SnapshotHead {
            group: group.0,
            body,
            length: parcel.data.len() as u64,
            checksum: crc32fast::hash(&parcel.data),
        };
        // Moves on with each part that the connection takes.
        let progress = Arc::new(Mutex::new(Instant::now()));
        let moved = Arc::clone(&progress);
        let parts = stream::iter(parts(head, parcel.data)).inspect(move |_| *moved.lock() = Instant::now());
        let mut sent = std::pin::pin!(client.snapshot(wire::stamp(&self.envelope, parts)));
        let response = loop {
            let deadline = *progress.lock() + limit;
            tokio::select! {
                biased;
                response = &mut sent => break response,
                () = sleep_until(deadline) => {
                    if *progress.lock() + limit <= Instant::now() {
                        return Err(LinkError::TimedOut { to: self.to, limit });
                    }
                }
            }
        };
        match response {
            Ok(response) => {
                self.bulk.answered(made);
                wire::decode(&response.into_inner().body).map_err(|err| self.broken(err))
            }
            Err(status) => Err(self.failed(&self.bulk, made, &status)),
        }
    }

    async fn call(self: Arc<Self>, request: Bytes) -> Result<Bytes, CallError> {
        let to = self.to;
        // A stream that ended between two looks is opened once more.
        for _ in 0..2 {
            let stream = match self.calling().await {
                Ok(stream) => stream,
                Err(err) => return Err(CallError::NotDelivered { to, reason: err.to_string() }),
            };
            match stream.call(request.clone()).await {
                Some(Ok(answer)) => return Ok(answer),
                Some(Err(reason)) => return Err(CallError::Unknown { to, reason: reason.to_string() }),
                None => {}
            }
        }
        Err(CallError::NotDelivered { to, reason: "the stream of calls ended again and again".to_owned() })
    }

    /// The stream that calls go out on; whoever needs it first opens it for all.
    async fn calling(self: &Arc<Self>) -> Result<Arc<CallStream>, LinkError> {
        let attempt = {
            let mut calls = self.calls.lock();
            match &*calls {
                Calls::Open(stream) if !stream.ended() => return Ok(Arc::clone(stream)),
                Calls::Opening(attempt) => attempt.clone(),
                Calls::Open(_) | Calls::Closed => {
                    let attempt = Arc::clone(self).open_calls().boxed().shared();
                    *calls = Calls::Opening(attempt.clone());
                    attempt
                }
            }
        };
        let opened = attempt.clone().await;
        let mut calls = self.calls.lock();
        // The first of those who waited for the attempt notes how it ended.
        if matches!(&*calls, Calls::Opening(current) if current.ptr_eq(&attempt)) {
            *calls = opened.as_ref().map_or(Calls::Closed, |stream| Calls::Open(Arc::clone(stream)));
        }
        opened
    }

    async fn open_calls(self: Arc<Self>) -> Result<Arc<CallStream>, LinkError> {
        let (mut client, made) = self.main.client().await?;
        let (stream, batches) = call_stream();
        let opening = client.calls(wire::stamp(&self.envelope, batches));
        let Ok(opened) = timeout(OPEN_LIMIT, opening).await else {
            let err = LinkError::TimedOut { to: self.to, limit: OPEN_LIMIT };
            self.main.broken(made, &err.to_string());
            return Err(err);
        };
        match opened {
            Ok(response) => {
                let callers = stream.callers();
                tokio::spawn(read_answers(Arc::downgrade(&self), made, callers, response.into_inner()));
                Ok(Arc::new(stream))
            }
            Err(status) => Err(self.failed(&self.main, made, &status)),
        }
    }

    async fn probe(self: Arc<Self>, limit: Duration) -> Result<(), LinkError> {
        let exchange = async {
            let (mut client, made) = self.main.client().await?;
            match client.probe(wire::stamp(&self.envelope, proto::Nothing {})).await {
                Ok(_) => {
                    self.answered(made);
                    Ok(())
                }
                Err(status) => Err(self.failed(&self.main, made, &status)),
            }
        };
        match timeout(limit, exchange).await {
            Ok(result) => result,
            Err(_) => Err(LinkError::TimedOut { to: self.to, limit }),
        }
    }
}

/// The stream of calls to one member.
#[derive(Debug)]
enum Calls {
    /// Never opened, or it could not be.
    Closed,
    /// Being opened. All who need it wait for the same attempt, which goes on also where one of them gives up.
    Opening(Shared<BoxFuture<'static, Result<Arc<CallStream>, LinkError>>>),
    /// Opened; it may have ended since.
    Open(Arc<CallStream>),
}

/// Hands answers to their callers until the stream ends. Does not keep the peer alive: with its transport it ends too.
async fn read_answers(
    peer: Weak<Peer>,
    made: Made,
    callers: Callers,
    mut answers: Streaming<proto::AnswerBatch>,
) {
    let end = loop {
        match answers.message().await {
            Ok(Some(batch)) => {
                if let Some(peer) = peer.upgrade() {
                    peer.answered(made);
                }
                callers.answer(batch);
            }
            Ok(None) => break Status::unavailable("the member ended the stream of calls"),
            Err(status) => break status,
        }
    };
    if let Some(peer) = peer.upgrade() {
        // How it failed is in the reason too; here the connection is given up where it is good for nothing.
        let _ = peer.failed(&peer.main, made, &end);
    }
    callers.end(wire::reason(&end));
}

/// Appends as messages. One that cannot be encoded ends them.
struct Outbound {
    group: GroupId,
    requests: BoxStream<'static, AppendRequest>,
}

impl Stream for Outbound {
    type Item = proto::Message;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<proto::Message>> {
        let group = self.group;
        self.requests.poll_next_unpin(cx).map(|request| {
            let body = wire::encode(&request?)
                .inspect_err(|err| tracing::error!(%group, %err, "an append cannot be encoded"));
            Some(proto::Message { group: group.0, body: body.ok()? })
        })
    }
}

/// A snapshot in parts: the head, then chunks.
fn parts(head: proto::SnapshotHead, mut data: Bytes) -> impl Iterator<Item = proto::SnapshotPart> {
    let mut head = Some(head);
    std::iter::from_fn(move || {
        let part = match head.take() {
            Some(head) => Part::Head(head),
            None if data.is_empty() => return None,
            None => Part::Chunk(proto::SnapshotChunk { data: data.split_to(CHUNK.min(data.len())) }),
        };
        Some(proto::SnapshotPart { part: Some(part) })
    })
}

impl Transport for GrpcTransport {
    fn learn(&self, member: MemberId, address: &str) {
        self.set(member, address, false);
    }

    fn suggest(&self, member: MemberId, address: &str) {
        self.set(member, address, true);
    }

    fn append(
        &self,
        to: MemberId,
        group: GroupId,
        requests: BoxStream<'static, AppendRequest>,
    ) -> BoxFuture<'static, Result<AppendAnswers, LinkError>> {
        let peer = self.peer(to);
        async move { peer?.append(group, requests).await }.boxed()
    }

    fn ask(
        &self,
        to: MemberId,
        group: GroupId,
        question: Question,
        limit: Duration,
    ) -> BoxFuture<'static, Result<Answer, LinkError>> {
        let peer = self.peer(to);
        async move { peer?.ask(group, question, limit).await }.boxed()
    }

    fn snapshot(
        &self,
        to: MemberId,
        group: GroupId,
        parcel: SnapshotParcel,
        limit: Duration,
    ) -> BoxFuture<'static, Result<SnapshotResponse, LinkError>> {
        let peer = self.peer(to);
        async move { peer?.snapshot(group, parcel, limit).await }.boxed()
    }

    fn call(&self, to: MemberId, request: Bytes) -> BoxFuture<'static, Result<Bytes, CallError>> {
        let peer = self.peer(to).map_err(|err| CallError::NotDelivered { to, reason: err.to_string() });
        async move { peer?.call(request).await }.boxed()
    }

    fn probe(&self, to: MemberId, limit: Duration) -> BoxFuture<'static, Result<(), LinkError>> {
        let peer = self.peer(to);
        async move { peer?.probe(limit).await }.boxed()
    }

    fn heard(&self) -> &Heard {
        &self.inner.heard
    }
}

//! What a simulated member sends with: the node's own transport trait over the simulated network.
//!
//! Appends travel in pipes, everything else as questions. Knows nothing of what they mean.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use futures::{FutureExt, StreamExt, future, future::BoxFuture, stream, stream::BoxStream};
use holdfast_node::{
    log::identity::ClusterId,
    peer::{
        CallError, Heard, LinkError, PeerService, Transport,
        service::Envelope,
        transport::{Answer, AppendAnswers, Question as Asked, SnapshotParcel},
    },
    raft::types::{AppendAnswer, AppendRequest, MemberId, SnapshotResponse},
};
use holdfast_partitioner::GroupId;
use tokio::{sync::mpsc, task::JoinHandle, time::timeout};

use super::{
    Network, Node, Seat,
    exchange::{Handler, Lost, Question},
    pipe::Pipe,
};

/// Carries messages of one member. Clones are the same transport.
#[derive(Clone, Debug)]
pub struct SimTransport {
    network: Network,
    cluster: ClusterId,
    member: MemberId,
    heard: Heard,
}

impl SimTransport {
    /// A member's way to the others; a new one with each start.
    #[must_use]
    pub fn new(network: Network, cluster: ClusterId, member: MemberId) -> Self {
        Self { network, cluster, member, heard: Heard::new() }
    }

    fn envelope(&self, to: MemberId) -> Envelope {
        Envelope { cluster: self.cluster.clone(), from: self.member, to }
    }

    /// Has another member's service do something, if the message is for it, and waits at most `limit` for the answer.
    async fn asked<R, W>(
        self,
        to: MemberId,
        kind: &'static str,
        limit: Duration,
        work: W,
    ) -> Result<R, LinkError>
    where
        R: Send + 'static,
        W: Fn(PeerService) -> BoxFuture<'static, Result<R, LinkError>> + Send + Sync + 'static,
    {
        let envelope = self.envelope(to);
        let handler: Handler<Result<R, LinkError>> =
            Arc::new(move |seat: &Seat| match seat.service.receive(&envelope) {
                Ok(_) => work(seat.service.clone()),
                Err(err) => future::ready(Err(LinkError::Refused { to, reason: err.to_string() })).boxed(),
            });
        let question = Question { from: self.member, to, kind, handler, may_double: true };
        match timeout(limit, self.network.exchange(question)).await {
            Ok(Ok(answer)) => {
                self.heard.note(to);
                answer
            }
            Ok(Err(Lost::Refused)) => Err(unreachable(to)),
            Ok(Err(Lost::Broken)) => Err(broken(to)),
            Err(_) => Err(LinkError::TimedOut { to, limit }),
        }
    }

    /// Opens the two pipes of an append stream.
    fn open(
        self,
        to: MemberId,
        group: GroupId,
        requests: BoxStream<'static, AppendRequest>,
    ) -> Result<AppendAnswers, LinkError> {
        let from = self.member;
        if self.network.refuses(from, to) {
            return Err(unreachable(to));
        }
        let (request, requested) = mpsc::unbounded_channel();
        let (answer, answers) = mpsc::unbounded_channel();
        let there = Pipe::new(&self.network, from, to, "append");
        let back = Pipe::new(&self.network, to, from, "appended");
        let (network, envelope) = (self.network.clone(), self.envelope(to));
        there.send(move |seat| {
            let Some(seat) = seat else { return };
            let requests = stream::unfold(requested, |mut requested: mpsc::UnboundedReceiver<_>| async {
                requested.recv().await.map(|request| (request, requested))
            });
            let opened = match seat.service.receive(&envelope) {
                Ok(from) => seat.service.append(from, group, requests.boxed()),
                Err(err) => Err(LinkError::Refused { to, reason: err.to_string() }),
            };
            tokio::spawn(carry_answers(network, (to, from), opened, back, answer));
        });
        let ended = Arc::new(AtomicBool::new(false));
        let sender = tokio::spawn(carry_requests(requests, there, request, ended.clone()));
        let answers = Answers { to, answers, ended, sender, broken: false, heard: self.heard };
        Ok(stream::unfold(answers, Answers::next).boxed())
    }
}

/// Sends the requests of a stream until it ends or breaks.
async fn carry_requests(
    mut requests: BoxStream<'static, AppendRequest>,
    there: Pipe,
    request: mpsc::UnboundedSender<AppendRequest>,
    ended: Arc<AtomicBool>,
) {
    while let Some(next) = requests.next().await {
        let request = request.clone();
        // A receiver that has gone does not miss it.
        if !there.send(move |_| drop(request.send(next))) {
            return;
        }
    }
    ended.store(true, Ordering::Relaxed);
}

/// Sends the answers of a stream back until they end, or the connection is silent.
async fn carry_answers(
    network: Network,
    (here, there): (Node, Node),
    opened: Result<AppendAnswers, LinkError>,
    back: Pipe,
    answer: mpsc::UnboundedSender<Result<AppendAnswer, LinkError>>,
) {
    let mut answers = match opened {
        Ok(answers) => answers,
        Err(err) => stream::iter([Err(err)]).boxed(),
    };
    loop {
        let next = tokio::select! {
            biased;
            next = answers.next() => next,
            () = network.silent(here, there) => return,
        };
        let (Some(next), answer) = (next, answer.clone()) else { return };
        if !back.send(move |_| drop(answer.send(next))) {
            return;
        }
    }
}

/// The answers to a stream as they come in.
struct Answers {
    to: MemberId,
    answers: mpsc::UnboundedReceiver<Result<AppendAnswer, LinkError>>,
    /// Whether all requests were sent, so that an end of the answers is no loss.
    ended: Arc<AtomicBool>,
    sender: JoinHandle<()>,
    broken: bool,
    heard: Heard,
}

impl Answers {
    async fn next(mut self) -> Option<(Result<AppendAnswer, LinkError>, Self)> {
        match self.answers.recv().await {
            Some(answer) => {
                self.heard.note(self.to);
                Some((answer, self))
            }
            None if self.broken || self.ended.load(Ordering::Relaxed) => None,
            None => {
                self.broken = true;
                Some((Err(broken(self.to)), self))
            }
        }
    }
}

impl Drop for Answers {
    fn drop(&mut self) {
        self.sender.abort();
    }
}

fn unreachable(to: MemberId) -> LinkError {
    LinkError::Unreachable { to, reason: "connection refused".to_owned() }
}

fn broken(to: MemberId) -> LinkError {
    LinkError::Broken { to, reason: "the connection ended".to_owned() }
}

impl Transport for SimTransport {
    /// Members are found by their ids.
    fn learn(&self, _member: MemberId, _address: &str) {}

    /// Members are found by their ids.
    fn suggest(&self, _member: MemberId, _address: &str) {}

    fn append(
        &self,
        to: MemberId,
        group: GroupId,
        requests: BoxStream<'static, AppendRequest>,
    ) -> BoxFuture<'static, Result<AppendAnswers, LinkError>> {
        let transport = self.clone();
        async move { transport.open(to, group, requests) }.boxed()
    }

    fn ask(
        &self,
        to: MemberId,
        group: GroupId,
        question: Asked,
        limit: Duration,
    ) -> BoxFuture<'static, Result<Answer, LinkError>> {
        let work = move |service: PeerService| {
            let question = question.clone();
            async move { service.ask(group, question).await }.boxed()
        };
        self.clone().asked(to, "ask", limit, work).boxed()
    }

    fn snapshot(
        &self,
        to: MemberId,
        group: GroupId,
        parcel: SnapshotParcel,
        limit: Duration,
    ) -> BoxFuture<'static, Result<SnapshotResponse, LinkError>> {
        let work = move |service: PeerService| {
            let parcel = parcel.clone();
            async move { service.snapshot(group, parcel).await }.boxed()
        };
        self.clone().asked(to, "snapshot", limit, work).boxed()
    }

    fn call(&self, to: MemberId, request: Bytes) -> BoxFuture<'static, Result<Bytes, CallError>> {
        let (transport, envelope) = (self.clone(), self.envelope(to));
        let handler: Handler<Result<Bytes, String>> = Arc::new(move |seat: &Seat| {
            let (service, received) = (seat.service.clone(), seat.service.receive(&envelope));
            let request = request.clone();
            Box::pin(async move {
                let from = received.map_err(|err| err.to_string())?;
                Ok(service.call(from, request).await)
            })
        });
        async move {
            let question = Question { from: transport.member, to, kind: "call", handler, may_double: false };
            match transport.network.exchange(question).await {
                Ok(Ok(answer)) => {
                    transport.heard.note(to);
                    Ok(answer)
                }
                Ok(Err(reason)) => Err(CallError::NotDelivered { to, reason }),
                Err(Lost::Refused) => {
                    Err(CallError::NotDelivered { to, reason: "connection refused".to_owned() })
                }
                Err(Lost::Broken) => {
                    Err(CallError::Unknown { to, reason: "the connection ended".to_owned() })
                }
            }
        }
        .boxed()
    }

    fn probe(&self, to: MemberId, limit: Duration) -> BoxFuture<'static, Result<(), LinkError>> {
        self.clone().asked(to, "probe", limit, |_| future::ready(Ok(())).boxed()).boxed()
    }

    fn heard(&self) -> &Heard {
        &self.heard
    }
}

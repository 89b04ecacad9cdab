//! Messages between members of one process, over a network that tests and simulations can cut and slow down.
//!
//! It behaves as connections do: what is held up by a cut is delivered in order once the cut is healed, unless whoever
//! sent it gave up before; a member that has left refuses connections. No threads and no clock but tokio's.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use bytes::Bytes;
use futures::{FutureExt, StreamExt, future::BoxFuture, stream::BoxStream};
use holdfast_partitioner::GroupId;
use parking_lot::Mutex;
use tokio::{
    sync::watch,
    time::{sleep, timeout},
};
use tokio_util::sync::CancellationToken;

use super::{
    heard::Heard,
    service::{Envelope, PeerService},
    transport::{Answer, AppendAnswers, CallError, LinkError, Question, SnapshotParcel, Transport},
};
use crate::{
    log::identity::ClusterId,
    raft::types::{AppendRequest, MemberId, SnapshotResponse},
};

/// Messages of one stream that may be under way on a slow way; beyond it the sender waits.
const UNDER_WAY: usize = 64;
/// How long a call survives without a connection, as HTTP/2 pings would notice it.
const SILENCE: Duration = Duration::from_millis(1_750);

/// How messages from one member to another fare.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Way {
    /// Whether they are held up until this is taken back.
    pub cut: bool,
    /// How long they take.
    pub delay: Duration,
}

/// A network within one process. Clones are the same network.
#[derive(Clone, Debug, Default)]
pub struct MemoryNetwork {
    inner: Arc<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    members: Mutex<BTreeMap<MemberId, Seat>>,
    ways: Mutex<BTreeMap<(MemberId, MemberId), watch::Sender<Way>>>,
}

/// A member that listens.
#[derive(Clone, Debug)]
struct Seat {
    service: PeerService,
    /// Set when it leaves: everything it has under way ends.
    left: CancellationToken,
}

impl MemoryNetwork {
    /// A network without members.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// What a member of a cluster sends with. It need not have joined yet.
    #[must_use]
    pub fn transport(&self, cluster: ClusterId, member: MemberId, heard: Heard) -> MemoryTransport {
        MemoryTransport { network: self.clone(), cluster, member, heard }
    }

    /// Lets a member be reached.
    pub fn join(&self, service: PeerService) {
        let seat = Seat { left: CancellationToken::new(), service };
        let before = self.inner.members.lock().insert(seat.service.member(), seat);
        if let Some(before) = before {
            before.left.cancel();
        }
    }

    /// The end of a member's process: its connections break, new ones are refused.
    pub fn leave(&self, member: MemberId) {
        if let Some(seat) = self.inner.members.lock().remove(&member) {
            seat.left.cancel();
        }
    }

    /// Sets how messages from one member to another fare, in this direction only.
    pub fn set_way(&self, from: MemberId, to: MemberId, way: Way) {
        self.way(from, to).send_replace(way);
    }

    /// Holds up all messages of a member in both directions, or takes that back.
    pub fn set_isolated(&self, member: MemberId, others: &[MemberId], way: Way) {
        for other in others.iter().filter(|other| **other != member) {
            self.set_way(member, *other, way);
            self.set_way(*other, member, way);
        }
    }

    fn way(&self, from: MemberId, to: MemberId) -> watch::Sender<Way> {
        let mut ways = self.inner.ways.lock();
        ways.entry((from, to)).or_insert_with(|| watch::Sender::new(Way::default())).clone()
    }
}

/// One direction between two members.
#[derive(Clone, Debug)]
struct Gate(watch::Receiver<Way>);

impl Gate {
    /// Returns when a message that is sent now has arrived.
    async fn pass(mut self) {
        let delay = self.0.borrow().delay;
        // Even a sleep of no time at all would last until the next millisecond.
        if !delay.is_zero() {
            sleep(delay).await;
        }
        // The network that holds the sender outlives its messages.
        self.0.wait_for(|way| !way.cut).await.ok();
    }

    /// Returns when nothing has got through for so long that a connection is given up.
    async fn silent(mut self) {
        loop {
            if self.0.wait_for(|way| way.cut).await.is_err() {
                return;
            }
            if timeout(SILENCE, self.0.wait_for(|way| !way.cut)).await.is_err() {
                return;
            }
        }
    }
}

/// Carries messages of one member. Clones are the same transport.
#[derive(Clone, Debug)]
pub struct MemoryTransport {
    network: MemoryNetwork,
    cluster: ClusterId,
    member: MemberId,
    heard: Heard,
}

/// A connection from one member to another.
#[derive(Clone, Debug)]
struct Connection {
    from: MemberId,
    to: MemberId,
    seat: Seat,
    there: Gate,
    back: Gate,
    heard: Heard,
}

impl MemoryTransport {
    fn connect(&self, to: MemberId) -> Result<Connection, LinkError> {
        let seat = self.network.inner.members.lock().get(&to).cloned();
        let refused = || LinkError::Unreachable { to, reason: "connection refused".to_owned() };
        let seat = seat.ok_or_else(refused)?;
        let envelope = Envelope { cluster: self.cluster.clone(), from: self.member, to };
        let from = seat
            .service
            .receive(&envelope)
            .map_err(|err| LinkError::Refused { to, reason: err.to_string() })?;
        let gate = |from, to| Gate(self.network.way(from, to).subscribe());
        Ok(Connection {
            from,
            to,
            seat,
            there: gate(self.member, to),
            back: gate(to, self.member),
            heard: self.heard.clone(),
        })
    }
}

impl Connection {
    fn broken(&self) -> LinkError {
        LinkError::Broken { to: self.to, reason: "the connection ended".to_owned() }
    }

    /// There, whatever `work` does, and back, unless the member leaves or the time is over.
    async fn exchange<T>(
        self,
        limit: Duration,
        work: impl Future<Output = Result<T, LinkError>>,
    ) -> Result<T, LinkError> {
        let there_and_back = async {
            self.there.clone().pass().await;
            let result = work.await;
            self.back.clone().pass().await;
            self.heard.note(self.to);
            result
        };
        tokio::select! {
            biased;
            () = self.seat.left.cancelled() => Err(self.broken()),
            result = timeout(limit, there_and_back) => {
                result.unwrap_or(Err(LinkError::TimedOut { to: self.to, limit }))
            }
        }
    }

    fn append(
        self,
        group: GroupId,
        requests: BoxStream<'static, AppendRequest>,
    ) -> Result<AppendAnswers, LinkError> {
        let (there, back, left) = (self.there.clone(), self.back.clone(), self.seat.left.clone());
        let requests = requests
            .map(move |request| there.clone().pass().map(|()| request))
            .buffered(UNDER_WAY)
            .take_until(left.clone().cancelled_owned());
        let answers = self.seat.service.append(self.from, group, requests.boxed())?;
        let (heard, to) = (self.heard.clone(), self.to);
        let answers = answers
            .map(move |answer| back.clone().pass().map(|()| answer))
            .buffered(UNDER_WAY)
            .inspect(move |_| heard.note(to))
            .take_until(left.cancelled_owned());
        Ok(answers.boxed())
    }

    async fn call(self, request: Bytes) -> Result<Bytes, CallError> {
        let to = self.to;
        let mut delivered = false;
        let there_and_back = async {
            self.there.clone().pass().await;
            delivered = true;
            let answer = self.seat.service.call(self.from, request).await;
            self.back.clone().pass().await;
            answer
        };
        let reason = tokio::select! {
            biased;
            () = self.seat.left.cancelled() => "the connection ended",
            answer = there_and_back => {
                self.heard.note(to);
                return Ok(answer);
            }
            () = self.there.clone().silent() => "nothing got through for too long",
            () = self.back.clone().silent() => "nothing came back for too long",
        };
        let reason = reason.to_owned();
        Err(if delivered {
            CallError::Unknown { to, reason }
        } else {
            CallError::NotDelivered { to, reason }
        })
    }
}

impl Transport for MemoryTransport {
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
        let connection = self.connect(to);
        async move { connection?.append(group, requests) }.boxed()
    }

    fn ask(
        &self,
        to: MemberId,
        group: GroupId,
        question: Question,
        limit: Duration,
    ) -> BoxFuture<'static, Result<Answer, LinkError>> {
        let connection = self.connect(to);
        async move {
            let connection = connection?;
            let service = connection.seat.service.clone();
            connection.exchange(limit, service.ask(group, question)).await
        }
        .boxed()
    }

    fn snapshot(
        &self,
        to: MemberId,
        group: GroupId,
        parcel: SnapshotParcel,
        limit: Duration,
    ) -> BoxFuture<'static, Result<SnapshotResponse, LinkError>> {
        let connection = self.connect(to);
        async move {
            let connection = connection?;
            let service = connection.seat.service.clone();
            connection.exchange(limit, service.snapshot(group, parcel)).await
        }
        .boxed()
    }

    fn call(&self, to: MemberId, request: Bytes) -> BoxFuture<'static, Result<Bytes, CallError>> {
        let connection =
            self.connect(to).map_err(|err| CallError::NotDelivered { to, reason: err.to_string() });
        async move { connection?.call(request).await }.boxed()
    }

    fn probe(&self, to: MemberId, limit: Duration) -> BoxFuture<'static, Result<(), LinkError>> {
        let connection = self.connect(to);
        async move { connection?.exchange(limit, async { Ok(()) }).await }.boxed()
    }

    fn heard(&self) -> &Heard {
        &self.heard
    }
}

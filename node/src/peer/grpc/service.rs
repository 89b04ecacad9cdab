//! The receiving side of each call: checks whom it is for, decodes, and hands it to the [`PeerService`].

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures::{StreamExt, future, stream::BoxStream};
use holdfast_partitioner::GroupId;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tonic::{Request, Response, Status, Streaming};

use super::{
    answering::answer_calls,
    wire::{
        self,
        proto::{self, peer_server::Peer, snapshot_part::Part},
    },
};
use crate::{
    peer::{
        service::PeerService,
        told::LastTold,
        transport::{Question, SnapshotParcel},
    },
    raft::types::{AppendRequest, MemberId},
};

/// Largest snapshot that is taken, in bytes; it is held in memory.
const LARGEST_SNAPSHOT: u64 = 4 << 30;
/// How much of a snapshot's announced length is believed before its bytes come.
const TRUSTED_LENGTH: usize = 64 << 20;
/// How long a sender may be silent in the middle of a snapshot.
const SNAPSHOT_SILENCE: Duration = Duration::from_secs(30);

/// What tonic calls.
#[derive(Debug)]
pub(crate) struct Receiver {
    service: PeerService,
    /// Set when the server stops.
    stopping: CancellationToken,
    misdirected: LastTold,
}

impl Receiver {
    pub(crate) fn new(service: PeerService, stopping: CancellationToken) -> Self {
        Self { service, stopping, misdirected: LastTold::default() }
    }

    /// Whom a request is from, if it is for this member.
    fn receive<T>(&self, request: &Request<T>) -> Result<MemberId, Status> {
        if self.stopping.is_cancelled() {
            return Err(wire::refused("the member is stopping"));
        }
        let envelope = wire::envelope(request)?;
        self.service.receive(&envelope).map_err(|err| {
            let reason = err.to_string();
            if self.misdirected.is_news(&reason) {
                tracing::warn!(%reason, "refused a message that is not for this member");
            }
            wire::refused(reason)
        })
    }
}

fn garbled(err: impl ToString) -> Status {
    Status::invalid_argument(err.to_string())
}

#[tonic::async_trait]
impl Peer for Receiver {
    type AppendStream = BoxStream<'static, Result<proto::Message, Status>>;
    type CallsStream = BoxStream<'static, Result<proto::AnswerBatch, Status>>;

    async fn append(
        &self,
        request: Request<Streaming<proto::Message>>,
    ) -> Result<Response<Self::AppendStream>, Status> {
        let from = self.receive(&request)?;
        let mut messages = request.into_inner();
        let service = self.service.clone();
        let stopping = self.stopping.clone();
        // The group stands in the messages, so the first one decides; it comes after the answer's head has gone out.
        let answers = async_stream::stream! {
            let Some(first) = messages.next().await else { return };
            let group = match &first {
                Ok(message) => GroupId(message.group),
                Err(status) => {
                    yield Err(status.clone());
                    return;
                }
            };
            let requests = futures::stream::once(async move { first })
                .chain(messages)
                .scan((), move |(), message| future::ready(decode_append(from, message)));
            match service.append(from, group, requests.boxed()) {
                Ok(mut answers) => {
                    while let Some(answer) = answers.next().await {
                        match answer {
                            Ok(answer) => yield wire::encode(&answer)
                                .map(|body| proto::Message { group: group.0, body })
                                .map_err(garbled),
                            Err(err) => yield Err(wire::status(&err)),
                        }
                    }
                }
                Err(err) => yield Err(wire::status(&err)),
            }
        };
        Ok(Response::new(answers.take_until(stopping.cancelled_owned()).boxed()))
    }

    async fn ask(&self, request: Request<proto::Message>) -> Result<Response<proto::Message>, Status> {
        self.receive(&request)?;
        let proto::Message { group, body } = request.into_inner();
        let question: Question = wire::decode(&body).map_err(garbled)?;
        let answer = self.service.ask(GroupId(group), question).await.map_err(|err| wire::status(&err))?;
        let body = wire::encode(&answer).map_err(garbled)?;
        Ok(Response::new(proto::Message { group, body }))
    }

    async fn snapshot(
        &self,
        request: Request<Streaming<proto::SnapshotPart>>,
    ) -> Result<Response<proto::Message>, Status> {
        let from = self.receive(&request)?;
        let mut parts = request.into_inner();
        let Some(Part::Head(head)) = next_part(&mut parts).await? else {
            return Err(garbled("a snapshot without head"));
        };
        let data = receive_data(&mut parts, &head).await?;
        let (vote, meta) = wire::decode(&head.body).map_err(garbled)?;
        let group = GroupId(head.group);
        tracing::info!(%group, from, bytes = data.len(), "received a snapshot");
        let response = self
            .service
            .snapshot(group, SnapshotParcel { vote, meta, data })
            .await
            .map_err(|err| wire::status(&err))?;
        let body = wire::encode(&response).map_err(garbled)?;
        Ok(Response::new(proto::Message { group: head.group, body }))
    }

    async fn calls(
        &self,
        request: Request<Streaming<proto::CallBatch>>,
    ) -> Result<Response<Self::CallsStream>, Status> {
        let from = self.receive(&request)?;
        let service = self.service.clone();
        let work = move |body| service.call(from, body);
        Ok(Response::new(answer_calls(request.into_inner(), work, self.stopping.clone()).boxed()))
    }

    async fn probe(&self, request: Request<proto::Nothing>) -> Result<Response<proto::Nothing>, Status> {
        self.receive(&request)?;
        Ok(Response::new(proto::Nothing {}))
    }
}

/// An append from a message; `None` ends the stream.
fn decode_append(from: MemberId, message: Result<proto::Message, Status>) -> Option<AppendRequest> {
    let decoded = wire::decode(&message.ok()?.body);
    decoded.inspect_err(|err| tracing::warn!(from, %err, "an append cannot be decoded")).ok()
}

async fn next_part(parts: &mut Streaming<proto::SnapshotPart>) -> Result<Option<Part>, Status> {
    match timeout(SNAPSHOT_SILENCE, parts.message()).await {
        Ok(part) => Ok(part?.and_then(|part| part.part)),
        Err(_) => Err(Status::deadline_exceeded("the snapshot stopped coming")),
    }
}

/// The chunks put together, checked against what the head says.
async fn receive_data(
    parts: &mut Streaming<proto::SnapshotPart>,
    head: &proto::SnapshotHead,
) -> Result<Bytes, Status> {
    if head.length > LARGEST_SNAPSHOT {
        return Err(garbled(format!("a snapshot of {} bytes, more than {LARGEST_SNAPSHOT}", head.length)));
    }
    let length = usize::try_from(head.length).map_err(garbled)?;
    let mut data = BytesMut::with_capacity(length.min(TRUSTED_LENGTH));
    while let Some(part) = next_part(parts).await? {
        let Part::Chunk(chunk) = part else { return Err(garbled("a snapshot with two heads")) };
        if data.len() + chunk.data.len() > length {
            return Err(garbled("a snapshot that is longer than its head says"));
        }
        data.extend_from_slice(&chunk.data);
    }
    if data.len() != length || crc32fast::hash(&data) != head.checksum {
        return Err(garbled("a snapshot that was damaged on the way"));
    }
    Ok(data.freeze())
}

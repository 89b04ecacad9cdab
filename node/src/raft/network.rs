//! openraft's network over a [`Transport`]: one link per target and purpose.

use std::{future::Future, sync::Arc, time::Duration};

use futures::{SinkExt, Stream, StreamExt, channel::mpsc, stream};
use holdfast_partitioner::GroupId;
use openraft::{
    BasicNode, OptionalSend, RPCTypes, RaftNetworkFactory, RaftNetworkV2,
    base::{BoxFuture, BoxStream},
    errors::{NetworkError, RPCError, ReplicationClosed, StreamingError, Timeout, Unreachable},
    network::RPCOption,
    raft::AppendEntriesResponse,
};
use parking_lot::Mutex;
use tokio::time::timeout;

use super::{
    deadline::{Unanswered, with_deadline},
    machine::Shot,
    silence::Silence,
    types::{
        AppendAnswer, AppendRequest, MemberId, SnapshotResponse, TransferRequest, TransferResponse,
        TypeConfig, Vote, VoteRequest, VoteResponse,
    },
};
use crate::peer::transport::{Answer, AppendAnswers, LinkError, Question, SnapshotParcel, Transport};

type RpcError = RPCError<TypeConfig>;
type Answers<'s> = BoxStream<'s, Result<AppendAnswer, RpcError>>;

/// Makes the links of one group.
#[derive(Clone, Debug)]
pub(crate) struct GroupLinks {
    pub(crate) member: MemberId,
    pub(crate) group: GroupId,
    pub(crate) transport: Arc<dyn Transport>,
    /// How long an append may stay unanswered. More than openraft's own limit of a heartbeat: an answer waits for the
    /// far end's disk, and breaking the stream off at each of its pauses would send everything again.
    pub(crate) answer_limit: Duration,
    /// Kept while this member leads without a quorum.
    pub(crate) silence: Silence,
}

impl GroupLinks {
    fn link(&self, target: MemberId, node: &BasicNode, purpose: Purpose) -> Link {
        if !node.addr.is_empty() {
            self.transport.suggest(target, &node.addr);
        }
        Link { links: self.clone(), target, purpose }
    }
}

impl RaftNetworkFactory<TypeConfig> for GroupLinks {
    type Network = Link;

    async fn new_client(&mut self, target: MemberId, node: &BasicNode) -> Link {
        self.link(target, node, Purpose::Replication)
    }

    async fn new_heartbeat_client(&mut self, target: MemberId, node: &BasicNode) -> Link {
        self.link(target, node, Purpose::Heartbeats { open: Mutex::new(None) })
    }
}

/// The way from one group on this member to the same group on another.
pub(crate) struct Link {
    links: GroupLinks,
    target: MemberId,
    purpose: Purpose,
}

/// What a link is used for.
enum Purpose {
    /// Appends, votes, snapshots.
    Replication,
    /// Heartbeats: openraft opens a stream for each, here they share one that stays open.
    Heartbeats {
        /// The stream, while it is in step: as many answers as requests. The mutex is never contended; openraft wants
        /// to share links between threads.
        open: Mutex<Option<HeartbeatStream>>,
    },
}

/// A stream of appends on which one heartbeat at a time goes there and back.
struct HeartbeatStream {
    requests: mpsc::Sender<AppendRequest>,
    answers: AppendAnswers,
}

impl Link {
    async fn ask(&self, question: Question, option: &RPCOption) -> Result<Answer, RpcError> {
        let GroupLinks { group, transport, .. } = &self.links;
        let asked = transport.ask(self.target, *group, question, option.soft_ttl());
        asked.await.map_err(|err| self.rpc_error(err))
    }

    /// Refuses to send what would keep the others from electing a leader that hears them.
    fn unless_silent(&self) -> Result<(), RpcError> {
        if !self.links.silence.kept() {
            return Ok(());
        }
        let reason = "this member leads without a quorum and keeps silent".to_owned();
        Err(self.rpc_error(LinkError::Unreachable { to: self.target, reason }))
    }

    async fn open<S>(&self, requests: S) -> Result<AppendAnswers, RpcError>
    where
        S: Stream<Item = AppendRequest> + Send + 'static,
    {
        let GroupLinks { group, transport, answer_limit, .. } = &self.links;
        let limit = *answer_limit;
        match timeout(limit, transport.append(self.target, *group, requests.boxed())).await {
            Ok(opened) => opened.map_err(|err| self.rpc_error(err)),
            Err(_) => Err(self.rpc_error(LinkError::TimedOut { to: self.target, limit })),
        }
    }

    /// Appends in a stream of their own. An answer that is overdue ends it: without that a lost answer would end
    /// replication for good.
    ///
    /// The first request is taken before the stream is opened: that is where openraft pauses after failures. Refusing
    /// without having taken it would have it try again at once, without end, for as long as the member is away.
    async fn replicate<'s, S>(&'s self, mut input: S) -> Result<Answers<'s>, RpcError>
    where
        S: Stream<Item = AppendRequest> + Send + Unpin + 'static,
    {
        let Some(first) = input.next().await else {
            return Ok(Box::pin(stream::empty()));
        };
        let input = stream::iter([first]).chain(input);
        self.unless_silent()?;
        let unanswered = Unanswered::new();
        let noted = unanswered.clone();
        let answers = self.open(input.inspect(move |_| noted.sent())).await?;
        let answers = with_deadline(self.target, answers, unanswered, self.links.answer_limit);
        Ok(Box::pin(answers.map(|answer| answer.map_err(|err| self.rpc_error(err)))))
    }

    /// One heartbeat. Whoever gives up waiting for it gives up the stream as well, because it is out of step then.
    async fn beat(&mut self, request: AppendRequest, limit: Duration) -> Result<AppendAnswer, RpcError> {
        let kept = match &mut self.purpose {
            Purpose::Replication => None,
            Purpose::Heartbeats { open } => open.get_mut().take(),
        };
        let mut stream = match kept {
            Some(stream) => stream,
            None => {
                let (requests, sent) = mpsc::channel(1);
                HeartbeatStream { requests, answers: self.open(sent).await? }
            }
        };
        let broken = |reason: &str| LinkError::Broken { to: self.target, reason: reason.to_owned() };
        let answer = match stream.requests.send(request).await {
            Err(_) => Err(broken("the stream of heartbeats has ended")),
            Ok(()) => match timeout(limit, stream.answers.next()).await {
                Ok(Some(answer)) => answer,
                Ok(None) => Err(broken("the stream of heartbeats has ended")),
                Err(_) => Err(LinkError::TimedOut { to: self.target, limit }),
            },
        };
        let answer = answer.map_err(|err| self.rpc_error(err))?;
        // The far end closes the stream behind a refusal.
        if let (Ok(_), Purpose::Heartbeats { open }) = (&answer, &mut self.purpose) {
            *open.get_mut() = Some(stream);
        }
        Ok(answer)
    }

    fn rpc_error(&self, err: LinkError) -> RpcError {
        match err {
            // openraft waits longer and longer before it tries these again.
            LinkError::Unreachable { .. } | LinkError::Refused { .. } => {
                RpcError::Unreachable(Unreachable::from_string(&err))
            }
            LinkError::TimedOut { to, limit } => RpcError::Timeout(Timeout {
                action: RPCTypes::AppendEntries,
                id: self.links.member,
                target: to,
                timeout: limit,
            }),
            LinkError::Broken { .. } => RpcError::Network(NetworkError::from_string(&err)),
        }
    }

    fn no_such_answer(&self) -> RpcError {
        let reason = "the answer is to another question".to_owned();
        self.rpc_error(LinkError::Broken { to: self.target, reason })
    }
}

impl RaftNetworkV2<TypeConfig> for Link {
    type SnapshotData = bytes::Bytes;

    async fn append_entries(
        &mut self,
        request: AppendRequest,
        option: RPCOption,
    ) -> Result<AppendEntriesResponse<TypeConfig>, RpcError> {
        self.beat(request, option.soft_ttl()).await.map(AppendEntriesResponse::from)
    }

    fn stream_append<'s, S>(
        &'s mut self,
        mut input: S,
        option: RPCOption,
    ) -> BoxFuture<'s, Result<Answers<'s>, RpcError>>
    where
        S: Stream<Item = AppendRequest> + OptionalSend + Unpin + 'static,
    {
        Box::pin(async move {
            match &self.purpose {
                Purpose::Replication => self.replicate(input).await,
                Purpose::Heartbeats { .. } => {
                    let Some(request) = input.next().await else {
                        return Ok(Box::pin(stream::empty()) as Answers<'s>);
                    };
                    let answer = self.beat(request, option.soft_ttl()).await?;
                    Ok(Box::pin(stream::iter([Ok(answer)])) as Answers<'s>)
                }
            }
        })
    }

    async fn vote(&mut self, request: VoteRequest, option: RPCOption) -> Result<VoteResponse, RpcError> {
        match self.ask(Question::Vote(request), &option).await? {
            Answer::Vote(response) => Ok(response),
            Answer::Transfer(_) => Err(self.no_such_answer()),
        }
    }

    async fn pre_vote(&mut self, request: VoteRequest, option: RPCOption) -> Result<VoteResponse, RpcError> {
        match self.ask(Question::PreVote(request), &option).await? {
            Answer::Vote(response) => Ok(response),
            Answer::Transfer(_) => Err(self.no_such_answer()),
        }
    }

    async fn full_snapshot(
        &mut self,
        vote: Vote,
        snapshot: Shot,
        cancel: impl Future<Output = ReplicationClosed> + OptionalSend + 'static,
        option: RPCOption,
    ) -> Result<SnapshotResponse, StreamingError<TypeConfig>> {
        self.unless_silent()?;
        let GroupLinks { group, transport, .. } = &self.links;
        let parcel = SnapshotParcel { vote, meta: snapshot.meta, data: snapshot.snapshot };
        let sent = transport.snapshot(self.target, *group, parcel, option.soft_ttl());
        tokio::select! {
            biased;
            closed = cancel => Err(StreamingError::Closed(closed)),
            response = sent => response.map_err(|err| self.rpc_error(err).into()),
        }
    }

    async fn transfer_leader(
        &mut self,
        request: TransferRequest,
        option: RPCOption,
    ) -> Result<TransferResponse, RpcError> {
        match self.ask(Question::Transfer(request), &option).await? {
            Answer::Transfer(response) => Ok(response),
            Answer::Vote(_) => Err(self.no_such_answer()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;
    use crate::peer::{Heard, MemoryNetwork};

    /// A link to a member that is not there.
    fn dead_end() -> Link {
        let transport = MemoryNetwork::new().transport("test".parse().unwrap(), 1, Heard::new());
        let links = GroupLinks {
            member: 1,
            group: GroupId(1),
            transport: Arc::new(transport),
            answer_limit: Duration::from_secs(1),
            silence: Silence::default(),
        };
        links.link(2, &BasicNode::default(), Purpose::Replication)
    }

    #[tokio::test]
    async fn a_refusal_comes_after_the_pause_before_the_first_request() {
        let paused = Arc::new(AtomicBool::new(false));
        let noted = paused.clone();
        let request = stream::once(async move {
            noted.store(true, Ordering::Relaxed);
            AppendRequest {
                vote: Vote::new(1, 1),
                prev_log_id: None,
                entries: Vec::new(),
                leader_commit: None,
            }
        });
        let mut link = dead_end();
        let answers = link.stream_append(Box::pin(request), RPCOption::new(Duration::from_secs(1))).await;
        assert!(matches!(answers, Err(RpcError::Unreachable(_))));
        assert!(paused.load(Ordering::Relaxed), "openraft had no chance to pause");
    }
}

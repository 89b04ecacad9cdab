//! Members that follow a script. Each test plays the server's part: it gets the streams that clients open, and answers.

use std::{
    collections::{BTreeMap, VecDeque},
    io,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use futures::future::BoxFuture;
use holdfast_client::{Channel, ChannelError, ChannelFactory, Client, Clock, Session};
use holdfast_proto::{
    status::with_error,
    v1::{self, session_request::Body as Ask, session_response::Body as Answer},
};
use hyper_util::rt::TokioIo;
use tokio::{
    io::DuplexStream,
    sync::mpsc::{self, UnboundedReceiver, UnboundedSender},
    task::AbortHandle,
};
use tokio_stream::wrappers::{ReceiverStream, UnboundedReceiverStream};
use tonic::{
    Code, Request, Response, Status, Streaming,
    transport::{Endpoint, Server, Uri},
};

use crate::wait::within;

pub(crate) const TTL: Duration = Duration::from_secs(10);
pub(crate) const SESSION: u64 = 0x1f;

/// How a member answers attempts to connect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    Up,
    Refusing,
    Silent,
}

#[derive(Debug)]
struct Member {
    mode: Mode,
    connections: UnboundedSender<io::Result<DuplexStream>>,
    /// Carry the bytes of open connections.
    cables: Vec<AbortHandle>,
}

/// The network: members by number.
#[derive(Clone, Debug, Default)]
pub(crate) struct Net {
    members: Arc<Mutex<Vec<Member>>>,
}

impl Net {
    fn members(&self) -> MutexGuard<'_, Vec<Member>> {
        self.members.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn set(&self, member: usize, mode: Mode) {
        self.members()[member].mode = mode;
    }

    pub(crate) fn set_all(&self, mode: Mode) {
        self.members().iter_mut().for_each(|member| member.mode = mode);
    }

    /// Breaks all connections, and lets new ones be answered so.
    pub(crate) fn cut(&self, mode: Mode) {
        for member in self.members().iter_mut() {
            member.mode = mode;
            member.cables.drain(..).for_each(|cable| cable.abort());
        }
    }

    async fn dial(self, member: usize) -> io::Result<TokioIo<DuplexStream>> {
        let mode = self.members()[member].mode;
        match mode {
            Mode::Silent => std::future::pending().await,
            Mode::Refusing => Err(io::Error::from(io::ErrorKind::ConnectionRefused)),
            Mode::Up => {
                let (ours, mut left) = tokio::io::duplex(1 << 16);
                let (mut right, theirs) = tokio::io::duplex(1 << 16);
                let cable =
                    tokio::spawn(async move { tokio::io::copy_bidirectional(&mut left, &mut right).await });
                let member = &mut self.members()[member];
                member.cables.push(cable.abort_handle());
                let _ = member.connections.send(Ok(theirs));
                Ok(TokioIo::new(ours))
            }
        }
    }
}

impl ChannelFactory for Net {
    fn connect<'a>(&'a self, endpoint: &'a str) -> BoxFuture<'a, Result<Channel, ChannelError>> {
        Box::pin(async move {
            let failed = |error: &dyn std::fmt::Display| ChannelError::new(error.to_string());
            let uri: Uri = endpoint.parse().map_err(|error| failed(&error))?;
            let member = uri.port_u16().map_or(0, usize::from);
            let net = self.clone();
            let connector = tower::service_fn(move |_: Uri| net.clone().dial(member));
            Endpoint::from(uri).connect_with_connector(connector).await.map_err(|error| failed(&error))
        })
    }
}

/// A session stream as the member sees it.
pub(crate) struct Stream {
    pub(crate) member: usize,
    inbox: Streaming<v1::SessionRequests>,
    /// What came with the last message and is not taken yet.
    pending: VecDeque<v1::SessionRequest>,
    /// Who asked: sequences with their sessions.
    pub(crate) asked: BTreeMap<u64, u64>,
    outbox: mpsc::Sender<Result<v1::SessionResponses, Status>>,
    /// What keepalives are answered with by [`Self::call`] and [`Self::drive`].
    pub(crate) groups: Vec<(u32, v1::LeaseState)>,
}

impl Stream {
    /// The next message, keepalives included.
    pub(crate) async fn next(&mut self) -> (u64, Ask) {
        within("a message", self.try_next()).await.expect("an open stream")
    }

    /// The next message; `None` when the client has given the stream up.
    async fn try_next(&mut self) -> Option<(u64, Ask)> {
        while self.pending.is_empty() {
            self.pending.extend(self.inbox.message().await.ok()??.requests);
        }
        let message = self.pending.pop_front()?;
        self.asked.insert(message.sequence, message.session);
        Some((message.sequence, message.body.expect("a body")))
    }

    /// The next message that is no keepalive; those are answered.
    pub(crate) async fn call(&mut self) -> (u64, Ask) {
        loop {
            match self.next().await {
                (sequence, Ask::Keepalive(_)) => self.ack(sequence).await,
                other => return other,
            }
        }
    }

    /// Answers keepalives for as long as something takes; any other message is a surprise.
    pub(crate) async fn drive<T>(&mut self, future: impl Future<Output = T>) -> T {
        tokio::pin!(future);
        loop {
            tokio::select! {
                biased;
                done = &mut future => return done,
                (sequence, body) = self.next() => match body {
                    Ask::Keepalive(_) => self.ack(sequence).await,
                    other => panic!("unexpected {other:?}"),
                },
            }
        }
    }

    /// Answers keepalives until the client gives the stream up.
    pub(crate) async fn serve(&mut self) {
        while let Some((sequence, ask)) = self.try_next().await {
            if let Ask::Keepalive(_) = ask {
                self.ack(sequence).await;
            }
        }
    }

    pub(crate) async fn answer(&self, sequence: u64, body: Answer) {
        let session = self.asked.get(&sequence).copied().unwrap_or(SESSION);
        let response = v1::SessionResponse { sequence, session, body: Some(body) };
        let _ = self.outbox.send(Ok(v1::SessionResponses { responses: vec![response] })).await;
    }

    pub(crate) async fn ack(&self, sequence: u64) {
        let groups = self.groups.iter().map(|(group, state)| v1::GroupLease {
            group: *group,
            state: (*state).into(),
            epoch: 0,
        });
        let ack = v1::KeepaliveAck { ttl_ms: 10_000, groups: groups.collect() };
        self.answer(sequence, Answer::KeepaliveAck(ack)).await;
    }

    pub(crate) async fn grant(&self, sequence: u64, token: u64, group: u32) {
        self.answer(sequence, Answer::Granted(v1::Granted { token, group, epoch: 0 })).await;
    }

    pub(crate) async fn refuse(&self, sequence: u64, code: &str) {
        self.answer(sequence, Answer::Error(error(code))).await;
    }

    /// The next call, which must be an acquire.
    pub(crate) async fn acquire(&mut self) -> (u64, v1::Acquire) {
        match self.call().await {
            (sequence, Ask::Acquire(acquire)) => (sequence, acquire),
            (_, other) => panic!("no acquire but {other:?}"),
        }
    }

    /// The next call, which must be a release.
    pub(crate) async fn release(&mut self) -> (u64, v1::Release) {
        match self.call().await {
            (sequence, Ask::Release(release)) => (sequence, release),
            (_, other) => panic!("no release but {other:?}"),
        }
    }

    /// The next call, which must be a cancel.
    pub(crate) async fn cancel(&mut self) -> (u64, v1::Cancel) {
        match self.call().await {
            (sequence, Ask::Cancel(cancel)) => (sequence, cancel),
            (_, other) => panic!("no cancel but {other:?}"),
        }
    }
}

pub(crate) fn error(code: &str) -> v1::Error {
    v1::Error { code: code.into(), message: format!("it is {code}"), facts: None }
}

/// A watch as the member sees it.
pub(crate) struct Watcher {
    pub(crate) request: v1::WatchRequest,
    pub(crate) events: mpsc::Sender<Result<v1::WatchResponse, Status>>,
}

/// An observer as the member sees it.
pub(crate) type Observer = mpsc::Sender<Result<v1::ObserveResponse, Status>>;

struct Script {
    member: usize,
    streams: UnboundedSender<Stream>,
    watches: UnboundedSender<Watcher>,
    observers: UnboundedSender<Observer>,
}

#[tonic::async_trait]
impl v1::lock_server::Lock for Script {
    type SessionsStream = ReceiverStream<Result<v1::SessionResponses, Status>>;
    type WatchStream = ReceiverStream<Result<v1::WatchResponse, Status>>;
    type ObserveStream = ReceiverStream<Result<v1::ObserveResponse, Status>>;

    async fn sessions(
        &self,
        request: Request<Streaming<v1::SessionRequests>>,
    ) -> Result<Response<Self::SessionsStream>, Status> {
        let (outbox, answers) = mpsc::channel(64);
        let groups = vec![(1, v1::LeaseState::Renewed)];
        let (inbox, pending, asked) = (request.into_inner(), VecDeque::new(), BTreeMap::new());
        let stream = Stream { member: self.member, inbox, pending, asked, outbox, groups };
        let _ = self.streams.send(stream);
        Ok(Response::new(ReceiverStream::new(answers)))
    }

    async fn watch(&self, request: Request<v1::WatchRequest>) -> Result<Response<Self::WatchStream>, Status> {
        let (events, answers) = mpsc::channel(64);
        let _ = self.watches.send(Watcher { request: request.into_inner(), events });
        Ok(Response::new(ReceiverStream::new(answers)))
    }

    async fn observe(&self, _: Request<v1::ObserveRequest>) -> Result<Response<Self::ObserveStream>, Status> {
        let (observer, answers) = mpsc::channel(64);
        let _ = self.observers.send(observer);
        Ok(Response::new(ReceiverStream::new(answers)))
    }

    async fn leader(&self, request: Request<v1::LeaderRequest>) -> Result<Response<v1::LeaderView>, Status> {
        match request.into_inner().name.as_str() {
            "nobody" => Err(with_error(Code::NotFound, &error("not_found"))),
            name => {
                Ok(Response::new(v1::LeaderView { name: name.into(), token: 7, ..v1::LeaderView::default() }))
            }
        }
    }

    async fn list_locks(
        &self,
        _: Request<v1::ListLocksRequest>,
    ) -> Result<Response<v1::ListLocksResponse>, Status> {
        let group = u32::try_from(self.member).unwrap_or_default();
        let lock = v1::LockView { name: "a".into(), group, holder: None, waiters: 0 };
        Ok(Response::new(v1::ListLocksResponse { locks: vec![lock], ..v1::ListLocksResponse::default() }))
    }

    async fn get_lock(&self, _: Request<v1::GetLockRequest>) -> Result<Response<v1::LockDetail>, Status> {
        Err(with_error(Code::Unavailable, &error("no_leader")))
    }
}

/// Some members, and a client of them.
pub(crate) struct Fake {
    pub(crate) net: Net,
    pub(crate) client: Client,
    pub(crate) streams: UnboundedReceiver<Stream>,
    pub(crate) watches: UnboundedReceiver<Watcher>,
    pub(crate) observers: UnboundedReceiver<Observer>,
}

impl Fake {
    pub(crate) fn start(members: usize) -> Self {
        let net = Net::default();
        let (streams, streams_of) = mpsc::unbounded_channel();
        let (watches, watches_of) = mpsc::unbounded_channel();
        let (observers, observers_of) = mpsc::unbounded_channel();
        for member in 0..members {
            let (connections, incoming) = mpsc::unbounded_channel();
            net.members().push(Member { mode: Mode::Up, connections, cables: Vec::new() });
            let (streams, watches, observers) = (streams.clone(), watches.clone(), observers.clone());
            let script = Script { member, streams, watches, observers };
            let server = Server::builder().add_service(v1::lock_server::LockServer::new(script));
            tokio::spawn(server.serve_with_incoming(UnboundedReceiverStream::new(incoming)));
        }
        let client = Client::builder()
            .endpoints((0..members).map(|member| format!("http://member:{member}")))
            .channels(net.clone())
            .clock(Clock::tokio())
            .seed(1)
            .build()
            .expect("a client");
        Self { net, client, streams: streams_of, watches: watches_of, observers: observers_of }
    }

    /// The next stream that a client opens.
    pub(crate) async fn stream(&mut self) -> Stream {
        within("a stream", self.streams.recv()).await.expect("members")
    }

    /// The next stream, which must resume the session; answers what it says it holds.
    pub(crate) async fn resumed(&mut self) -> (Stream, v1::Resume) {
        let mut stream = self.stream().await;
        match stream.next().await {
            (sequence, Ask::Resume(resume)) => {
                assert_eq!(stream.asked.get(&sequence), Some(&SESSION));
                stream.answer(sequence, Answer::Resumed(v1::Resumed {})).await;
                (stream, resume)
            }
            (_, other) => panic!("no resume but {other:?}"),
        }
    }

    /// Opens a session with a TTL of 10 s.
    pub(crate) async fn session(&mut self) -> (Session, Stream) {
        let opening = tokio::spawn(self.client.session().ttl(TTL).open());
        let mut stream = self.stream().await;
        let (sequence, Ask::Open(_)) = stream.next().await else { panic!("no open") };
        stream.answer(sequence, Answer::Opened(v1::Opened { session: SESSION, ttl_ms: 10_000 })).await;
        let session = opening.await.expect("a task").expect("a session");
        (session, stream)
    }
}

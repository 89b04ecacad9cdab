//! A cluster in one process, over either transport and either log.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use futures::{FutureExt, future::BoxFuture};
use holdfast_locktable::{
    codec::encode_proposal,
    command::{Command, OpenSession, Proposal},
    ids::SessionId,
    metadata::Metadata,
    outcome::Applied,
    table::{LockTable, Position},
};
use holdfast_node::snapshot::local::{MemorySnapshots, RaftSnapshots};
use holdfast_node::{
    actors::{ActorHost, Role},
    log::{
        actor::{CloseLog, LogActor, LogOptions},
        group_number::GroupNumber,
        handle::LogHandle,
        identity::{ClusterId, LogIdentity},
        memory::{FlushMode, MemoryLog},
        opener::LogOpener,
    },
    meta::{AuditRecord, MetaApplied, MetaCommand, MetaTable, encode_command},
    peer::{
        CallHandler, GrpcTransport, Heard, MemoryNetwork, PeerServer, PeerService, Transport, memory::Way,
    },
    raft::{
        group::{GroupOptions, RaftGroup},
        observe::RaftObserver,
        sink::ApplySink,
        table::Machine,
        timing::Timing,
        types::{MemberId, Reply},
    },
};
use holdfast_partitioner::GroupId;
use parking_lot::Mutex;
use tokio::{net::TcpListener, time::Instant};

pub(crate) const META: GroupId = GroupId::META;
pub(crate) const LOCKS: GroupId = GroupId(1);
/// How long anything may take that is expected to happen. Generous: other tests share the cores.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) fn cluster() -> ClusterId {
    "test".parse().unwrap()
}

/// Fast enough for tests, slow enough for busy cores.
pub(crate) fn timing() -> Timing {
    Timing {
        heartbeat_interval: Duration::from_millis(50),
        election_timeout_min: Duration::from_millis(300),
        election_timeout_max: Duration::from_millis(600),
    }
}

/// Waits until a condition holds.
pub(crate) async fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < deadline, "{what} did not happen within {PATIENCE:?}");
        crate::wait::look_again().await;
    }
}

/// Remembers what it was told.
#[derive(Debug)]
pub(crate) struct Recorded<A> {
    applied: Mutex<Vec<(Position, A)>>,
    pub(crate) restored: AtomicUsize,
}

impl<A> Default for Recorded<A> {
    fn default() -> Self {
        Self { applied: Mutex::default(), restored: AtomicUsize::default() }
    }
}

impl<A: Clone> Recorded<A> {
    pub(crate) fn seen(&self) -> Vec<(Position, A)> {
        self.applied.lock().clone()
    }
}

impl<A: std::fmt::Debug + Send + 'static> ApplySink<A> for Recorded<A> {
    fn applied(&self, batch: Vec<(Position, A)>) {
        self.applied.lock().extend(batch);
    }

    fn restored(&self) {
        self.restored.fetch_add(1, Ordering::SeqCst);
    }
}

/// Counts rounds of proof.
#[derive(Debug, Default)]
pub(crate) struct Counting {
    pub(crate) rounds: AtomicUsize,
    pub(crate) batches: AtomicUsize,
}

impl RaftObserver for Counting {
    fn proposed(&self, _commands: usize) {
        self.batches.fetch_add(1, Ordering::SeqCst);
    }

    fn confirmed(&self, _callers: usize, _took: Duration, _success: bool) {
        self.rounds.fetch_add(1, Ordering::SeqCst);
    }
}

/// Answers each call with the same bytes.
#[derive(Debug)]
pub(crate) struct Echo;

impl CallHandler for Echo {
    fn call(&self, _from: MemberId, request: Bytes) -> BoxFuture<'static, Bytes> {
        async move { request }.boxed()
    }
}

/// What a member keeps over its restarts.
#[derive(Clone, Debug)]
pub(crate) enum Disk {
    Memory(MemoryLog),
    Folder(Arc<tempfile::TempDir>),
}

/// An open log.
enum OpenLog {
    Memory(MemoryLog),
    Sqlite(LogOpener, actix::Addr<LogActor>),
}

impl OpenLog {
    async fn group(&self, group: GroupId) -> LogHandle {
        let group = GroupNumber::new(group.0).unwrap();
        match self {
            OpenLog::Memory(log) => log.open_group(group).unwrap(),
            OpenLog::Sqlite(opener, _) => opener.open_group(group).await.unwrap(),
        }
    }
}

/// A member that runs.
pub(crate) struct Member {
    pub(crate) id: MemberId,
    pub(crate) service: PeerService,
    pub(crate) transport: Arc<dyn Transport>,
    pub(crate) groups: BTreeMap<GroupId, RaftGroup>,
    pub(crate) meta: Arc<Recorded<MetaApplied>>,
    pub(crate) locks: BTreeMap<GroupId, Arc<Recorded<Applied>>>,
    pub(crate) observer: Arc<Counting>,
    log: OpenLog,
    server: Option<PeerServer>,
}

impl Member {
    pub(crate) fn group(&self, group: GroupId) -> &RaftGroup {
        &self.groups[&group]
    }
}

/// A cluster in one process.
pub(crate) struct Cluster {
    pub(crate) ids: Vec<MemberId>,
    pub(crate) members: BTreeMap<MemberId, Member>,
    pub(crate) disks: BTreeMap<MemberId, Disk>,
    pub(crate) network: Option<MemoryNetwork>,
    group_ids: Vec<GroupId>,
    snapshots: BTreeMap<MemberId, MemorySnapshots>,
    addresses: BTreeMap<MemberId, String>,
    actors: ActorHost,
}

impl Cluster {
    /// Three members over the in-memory network, with logs in memory.
    pub(crate) async fn in_memory(groups: &[GroupId]) -> Self {
        let disk = || Disk::Memory(MemoryLog::new(FlushMode::Immediate));
        Self::new(Some(MemoryNetwork::new()), disk, groups).await
    }

    /// Three members over loopback sockets, with logs on disk.
    pub(crate) async fn on_sockets(groups: &[GroupId]) -> Self {
        let disk = || Disk::Folder(Arc::new(tempfile::tempdir().unwrap()));
        Self::new(None, disk, groups).await
    }

    async fn new(network: Option<MemoryNetwork>, disk: impl Fn() -> Disk, groups: &[GroupId]) -> Self {
        let ids = vec![1, 2, 3];
        let mut cluster = Self {
            disks: ids.iter().map(|id| (*id, disk())).collect(),
            members: BTreeMap::new(),
            network,
            group_ids: groups.to_vec(),
            snapshots: BTreeMap::new(),
            addresses: BTreeMap::new(),
            actors: ActorHost::threads().unwrap(),
            ids: ids.clone(),
        };
        for id in &ids {
            cluster.start(*id).await;
        }
        // On one member only: each that does it stands for election at once.
        for group in groups {
            cluster.members[&1].group(*group).initialize(cluster.voters()).await.unwrap();
        }
        cluster
    }

    pub(crate) fn voters(&self) -> BTreeMap<MemberId, String> {
        self.ids.iter().map(|id| (*id, self.addresses.get(id).cloned().unwrap_or_default())).collect()
    }

    /// Starts a member, again or for the first time.
    pub(crate) async fn start(&mut self, id: MemberId) {
        let heard = Heard::new();
        let service = PeerService::new(cluster(), id, Arc::new(Echo), heard.clone());
        let (transport, server) = self.connect(id, &service, heard).await;
        let log = self.open_log(id).await;
        let mut member = Member {
            id,
            service,
            transport,
            groups: BTreeMap::new(),
            meta: Arc::default(),
            locks: BTreeMap::new(),
            observer: Arc::default(),
            log,
            server,
        };
        for group in self.group_ids.clone() {
            let machine = match group {
                META => Machine::Meta { table: MetaTable::new(), sink: Arc::clone(&member.meta) as _ },
                group => {
                    let sink = Arc::new(Recorded::default());
                    member.locks.insert(group, Arc::clone(&sink));
                    Machine::Locks { table: LockTable::new(group), sink }
                }
            };
            let options = GroupOptions {
                id: group,
                member: id,
                timing: timing(),
                snapshots: self.snapshots(id, group),
                transport: Arc::clone(&member.transport),
                machine,
                observer: Arc::clone(&member.observer) as _,
            };
            let raft = RaftGroup::start(options, member.log.group(group).await).await.unwrap();
            member.service.add_group(raft.clone());
            member.groups.insert(group, raft);
        }
        self.members.insert(id, member);
    }

    fn snapshots(&mut self, id: MemberId, group: GroupId) -> RaftSnapshots {
        let group = GroupNumber::new(group.0).unwrap();
        match &self.disks[&id] {
            Disk::Memory(_) => RaftSnapshots::in_memory(self.snapshots.entry(id).or_default(), group),
            Disk::Folder(folder) => RaftSnapshots::in_folder(folder.path(), group),
        }
    }

    async fn connect(
        &mut self,
        id: MemberId,
        service: &PeerService,
        heard: Heard,
    ) -> (Arc<dyn Transport>, Option<PeerServer>) {
        if let Some(network) = &self.network {
            network.join(service.clone());
            return (Arc::new(network.transport(cluster(), id, heard)), None);
        }
        let address = self.addresses.get(&id).cloned().unwrap_or("127.0.0.1:0".to_owned());
        let listener = TcpListener::bind(address).await.unwrap();
        let server = PeerServer::start(listener, service.clone()).unwrap();
        self.addresses.insert(id, server.address().to_string());
        // The others' addresses come with the group's membership.
        (Arc::new(GrpcTransport::new(cluster(), id, heard)), Some(server))
    }

    async fn open_log(&self, id: MemberId) -> OpenLog {
        match &self.disks[&id] {
            Disk::Memory(log) => OpenLog::Memory(log.clone()),
            Disk::Folder(folder) => {
                let actor = LogActor::open(LogOptions {
                    folder: folder.path().to_owned(),
                    identity: LogIdentity { cluster: cluster(), member: id },
                    size_limit_bytes: None,
                    on_commit: None,
                })
                .unwrap();
                let opener = actor.opener();
                OpenLog::Sqlite(opener, self.actors.spawn_actor(Role::Log, actor))
            }
        }
    }

    /// Ends a member as the end of its process does; what is on its disk stays.
    pub(crate) async fn kill(&mut self, id: MemberId) {
        let member = self.members.remove(&id).unwrap();
        if let Some(network) = &self.network {
            network.leave(id);
        }
        if let Some(server) = member.server {
            server.stop().await;
        }
        for group in member.groups.values() {
            group.shutdown().await;
        }
        match member.log {
            OpenLog::Memory(log) => log.crash(),
            OpenLog::Sqlite(_, actor) => actor.send(CloseLog).await.unwrap().unwrap(),
        }
    }

    /// The member that leads the group and is ready to, once there is one among those given.
    pub(crate) async fn leader_among(&self, group: GroupId, among: &[MemberId]) -> MemberId {
        let mut found = None;
        eventually("a leader", || {
            found = among.iter().copied().find(|id| {
                let member = self.members.get(id);
                member.is_some_and(|member| member.group(group).leadership().borrow().here)
            });
            found.is_some()
        })
        .await;
        found.unwrap()
    }

    pub(crate) async fn leader(&self, group: GroupId) -> &Member {
        let id = self.leader_among(group, &self.ids).await;
        &self.members[&id]
    }

    /// Has a [`line`] or an [`open_session`] executed once, by whoever leads: on busy cores that may change at any
    /// time, also while the command is being agreed on.
    pub(crate) async fn write(&self, group: GroupId, command: Bytes) {
        let running: Vec<MemberId> = self.members.keys().copied().collect();
        loop {
            let leader = self.leader_among(group, &running).await;
            match self.members[&leader].group(group).propose(command.clone()).await {
                Ok(Reply::Meta(result)) => return assert!(result.is_ok(), "{result:?}"),
                Ok(Reply::Lock { result, .. }) => return assert!(result.is_ok(), "{result:?}"),
                Ok(Reply::Nothing) => panic!("the command was not applied"),
                Err(err) if err.not_executed() => {}
                Err(_) if self.was_executed(group, &running, &command).await => return,
                Err(_) => {}
            }
            // `leader_among` finds the same member again until it knows better.
            crate::wait::look_again().await;
        }
    }

    /// Whether a command is part of what a leader has agreed on since its outcome became unknown; what such a leader
    /// does not know can no longer be agreed on.
    async fn was_executed(&self, group: GroupId, running: &[MemberId], command: &Bytes) -> bool {
        loop {
            let leader = self.leader_among(group, running).await;
            let leader = self.members[&leader].group(group);
            if leader.confirm_leadership().await.is_ok() {
                return if group.is_meta() {
                    let is = |record: &AuditRecord| *command == recording(record.clone());
                    leader.with_meta(|table, _| table.audit(usize::MAX).any(|line| is(line.record))).unwrap()
                } else {
                    let is = |id: SessionId| *command == open_session(id.get());
                    let is_there = |table: &LockTable| {
                        table.sessions(None, usize::MAX).0.iter().any(|session| is(session.session))
                    };
                    leader.with_locks(|table, _| is_there(table)).unwrap()
                };
            }
            crate::wait::look_again().await;
        }
    }

    pub(crate) fn others(&self, than: MemberId) -> Vec<MemberId> {
        self.ids.iter().copied().filter(|id| *id != than).collect()
    }

    /// Cuts a member off from the others, or lets it back.
    pub(crate) fn isolate(&self, id: MemberId, cut: bool) {
        let way = Way { cut, delay: Duration::ZERO };
        self.network.as_ref().unwrap().set_isolated(id, &self.ids, way);
    }

    pub(crate) fn set_way(&self, from: MemberId, to: MemberId, way: Way) {
        self.network.as_ref().unwrap().set_way(from, to, way);
    }

    /// Waits until all running members have applied what was acknowledged before.
    pub(crate) async fn settle(&self, group: GroupId) {
        let applied = |member: &Member| member.group(group).status().applied;
        let most = self.members.values().map(applied).max().unwrap();
        for member in self.members.values() {
            let reached = tokio::time::timeout(PATIENCE, member.group(group).applied(most));
            reached.await.unwrap_or_else(|_| panic!("member {} did not reach entry {most}", member.id));
        }
    }
}

/// A line for the audit log that can be told from all others.
pub(crate) fn line(n: u64) -> Bytes {
    big_line(n, 0)
}

/// A line of some size.
pub(crate) fn big_line(n: u64, padding: usize) -> Bytes {
    let record = AuditRecord {
        at_ms: n,
        actor: "a".into(),
        action: "b".into(),
        target: n.to_string(),
        reason: "x".repeat(padding),
        outcome: "ok".into(),
    };
    recording(record)
}

fn recording(record: AuditRecord) -> Bytes {
    encode_command(&MetaCommand::Record(record)).unwrap().into()
}

/// Opens a session.
pub(crate) fn open_session(id: u64) -> Bytes {
    let session = SessionId::new(id).unwrap();
    let open = OpenSession { session, ttl_ms: 10_000, metadata: Metadata::default() };
    encode_proposal(&Proposal { at_ms: id, command: Command::OpenSession(open) }).into()
}

/// The lines of a member's audit log by number.
pub(crate) fn lines(group: &RaftGroup) -> Vec<u64> {
    group.with_meta(|table, _| table.audit(usize::MAX).map(|line| line.record.at_ms).collect()).unwrap()
}

/// A group that was never given voters.
pub(crate) async fn lonely_group(cluster: &Cluster) -> RaftGroup {
    let log = MemoryLog::new(FlushMode::Immediate).open_group(GroupNumber::new(0).unwrap()).unwrap();
    let options = GroupOptions {
        id: META,
        member: 1,
        timing: timing(),
        snapshots: RaftSnapshots::in_memory(&MemorySnapshots::default(), GroupNumber::new(0).unwrap()),
        transport: Arc::clone(&cluster.members[&1].transport),
        machine: Machine::Meta { table: MetaTable::new(), sink: Arc::new(Recorded::default()) },
        observer: Arc::new(Counting::default()),
    };
    RaftGroup::start(options, log).await.unwrap()
}

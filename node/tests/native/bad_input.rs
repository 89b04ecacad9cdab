//! What breaks a rule of the protocol is refused with words, changes nothing, and does not end the stream.

use std::{
    collections::{HashMap, VecDeque},
    time::Duration,
};

use holdfast_proto::{
    status::error_of,
    v1::{
        self, admin_client::AdminClient, lock_client::LockClient, session_request::Body as Ask,
        session_response::Body as Answer,
    },
};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{
    Status, Streaming,
    transport::{Channel, Endpoint},
};

use crate::{
    cluster::Cluster,
    wait::{pass, within},
};

/// A stream without a client library.
struct Raw {
    outbox: mpsc::Sender<v1::SessionRequests>,
    inbox: Streaming<v1::SessionResponses>,
    pending: VecDeque<v1::SessionResponse>,
    /// The session that was opened last.
    session: u64,
}

impl Raw {
    async fn open(channel: Channel) -> Self {
        let (outbox, messages) = mpsc::channel(16);
        let answer =
            LockClient::new(channel).sessions(ReceiverStream::new(messages)).await.expect("a stream");
        Self { outbox, inbox: answer.into_inner(), pending: VecDeque::new(), session: 0 }
    }

    async fn ask(&mut self, sequence: u64, body: Ask) -> Answer {
        let session = if matches!(body, Ask::Open(_)) { 0 } else { self.session };
        let (of, answer) = self.ask_of(session, sequence, body).await;
        assert_eq!(of, session);
        if let Answer::Opened(opened) = &answer {
            self.session = opened.session;
        }
        answer
    }

    /// Asks for any session; the answer comes with the session it is for.
    async fn ask_of(&mut self, session: u64, sequence: u64, body: Ask) -> (u64, Answer) {
        let requests = vec![v1::SessionRequest { sequence, session, body: Some(body) }];
        self.outbox.send(v1::SessionRequests { requests }).await.expect("an open stream");
        let answer = self.next().await;
        assert_eq!(answer.sequence, sequence);
        (answer.session, answer.body.expect("a body"))
    }

    async fn next(&mut self) -> v1::SessionResponse {
        while self.pending.is_empty() {
            let batch = within("an answer", self.inbox.message()).await.expect("a whole stream");
            self.pending.extend(batch.expect("an answer").responses);
        }
        self.pending.pop_front().expect("an answer")
    }

    async fn refused(&mut self, sequence: u64, body: Ask, word: &str) {
        match self.ask(sequence, body).await {
            Answer::Error(error) => {
                assert_eq!(error.code, "invalid_argument", "{error:?}");
                assert!(error.message.contains(word), "{:?} lacks {word:?}", error.message);
            }
            other => panic!("not refused: {other:?}"),
        }
    }
}

async fn channel(cluster: &Cluster) -> Channel {
    let endpoint = Endpoint::from_shared(cluster.url.clone()).expect("a url");
    endpoint.connect().await.expect("a connection")
}

fn open(ttl_ms: u64) -> Ask {
    Ask::Open(v1::Open { ttl_ms, metadata: HashMap::new() })
}

fn name(text: &str) -> Option<v1::Name> {
    Some(v1::Name { text: text.into(), election: false })
}

fn acquire(text: &str) -> v1::Acquire {
    let wait = Some(v1::acquire::Wait::Try(v1::Try {}));
    v1::Acquire { name: name(text), lowest_outstanding: 1, wait, ..v1::Acquire::default() }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_begins_with_a_session() {
    let cluster = Cluster::start().await;
    let channel = channel(&cluster).await;
    let mut raw = Raw::open(channel.clone()).await;
    raw.session = 7;
    raw.refused(1, Ask::Keepalive(v1::Keepalive {}), "`open` or `resume`").await;
    raw.refused(1, Ask::Acquire(acquire("a")), "`open` or `resume`").await;
    let (_, answer) = raw.ask_of(7, 1, open(0)).await;
    assert!(matches!(answer, Answer::Error(error) if error.message.contains("session 0")));
    for ttl_ms in [1, 999, 86_400_001, u64::MAX] {
        Raw::open(channel.clone()).await.refused(1, open(ttl_ms), "ttl_ms").await;
    }
    for session in [0, 1 << 63, u64::MAX] {
        raw.session = session;
        raw.refused(1, Ask::Resume(v1::Resume { holds: Vec::new() }), "session id").await;
    }
    let large = HashMap::from([("k".to_owned(), "v".repeat(5_000))]);
    let large = Ask::Open(v1::Open { ttl_ms: 10_000, metadata: large });
    Raw::open(channel).await.refused(1, large, "4096").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn bad_requests_are_refused_one_by_one() {
    let cluster = Cluster::start().await;
    let mut raw = Raw::open(channel(&cluster).await).await;
    assert!(matches!(raw.ask(1, open(0)).await, Answer::Opened(v1::Opened { ttl_ms: 10_000, .. })));
    for text in ["", "a\u{0}", "a\nb", "\u{1}election/x", &"a".repeat(2_048)] {
        raw.refused(3, Ask::Acquire(acquire(text)), "name").await;
    }
    raw.refused(3, Ask::Acquire(v1::Acquire { name: None, ..acquire("a") }), "name").await;
    raw.refused(3, Ask::Acquire(v1::Acquire { wait: None, ..acquire("a") }), "wait").await;
    let too_long = Some(v1::acquire::Wait::AtMostMs(3_600_001));
    raw.refused(3, Ask::Acquire(v1::Acquire { wait: too_long, ..acquire("a") }), "wait").await;
    raw.refused(3, Ask::Acquire(v1::Acquire { lowest_outstanding: 4, ..acquire("a") }), "lowest").await;
    raw.refused(0, Ask::Acquire(acquire("a")), "sequence").await;
    let value = vec![0; (64 << 10) + 1].into();
    raw.refused(3, Ask::Acquire(v1::Acquire { value, ..acquire("a") }), "value").await;
    for token in [0, 1 << 53, u64::MAX] {
        raw.refused(4, Ask::Release(v1::Release { name: name("a"), token }), "token").await;
        let hold = v1::Hold { name: name("a"), token, epoch: 1, claim: false };
        raw.refused(4, Ask::Locate(v1::Locate { holds: vec![hold] }), "token").await;
    }
    let hold = v1::Hold { name: name("a"), token: 7, epoch: 1, claim: false };
    raw.refused(4, Ask::Locate(v1::Locate { holds: vec![hold; 1_001] }), "1000 can be looked for").await;
    // The stream is whole, and none of it held or queued anything.
    assert!(matches!(raw.ask(5, Ask::Acquire(acquire("a"))).await, Answer::Granted(_)));
    let odd = "a//b/./\u{202e}/";
    assert!(matches!(raw.ask(6, Ask::Acquire(acquire(odd))).await, Answer::Granted(_)));
}

#[tokio::test(flavor = "multi_thread")]
async fn one_stream_carries_many_sessions_and_keeps_them_apart() {
    let cluster = Cluster::start().await;
    let mut raw = Raw::open(channel(&cluster).await).await;
    assert!(matches!(raw.ask(1, open(0)).await, Answer::Opened(_)));
    let first = raw.session;
    assert!(matches!(raw.ask(2, open(0)).await, Answer::Opened(_)));
    let second = raw.session;
    assert_ne!(first, second);
    // The same sequence in both, together in one message with keepalives and one for a stranger.
    let request = |session, sequence, body| v1::SessionRequest { sequence, session, body: Some(body) };
    let keepalive = || Ask::Keepalive(v1::Keepalive {});
    let requests = vec![
        request(first, 2, Ask::Acquire(acquire("a"))),
        request(second, 2, Ask::Acquire(acquire("b"))),
        request(first, 3, keepalive()),
        request(99, 3, keepalive()),
        request(second, 3, keepalive()),
    ];
    raw.outbox.send(v1::SessionRequests { requests }).await.expect("an open stream");
    let mut answers = Vec::new();
    for _ in 0..5 {
        let answer = raw.next().await;
        let kind = match answer.body.expect("a body") {
            Answer::Granted(_) => "granted",
            Answer::KeepaliveAck(_) => "renewed",
            Answer::Error(error) => {
                assert_eq!(error.code, "invalid_argument", "{error:?}");
                "refused"
            }
            other => panic!("{other:?}"),
        };
        answers.push((answer.session, answer.sequence, kind));
    }
    answers.sort_unstable();
    let mut wanted = vec![(99, 3, "refused")];
    for session in [first, second] {
        wanted.extend([(session, 2, "granted"), (session, 3, "renewed")]);
    }
    wanted.sort_unstable();
    assert_eq!(answers, wanted);
    // A closed session is carried no more; the other one is.
    raw.session = first;
    assert!(matches!(raw.ask(4, Ask::Close(v1::Close {})).await, Answer::Closed(_)));
    raw.refused(5, keepalive(), "does not carry").await;
    raw.session = second;
    assert!(matches!(raw.ask(5, keepalive()).await, Answer::KeepaliveAck(_)));
}

#[tokio::test(flavor = "multi_thread")]
async fn refusals_of_single_requests_carry_code_and_facts() {
    let cluster = Cluster::start().await;
    let channel = channel(&cluster).await;
    let code = |status: Status| error_of(&status).map(|error| error.code).unwrap_or_default();
    let mut lock = LockClient::new(channel.clone());
    let list = v1::ListLocksRequest { limit: 1_001, ..v1::ListLocksRequest::default() };
    assert_eq!(code(lock.list_locks(list).await.expect_err("too many")), "invalid_argument");
    let watch = v1::WatchRequest { from: Some("nonsense".into()), ..v1::WatchRequest::default() };
    assert_eq!(code(lock.watch(watch).await.expect_err("no cursor")), "invalid_argument");
    assert_eq!(
        code(lock.leader(v1::LeaderRequest { name: "e".into() }).await.expect_err("nobody")),
        "not_found"
    );
    let mut admin = AdminClient::new(channel);
    let force =
        v1::ForceReleaseRequest { name: name("a"), token: 7, reason: " ".into(), actor: "eve".into() };
    assert_eq!(code(admin.force_release(force.clone()).await.expect_err("no reason")), "invalid_argument");
    let force = v1::ForceReleaseRequest { reason: "test".into(), ..force };
    assert_eq!(code(admin.force_release(force).await.expect_err("nobody holds")), "changed");
    let unknown = v1::EndSessionRequest { session: 99, reason: "test".into(), actor: "eve".into() };
    assert_eq!(code(admin.end_session(unknown).await.expect_err("unknown")), "session_lost");
    let edit = |gain| v1::EditPlannerRequest {
        gain_percent: Some(gain),
        reason: "test".into(),
        actor: "eve".into(),
        ..v1::EditPlannerRequest::default()
    };
    let refused = admin.edit_planner(edit(51)).await.expect_err("too much");
    assert!(refused.message().contains("gain_percent must be from 1 to 50"), "{refused:?}");
    assert_eq!(code(refused), "invalid_argument");
    assert!(admin.edit_planner(edit(50)).await.is_ok());
}

#[tokio::test(flavor = "multi_thread")]
async fn groups_that_were_added_are_not_added_again_by_a_repeat_of_the_request() {
    let cluster = Cluster::start().await;
    let mut admin = AdminClient::new(channel(&cluster).await);
    let mut added = async |request| {
        let (reason, actor) = ("test".to_owned(), "eve".to_owned());
        let more = v1::AddGroupsRequest { count: 1, reason, actor, request: Some(request) };
        admin.add_groups(more).await.expect("groups").into_inner().groups
    };
    assert_eq!(added(7).await, [3]);
    assert_eq!(added(7).await, [3], "what it was given before");
    assert_eq!(added(8).await, [4]);
    let groups = cluster.client().admin().groups().await.expect("groups");
    let numbers: Vec<u32> = groups.iter().map(|view| view.group).collect();
    assert_eq!(numbers, [0, 1, 2, 3, 4]);
}

#[tokio::test(flavor = "multi_thread")]
async fn pings_a_second_apart_are_no_offence() {
    let cluster = Cluster::start().await;
    let endpoint = Endpoint::from_shared(cluster.url.clone())
        .expect("a url")
        .http2_keep_alive_interval(Duration::from_secs(1))
        .keep_alive_while_idle(true);
    let mut raw = Raw::open(endpoint.connect().await.expect("a connection")).await;
    assert!(matches!(raw.ask(1, open(30_000)).await, Answer::Opened(_)));
    pass(Duration::from_secs(6)).await;
    // The very same stream still answers.
    assert!(matches!(raw.ask(2, Ask::Keepalive(v1::Keepalive {})).await, Answer::KeepaliveAck(_)));
}

//! Over real sockets: a client that goes away ends its handler, and a stop ends in time.

use std::{net::SocketAddr, time::Instant};

use actix_web::{HttpRequest, HttpResponse, web};
use futures::{StreamExt, stream};
use parking_lot::Mutex;
use serde::Deserialize;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel},
    time::timeout,
};

use super::*;
use crate::api::http::{input::JsonBody, sse};

/// What a handler of these tests tells: that it runs, and that it was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Told {
    Running,
    Dropped,
}

struct Guard(UnboundedSender<Told>);

impl Guard {
    fn new(tell: &Data<UnboundedSender<Told>>) -> Self {
        let tell = UnboundedSender::clone(tell);
        let _ = tell.send(Told::Running);
        Self(tell)
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        let _ = self.0.send(Told::Dropped);
    }
}

#[derive(Deserialize)]
struct Body {}

async fn wait_for_ever(tell: Data<UnboundedSender<Told>>, _: JsonBody<Body>) -> HttpResponse {
    let _guard = Guard::new(&tell);
    std::future::pending().await
}

async fn stream_for_ever(tell: Data<UnboundedSender<Told>>) -> HttpResponse {
    let guard = Guard::new(&tell);
    let body = stream::pending::<Result<web::Bytes, actix_web::Error>>().map(move |item| {
        let _ = &guard;
        item
    });
    HttpResponse::Ok().streaming(body)
}

async fn answer_slowly(tell: Data<UnboundedSender<Told>>, go: Data<CancellationToken>) -> HttpResponse {
    let _guard = Guard::new(&tell);
    go.cancelled().await;
    HttpResponse::Ok().body("done")
}

/// Hands the one receiver of events to the one watcher.
type Events = Data<Mutex<Option<UnboundedReceiver<u64>>>>;

async fn watch(tell: Data<UnboundedSender<Told>>, events: Events, request: HttpRequest) -> HttpResponse {
    let _ = tell.send(Told::Running);
    let events = events.lock().take().unwrap();
    let events = stream::unfold(events, |mut events| async move {
        let n = events.recv().await?;
        Some((sse::Event::new("n", Some(n.to_string()), &n), events))
    });
    sse::respond(&request, events.boxed(), CancellationToken::new())
}

struct Fixture {
    server: HttpServer,
    events: UnboundedSender<u64>,
    told: UnboundedReceiver<Told>,
    go: CancellationToken,
}

fn fixture() -> Fixture {
    let (tell, told) = unbounded_channel();
    let go = CancellationToken::new();
    let limits = Limits { stop_seconds: 1, ..Limits::default() };
    let listener = listen::listen(SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
    let address = listener.local_addr().unwrap();
    let told_go = go.clone();
    let (events, watched) = unbounded_channel();
    let watched: Events = Data::new(Mutex::new(Some(watched)));
    let server = start(listener, limits, move || {
        App::new()
            .app_data(Data::new(tell.clone()))
            .app_data(Data::new(told_go.clone()))
            .app_data(watched.clone())
            .route("/events", web::get().to(watch))
            .route("/wait", web::post().to(wait_for_ever))
            .route("/stream", web::get().to(stream_for_ever))
            .route("/slow", web::get().to(answer_slowly))
    })
    .unwrap();
    let handle = server.handle();
    let running = tokio::spawn(server);
    let server = HttpServer { address, handle, running, stopping: CancellationToken::new(), limits };
    Fixture { server, events, told, go }
}

impl Fixture {
    /// Sends a request and waits until its handler runs.
    async fn send(&mut self, request: &[u8]) -> TcpStream {
        let mut socket = TcpStream::connect(self.server.address()).await.unwrap();
        socket.write_all(request).await.unwrap();
        self.expect(Told::Running, Duration::from_secs(5)).await;
        socket
    }

    async fn expect(&mut self, what: Told, within: Duration) {
        assert_eq!(timeout(within, self.told.recv()).await.ok().flatten(), Some(what));
    }

    async fn expect_dropped(&mut self) {
        self.expect(Told::Dropped, Duration::from_secs(1)).await;
    }
}

const WAIT: &[u8] =
    b"POST /wait HTTP/1.1\r\nhost: h\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}";

#[actix_web::test]
async fn closing_the_connection_ends_the_waiting_handler() {
    let mut fixture = fixture();
    drop(fixture.send(WAIT).await);
    fixture.expect_dropped().await;
}

#[actix_web::test]
async fn closing_only_the_sending_half_ends_the_waiting_handler() {
    let mut fixture = fixture();
    let mut socket = fixture.send(WAIT).await;
    socket.shutdown().await.unwrap();
    fixture.expect_dropped().await;
    // The other half is closed as well, without an answer.
    let mut rest = Vec::new();
    timeout(Duration::from_secs(1), socket.read_to_end(&mut rest)).await.unwrap().unwrap();
    assert!(rest.is_empty(), "{}", String::from_utf8_lossy(&rest));
}

#[actix_web::test]
async fn resetting_the_connection_ends_the_waiting_handler() {
    let mut fixture = fixture();
    let socket = fixture.send(WAIT).await;
    socket2::SockRef::from(&socket).set_linger(Some(Duration::ZERO)).unwrap();
    drop(socket);
    fixture.expect_dropped().await;
}

#[actix_web::test]
async fn a_request_sent_behind_the_wait_does_not_hide_that_its_client_is_gone() {
    let mut fixture = fixture();
    let mut socket = fixture.send(WAIT).await;
    socket.write_all(WAIT).await.unwrap();
    drop(socket);
    fixture.expect_dropped().await;
}

#[actix_web::test]
async fn a_chunked_body_and_an_expectation_do_not_hide_that_their_client_is_gone() {
    let head =
        b"POST /wait HTTP/1.1\r\nhost: h\r\ncontent-type: application/json\r\nexpect: 100-continue\r\n\
        transfer-encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n";
    let mut fixture = fixture();
    drop(fixture.send(head).await);
    fixture.expect_dropped().await;
}

#[actix_web::test]
async fn closing_the_connection_ends_a_silent_stream() {
    for half in [false, true] {
        let mut fixture = fixture();
        let mut socket = fixture.send(b"GET /stream HTTP/1.1\r\nhost: h\r\n\r\n").await;
        if half {
            socket.shutdown().await.unwrap();
        } else {
            drop(socket);
        }
        fixture.expect_dropped().await;
    }
}

#[actix_web::test]
async fn an_event_reaches_its_watcher_at_once() {
    let mut fixture = fixture();
    let mut socket = fixture.send(b"GET /events HTTP/1.1\r\nhost: h\r\n\r\n").await;
    for n in [1, 2] {
        fixture.events.send(n).unwrap();
        let expected = format!("event: n\nid: {n}\ndata: {n}\n\n");
        let mut seen = String::new();
        while !seen.contains(&expected) {
            let mut bytes = [0; 1_024];
            let read = timeout(Duration::from_secs(1), socket.read(&mut bytes)).await.unwrap().unwrap();
            assert_ne!(read, 0, "{seen}");
            seen.push_str(std::str::from_utf8(&bytes[..read]).unwrap());
        }
    }
    drop(socket);
    timeout(Duration::from_secs(1), fixture.events.closed()).await.unwrap();
}

#[actix_web::test]
async fn a_stop_lets_a_running_request_finish() {
    let mut fixture = fixture();
    let mut socket = fixture.send(b"GET /slow HTTP/1.1\r\nhost: h\r\n\r\n").await;
    let address = fixture.server.address();
    let stop = tokio::spawn(fixture.server.stop());
    let refused = async {
        while TcpStream::connect(address).await.is_ok() {
            tokio::task::yield_now().await;
        }
    };
    timeout(Duration::from_secs(1), refused).await.unwrap();
    fixture.go.cancel();
    let mut answer = String::new();
    timeout(Duration::from_secs(2), socket.read_to_string(&mut answer)).await.unwrap().unwrap();
    assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with("done"), "{answer}");
    timeout(Duration::from_secs(2), stop).await.unwrap().unwrap();
}

#[actix_web::test]
async fn a_stop_does_not_wait_longer_than_its_bound() {
    let mut fixture = fixture();
    let mut socket = fixture.send(WAIT).await;
    let begin = Instant::now();
    timeout(Duration::from_secs(4), fixture.server.stop()).await.unwrap();
    assert!(begin.elapsed() >= Duration::from_secs(1), "the request had its time");
    let mut rest = Vec::new();
    let closed = timeout(Duration::from_secs(1), socket.read_to_end(&mut rest)).await.unwrap();
    assert!(closed.is_err() || rest.is_empty());
}

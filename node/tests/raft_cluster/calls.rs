//! Requests that are passed on: answered, given up, lost.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use bytes::Bytes;
use futures::{FutureExt, future::BoxFuture, future::join_all};
use holdfast_node::{
    peer::{
        CallError, CallHandler, GrpcTransport, Heard, MemoryNetwork, PeerServer, PeerService, Transport,
        memory::Way,
    },
    raft::types::MemberId,
};
use tokio::net::{TcpListener, TcpStream};

use super::support::{PATIENCE, cluster, eventually};

/// Never answers `wait`, echoes anything else, and counts what it works on.
#[derive(Debug, Default)]
struct Slow {
    working: Arc<AtomicUsize>,
    seen: Arc<AtomicUsize>,
}

/// Counts down wherever it is dropped.
struct Working(Arc<AtomicUsize>);

impl Drop for Working {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl CallHandler for Slow {
    fn call(&self, from: MemberId, request: Bytes) -> BoxFuture<'static, Bytes> {
        assert_eq!(from, 1);
        self.seen.fetch_add(1, Ordering::SeqCst);
        self.working.fetch_add(1, Ordering::SeqCst);
        let working = Working(Arc::clone(&self.working));
        async move {
            let _working = working;
            if request == "wait" { futures::future::pending().await } else { request }
        }
        .boxed()
    }
}

/// Both transports, to a member 2 that is slow.
async fn both(slow: &Arc<Slow>) -> (Vec<Arc<dyn Transport>>, PeerServer, MemoryNetwork) {
    let service = PeerService::new(cluster(), 2, Arc::clone(slow) as _, Heard::new());
    let network = MemoryNetwork::new();
    network.join(service.clone());
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let server = PeerServer::start(listener, service).unwrap();
    let grpc = GrpcTransport::new(cluster(), 1, Heard::new());
    grpc.learn(2, &server.address().to_string());
    let memory = network.transport(cluster(), 1, Heard::new());
    (vec![Arc::new(grpc), Arc::new(memory)], server, network)
}

#[tokio::test]
async fn giving_a_call_up_reaches_the_handler() {
    let slow = Arc::new(Slow::default());
    let (transports, _server, _network) = both(&slow).await;
    for transport in transports {
        let call = tokio::spawn(transport.call(2, Bytes::from_static(b"wait")));
        let also = tokio::spawn(transport.call(2, Bytes::from_static(b"wait")));
        eventually("both calls arrive", || slow.working.load(Ordering::SeqCst) == 2).await;
        call.abort();
        eventually("one handler is dropped", || slow.working.load(Ordering::SeqCst) == 1).await;
        // The connection and the other call live on.
        assert_eq!(transport.call(2, Bytes::from_static(b"x")).await.unwrap(), "x");
        assert!(!also.is_finished());
        also.abort();
        eventually("the other is dropped", || slow.working.load(Ordering::SeqCst) == 0).await;
    }
}

#[tokio::test]
async fn thousands_of_calls_wait_on_one_connection() {
    let slow = Arc::new(Slow::default());
    let (transports, _server, _network) = both(&slow).await;
    let transport = &transports[0];
    let waiting: Vec<_> =
        (0..1_500).map(|_| tokio::spawn(transport.call(2, Bytes::from_static(b"wait")))).collect();
    eventually("all arrive", || slow.working.load(Ordering::SeqCst) == 1_500).await;
    assert_eq!(transport.call(2, Bytes::from_static(b"x")).await.unwrap(), "x");
    // All given up at once: that must not be taken for an attack.
    for call in &waiting {
        call.abort();
    }
    eventually("all are dropped", || slow.working.load(Ordering::SeqCst) == 0).await;
    let answers = join_all((0..100).map(|_| transport.call(2, Bytes::from_static(b"x")))).await;
    assert!(answers.into_iter().all(|answer| answer.is_ok()));
}

#[tokio::test]
async fn a_call_to_a_member_that_dies_has_an_unknown_end() {
    let slow = Arc::new(Slow::default());
    let (transports, server, network) = both(&slow).await;
    let calls: Vec<_> = transports
        .iter()
        .map(|transport| tokio::spawn(transport.call(2, Bytes::from_static(b"wait"))))
        .collect();
    eventually("both arrive", || slow.working.load(Ordering::SeqCst) == 2).await;
    network.leave(2);
    server.stop().await;
    for call in calls {
        let lost = tokio::time::timeout(PATIENCE, call).await.unwrap().unwrap().unwrap_err();
        assert!(matches!(lost, CallError::Unknown { to: 2, .. }), "{lost}");
    }
    for transport in transports {
        let refused = transport.call(2, Bytes::from_static(b"x")).await.unwrap_err();
        assert!(refused.not_delivered(), "{refused}");
    }
}

/// A proxy that can fall silent without closing anything, as a machine without power does.
async fn silent_proxy(to: std::net::SocketAddr) -> (std::net::SocketAddr, tokio::sync::watch::Sender<bool>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (silent, falls_silent) = tokio::sync::watch::channel(false);
    tokio::spawn(async move {
        while let Ok((mut near, _)) = listener.accept().await {
            let mut falls_silent = falls_silent.clone();
            tokio::spawn(async move {
                let mut far = TcpStream::connect(to).await.unwrap();
                let silence = async { falls_silent.wait_for(|silent| *silent).await.is_ok() };
                let is_silent = tokio::select! {
                    _ = tokio::io::copy_bidirectional(&mut near, &mut far) => false,
                    is_silent = silence => is_silent,
                };
                if is_silent {
                    futures::future::pending::<()>().await;
                }
            });
        }
    });
    (address, silent)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_that_falls_silent_is_noticed_within_two_seconds() {
    let slow = Arc::new(Slow::default());
    let (_, server, network) = both(&slow).await;
    let (address, silent) = silent_proxy(server.address()).await;
    let grpc = GrpcTransport::new(cluster(), 1, Heard::new());
    grpc.learn(2, &address.to_string());
    let memory = network.transport(cluster(), 1, Heard::new());
    let transports: [Arc<dyn Transport>; 2] = [Arc::new(grpc), Arc::new(memory)];
    let calls: Vec<_> = transports
        .iter()
        .map(|transport| tokio::spawn(transport.call(2, Bytes::from_static(b"wait"))))
        .collect();
    eventually("both arrive", || slow.working.load(Ordering::SeqCst) == 2).await;

    silent.send_replace(true);
    network.set_way(2, 1, Way { cut: true, delay: Duration::ZERO });
    let since = Instant::now();
    for call in calls {
        let lost = tokio::time::timeout(PATIENCE, call).await.unwrap().unwrap().unwrap_err();
        assert!(matches!(lost, CallError::Unknown { .. }), "{lost}");
        assert!(since.elapsed() < Duration::from_millis(2_500), "it took {:?}", since.elapsed());
    }
}

#[tokio::test(start_paused = true)]
async fn a_request_that_never_left_is_not_delivered() {
    let slow = Arc::new(Slow::default());
    let network = MemoryNetwork::new();
    network.join(PeerService::new(cluster(), 2, Arc::clone(&slow) as _, Heard::new()));
    let transport = network.transport(cluster(), 1, Heard::new());
    network.set_way(1, 2, Way { cut: true, delay: Duration::ZERO });
    let lost = transport.call(2, Bytes::from_static(b"x")).await.unwrap_err();
    assert!(lost.not_delivered(), "{lost}");
    assert_eq!(slow.seen.load(Ordering::SeqCst), 0);
    network.set_way(1, 2, Way { cut: false, delay: Duration::from_secs(3) });
    let started = tokio::time::Instant::now();
    assert_eq!(transport.call(2, Bytes::from_static(b"x")).await.unwrap(), "x");
    assert_eq!(started.elapsed(), Duration::from_secs(3));
}

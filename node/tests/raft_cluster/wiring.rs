//! Members that are wired to the wrong place say so, and nothing is done.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use holdfast_node::log::identity::ClusterId;
use holdfast_node::peer::{
    CallError, GrpcTransport, Heard, LinkError, MemoryNetwork, PeerServer, PeerService, Transport,
};
use holdfast_partitioner::GroupId;
use tokio::net::TcpListener;

use super::support::{Echo, META, PATIENCE, cluster};

/// Member 2 of the cluster, and a transport of whoever is given.
async fn pair(theirs: ClusterId, from: u64, to: u64) -> (PeerServer, GrpcTransport) {
    let service = PeerService::new(cluster(), 2, Arc::new(Echo), Heard::new());
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let server = PeerServer::start(listener, service).unwrap();
    let transport = GrpcTransport::new(theirs, from, Heard::new());
    transport.learn(to, &server.address().to_string());
    (server, transport)
}

async fn refusals(transport: &dyn Transport, to: u64, words: &str) {
    let probe = transport.probe(to, PATIENCE).await.unwrap_err();
    assert!(matches!(&probe, LinkError::Refused { reason, .. } if reason.contains(words)), "{probe}");
    let call = transport.call(to, Bytes::from_static(b"x")).await.unwrap_err();
    assert!(matches!(&call, CallError::NotDelivered { reason, .. } if reason.contains(words)), "{call}");
    let requests = Box::pin(futures::stream::pending());
    let append = transport.append(to, META, requests).await.map(drop).unwrap_err();
    assert!(matches!(&append, LinkError::Refused { reason, .. } if reason.contains(words)), "{append}");
    assert!(!transport.heard().within(to, PATIENCE));
}

#[tokio::test]
async fn another_cluster_is_refused() {
    let (_server, transport) = pair("other".parse().unwrap(), 1, 2).await;
    refusals(&transport, 2, "this is member 2 of cluster \"test\"").await;
    let network = MemoryNetwork::new();
    network.join(PeerService::new(cluster(), 2, Arc::new(Echo), Heard::new()));
    refusals(&network.transport("other".parse().unwrap(), 1, Heard::new()), 2, "cluster \"other\"").await;
}

#[tokio::test]
async fn another_member_is_refused() {
    let (_server, transport) = pair(cluster(), 1, 3).await;
    refusals(&transport, 3, "check the peer address of member 3").await;
}

#[tokio::test]
async fn a_member_that_talks_to_itself_is_refused() {
    let (_server, transport) = pair(cluster(), 2, 2).await;
    refusals(&transport, 2, "give each member an id of its own").await;
}

#[tokio::test]
async fn a_group_without_replica_is_refused() {
    let (_server, transport) = pair(cluster(), 1, 2).await;
    transport.probe(2, PATIENCE).await.unwrap();
    assert!(transport.heard().within(2, PATIENCE));
    let vote = holdfast_node::raft::types::Vote::new(1, 1);
    let request = holdfast_node::raft::types::VoteRequest::new(vote, None);
    let question = holdfast_node::peer::transport::Question::Vote(request);
    let answer = transport.ask(2, GroupId(7), question, PATIENCE).await.unwrap_err();
    assert!(answer.to_string().contains("member 2 has no replica of group 7"), "{answer}");
}

#[tokio::test]
async fn a_member_without_address_or_without_process_is_not_reached() {
    let (server, transport) = pair(cluster(), 1, 2).await;
    let unknown = transport.call(9, Bytes::new()).await.unwrap_err();
    assert!(unknown.not_delivered() && unknown.to_string().contains("address is not known"), "{unknown}");
    let address = server.address();
    server.stop().await;
    let gone = transport.call(2, Bytes::new()).await.unwrap_err();
    assert!(gone.not_delivered(), "{gone}");

    // It comes back at the same place and is found again, without anybody asking for it.
    let service = PeerService::new(cluster(), 2, Arc::new(Echo), Heard::new());
    let _server = PeerServer::start(TcpListener::bind(address).await.unwrap(), service).unwrap();
    let deadline = tokio::time::Instant::now() + Duration::from_secs(5);
    while transport.call(2, Bytes::from_static(b"x")).await.ok() != Some(Bytes::from_static(b"x")) {
        assert!(tokio::time::Instant::now() < deadline, "it was not found again");
        crate::wait::look_again().await;
    }
}

/// What a proxy does for a member that is down: every connection is taken, and ended without a word.
#[tokio::test(flavor = "multi_thread")]
async fn a_door_that_opens_onto_nothing_is_knocked_at_seldom() {
    let door = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let transport = GrpcTransport::new(cluster(), 1, Heard::new());
    transport.learn(2, &door.local_addr().unwrap().to_string());
    let knocks = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&knocks);
    let doorman = tokio::spawn(async move {
        while door.accept().await.is_ok() {
            counted.fetch_add(1, Ordering::Relaxed);
        }
    });
    let end = tokio::time::Instant::now() + Duration::from_secs(2);
    let callers = (0..4).map(|_| {
        let transport = transport.clone();
        tokio::spawn(async move {
            while tokio::time::Instant::now() < end {
                let call = tokio::time::timeout(PATIENCE, transport.call(2, Bytes::new())).await;
                call.expect("every call ends").unwrap_err();
                let requests = Box::pin(futures::stream::pending());
                let append = tokio::time::timeout(PATIENCE, transport.append(2, META, requests)).await;
                append.expect("every append ends").map(drop).unwrap_err();
                crate::wait::look_again().await;
            }
        })
    });
    for caller in futures::future::join_all(callers).await {
        caller.unwrap();
    }
    doorman.abort();
    // Pauses of 50, 100, 200, 400, and then 500 ms.
    let knocks = knocks.load(Ordering::Relaxed);
    assert!((1..20).contains(&knocks), "{knocks} connections within two seconds");
}

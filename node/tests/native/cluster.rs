//! A cluster of one member with two lock groups, and clients of it.

use std::net::{SocketAddr, TcpListener};

use holdfast_client::{Client, Session};
use holdfast_node::{
    config::{MemberConfig, MemberEntry},
    member::Member,
};
use tempfile::TempDir;

use crate::wait::until;

/// A running member; its folder goes with it.
pub(crate) struct Cluster {
    pub(crate) member: Member,
    pub(crate) url: String,
    _folder: TempDir,
}

fn free_address() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a free port")
}

impl Cluster {
    /// Starts a member and waits until it may serve.
    pub(crate) async fn start() -> Self {
        let folder = TempDir::new().expect("a folder");
        let [http, grpc, peer] = [(); 3].map(|()| free_address());
        let mut config = MemberConfig { cluster: "native".into(), member: 1, ..MemberConfig::default() };
        config.data_dir = folder.path().join("data");
        (config.listen.http, config.listen.grpc, config.listen.peer) = (http, grpc, peer);
        config.groups.lock_groups = 2;
        config.members = vec![MemberEntry {
            id: 1,
            http: format!("http://{http}"),
            grpc: format!("http://{grpc}"),
            peer: peer.to_string(),
        }];
        let member = Member::start(config).await.expect("a member");
        until("readiness", || async { member.endpoint().ready().ok() }).await;
        Self { member, url: format!("http://{grpc}"), _folder: folder }
    }

    pub(crate) fn client(&self) -> Client {
        Client::connect([self.url.as_str()]).expect("a client")
    }

    pub(crate) async fn session(&self) -> Session {
        self.client().session().open().await.expect("a session")
    }
}

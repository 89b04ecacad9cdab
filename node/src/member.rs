//! Puts a member together from its configuration, watches over it, and takes it apart again.
//!
//! [`works`]: its groups and the verbs over them. `carried`: which groups it has. [`layout`]: where they lie at first.
//! [`ground`]: what they stand on. Here come the sockets to it. [`pulse`]: whether all of it still answers. Decides nothing:
//! order of start and stop is all there is.

pub mod ground;
pub mod layout;
pub mod pulse;
pub mod works;

mod acquaint;
mod carried;
mod parts;
mod roster_file;

use std::{fmt, net::TcpListener, time::Duration};

use holdfast_partitioner::Registry;

use self::{ground::Ground, pulse::PulseLost, works::Works};
use crate::{
    actors::ActorHost,
    api::{
        grpc::{self, GrpcOptions, GrpcServer},
        http::{self, HttpOptions, HttpServer},
    },
    config::MemberConfig,
    endpoint::Endpoint,
    log::actor::{CloseLog, LogActor},
    peer::PeerServer,
};

/// Why a member cannot start.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct StartError(String);

impl StartError {
    fn of(error: impl fmt::Display) -> Self {
        Self(error.to_string())
    }
}

/// A running member. Dropping it leaves its tasks running: stop it with [`Member::shutdown`].
pub struct Member {
    works: Works,
    http: HttpServer,
    grpc: GrpcServer,
    peer: PeerServer,
    log: actix::Addr<LogActor>,
}

impl fmt::Debug for Member {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Member({:?})", self.endpoint())
    }
}

impl Member {
    /// Starts a member: opens its log, begins or resumes every group, and listens. Returns as soon as it listens; it is
    /// ready once `/readyz` says so.
    ///
    /// # Errors
    /// A faulty configuration, a busy port, a log that cannot be opened or belongs to another member.
    pub async fn start(config: MemberConfig) -> Result<Self, StartError> {
        Self::start_with(config, Registry::built_in()).await
    }

    /// As [`Member::start`], with strategies of one's own to plan changes of the partition map with.
    ///
    /// # Errors
    /// As there.
    pub async fn start_with(config: MemberConfig, strategies: Registry) -> Result<Self, StartError> {
        let member = config.member;
        let listeners = Listeners::open(&config)?;
        let (ground, log) = Ground::of_this_machine(&config, strategies)?;
        let works = Works::start(config, ground).await?;
        let peer = PeerServer::start(listeners.peer, works.service().clone()).map_err(StartError::of)?;
        let options = HttpOptions {
            listener: listeners.http,
            limits: http::Limits::default(),
            metrics: works.metrics().clone(),
        };
        let http = http::serve(works.endpoint().clone(), options).map_err(StartError::of)?;
        let options = GrpcOptions { listener: listeners.grpc, others: Default::default() };
        let grpc = grpc::serve(works.endpoint().clone(), options).map_err(StartError::of)?;
        tracing::info!(member, http = %http.address(), grpc = %grpc.address(), "listening");
        Ok(Self { works, http, grpc, peer, log })
    }

    /// The verbs of this member.
    pub fn endpoint(&self) -> &Endpoint {
        self.works.endpoint()
    }

    /// Passes through everything of the member that must answer for it to be alive: the log with the thread that commits, and
    /// of each group the Raft core and the actors. Asks no other member.
    ///
    /// # Errors
    /// Names who has not answered within the limit.
    pub async fn pulse(&self, within: Duration) -> Result<(), PulseLost> {
        pulse::pass(&self.log, self.works.router(), within).await
    }

    /// Resolves when the member cannot go on, with the reason; then the process must end, and may start again.
    pub async fn wait_fatal(&self) -> String {
        self.works.wait_fatal().await
    }

    /// Stops in reverse: no new requests, leadership handed on, groups, log. Bounded in time; what is in the log stays.
    pub async fn shutdown(mut self) {
        tokio::join!(self.http.stop(), self.grpc.stop());
        self.works.stop().await;
        self.peer.stop().await;
        if let Err(error) = self.log.send(CloseLog).await {
            tracing::warn!(%error, "the log was not closed in order; it is whole all the same");
        }
        self.works.metrics().stop();
        if let ActorHost::Threads(arbiters) = self.works.host().clone() {
            // Joining a thread blocks.
            drop(tokio::task::spawn_blocking(move || arbiters.stop()).await);
        }
    }
}

struct Listeners {
    http: TcpListener,
    grpc: tokio::net::TcpListener,
    peer: tokio::net::TcpListener,
}

impl Listeners {
    /// Opens all sockets before anything else, so that a busy port is known at once.
    fn open(config: &MemberConfig) -> Result<Self, StartError> {
        Ok(Self {
            http: http::listen(config.listen.http).map_err(StartError::of)?,
            grpc: tokio_listener(config.listen.grpc, "grpc")?,
            peer: tokio_listener(config.listen.peer, "peer")?,
        })
    }
}

fn tokio_listener(address: std::net::SocketAddr, what: &str) -> Result<tokio::net::TcpListener, StartError> {
    let failed = |error: std::io::Error| {
        StartError(format!("cannot listen for {what} on {address} (port {}): {error}", address.port()))
    };
    let listener = http::listen(address).map_err(|error| failed(error.cause))?;
    listener.set_nonblocking(true).map_err(failed)?;
    tokio::net::TcpListener::from_std(listener).map_err(failed)
}

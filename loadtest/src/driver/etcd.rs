//! etcd by its own lock service (v3lock): one lease per client, kept alive every third of its TTL.
//!
//! Speaks gRPC with the same library as Holdfast's client, so that both cost the load machine alike.

use std::{sync::Arc, time::Duration};

use holdfast_history::End;
use tokio::{
    task::JoinHandle,
    time::{MissedTickBehavior, interval, timeout},
};
use tokio_stream::{StreamExt as _, wrappers::IntervalStream};
use tonic::transport::{Channel, Endpoint};

use super::{Driver, LockClient, Opened, Refusal, Standing};
use crate::failure::Failure;
use proto::{
    lease::{LeaseGrantRequest, LeaseKeepAliveRequest, LeaseRevokeRequest, lease_client::LeaseClient},
    lock::{LockRequest, UnlockRequest, lock_client::LockClient as LockStub},
};

/// Messages and stubs generated from `proto/`.
#[allow(missing_docs, missing_debug_implementations, unreachable_pub, dead_code, clippy::all)]
mod proto {
    pub(super) mod lock {
        tonic::include_proto!("v3lockpb");
    }
    pub(super) mod lease {
        tonic::include_proto!("etcdserverpb");
    }
}

const CONNECT_WITHIN: Duration = Duration::from_secs(5);
/// A lease that cannot be revoked ends by itself.
const REVOKE_WITHIN: Duration = Duration::from_secs(2);

/// Makes leases.
#[derive(Debug)]
pub(crate) struct Etcd {
    channels: Vec<Channel>,
    ttl: Duration,
}

impl Etcd {
    /// So many connections, spread over the endpoints.
    pub(crate) async fn new(endpoints: &[String], connections: u32, ttl: Duration) -> Result<Self, Failure> {
        let mut channels = Vec::new();
        for endpoint in endpoints.iter().cycle().take(connections as usize) {
            let target = Endpoint::from_shared(endpoint.clone())
                .map_err(|error| Failure::Usage(format!("{endpoint}: {error}")))?
                .tcp_nodelay(true)
                .connect_timeout(CONNECT_WITHIN);
            let unreachable = |error| Failure::Unreachable(format!("{endpoint} does not answer: {error}"));
            channels.push(target.connect().await.map_err(unreachable)?);
        }
        Ok(Self { channels, ttl })
    }
}

impl Driver for Etcd {
    type Client = EtcdClient;

    async fn client(&self, number: u32) -> Result<EtcdClient, Failure> {
        let channel = self.channels.get(number as usize % self.channels.len().max(1));
        let channel =
            channel.ok_or_else(|| Failure::Usage("no connections: give at least one".into()))?.clone();
        let lease = Lease::grant(channel.clone(), self.ttl).await?;
        Ok(EtcdClient { lock: LockStub::new(channel.clone()), channel, ttl: self.ttl, lease, key: None })
    }
}

/// A lease, and the task that keeps it alive.
#[derive(Debug)]
struct Lease {
    id: i64,
    keepalive: JoinHandle<()>,
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.keepalive.abort();
    }
}

impl Lease {
    async fn grant(channel: Channel, ttl: Duration) -> Result<Self, Failure> {
        let seconds = i64::try_from(ttl.as_secs()).unwrap_or(i64::MAX);
        let mut stub = LeaseClient::new(channel);
        let granted = stub.lease_grant(LeaseGrantRequest { ttl: seconds, id: 0 }).await;
        let granted =
            granted.map_err(|error| Failure::Unreachable(format!("no lease: {error}")))?.into_inner();
        if !granted.error.is_empty() {
            return Err(Failure::Other(format!("no lease: {}", granted.error)));
        }
        let id = granted.id;
        let mut ticks = interval(ttl / 3);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let keepalive = tokio::spawn(async move {
            let requests = IntervalStream::new(ticks).map(move |_| LeaseKeepAliveRequest { id });
            if let Ok(answers) = stub.lease_keep_alive(requests).await {
                let mut answers = answers.into_inner();
                while let Ok(Some(_)) = answers.message().await {}
            }
        });
        Ok(Self { id, keepalive })
    }
}

/// One lease.
#[derive(Debug)]
pub(crate) struct EtcdClient {
    channel: Channel,
    lock: LockStub<Channel>,
    ttl: Duration,
    lease: Lease,
    key: Option<Vec<u8>>,
}

impl LockClient for EtcdClient {
    fn opened(&self) -> Option<Opened> {
        None
    }

    async fn acquire(&mut self, lock: &Arc<str>) -> Result<u64, Refusal> {
        let request = LockRequest { name: lock.as_bytes().to_vec(), lease: self.lease.id };
        let answer = self.lock.lock(request).await.map_err(|status| refused("acquire", &status))?;
        self.key = Some(answer.into_inner().key);
        Ok(0)
    }

    fn standing(&self) -> Option<Standing> {
        None
    }

    async fn release(&mut self) -> Result<(), Refusal> {
        let Some(key) = self.key.take() else { return Ok(()) };
        self.lock.unlock(UnlockRequest { key }).await.map_err(|status| refused("release", &status))?;
        Ok(())
    }

    async fn reopen(&mut self) -> Result<(), Failure> {
        self.key = None;
        self.lease = Lease::grant(self.channel.clone(), self.ttl).await?;
        Ok(())
    }

    async fn close(self) {
        let mut stub = LeaseClient::new(self.channel.clone());
        let _ = timeout(REVOKE_WITHIN, stub.lease_revoke(LeaseRevokeRequest { id: self.lease.id })).await;
    }
}

fn refused(verb: &str, status: &tonic::Status) -> Refusal {
    Refusal::new(End::Unknown, format!("{verb}: {}: {}", status.code(), status.message()))
}

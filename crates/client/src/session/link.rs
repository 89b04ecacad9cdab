//! One connection of a session: how it is made, and its two directions. Does not know what the messages mean.

use std::time::Duration;

use holdfast_proto::v1::{self, lock_client::LockClient};
use tokio::{sync::mpsc, time::timeout};
use tokio_stream::wrappers::ReceiverStream;
use tonic::Streaming;

use crate::{
    call::Caller,
    channel::Leased,
    error::{Error, from_status},
};

/// Messages on their way into a connection. Small: what waits here has been sent as far as deadlines go.
const OUTBOX: usize = 64;

/// An open session stream.
#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) outbox: mpsc::Sender<v1::SessionRequest>,
    pub(crate) inbox: Streaming<v1::SessionResponse>,
    pub(crate) leased: Leased,
}

impl Link {
    /// Opens a stream at one endpoint, with its first message, within `limit`.
    pub(crate) async fn open(
        caller: &Caller,
        index: usize,
        first: v1::SessionRequest,
        limit: Duration,
    ) -> Result<Self, Error> {
        let endpoint = caller.pool.endpoint(index);
        let silent = || Error::Unreachable {
            reason: format!("{endpoint}: no answer within {} ms", limit.as_millis()),
        };
        let mut made = None;
        let opening = async {
            let leased = caller.lease(index, limit).await?;
            made = Some(leased.clone());
            let (outbox, messages) = mpsc::channel(OUTBOX);
            // The channel is empty and both ends are here, so this cannot fail.
            let _ = outbox.try_send(first);
            let mut client = LockClient::new(leased.channel.clone());
            let answer = client.session(ReceiverStream::new(messages)).await;
            let inbox = answer.map_err(|status| from_status(&status))?.into_inner();
            Ok(Self { outbox, inbox, leased })
        };
        let opened = timeout(limit, opening).await.unwrap_or_else(|_| Err(silent()));
        if let (Err(Error::Unreachable { .. }), Some(leased)) = (&opened, &made) {
            caller.pool.evict(leased);
        }
        opened
    }
}

//! A session's place on a stream. Leaving it is all that there is to giving it up.

use std::{sync::Arc, time::Duration};

use holdfast_proto::v1;
use tokio::{sync::mpsc, time::timeout};

use super::{shared::Shared, stream::SessionStream};
use crate::{client::Inner, error::Error, ids::SessionId};

/// A place on an open stream.
#[derive(Debug)]
pub(crate) struct Link {
    stream: Arc<SessionStream>,
    session: SessionId,
}

impl Drop for Link {
    fn drop(&mut self) {
        self.stream.leave(self.session);
    }
}

impl Link {
    /// Takes a place for a session that the member carries on this stream already.
    pub(crate) fn carried(stream: Arc<SessionStream>, shared: &Arc<Shared>) -> Self {
        stream.carry(shared.clone());
        Self { stream, session: shared.session }
    }

    /// Takes a place on the stream to one endpoint and resumes the session there, within `limit`.
    pub(crate) async fn resume(shared: &Arc<Shared>, index: usize, limit: Duration) -> Result<Self, Error> {
        let Inner { caller, streams, .. } = shared.client.as_ref();
        let stream = streams.at(caller, index, limit).await?;
        let link = Self::carried(stream, shared);
        // What it holds is asked for last, so that nothing is missing.
        let first = shared.core().resume_message();
        let full = |_| "the stream takes nothing more";
        let sent = timeout(limit, link.outbox().send(first)).await.map_err(full);
        match sent.and_then(|sent| sent.map_err(|_| "the stream was closed")) {
            Ok(()) => Ok(link),
            Err(reason) => Err(Error::Unreachable { reason: reason.into() }),
        }
    }

    pub(crate) fn outbox(&self) -> &mpsc::Sender<v1::SessionRequest> {
        self.stream.outbox()
    }

    /// The endpoint.
    pub(crate) fn index(&self) -> usize {
        self.stream.leased.index
    }

    /// Why there will be no more answers, once that is so.
    pub(crate) fn ended(&self) -> Option<Error> {
        self.stream.ended()
    }

    /// The member does not answer, or cannot do its work: whoever comes next needs a connection of its own.
    pub(crate) fn give_up(&self, shared: &Shared) {
        self.stream.give_up();
        shared.client.caller.pool.evict(&self.stream.leased);
    }
}

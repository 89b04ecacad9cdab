//! The requests of a session stream, one function each: checked, asked of the endpoint, answered.

use std::time::Duration;

use holdfast_locktable::{command::RequestId, ids::SessionId, name::Name, outcome::CancelOutcome};
use holdfast_proto::v1::{self, session_response::Body as Answer};
use tokio::{
    sync::watch,
    time::{Instant, sleep},
};

use super::{Done, Outbox, Running, holds::Held, refuse, send};
use crate::{
    api::grpc::{input, output},
    endpoint::{
        ApiError, Endpoint,
        types::{AcquireRequest, Granted},
    },
};

/// How long a cancel looks for an acquire that has not reached its group yet, before it cuts it off.
const CANCEL_LIMIT: Duration = Duration::from_secs(2);
/// How long it waits between two looks.
const CANCEL_PAUSE: Duration = Duration::from_millis(50);

/// What every request needs.
#[derive(Clone)]
pub(super) struct Calls {
    pub(super) endpoint: Endpoint,
    pub(super) session: SessionId,
    pub(super) outbox: Outbox,
}

impl Calls {
    async fn answer(&self, sequence: u64, answer: Result<Answer, ApiError>) {
        match answer {
            Ok(body) => send(&self.outbox, sequence, body).await,
            Err(error) => refuse(&self.outbox, sequence, error).await,
        }
    }

    pub(super) async fn keepalive(self, sequence: u64) -> Done {
        let ack = self.endpoint.keepalive_by_group(self.session).await;
        self.answer(sequence, ack.map(|ack| Answer::KeepaliveAck(ack.into()))).await;
        Done::Other
    }

    pub(super) async fn acquire(
        self,
        sequence: u64,
        acquire: v1::Acquire,
        tell: watch::Sender<bool>,
    ) -> Done {
        let answer = self.acquired(sequence, acquire).await;
        tell.send_replace(true);
        let hold = match answer {
            Ok((name, granted)) => {
                self.answer(sequence, Ok(Answer::Granted(granted.into()))).await;
                Some(Held { name, token: granted.token })
            }
            Err(error) => {
                self.answer(sequence, Err(error)).await;
                None
            }
        };
        Done::Acquire { sequence, hold }
    }

    async fn acquired(&self, sequence: u64, acquire: v1::Acquire) -> Result<(Name, Granted), ApiError> {
        let (sequence, lowest) = input::sequence(sequence, acquire.lowest_outstanding)?;
        let name = input::name(acquire.name)?;
        let request = AcquireRequest {
            name: name.clone(),
            session: self.session,
            request: RequestId::Sequence { sequence, lowest },
            wait: input::wait(acquire.wait)?,
            metadata: input::metadata(acquire.metadata)?,
            value: input::value(acquire.value)?,
        };
        let granted = self.endpoint.acquire(request).await?;
        Ok((name, granted))
    }

    pub(super) async fn cancel(self, sequence: u64, cancel: v1::Cancel, running: Option<Running>) -> Done {
        let outcome = self.cancelled(cancel, running).await;
        self.answer(sequence, outcome.map(|outcome| Answer::CancelDone(output::cancel_done(outcome)))).await;
        Done::Other
    }

    /// A cancel may overtake its acquire on the way to the group and find nothing: then it looks again for as long as the
    /// acquire is under way, and at last cuts it off, so that the group forgets it.
    async fn cancelled(
        &self,
        cancel: v1::Cancel,
        running: Option<Running>,
    ) -> Result<CancelOutcome, ApiError> {
        let name = input::name(cancel.name)?;
        let (target, lowest) = input::sequence(cancel.acquire_sequence, cancel.acquire_sequence)?;
        let request = RequestId::Sequence { sequence: target, lowest };
        let limit = Instant::now() + CANCEL_LIMIT;
        loop {
            let under_way = running.as_ref().is_some_and(|running| !*running.answered.borrow());
            let (name, request) = (name.clone(), request.clone());
            let outcome = if cancel.release_if_granted {
                self.endpoint.abandon(name, self.session, request).await?
            } else {
                self.endpoint.cancel(name, self.session, request).await?
            };
            match &running {
                Some(running) if under_way && outcome == CancelOutcome::None => {
                    if Instant::now() >= limit {
                        running.task.abort();
                        return Ok(outcome);
                    }
                    let mut answered = running.answered.clone();
                    tokio::select! {
                        _ = answered.wait_for(|answered| *answered) => {}
                        () = sleep(CANCEL_PAUSE) => {}
                    }
                }
                Some(_) | None => return Ok(outcome),
            }
        }
    }

    pub(super) async fn release(self, sequence: u64, release: v1::Release) -> Done {
        match self.released(release).await {
            Ok((held, released)) => {
                self.answer(sequence, Ok(Answer::Released(v1::Released { released }))).await;
                Done::Released(held)
            }
            Err(error) => {
                self.answer(sequence, Err(error)).await;
                Done::Other
            }
        }
    }

    async fn released(&self, release: v1::Release) -> Result<(Held, bool), ApiError> {
        let held = Held { name: input::name(release.name)?, token: input::token(release.token)? };
        let released = self.endpoint.release(held.name.clone(), self.session, held.token).await?;
        Ok((held, released))
    }

    pub(super) async fn proclaim(self, sequence: u64, proclaim: v1::Proclaim) -> Done {
        let answer = self.proclaimed(proclaim).await;
        self.answer(sequence, answer.map(|()| Answer::Proclaimed(v1::Proclaimed {}))).await;
        Done::Other
    }

    async fn proclaimed(&self, proclaim: v1::Proclaim) -> Result<(), ApiError> {
        let name = input::name(proclaim.name)?;
        let (token, value) = (input::token(proclaim.token)?, input::value(proclaim.value)?);
        self.endpoint.proclaim(name, self.session, token, value).await
    }

    pub(super) async fn close(self, sequence: u64) -> Done {
        let closed = self.endpoint.close_session(self.session).await;
        self.answer(sequence, closed.map(|()| Answer::Closed(v1::Closed {}))).await;
        Done::Other
    }
}

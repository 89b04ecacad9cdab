//! The requests of a session, one function each: checked, asked of the endpoint, answered.

use std::time::Duration;

use holdfast_locktable::{command::RequestId, ids::SessionId, name::Name, outcome::CancelOutcome};
use holdfast_proto::v1::{self, session_response::Body as Answer};
use tokio::{
    sync::watch,
    time::{Instant, sleep},
};
use tokio_util::sync::CancellationToken;

use super::{
    Done,
    outbox::{Outbox, response},
    session::Running,
};
use crate::{
    api::grpc::{input, output},
    endpoint::{
        ApiError, Endpoint, ErrorCode,
        types::{AcquireRequest, Granted},
    },
    watch::holds::Hold,
};

/// How long a cancel looks for an acquire that has not reached its group yet, before it cuts it off.
const CANCEL_LIMIT: Duration = Duration::from_secs(2);
/// How long it waits between two looks.
const CANCEL_PAUSE: Duration = Duration::from_millis(50);

/// Opens a session. The stream answers, once it carries it.
pub(super) async fn open(endpoint: Endpoint, sequence: u64, open: v1::Open) -> Done {
    let opened = async {
        let metadata = input::metadata(open.metadata)?;
        endpoint.open_session(input::ttl_ms(open.ttl_ms)?, metadata).await
    };
    Done::Opened { sequence, opened: opened.await }
}

/// Renews sessions together, each under the sequence of its own request.
pub(super) async fn keepalives(endpoint: Endpoint, outbox: Outbox, asked: Vec<(SessionId, u64)>) -> Done {
    let sessions = asked.iter().map(|(session, _)| *session).collect();
    let answers = endpoint.keepalives_by_group(sessions).await;
    let lost =
        |answer: &Result<_, ApiError>| matches!(answer, Err(error) if error.code == ErrorCode::SessionLost);
    let ended =
        asked.iter().zip(&answers).filter(|(_, answer)| lost(answer)).map(|((session, _), _)| *session);
    let ended = ended.collect();
    let responses = asked.into_iter().zip(answers).map(|((session, sequence), answer)| {
        let body =
            answer.map_or_else(|error| Answer::Error(error.into()), |ack| Answer::KeepaliveAck(ack.into()));
        response(session.get(), sequence, body)
    });
    outbox.send_all(responses.collect()).await;
    Done::Ended(ended)
}

/// Looks for holds of several sessions together, each under the sequence of its own request.
pub(super) async fn locate(
    endpoint: Endpoint,
    outbox: Outbox,
    asked: Vec<(SessionId, u64, Vec<Hold>)>,
) -> Done {
    let holds: Vec<Hold> = asked.iter().flat_map(|(.., holds)| holds.iter().cloned()).collect();
    let mut places = endpoint.locate(&holds).await.into_iter();
    let responses = asked.into_iter().map(|(session, sequence, holds)| {
        let places = places.by_ref().take(holds.len()).map(v1::Place::from).collect();
        response(session.get(), sequence, Answer::Located(v1::Located { places }))
    });
    outbox.send_all(responses.collect()).await;
    Done::Located(holds.len())
}

/// What every request of one session needs.
#[derive(Clone)]
pub(super) struct Calls {
    pub(super) endpoint: Endpoint,
    pub(super) session: SessionId,
    pub(super) outbox: Outbox,
}

impl Calls {
    async fn answer(&self, sequence: u64, answer: Result<Answer, ApiError>) {
        let body = answer.unwrap_or_else(|error| Answer::Error(error.into()));
        self.outbox.send(self.session.get(), sequence, body).await;
    }

    pub(super) async fn acquire(
        self,
        sequence: u64,
        acquire: v1::Acquire,
        tell: watch::Sender<bool>,
        cut_off: CancellationToken,
    ) -> Done {
        let Some(answer) = cut_off.run_until_cancelled(self.acquired(sequence, acquire)).await else {
            return Done::Acquire { session: self.session, sequence, hold: None };
        };
        tell.send_replace(true);
        let hold = match answer {
            Ok((name, granted)) => {
                self.answer(sequence, Ok(Answer::Granted(granted.into()))).await;
                Some((Hold { session: self.session, name, token: granted.token }, granted.epoch))
            }
            Err(error) => {
                self.answer(sequence, Err(error)).await;
                None
            }
        };
        Done::Acquire { session: self.session, sequence, hold }
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
        Done::Other(self.session)
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
                        running.cut_off.cancel();
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
            Ok((hold, released)) => {
                self.answer(sequence, Ok(Answer::Released(v1::Released { released }))).await;
                Done::Released(hold)
            }
            Err(error) => {
                self.answer(sequence, Err(error)).await;
                Done::Other(self.session)
            }
        }
    }

    async fn released(&self, release: v1::Release) -> Result<(Hold, bool), ApiError> {
        let (name, token) = (input::name(release.name)?, input::token(release.token)?);
        let released = self.endpoint.release(name.clone(), self.session, token).await?;
        Ok((Hold { session: self.session, name, token }, released))
    }

    pub(super) async fn proclaim(self, sequence: u64, proclaim: v1::Proclaim) -> Done {
        let answer = self.proclaimed(proclaim).await;
        self.answer(sequence, answer.map(|()| Answer::Proclaimed(v1::Proclaimed {}))).await;
        Done::Other(self.session)
    }

    async fn proclaimed(&self, proclaim: v1::Proclaim) -> Result<(), ApiError> {
        let name = input::name(proclaim.name)?;
        let (token, value) = (input::token(proclaim.token)?, input::value(proclaim.value)?);
        self.endpoint.proclaim(name, self.session, token, value).await
    }

    pub(super) async fn close(self, sequence: u64) -> Done {
        let closed = self.endpoint.close_session(self.session).await;
        let ended = closed.as_ref().err().is_none_or(|error| error.code == ErrorCode::SessionLost);
        self.answer(sequence, closed.map(|()| Answer::Closed(v1::Closed {}))).await;
        if ended { Done::Ended(vec![self.session]) } else { Done::Other(self.session) }
    }
}

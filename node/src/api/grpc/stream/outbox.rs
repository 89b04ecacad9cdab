//! Answers on their way to one client: from many tasks into few messages.

use futures::Stream;
use holdfast_proto::v1::{self, session_response::Body as Answer};
use tokio::sync::mpsc;
use tonic::Status;

use crate::endpoint::ApiError;

/// Answers that may wait to be sent. A full queue holds the tasks that answer, and they hold the stream.
const QUEUE: usize = 256;
/// Most answers in one message: with the longest error text well below what a client takes.
const MAX_BATCH: usize = 1_024;
/// So many places of holds weigh as much as one answer.
const PLACES_PER_ANSWER: usize = 32;

type Item = Result<Vec<v1::SessionResponse>, Status>;

/// Where the answers to one client go. Clones are the same.
#[derive(Clone, Debug)]
pub(super) struct Outbox(mpsc::Sender<Item>);

/// An outbox, and the messages that come of it: whatever is ready becomes one message. A status is the last.
pub(super) fn channel() -> (Outbox, impl Stream<Item = Result<v1::SessionResponses, Status>>) {
    let (queue, answers) = mpsc::channel(QUEUE);
    let messages = futures::stream::unfold((answers, None), |(mut answers, kept)| async move {
        let first = match kept {
            Some(kept) => kept,
            None => answers.recv().await?,
        };
        let (message, kept) = gather(first, &mut answers);
        Some((message, (answers, kept)))
    });
    (Outbox(queue), messages)
}

/// One message of what is ready now, and what did not fit into it.
fn gather(
    first: Item,
    answers: &mut mpsc::Receiver<Item>,
) -> (Result<v1::SessionResponses, Status>, Option<Item>) {
    let mut responses = match first {
        Ok(responses) => responses,
        Err(status) => return (Err(status), None),
    };
    let (mut kept, mut weight) = (None, weight_of(&responses));
    while kept.is_none()
        && let Ok(next) = answers.try_recv()
    {
        match next {
            Ok(more) if weight + weight_of(&more) <= MAX_BATCH => {
                weight += weight_of(&more);
                responses.extend(more);
            }
            other => kept = Some(other),
        }
    }
    (Ok(v1::SessionResponses { responses }), kept)
}

/// How many plain answers these are as large as.
fn weight_of(responses: &[v1::SessionResponse]) -> usize {
    responses.iter().map(weight).sum()
}

fn weight(response: &v1::SessionResponse) -> usize {
    match &response.body {
        Some(Answer::Located(located)) => 1 + located.places.len() / PLACES_PER_ANSWER,
        Some(_) | None => 1,
    }
}

/// One answer to a request of a session, or with sequence 0 a notification.
pub(super) const fn response(session: u64, sequence: u64, body: Answer) -> v1::SessionResponse {
    v1::SessionResponse { sequence, session, body: Some(body) }
}

impl Outbox {
    /// Sends an answer; a client that is gone does not need it.
    pub(super) async fn send(&self, session: u64, sequence: u64, body: Answer) {
        self.send_all(vec![response(session, sequence, body)]).await;
    }

    pub(super) async fn refuse(&self, session: u64, sequence: u64, error: ApiError) {
        self.send(session, sequence, Answer::Error(error.into())).await;
    }

    /// Sends answers together.
    pub(super) async fn send_all(&self, mut responses: Vec<v1::SessionResponse>) {
        while !responses.is_empty() {
            let mut room = MAX_BATCH;
            let fits = responses.iter().take_while(|response| {
                let weight = weight(response);
                let fits = weight <= room;
                room = room.saturating_sub(weight);
                fits
            });
            // One is always sent, however large.
            let rest = responses.split_off(fits.count().max(1));
            // As above.
            let _ = self.0.send(Ok(responses)).await;
            responses = rest;
        }
    }

    /// Ends the stream where there is room to say so; a client that does not read finds out by the closed connection.
    pub(super) fn end(&self, status: Status) {
        let _ = self.0.try_send(Err(status));
    }

    /// Waits until the client is gone.
    pub(super) async fn closed(&self) {
        self.0.closed().await;
    }
}

#[cfg(test)]
mod tests {
    use futures::StreamExt;

    use super::*;

    #[tokio::test]
    async fn what_is_ready_is_one_message_and_nothing_is_lost() {
        let (outbox, messages) = channel();
        let answer = |sequence| response(1, sequence, Answer::Closed(v1::Closed {}));
        outbox.send_all((1..=2 * MAX_BATCH as u64 + 1).map(answer).collect()).await;
        outbox.send(1, 9_999, Answer::Closed(v1::Closed {})).await;
        outbox.end(Status::unavailable("the member is stopping"));
        drop(outbox);
        let sizes: Vec<Option<usize>> =
            messages.map(|message| message.ok().map(|batch| batch.responses.len())).collect().await;
        assert_eq!(sizes, [Some(MAX_BATCH), Some(MAX_BATCH), Some(2), None]);
    }
}

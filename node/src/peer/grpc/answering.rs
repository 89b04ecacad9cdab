//! Answers the calls of one stream, in any order, those that are ready together in one message.
//!
//! All run in the stream's own task: with the stream they end where they stand.

use std::collections::HashMap;

use bytes::Bytes;
use futures::{
    FutureExt, Stream, StreamExt,
    future::{AbortHandle, Aborted, BoxFuture, abortable},
    stream::FuturesUnordered,
};
use tokio_util::sync::CancellationToken;
use tonic::{Status, Streaming};

use super::wire::proto;

/// Answers in one message.
const BATCH: usize = 64;

type Ended = (u64, Result<Bytes, Aborted>);

/// Calls under way on one stream.
#[derive(Default)]
struct UnderWay {
    calls: FuturesUnordered<BoxFuture<'static, Ended>>,
    handles: HashMap<u64, AbortHandle>,
}

impl UnderWay {
    fn take<W>(&mut self, call: proto::Call, work: &W)
    where
        W: Fn(Bytes) -> BoxFuture<'static, Bytes>,
    {
        let id = call.id;
        if call.given_up {
            if let Some(handle) = self.handles.remove(&id) {
                handle.abort();
            }
            return;
        }
        let (answer, handle) = abortable(work(call.body));
        self.handles.insert(id, handle);
        self.calls.push(answer.map(move |answer| (id, answer)).boxed());
    }

    fn answered(&mut self, (id, answer): Ended, answers: &mut Vec<proto::CallAnswer>) {
        self.handles.remove(&id);
        if let Ok(body) = answer {
            answers.push(proto::CallAnswer { id, body });
        }
    }

    /// The next answers: those that are ready now, at least one unless it was given up. Pending without calls.
    async fn next(&mut self) -> Vec<proto::CallAnswer> {
        let mut answers = Vec::new();
        match self.calls.next().await {
            Some(ended) => self.answered(ended, &mut answers),
            None => std::future::pending().await,
        }
        while answers.len() < BATCH {
            let Some(Some(ended)) = self.calls.next().now_or_never() else { break };
            self.answered(ended, &mut answers);
        }
        answers
    }
}

/// Answers what comes on `batches` with `work`, until the caller ends the stream or the member stops.
pub(crate) fn answer_calls<W>(
    mut batches: Streaming<proto::CallBatch>,
    work: W,
    stopping: CancellationToken,
) -> impl Stream<Item = Result<proto::AnswerBatch, Status>> + Send + 'static
where
    W: Fn(Bytes) -> BoxFuture<'static, Bytes> + Send + 'static,
{
    async_stream::stream! {
        let mut under_way = UnderWay::default();
        loop {
            tokio::select! {
                () = stopping.cancelled() => {
                    yield Err(Status::unavailable("the member stopped before it had an answer"));
                    return;
                }
                batch = batches.message() => match batch {
                    Ok(Some(batch)) => batch.calls.into_iter().for_each(|call| under_way.take(call, &work)),
                    // The caller is gone, and nobody wants the answers.
                    Ok(None) | Err(_) => return,
                },
                answers = under_way.next() => {
                    if !answers.is_empty() {
                        yield Ok(proto::AnswerBatch { answers });
                    }
                }
            }
        }
    }
}

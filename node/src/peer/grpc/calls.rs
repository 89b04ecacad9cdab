//! Calls to one member on one stream: those that come together travel together, answers come in any order.
//!
//! A call on a request of its own costs both members about as much as all the rest of an acquire. Knows no content.

use std::{
    collections::HashMap,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use futures::Stream;
use parking_lot::Mutex;
use tokio::sync::{mpsc, oneshot};

use super::wire::proto;

/// Calls in one message.
const BATCH: usize = 64;
/// Bytes from which on a message takes no further call.
const BATCH_BYTES: usize = 512 * 1024;

/// Why calls that were under way have no answer.
pub(crate) type Broken = Arc<str>;

/// The calling end of a stream. Dropping it ends the stream.
#[derive(Debug)]
pub(crate) struct CallStream {
    outgoing: mpsc::UnboundedSender<proto::Call>,
    callers: Callers,
}

/// Who waits for an answer on a stream.
#[derive(Clone, Debug, Default)]
pub(crate) struct Callers(Arc<Mutex<Waiting>>);

#[derive(Debug, Default)]
struct Waiting {
    last: u64,
    ended: bool,
    answers: HashMap<u64, oneshot::Sender<Result<Bytes, Broken>>>,
}

/// A stream that is to be opened: its calling end, and the messages that go out on it.
pub(crate) fn call_stream() -> (CallStream, CallBatches) {
    let (outgoing, queue) = mpsc::unbounded_channel();
    (CallStream { outgoing, callers: Callers::default() }, CallBatches { queue })
}

impl CallStream {
    /// Who waits on this stream.
    pub(crate) fn callers(&self) -> Callers {
        self.callers.clone()
    }

    /// Whether nothing can be called on it any more.
    pub(crate) fn ended(&self) -> bool {
        self.callers.0.lock().ended
    }

    /// Sends a request and waits for its answer. `None`: the stream has ended, and the request was not sent. Dropping the
    /// future tells the other end that nobody wants the answer.
    pub(crate) async fn call(&self, body: Bytes) -> Option<Result<Bytes, Broken>> {
        let (tell, answer) = oneshot::channel();
        let id = {
            let mut waiting = self.callers.0.lock();
            if waiting.ended {
                return None;
            }
            waiting.last += 1;
            let id = waiting.last;
            waiting.answers.insert(id, tell);
            id
        };
        let _caller = Caller { stream: self, id };
        // Where the stream ends meanwhile, its end answers.
        self.outgoing.send(proto::Call { id, body, given_up: false }).ok()?;
        answer.await.ok()
    }
}

/// One call under way.
struct Caller<'s> {
    stream: &'s CallStream,
    id: u64,
}

impl Drop for Caller<'_> {
    fn drop(&mut self) {
        if self.stream.callers.0.lock().answers.remove(&self.id).is_some() {
            let given_up = proto::Call { id: self.id, body: Bytes::new(), given_up: true };
            // On a stream that has ended nobody works on it any more.
            let _ = self.stream.outgoing.send(given_up);
        }
    }
}

impl Callers {
    /// Answers have come. One that nobody waits for any more is dropped.
    pub(crate) fn answer(&self, batch: proto::AnswerBatch) {
        let mut waiting = self.0.lock();
        for proto::CallAnswer { id, body } in batch.answers {
            if let Some(caller) = waiting.answers.remove(&id) {
                let _ = caller.send(Ok(body));
            }
        }
    }

    /// The stream has ended: nobody gets an answer any more.
    pub(crate) fn end(&self, why: impl Into<Broken>) {
        let why = why.into();
        let callers = {
            let mut waiting = self.0.lock();
            waiting.ended = true;
            std::mem::take(&mut waiting.answers)
        };
        for caller in callers.into_values() {
            let _ = caller.send(Err(why.clone()));
        }
    }
}

/// What goes out: all calls that wait, up to a bound, in one message.
#[derive(Debug)]
pub(crate) struct CallBatches {
    queue: mpsc::UnboundedReceiver<proto::Call>,
}

impl Stream for CallBatches {
    type Item = proto::CallBatch;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<proto::CallBatch>> {
        let Some(first) = ready!(self.queue.poll_recv(cx)) else { return Poll::Ready(None) };
        let mut bytes = first.body.len();
        let mut calls = vec![first];
        while calls.len() < BATCH && bytes < BATCH_BYTES {
            let Ok(next) = self.queue.try_recv() else { break };
            bytes += next.body.len();
            calls.push(next);
        }
        Poll::Ready(Some(proto::CallBatch { calls }))
    }
}

#[cfg(test)]
mod tests {
    use futures::{FutureExt, StreamExt};

    use super::*;

    fn body(text: &'static str) -> Bytes {
        Bytes::from_static(text.as_bytes())
    }

    fn answers(ids: &[u64]) -> proto::AnswerBatch {
        let answers = ids.iter().map(|id| proto::CallAnswer { id: *id, body: body("yes") }).collect();
        proto::AnswerBatch { answers }
    }

    #[tokio::test]
    async fn calls_travel_together_and_answers_find_their_callers() {
        let (stream, mut batches) = call_stream();
        let (mut a, mut b) = (Box::pin(stream.call(body("a"))), Box::pin(stream.call(body("b"))));
        assert!((&mut a).now_or_never().is_none() && (&mut b).now_or_never().is_none());
        let batch = batches.next().await.unwrap();
        let sent: Vec<_> = batch.calls.iter().map(|call| (call.id, call.body.clone())).collect();
        assert_eq!(sent, [(1, body("a")), (2, body("b"))]);
        stream.callers().answer(answers(&[2]));
        assert!((&mut a).now_or_never().is_none());
        assert_eq!(b.await, Some(Ok(body("yes"))));
        stream.callers().end("cut");
        assert_eq!(a.await, Some(Err("cut".into())));
        assert!(stream.ended());
        assert_eq!(stream.call(body("late")).await, None);
    }

    #[tokio::test]
    async fn a_caller_that_leaves_gives_its_call_up() {
        let (stream, mut batches) = call_stream();
        assert!(stream.call(body("a")).now_or_never().is_none());
        let batch = batches.next().await.unwrap();
        let sent: Vec<_> = batch.calls.iter().map(|call| (call.id, call.given_up)).collect();
        assert_eq!(sent, [(1, false), (1, true)]);
        stream.callers().answer(answers(&[1]));
        drop(stream);
        assert_eq!(batches.next().await, None);
    }

    #[tokio::test]
    async fn a_message_has_a_bound() {
        let (stream, mut batches) = call_stream();
        let big = Bytes::from(vec![0; BATCH_BYTES]);
        let mut calls: Vec<_> = (0..3).map(|_| Box::pin(stream.call(big.clone()))).collect();
        for call in &mut calls {
            assert!(call.now_or_never().is_none());
        }
        assert_eq!(batches.next().await.unwrap().calls.len(), 1);
    }
}

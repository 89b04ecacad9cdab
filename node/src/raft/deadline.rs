//! A deadline for each answer of a stream: whoever sends and gets no answer in time must hear of it.

use std::{collections::VecDeque, future::pending, sync::Arc, time::Duration};

use futures::{StreamExt, stream};
use parking_lot::Mutex;
use tokio::{
    sync::Notify,
    time::{Instant, sleep_until},
};

use super::types::MemberId;
use crate::peer::transport::{AppendAnswers, LinkError};

/// When the requests were sent that have no answer yet. Clones are the same record.
#[derive(Clone, Debug, Default)]
pub(crate) struct Unanswered {
    inner: Arc<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    sent: Mutex<VecDeque<Instant>>,
    /// Told when the first request is waiting.
    first: Notify,
}

impl Unanswered {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Notes that a request is being sent.
    pub(crate) fn sent(&self) {
        let mut sent = self.inner.sent.lock();
        sent.push_back(Instant::now());
        if sent.len() == 1 {
            self.inner.first.notify_one();
        }
    }

    fn answered(&self) {
        self.inner.sent.lock().pop_front();
    }

    fn oldest(&self) -> Option<Instant> {
        self.inner.sent.lock().front().copied()
    }
}

/// The same answers, and an error as soon as the oldest request has waited longer than `limit`.
pub(crate) fn with_deadline(
    to: MemberId,
    answers: AppendAnswers,
    unanswered: Unanswered,
    limit: Duration,
) -> AppendAnswers {
    stream::unfold(Some((answers, unanswered)), move |state| async move {
        let (mut answers, unanswered) = state?;
        loop {
            let oldest = unanswered.oldest();
            let overdue = async {
                match oldest {
                    Some(sent) => sleep_until(sent + limit).await,
                    None => pending().await,
                }
            };
            tokio::select! {
                biased;
                answer = answers.next() => {
                    return match answer? {
                        Ok(answer) => {
                            unanswered.answered();
                            Some((Ok(answer), Some((answers, unanswered))))
                        }
                        Err(err) => Some((Err(err), None)),
                    };
                }
                () = overdue => return Some((Err(LinkError::TimedOut { to, limit }), None)),
                () = unanswered.inner.first.notified(), if oldest.is_none() => {}
            }
        }
    })
    .boxed()
}

#[cfg(test)]
mod tests {
    use futures::channel::mpsc;

    use super::*;

    const LIMIT: Duration = Duration::from_secs(1);

    #[tokio::test(start_paused = true)]
    async fn an_idle_stream_may_stay_idle_but_an_answer_must_come() {
        let (answer, answers) = mpsc::unbounded();
        let unanswered = Unanswered::new();
        let mut watched = with_deadline(2, answers.boxed(), unanswered.clone(), LIMIT);

        let idle = tokio::time::timeout(LIMIT * 60, watched.next()).await;
        assert!(idle.is_err(), "nothing was sent: {idle:?}");

        unanswered.sent();
        answer.unbounded_send(Ok(Ok(None))).unwrap();
        assert!(matches!(watched.next().await, Some(Ok(Ok(None)))));

        let started = Instant::now();
        unanswered.sent();
        assert!(matches!(watched.next().await, Some(Err(LinkError::TimedOut { to: 2, .. }))));
        assert_eq!(started.elapsed(), LIMIT);
        assert!(watched.next().await.is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn each_answer_counts_for_the_oldest_request() {
        let (answer, answers) = mpsc::unbounded();
        let unanswered = Unanswered::new();
        let mut watched = with_deadline(2, answers.boxed(), unanswered.clone(), LIMIT);
        unanswered.sent();
        tokio::time::advance(LIMIT / 2).await;
        unanswered.sent();
        answer.unbounded_send(Ok(Ok(None))).unwrap();
        assert!(matches!(watched.next().await, Some(Ok(_))));
        let started = Instant::now();
        assert!(matches!(watched.next().await, Some(Err(_))));
        assert_eq!(started.elapsed(), LIMIT);
    }
}

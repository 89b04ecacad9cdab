//! A question to another process and its answer: the work is done in the receiver's runtime, and ends with the
//! connection, or when nobody waits for it any more.

use std::{sync::Arc, time::Duration};

use futures::future::BoxFuture;
use parking_lot::Mutex;
use tokio::sync::oneshot;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::{Network, Node, Seat};

/// How often, in milliseconds, either end looks whether the connection still stands.
const PING_MS: u64 = 250;

/// Why there is no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lost {
    /// The question was certainly not read.
    Refused,
    /// Nobody can say.
    Broken,
}

/// What is done with a question at its receiver.
pub type Handler<R> = Arc<dyn Fn(&Seat) -> BoxFuture<'static, R> + Send + Sync>;

/// What is asked of whom.
pub struct Question<R> {
    /// Who asks.
    pub from: Node,
    /// Who is asked.
    pub to: Node,
    /// What it is called in traces.
    pub kind: &'static str,
    /// What the receiver does with it.
    pub handler: Handler<R>,
    /// Whether the network may deliver it twice.
    pub may_double: bool,
}

impl<R> std::fmt::Debug for Question<R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}->{}", self.kind, self.from, self.to)
    }
}

type Teller<R> = Arc<Mutex<Option<oneshot::Sender<R>>>>;

impl Network {
    /// Asks, and waits for the answer as long as the connection stands.
    ///
    /// # Errors
    /// [`Lost`].
    pub async fn exchange<R: Send + 'static>(&self, question: Question<R>) -> Result<R, Lost> {
        let (from, to) = (question.from, question.to);
        if self.refuses(from, to) {
            tokio::time::sleep(Duration::from_millis(1)).await;
            return Err(Lost::Refused);
        }
        let (tell, hear) = oneshot::channel();
        let tell: Teller<R> = Arc::new(Mutex::new(Some(tell)));
        let unwanted = CancellationToken::new();
        let copies = if question.may_double && self.doubles(from, to) { 2 } else { 1 };
        for _ in 0..copies {
            self.ask(&question, tell.clone(), unwanted.clone());
        }
        drop(tell);
        let mut withdraw =
            Withdraw { network: self.clone(), from, to, unwanted: Some(unwanted.drop_guard()) };
        let answer = tokio::select! {
            biased;
            answer = hear => answer.map_err(|_| Lost::Broken),
            () = self.silent(from, to) => Err(Lost::Broken),
        };
        if answer.is_ok() {
            withdraw.unwanted.take().map(DropGuard::disarm);
        }
        answer
    }

    fn ask<R: Send + 'static>(&self, question: &Question<R>, tell: Teller<R>, unwanted: CancellationToken) {
        let &Question { from, to, kind, .. } = question;
        let (network, handler) = (self.clone(), question.handler.clone());
        let work = move |seat: Option<&Seat>| {
            // Where nobody listens the teller is dropped, and the connection with it.
            let Some(seat) = seat else { return };
            let answering = handler(seat);
            tokio::spawn(async move {
                let answer = tokio::select! {
                    biased;
                    () = unwanted.cancelled() => return,
                    () = network.silent(to, from) => return,
                    answer = answering => answer,
                };
                let work = move |_: Option<&Seat>| {
                    if let Some(tell) = tell.lock().take() {
                        // Whoever asked may have given up.
                        drop(tell.send(answer));
                    }
                };
                network.send(to, from, kind, 0, Box::new(work));
            });
        };
        self.send(from, to, kind, 0, Box::new(work));
    }

    /// Resolves when the connection between two processes is broken because nothing gets through.
    pub(super) async fn silent(&self, one: Node, other: Node) {
        while !self.is_silent(one, other) {
            tokio::time::sleep(Duration::from_millis(PING_MS)).await;
        }
    }
}

/// Tells the receiver, in the network's own time, that nobody waits for the answer any more.
struct Withdraw {
    network: Network,
    from: Node,
    to: Node,
    unwanted: Option<DropGuard>,
}

impl Drop for Withdraw {
    fn drop(&mut self) {
        if let Some(unwanted) = self.unwanted.take() {
            self.network.send(self.from, self.to, "withdraw", 0, Box::new(move |_| drop(unwanted)));
        }
    }
}

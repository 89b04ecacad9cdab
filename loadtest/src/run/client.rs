//! The loop of one client: acquire, hold, release; timed, counted and witnessed.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use holdfast_history::{End, SessionEnd, Wait};
use tokio::{
    sync::oneshot::{self, error::RecvError},
    time::sleep,
};

use super::Course;
use crate::{
    clock::now,
    driver::{LockClient, Opened, Refusal, Standing},
    recorder::{Recorder, Witness},
};

/// Pause after something went wrong, so that trouble does not become load.
const AFTER_TROUBLE: Duration = Duration::from_millis(50);

/// One client of a run.
#[derive(Debug)]
pub(crate) struct LoopClient<C> {
    number: u32,
    client: C,
    lock: Arc<str>,
    course: Arc<Course>,
    recorder: Option<Arc<Recorder>>,
    witness: Option<Witness>,
}

impl<C: LockClient> LoopClient<C> {
    pub(crate) fn new(
        number: u32,
        client: C,
        lock: Arc<str>,
        course: Arc<Course>,
        judged: Option<(&Arc<Recorder>, Opened)>,
    ) -> Self {
        let recorder = judged.map(|(recorder, _)| recorder.clone());
        let witness = judged.map(|(recorder, opened)| witness(recorder, number, opened));
        Self { number, client, lock, course, recorder, witness }
    }

    /// Runs until the time is over; a wait that is under way when `stopped` comes is given up.
    pub(crate) async fn run(mut self, mut stopped: oneshot::Receiver<()>) {
        while !self.course.over(now()) {
            match self.cycle(&mut stopped).await {
                Ok(Cycle::Done) => {}
                Ok(Cycle::Stopped) => break,
                Err(refusal) => self.trouble(refusal).await,
            }
        }
        if let Some(witness) = &self.witness {
            witness.session_ended(SessionEnd::Closed);
        }
        self.client.close().await;
    }

    async fn cycle(&mut self, stopped: &mut oneshot::Receiver<()>) -> Result<Cycle, Refusal> {
        let sent = now();
        let call =
            self.witness.as_ref().map(|witness| witness.acquire_sent(sent, &self.lock, Wait::Unlimited));
        let answer = tokio::select! {
            biased;
            answer = self.client.acquire(&self.lock) => Some(answer),
            Err(RecvError { .. }) = stopped => None,
        };
        let at = now();
        // First, until when the session is valid; then what it holds.
        let lost = matches!(answer, Some(Ok(_))) && self.look(at);
        let end = match &answer {
            Some(Ok(token)) => End::Granted(*token),
            Some(Err(refusal)) => refusal.end,
            None => End::Cancelled,
        };
        if let Some((witness, call)) = self.witness.as_ref().zip(call) {
            witness.acquire_ended(at, call, &self.lock, end);
        }
        let token = match answer {
            Some(answer) => answer?,
            None => return Ok(Cycle::Stopped),
        };
        if lost && let Some(witness) = &self.witness {
            witness.hold_lost(at, &self.lock, token);
        }
        self.granted(sent, at);
        if !self.course.hold.is_zero() {
            self.hold(token).await;
        }
        self.release(token).await?;
        Ok(Cycle::Done)
    }

    fn granted(&self, sent: u64, at: u64) {
        if !self.course.measures(at) {
            return;
        }
        let released = if self.course.handovers { self.course.released.load(Ordering::Relaxed) } else { 0 };
        self.course.tally.with(self.number, |figures| {
            figures.acquire.record(at - sent);
            if released > 0 {
                figures.handover.record(at.saturating_sub(released));
            }
        });
    }

    async fn release(&mut self, token: u64) -> Result<(), Refusal> {
        let sent = now();
        if let Some(witness) = &self.witness {
            witness.release_sent(sent, &self.lock, token);
        }
        if self.course.handovers {
            self.course.released.store(sent, Ordering::Relaxed);
        }
        self.client.release().await?;
        let at = now();
        if self.course.measures(at) {
            self.course.tally.with(self.number, |figures| {
                figures.release.record(at - sent);
                figures.cycles += 1;
            });
        }
        Ok(())
    }

    /// Looks now and then how the hold stands by its client's own clock, so that the checks know until when it is valid.
    /// Answers whether it is lost.
    fn look(&mut self, at: u64) -> bool {
        let Some(witness) = self.witness.as_mut().filter(|witness| witness.wants_look(at)) else {
            return false;
        };
        match self.client.standing() {
            Some(Standing::Safe) => witness.is_safe(at),
            Some(Standing::InDoubt) | None => {}
            Some(Standing::Lost) => return true,
        }
        false
    }

    async fn hold(&mut self, token: u64) {
        let ttl = self.client.opened().map_or(self.course.hold, |opened| opened.ttl);
        let slice = (ttl / 4).max(Duration::from_millis(1));
        let mut left = self.course.hold;
        while !left.is_zero() {
            let pause = left.min(slice);
            sleep(pause).await;
            left -= pause;
            let at = now();
            if self.look(at)
                && let Some(witness) = &self.witness
            {
                witness.hold_lost(at, &self.lock, token);
            }
        }
    }

    /// Counts what went wrong, and makes the client usable again.
    async fn trouble(&mut self, refusal: Refusal) {
        self.course.tally.with(self.number, |figures| figures.error(refusal.text));
        if let Some(end) = refusal.session {
            if let Some(witness) = self.witness.take() {
                witness.session_ended(end);
            }
            match self.client.reopen().await {
                Ok(()) => {
                    let judged = self.recorder.as_ref().zip(self.client.opened());
                    self.witness = judged.map(|(recorder, opened)| witness(recorder, self.number, opened));
                }
                Err(failure) => {
                    self.course.tally.with(self.number, |figures| figures.error(failure.to_string()));
                }
            }
        }
        sleep(AFTER_TROUBLE).await;
    }
}

/// How a cycle ended that did not fail.
enum Cycle {
    Done,
    Stopped,
}

fn witness(recorder: &Arc<Recorder>, number: u32, opened: Opened) -> Witness {
    Witness::new(recorder.clone(), number, opened.session, opened.ttl, opened.sent)
}

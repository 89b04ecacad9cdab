//! One session as a state machine: requests and messages go in, messages and answers come out.
//!
//! Pure: every call takes `now`. Knows no socket, no task and no timer; [`super::driver`] is the shell around it.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use bytes::Bytes;
use holdfast_proto::v1;
use tokio::sync::oneshot;

use super::{
    hold::{Hold, Standing},
    ledger::Ledger,
    pulse::Pulse,
    request::{Acquire, Call, Phase, Queue, Requests, Wait},
    search::Search,
};
use crate::{
    acquire_error::AcquireError, clock::Moment, error::Error, hold_error::HoldError, ids::SessionId,
    random::Random, state::LossReason,
};

/// What a caller asks for.
#[derive(Clone, Debug)]
pub(crate) struct Want {
    pub(crate) name: Arc<str>,
    pub(crate) election: bool,
    pub(crate) wait: Wait,
    pub(crate) metadata: BTreeMap<String, String>,
    pub(crate) value: Bytes,
}

/// One session.
#[derive(Debug)]
pub(crate) struct Core {
    pub(super) session: SessionId,
    pub(super) request_timeout: Duration,
    pub(super) ledger: Ledger,
    pub(super) pulse: Pulse,
    pub(super) requests: Requests,
    pub(super) search: Search,
    pub(super) random: Random,
    /// Why there was no connection lately, for people.
    pub(super) trouble: String,
    last_sequence: u64,
    /// The request that asked the present member to carry the session.
    pub(super) resumed_by: Option<u64>,
    /// The present member does not carry the session.
    pub(super) turned_away: bool,
    /// Acquires that were asked anew: the number their caller knows, and the one they have now.
    renamed: BTreeMap<u64, u64>,
}

impl Core {
    /// A session whose opening was sent at `opened` as message 1.
    pub(crate) fn new(
        session: SessionId,
        ttl: Duration,
        opened: Moment,
        request_timeout: Duration,
        seed: u64,
    ) -> Self {
        Self {
            session,
            request_timeout,
            ledger: Ledger::new(ttl, opened),
            pulse: Pulse::new(ttl, opened),
            requests: Requests::default(),
            search: Search::new(ttl),
            random: Random::new(seed),
            trouble: String::from("there is no connection yet"),
            last_sequence: 1,
            resumed_by: None,
            turned_away: false,
            renamed: BTreeMap::new(),
        }
    }

    pub(crate) const fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    pub(crate) const fn ledger_mut(&mut self) -> &mut Ledger {
        &mut self.ledger
    }

    pub(super) fn sequence(&mut self) -> u64 {
        self.last_sequence += 1;
        self.last_sequence
    }

    /// Asks for a lock. The answer is the number of the hold; whoever gets it owns it and must release it.
    pub(crate) fn acquire(
        &mut self,
        want: Want,
        now: Moment,
    ) -> (u64, oneshot::Receiver<Result<u64, AcquireError>>) {
        let (reply, answer) = oneshot::channel();
        let sequence = self.sequence();
        if let Some(reason) = self.ledger.end() {
            let name = want.name.as_ref().to_owned();
            let _ = reply.send(Err(AcquireError::SessionLost { name, reason: reason.clone() }));
            return (sequence, answer);
        }
        let acquire = Acquire {
            wait: want.wait,
            metadata: want.metadata,
            value: want.value,
            reply: Some(reply),
            granted: false,
        };
        self.requests.insert(sequence, Call::Acquire(acquire), (want.name, want.election), now);
        (sequence, answer)
    }

    /// The caller of an acquire is gone: its wait must leave the queue, its grant must be given back.
    pub(crate) fn abandon(&mut self, sequence: u64, now: Moment) {
        let sequence = self.renamed.remove(&sequence).unwrap_or(sequence);
        let Some(entry) = self.requests.get_mut(sequence) else { return };
        let Call::Acquire(acquire) = &mut entry.call else { return };
        acquire.reply = None;
        let queue = entry.queue.clone();
        if acquire.granted {
            self.requests.remove(sequence);
            self.give_back(sequence, now);
        } else if entry.first_send.is_none() {
            self.requests.remove(sequence);
        } else {
            self.requests.set_phase(sequence, Phase::Withdrawn);
            self.push(Call::Cancel { acquire: sequence }, queue, now);
        }
    }

    /// An acquire goes on under another number.
    pub(super) fn renamed(&mut self, old: u64, new: u64) {
        let known = self.renamed.iter().find(|(_, current)| **current == old).map(|(caller, _)| *caller);
        self.renamed.insert(known.unwrap_or(old), new);
    }

    /// Nobody will ask for the acquire by the number its caller knows any more.
    pub(super) fn forget_name(&mut self, sequence: u64) {
        self.renamed.retain(|_, current| *current != sequence);
    }

    /// Ends a hold; the answer says whether this call ended it.
    pub(crate) fn release(
        &mut self,
        hold: u64,
        now: Moment,
    ) -> (u64, oneshot::Receiver<Result<bool, HoldError>>) {
        let (reply, answer) = oneshot::channel();
        let sequence = self.sequence();
        match self.holder_of(hold) {
            Err(error) => {
                let _ = reply.send(Err(error));
            }
            Ok((queue, token)) => {
                let call = Call::Release { token, hold: Some(hold), reply: Some(reply) };
                self.requests.insert(sequence, call, queue, now);
            }
        }
        (sequence, answer)
    }

    /// Nobody uses the hold any more: it is ended in the background, repeated until it is known to be over.
    pub(crate) fn give_back(&mut self, hold: u64, now: Moment) {
        let live = self.ledger.hold(hold).is_some_and(Hold::is_live);
        self.ledger.orphan(hold);
        if let (true, Ok((queue, token))) = (live, self.holder_of(hold)) {
            self.push(Call::Release { token, hold: Some(hold), reply: None }, queue, now);
        }
    }

    /// A hold has passed its deadline and the session lives on, so that its group may keep the lock for it when it is back:
    /// nobody counts on that any more, and it is released. One that nobody used is being released already.
    pub(super) fn write_off(&mut self, hold: u64, now: Moment) {
        // A claim is left by whoever takes part in it.
        if self.ledger.hold(hold).is_some_and(|hold| hold.claim) {
            return;
        }
        if let Ok((queue, token)) = self.holder_of(hold) {
            self.push(Call::Release { token, hold: None, reply: None }, queue, now);
        }
    }

    /// Replaces the value of a hold's key.
    pub(crate) fn proclaim(
        &mut self,
        hold: u64,
        value: Bytes,
        now: Moment,
    ) -> (u64, oneshot::Receiver<Result<(), HoldError>>) {
        let (reply, answer) = oneshot::channel();
        let sequence = self.sequence();
        match self.holder_of(hold) {
            Err(error) => {
                let _ = reply.send(Err(error));
            }
            Ok((queue, token)) => {
                let call = Call::Proclaim { hold, token, value, reply: Some(reply) };
                self.requests.insert(sequence, call, queue, now);
            }
        }
        (sequence, answer)
    }

    /// The caller of a release or a proclamation is gone: what was not sent yet is not sent any more.
    pub(crate) fn withdraw(&mut self, sequence: u64) {
        let Some(entry) = self.requests.get_mut(sequence) else { return };
        match &mut entry.call {
            Call::Release { reply, .. } => *reply = None,
            Call::Proclaim { reply, .. } => *reply = None,
            Call::Acquire(_) | Call::Cancel { .. } | Call::Close { .. } => return,
        }
        if entry.phase == Phase::Sent {
            self.requests.set_phase(sequence, Phase::Withdrawn);
        } else {
            self.requests.remove(sequence);
        }
    }

    /// Closes the session at the server, and with the answer here.
    pub(crate) fn close(&mut self, now: Moment) -> oneshot::Receiver<Result<(), Error>> {
        let (reply, answer) = oneshot::channel();
        if self.ledger.end().is_some() {
            let _ = reply.send(Ok(()));
        } else {
            self.push(Call::Close { reply: Some(reply) }, close_queue(), now);
        }
        answer
    }

    /// Whether the session is being closed: what the service says of it meanwhile may come of that.
    pub(crate) fn closing(&self) -> bool {
        self.requests.iter().any(|(_, entry)| matches!(entry.call, Call::Close { .. }))
    }

    /// Closes the session for nobody in particular, within the request timeout.
    pub(crate) fn close_quietly(&mut self, now: Moment) {
        if self.ledger.end().is_none() {
            self.end(&LossReason::Closed, now);
        }
    }

    /// The session is over: every caller is told, and the server is asked once more to close it where it may not know.
    pub(crate) fn end(&mut self, reason: &LossReason, now: Moment) {
        if self.ledger.end().is_some() {
            return;
        }
        self.ledger.session_ended(reason);
        self.answer_all(reason);
        match reason {
            LossReason::Deadline | LossReason::Closed => {
                self.push(Call::Close { reply: None }, close_queue(), now)
            }
            LossReason::SessionEnded(_)
            | LossReason::Ended(_)
            | LossReason::NotHolder
            | LossReason::Released
            | LossReason::Stopped => {}
        }
    }

    fn answer_all(&mut self, reason: &LossReason) {
        for entry in self.requests.drain() {
            let name = entry.queue.0.as_ref().to_owned();
            let reason = reason.clone();
            match entry.call {
                Call::Acquire(acquire) => {
                    if let Some(reply) = acquire.reply {
                        let _ = reply.send(Err(AcquireError::SessionLost { name, reason }));
                    }
                }
                Call::Release { reply: Some(reply), .. } => {
                    let _ = reply.send(Err(HoldError::SessionLost { name, reason }));
                }
                Call::Proclaim { reply: Some(reply), .. } => {
                    let _ = reply.send(Err(HoldError::SessionLost { name, reason }));
                }
                Call::Close { reply: Some(reply) } => {
                    let _ = reply.send(Ok(()));
                }
                Call::Cancel { .. } | Call::Release { .. } | Call::Proclaim { .. } | Call::Close { .. } => {}
            }
        }
    }

    /// Whether the session is over and there is nothing left to tell the server.
    pub(crate) fn finished(&self) -> bool {
        self.ledger.end().is_some() && self.requests.iter().next().is_none()
    }

    /// Why a hold is over.
    pub(crate) fn loss_of(&self, hold: u64) -> LossReason {
        match self.ledger.hold(hold).map(|hold| &hold.standing) {
            Some(Standing::Lost(reason)) => reason.clone(),
            Some(Standing::Released) => LossReason::Released,
            Some(Standing::Held | Standing::Releasing) => LossReason::Deadline,
            None => self.ledger.end().cloned().unwrap_or(LossReason::NotHolder),
        }
    }

    fn holder_of(&self, hold: u64) -> Result<(Queue, u64), HoldError> {
        let known = self.ledger.hold(hold);
        let name = known.map_or("", |hold| &hold.name).to_owned();
        match (self.ledger.end(), known) {
            (Some(reason), _) => Err(HoldError::SessionLost { name, reason: reason.clone() }),
            (None, None) => Err(HoldError::NotHolder { name }),
            (None, Some(hold)) => Ok(((hold.name.clone(), hold.election), hold.token)),
        }
    }

    pub(super) fn push(&mut self, call: Call, queue: Queue, now: Moment) {
        let sequence = self.sequence();
        self.requests.insert(sequence, call, queue, now);
    }

    /// The next message for the server, taken out as sent now; `None` while there is nothing to send.
    pub(crate) fn next_message(&mut self, now: Moment) -> Option<v1::SessionRequest> {
        if self.ledger.end().is_none() && self.pulse.is_due(now) {
            let sequence = self.sequence();
            self.pulse.sent(sequence, now);
            return Some(self.request(sequence, v1::session_request::Body::Keepalive(v1::Keepalive {})));
        }
        if self.may_locate(now) {
            return Some(self.locate_message(now));
        }
        let sequence = self.requests.next_unsent()?;
        self.requests.set_phase(sequence, Phase::Sent);
        let lowest = self.requests.lowest_acquire(now).unwrap_or(sequence).min(sequence);
        let entry = self.requests.get_mut(sequence)?;
        entry.first_send.get_or_insert(now);
        let name = v1::Name { text: entry.queue.0.as_ref().to_owned(), election: entry.queue.1 };
        let body = match &entry.call {
            Call::Acquire(acquire) => {
                self.ledger.acquire_sent(sequence, now);
                acquire_message(acquire, name, lowest, now.since(entry.asked))
            }
            Call::Cancel { acquire } => v1::session_request::Body::Cancel(v1::Cancel {
                name: Some(name),
                acquire_sequence: *acquire,
                release_if_granted: true,
            }),
            Call::Release { token, hold, .. } => {
                if let Some(hold) = hold {
                    self.ledger.release_sent(*hold);
                }
                v1::session_request::Body::Release(v1::Release { name: Some(name), token: *token })
            }
            Call::Proclaim { token, value, .. } => v1::session_request::Body::Proclaim(v1::Proclaim {
                name: Some(name),
                token: *token,
                value: value.clone(),
            }),
            Call::Close { .. } => v1::session_request::Body::Close(v1::Close {}),
        };
        Some(self.request(sequence, body))
    }

    pub(super) const fn request(&self, sequence: u64, body: v1::session_request::Body) -> v1::SessionRequest {
        v1::SessionRequest { sequence, session: self.session.get(), body: Some(body) }
    }

    /// Whether [`Self::next_message`] has something.
    pub(crate) fn has_message(&self, now: Moment) -> bool {
        let due = self.pulse.is_due(now) || self.may_locate(now);
        (self.ledger.end().is_none() && due) || self.requests.next_unsent().is_some()
    }

    /// The first message on a new connection.
    pub(crate) fn resume_message(&mut self) -> v1::SessionRequest {
        let holds = self.ledger.live_holds().filter(|hold| !hold.claim).map(hold_message).collect();
        let sequence = self.sequence();
        self.resumed_by = Some(sequence);
        self.request(sequence, v1::session_request::Body::Resume(v1::Resume { holds }))
    }

    /// The connection is gone.
    pub(crate) fn disconnected(&mut self, trouble: String, now: Moment) {
        self.trouble = trouble;
        self.turned_away = false;
        self.pulse.disconnected(now);
        self.search.disconnected();
        self.requests.disconnected();
    }

    /// An attempt to connect failed.
    pub(crate) fn not_connected(&mut self, trouble: String) {
        self.trouble = trouble;
    }

    /// Why the member does not carry the session, where it said so.
    pub(crate) fn turned_away(&self) -> Option<Error> {
        self.turned_away.then(|| Error::Unreachable { reason: self.trouble.clone() })
    }

    /// Whether the connection is silent for too long and should be given up.
    pub(crate) fn stalled(&self, now: Moment) -> bool {
        self.pulse.stalled(now)
    }
}

/// A hold as servers are told of it.
pub(super) fn hold_message(hold: &Hold) -> v1::Hold {
    let name = v1::Name { text: hold.name.as_ref().to_owned(), election: hold.election };
    v1::Hold { name: Some(name), token: hold.token, epoch: hold.place.epoch, claim: hold.claim }
}

fn close_queue() -> Queue {
    (Arc::from(""), false)
}

fn acquire_message(
    acquire: &Acquire,
    name: v1::Name,
    lowest_outstanding: u64,
    waited: Duration,
) -> v1::session_request::Body {
    let wait = match acquire.wait {
        Wait::Try => v1::acquire::Wait::Try(v1::Try {}),
        Wait::Unlimited => v1::acquire::Wait::Unlimited(v1::Unlimited {}),
        Wait::AtMost(limit) => {
            let remaining = limit.saturating_sub(waited).as_millis();
            v1::acquire::Wait::AtMostMs(u64::try_from(remaining).unwrap_or(u64::MAX).max(1))
        }
    };
    v1::session_request::Body::Acquire(v1::Acquire {
        name: Some(name),
        lowest_outstanding,
        wait: Some(wait),
        metadata: acquire.metadata.clone().into_iter().collect(),
        value: acquire.value.clone(),
    })
}

//! What an answer, a notification or the passing of time does to a session. The other half of [`super::core`].

use holdfast_mutants::mutant;
use holdfast_proto::v1::{self, session_response::Body};

use super::{
    core::Core,
    hold::{Hold, Standing},
    lease::Place,
    ledger::GroupAnswer,
    request::{Call, Entry, Phase},
};
use crate::{
    acquire_error::AcquireError,
    call::{RETRY_BASE, RETRY_MAX},
    clock::Moment,
    error::{ApiError, Error, ErrorCode},
    hold_error::HoldError,
    state::LossReason,
};

impl Core {
    /// A message came from the server.
    pub(crate) fn on_message(&mut self, message: v1::SessionResponse, now: Moment) {
        self.tick(now);
        let sequence = message.sequence;
        match message.body {
            Some(Body::KeepaliveAck(ack)) => self.on_keepalive_ack(sequence, ack, now),
            Some(Body::Granted(grant)) => self.on_granted(sequence, &grant, now),
            Some(Body::CancelDone(_)) => self.on_cancel_done(sequence, now),
            Some(Body::Released(released)) => self.on_released(sequence, released.released),
            Some(Body::Proclaimed(_)) => {
                if let Some(Entry { call: Call::Proclaim { reply: Some(reply), .. }, .. }) =
                    self.requests.remove(sequence)
                {
                    let _ = reply.send(Ok(()));
                }
            }
            Some(Body::Located(located)) => self.on_located(sequence, located, now),
            Some(Body::Closed(_)) => self.on_closed(sequence, now),
            Some(Body::Error(error)) => self.on_error(sequence, error.into(), now),
            Some(Body::HoldEnded(ended)) => {
                self.on_hold_ended(&ended);
                self.deliver_covered(now);
            }
            Some(Body::SessionLost(lost)) => self.end(&LossReason::SessionEnded(lost.message), now),
            Some(Body::Opened(_) | Body::Resumed(_)) | None => {}
        }
    }

    fn on_keepalive_ack(&mut self, sequence: u64, ack: v1::KeepaliveAck, now: Moment) {
        let Some(sent) = self.pulse.answered(sequence) else { return };
        let sent = if mutant!("deadline-counted-from-the-answer") { now } else { sent };
        let (mut all_answered, mut all_there) = (true, true);
        for line in ack.groups {
            let state = line.state();
            let answer = match state {
                v1::LeaseState::Renewed => GroupAnswer::Renewed,
                v1::LeaseState::Unknown => GroupAnswer::Unknown,
                v1::LeaseState::Lost => GroupAnswer::Lost,
                v1::LeaseState::Unavailable | v1::LeaseState::Unspecified | v1::LeaseState::Moving => {
                    GroupAnswer::Unavailable
                }
            };
            all_answered &= answer != GroupAnswer::Unavailable;
            all_there &= answer != GroupAnswer::Unavailable || state == v1::LeaseState::Moving;
            let place = Place { group: line.group, epoch: line.epoch };
            self.ledger.group_answered(place, answer, sent, now);
        }
        if all_answered {
            self.ledger.all_groups_answered(sent);
            self.pulse.fruitful();
        } else if all_there {
            // No other member would say more while locks change groups; in a moment this one does.
            self.pulse.fruitful();
            self.pulse.hurry(now);
        } else {
            self.pulse.fruitless(sent, now);
        }
        self.deliver_covered(now);
    }

    fn on_granted(&mut self, sequence: u64, grant: &v1::Granted, now: Moment) {
        let Some(entry) = self.requests.get_mut(sequence) else { return };
        let Call::Acquire(acquire) = &mut entry.call else { return };
        if acquire.granted {
            return;
        }
        acquire.granted = true;
        let hold = Hold {
            name: entry.queue.0.clone(),
            election: entry.queue.1,
            claim: false,
            token: grant.token,
            place: Place { group: grant.group, epoch: grant.epoch },
            first_send: entry.first_send.unwrap_or(now),
            standing: Standing::Held,
            confirmed: false,
            orphan: false,
        };
        let wanted = acquire.reply.is_some();
        self.ledger.granted(sequence, hold, now);
        if !wanted || self.ledger.covered(sequence, now) {
            self.deliver(sequence, now);
        }
        if self.ledger.renewal_overdue(sequence, self.pulse.interval(), now) {
            self.pulse.want();
        }
    }

    /// Hands a grant to its caller; without one the lock goes back.
    fn deliver(&mut self, sequence: u64, now: Moment) {
        let Some(Entry { call: Call::Acquire(acquire), .. }) = self.requests.remove(sequence) else { return };
        let taken = acquire.reply.is_some_and(|reply| reply.send(Ok(sequence)).is_ok());
        self.forget_name(sequence);
        self.ledger.confirm(sequence);
        if !taken {
            self.give_back(sequence, now);
        }
    }

    /// Hands over grants whose group has acknowledged a keepalive in the meantime.
    pub(super) fn deliver_covered(&mut self, now: Moment) {
        let mut granted = Vec::new();
        for (sequence, entry) in self.requests.iter() {
            let Call::Acquire(acquire) = &entry.call else { continue };
            if acquire.granted {
                granted.push((sequence, entry.queue.0.as_ref().to_owned()));
            }
        }
        for (sequence, name) in granted {
            match self.ledger.hold(sequence).map(|hold| hold.standing.clone()) {
                Some(Standing::Lost(reason)) => {
                    self.acquire_failed(sequence, AcquireError::SessionLost { name, reason }, true, now);
                }
                Some(_) if self.ledger.covered(sequence, now) => self.deliver(sequence, now),
                Some(_) | None => self.pulse.want(),
            }
        }
    }

    fn on_cancel_done(&mut self, sequence: u64, now: Moment) {
        let Some(Entry { call: Call::Cancel { acquire, .. }, .. }) = self.requests.remove(sequence) else {
            return;
        };
        self.acquire_over(acquire, true, now);
    }

    /// A withdrawn acquire is over.
    fn acquire_over(&mut self, sequence: u64, attached: bool, now: Moment) {
        self.ledger.acquire_ended(sequence, attached, now);
        self.requests.remove(sequence);
    }

    fn on_released(&mut self, sequence: u64, released: bool) {
        let Some(Entry { call: Call::Release { hold, reply, .. }, .. }) = self.requests.remove(sequence)
        else {
            return;
        };
        if let Some(hold) = hold {
            self.ledger.hold_released(hold);
        }
        if let Some(reply) = reply {
            let _ = reply.send(Ok(released));
        }
    }

    fn on_closed(&mut self, sequence: u64, now: Moment) {
        if let Some(Entry { call: Call::Close { reply }, .. }) = self.requests.remove(sequence) {
            self.closed(reply, now);
        }
    }

    fn closed(&mut self, reply: Option<tokio::sync::oneshot::Sender<Result<(), Error>>>, now: Moment) {
        if self.ledger.end().is_none() {
            self.end(&LossReason::Closed, now);
        }
        // The server knows already.
        self.requests.drain();
        if let Some(reply) = reply {
            let _ = reply.send(Ok(()));
        }
    }

    fn on_hold_ended(&mut self, ended: &v1::HoldEnded) {
        let Some(name) = &ended.name else { return };
        let Some(hold) = self.ledger.hold_of(&name.text, name.election, ended.token) else { return };
        // Our own release is under way: its answer tells more.
        let own = ended.what == "released"
            && self.ledger.hold(hold).is_some_and(|hold| hold.standing == Standing::Releasing);
        if !own {
            self.ledger.hold_lost(hold, LossReason::Ended(ended.what.clone()));
            // Where the session went with it, the next keepalive says so.
            self.pulse.want();
        }
    }

    fn on_error(&mut self, sequence: u64, error: ApiError, now: Moment) {
        if self.resumed_by == Some(sequence) {
            (self.turned_away, self.trouble) = (true, error.message);
            return;
        }
        if self.pulse.answered(sequence).is_some() {
            if error.code == ErrorCode::SessionLost {
                self.end(&LossReason::SessionEnded(error.message), now);
            } else {
                self.trouble = error.message;
                self.pulse.hurry(now);
            }
            return;
        }
        if self.search.answered(sequence).is_some() {
            self.search.pause(now);
            return;
        }
        let Some(entry) = self.requests.get_mut(sequence) else { return };
        if error.code == ErrorCode::SessionLost {
            // Of the session itself only a keepalive tells.
            self.pulse.want();
        }
        if error.code.retryable()
            && matches!((entry.phase, &entry.call), (Phase::Withdrawn, Call::Acquire(_)))
        {
            // Its cancel is under way and finds out.
            return;
        }
        if error.code.retryable() && entry.phase == Phase::Sent {
            entry.uncertain |= matches!(error.code, ErrorCode::NoLeader | ErrorCode::UnknownOutcome);
            entry.refusal = Some(error);
            let pause = self.random.backoff(entry.attempts, RETRY_BASE, RETRY_MAX);
            entry.attempts += 1;
            self.requests.set_phase(sequence, Phase::Pause(now.plus(pause)));
            return;
        }
        self.refused(sequence, error, now);
    }

    /// A member's answer that a repeat would not change.
    fn refused(&mut self, sequence: u64, error: ApiError, now: Moment) {
        let Some(entry) = self.requests.get(sequence) else { return };
        let name = entry.queue.0.as_ref().to_owned();
        match &entry.call {
            Call::Acquire(acquire) if acquire.reply.is_some() && was_given_up(&error) => {
                self.ask_anew(sequence, now)
            }
            Call::Acquire(_) => {
                let attached = error.code != ErrorCode::Busy || entry.uncertain;
                let answer = AcquireError::from_answer(&name, error);
                self.acquire_failed(sequence, answer, attached, now);
            }
            Call::Cancel { acquire, .. } => {
                let acquire = *acquire;
                self.requests.remove(sequence);
                self.acquire_over(acquire, true, now);
            }
            Call::Release { .. } | Call::Proclaim { .. } => self.hold_refused(sequence, &name, error),
            Call::Close { .. } => {
                if let Some(Entry { call: Call::Close { reply }, .. }) = self.requests.remove(sequence) {
                    match (error.code, reply) {
                        (ErrorCode::SessionLost, reply) => self.closed(reply, now),
                        (_, Some(reply)) => {
                            let _ = reply.send(Err(Error::Api(error)));
                        }
                        (_, None) => {}
                    }
                }
            }
        }
    }

    /// The servers do not have the request any more, after a long break. Its caller is here, so it is asked anew: at the end
    /// of the queue, within the same limit.
    fn ask_anew(&mut self, sequence: u64, now: Moment) {
        let Some(entry) = self.requests.remove(sequence) else { return };
        self.ledger.acquire_ended(sequence, true, now);
        let fresh = self.sequence();
        self.requests.insert(fresh, entry.call, entry.queue, entry.asked);
        let pause = self.random.backoff(entry.attempts, RETRY_BASE, RETRY_MAX);
        if let Some(again) = self.requests.get_mut(fresh) {
            again.attempts = entry.attempts + 1;
        }
        self.requests.set_phase(fresh, Phase::Pause(now.plus(pause)));
        self.renamed(sequence, fresh);
    }

    fn acquire_failed(&mut self, sequence: u64, answer: AcquireError, attached: bool, now: Moment) {
        let Some(entry) = self.requests.get_mut(sequence) else { return };
        let uncertain = entry.uncertain;
        let Call::Acquire(acquire) = &mut entry.call else { return };
        let reply = acquire.reply.take();
        self.forget_name(sequence);
        // A copy of it may still be on its way, and must not be executed after this answer.
        let loose = uncertain && leaves_no_record(&answer);
        if loose || matches!(answer, AcquireError::Unknown { .. }) {
            self.abandon(sequence, now);
        } else {
            self.acquire_over(sequence, attached, now);
        }
        if let Some(reply) = reply {
            let _ = reply.send(Err(answer));
        }
    }

    fn hold_refused(&mut self, sequence: u64, name: &str, error: ApiError) {
        let Some(entry) = self.requests.remove(sequence) else { return };
        let hold = match &entry.call {
            Call::Release { hold, .. } => *hold,
            Call::Proclaim { hold, .. } => Some(*hold),
            Call::Acquire(_) | Call::Cancel { .. } | Call::Close { .. } => None,
        };
        let answer = HoldError::from_answer(name, error);
        if let Some(hold) = hold {
            match &answer {
                HoldError::NotHolder { .. } => self.ledger.hold_lost(hold, LossReason::NotHolder),
                HoldError::SessionLost { reason, .. } => self.ledger.hold_lost(hold, reason.clone()),
                HoldError::Unknown { .. } | HoldError::Unreachable { .. } | HoldError::Refused(_) => {}
            }
        }
        answer_hold(entry.call, answer);
    }

    /// Lets time pass.
    pub(crate) fn tick(&mut self, now: Moment) {
        let (lapsed, over) = self.ledger.tick(now);
        if over {
            self.end(&LossReason::Deadline, now);
        } else {
            lapsed.into_iter().for_each(|hold| self.write_off(hold, now));
        }
        self.requests.end_pauses(now);
        let over: Vec<u64> = self
            .requests
            .iter()
            .filter(|(_, entry)| entry.give_up(self.request_timeout).is_some_and(|moment| moment <= now))
            .map(|(sequence, _)| sequence)
            .collect();
        for sequence in over {
            self.give_up(sequence, now);
        }
    }

    fn give_up(&mut self, sequence: u64, now: Moment) {
        let Some(entry) = self.requests.get(sequence) else { return };
        let name = entry.queue.0.as_ref().to_owned();
        let refusal = entry.refusal.clone();
        let reason = refusal.as_ref().map_or_else(|| self.trouble.clone(), |error| error.message.clone());
        let sent = entry.first_send.is_some();
        let certain = !entry.uncertain && entry.phase != Phase::Sent;
        match &entry.call {
            Call::Acquire(acquire) => {
                let answer = match refusal {
                    _ if !sent => AcquireError::Unreachable { name, reason },
                    Some(error) if certain && !acquire.granted => AcquireError::Refused(error),
                    Some(_) | None => AcquireError::Unknown { name, reason },
                };
                self.acquire_failed(sequence, answer, true, now);
            }
            Call::Release { .. } | Call::Proclaim { .. } => {
                let answer = match refusal {
                    _ if !sent => HoldError::Unreachable { name, reason },
                    Some(error) if certain => HoldError::Refused(error),
                    Some(_) | None => HoldError::Unknown { name, reason },
                };
                if let Some(entry) = self.requests.get_mut(sequence) {
                    let call = take_reply(&mut entry.call);
                    self.withdraw(sequence);
                    answer_hold(call, answer);
                }
            }
            Call::Close { .. } => {
                if let Some(Entry { call: Call::Close { reply: Some(reply) }, .. }) =
                    self.requests.remove(sequence)
                {
                    let _ = reply.send(Err(Error::Unreachable { reason }));
                }
            }
            Call::Cancel { .. } => {}
        }
    }

    /// The next moment at which [`Self::tick`] has something to do, or, where the connection takes messages,
    /// [`super::core::Core::next_message`] has.
    pub(crate) fn next_moment(&self, now: Moment, can_send: bool) -> Option<Moment> {
        let alive = self.ledger.end().is_none();
        let stall = self.pulse.next_stall().filter(|_| alive);
        let due = (alive && can_send).then(|| self.pulse.next_due());
        let search = (can_send && self.ledger.any_astray()).then(|| self.search.next_ask(now));
        let requests = self.requests.iter().flat_map(|(_, entry)| {
            let pause = match entry.phase {
                Phase::Pause(until) => Some(until),
                Phase::Unsent | Phase::Sent | Phase::Withdrawn => None,
            };
            [pause, entry.give_up(self.request_timeout)]
        });
        requests.flatten().chain(stall).chain(due).chain(search).chain(self.ledger.next_turn(now)).min()
    }
}

/// Whether an acquire was refused for what stands in the queue or is outstanding now: the servers keep no record of that, and
/// would execute a copy that comes later.
fn leaves_no_record(answer: &AcquireError) -> bool {
    match answer {
        AcquireError::Busy { .. }
        | AcquireError::AlreadyHeld { .. }
        | AcquireError::AlreadyWaiting { .. } => true,
        AcquireError::Refused(error) => error.code == ErrorCode::TooManyOutstanding,
        AcquireError::Timeout { .. }
        | AcquireError::SessionLost { .. }
        | AcquireError::Removed { .. }
        | AcquireError::Cancelled { .. }
        | AcquireError::Unknown { .. }
        | AcquireError::Unreachable { .. }
        | AcquireError::Invalid(_) => false,
    }
}

/// Whether an answer says that the servers have no such request any more: they took its caller for gone, or it never
/// reached its group before the floor passed it.
fn was_given_up(error: &ApiError) -> bool {
    let stale = error.code == ErrorCode::StaleRequest
        && matches!(error.facts.ended.as_deref(), None | Some("cancelled" | "released"));
    stale || error.code == ErrorCode::Cancelled
}

/// Takes the caller out of a call, leaving the call without one.
fn take_reply(call: &mut Call) -> Call {
    match call {
        Call::Release { token, hold, reply } => {
            Call::Release { token: *token, hold: *hold, reply: reply.take() }
        }
        Call::Proclaim { hold, token, reply, .. } => {
            Call::Proclaim { hold: *hold, token: *token, value: bytes::Bytes::new(), reply: reply.take() }
        }
        Call::Acquire(_) | Call::Cancel { .. } | Call::Close { .. } => Call::Close { reply: None },
    }
}

fn answer_hold(call: Call, answer: HoldError) {
    match call {
        Call::Release { reply: Some(reply), .. } => {
            let _ = reply.send(Err(answer));
        }
        Call::Proclaim { reply: Some(reply), .. } => {
            let _ = reply.send(Err(answer));
        }
        Call::Release { .. }
        | Call::Proclaim { .. }
        | Call::Acquire(_)
        | Call::Cancel { .. }
        | Call::Close { .. } => {}
    }
}

//! What a lock table must answer, written as naively as possible: flat lists, searched from the front. Shares no code
//! with the table but the vocabulary.

mod sessions;

use holdfast_locktable::{
    command::{
        Acquire, Attach, Cancel, CancelReason, Command, IfGranted, Repeat, RequestId, SessionEndReason, Wait,
    },
    ids::{Revision, SessionEpoch, SessionId, Term, Token},
    name::Name,
    outcome::{CancelOutcome, Outcome, Rejection, RequestEnd},
    txn::{Txn, TxnAnswer, TxnError, TxnOp, TxnOutcome},
};
use holdfast_partitioner::GroupId;

use self::sessions::{Life, Mourned};

type Answer = Result<Outcome, Rejection>;

/// The whole model.
#[derive(Clone, Debug)]
pub(crate) struct Model {
    here: GroupId,
    index: u64,
    term: Term,
    revision: u64,
    lives: Vec<Life>,
    mourned: Vec<Mourned>,
    buried: Vec<(SessionId, SessionEpoch)>,
    /// Sessions that live at their homes and have no lease here, with what they have asked for.
    absent: Vec<Life>,
    /// All lock keys of all queues, oldest first.
    line: Vec<Waiter>,
    /// All keys that are no lock keys.
    plain: Vec<Plain>,
}

#[derive(Clone, Debug)]
struct Waiter {
    name: Name,
    session: SessionId,
    token: u64,
    request: Option<RequestId>,
}

#[derive(Clone, Debug)]
struct Plain {
    key: Vec<u8>,
    lease: Option<SessionId>,
    create: u64,
}

/// One acquire that made a key, or must not any more.
#[derive(Clone, Debug)]
struct Asked {
    name: Name,
    request: RequestId,
    end: Option<RequestEnd>,
}

impl Model {
    pub(crate) fn new(here: GroupId) -> Self {
        Self {
            here,
            index: 0,
            term: Term(0),
            revision: 0,
            lives: vec![],
            mourned: vec![],
            buried: vec![],
            absent: vec![],
            line: vec![],
            plain: vec![],
        }
    }

    /// What the command must answer; the model moves on where it is not refused.
    pub(crate) fn answer(&mut self, index: u64, term: Term, command: &Command) -> Answer {
        self.index = index;
        self.term = term;
        let before = self.clone();
        let answer = self.run(command);
        if answer.is_err() {
            *self = before;
        }
        answer
    }

    pub(crate) fn revision(&self) -> Revision {
        Revision(self.revision)
    }

    /// Sessions and tokens of a queue, holder first.
    pub(crate) fn queue(&self, name: &Name) -> Vec<(SessionId, Token)> {
        self.line.iter().filter(|w| w.name == *name).map(|w| (w.session, Revision(w.token))).collect()
    }

    pub(crate) fn keys(&self) -> usize {
        self.line.len() + self.plain.len()
    }

    fn run(&mut self, command: &Command) -> Answer {
        match command {
            Command::Acquire(ask) => self.acquire(ask),
            Command::Cancel(cancel) => self.cancel(cancel),
            Command::AttachCancel { epoch, attach, cancel } => {
                if self.first_contact(cancel.session, *epoch, Some(attach))? {
                    let fresh = Life::attached(cancel.session, *epoch, attach.home);
                    self.absent.push(fresh);
                    self.absent.dedup_by_key(|life| life.id);
                }
                self.cancel(cancel)
            }
            Command::Release { name, session, token } => self.release(name, *session, *token),
            Command::ForceRelease { name, token } => {
                let holder = self.queue(name).first().copied();
                if holder.is_none_or(|(_, held)| held != *token) {
                    return Err(Rejection::Changed { holder });
                }
                let session = holder.unwrap().0;
                self.leave(name, session, Some(RequestEnd::Removed));
                self.revision += 1;
                Ok(Outcome::ForceReleased { session })
            }
            Command::Proclaim { name, session, token, .. } => {
                if self.queue(name).first() != Some(&(*session, *token)) {
                    return Err(Rejection::NotHolder);
                }
                self.revision += 1;
                Ok(Outcome::Proclaimed { revision: Revision(self.revision) })
            }
            Command::Txn(txn) => self.txn(txn),
            Command::Compact { .. } => Ok(Outcome::Done),
            sessions => self.run_session(sessions),
        }
    }

    fn acquire(&mut self, ask: &Acquire) -> Answer {
        let lost = Err(Rejection::SessionLost { session: ask.session });
        if self.first_contact(ask.session, ask.epoch, ask.attach.as_ref())? {
            let back = self.absent.iter().position(|life| life.id == ask.session);
            self.lives.push(match (back, &ask.attach) {
                (Some(back), _) => self.absent.remove(back),
                (None, Some(attach)) => Life::attached(ask.session, ask.epoch, attach.home),
                (None, None) => unreachable!("a first contact has the word of the home"),
            });
        }
        if let Some(mine) = self.line.iter().find(|w| w.name == ask.name && w.session == ask.session) {
            let token = mine.token;
            if mine.request.as_ref().is_some_and(|r| same(r, &ask.request)) {
                return self.standing(&ask.name, token);
            }
            if let Some(answer) = self.earlier(ask) {
                return answer;
            }
            return match (ask.repeat, self.standing(&ask.name, token)) {
                (Repeat::SameKey, answer) => answer,
                (Repeat::Refuse, Ok(Outcome::Granted { token })) => Err(Rejection::AlreadyHeld { token }),
                (Repeat::Refuse, _) => Err(Rejection::AlreadyWaiting),
            };
        }
        if let Some(answer) = self.earlier(ask) {
            return answer;
        }
        if self.life(ask.session).renewal_stopped {
            return lost;
        }
        let queue = self.queue(&ask.name);
        if let (Wait::Try, Some((holder, token))) = (ask.wait, queue.first()) {
            return Err(Rejection::Busy { holder: *holder, token: *token, waiters: queue.len() as u32 - 1 });
        }
        self.revision += 1;
        let key = ask.name.key(ask.session);
        self.plain.retain(|plain| plain.key != key);
        let (name, request) = (ask.name.clone(), Some(ask.request.clone()));
        self.line.push(Waiter { name, session: ask.session, token: self.revision, request });
        self.life(ask.session).asked(ask);
        self.standing(&ask.name, self.revision)
    }

    /// Whether a session is met by this command, where it may be.
    fn first_contact(
        &self,
        session: SessionId,
        epoch: SessionEpoch,
        attach: Option<&Attach>,
    ) -> Result<bool, Rejection> {
        let lost = Err(Rejection::SessionLost { session });
        if self.asker(session).is_some_and(|life| life.epoch != epoch) {
            return lost;
        }
        match self.lives.iter().find(|life| life.id == session) {
            Some(_) => Ok(false),
            None if self.mourned.iter().any(|m| m.id == session) => lost,
            None if self.buried.contains(&(session, epoch)) => lost,
            None => match attach {
                None => Err(Rejection::SessionUnknown { session }),
                Some(attach) if attach.home == self.here => lost,
                Some(attach) if attach.term != self.term => Err(Rejection::StaleTerm),
                Some(_) => Ok(true),
            },
        }
    }

    /// A session of which the group remembers what it has asked for.
    fn asker(&self, session: SessionId) -> Option<&Life> {
        self.lives.iter().chain(&self.absent).find(|life| life.id == session)
    }

    /// The answer that an ended request has earned.
    fn earlier(&mut self, ask: &Acquire) -> Option<Answer> {
        let life = self.life(ask.session);
        let ended = match &ask.request {
            RequestId::Sequence { sequence, lowest } => {
                if *sequence <= life.floor || sequence < lowest {
                    return Some(Err(Rejection::StaleRequest { ended: None }));
                }
                let asked = life.asked.iter().find(|asked| same(&asked.request, &ask.request))?;
                asked.end.filter(|_| asked.name == ask.name)
            }
            RequestId::Text(_) => {
                let text =
                    |asked: &&Asked| matches!(asked.request, RequestId::Text(_)) && asked.name == ask.name;
                let latest = life.asked.iter().rev().find(text)?;
                if !same(&latest.request, &ask.request) {
                    return None;
                }
                latest.end
            }
        };
        Some(Err(Rejection::StaleRequest { ended }))
    }

    fn standing(&self, name: &Name, token: u64) -> Answer {
        let ahead = self.line.iter().filter(|w| w.name == *name && w.token < token).count() as u32;
        Ok(match ahead {
            0 => Outcome::Granted { token: Revision(token) },
            ahead => Outcome::Queued { revision: Revision(token), ahead },
        })
    }

    fn cancel(&mut self, cancel: &Cancel) -> Answer {
        let mine = self.line.iter().find(|w| w.name == cancel.name && w.session == cancel.session);
        let mine = mine.filter(|w| w.request.as_ref().is_some_and(|r| same(r, &cancel.request)));
        let end = match cancel.reason {
            CancelReason::TimedOut => RequestEnd::TimedOut,
            CancelReason::Cancelled | CancelReason::Abandoned => RequestEnd::Cancelled,
        };
        let Some(token) = mine.map(|w| Revision(w.token)) else {
            let answer = self.cancelled_before(cancel);
            self.keep_out(cancel);
            return Ok(Outcome::Cancel(answer));
        };
        if self.queue(&cancel.name).first() != Some(&(cancel.session, token)) {
            self.leave(&cancel.name, cancel.session, Some(end));
            self.revision += 1;
            return Ok(Outcome::Cancel(CancelOutcome::Cancelled));
        }
        let released = match cancel.granted {
            IfGranted::Keep => false,
            IfGranted::Release => true,
        };
        if released {
            self.leave(&cancel.name, cancel.session, Some(end));
            self.life(cancel.session).own_ends.push((cancel.name.clone(), token));
            self.revision += 1;
        }
        Ok(Outcome::Cancel(CancelOutcome::Granted { token, released }))
    }

    fn cancelled_before(&self, cancel: &Cancel) -> CancelOutcome {
        let Some(life) = self.asker(cancel.session) else { return CancelOutcome::None };
        match cancel.request {
            RequestId::Sequence { sequence, lowest } if sequence <= life.floor || sequence < lowest => {
                return CancelOutcome::None;
            }
            RequestId::Sequence { .. } | RequestId::Text(_) => {}
        }
        let kind = |asked: &&Asked| match (&asked.request, &cancel.request) {
            (RequestId::Text(_), RequestId::Text(_)) => asked.name == cancel.name,
            (a, b) => same(a, b),
        };
        match life.asked.iter().rev().find(kind) {
            Some(asked) if asked.name == cancel.name && same(&asked.request, &cancel.request) => {
                match asked.end {
                    Some(RequestEnd::Cancelled | RequestEnd::TimedOut) => CancelOutcome::Cancelled,
                    Some(RequestEnd::Released | RequestEnd::Removed | RequestEnd::SessionEnded) | None => {
                        CancelOutcome::None
                    }
                }
            }
            Some(_) | None => CancelOutcome::None,
        }
    }

    /// What a client has cancelled is not executed later.
    fn keep_out(&mut self, cancel: &Cancel) {
        let mut askers = self.lives.iter_mut().chain(&mut self.absent);
        let Some(life) = askers.find(|life| life.id == cancel.session) else { return };
        let known = match &cancel.request {
            RequestId::Sequence { sequence, lowest } => {
                *sequence <= life.floor
                    || sequence < lowest
                    || life.asked.iter().any(|asked| same(&asked.request, &cancel.request))
            }
            RequestId::Text(_) => {
                let text =
                    |asked: &&Asked| matches!(asked.request, RequestId::Text(_)) && asked.name == cancel.name;
                let latest = life.asked.iter().rev().find(text);
                latest.is_some_and(|l| l.end.is_none() || same(&l.request, &cancel.request))
            }
        };
        if cancel.reason == CancelReason::Cancelled && !known {
            let (name, request) = (cancel.name.clone(), cancel.request.clone());
            life.asked.push(Asked { name, request, end: Some(RequestEnd::Cancelled) });
        }
    }

    fn release(&mut self, name: &Name, session: SessionId, token: Token) -> Answer {
        if self.queue(name).first() == Some(&(session, token)) {
            self.leave(name, session, Some(RequestEnd::Released));
            self.life(session).own_ends.push((name.clone(), token));
            self.revision += 1;
            return Ok(Outcome::Released { released: true });
        }
        match self.asker(session) {
            Some(life) if life.own_ends.contains(&(name.clone(), token)) => {
                Ok(Outcome::Released { released: false })
            }
            _ => Err(Rejection::NotHolder),
        }
    }

    /// Takes a lock key away; its request ends like this, where its session lives on.
    fn leave(&mut self, name: &Name, session: SessionId, end: Option<RequestEnd>) {
        let at = self.line.iter().position(|w| w.name == *name && w.session == session).unwrap();
        let gone = self.line.remove(at);
        if let Some(request) = gone.request {
            let life = self.life(session);
            let asked = life.asked.iter_mut().rev().find(|a| a.name == *name && same(&a.request, &request));
            // A number below the floor is forgotten.
            if let Some(asked) = asked {
                asked.end = end;
            }
        }
    }

    fn txn(&mut self, txn: &Txn) -> Answer {
        let succeeded = txn.compare.iter().all(|compare| self.create_of(&compare.key) == 0);
        let mut answers = vec![];
        if succeeded {
            for op in &txn.success {
                answers.push(match op {
                    TxnOp::Put(put) => self.put(&put.key, put.lease)?,
                    TxnOp::Delete(delete) => self.delete(&delete.key, &delete.range_end),
                    TxnOp::Range(_) | TxnOp::Txn(_) => unreachable!("not generated"),
                });
            }
        }
        Ok(Outcome::Txn(TxnOutcome { succeeded, revision: Revision(self.revision), answers }))
    }

    fn create_of(&self, key: &[u8]) -> u64 {
        let locks = self.line.iter().map(|w| (w.name.key(w.session), w.token));
        locks
            .chain(self.plain.iter().map(|p| (p.key.clone(), p.create)))
            .find(|(k, _)| k == key)
            .map_or(0, |(_, c)| c)
    }

    /// The answer's previous keys are compared by hand elsewhere; here only their presence counts.
    fn put(&mut self, key: &[u8], lease: Option<SessionId>) -> Result<TxnAnswer, Rejection> {
        let exists = self.create_of(key) > 0;
        if let Some(lease) = lease {
            let life = self.lives.iter().find(|life| life.id == lease);
            if life.is_none_or(|life| life.renewal_stopped && !exists) {
                return Err(Rejection::InvalidTxn(TxnError::UnknownLease));
            }
        }
        let shaped = Name::of_key(key).filter(|(_, session)| Some(*session) == lease);
        let lock = self.line.iter().find(|w| w.name.key(w.session) == key);
        if lock.is_some_and(|w| Some(w.session) != lease) || (lock.is_none() && exists && shaped.is_some()) {
            return Err(Rejection::InvalidTxn(TxnError::LockKeyLease));
        }
        self.revision += 1;
        if let Some(plain) = self.plain.iter_mut().find(|plain| plain.key == key) {
            plain.lease = lease;
        } else if let (Some((name, session)), false) = (shaped, exists) {
            self.line.push(Waiter { name, session, token: self.revision, request: None });
        } else if !exists {
            self.plain.push(Plain { key: key.to_vec(), lease, create: self.revision });
        }
        Ok(TxnAnswer::Put { previous: None })
    }

    fn delete(&mut self, key: &[u8], range_end: &[u8]) -> TxnAnswer {
        let meant = |k: &[u8]| if range_end.is_empty() { k == key } else { k >= key && k < range_end };
        let locks: Vec<(Name, SessionId)> = self
            .line
            .iter()
            .map(|w| (w.name.clone(), w.session))
            .filter(|(n, s)| meant(&n.key(*s)))
            .collect();
        let before = self.keys();
        for (name, session) in &locks {
            self.leave(name, *session, Some(RequestEnd::Removed));
        }
        self.plain.retain(|plain| !meant(&plain.key));
        if self.keys() < before {
            self.revision += 1;
        }
        TxnAnswer::Delete { previous: vec![] }
    }

    fn life(&mut self, session: SessionId) -> &mut Life {
        self.lives.iter_mut().find(|life| life.id == session).unwrap()
    }
}

fn same(a: &RequestId, b: &RequestId) -> bool {
    match (a, b) {
        (RequestId::Text(a), RequestId::Text(b)) => a == b,
        (RequestId::Sequence { sequence: a, .. }, RequestId::Sequence { sequence: b, .. }) => a == b,
        _ => false,
    }
}

fn frees(reason: SessionEndReason) -> bool {
    reason != SessionEndReason::Expired
}

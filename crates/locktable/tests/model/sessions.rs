//! Sessions of the model: lives, ends that are to be told, ends that are remembered.

use holdfast_locktable::{
    command::{Acquire, Command, EndReason, LearnedEnd, RequestId, SessionEndReason},
    ids::{SessionEpoch, SessionId, Token},
    metadata::Metadata,
    name::Name,
    outcome::{Bound, Outcome, Rejection, RequestEnd},
};
use holdfast_partitioner::GroupId;

use super::{Answer, Asked, Model, frees};

#[derive(Clone, Debug)]
pub(super) struct Life {
    pub(super) id: SessionId,
    pub(super) epoch: SessionEpoch,
    /// `None` where this group is its home.
    home: Option<GroupId>,
    attached: Vec<GroupId>,
    ttl_ms: u64,
    pub(super) renewal_stopped: bool,
    pub(super) floor: u64,
    pub(super) asked: Vec<Asked>,
    pub(super) own_ends: Vec<(Name, Token)>,
}

#[derive(Clone, Debug)]
pub(super) struct Mourned {
    pub(super) id: SessionId,
    epoch: SessionEpoch,
    to_tell: Vec<GroupId>,
}

impl Life {
    fn new(id: SessionId, epoch: SessionEpoch, home: Option<GroupId>) -> Self {
        let (attached, asked, own_ends) = (vec![], vec![], vec![]);
        Self { id, epoch, home, attached, ttl_ms: 10_000, renewal_stopped: false, floor: 0, asked, own_ends }
    }

    pub(super) fn attached(id: SessionId, epoch: SessionEpoch, home: GroupId) -> Self {
        Self::new(id, epoch, Some(home))
    }

    /// The same session without its lease here: everything that it had asked for has ended.
    fn lapsed(&self) -> Self {
        let mut life = self.clone();
        for asked in life.asked.iter_mut().filter(|asked| asked.end.is_none()) {
            asked.end = Some(RequestEnd::SessionEnded);
        }
        life
    }

    pub(super) fn asked(&mut self, ask: &Acquire) {
        if let RequestId::Sequence { lowest, .. } = ask.request {
            self.floor = self.floor.max(lowest.saturating_sub(1));
        }
        let floor = self.floor;
        self.asked.push(Asked { name: ask.name.clone(), request: ask.request.clone(), end: None });
        self.asked.retain(|asked| match asked.request {
            RequestId::Sequence { sequence, .. } => sequence > floor,
            RequestId::Text(_) => true,
        });
    }
}

impl Model {
    pub(super) fn run_session(&mut self, command: &Command) -> Answer {
        match command {
            Command::OpenSession(open) => {
                if open.ttl_ms < 1_000 {
                    return Err(Rejection::OutOfBounds(Bound::Ttl));
                }
                let id = open.session;
                if self.asker(id).is_some() || self.mourned(id) || self.buried.iter().any(|(b, _)| *b == id) {
                    return Err(Rejection::SessionExists { session: id });
                }
                let epoch = SessionEpoch(self.index);
                self.lives.push(Life::new(id, epoch, None));
                Ok(Outcome::SessionOpened { epoch })
            }
            Command::AttachSession { session, group } => self.attach(*session, *group),
            Command::EndSession { session, epoch, reason } => {
                let lost = Err(Rejection::SessionLost { session: *session });
                let Some(life) = self.find(*session) else { return lost };
                if epoch.is_some_and(|epoch| epoch != life.epoch) {
                    return lost;
                }
                if life.home.is_some() {
                    return Err(Rejection::SessionUnknown { session: *session });
                }
                let (epoch, mut to_tell) = (life.epoch, life.attached.clone());
                to_tell.sort();
                self.bury_keys(&[*session]);
                self.end(*session, matches!(reason, EndReason::Closed | EndReason::Forced));
                Ok(Outcome::SessionEnded { epoch, to_tell })
            }
            Command::ExpireSessions { sessions, term } => {
                if *term != self.term {
                    return Err(Rejection::StaleTerm);
                }
                let due: Vec<Life> =
                    self.lives.iter().filter(|l| sessions.contains(&(l.id, l.epoch))).cloned().collect();
                self.bury_keys(&due.iter().map(|life| life.id).collect::<Vec<_>>());
                for life in &due {
                    self.end(life.id, true);
                    if life.home.is_some() && !life.renewal_stopped {
                        self.absent.push(life.lapsed());
                    }
                    if life.renewal_stopped && !self.buried.contains(&(life.id, life.epoch)) {
                        self.buried.push((life.id, life.epoch));
                    }
                }
                Ok(Outcome::SessionsExpired { count: due.len() as u32 })
            }
            Command::LearnEnds { ends } => {
                ends.iter().for_each(|end| self.learn(end));
                Ok(Outcome::Done)
            }
            Command::AckEnd { session, epoch, group } => {
                for mourned in self.mourned.iter_mut().filter(|m| m.id == *session && m.epoch == *epoch) {
                    mourned.to_tell.retain(|g| g != group);
                }
                self.mourned.retain(|mourned| !mourned.to_tell.is_empty());
                Ok(Outcome::Done)
            }
            Command::ForgetEnds { ends } => {
                self.buried.retain(|buried| !ends.contains(buried));
                Ok(Outcome::Done)
            }
            Command::Checkpoint { term, .. } if *term != self.term => Err(Rejection::StaleTerm),
            Command::Checkpoint { .. } => Ok(Outcome::Done),
            other => unreachable!("not generated: {other:?}"),
        }
    }

    fn attach(&mut self, session: SessionId, group: GroupId) -> Answer {
        let here = self.here;
        let Some(life) = self.lives.iter_mut().find(|life| life.id == session) else {
            return Err(Rejection::SessionLost { session });
        };
        if life.home.is_some() {
            return Err(Rejection::SessionUnknown { session });
        }
        if group != here && !life.attached.contains(&group) {
            life.attached.push(group);
        }
        Ok(Outcome::SessionAttached { epoch: life.epoch, ttl_ms: life.ttl_ms, metadata: Metadata::default() })
    }

    fn learn(&mut self, end: &LearnedEnd) {
        let home =
            self.find(end.session).is_some_and(|life| life.home.is_none()) || self.mourned(end.session);
        if home {
            return;
        }
        let known = self.find(end.session).is_some_and(|life| life.epoch == end.epoch);
        if known && end.reason == SessionEndReason::Expired {
            self.life(end.session).renewal_stopped = true;
            return;
        }
        if known && frees(end.reason) {
            self.bury_keys(&[end.session]);
            self.end(end.session, true);
        }
        self.absent.retain(|life| (life.id, life.epoch) != (end.session, end.epoch));
        if !self.buried.contains(&(end.session, end.epoch)) {
            self.buried.push((end.session, end.epoch));
        }
    }

    /// All keys of these sessions go, at one revision.
    fn bury_keys(&mut self, sessions: &[SessionId]) {
        let before = self.keys();
        self.line.retain(|waiter| !sessions.contains(&waiter.session));
        self.plain.retain(|plain| plain.lease.is_none_or(|lease| !sessions.contains(&lease)));
        if self.keys() < before {
            self.revision += 1;
        }
    }

    fn end(&mut self, session: SessionId, _really: bool) {
        let at = self.lives.iter().position(|life| life.id == session).unwrap();
        let life = self.lives.remove(at);
        if !life.attached.is_empty() {
            self.mourned.push(Mourned { id: session, epoch: life.epoch, to_tell: life.attached });
        }
    }

    fn find(&self, session: SessionId) -> Option<&Life> {
        self.lives.iter().find(|life| life.id == session)
    }

    fn mourned(&self, session: SessionId) -> bool {
        self.mourned.iter().any(|mourned| mourned.id == session)
    }
}

//! Random histories: small numbers that become commands once the table they meet is known.

use bytes::Bytes;
use holdfast_locktable::{
    command::{
        Acquire, Attach, Cancel, CancelReason, Command, EndReason, IfGranted, LearnedEnd, OpenSession,
        Repeat, RequestId, SessionEndReason, Wait,
    },
    ids::{Revision, SessionEpoch, SessionId, Term},
    metadata::Metadata,
    name::Name,
    table::LockTable,
    txn::{Compare, CompareOrder, CompareTarget, Delete, Put, Txn, TxnOp},
};
use holdfast_partitioner::GroupId;
use proptest::prelude::*;

/// The group under test; sessions 1 to 3 have their home here, 4 and 5 in group 2.
pub(crate) const HERE: GroupId = GroupId(1);
/// Home of sessions 4 and 5.
pub(crate) const ELSEWHERE: GroupId = GroupId(2);
/// The term of every entry, unless a step says otherwise.
pub(crate) const TERM: Term = Term(3);

/// One random step.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    Open {
        session: u8,
    },
    End {
        session: u8,
        forced: bool,
        epoch: u8,
    },
    Expire {
        sessions: Vec<u8>,
        stale: bool,
    },
    Learn {
        session: u8,
        reason: u8,
        epoch: u8,
    },
    Attach {
        session: u8,
        group: u8,
    },
    Ack {
        session: u8,
        group: u8,
        stale: bool,
    },
    Forget {
        session: u8,
    },
    Acquire {
        session: u8,
        name: u8,
        wait: u8,
        request: u8,
        again: bool,
        contact: u8,
    },
    Cancel {
        session: u8,
        name: u8,
        request: u8,
        reason: u8,
        release: bool,
        contact: u8,
    },
    Release {
        session: u8,
        name: u8,
        token: u8,
    },
    Force {
        name: u8,
        token: u8,
    },
    Proclaim {
        session: u8,
        name: u8,
        token: u8,
    },
    Put {
        session: u8,
        name: u8,
        lease: u8,
        guarded: bool,
    },
    Delete {
        session: u8,
        name: u8,
        all: bool,
    },
    Checkpoint {
        session: u8,
        clear: bool,
        stale: bool,
    },
    Compact {
        back: u8,
    },
    /// An acquire that was proposed before comes again.
    Repeat {
        back: u8,
    },
}

/// A history of at most 60 steps.
pub(crate) fn history() -> impl Strategy<Value = Vec<Step>> {
    prop::collection::vec(step(), 1..=60)
}

fn step() -> impl Strategy<Value = Step> {
    let session = || 1..=5u8;
    let name = || 0..4u8;
    let token = || 0..4u8;
    prop_oneof![
        4 => session().prop_map(|session| Step::Open { session }),
        2 => (session(), any::<bool>(), 0..4u8).prop_map(|(session, forced, epoch)| Step::End { session, forced, epoch }),
        2 => (prop::collection::vec(session(), 1..3), prop::bool::weighted(0.2))
            .prop_map(|(sessions, stale)| Step::Expire { sessions, stale }),
        2 => (session(), 0..3u8, 0..4u8).prop_map(|(session, reason, epoch)| Step::Learn { session, reason, epoch }),
        2 => (session(), 1..4u8).prop_map(|(session, group)| Step::Attach { session, group }),
        1 => (session(), 1..4u8, prop::bool::weighted(0.2)).prop_map(|(session, group, stale)| Step::Ack { session, group, stale }),
        1 => session().prop_map(|session| Step::Forget { session }),
        20 => (session(), name(), 0..3u8, 0..9u8, prop::bool::weighted(0.1), 0..8u8).prop_map(
            |(session, name, wait, request, again, contact)| Step::Acquire { session, name, wait, request, again, contact }
        ),
        5 => (session(), name(), 0..9u8, 0..3u8, any::<bool>(), 0..8u8).prop_map(
            |(session, name, request, reason, release, contact)| Step::Cancel {
                session, name, request, reason, release, contact,
            }
        ),
        8 => (session(), name(), token()).prop_map(|(session, name, token)| Step::Release { session, name, token }),
        1 => (name(), token()).prop_map(|(name, token)| Step::Force { name, token }),
        1 => (session(), name(), token()).prop_map(|(session, name, token)| Step::Proclaim { session, name, token }),
        3 => (session(), name(), 0..3u8, any::<bool>())
            .prop_map(|(session, name, lease, guarded)| Step::Put { session, name, lease, guarded }),
        2 => (session(), name(), prop::bool::weighted(0.2)).prop_map(|(session, name, all)| Step::Delete { session, name, all }),
        1 => (session(), any::<bool>(), prop::bool::weighted(0.2))
            .prop_map(|(session, clear, stale)| Step::Checkpoint { session, clear, stale }),
        1 => (0..6u8).prop_map(|back| Step::Compact { back }),
        6 => (0..6u8).prop_map(|back| Step::Repeat { back }),
    ]
}

impl Step {
    /// The command this step is, where the table stands now and these acquires were proposed before.
    pub(crate) fn command(&self, table: &LockTable, asked: &[Command]) -> Command {
        match self {
            Self::Repeat { back } => match asked.iter().rev().nth(usize::from(*back)) {
                Some(ask) => ask.clone(),
                None => Command::Compact { keep_from: Revision(0) },
            },
            Self::Open { session } => Command::OpenSession(OpenSession {
                session: id(*session),
                ttl_ms: if *session == 5 { 5 } else { 10_000 },
                metadata: Metadata::default(),
            }),
            Self::End { session, forced, epoch } => Command::EndSession {
                session: id(*session),
                epoch: (*epoch > 0).then(|| near_epoch(table, *session, *epoch)),
                reason: if *forced { EndReason::Forced } else { EndReason::Closed },
            },
            Self::Expire { sessions, stale } => Command::ExpireSessions {
                sessions: sessions.iter().map(|s| (id(*s), near_epoch(table, *s, 1))).collect(),
                term: term(*stale),
            },
            Self::Learn { session, reason, epoch } => {
                let reasons = [SessionEndReason::Closed, SessionEndReason::Expired, SessionEndReason::Forced];
                let reason = reasons[usize::from(*reason)];
                let epoch = near_epoch(table, *session, *epoch);
                Command::LearnEnds { ends: vec![LearnedEnd { session: id(*session), epoch, reason }] }
            }
            Self::Attach { session, group } => {
                Command::AttachSession { session: id(*session), group: GroupId(u32::from(*group)) }
            }
            Self::Ack { session, group, stale } => {
                let pending = table.pending_ends().into_iter().find(|end| end.session == id(*session));
                let epoch = pending.filter(|_| !stale).map_or(SessionEpoch(1), |end| end.epoch);
                Command::AckEnd { session: id(*session), epoch, group: GroupId(u32::from(*group)) }
            }
            Self::Forget { session } => {
                let of = |(s, _): &(SessionId, SessionEpoch)| *s == id(*session);
                Command::ForgetEnds { ends: table.tombstones().into_iter().filter(of).take(1).collect() }
            }
            Self::Acquire { .. } | Self::Cancel { .. } | Self::Release { .. } | Self::Force { .. } => {
                self.lock_command(table)
            }
            Self::Proclaim { session, name, token } => Command::Proclaim {
                name: lock(*name),
                session: id(*session),
                token: near_token(table, *name, *token),
                value: Bytes::from_static(b"said"),
            },
            Self::Put { session, name, lease, guarded } => {
                Command::Txn(put(*session, *name, *lease, *guarded))
            }
            Self::Delete { session, name, all } => Command::Txn(delete(*session, *name, *all)),
            Self::Checkpoint { session, clear, stale } => {
                let life = (id(*session), near_epoch(table, *session, 1));
                let (marked, cleared) =
                    if *clear { (vec![], vec![life]) } else { (vec![(life.0, life.1, 7_000)], vec![]) };
                Command::Checkpoint { marked, cleared, term: term(*stale) }
            }
            Self::Compact { back } => {
                Command::Compact { keep_from: Revision(table.revision().0.saturating_sub(u64::from(*back))) }
            }
        }
    }

    fn lock_command(&self, table: &LockTable) -> Command {
        match self {
            Self::Acquire { session, name, wait, request: asked, again, contact } => {
                Command::Acquire(Acquire {
                    name: lock(*name),
                    session: id(*session),
                    epoch: near_epoch(table, *session, (*contact).max(1)),
                    attach: (*contact > 1 && *session > 3).then(|| attach(*contact == 2)),
                    request: request(*asked),
                    wait: [Wait::Try, Wait::AtMost(1_000), Wait::Unlimited][usize::from(*wait)],
                    metadata: Metadata::default(),
                    value: Bytes::new(),
                    repeat: if *again { Repeat::SameKey } else { Repeat::Refuse },
                })
            }
            Self::Cancel { session: who, name, request: asked, reason, release, contact } => {
                let last = table.queue(&lock(*name)).and_then(|queue| queue.entries.last().cloned());
                // Half of them hit somebody.
                let (session, request) = match last.filter(|_| *asked % 2 == 0) {
                    Some(entry) => (entry.session, entry.request.unwrap_or(request(*asked))),
                    None => (id(*who), request(*asked)),
                };
                let reasons = [CancelReason::TimedOut, CancelReason::Cancelled, CancelReason::Abandoned];
                let cancel = Cancel {
                    name: lock(*name),
                    session,
                    request,
                    reason: reasons[usize::from(*reason)],
                    granted: if *release { IfGranted::Release } else { IfGranted::Keep },
                };
                if *contact > 1 && *who > 3 && session == id(*who) {
                    let epoch = near_epoch(table, *who, *contact);
                    return Command::AttachCancel { epoch, attach: attach(*contact == 2), cancel };
                }
                Command::Cancel(cancel)
            }
            Self::Release { session, name, token } => {
                let holder = table.holder(&lock(*name)).map(|(holder, _, _)| holder);
                let session = if *token < 2 { holder.unwrap_or(id(*session)) } else { id(*session) };
                Command::Release { name: lock(*name), session, token: near_token(table, *name, *token) }
            }
            Self::Force { name, token } => {
                Command::ForceRelease { name: lock(*name), token: near_token(table, *name, *token) }
            }
            other => unreachable!("{other:?} is no lock command"),
        }
    }
}

fn put(session: u8, name: u8, lease: u8, guarded: bool) -> Txn {
    let key = Bytes::from(lock(name).key(id(session)));
    let lease = [None, Some(id(session)), Some(id(session % 5 + 1))][usize::from(lease)];
    let target = CompareTarget::Create(Revision(0));
    let compare = Compare { key: key.clone(), order: CompareOrder::Equal, target };
    let put = TxnOp::Put(Put { key, value: Bytes::new(), lease });
    Txn { compare: if guarded { vec![compare] } else { vec![] }, success: vec![put], failure: vec![] }
}

fn delete(session: u8, name: u8, all: bool) -> Txn {
    let (key, range_end) = if all {
        let name = lock(name);
        (format!("{}/", name.internal()), format!("{}0", name.internal()))
    } else {
        (String::from_utf8(lock(name).key(id(session))).unwrap(), String::new())
    };
    let delete = TxnOp::Delete(Delete { key: key.into(), range_end: range_end.into() });
    Txn { compare: vec![], success: vec![delete], failure: vec![] }
}

pub(crate) fn id(session: u8) -> SessionId {
    SessionId::new(u64::from(session)).unwrap()
}

/// Names that begin or contain each other, one of them an election.
pub(crate) fn lock(name: u8) -> Name {
    match name {
        0 => Name::lock("a").unwrap(),
        1 => Name::lock("a/b").unwrap(),
        2 => Name::lock("a/").unwrap(),
        _ => Name::election("a").unwrap(),
    }
}

/// Six numbered requests with slowly rising floors, and three texts.
fn request(number: u8) -> RequestId {
    match u64::from(number) {
        text @ 0..3 => RequestId::Text(format!("t{text}").into()),
        number => RequestId::Sequence { sequence: number, lowest: number.saturating_sub(4) },
    }
}

/// What the other group says of its sessions.
fn attach(stale: bool) -> Attach {
    Attach { home: ELSEWHERE, ttl_ms: 10_000, metadata: Metadata::default(), term: term(stale) }
}

fn term(stale: bool) -> Term {
    if stale { Term(TERM.0 - 1) } else { TERM }
}

/// Mostly the epoch the session has here, or had last; sometimes another.
fn near_epoch(table: &LockTable, session: u8, pick: u8) -> SessionEpoch {
    let live = table.session_epoch(id(session));
    let buried =
        table.tombstones().into_iter().rev().find(|(s, _)| *s == id(session)).map(|(_, epoch)| epoch);
    match pick {
        0 => SessionEpoch(77),
        3 => buried.or(live).unwrap_or(SessionEpoch(2)),
        _ => live.unwrap_or(SessionEpoch(2)),
    }
}

/// Mostly the holder's token; sometimes a waiter's, or one that is over.
fn near_token(table: &LockTable, name: u8, pick: u8) -> Revision {
    let queue = table.queue(&lock(name)).map(|queue| queue.entries).unwrap_or_default();
    let holder = queue.first().map(|entry| entry.revision);
    match pick {
        2 => queue.last().map_or(Revision(1), |entry| entry.revision),
        3 => Revision(table.revision().0 / 2),
        _ => holder.unwrap_or(Revision(table.revision().0.saturating_sub(1))),
    }
}

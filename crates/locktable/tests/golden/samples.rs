//! One proposal of every kind with every optional part, and a table with something of everything.

use std::collections::BTreeMap;

use bytes::Bytes;
use holdfast_locktable::{
    codec::Digest,
    command::{
        AckRevoked, Acquire, Activate, Attach, Cancel, CancelReason, Command, Contact, DropRange, EndReason,
        IfGranted, Import, JoinClaim, LearnedEnd, OpenSession, Own, Proposal, Repeat, RequestId, Seal,
        SessionEndReason, Wait,
    },
    ids::{MoveNumber, Revision, SessionEpoch, SessionId, Term},
    metadata::Metadata,
    moved::{Cursor, Moved},
    name::Name,
    table::{LockTable, Position, Restoring},
    txn::{Compare, CompareOrder, CompareTarget, Delete, Put, Range, Sort, Txn, TxnOp},
};
use holdfast_partitioner::{GroupId, MapEpoch, Part};

/// How many variants [`Command`] has.
pub(crate) const VARIANTS: u8 = 30;

/// The variant's name. Whoever adds one adds a sample and counts [`VARIANTS`] up.
pub(crate) fn variant(command: &Command) -> &'static str {
    match command {
        Command::Own(_) => "own",
        Command::OpenSession(_) => "open_session",
        Command::AttachSession { .. } => "attach_session",
        Command::EndSession { .. } => "end_session",
        Command::ExpireSessions { .. } => "expire_sessions",
        Command::LearnEnds { .. } => "learn_ends",
        Command::AckEnd { .. } => "ack_end",
        Command::ForgetEnds { .. } => "forget_ends",
        Command::Acquire(_) => "acquire",
        Command::Cancel(_) => "cancel",
        Command::Release { .. } => "release",
        Command::ForceRelease { .. } => "force_release",
        Command::Proclaim { .. } => "proclaim",
        Command::Txn(_) => "txn",
        Command::Checkpoint { .. } => "checkpoint",
        Command::Compact { .. } => "compact",
        Command::AttachTxn { .. } => "attach_txn",
        Command::AttachCancel { .. } => "attach_cancel",
        Command::Seal(_) => "seal",
        Command::Unseal { .. } => "unseal",
        Command::Import(_) => "import",
        Command::Activate(_) => "activate",
        Command::Discard { .. } => "discard",
        Command::Drop(_) => "drop",
        Command::AttachSessions { .. } => "attach_sessions",
        Command::JoinClaim(_) => "join_claim",
        Command::LeaveClaim { .. } => "leave_claim",
        Command::DrainClaim { .. } => "drain_claim",
        Command::AckRevoked(_) => "ack_revoked",
        Command::ResumeGrants(_) => "resume_grants",
    }
}

/// Every kind of proposal, under a name of its own.
pub(crate) fn proposals() -> Vec<(String, Proposal)> {
    let mut kinds = BTreeMap::new();
    let named = commands().into_iter().map(|command| {
        let count = kinds.entry(variant(&command)).or_insert(0);
        *count += 1;
        (format!("{}.{count}", variant(&command)), Proposal { at_ms: 1, command })
    });
    named.collect()
}

fn commands() -> Vec<Command> {
    let (session, epoch) = (id(0xabc), SessionEpoch(300));
    let mut all = session_commands();
    all.extend(acquires());
    for (at, reason) in
        [CancelReason::TimedOut, CancelReason::Cancelled, CancelReason::Abandoned].iter().enumerate()
    {
        all.push(Command::Cancel(Cancel {
            name: lock("jobs/1"),
            session,
            request: RequestId::Text("r".into()),
            reason: *reason,
            granted: if at == 0 { IfGranted::Keep } else { IfGranted::Release },
        }));
    }
    all.extend([
        Command::Release { name: lock("jobs/1"), session, token: Revision(1 << 44 | 7) },
        Command::ForceRelease { name: lock("jobs/1"), token: Revision(7) },
        Command::Proclaim {
            name: Name::election("boss").unwrap(),
            session,
            token: Revision(7),
            value: Bytes::from_static(b"\x00value\xff"),
        },
        Command::Txn(txn()),
        Command::Checkpoint {
            marked: vec![(session, epoch, 4_000)],
            cleared: vec![(id(1), SessionEpoch(1))],
            term: Term(5),
        },
        Command::Compact { keep_from: Revision(7) },
        Command::AttachTxn { contacts: vec![Contact { session, epoch, attach: attach() }], txn: txn() },
        attach_cancel(0xabc, 300, RequestId::Sequence { sequence: 300, lowest: 299 }),
    ]);
    all.extend(moves());
    all.extend(claims());
    all.push(Command::ResumeGrants(Term(300)));
    all
}

fn claims() -> Vec<Command> {
    let (name, session, epoch, move_number) = (claim(), id(0xabc), SessionEpoch(300), MoveNumber(8));
    let partitions = vec![(0, Revision(7)), (300, Revision(1 << 44 | 7))];
    let mut source = fourth_table();
    let of_claims = Seal { move_number, range: range(), term: Term(5), left: vec![] };
    for (index, command) in
        (400..).zip([Command::Unseal { move_number: MoveNumber(7) }, Command::Seal(of_claims)])
    {
        run(&mut source, index, command);
    }
    let export = source.export(move_number, &Cursor::Start, usize::MAX).unwrap();
    let is_of_claims = |moved: &Moved| matches!(moved, Moved::Claim(_) | Moved::Member(_));
    let moved: Vec<Moved> = export.moved.into_iter().filter(is_of_claims).collect();
    assert!(moved.len() > 1);
    vec![
        join(0xabc, 300, 4_096, Some(attach())),
        Command::LeaveClaim { name: name.clone(), session, epoch },
        Command::DrainClaim { name: name.clone(), session },
        Command::AckRevoked(AckRevoked { name, session, epoch, partitions }),
        join(1, 2, 3, None),
        Command::Import(Import { move_number, attempt: 1, range: range(), part: 1, moved, last: None }),
    ]
}

fn join(session: u64, epoch: u64, partitions: u32, attach: Option<Attach>) -> Command {
    let (name, session, epoch) = (claim(), id(session), SessionEpoch(epoch));
    Command::JoinClaim(JoinClaim {
        name,
        session,
        epoch,
        attach,
        partitions,
        weight: 2,
        metadata: metadata(),
    })
}

fn claim() -> Name {
    Name::claim("jobs/1").unwrap()
}

fn range() -> holdfast_partitioner::Range {
    holdfast_partitioner::Range::new("jobs/", [], Part::All)
}

fn seal() -> Command {
    let left = vec![(id(1), SessionEpoch(2), 3_000)];
    Command::Seal(Seal { move_number: MoveNumber(7), range: range(), term: Term(5), left })
}

fn moves() -> Vec<Command> {
    let (move_number, map_epoch) = (MoveNumber(7), MapEpoch::FIRST);
    let mut source = second_table();
    run(&mut source, 200, seal());
    let export = source.export(move_number, &Cursor::Start, usize::MAX).unwrap();
    vec![
        seal(),
        Command::Unseal { move_number },
        Command::Import(Import {
            move_number,
            attempt: 2,
            range: range(),
            part: 300,
            moved: export.moved,
            last: export.last,
        }),
        Command::Activate(Activate { move_number, digest: Digest(300), map_epoch, ranges: vec![range()] }),
        Command::Discard { move_number },
        Command::Drop(DropRange { move_number, map_epoch, ranges: vec![range()] }),
        Command::AttachSessions {
            sessions: vec![(id(0xabc), SessionEpoch(300)), (id(1), SessionEpoch(1))],
            group: GroupId(2),
        },
    ]
}

fn attach_cancel(session: u64, epoch: u64, request: RequestId) -> Command {
    let cancel = Cancel {
        name: lock("jobs/1"),
        session: id(session),
        request,
        reason: CancelReason::Cancelled,
        granted: IfGranted::Keep,
    };
    Command::AttachCancel { epoch: SessionEpoch(epoch), attach: attach(), cancel }
}

fn session_commands() -> Vec<Command> {
    let (session, epoch) = (id(0xabc), SessionEpoch(300));
    let end = |reason| LearnedEnd { session, epoch, reason };
    vec![
        Command::Own(own()),
        Command::OpenSession(OpenSession {
            session: id(SessionId::MAX),
            ttl_ms: 10_000,
            metadata: metadata(),
        }),
        Command::AttachSession { session, group: GroupId(2) },
        Command::EndSession { session, epoch: None, reason: EndReason::Closed },
        Command::EndSession { session, epoch: Some(epoch), reason: EndReason::Forced },
        Command::ExpireSessions { sessions: vec![(session, epoch), (id(1), SessionEpoch(1))], term: Term(5) },
        Command::LearnEnds {
            ends: vec![
                end(SessionEndReason::Closed),
                end(SessionEndReason::Expired),
                end(SessionEndReason::Forced),
            ],
        },
        Command::AckEnd { session, epoch, group: GroupId(2) },
        Command::ForgetEnds { ends: vec![(session, epoch)] },
    ]
}

fn acquires() -> [Command; 3] {
    let acquire = |wait, request, repeat, attach| {
        let (name, session, epoch, value) =
            (lock("jobs/1"), id(0xabc), SessionEpoch(300), Bytes::from_static(b"v"));
        Command::Acquire(Acquire {
            name,
            session,
            epoch,
            attach,
            request,
            wait,
            metadata: metadata(),
            value,
            repeat,
        })
    };
    let number = RequestId::Sequence { sequence: 300, lowest: 299 };
    [
        acquire(Wait::Try, number.clone(), Repeat::Refuse, None),
        acquire(Wait::AtMost(30_000), RequestId::Text("r".into()), Repeat::SameKey, None),
        acquire(Wait::Unlimited, number, Repeat::Refuse, Some(attach())),
    ]
}

fn txn() -> Txn {
    let bytes = Bytes::from_static;
    let compare = |order, target| Compare { key: bytes(b"k"), order, target };
    let range = |sort| {
        let max_create_revision = Some(Revision(9));
        TxnOp::Range(Range {
            key: bytes(b"k/"),
            range_end: bytes(b"k0"),
            limit: 1,
            sort,
            max_create_revision,
        })
    };
    let inner = Txn { compare: vec![], success: vec![], failure: vec![range(Sort::Key)] };
    Txn {
        compare: vec![
            compare(CompareOrder::Equal, CompareTarget::Create(Revision(0))),
            compare(CompareOrder::NotEqual, CompareTarget::Mod(Revision(1))),
            compare(CompareOrder::Greater, CompareTarget::Version(2)),
            compare(CompareOrder::Less, CompareTarget::Value(bytes(b"v"))),
            compare(CompareOrder::Equal, CompareTarget::Lease(Some(id(1)))),
        ],
        success: vec![
            TxnOp::Put(Put { key: bytes(b"k/1"), value: bytes(b"v"), lease: Some(id(1)) }),
            TxnOp::Delete(Delete { key: bytes(b"m"), range_end: bytes(b"\0") }),
            TxnOp::Txn(inner),
        ],
        failure: [Sort::KeyDescending, Sort::Create, Sort::CreateDescending, Sort::Mod, Sort::ModDescending]
            .map(range)
            .into(),
    }
}

/// [`fourth_table`] as it is restored: what is left of it, and nothing is granted at first.
pub(crate) fn table() -> LockTable {
    let ranges = vec![holdfast_partitioner::Range::everything()];
    let into = Restoring {
        incarnation: 1,
        map_epoch: MapEpoch(300),
        ranges: &ranges,
        undecided: None,
        pause_ms: Some(10_000),
    };
    let mut table = fourth_table().restored(&into).unwrap();
    run(
        &mut table,
        500,
        Command::OpenSession(OpenSession { session: id(1), ttl_ms: 10_000, metadata: metadata() }),
    );
    table
}

/// As [`third_table`], with a claim in which something is being revoked. Version 4 knew no more.
pub(crate) fn fourth_table() -> LockTable {
    let mut table = third_table();
    let commands = [
        Command::Unseal { move_number: MoveNumber(7) },
        join(1, 2, 3, None),
        join(2, 3, 3, None),
        Command::DrainClaim { name: claim(), session: id(1) },
    ];
    for (index, command) in (300..).zip(commands) {
        run(&mut table, index, command);
    }
    table
}

/// As [`second_table`], with a range that came and one that is sealed for going. Version 3 knew no more.
pub(crate) fn third_table() -> LockTable {
    let (move_number, map_epoch, attempt) = (MoveNumber(3), MapEpoch::FIRST, 1);
    let range = holdfast_partitioner::Range::new("moved/", [], Part::All);
    let ranges = vec![holdfast_partitioner::Range::everything()];
    let last = Some(Revision(50));
    let import = Import { move_number, attempt, range, part: 0, moved: vec![], last };
    let activate = Activate { move_number, digest: Digest::NOTHING, map_epoch, ranges };
    let mut table = second_table();
    for (index, command) in (200..).zip([Command::Import(import), Command::Activate(activate), seal()]) {
        run(&mut table, index, command);
    }
    table
}

/// As [`first_table`], with sessions that have no lease: one has lapsed, one was only cancelled. Version 2 knew no more.
pub(crate) fn second_table() -> LockTable {
    let mut table = first_table();
    let number = RequestId::Sequence { sequence: 1, lowest: 1 };
    let ask = ask(10, "jobs/3", number.clone(), Some(attach()));
    let lapse = Command::ExpireSessions { sessions: vec![(id(10), SessionEpoch(11))], term: Term(5) };
    for (index, command) in (100..).zip([ask, lapse, attach_cancel(11, 12, number)]) {
        run(&mut table, index, command);
    }
    table
}

fn run(table: &mut LockTable, index: u64, command: Command) {
    let at = Position { index, term: Term(5) };
    let applied = table.apply(at, &Proposal { at_ms: 1_700_000_000_000 + index, command });
    assert!(applied.result.is_ok(), "{:?}", applied.result);
}

fn ask(session: u64, name: &str, request: RequestId, attach: Option<Attach>) -> Command {
    let name = lock(name);
    let (epoch, value) = (SessionEpoch(session + 1), Bytes::new());
    let (session, wait, metadata, repeat) = (id(session), Wait::Unlimited, metadata(), Repeat::Refuse);
    Command::Acquire(Acquire { name, session, epoch, attach, request, wait, metadata, value, repeat })
}

/// A table with homes and attachments, holders and waiters, requests live and ended, marks, pending and remembered ends,
/// ordinary keys and a compacted history: all that version 1 of a snapshot knew.
pub(crate) fn first_table() -> LockTable {
    let mut table = LockTable::new(GroupId(1));
    let mut index = 0;
    let mut run = |command| {
        index += 1;
        run(&mut table, index, command);
    };
    run(Command::Own(own()));
    for session in 1..=4 {
        run(Command::OpenSession(OpenSession { session: id(session), ttl_ms: 10_000, metadata: metadata() }));
    }
    for session in [1, 4] {
        run(Command::AttachSession { session: id(session), group: GroupId(2) });
    }
    let number = |sequence, lowest| RequestId::Sequence { sequence, lowest };
    run(ask(1, "jobs/1", number(2, 1), None));
    run(ask(2, "jobs/1", RequestId::Text("two".into()), None));
    run(ask(9, "jobs/1", number(1, 1), Some(attach())));
    run(ask(2, "jobs/2", RequestId::Text("over".into()), None));
    run(Command::Release { name: lock("jobs/2"), session: id(2), token: Revision(4) });
    run(ask(1, "jobs/2", number(4, 2), None));
    run(Command::Txn(txn()));
    run(Command::Checkpoint {
        marked: vec![(id(1), SessionEpoch(2), 4_000)],
        cleared: vec![],
        term: Term(5),
    });
    let end = |session, reason| LearnedEnd { session: id(session), epoch: SessionEpoch(session + 1), reason };
    run(Command::LearnEnds {
        ends: vec![end(9, SessionEndReason::Expired), end(77, SessionEndReason::Closed)],
    });
    run(Command::EndSession { session: id(4), epoch: None, reason: EndReason::Closed });
    run(Command::Compact { keep_from: Revision(2) });
    table
}

fn own() -> Own {
    Own {
        group: GroupId(1),
        map_epoch: MapEpoch::FIRST,
        ranges: vec![holdfast_partitioner::Range::everything()],
    }
}

fn attach() -> Attach {
    Attach { home: GroupId(3), ttl_ms: 10_000, metadata: metadata(), term: Term(5) }
}

fn metadata() -> Metadata {
    Metadata::new(BTreeMap::from([("host".into(), "h1".into()), ("pid".into(), "7".into())])).unwrap()
}

fn lock(name: &str) -> Name {
    Name::lock(name).unwrap()
}

fn id(session: u64) -> SessionId {
    SessionId::new(session).unwrap()
}

//! The commands and reads of a story.

use bytes::Bytes;
use holdfast_locktable::{
    codec::Digest,
    command::{
        AckRevoked, Acquire, Activate, Attach, Cancel, CancelReason, Command, Contact, DropRange, EndReason,
        IfGranted, Import, JoinClaim, LearnedEnd, OpenSession, Own, Repeat, RequestId, Seal,
        SessionEndReason, Wait,
    },
    ids::{MoveNumber, Revision, SessionEpoch, SessionId, Term},
    metadata::Metadata,
    moved::{Cursor, Export},
    name::{Name, NameKind},
    table::LockTable,
    txn::{Compare, CompareOrder, CompareTarget, Delete, Put, Range, Sort, Txn, TxnOp},
};
use holdfast_partitioner::{GroupId, MapEpoch, Part};

use super::{World, render};

/// `own NAME…` gives the names below these prefixes, `open A 10s`, `attach A to 2`, `attach-all A B to 2`, `close A`, `force-end A`,
/// `expire A B`, `learn A closed|expired|forced`, `ack A from 2`, `forget A`,
/// `acquire A NAME try|wait|5s [id=x|seq=5/3] [value=v] [again] [attach]`, `cancel A NAME id=x timeout|client|abandoned [release] [attach]`,
/// `release A NAME TOKEN`, `force-release NAME TOKEN`, `proclaim A NAME TOKEN VALUE`,
/// `seal N PREFIX [A=3s …]` with what sessions have left, `unseal N`, `discard N`, `activate N own PREFIX…`,
/// `drop N own PREFIX…` (`*` for all names, `-PREFIX` for all but these), and `import N from GROUP [by=BYTES] [attempt=K]
/// [part=K]` of all parts or one,
/// `txn [attach=A] [if KEY=0|KEY=REV …] then STEP; … else STEP; …` with steps `put KEY VALUE [lease=A]`,
/// `del KEY [END]`, `range KEY [END]`; `mark A 3s`, `clear A`, `compact REV`; of claims `join A NAME PARTITIONS [weight=W]
/// [attach]`, `leave A NAME`, `drain A NAME`, `give-back A NAME PARTITION=TOKEN …`. Anywhere: `epoch=N`, `term=N`.
pub(super) fn command(world: &mut World, group: u32, words: &[&str]) -> Command {
    let term = value(words, "term").map_or(world.term, |n| Term(n.parse().unwrap()));
    let who = |at: usize| session(words[at]);
    match words[0] {
        "own" => Command::Own(own(group, &words[1..])),
        "open" => {
            let metadata = Metadata::default();
            Command::OpenSession(OpenSession { session: who(1), ttl_ms: millis(words[2]), metadata })
        }
        "attach" => Command::AttachSession { session: who(1), group: GroupId(words[3].parse().unwrap()) },
        "attach-all" => {
            let group = GroupId(words.last().unwrap().parse().unwrap());
            Command::AttachSessions { sessions: lives(world, &words[..words.len() - 2]), group }
        }
        "close" | "force-end" => {
            let reason = if words[0] == "close" { EndReason::Closed } else { EndReason::Forced };
            let epoch = value(words, "epoch").map(|n| SessionEpoch(n.parse().unwrap()));
            Command::EndSession { session: who(1), epoch, reason }
        }
        "expire" => Command::ExpireSessions { sessions: lives(world, words), term },
        "learn" => {
            let end =
                LearnedEnd { session: who(1), epoch: epoch(world, words, who(1)), reason: end(words[2]) };
            Command::LearnEnds { ends: vec![end] }
        }
        "ack" => {
            let group = GroupId(words[3].parse().unwrap());
            Command::AckEnd { session: who(1), epoch: epoch(world, words, who(1)), group }
        }
        "forget" => Command::ForgetEnds { ends: lives(world, words) },
        "acquire" => Command::Acquire(acquire(world, words, term)),
        "cancel" if words.contains(&"attach") => {
            let (epoch, attach) = (epoch(world, words, who(1)), attach(world, who(1), term));
            Command::AttachCancel { epoch, attach, cancel: cancel(words) }
        }
        "cancel" => Command::Cancel(cancel(words)),
        "release" => Command::Release { name: name(words[2]), session: who(1), token: revision(words[3]) },
        "force-release" => Command::ForceRelease { name: name(words[1]), token: revision(words[2]) },
        "proclaim" => {
            let value = Bytes::copy_from_slice(words[4].as_bytes());
            Command::Proclaim { name: name(words[2]), session: who(1), token: revision(words[3]), value }
        }
        "txn" => txn_command(world, words, term),
        "mark" => {
            let marked = vec![(who(1), epoch(world, words, who(1)), millis(words[2]))];
            Command::Checkpoint { marked, cleared: vec![], term }
        }
        "clear" => Command::Checkpoint { marked: vec![], cleared: lives(world, words), term },
        "compact" => Command::Compact { keep_from: revision(words[1]) },
        "seal" => {
            let left =
                words[3..].iter().filter_map(|word| word.split_once('=')).filter(|(who, _)| who.len() == 1);
            let left =
                left.map(|(who, left)| (session(who), epoch(world, words, session(who)), millis(left)));
            let (move_number, range) = (number(words[1]), ranges(&words[2..3]).remove(0));
            Command::Seal(Seal { move_number, range, term, left: left.collect() })
        }
        "unseal" => Command::Unseal { move_number: number(words[1]) },
        "discard" => Command::Discard { move_number: number(words[1]) },
        "activate" => {
            let (move_number, ranges) = (number(words[1]), ranges(&words[3..]));
            let digest = world.imported.get(&move_number).copied().unwrap_or(Digest::NOTHING);
            Command::Activate(Activate { move_number, digest, map_epoch: MapEpoch::FIRST, ranges })
        }
        "drop" => {
            let (move_number, ranges) = (number(words[1]), ranges(&words[3..]));
            Command::Drop(DropRange { move_number, map_epoch: MapEpoch::FIRST, ranges })
        }
        "join" => Command::JoinClaim(JoinClaim {
            name: claim(words[2]),
            session: who(1),
            epoch: epoch(world, words, who(1)),
            attach: words.contains(&"attach").then(|| attach(world, who(1), term)),
            partitions: words[3].parse().unwrap(),
            weight: value(words, "weight").map_or(1, |weight| weight.parse().unwrap()),
            metadata: Metadata::default(),
        }),
        "leave" => {
            let epoch = epoch(world, words, who(1));
            Command::LeaveClaim { name: claim(words[2]), session: who(1), epoch }
        }
        "drain" => Command::DrainClaim { name: claim(words[2]), session: who(1) },
        "give-back" => {
            let (name, epoch) = (claim(words[2]), epoch(world, words, who(1)));
            let pairs = words[3..].iter().filter_map(|word| word.split_once('='));
            let partitions = pairs.filter(|(key, _)| *key != "epoch");
            let partitions = partitions.map(|(p, token)| (p.parse().unwrap(), revision(token))).collect();
            Command::AckRevoked(AckRevoked { name, session: who(1), epoch, partitions })
        }
        other => panic!("no such command: {other}"),
    }
}

fn claim(text: &str) -> Name {
    Name::claim(text).unwrap()
}

/// The parts of an export, as they are to be imported.
pub(super) fn imports(source: &LockTable, words: &[&str]) -> Vec<Import> {
    let move_number = number(words[1]);
    let bytes = value(words, "by").map_or(1 << 20, |bytes| bytes.parse().unwrap());
    let attempt = value(words, "attempt").map_or(1, |attempt| attempt.parse().unwrap());
    let (_, range) = source.sealed().expect("nothing is sealed");
    let (mut cursor, mut parts) = (Cursor::Start, Vec::new());
    loop {
        let Export { moved, after, last } = source.export(move_number, &cursor, bytes).expect("another move");
        let part = u32::try_from(parts.len()).unwrap();
        parts.push(Import { move_number, attempt, range: range.clone(), part, moved, last });
        cursor = after;
        if last.is_some() {
            return parts;
        }
    }
}

pub(super) fn part(words: &[&str]) -> Option<usize> {
    value(words, "part").map(|part| part.parse().unwrap())
}

fn number(text: &str) -> MoveNumber {
    MoveNumber(text.parse().unwrap())
}

fn ranges(words: &[&str]) -> Vec<holdfast_partitioner::Range> {
    let (excluded, prefixes): (Vec<&str>, Vec<&str>) = words.iter().partition(|word| word.starts_with('-'));
    let excluded: Vec<String> = excluded.iter().map(|word| word[1..].to_owned()).collect();
    let range = |prefix: &&str| {
        let prefix = if *prefix == "*" { "" } else { *prefix };
        holdfast_partitioner::Range::new(prefix, excluded.clone(), Part::All)
    };
    prefixes.iter().map(range).collect()
}

/// `show NAME`, `list PREFIX`, `state A NAME id=x`, `session A`, `events from REV`, `history NAME`, `ends`, `waits`,
/// `counts`, `claim NAME`, `claims PREFIX`, `member A NAME`.
pub(super) fn read(table: &LockTable, words: &[&str]) -> Option<Vec<String>> {
    Some(match words[0] {
        "show" => table.queue(&name(words[1])).map_or(vec!["free".into()], |queue| render::queue(&queue)),
        "list" => {
            let (queues, _) = table.queues(words.get(1).unwrap_or(&""), NameKind::Lock, None, 100);
            queues.iter().map(|queue| format!("{} by {}", queue.name, queue.entries.len())).collect()
        }
        "state" => {
            let state = table.request_state(session(words[1]), &name(words[2]), &request(words).unwrap());
            vec![format!("{state:?}")]
        }
        "session" => vec![render::session(table.session(session(words[1])))],
        "events" => match table.history(revision(words[2])) {
            Ok(events) => events.map(render::event).collect(),
            Err(refused) => vec![format!("{refused:?}")],
        },
        "history" => table.history_of(&name(words[1]), 100).iter().map(render::event).collect(),
        "ends" => render::ends(table),
        "waits" => {
            table.waits().map(|w| format!("{} for {} {:?}", render::who(w.session), w.name, w.wait)).collect()
        }
        "claim" => table.claim(&claim(words[1])).map_or(vec!["no members".into()], |c| render::claim(&c)),
        "claims" => {
            let (claims, _) = table.claims(words.get(1).unwrap_or(&""), None, 100);
            claims
                .iter()
                .map(|c| format!("{} of {} partitions by {}", c.name, c.partitions, c.members))
                .collect()
        }
        "member" => vec![render::membership(table.membership(&claim(words[2]), session(words[1])))],
        "counts" => vec![format!("{:?}", table.counts())],
        _ => return None,
    })
}

fn own(group: u32, prefixes: &[&str]) -> Own {
    Own { group: GroupId(group), map_epoch: MapEpoch::FIRST, ranges: ranges(prefixes) }
}

fn acquire(world: &mut World, words: &[&str], term: Term) -> Acquire {
    let session = session(words[1]);
    world.requests += 1;
    let fresh = RequestId::Text(format!("#{}", world.requests).into());
    Acquire {
        name: name(words[2]),
        session,
        epoch: epoch(world, words, session),
        attach: words.contains(&"attach").then(|| attach(world, session, term)),
        request: request(words).unwrap_or(fresh),
        wait: match words[3] {
            "try" => Wait::Try,
            "wait" => Wait::Unlimited,
            limit => Wait::AtMost(millis(limit)),
        },
        metadata: Metadata::default(),
        value: value(words, "value").map_or(Bytes::new(), |v| Bytes::copy_from_slice(v.as_bytes())),
        repeat: if words.contains(&"again") { Repeat::SameKey } else { Repeat::Refuse },
    }
}

fn attach(world: &World, session: SessionId, term: Term) -> Attach {
    let (home, _, ttl_ms) = world.sessions[&session];
    Attach { home: GroupId(home), ttl_ms, metadata: Metadata::default(), term }
}

fn cancel(words: &[&str]) -> Cancel {
    Cancel {
        name: name(words[2]),
        session: session(words[1]),
        request: request(words).unwrap(),
        reason: match words[4] {
            "timeout" => CancelReason::TimedOut,
            "client" => CancelReason::Cancelled,
            "abandoned" => CancelReason::Abandoned,
            other => panic!("no such reason: {other}"),
        },
        granted: if words.contains(&"release") { IfGranted::Release } else { IfGranted::Keep },
    }
}

fn txn_command(world: &World, words: &[&str], term: Term) -> Command {
    let contacts: Vec<Contact> = value(words, "attach")
        .map(|who| {
            let session = session(who);
            let (_, epoch, _) = world.sessions[&session];
            Contact { session, epoch, attach: attach(world, session, term) }
        })
        .into_iter()
        .collect();
    let part = |from: &str, to: &[&str]| -> Vec<&str> {
        let Some(start) = words.iter().position(|w| *w == from) else { return vec![] };
        words[start + 1..].iter().take_while(|w| !to.contains(w)).copied().collect()
    };
    let txn = Txn {
        compare: part("if", &["then"]).into_iter().map(compare).collect(),
        success: steps(&part("then", &["else"])),
        failure: steps(&part("else", &[])),
    };
    if contacts.is_empty() { Command::Txn(txn) } else { Command::AttachTxn { contacts, txn } }
}

fn compare(text: &str) -> Compare {
    let (key, number) = text.rsplit_once('=').unwrap();
    Compare { key: bytes(key), order: CompareOrder::Equal, target: CompareTarget::Create(revision(number)) }
}

fn steps(words: &[&str]) -> Vec<TxnOp> {
    let text = words.join(" ");
    text.split(';').map(str::trim).filter(|step| !step.is_empty()).map(step).collect()
}

fn step(text: &str) -> TxnOp {
    let words: Vec<&str> = text.split_whitespace().collect();
    let key = bytes(words[1]);
    let range_end = words.get(2).map_or(Bytes::new(), |end| bytes(end));
    match words[0] {
        "put" => TxnOp::Put(Put { key, value: range_end, lease: value(&words, "lease").map(session) }),
        "del" => TxnOp::Delete(Delete { key, range_end }),
        "range" => {
            TxnOp::Range(Range { key, range_end, limit: 0, sort: Sort::Create, max_create_revision: None })
        }
        other => panic!("no such step: {other}"),
    }
}

fn lives(world: &World, words: &[&str]) -> Vec<(SessionId, SessionEpoch)> {
    let named = words[1..].iter().filter(|word| word.len() == 1);
    named.map(|word| (session(word), epoch(world, words, session(word)))).collect()
}

fn epoch(world: &World, words: &[&str], session: SessionId) -> SessionEpoch {
    match value(words, "epoch") {
        Some(number) => SessionEpoch(number.parse().unwrap()),
        None => world.sessions.get(&session).map_or(SessionEpoch(0), |(_, epoch, _)| *epoch),
    }
}

fn request(words: &[&str]) -> Option<RequestId> {
    if let Some(text) = value(words, "id") {
        return Some(RequestId::Text(text.into()));
    }
    let (sequence, lowest) = value(words, "seq")?.split_once('/').expect("seq=NUMBER/LOWEST");
    Some(RequestId::Sequence { sequence: sequence.parse().unwrap(), lowest: lowest.parse().unwrap() })
}

fn value<'w>(words: &[&'w str], key: &str) -> Option<&'w str> {
    words.iter().find_map(|word| word.strip_prefix(key)?.strip_prefix('='))
}

fn session(letter: &str) -> SessionId {
    let letter = letter.bytes().next().filter(u8::is_ascii_uppercase).unwrap();
    SessionId::new(u64::from(letter - b'A') + 0xa).unwrap()
}

fn name(text: &str) -> Name {
    match text.strip_prefix("election:") {
        Some(name) => Name::election(name).unwrap(),
        None => Name::lock(text).unwrap(),
    }
}

fn end(text: &str) -> SessionEndReason {
    match text {
        "closed" => SessionEndReason::Closed,
        "expired" => SessionEndReason::Expired,
        "forced" => SessionEndReason::Forced,
        other => panic!("no such end: {other}"),
    }
}

fn millis(text: &str) -> u64 {
    match text.strip_suffix("ms") {
        Some(millis) => millis.parse().unwrap(),
        None => text.strip_suffix('s').unwrap().parse::<u64>().unwrap() * 1_000,
    }
}

fn revision(text: &str) -> Revision {
    Revision(text.parse().unwrap())
}

fn bytes(text: &str) -> Bytes {
    Bytes::copy_from_slice(text.as_bytes())
}

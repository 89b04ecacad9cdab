//! Every rule can be broken, and is then named.

use alloc::{collections::BTreeSet, string::ToString};

use bytes::Bytes;
use holdfast_partitioner::GroupId;

use super::{Violation, check};
use crate::{
    assign::Owner,
    command::{Command, JoinClaim, RequestId, SessionEndReason},
    commands::MAX_TTL_MS,
    ids::Revision,
    name::Name,
    sample::*,
    table::{
        Absent, Claim, HISTORY_EVENTS, Index, Joined, Key, LockTable, MAX_ENDED_HOLDS, MAX_OUTSTANDING,
        Pending, Place, Requests, Role, Session,
    },
};

/// Session 1 holds `l` by text and `m` by number, session 2 waits for `l`.
fn table() -> LockTable {
    let mut table = with_sessions(2);
    hold(&mut table, 1, "l", text("t"));
    hold(&mut table, 1, "m", sequence(2, 1));
    assert!(ask(&mut table, 2, "l", text("t")).is_ok());
    assert_eq!(check(&table), Ok(()));
    table
}

/// Breaks a state, with indexes that agree with it.
fn broken(change: impl FnOnce(&mut LockTable)) -> Violation {
    let mut table = table();
    change(&mut table);
    table.index = Index::of(&table.state.keys);
    check(&table).unwrap_err()
}

fn key<'t>(table: &'t mut LockTable, key: &str) -> &'t mut Key {
    table.state.keys.get_mut(key.as_bytes()).unwrap()
}

fn place<'t>(table: &'t mut LockTable, of: &str) -> &'t mut Place {
    key(table, of).place.as_mut().unwrap()
}

fn session(table: &mut LockTable, of: u64) -> &mut Session {
    table.state.sessions.get_mut(&id(of)).unwrap()
}

#[test]
fn one_holder() {
    let second = broken(|t| place(t, "l/2").granted_at_ms = Some(1));
    assert_eq!(second, Violation::OneHolder { name: lock("l"), session: id(2) });
    let none = broken(|t| place(t, "l/1").granted_at_ms = None);
    assert_eq!(none, Violation::OneHolder { name: lock("l"), session: id(1) });
}

#[test]
fn queue_order() {
    let equal = broken(|t| {
        let first = key(t, "l/1").create;
        key(t, "l/2").create = first;
    });
    assert_eq!(equal, Violation::QueueOrder { name: lock("l") });
}

#[test]
fn lock_key_shape() {
    let wrong = Violation::LockKeyShape { key: "l/1".to_string() };
    assert_eq!(broken(|t| place(t, "l/1").name = lock("other")), wrong);
    assert_eq!(broken(|t| key(t, "l/1").place = None), wrong);
    assert_eq!(broken(|t| key(t, "l/1").lease = Some(id(2))), wrong);
}

#[test]
fn orphan_key() {
    let orphan = broken(|t| drop(t.state.sessions.remove(&id(2))));
    assert_eq!(orphan, Violation::OrphanKey { key: "l/2".to_string() });
}

#[test]
fn key_revisions() {
    let wrong = Violation::KeyRevisions { key: "l/1".to_string() };
    assert_eq!(broken(|t| key(t, "l/1").modified = Revision(99)), wrong);
    assert_eq!(broken(|t| key(t, "l/1").create = Revision(2)), wrong);
    assert_eq!(broken(|t| key(t, "l/1").create = Revision(0)), wrong);
    assert_eq!(broken(|t| key(t, "l/1").version = 2), wrong);
    assert_eq!(broken(|t| key(t, "l/1").version = 0), wrong);
}

#[test]
fn revision_bound() {
    let revision = Revision(Revision::LIMIT);
    assert_eq!(broken(|t| t.state.revision = revision), Violation::RevisionBound { revision });
}

#[test]
fn indexes() {
    let mut table = table();
    table.index = Index::default();
    assert_eq!(check(&table), Err(Violation::Indexes));
}

#[test]
fn ownership() {
    let lost = broken(|t| t.state.ownership = crate::table::LockTable::new(GroupId(1)).state.ownership);
    assert_eq!(lost, Violation::Ownership { name: lock("l") });
}

#[test]
fn session_times() {
    let wrong = Violation::SessionTimes { session: id(1) };
    assert_eq!(broken(|t| session(t, 1).marked_ms = Some(10_001)), wrong);
    assert_eq!(broken(|t| session(t, 1).ttl_ms = MAX_TTL_MS + 1), wrong);
    assert_eq!(broken(|t| session(t, 1).ttl_ms = 0), wrong);
}

#[test]
fn session_role() {
    let wrong = Violation::SessionRole { session: id(1) };
    assert_eq!(broken(|t| session(t, 1).renewal_stopped = true), wrong);
    assert_eq!(broken(|t| session(t, 1).role = Role::Attached { home: GroupId(1) }), wrong);
    let itself = Role::Home { attached: BTreeSet::from([GroupId(1)]) };
    assert_eq!(broken(|t| session(t, 1).role = itself), wrong);
}

#[test]
fn floor() {
    let wrong = Violation::Floor { session: id(1) };
    assert_eq!(broken(|t| session(t, 1).requests.floor = 2), wrong);
    let many = broken(|t| {
        let requests = &mut session(t, 1).requests;
        let record = requests.results[&2].clone();
        requests.results.extend((3..3 + MAX_OUTSTANDING as u64).map(|number| (number, record.clone())));
    });
    assert_eq!(many, wrong);
}

#[test]
fn request_record() {
    let wrong = Violation::RequestRecord { session: id(1) };
    assert_eq!(broken(|t| drop(session(t, 1).requests.results.remove(&2))), wrong);
    assert_eq!(broken(|t| session(t, 1).requests.rare.get_mut().texts.clear()), wrong);
    let ended = Some(crate::outcome::RequestEnd::Released);
    assert_eq!(broken(|t| session(t, 1).requests.results.get_mut(&2).unwrap().end = ended), wrong);
    assert_eq!(broken(|t| place(t, "l/1").request = Some(RequestId::Text("u".into()))), wrong);
}

#[test]
fn ended_holds() {
    let wrong = Violation::EndedHolds { session: id(1) };
    assert_eq!(broken(|t| session(t, 1).requests.remember_hold(&lock("l"), Revision(1))), wrong);
    let many = broken(|t| {
        let holds = (0..=MAX_ENDED_HOLDS as u64).map(|token| (lock("x"), Revision(token)));
        session(t, 1).requests.rare.get_mut().ended_holds.extend(holds);
    });
    assert_eq!(many, wrong);
}

#[test]
fn pending_end() {
    let pending = |to_tell: &[u32]| Pending {
        epoch: epoch(1),
        reason: SessionEndReason::Closed,
        to_tell: to_tell.iter().copied().map(GroupId).collect(),
    };
    let wrong = |session| Violation::PendingEnd { session: id(session) };
    assert_eq!(broken(|t| drop(t.state.pending.insert(id(1), pending(&[2])))), wrong(1));
    assert_eq!(broken(|t| drop(t.state.pending.insert(id(9), pending(&[])))), wrong(9));
    assert_eq!(broken(|t| drop(t.state.pending.insert(id(9), pending(&[1])))), wrong(9));
}

#[test]
fn tombstone() {
    let both = broken(|t| assert!(t.state.tombstones.insert((id(1), epoch(1)))));
    assert_eq!(both, Violation::Tombstone { session: id(1), epoch: epoch(1) });
}

#[test]
fn absent() {
    let absent = |epoch| Absent { epoch, requests: Requests::default() };
    let wrong = |session| Violation::Absent { session: id(session) };
    assert_eq!(broken(|t| drop(t.state.absent.insert(id(1), absent(epoch(1))))), wrong(1));
    let buried = broken(|t| {
        t.state.absent.insert(id(9), absent(epoch(9)));
        t.state.tombstones.insert((id(9), epoch(9)));
    });
    assert_eq!(buried, wrong(9));
    let live = broken(|t| {
        let requests = session(t, 1).requests.clone();
        let not_ended = requests.results.values().any(|record| record.end.is_none());
        assert!(not_ended);
        t.state.absent.insert(id(9), Absent { epoch: epoch(9), requests });
    });
    assert_eq!(live, wrong(9));
    let floor = broken(|t| {
        let mut absent = absent(epoch(9));
        absent.requests.keep_out(&lock("l"), &sequence(3, 1));
        absent.requests.floor = 3;
        t.state.absent.insert(id(9), absent);
    });
    assert_eq!(floor, wrong(9));
}

/// Session 3 has both partitions and is drained, session 1 waits for them.
fn claims(change: impl FnOnce(&mut LockTable)) -> Violation {
    let mut table = with_sessions(3);
    let name = Name::claim("c").unwrap();
    let join = |session, partitions| {
        let (name, session, epoch) = (name.clone(), id(session), epoch(session));
        let (attach, weight, metadata) = (None, 1, crate::metadata::Metadata::default());
        Command::JoinClaim(JoinClaim { name, session, epoch, attach, partitions, weight, metadata })
    };
    for command in [join(3, 2), join(1, 2), Command::DrainClaim { name: name.clone(), session: id(3) }] {
        assert!(run(&mut table, command).is_ok());
    }
    assert_eq!(check(&table), Ok(()));
    change(&mut table);
    table.joined = Joined::of(&table.state.claims.live);
    check(&table).unwrap_err()
}

fn the_claim(table: &mut LockTable) -> &mut Claim {
    table.state.claims.live.get_mut(&Name::claim("c").unwrap()).unwrap()
}

#[test]
fn claim() {
    let wrong = Violation::Claim { name: Name::claim("c").unwrap() };
    assert_eq!(claims(|t| the_claim(t).owners.clear()), wrong);
    assert_eq!(claims(|t| the_claim(t).owners.resize(4_097, None)), wrong);
    assert_eq!(claims(|t| the_claim(t).members.clear()), wrong);
    assert_eq!(claims(|t| the_claim(t).members.get_mut(&id(1)).unwrap().weight = 0), wrong);
    assert_eq!(claims(|t| the_claim(t).members.get_mut(&id(1)).unwrap().changed = Revision(99)), wrong);
    assert_eq!(claims(|t| drop(t.state.sessions.remove(&id(1)))), wrong);
    let arriving = claims(|t| {
        let claim = the_claim(t).clone();
        t.state.claims.arriving.insert(Name::claim("c").unwrap(), claim);
    });
    assert_eq!(arriving, wrong);
    let lock = claims(|t| {
        let claim = the_claim(t).clone();
        t.state.claims.live.insert(lock("c"), claim);
    });
    assert_eq!(lock, Violation::Claim { name: self::lock("c") });
}

#[test]
fn partition_owner() {
    let wrong = Violation::PartitionOwner { name: Name::claim("c").unwrap(), partition: 1 };
    let owner = |t: &mut LockTable, change: fn(&mut Owner)| {
        change(the_claim(t).owners[1].as_mut().unwrap());
    };
    assert_eq!(claims(|t| owner(t, |owner| owner.session = id(2))), wrong);
    assert_eq!(claims(|t| owner(t, |owner| owner.token = Revision(0))), wrong);
    assert_eq!(claims(|t| owner(t, |owner| owner.token = Revision(99))), wrong);
}

#[test]
fn assignment() {
    let wrong = Violation::Assignment { name: Name::claim("c").unwrap() };
    assert_eq!(claims(|t| the_claim(t).owners[1] = None), wrong);
    assert_eq!(claims(|t| the_claim(t).owners[1].as_mut().unwrap().revoking = false), wrong);
    let drained = claims(|t| {
        let claim = the_claim(t);
        for owner in claim.owners.iter_mut().flatten() {
            (owner.session, owner.revoking) = (id(1), false);
        }
    });
    assert_eq!(drained, wrong);
}

#[test]
fn history() {
    assert_eq!(broken(|t| t.state.revision = Revision(2)), Violation::History { at: Revision(3) });
    let mut order = table();
    let late = order.state.history.events()[0].clone();
    order.state.history.push(&[late]);
    assert_eq!(check(&order), Err(Violation::History { at: Revision(1) }));
    let mut long = table();
    for number in 0..=HISTORY_EVENTS {
        assert!(run(&mut long, Command::Txn(txn([put("k", None)].into()))).is_ok(), "{number}");
    }
    assert_eq!(check(&long), Ok(()));
    assert!(long.state.keys.contains_key(&Bytes::from("k")));
}

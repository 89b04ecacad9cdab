//! Pages, ranges and orders.

use alloc::{string::String, vec, vec::Vec};

use bytes::Bytes;

use super::RequestState;
use crate::{
    command::Command,
    ids::{Revision, SessionId},
    name::{Name, NameKind},
    outcome::RequestEnd,
    sample::*,
    table::LockTable,
    txn::{Range, Sort, TxnAnswer},
};

fn held(names: &[&str], elections: &[&str]) -> LockTable {
    let mut table = with_sessions(1);
    for name in names {
        hold(&mut table, 1, name, text("t"));
    }
    for name in elections {
        let campaign =
            crate::command::Acquire { name: Name::election(name).unwrap(), ..acquire(1, "x", text("t")) };
        assert!(run(&mut table, Command::Acquire(campaign)).is_ok());
    }
    table
}

fn page(
    table: &LockTable,
    prefix: &str,
    kind: NameKind,
    after: Option<&Name>,
    limit: usize,
) -> (Vec<String>, bool) {
    let (queues, more) = table.queues(prefix, kind, after, limit);
    (queues.iter().map(|queue| queue.name.text().into()).collect(), more)
}

#[test]
fn queues_are_listed_by_kind_and_prefix_in_pages() {
    let table = held(&["a", "b", "b/x", "b0", "c", "é"], &["b", "b/y", "d"]);
    let locks = |prefix, after: Option<&str>, limit| {
        page(&table, prefix, NameKind::Lock, after.map(lock).as_ref(), limit)
    };
    assert_eq!(locks("", None, 10).0, ["a", "b", "b/x", "b0", "c", "é"]);
    assert_eq!(locks("b", None, 2), (vec!["b".into(), "b/x".into()], true));
    assert_eq!(locks("b", Some("b/x"), 2), (vec!["b0".into()], false));
    assert_eq!(locks("b", Some("a"), 1), (vec!["b".into()], true), "behind a name before the prefix");
    assert_eq!(locks("b", Some("z"), 5), (vec![], false));
    assert_eq!(locks("b", None, 0), (vec![], true));
    assert_eq!(locks("x", None, 5), (vec![], false));
    let after = Name::election("b").unwrap();
    assert_eq!(page(&table, "", NameKind::Election, None, 10).0, ["b", "b/y", "d"]);
    assert_eq!(page(&table, "b", NameKind::Election, Some(&after), 10), (vec!["b/y".into()], false));
}

#[test]
fn sessions_are_listed_in_pages() {
    let table = with_sessions(3);
    let ids = |after: Option<SessionId>, limit| {
        let (page, more) = table.sessions(after, limit);
        (page.iter().map(|view| view.session.get()).collect::<Vec<_>>(), more)
    };
    assert_eq!(ids(None, 2), (vec![1, 2], true));
    assert_eq!(ids(Some(id(2)), 2), (vec![3], false));
    assert_eq!(ids(Some(id(3)), 2), (vec![], false));
}

fn read(table: &LockTable, range: Range) -> (Vec<String>, u64, bool) {
    match table.range(&range) {
        TxnAnswer::Range { keys, count, more } => {
            (keys.iter().map(|kv| String::from_utf8(kv.key.to_vec()).unwrap()).collect(), count, more)
        }
        other => panic!("{other:?}"),
    }
}

fn range(key: &'static str, range_end: &'static str, limit: u32, sort: Sort) -> Range {
    Range { key: Bytes::from(key), range_end: Bytes::from(range_end), limit, sort, max_create_revision: None }
}

#[test]
fn ranges_are_sorted_filtered_and_cut_as_etcd_does() {
    let mut table = with_sessions(1);
    for key in ["k/b", "k/c", "k/a", "j", "l"] {
        assert!(run(&mut table, Command::Txn(txn(vec![put(key, None)]))).is_ok());
    }
    assert!(run(&mut table, Command::Txn(txn(vec![put("k/b", None)]))).is_ok());
    let all = |sort| read(&table, range("k/", "k0", 0, sort)).0;
    assert_eq!(all(Sort::Key), ["k/a", "k/b", "k/c"]);
    assert_eq!(all(Sort::KeyDescending), ["k/c", "k/b", "k/a"]);
    assert_eq!(all(Sort::Create), ["k/b", "k/c", "k/a"]);
    assert_eq!(all(Sort::CreateDescending), ["k/a", "k/c", "k/b"]);
    assert_eq!(all(Sort::Mod), ["k/c", "k/a", "k/b"]);
    assert_eq!(all(Sort::ModDescending), ["k/b", "k/a", "k/c"]);
    let first = read(&table, range("k/", "k0", 1, Sort::Create));
    assert_eq!(first, (vec!["k/b".into()], 3, true));
    assert!(
        !read(&table, range("k/", "k0", 3, Sort::Key)).2,
        "a limit that cuts nothing leaves nothing over"
    );
    let older =
        Range { max_create_revision: Some(Revision(2)), ..range("k/", "k0", 1, Sort::CreateDescending) };
    assert_eq!(
        read(&table, older),
        (vec!["k/c".into()], 3, true),
        "the count is of all, the limit of those left"
    );
    assert_eq!(read(&table, range("k/c", "", 0, Sort::Key)).0, ["k/c"]);
    assert_eq!(read(&table, range("k/c", "\0", 0, Sort::Key)).0, ["k/c", "l"]);
    assert_eq!(read(&table, range("\0", "\0", 0, Sort::Key)).1, 5);
    assert_eq!(read(&table, range("k/c", "k/c", 0, Sort::Key)), (vec![], 0, false));
    assert_eq!(read(&table, range("z", "a", 0, Sort::Key)), (vec![], 0, false), "backwards");
}

#[test]
fn a_request_is_found_in_every_state() {
    let mut table = with_sessions(2);
    let state = |table: &LockTable, session: u64| table.request_state(id(session), &lock("l"), &text("t"));
    assert_eq!(state(&table, 1), RequestState::Unknown);
    let token = hold(&mut table, 1, "l", text("t"));
    assert!(ask(&mut table, 2, "l", text("t")).is_ok());
    assert_eq!(state(&table, 1), RequestState::Holds { token });
    assert_eq!(state(&table, 2), RequestState::Waits { revision: Revision(2), ahead: 1 });
    release(&mut table, 1, "l", token);
    assert_eq!(state(&table, 1), RequestState::Ended(RequestEnd::Released));
    assert_eq!(state(&table, 2), RequestState::Holds { token: Revision(2) });
    assert_eq!(state(&table, 3), RequestState::Unknown);
    assert_eq!(table.request_state(id(1), &lock("l"), &sequence(0, 0)), RequestState::Stale);
}

#[test]
fn the_history_of_a_name_is_its_own_and_its_last() {
    let mut table = with_sessions(1);
    for (name, request) in [("a", "one"), ("a/b", "two"), ("a", "three")] {
        let token = hold(&mut table, 1, name, text(request));
        release(&mut table, 1, name, token);
    }
    let revisions =
        |last| table.history_of(&lock("a"), last).iter().map(|event| event.revision.0).collect::<Vec<_>>();
    assert_eq!(revisions(100), [1, 1, 2, 5, 5, 6]);
    assert_eq!(revisions(2), [5, 6]);
}

#[test]
fn keys_of_a_session_are_lock_keys_and_ordinary_ones() {
    let mut table = with_sessions(1);
    hold(&mut table, 1, "l", text("t"));
    assert!(run(&mut table, Command::Txn(txn(vec![put("note", Some(1))]))).is_ok());
    assert_eq!(table.keys_of_session(id(1)), [Bytes::from("l/1"), Bytes::from("note")]);
    assert_eq!(table.session(id(1)).map(|view| view.names), Some(vec![lock("l")]));
}

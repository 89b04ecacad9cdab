//! What watchers are given is compared with the log.

use bytes::Bytes;
use holdfast_locktable::{
    command::Command,
    event::{Change, Event},
    ids::{Revision, SessionId, Term},
    name::Name,
    outcome::{Applied, Outcome},
    table::{LockTable, Position},
};
use holdfast_node::endpoint::types::WatchEvent;
use holdfast_partitioner::GroupId;
use holdfast_sim::{
    check::{
        Findings,
        watch::{Changes, Watches},
    },
    truth::Step,
};

const HERE: GroupId = GroupId(1);

/// The log of a lock that was granted at the revisions 1 to `most`.
fn granted(most: u64) -> Changes {
    let (name, session) = (Name::lock("a").unwrap(), SessionId::new(1).unwrap());
    let events = (1..=most).map(|revision| {
        let (revision, token) = (Revision(revision), Revision(revision));
        Event { revision, at_ms: 0, change: Change::Grant { name: name.clone(), session, token } }
    });
    let applied = Applied {
        result: Ok(Outcome::Done),
        revision: Revision(most),
        events: events.collect(),
        facts: vec![],
    };
    let (command, table) = (Command::Compact { keep_from: Revision(1) }, LockTable::new(HERE));
    let mut changes = Changes::default();
    changes.take(&Step {
        now: 0,
        group: HERE,
        at: Position { index: 1, term: Term(1) },
        command: &command,
        applied: &applied,
        unchanged: None,
        table: &table,
    });
    changes
}

/// How much is wrong with a watch that was given these revisions, the last with this cursor.
fn wrong(given: &[u64], cursor: u64) -> usize {
    let (watches, findings) = (Watches::default(), Findings::default());
    let number = watches.begin(1);
    for revision in given {
        watches.given(
            number,
            &WatchEvent {
                group: HERE,
                revision: Revision(*revision),
                at_ms: 0,
                what: "granted".to_owned(),
                name: "a".to_owned(),
                session: SessionId::new(1),
                token: Revision(*revision),
                value: Bytes::new(),
                cursor: format!("1.{cursor}.1"),
            },
        );
    }
    granted(4).finish(1, &watches, &findings);
    findings.all().len()
}

#[test]
fn a_watch_may_begin_and_end_anywhere() {
    assert_eq!((wrong(&[], 1), wrong(&[2, 3], 3), wrong(&[1, 2, 3, 4], 4)), (0, 0, 0));
}

#[test]
fn a_change_that_is_left_out_given_twice_or_out_of_order_is_found() {
    assert_eq!((wrong(&[1, 3], 3), wrong(&[2, 2], 2), wrong(&[3, 2], 2), wrong(&[9], 9)), (1, 1, 1, 1));
}

#[test]
fn a_cursor_that_passes_what_was_not_given_is_found() {
    assert_eq!(wrong(&[1, 2], 4), 1);
}

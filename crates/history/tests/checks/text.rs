//! Histories as lines of JSON.

use holdfast_history::{End, SessionEnd, Wait, parse, to_line};

use crate::story::{MS, Story};

/// One event of each kind.
fn all() -> Story {
    Story::new()
        .open(0, 0x1f, 1_000)
        .keepalive(1, 2, 0x1f)
        .ask(3, 0x1f, 1, Wait::AtMost(MS))
        .answer(4, 0x1f, 1, End::Granted(5))
        .write(4, 5, 5, true)
        .queue(5, 6, Some(0x1f), &[2, 3])
        .lost(7, 0x1f, 5)
        .release(8, 0x1f, 5)
        .silent(9, 0x1f)
        .session_end(10, 0x1f, SessionEnd::Lost)
}

#[test]
fn what_is_written_is_read_again() {
    let story = all();
    let text: String = story.events.iter().map(|event| to_line(event).unwrap() + "\n").collect();
    assert_eq!(parse(&text).unwrap(), story.events);
}

#[test]
fn lines_are_as_the_documents_say() {
    let story = Story::new().ask(3, 0x1f, 1, Wait::Try).answer(4, 0x1f, 1, End::Granted(5));
    let lines: Vec<String> = story.events.iter().map(|event| to_line(event).unwrap()).collect();
    assert_eq!(
        lines,
        [
            r#"{"at":3000000,"what":"acquire_sent","call":1,"client":31,"session":"1f","lock":"a","wait":"try"}"#,
            r#"{"at":4000000,"what":"acquire_ended","call":1,"client":31,"session":"1f","lock":"a","end":{"granted":5}}"#,
        ]
    );
}

#[test]
fn lines_of_several_recorders_are_put_in_order() {
    let story = all();
    let text: String = story.events.iter().rev().map(|event| to_line(event).unwrap() + "\n\n").collect();
    assert_eq!(parse(&text).unwrap(), story.events);
}

#[test]
fn a_line_that_is_no_event_is_named() {
    let line = to_line(&all().events[0]).unwrap();
    let error = parse(&format!("{line}\n\n{{\"at\":1}}\n")).unwrap_err();
    assert_eq!(error.line, 3);
    assert!(error.to_string().starts_with("line 3 of the history cannot be read"), "{error}");
    assert!(parse("{\"at\":1,\"what\":\"session_silent\",\"session\":\"xyz\",\"last_sent\":1}").is_err());
}

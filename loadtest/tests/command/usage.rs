//! Wrong usage is 2, nobody there is 69, and both are said in words.

use std::net::TcpListener;

use crate::{loadtest, told};

#[track_caller]
fn refused(arguments: &[&str], words: &str) {
    let (code, out, err) = told(&loadtest().args(arguments).output().unwrap());
    assert_eq!(code, Some(2), "{arguments:?}: {err}");
    assert!(err.contains(words), "{words:?} in {err:?}");
    assert_eq!(out, "", "nothing but results on standard output");
}

#[test]
fn wrong_usage_is_told_with_code_2() {
    refused(&[], "Usage");
    refused(&["run"], "SCENARIO");
    refused(&["run", "everything"], "everything");
    refused(&["run", "spread", "--scenario", "hot"], "cannot be used with");
    refused(&["run", "spread", "--clients", "0"], "0");
    refused(&["run", "spread", "--seconds", "soon"], "a number of seconds");
    refused(&["run", "single", "--clients", "5"], "single has one client");
    refused(&["run", "spread", "--clients", "2", "--connections", "3"], "give fewer");
    refused(&["run", "spread", "--endpoints", "127.0.0.1:7611"], "http://HOST:PORT");
    refused(&["run", "hot", "--target", "redis", "--endpoints", "http://127.0.0.1:1"], "redis://HOST:PORT");
    refused(&["sessions", "--count", "0"], "0");
    refused(
        &["bench", "--peers", "/nowhere", "--holdfast", "/nowhere/holdfast"],
        "/nowhere/holdfast cannot be run",
    );
}

/// Nothing would be measured, and a run of nothing looks like one that went well.
#[test]
fn a_measurement_of_nothing_is_wrong_usage() {
    for verb in [["run", "spread"].as_slice(), &["sessions"], &["bench"]] {
        for nothing in ["0", "0.0"] {
            refused(&[verb, &["--seconds", nothing]].concat(), "more than 0 seconds");
        }
    }
    for (verb, options) in [
        (["run", "spread"].as_slice(), ["--clients", "--connections", "--ttl"].as_slice()),
        (&["sessions"], &["--count", "--ttl", "--processes", "--connections"]),
        (&["silence"], &["--count", "--live", "--ttl", "--processes", "--connections"]),
        (&["cost"], &["--threads", "--clients", "--cycles"]),
        (&["bench"], &["--rounds"]),
        (&["growth"], &["--clients", "--groups"]),
    ] {
        for option in options {
            refused(&[verb, &[*option, "0"]].concat(), "0 is not in 1..");
        }
    }
    refused(&["growth", "--minutes", "0"], "more than 0 minutes");
    refused(&["growth", "--minutes", "5"], "5 stretches of time cannot be judged");
    for nothing in ["etdc", ""] {
        refused(&["bench", "--only", nothing], "no service or scenario has this in its name");
    }
}

#[test]
fn a_silent_endpoint_is_told_with_code_69() {
    // Nobody listens on a port that was given out and closed again.
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    for (verb, target, scheme) in [
        ("run", "holdfast", "http"),
        ("run", "etcd", "http"),
        ("run", "redis", "redis"),
        ("sessions", "", "http"),
    ] {
        let endpoint = format!("{scheme}://127.0.0.1:{port}");
        let mut command = loadtest();
        command.arg(verb).args(["--endpoints", &endpoint]);
        if verb == "run" {
            command.args(["single", "--target", target]);
        }
        let (code, _, err) = told(&command.output().unwrap());
        assert_eq!(code, Some(69), "{target}: {err}");
        assert!(err.contains(&format!("{endpoint} does not answer")), "{err}");
    }
}

#[test]
fn judging_finds_nothing_wrong_with_a_played_run() {
    let output =
        loadtest().args(["cost", "--cycles", "50", "--clients", "10", "-o", "json"]).output().unwrap();
    let (code, out, err) = told(&output);
    assert_eq!(code, Some(0), "{err}");
    let cost: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(cost["events"], 2 * 10 * 50 * 3);
}

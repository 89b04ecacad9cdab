//! A process that is killed in the middle of its writes: whatever it was told to be on disk is there afterwards.

use std::{
    collections::BTreeMap,
    io::{BufRead, BufReader, Write},
    process::{Command, Stdio},
};

use holdfast_node::raft::types::Vote;
use openraft::storage::{RaftLogReader, RaftLogStorage};

use super::support::{append_start, entries, form, open, options, read, vote};

const FOLDER_VARIABLE: &str = "HOLDFAST_TEST_CRASH_FOLDER";
const GROUPS: u32 = 4;
const CONFIRMED_BEFORE_THE_KILL: usize = 2_000;

/// The child: appends to four groups for ever and says what is confirmed, one line each.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn crash_child() {
    let Ok(folder) = std::env::var(FOLDER_VARIABLE) else { return };
    let log = open(options(folder.as_ref())).unwrap();
    let mut writers = Vec::new();
    for number in 0..GROUPS {
        let mut group = log.group(number).await;
        writers.push(tokio::spawn(async move {
            group.save_vote(&vote(u64::from(number) + 10)).await.unwrap();
            for index in 0.. {
                let flushed = append_start(&mut group, entries(1, index..index + 1)).await;
                flushed.await.unwrap().unwrap();
                writeln!(std::io::stdout(), "confirmed {number} {index}").unwrap();
            }
        }));
    }
    for writer in writers {
        writer.await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_confirmed_survives_a_kill() {
    let folder = tempfile::tempdir().unwrap();
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "crash::crash_child", "--nocapture", "--test-threads=1"])
        .env(FOLDER_VARIABLE, folder.path())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut confirmed: BTreeMap<u32, u64> = BTreeMap::new();
    let mut lines = 0;
    for line in BufReader::new(child.stdout.take().unwrap()).lines() {
        let line = line.unwrap();
        let mut words = line.split(' ');
        // The harness prints lines of its own, and the last line may be cut.
        if let (Some("confirmed"), Some(Ok(number)), Some(Ok(index)), None) =
            (words.next(), words.next().map(str::parse), words.next().map(str::parse), words.next())
        {
            confirmed.insert(number, index);
            lines += 1;
        }
        if lines == CONFIRMED_BEFORE_THE_KILL {
            child.kill().unwrap();
        }
    }
    child.wait().unwrap();
    assert!(lines >= CONFIRMED_BEFORE_THE_KILL, "the child ended early, after {lines} lines");

    let log = open(options(folder.path())).unwrap();
    for number in 0..GROUPS {
        let mut group = log.group(number).await;
        let last = group.get_log_state().await.unwrap().last_log_id.unwrap().index;
        assert!(last >= confirmed[&number], "group {number} ends at {last}, confirmed {confirmed:?}");
        assert_eq!(read(&mut group, 0..last + 1).await, entries(1, 0..last + 1));
        assert_eq!(group.read_vote().await.unwrap(), Some(vote(u64::from(number) + 10)));
    }
}

const VOTER_VARIABLE: &str = "HOLDFAST_TEST_VOTER_FOLDER";
const CANDIDATE_VARIABLE: &str = "HOLDFAST_TEST_CANDIDATE";

/// The child: votes for one candidate in term after term, and says each vote once it may be sent.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn voting_child() {
    let Ok(folder) = std::env::var(VOTER_VARIABLE) else { return };
    let candidate: u64 = std::env::var(CANDIDATE_VARIABLE).unwrap().parse().unwrap();
    let log = open(options(folder.as_ref())).unwrap();
    let mut group = log.group(1).await;
    let found = group.read_vote().await.unwrap().map_or(0, |vote| vote.leader_id.term);
    for term in found + 1.. {
        group.save_vote(&Vote::new(term, candidate)).await.unwrap();
        writeln!(std::io::stdout(), "voted {term}").unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_vote_is_never_forgotten_by_a_kill() {
    let folder = tempfile::tempdir().unwrap();
    let mut last_term = 0;
    for candidate in 1..=form(3, 50) {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "crash::voting_child", "--nocapture", "--test-threads=1"])
            .env(VOTER_VARIABLE, folder.path())
            .env(CANDIDATE_VARIABLE, candidate.to_string())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut votes = 0;
        for line in BufReader::new(child.stdout.take().unwrap()).lines() {
            let line = line.unwrap();
            let Some(term) = line.strip_prefix("voted ").and_then(|term| term.parse::<u64>().ok()) else {
                continue;
            };
            assert!(term > last_term, "term {term} was voted in twice, {last_term} was the last");
            last_term = term;
            votes += 1;
            // Right after the vote was given.
            if votes == candidate % 5 + 1 {
                child.kill().unwrap();
            }
        }
        child.wait().unwrap();
        let log = open(options(folder.path())).unwrap();
        let vote = log.group(1).await.read_vote().await.unwrap().unwrap();
        log.close().await;
        let told = (last_term, candidate);
        assert!((vote.leader_id.term, vote.leader_id.node_id) >= told, "{vote:?} on disk, {told:?} was told");
        assert_eq!(vote.leader_id.node_id, candidate);
        last_term = vote.leader_id.term;
    }
}

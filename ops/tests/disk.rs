//! A member's folder after kills and damage, on real processes: it starts with everything that it ever acknowledged, or
//! it refuses, names the file, and says what to do.
//!
//! `node/tests/log_store` does the same to the log alone, byte by byte. `HOLDFAST_SOAK=1` runs the long forms.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on fails")]

mod harness;

use std::{
    fs,
    os::unix::process::CommandExt as _,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::{
        Mutex,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

use harness::{HOLDFAST, encoded, eventually, get, post};
use holdfast_faults::{Cluster, Plan};
use serde_json::json;

const SOON: Duration = Duration::from_secs(30);
const LOG: &str = "raft-log.sqlite";
const WAL: &str = "raft-log.sqlite-wal";
const WITNESS: &str = "raft-log.witness";
/// Grants of the member whose folder is damaged.
const GRANTS: usize = 20;
/// A user that owns nothing.
const NOBODY: u32 = 65_534;

type Grant = (String, String, u64);

fn form<T>(short: T, long: T) -> T {
    if std::env::var_os("HOLDFAST_SOAK").is_some_and(|value| value == "1") { long } else { short }
}

fn open_session(base: &str) -> String {
    eventually("a session is opened", SOON, || {
        let answer = post(&format!("{base}/v1/sessions"), &json!({"ttl_ms": 3_600_000}));
        answer.body["session"].as_str().map(str::to_owned)
    })
}

/// Tries one lock at one member; the token of an acknowledged grant.
fn try_lock(base: &str, session: &str, name: &str) -> Option<u64> {
    let body = json!({"name": name, "session": session, "wait_ms": 0, "request_id": name});
    let answer = post(&format!("{base}/v1/locks/acquire"), &body);
    (answer.status == 200).then(|| answer.body["token"].as_u64().unwrap())
}

#[track_caller]
fn expect_holder(cluster: &Cluster, (name, session, token): &Grant) {
    let shown = eventually(&format!("a member shows {name}"), SOON, || {
        cluster.numbers().find_map(|member| {
            let answer = get(&format!("{}/v1/locks?name={}", cluster.http(member), encoded(name)));
            (answer.status == 200).then_some(answer.body)
        })
    });
    let holder = (shown["holder"]["session"].as_str(), shown["holder"]["token"].as_u64());
    assert_eq!(holder, (Some(session.as_str()), Some(*token)), "the grant of {name} was lost: {shown}");
}

/// As if the power of all went off at once: no member has anything that is not in its files.
#[test]
fn killing_all_members_in_the_middle_of_writes_loses_no_acknowledged_grant() {
    let cluster = Plan::new(HOLDFAST).start().unwrap();
    let granted = Mutex::new(Vec::<Grant>::new());
    let kills = form(3, 50);
    for kill in 0..kills {
        let stop = AtomicBool::new(false);
        let before = granted.lock().unwrap().len();
        thread::scope(|scope| {
            for writer in 0..4u16 {
                let (cluster, granted, stop) = (&cluster, &granted, &stop);
                scope.spawn(move || {
                    let base = cluster.http(writer % 3 + 1);
                    let session = open_session(&base);
                    for n in 0.. {
                        // Names of many first segments: all groups write.
                        let name = format!("k{kill}w{writer}n{n}/kept");
                        match try_lock(&base, &session, &name) {
                            Some(token) => granted.lock().unwrap().push((name, session.clone(), token)),
                            None if stop.load(Ordering::Relaxed) => return,
                            None => {}
                        }
                    }
                });
            }
            eventually("grants are acknowledged", SOON, || {
                (granted.lock().unwrap().len() >= before + 40 + kill * 7 % 23).then_some(())
            });
            stop.store(true, Ordering::Relaxed);
            thread::scope(|killers| {
                for member in cluster.numbers() {
                    let cluster = &cluster;
                    killers.spawn(move || cluster.kill(member).unwrap());
                }
            });
        });
        cluster.numbers().for_each(|member| cluster.start_member(member).unwrap());
        cluster.wait_ready().unwrap();
        granted.lock().unwrap()[before..].iter().for_each(|grant| expect_holder(&cluster, grant));
    }
    let granted = granted.into_inner().unwrap();
    granted.iter().for_each(|grant| expect_holder(&cluster, grant));
    println!("disk: {kills} kills of all members, {} acknowledged grants, none lost", granted.len());
}

/// A cluster of one member, killed, and what it had acknowledged.
struct Victim {
    cluster: Cluster,
    data: PathBuf,
    pristine: PathBuf,
    granted: Vec<Grant>,
}

/// What a member does with its folder.
#[derive(Debug, PartialEq, Eq)]
enum Start {
    /// It starts, and has everything.
    Whole,
    /// It refuses with this.
    Refused(String),
}

impl Victim {
    /// `stop` is how it ends: killed, its last writes are in the write-ahead log; stopped, all is in the database file.
    fn new(plan: Plan, stop: impl FnOnce(&Cluster)) -> Self {
        let cluster = plan.members(1).groups(1).start().unwrap();
        let session = open_session(&cluster.http(1));
        let granted = (0..GRANTS)
            .map(|i| {
                let name = format!("kept{i}");
                let token = eventually("a grant", SOON, || try_lock(&cluster.http(1), &session, &name));
                (name, session.clone(), token)
            })
            .collect();
        stop(&cluster);
        let data = cluster.scratch().join("member-1/data");
        let pristine = cluster.scratch().join("pristine");
        let victim = Self { cluster, data, pristine, granted };
        copy(&victim.data, &victim.pristine);
        victim
    }

    fn killed() -> Self {
        Self::new(Plan::new(HOLDFAST), |cluster| cluster.kill(1).unwrap())
    }

    fn stopped() -> Self {
        Self::new(Plan::new(HOLDFAST), |cluster| cluster.stop(1).unwrap())
    }

    fn bytes(&self, file: &str) -> Vec<u8> {
        fs::read(self.pristine.join(file)).unwrap()
    }

    /// Starts the member on what is in its folder now.
    #[track_caller]
    fn start(&self) -> Start {
        let said_before = self.cluster.said(1).len();
        self.cluster.start_member(1).unwrap();
        let served = eventually("the member serves or ends", SOON, || {
            if self.cluster.is_running(1) { self.cluster.is_ready(1).then_some(true) } else { Some(false) }
        });
        let said = self.cluster.said(1)[said_before..].to_owned();
        assert!(!said.contains("panicked"), "{said}");
        if served {
            self.granted.iter().for_each(|grant| expect_holder(&self.cluster, grant));
            self.cluster.kill(1).unwrap();
            return Start::Whole;
        }
        Start::Refused(
            said.lines().rev().find(|line| line.starts_with("holdfast")).unwrap_or(&said).to_owned(),
        )
    }

    /// Damages a fresh copy of the folder and starts the member on it.
    #[track_caller]
    fn damaged(&self, damage: impl FnOnce(&Path)) -> Start {
        fs::remove_dir_all(&self.data).unwrap();
        copy(&self.pristine, &self.data);
        damage(&self.data);
        self.start()
    }

    #[track_caller]
    fn expect_refusal(&self, what: &str, words: &[&str], damage: impl FnOnce(&Path)) {
        let Start::Refused(said) = self.damaged(damage) else { panic!("{what}: it starts") };
        println!("disk: {what}: {said}");
        let folder = self.data.display().to_string();
        assert!(said.contains(&folder), "{what}: the file is not named: {said}");
        words.iter().for_each(|word| assert!(said.contains(word), "{what}: no {word:?} in: {said}"));
    }
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let target = to.join(path.file_name().unwrap());
        if path.is_dir() {
            copy(&path, &target);
        } else {
            fs::copy(&path, &target).unwrap();
        }
    }
}

#[test]
fn a_lost_or_cut_end_of_the_log_is_refused() {
    let victim = Victim::killed();
    assert_eq!(victim.damaged(|_| {}), Start::Whole);
    let wal = victim.bytes(WAL);
    assert!(!wal.is_empty(), "the last writes are in the write-ahead log");
    let lost = ["has lost what it had confirmed", "empty folder"];
    for cut in [1, 4_120, 20_000.min(wal.len() / 2)] {
        let rest = &wal[..wal.len() - cut];
        let what = format!("write-ahead log cut by {cut} bytes");
        victim.expect_refusal(&what, &lost, |data| fs::write(data.join(WAL), rest).unwrap());
    }
    let mut flipped = wal.clone();
    flipped[wal.len() / 2] ^= 1;
    victim.expect_refusal("flipped byte in the write-ahead log", &lost, |data| {
        fs::write(data.join(WAL), &flipped).unwrap();
    });
    victim.expect_refusal("no write-ahead log", &["raft-log", "empty folder"], |data| {
        fs::remove_file(data.join(WAL)).unwrap();
    });
    let unfinished = [wal.as_slice(), &[7; 3_000]].concat();
    assert_eq!(victim.damaged(|data| fs::write(data.join(WAL), &unfinished).unwrap()), Start::Whole);
}

#[test]
fn a_missing_or_foreign_log_is_refused() {
    let victim = Victim::stopped();
    let gone = ["is missing or empty", "put the file back"];
    victim.expect_refusal("no log", &gone, |data| fs::remove_file(data.join(LOG)).unwrap());
    victim.expect_refusal("an empty log", &gone, |data| fs::write(data.join(LOG), b"").unwrap());
    victim.expect_refusal("no witness", &["raft-log.witness", "put it back"], |data| {
        fs::remove_file(data.join(WITNESS)).unwrap();
    });
    let text = |data: &Path| fs::write(data.join(LOG), b"only a text, however long it may be").unwrap();
    victim.expect_refusal("a text", &["file is not a database", "empty folder"], text);
    let log = victim.bytes(LOG);
    // The version of the tables, big-endian, in a file that was never raised to it.
    let mut newer = log.clone();
    newer[60..64].copy_from_slice(&99u32.to_be_bytes());
    victim.expect_refusal(
        "a damaged version",
        &["is damaged", "schema version 99", "empty folder"],
        |data| {
            fs::write(data.join(LOG), &newer).unwrap();
        },
    );
    let mut foreign = log.clone();
    let cluster = log.windows(13).rposition(|bytes| bytes == b"clusterfaults").expect("its cluster's name");
    foreign[cluster + 7] = b'v';
    victim.expect_refusal("a log of another cluster", &["belongs to cluster \"vaults\""], |data| {
        fs::write(data.join(LOG), &foreign).unwrap();
    });
    assert_eq!(victim.damaged(|_| {}), Start::Whole);
}

#[test]
fn flipped_bytes_in_the_log_or_a_snapshot_are_refused_or_do_not_matter() {
    let victim = Victim::stopped();
    let log = victim.bytes(LOG);
    let (mut refused, count) = (0, form(6, 200));
    for i in 0..count {
        let position = (i * 7_919 + 4_000) % log.len();
        let mut bad = log.clone();
        bad[position] ^= 1 << (i % 8);
        match victim.damaged(|data| fs::write(data.join(LOG), &bad).unwrap()) {
            Start::Whole => {}
            Start::Refused(said) => {
                assert!(said.contains(LOG) && said.contains("folder"), "byte {position}: {said}");
                refused += 1;
            }
        }
    }
    println!("disk: {refused} of {count} flipped bytes were refused, the others did not matter");
    let words = [".snapshot cannot be used", "empty folder"];
    victim.expect_refusal("a damaged snapshot", &words, |data| {
        let folder = data.join("raft-snapshots/1");
        fs::create_dir_all(&folder).unwrap();
        let name = format!("{:020}-{:020}.snapshot", 9, 1);
        fs::write(folder.join(name), b"HFSNAP\0\n and nothing of the rest").unwrap();
    });
}

#[test]
fn a_full_disk_is_refused_or_served_and_loses_nothing() {
    let plan = Plan::new(HOLDFAST).members(1).groups(1).small_disks(32);
    let cluster = match plan.start() {
        Ok(cluster) => cluster,
        Err(error) if error.is_impossible() => {
            eprintln!("SKIPPED, nothing was tested: {error}");
            return;
        }
        Err(error) => panic!("{error}"),
    };
    let session = open_session(&cluster.http(1));
    let grant = |i: usize| {
        let name = format!("kept{i}");
        try_lock(&cluster.http(1), &session, &name).map(|token| (name, session.clone(), token))
    };
    let mut granted: Vec<Grant> = (0..GRANTS).map(|i| eventually("a grant", SOON, || grant(i))).collect();
    let disk = cluster.small_disk(1).unwrap();
    disk.fill().unwrap();
    // What is acknowledged although the disk is full is there all the same.
    for i in GRANTS.. {
        match grant(i) {
            Some(grant) => granted.push(grant),
            None => break,
        }
    }
    cluster.kill(1).unwrap();
    let said_before = cluster.said(1).len();
    cluster.start_member(1).unwrap();
    let serves = eventually("the member serves or ends", SOON, || {
        if cluster.is_running(1) { cluster.is_ready(1).then_some(true) } else { Some(false) }
    });
    let said = cluster.said(1)[said_before..].to_owned();
    assert!(!said.contains("panicked"), "{said}");
    let last = said.lines().next_back().unwrap_or_default();
    println!("disk: on a full disk the member {}: {last}", if serves { "serves" } else { "refuses" });
    assert!(serves || said.contains("disk"), "{said}");
    disk.free().unwrap();
    cluster.kill(1).unwrap();
    cluster.start_member(1).unwrap();
    cluster.wait_ready().unwrap();
    println!("disk: {} grants acknowledged around a full disk, none lost", granted.len());
    granted.iter().for_each(|grant| expect_holder(&cluster, grant));
}

#[test]
fn a_folder_that_may_not_be_written_is_refused() {
    if !nix::unistd::geteuid().is_root() {
        eprintln!("SKIPPED, nothing was tested: only root can start a member as a user that owns nothing");
        return;
    }
    // A copy of the command and its files where that user can read them.
    let folder = tempfile::TempDir::with_prefix("holdfast-disk-").unwrap();
    let readable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(folder.path(), readable).unwrap();
    let binary = folder.path().join("holdfast");
    fs::copy(HOLDFAST, &binary).unwrap();
    let data = folder.path().join("data");
    fs::create_dir(&data).unwrap();
    let config = folder.path().join("config.toml");
    let text = format!(
        "cluster = \"faults\"\nmember = 1\ndata_dir = {data:?}\n\
         listen = {{ http = \"127.0.0.1:0\", grpc = \"127.0.0.1:0\", peer = \"127.0.0.1:0\" }}\n\
         [[members]]\nid = 1\nhttp = \"http://127.0.0.1:1\"\ngrpc = \"http://127.0.0.1:2\"\npeer = \"127.0.0.1:3\"\n"
    );
    fs::write(&config, text).unwrap();
    let mut command = Command::new(&binary);
    command.arg("node").arg("--config").arg(&config).uid(NOBODY).gid(NOBODY).stdin(Stdio::null());
    command.env_remove("HOLDFAST_CONFIG").env_remove("HOLDFAST_ENDPOINTS").current_dir(folder.path());
    let (code, _, said) = harness::parts(&command.output().unwrap());
    println!("disk: no permission: {said}");
    assert_ne!(code, 0);
    let folder = data.display().to_string();
    for word in [folder.as_str(), "ermission denied", "this user may write to it"] {
        assert!(said.contains(word), "no {word:?} in: {said}");
    }
    assert!(!said.contains("panicked"), "{said}");
}

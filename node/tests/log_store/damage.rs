//! Damage of every kind, byte by byte: a log opens with all that was confirmed, or it is refused and names the file.

use std::{
    fs,
    path::{Path, PathBuf},
};

use holdfast_node::{
    log::actor::{Checkpoint, LogActor},
    raft::types::{Entry, LogId, Vote},
};
use openraft::storage::{RaftLogReader, RaftLogStorage};

use super::support::{append, entries, form, group, id, open, options, read, vote};

const GROUPS: [u32; 3] = [0, 1, 7];
const LOG: &str = "raft-log.sqlite";
const WAL: &str = "raft-log.sqlite-wal";
const WITNESS: &str = "raft-log.witness";

/// What one group was told to be on disk.
type Confirmed = (Option<Vote>, Option<LogId>, Vec<Entry>);

/// A folder as a killed process leaves it, and what it had confirmed.
struct Victim {
    folder: tempfile::TempDir,
    pristine: PathBuf,
    confirmed: Vec<Confirmed>,
}

impl Victim {
    async fn new() -> Victim {
        let folder = tempfile::tempdir().unwrap();
        let (live, pristine) = (folder.path().join("live"), folder.path().join("pristine"));
        let log = open(options(&live)).unwrap();
        for number in GROUPS {
            let mut group = log.group(number).await;
            group.save_vote(&vote(3)).await.unwrap();
            for index in 0..40 {
                append(&mut group, entries(3, index..index + 1)).await;
            }
            group.purge(id(3, 9)).await.unwrap();
            group.save_committed(Some(id(3, 30))).await.unwrap();
        }
        log.addr.send(Checkpoint).await.unwrap().unwrap();
        // From here on in the write-ahead log: entries, and as the last thing of all a vote.
        for number in GROUPS {
            let mut group = log.group(number).await;
            for index in 40..50 {
                append(&mut group, entries(3, index..index + 1)).await;
            }
            group.save_vote(&vote(u64::from(number) + 9)).await.unwrap();
        }
        let mut confirmed = Vec::new();
        for number in GROUPS {
            confirmed.push(state(&log.opener, number).await.unwrap());
        }
        // Nothing is written any more: this is what a kill leaves behind.
        copy(&live, &pristine);
        log.close().await;
        Victim { folder, pristine, confirmed }
    }

    fn bytes(&self, file: &str) -> Vec<u8> {
        fs::read(self.pristine.join(file)).unwrap()
    }

    /// Opens a copy that was damaged: true when it was refused. Panics where it opens with anything else than all.
    async fn is_refused(&self, what: &str, damage: impl FnOnce(&Path)) -> bool {
        // A folder of its own each time: what opened the one before closes its files a little later.
        let scratch = tempfile::tempdir_in(self.folder.path()).unwrap();
        copy(&self.pristine, scratch.path());
        damage(scratch.path());
        let refusal = match reopen(scratch.path()).await {
            Ok(found) => {
                assert_eq!(found, self.confirmed, "{what}: it opens with something else");
                return false;
            }
            Err(refusal) => refusal,
        };
        let names = refusal.contains(&scratch.path().display().to_string()) && refusal.contains("raft-log.");
        let helps =
            ["empty folder", "newer version", "another folder"].iter().any(|help| refusal.contains(help));
        assert!(names && helps, "{what}: {refusal}");
        true
    }

    async fn flip(&self, file: &str, positions: impl Iterator<Item = usize>) -> (usize, usize) {
        let good = self.bytes(file);
        let (mut refused, mut whole) = (0, 0);
        for position in positions.take_while(|position| *position < good.len()) {
            let mut bad = good.clone();
            bad[position] ^= 1 << (position % 8);
            let what = format!("{file}, byte {position} of {}", good.len());
            let is_refused =
                self.is_refused(&what, |folder| fs::write(folder.join(file), &bad).unwrap()).await;
            *(if is_refused { &mut refused } else { &mut whole }) += 1;
        }
        println!("{file}: {refused} flipped bytes were refused, {whole} did not matter");
        (refused, whole)
    }
}

async fn reopen(folder: &Path) -> Result<Vec<Confirmed>, String> {
    let actor = LogActor::open(options(folder)).map_err(|err| err.to_string())?;
    let opener = actor.opener();
    let mut found = Vec::new();
    for number in GROUPS {
        found.push(state(&opener, number).await?);
    }
    Ok(found)
}

async fn state(opener: &holdfast_node::log::opener::LogOpener, number: u32) -> Result<Confirmed, String> {
    let mut log = opener.open_group(group(number)).await.map_err(|err| err.to_string())?;
    let entries = log.try_get_log_entries(0..1_000).await.map_err(|err| err.to_string())?;
    let purged = log.get_log_state().await.map_err(|err| err.to_string())?.last_purged_log_id;
    Ok((log.read_vote().await.map_err(|err| err.to_string())?, purged, entries))
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for file in [LOG, WAL, WITNESS, "lock"] {
        fs::copy(from.join(file), to.join(file)).unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn flipped_bytes_are_refused_or_do_not_matter() {
    let victim = Victim::new().await;
    assert!(!victim.is_refused("nothing", |_| {}).await);
    let step = form(2_011, 7);
    // All of the headers, where every byte has a meaning of its own; the rest in steps.
    let (refused, _) =
        victim.flip(LOG, (0..100).step_by(form(3, 1)).chain((100..).step_by(step / 10 + 1))).await;
    assert!(refused > 0);
    let (refused, _) = victim.flip(WAL, (0..56).step_by(form(3, 1)).chain((56..).step_by(step))).await;
    assert!(refused > 0);
    let (refused, _) = victim.flip(WITNESS, (0..20).chain(512..532).step_by(form(3, 1))).await;
    assert_eq!(refused, 0, "one slot is always whole");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cut_end_is_refused() {
    let victim = Victim::new().await;
    let wal = victim.bytes(WAL);
    // What stands behind the last frame in use is of no meaning, so a cut there does no harm.
    let mut harmful = 0;
    for length in (0..wal.len()).rev().step_by(form(9_973, 101)) {
        let what = format!("the write-ahead log cut to {length} of {} bytes", wal.len());
        let refused =
            victim.is_refused(&what, |folder| fs::write(folder.join(WAL), &wal[..length]).unwrap()).await;
        assert!(refused || harmful == 0, "{what}: a longer one was refused");
        harmful += usize::from(refused);
    }
    assert!(harmful > 0);
    assert!(
        victim.is_refused("no write-ahead log", |folder| fs::remove_file(folder.join(WAL)).unwrap()).await
    );
    let log = victim.bytes(LOG);
    for length in (1..log.len()).step_by(form(4_097, 511)) {
        let what = format!("the log cut to {length} of {} bytes", log.len());
        victim.is_refused(&what, |folder| fs::write(folder.join(LOG), &log[..length]).unwrap()).await;
    }
}

/// A process that is killed in the middle of a write leaves the beginning of a transaction that nobody was told of.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unfinished_write_is_no_damage() {
    let victim = Victim::new().await;
    for garbage in [1, 24, 4_120, 10_000] {
        let mut wal = victim.bytes(WAL);
        wal.extend((0..garbage).map(|i| u8::try_from(i % 251).unwrap()));
        let write = |folder: &Path| fs::write(folder.join(WAL), &wal).unwrap();
        assert!(!victim.is_refused("an unfinished write", write).await, "{garbage} bytes");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_folder_that_lost_a_file_is_refused() {
    let victim = Victim::new().await;
    for file in [LOG, WITNESS] {
        let what = format!("{file} is missing");
        assert!(victim.is_refused(&what, |folder| fs::remove_file(folder.join(file)).unwrap()).await);
        let what = format!("{file} is empty");
        assert!(victim.is_refused(&what, |folder| fs::write(folder.join(file), b"").unwrap()).await);
    }
    let both = |folder: &Path| {
        fs::remove_file(folder.join(LOG)).unwrap();
        fs::remove_file(folder.join(WITNESS)).unwrap();
    };
    assert!(victim.is_refused("only the write-ahead log is left", both).await);
    let snapshots = |folder: &Path| {
        both(folder);
        fs::remove_file(folder.join(WAL)).unwrap();
        fs::create_dir(folder.join("raft-snapshots")).unwrap();
    };
    assert!(victim.is_refused("only snapshots are left", snapshots).await);
}

/// Logs of versions that did not count commits go on, and are counted from then on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_log_that_was_never_counted_is_counted_from_now_on() {
    let victim = Victim::new().await;
    let scratch = victim.folder.path().join("scratch");
    copy(&victim.pristine, &scratch);
    let conn = tokio_rusqlite::rusqlite::Connection::open(scratch.join(LOG)).unwrap();
    conn.execute_batch("DELETE FROM meta WHERE k = 'commits'").unwrap();
    drop(conn);
    fs::remove_file(scratch.join(WITNESS)).unwrap();
    let log = open(options(&scratch)).unwrap();
    let mut group = log.group(1).await;
    append(&mut group, entries(3, 50..51)).await;
    assert_eq!(read(&mut group, 50..51).await, entries(3, 50..51));
    log.close().await;
    fs::remove_file(scratch.join(WITNESS)).unwrap();
    assert!(reopen(&scratch).await.unwrap_err().contains("raft-log.witness"));
}

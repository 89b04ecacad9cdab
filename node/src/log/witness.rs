//! How much of the log was confirmed, kept beside it.
//!
//! SQLite takes a damaged or cut end of its write-ahead log for an unfinished write and drops it without a word. So
//! every transaction is numbered, and the number of the last one is noted here after its fsync and before anybody is
//! told. A log that knows of fewer transactions than this file has lost what was acknowledged: entries, or a vote.
//!
//! Two slots are written in turn, so that a torn write leaves the one before. The file is not fsynced with every commit:
//! it survives a kill of the process always, and a power cut as far as the system had written it. It never runs ahead of
//! the log, so an alarm is never false. This module knows nothing of what is in a transaction.

use std::{
    fs::File,
    io,
    os::unix::fs::FileExt as _,
    path::{Path, PathBuf},
};

use super::{durable_folder::sync_folder, error::OpenLogError};

/// Name of the file within the member's folder.
const WITNESS_FILE: &str = "raft-log.witness";
/// What each slot begins with.
const MAGIC: [u8; 7] = *b"HFWITN\0";
/// Version of the slots, behind the magic.
const FORMAT: u8 = 1;
/// Magic, version, number of the commit, checksum. Later versions keep all but what the eight bytes of the number mean.
const SLOT_LEN: usize = 8 + 8 + 4;
/// Distance of the slots: a sector each.
const SLOT_STEP: u64 = 512;
/// Length of the file.
const FILE_LEN: usize = 1024;

/// The open file.
#[derive(Debug)]
pub(crate) struct Witness {
    path: PathBuf,
    file: File,
    confirmed: u64,
}

impl Witness {
    /// Opens the file, or makes it where there is none. `found`: commits in the log.
    pub(crate) fn open(folder: &Path, log: &Path, found: u64) -> Result<Witness, OpenLogError> {
        let path = folder.join(WITNESS_FILE);
        let failed = |source| OpenLogError::Folder { path: path.clone(), source };
        let witness = |fault: &str| OpenLogError::Witness { path: path.clone(), fault: fault.to_owned() };
        match read(&path).map_err(failed)? {
            Noted::Nothing if found > 0 => Err(witness("is missing or empty")),
            Noted::Nothing => Self::create(folder, &path).map_err(failed),
            Noted::Damaged => Err(witness("is damaged")),
            Noted::Newer(found) => {
                Err(OpenLogError::NewerFormat { path: path.clone(), what: "what it notes".to_owned(), found })
            }
            Noted::Commits(confirmed) if found < confirmed => {
                Err(OpenLogError::LostCommits { path: log.to_owned(), found, confirmed })
            }
            // The process may have ended between the commit and its note, and a power cut may have undone notes.
            Noted::Commits(_) => {
                let file = File::options().read(true).write(true).open(&path).map_err(failed)?;
                let mut witness = Witness { path: path.clone(), file, confirmed: found };
                witness.confirm(found).map_err(failed)?;
                Ok(witness)
            }
        }
    }

    fn create(folder: &Path, path: &Path) -> io::Result<Witness> {
        let file = File::options().read(true).write(true).create(true).truncate(false).open(path)?;
        // All of it, so that no later note needs space.
        let mut content = [0; FILE_LEN];
        content[..SLOT_LEN].copy_from_slice(&slot(0));
        file.write_all_at(&content, 0)?;
        file.sync_all()?;
        sync_folder(folder)?;
        Ok(Witness { path: path.to_owned(), file, confirmed: 0 })
    }

    /// The file.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Number of the last confirmed commit.
    pub(crate) fn confirmed(&self) -> u64 {
        self.confirmed
    }

    /// Notes that commit `number` is on disk.
    pub(crate) fn confirm(&mut self, number: u64) -> io::Result<()> {
        self.file.write_all_at(&slot(number), number % 2 * SLOT_STEP)?;
        self.confirmed = number;
        Ok(())
    }

    /// Makes the notes durable.
    pub(crate) fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }
}

/// What the file says.
#[derive(Debug, PartialEq, Eq)]
enum Noted {
    /// There is none, or its creation was cut short.
    Nothing,
    /// Neither slot can be read.
    Damaged,
    Commits(u64),
    /// A slot is whole and of a newer version.
    Newer(u8),
}

fn read(path: &Path) -> io::Result<Noted> {
    let bytes = match std::fs::read(path) {
        Ok(bytes) => bytes,
        Err(err) if err.kind() == io::ErrorKind::NotFound => return Ok(Noted::Nothing),
        Err(err) => return Err(err),
    };
    if bytes.is_empty() {
        return Ok(Noted::Nothing);
    }
    let slots = [0, SLOT_STEP].into_iter().filter_map(|start| {
        let start = usize::try_from(start).ok()?;
        parse(bytes.get(start..start + SLOT_LEN)?)
    });
    Ok(match slots.max() {
        None => Noted::Damaged,
        Some((FORMAT, number)) => Noted::Commits(number),
        Some((newer, _unknown)) => Noted::Newer(newer),
    })
}

fn slot(number: u64) -> [u8; SLOT_LEN] {
    slot_of(FORMAT, number)
}

fn slot_of(format: u8, number: u64) -> [u8; SLOT_LEN] {
    let mut slot = [0; SLOT_LEN];
    slot[..7].copy_from_slice(&MAGIC);
    slot[7] = format;
    slot[8..16].copy_from_slice(&number.to_le_bytes());
    let sum = crc32fast::hash(&slot[..16]);
    slot[16..].copy_from_slice(&sum.to_le_bytes());
    slot
}

/// Version and number of a slot whose checksum is right, so that a damaged version is damage and no newer one.
fn parse(bytes: &[u8]) -> Option<(u8, u64)> {
    let format = *bytes.get(7)?;
    let number = u64::from_le_bytes(bytes.get(8..16)?.try_into().ok()?);
    (format >= FORMAT && bytes == slot_of(format, number)).then_some((format, number))
}

/// Refuses a folder whose log is gone while something else in it says that there was one: a new log would forget votes
/// and entries.
pub(crate) fn check_log_exists(folder: &Path, log: &Path) -> Result<(), OpenLogError> {
    let failed = |source| OpenLogError::Folder { path: folder.to_owned(), source };
    if len(log).map_err(failed)? > 0 {
        return Ok(());
    }
    let mut wal = log.to_owned().into_os_string();
    wal.push("-wal");
    let (wal, witness) = (PathBuf::from(wal), folder.join(WITNESS_FILE));
    let snapshots = folder.join(crate::snapshot::local::FOLDER);
    let confirmed = match read(&witness).map_err(failed)? {
        Noted::Nothing => false,
        Noted::Damaged | Noted::Newer(_) => true,
        Noted::Commits(number) => number > 0,
    };
    let evidence = if confirmed {
        witness
    } else if len(&wal).map_err(failed)? > 0 {
        wal
    } else if snapshots.is_dir() {
        snapshots
    } else {
        return Ok(());
    };
    Err(OpenLogError::Gone { path: log.to_owned(), evidence })
}

/// Length of a file; 0 where there is none.
fn len(path: &Path) -> io::Result<u64> {
    match path.metadata() {
        Ok(metadata) => Ok(metadata.len()),
        Err(err) if err.kind() == io::ErrorKind::NotFound => Ok(0),
        Err(err) => Err(err),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(folder: &Path, found: u64) -> Result<Witness, OpenLogError> {
        Witness::open(folder, &folder.join("log"), found)
    }

    #[test]
    fn it_remembers_and_never_goes_back() {
        let folder = tempfile::tempdir().unwrap();
        let mut witness = open(folder.path(), 0).unwrap();
        (1..=7).for_each(|number| witness.confirm(number).unwrap());
        drop(witness);
        assert_eq!(open(folder.path(), 7).unwrap().confirmed(), 7);
        assert_eq!(open(folder.path(), 9).unwrap().confirmed(), 9, "the log may be ahead");
        let err = open(folder.path(), 8).unwrap_err();
        assert!(matches!(err, OpenLogError::LostCommits { found: 8, confirmed: 9, .. }), "{err}");
    }

    #[test]
    fn a_torn_note_leaves_the_one_before_and_two_are_damage() {
        let folder = tempfile::tempdir().unwrap();
        let mut witness = open(folder.path(), 0).unwrap();
        (1..=7).for_each(|number| witness.confirm(number).unwrap());
        let path = folder.path().join(WITNESS_FILE);
        let mut bytes = std::fs::read(&path).unwrap();
        assert_eq!(bytes.len(), FILE_LEN);
        bytes[512 + 9] ^= 1;
        std::fs::write(&path, &bytes).unwrap();
        assert_eq!(read(&path).unwrap(), Noted::Commits(6));
        bytes[3] ^= 1;
        std::fs::write(&path, &bytes).unwrap();
        let err = open(folder.path(), 7).unwrap_err().to_string();
        assert!(err.contains("raft-log.witness") && err.contains("is damaged"), "{err}");
        std::fs::remove_file(&path).unwrap();
        let err = open(folder.path(), 7).unwrap_err().to_string();
        assert!(err.contains("raft-log.witness") && err.contains("is missing or empty"), "{err}");
    }

    #[test]
    fn a_newer_note_is_told_from_a_damaged_version() {
        let folder = tempfile::tempdir().unwrap();
        drop(open(folder.path(), 0).unwrap());
        let path = folder.path().join(WITNESS_FILE);
        let mut bytes = std::fs::read(&path).unwrap();
        bytes[7] = 2;
        std::fs::write(&path, &bytes).unwrap();
        let err = open(folder.path(), 7).unwrap_err().to_string();
        assert!(err.contains("raft-log.witness") && err.contains("is damaged"), "{err}");
        bytes[..SLOT_LEN].copy_from_slice(&slot_of(2, 5));
        std::fs::write(&path, &bytes).unwrap();
        let err = open(folder.path(), 7).unwrap_err().to_string();
        assert!(err.contains("raft-log.witness") && err.contains("format 2; run the newer version"), "{err}");
    }

    /// Frozen: a change of these bytes is a new format.
    #[test]
    fn the_format_is_frozen() {
        assert_eq!(slot(1)[..16], *b"HFWITN\0\x01\x01\0\0\0\0\0\0\0");
        assert_eq!(parse(&slot(u64::MAX)), Some((1, u64::MAX)));
    }
}

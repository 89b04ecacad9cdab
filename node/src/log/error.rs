//! What can go wrong with a member's log, said to people.
//!
//! [`OpenLogError`]: the log cannot be used at all. [`LogFailure`]: it was in use and its disk failed; then the process
//! must end, because nobody knows any more what the disk holds.

use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use tokio::sync::watch;
use tokio_rusqlite::rusqlite::{self, ErrorCode};

use super::{codec::DamagedRecord, identity::ClusterId};
use crate::raft::types::MemberId;

/// Why the log cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenLogError {
    /// The folder cannot be made or read.
    #[error(
        "cannot use the folder {path}: {source}; check that it exists and that this user may write to it"
    )]
    Folder {
        /// The folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Another process has the folder open.
    #[error(
        "the folder {path} is in use by another process{holder}; stop that process, or give this member a folder of its own"
    )]
    InUse {
        /// The folder.
        path: PathBuf,
        /// " (pid 123)" where it is known.
        holder: String,
    },
    /// SQLite refused.
    #[error("cannot open the log {path}: {source}; {}", advice(source))]
    Sqlite {
        /// The file.
        path: PathBuf,
        /// What SQLite said.
        source: rusqlite::Error,
    },
    /// The file is a database of something else.
    #[error("the file {path} is no Holdfast log; move it away, or choose another folder")]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// A newer Holdfast wrote the file.
    #[error(
        "the log {path} has schema version {found}, and this version of Holdfast knows only up to {known}; run the newer version"
    )]
    NewerSchema {
        /// The file.
        path: PathBuf,
        /// Version in the file.
        found: u32,
        /// Newest version known here.
        known: u32,
    },
    /// A newer Holdfast wrote something in the file, or the file beside it.
    #[error(
        "the file {path} cannot be read by this version of Holdfast: {what} has format {found}; run the newer version"
    )]
    NewerFormat {
        /// The file.
        path: PathBuf,
        /// What in it.
        what: String,
        /// Its format.
        found: u8,
    },
    /// There is no log, and the rest of the folder says that there was one.
    #[error(
        "the log {path} is missing or empty, but {evidence} is there: this member has lost what it acknowledged; put the file back as it was, with its -wal file, or remove this member from the cluster and add it again with an empty folder"
    )]
    Gone {
        /// The file.
        path: PathBuf,
        /// What says that there was a log.
        evidence: PathBuf,
    },
    /// The log has fewer transactions than were acknowledged.
    #[error(
        "the log {path} has lost what it had confirmed: it holds {found} commits, and {confirmed} were confirmed; its end, which may stand in the file beside it that ends in -wal, was cut or damaged; remove this member from the cluster and add it again with an empty folder"
    )]
    LostCommits {
        /// The file.
        path: PathBuf,
        /// Commits in it.
        found: u64,
        /// Commits that somebody was told of.
        confirmed: u64,
    },
    /// The file that says how far the log was confirmed cannot be relied upon.
    #[error(
        "the file {path}, which says how much of the log was confirmed, {fault}, so nobody can tell whether the log is whole; put it back as it was, or remove this member from the cluster and add it again with an empty folder"
    )]
    Witness {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        fault: String,
    },
    /// The file's structure or one of its marks is damaged.
    #[error(
        "the log {path} is damaged: {fault}; remove this member from the cluster and add it again with an empty folder"
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        fault: String,
    },
    /// The file is a log and says not whose.
    #[error(
        "the log {path} does not say whose it is although it holds entries or votes; it is damaged, so remove this member from the cluster and add it again with an empty folder"
    )]
    Nameless {
        /// The file.
        path: PathBuf,
    },
    /// The file is another member's.
    #[error(
        "the log {path} belongs to member {found} and not to member {wanted}; correct the member id, or choose another folder"
    )]
    OtherMember {
        /// The file.
        path: PathBuf,
        /// Whose it is.
        found: String,
        /// Who asked.
        wanted: MemberId,
    },
    /// The file is of another cluster.
    #[error(
        "the log {path} belongs to cluster {found:?} and not to cluster \"{wanted}\"; correct the cluster id, or choose another folder"
    )]
    OtherCluster {
        /// The file.
        path: PathBuf,
        /// Whose it is.
        found: String,
        /// Who asked.
        wanted: ClusterId,
    },
}

/// What to do about an error of SQLite.
fn advice(error: &rusqlite::Error) -> &'static str {
    match error.sqlite_error_code() {
        Some(
            ErrorCode::CannotOpen
            | ErrorCode::PermissionDenied
            | ErrorCode::ReadOnly
            | ErrorCode::SystemIoFailure
            | ErrorCode::DiskFull,
        ) => "check that this user may write to it, and that its disk is well and has space",
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
            "another process has it open; stop that process"
        }
        _ => {
            "it is damaged or of another program; remove this member from the cluster and add it again with an empty folder"
        }
    }
}

/// Why a group's part of the log cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum OpenGroupError {
    /// A record cannot be read.
    #[error(transparent)]
    Damaged(#[from] DamagedRecord),
    /// Entries are missing at the end that were known to be committed.
    #[error(
        "the log of group {group} ends before entry {committed}, which was committed: the disk lost what it had confirmed; remove this member from the cluster and add it again with an empty folder"
    )]
    LostTail {
        /// The group's number.
        group: u32,
        /// Index of the committed entry.
        committed: u64,
    },
    /// SQLite refused.
    #[error("cannot read the log of group {group}: {source}; {}", advice(source))]
    Sqlite {
        /// The group's number.
        group: u32,
        /// What SQLite said.
        source: rusqlite::Error,
    },
    /// The same, with the file.
    #[error("the log {path} cannot be used: {source}")]
    In {
        /// The file.
        path: PathBuf,
        /// What is wrong with the group.
        source: Box<OpenGroupError>,
    },
    /// The log is closed or has failed.
    #[error("the log is closed")]
    Closed,
}

/// The disk under the log failed. Every write that was waiting, and every later one, answers this.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the log {path} failed while {during}: {reason}; this member stops: see that its disk is well and has space, then start it again"
)]
pub struct LogFailure {
    /// The file that was written.
    pub path: PathBuf,
    /// What was being done.
    pub during: &'static str,
    /// What the disk or SQLite said.
    pub reason: Arc<str>,
}

impl LogFailure {
    /// A failure that came up while doing `during` with the file `path`.
    pub(crate) fn new(path: &Path, during: &'static str, reason: &(impl ToString + ?Sized)) -> LogFailure {
        LogFailure { path: path.to_owned(), during, reason: reason.to_string().into() }
    }

    /// The same as openraft wants it.
    pub(crate) fn io(&self) -> io::Error {
        io::Error::other(self.clone())
    }
}

/// Tells the process, once and for ever, that the log failed.
#[derive(Clone, Debug)]
pub(crate) struct FailureSignal(Arc<watch::Sender<Option<LogFailure>>>);

impl FailureSignal {
    pub(crate) fn new() -> FailureSignal {
        FailureSignal(Arc::new(watch::Sender::new(None)))
    }

    /// Raises the signal. The first failure stays: later ones are its consequences.
    pub(crate) fn raise(&self, failure: LogFailure) {
        self.0.send_if_modified(|current| {
            if current.is_some() {
                return false;
            }
            tracing::error!(%failure, "the log failed");
            *current = Some(failure);
            true
        });
    }

    /// What failed has been put right, and whoever was told of it has gone.
    pub(crate) fn clear(&self) {
        self.0.send_replace(None);
    }

    pub(crate) fn get(&self) -> Option<LogFailure> {
        self.0.borrow().clone()
    }

    pub(crate) fn subscribe(&self) -> watch::Receiver<Option<LogFailure>> {
        self.0.subscribe()
    }

    /// What a caller is told whose write cannot be taken: the failure, or that the log was closed.
    pub(crate) fn refusal(&self) -> io::Error {
        match self.get() {
            Some(failure) => failure.io(),
            None => io::Error::new(io::ErrorKind::BrokenPipe, "the log is closed"),
        }
    }
}

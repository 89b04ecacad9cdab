//! Why a snapshot store did not do what was asked, and what a person can do about it.
//!
//! Knows no store: each sorts what its own system says into a [`StoreCause`].

use super::store::ObjectName;

/// What is behind the trouble: it decides the advice in the message and the label of the metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum StoreCause {
    /// There are no credentials, or the store does not know them.
    Credentials,
    /// The credentials are good, and may not do this.
    Permission,
    /// There is no such bucket.
    Bucket,
    /// The region is unknown or not the bucket's.
    Region,
    /// This machine's clock is wrong: signatures carry the time.
    Clock,
    /// There is no room left.
    Space,
    /// The store asks for fewer requests.
    Throttled,
    /// No answer within the deadline.
    Timeout,
    /// The connection was refused or lost.
    Connection,
    /// What was read is not what was written.
    Damage,
    /// Anything else.
    Other,
}

impl StoreCause {
    /// All of them.
    pub const ALL: [StoreCause; 11] = [
        StoreCause::Credentials,
        StoreCause::Permission,
        StoreCause::Bucket,
        StoreCause::Region,
        StoreCause::Clock,
        StoreCause::Space,
        StoreCause::Throttled,
        StoreCause::Timeout,
        StoreCause::Connection,
        StoreCause::Damage,
        StoreCause::Other,
    ];

    /// One word, as metrics have it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            StoreCause::Credentials => "credentials",
            StoreCause::Permission => "permission",
            StoreCause::Bucket => "bucket",
            StoreCause::Region => "region",
            StoreCause::Clock => "clock",
            StoreCause::Space => "space",
            StoreCause::Throttled => "throttled",
            StoreCause::Timeout => "timeout",
            StoreCause::Connection => "connection",
            StoreCause::Damage => "damage",
            StoreCause::Other => "other",
        }
    }

    /// What to do about it.
    #[must_use]
    pub const fn advice(self) -> &'static str {
        match self {
            StoreCause::Credentials => {
                "check AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, AWS_PROFILE, or the role of this machine"
            }
            StoreCause::Permission => {
                "allow this member to list, read, write and delete there, and to abort uploads"
            }
            StoreCause::Bucket => "create the bucket, or correct snapshots.store and snapshots.endpoint",
            StoreCause::Region => "set snapshots.region or AWS_REGION to the region of the bucket",
            StoreCause::Clock => "set this machine's clock",
            StoreCause::Space => {
                "make room there, or keep fewer snapshots (snapshots.keep, snapshots.max_age)"
            }
            StoreCause::Throttled => {
                "take snapshots less often (snapshots.interval), or raise the store's limits"
            }
            StoreCause::Timeout => {
                "see that the store is well and the way to it fast enough, or raise snapshots.timeout"
            }
            StoreCause::Connection => "see that the store runs, and that snapshots.endpoint can be reached",
            StoreCause::Damage => "see that the disks of the store are well",
            StoreCause::Other => "check its address, and see that it is well",
        }
    }
}

/// Why the store did not do what was asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// `CreateOnly` found an object.
    #[error("the object {name} exists already")]
    AlreadyExists {
        /// The object.
        name: ObjectName,
    },
    /// There is no such object.
    #[error("there is no object {name} in the snapshot store")]
    NotFound {
        /// The object.
        name: ObjectName,
    },
    /// The text is no object name.
    #[error(
        "{name:?} is no object name: use segments of a-z, A-Z, 0-9, '.', '_' and '-', separated by single slashes"
    )]
    InvalidName {
        /// The text.
        name: String,
    },
    /// The store is not configured right, or refuses this process.
    #[error("the snapshot store refuses to {act} {name}: {reason}; {}", cause.advice())]
    Refused {
        /// What was tried.
        act: &'static str,
        /// On what: a whole path or address.
        name: String,
        /// What is behind it.
        cause: StoreCause,
        /// What the store said.
        reason: String,
    },
    /// The store cannot be reached or has trouble; it may work later.
    #[error("the snapshot store cannot {act} {name} now: {reason}; {}", cause.advice())]
    Unavailable {
        /// What was tried.
        act: &'static str,
        /// On what: a whole path or address.
        name: String,
        /// What is behind it.
        cause: StoreCause,
        /// What happened.
        reason: String,
    },
}

impl StoreError {
    /// Whether the same call may succeed later without anybody changing anything.
    #[must_use]
    pub fn retryable(&self) -> bool {
        match self {
            StoreError::Unavailable { .. } => true,
            StoreError::AlreadyExists { .. }
            | StoreError::NotFound { .. }
            | StoreError::InvalidName { .. }
            | StoreError::Refused { .. } => false,
        }
    }

    /// What is behind it.
    #[must_use]
    pub fn cause(&self) -> StoreCause {
        match self {
            StoreError::Refused { cause, .. } | StoreError::Unavailable { cause, .. } => *cause,
            StoreError::AlreadyExists { .. }
            | StoreError::NotFound { .. }
            | StoreError::InvalidName { .. } => StoreCause::Other,
        }
    }
}

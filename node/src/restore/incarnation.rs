//! Which incarnation a restored cluster has: a number that no other cluster of the same origin has or had.
//!
//! Clusters that were restored from each other share one register, `cluster/<origin>/incarnation/<n>`, where the origin is the
//! first of them: two restores of the same snapshots, and restores of restored clusters, all get numbers of their own. An
//! object is created only where there is none, so of two restores at the same time each gets another number. Numbers are
//! never given back.

use bytes::Bytes;
use holdfast_locktable::ids::Revision;

use crate::{
    log::identity::{ClusterId, InvalidClusterId},
    snapshot::store::{ObjectName, PutMode, SnapshotStore, StoreCause, StoreError},
};

/// How often a number is tried that somebody else was faster to take.
const ATTEMPTS: u32 = 16;

/// Why there is no incarnation.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IncarnationError {
    /// The register cannot be read, so nobody knows which numbers are in use.
    #[error(
        "the incarnations that were given out before cannot be read, and none is guessed: {0}; bring the store back"
    )]
    Unreadable(StoreError),
    /// The register cannot be written.
    #[error(
        "the incarnation {number} cannot be claimed in the snapshot store: {fault}; let this command write there, or give a number with --incarnation that is above that of every cluster that was ever restored from these snapshots (above {seen} at least)"
    )]
    Unwritable {
        /// The number that was to be claimed.
        number: u64,
        /// The highest number in use, as far as it is known.
        seen: u64,
        /// What the store said.
        fault: StoreError,
    },
    /// It cannot be noted which clusters were restored from each other.
    #[error(
        "it cannot be noted in the snapshot store that {cluster} comes from {origin}: {fault}; let this command write there, or give a number with --incarnation"
    )]
    Unnoted {
        /// The new cluster.
        cluster: ClusterId,
        /// The first of all.
        origin: ClusterId,
        /// What the store said.
        fault: StoreError,
    },
    /// The number given may be in use.
    #[error("--incarnation {given} is too low: incarnation {seen} is in use; give a higher one")]
    TooLow {
        /// The number.
        given: u64,
        /// The highest number in use.
        seen: u64,
    },
    /// There are no more numbers.
    #[error(
        "the incarnations are used up: the highest is {}, and {seen} is in use; begin a new cluster with new lock names",
        Revision::LAST_INCARNATION
    )]
    UsedUp {
        /// The highest number in use.
        seen: u64,
    },
    /// Others were faster, again and again.
    #[error(
        "other restores took {ATTEMPTS} incarnations while this one wanted one; see who restores, and try again"
    )]
    Contended,
}

/// The first of the clusters that were restored from each other.
///
/// # Errors
/// [`IncarnationError::Unreadable`].
pub async fn origin_of(
    store: &dyn SnapshotStore,
    cluster: &ClusterId,
) -> Result<ClusterId, IncarnationError> {
    match store.get(&origin_object(cluster).map_err(IncarnationError::Unreadable)?).await {
        Ok(text) => {
            let text = String::from_utf8_lossy(&text).trim().to_owned();
            text.parse().map_err(|error: InvalidClusterId| {
                let name = format!("the origin of cluster {cluster}");
                let refused = StoreError::Refused {
                    act: "read",
                    name,
                    cause: StoreCause::Damage,
                    reason: error.to_string(),
                };
                IncarnationError::Unreadable(refused)
            })
        }
        Err(StoreError::NotFound { .. }) => Ok(cluster.clone()),
        Err(error) => Err(IncarnationError::Unreadable(error)),
    }
}

/// Notes where a new cluster comes from, for restores of its own snapshots.
///
/// # Errors
/// [`IncarnationError::Unnoted`].
pub async fn note_origin(
    store: &dyn SnapshotStore,
    cluster: &ClusterId,
    origin: &ClusterId,
) -> Result<(), IncarnationError> {
    let unnoted =
        |fault| IncarnationError::Unnoted { cluster: cluster.clone(), origin: origin.clone(), fault };
    let object = origin_object(cluster).map_err(unnoted)?;
    let text = Bytes::copy_from_slice(origin.as_str().as_bytes());
    store.put(&object, text, PutMode::CreateOnly).await.map_err(unnoted)
}

/// Whether a cluster of this name has left anything in the store.
///
/// # Errors
/// [`IncarnationError::Unreadable`].
pub async fn is_taken(store: &dyn SnapshotStore, cluster: &ClusterId) -> Result<bool, IncarnationError> {
    let found = store.list(&format!("cluster/{cluster}/")).await.map_err(IncarnationError::Unreadable)?;
    Ok(!found.is_empty())
}

/// The lowest number above all in the register and above `seen`. Claims nothing.
///
/// # Errors
/// The register cannot be read, or there are no more numbers.
pub async fn next_above(
    store: &dyn SnapshotStore,
    origin: &ClusterId,
    seen: u64,
) -> Result<u64, IncarnationError> {
    let highest = highest(store, origin).await?.max(seen);
    if highest < Revision::LAST_INCARNATION {
        Ok(highest + 1)
    } else {
        Err(IncarnationError::UsedUp { seen: highest })
    }
}

/// Takes the lowest number above all in the register and above `seen`.
///
/// # Errors
/// See [`IncarnationError`].
pub async fn claim(
    store: &dyn SnapshotStore,
    origin: &ClusterId,
    seen: u64,
) -> Result<u64, IncarnationError> {
    for _ in 0..ATTEMPTS {
        let number = next_above(store, origin, seen).await?;
        let unwritable = |fault| IncarnationError::Unwritable { number, seen: number - 1, fault };
        let object: ObjectName = format!("{}{number}", register(origin)).parse().map_err(unwritable)?;
        match store.put(&object, Bytes::new(), PutMode::CreateOnly).await {
            Ok(()) => return Ok(number),
            Err(StoreError::AlreadyExists { .. }) => {}
            Err(fault) => return Err(unwritable(fault)),
        }
    }
    Err(IncarnationError::Contended)
}

/// Answers a number that the operator gives, if it is above all that can be seen. Claims it where the store takes that.
///
/// # Errors
/// See [`IncarnationError`].
pub async fn check_given(
    store: &dyn SnapshotStore,
    origin: &ClusterId,
    seen: u64,
    given: u64,
) -> Result<u64, IncarnationError> {
    let seen = highest(store, origin).await?.max(seen);
    if given <= seen {
        return Err(IncarnationError::TooLow { given, seen });
    }
    if given > Revision::LAST_INCARNATION {
        return Err(IncarnationError::UsedUp { seen: given });
    }
    let object: ObjectName =
        format!("{}{given}", register(origin)).parse().map_err(IncarnationError::Unreadable)?;
    match store.put(&object, Bytes::new(), PutMode::CreateOnly).await {
        Ok(()) => Ok(given),
        Err(StoreError::AlreadyExists { .. }) => Err(IncarnationError::TooLow { given, seen: given }),
        // It is given because the store cannot be written.
        Err(error) => {
            tracing::warn!(incarnation = given, %error, "the incarnation is not noted in the store; do not use it again");
            Ok(given)
        }
    }
}

async fn highest(store: &dyn SnapshotStore, origin: &ClusterId) -> Result<u64, IncarnationError> {
    let prefix = register(origin);
    let objects = store.list(&prefix).await.map_err(IncarnationError::Unreadable)?;
    let numbers = objects.iter().filter_map(|info| info.name.as_str().strip_prefix(&prefix)?.parse().ok());
    Ok(numbers.max().unwrap_or(0))
}

fn register(origin: &ClusterId) -> String {
    format!("cluster/{origin}/incarnation/")
}

fn origin_object(cluster: &ClusterId) -> Result<ObjectName, StoreError> {
    format!("cluster/{cluster}/origin").parse()
}

#[cfg(test)]
mod tests;

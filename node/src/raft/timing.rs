//! How patient the members of a group are with each other, and the openraft configuration that follows from it.

use std::{sync::Arc, time::Duration};

use openraft::{Config, SnapshotPolicy};

/// Entries of one append over the network. Streams keep several in flight, so a bigger number only adds latency.
const MAX_PAYLOAD_ENTRIES: u64 = 512;
/// Time for the last part of a snapshot to be stored and installed by the far end.
const INSTALL_SNAPSHOT_TIMEOUT: Duration = Duration::from_secs(60);
/// Pauses between attempts to reach a member that cannot be reached.
const BACKOFF: &str = "50ms 100ms 200ms ..500ms";
/// Entries that openraft would keep behind a snapshot by itself: all. When to purge is decided above (rule R21).
const KEEP_ALL: u64 = 1 << 60;

/// Timing of one Raft group. The longest election timeout is also the leader's lease, and so the floor of a fail-over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// Pause between two heartbeats. Their answers must come within three quarters of it, so it must be well above the
    /// round trip between members.
    pub heartbeat_interval: Duration,
    /// Shortest silence after which a follower asks for votes.
    pub election_timeout_min: Duration,
    /// Longest such silence.
    pub election_timeout_max: Duration,
}

impl Default for Timing {
    /// 100 ms, 500 ms and 1,000 ms.
    fn default() -> Self {
        Self {
            heartbeat_interval: Duration::from_millis(100),
            election_timeout_min: Duration::from_millis(500),
            election_timeout_max: Duration::from_millis(1_000),
        }
    }
}

/// The times contradict each other.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the Raft timing makes no sense: {reason}; heartbeat_interval < election_timeout_min < election_timeout_max must hold, in whole milliseconds"
)]
pub struct InvalidTiming {
    /// What openraft said.
    pub reason: String,
}

impl Timing {
    /// The openraft configuration of a group.
    pub(crate) fn config(&self, group: &str) -> Result<Arc<Config>, InvalidTiming> {
        let election_timeout_max = millis(self.election_timeout_max);
        let config = Config {
            cluster_name: group.to_owned(),
            heartbeat_interval: millis(self.heartbeat_interval),
            election_timeout_min: millis(self.election_timeout_min),
            election_timeout_max,
            // A term is not raised by a member that could not win anyway (cut off, restarted, behind).
            enable_pre_vote: Some(true),
            // A leader without quorum falls silent now and then, so that the others can elect around it.
            quorum_loss_probe_interval: Some(election_timeout_max.saturating_mul(2)),
            // A restarted leader asks for votes again: its state machine is behind until it has heard from a quorum.
            enable_leader_restore: Some(false),
            // Snapshots and purges are ours alone.
            snapshot_policy: SnapshotPolicy::Never,
            max_in_snapshot_log_to_keep: KEEP_ALL,
            max_payload_entries: MAX_PAYLOAD_ENTRIES,
            install_snapshot_timeout: millis(INSTALL_SNAPSHOT_TIMEOUT),
            backoff: BACKOFF.to_owned(),
            ..Config::default()
        };
        config.validate().map(Arc::new).map_err(|err| InvalidTiming { reason: err.to_string() })
    }
}

/// Whole milliseconds, as openraft counts.
fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_accepted() {
        let config = Timing::default().config("group 1").unwrap();
        assert_eq!(config.heartbeat_interval, 100);
        assert_eq!(config.enable_pre_vote, Some(true));
    }

    #[test]
    fn a_heartbeat_slower_than_an_election_is_refused() {
        let timing = Timing { heartbeat_interval: Duration::from_secs(2), ..Timing::default() };
        let err = timing.config("group 1").unwrap_err();
        assert!(err.to_string().contains("must hold"), "{err}");
    }
}

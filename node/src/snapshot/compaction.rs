//! When openraft builds its own snapshot, and how far the log may be purged (rule R21).
//!
//! Plain state: it is told where the log stands and says what to do. openraft's own policy is switched off
//! ([`own_policy`]), because it purges up to the snapshot at once; an apply that is still queued then finds its entries
//! gone, and that member ends.

/// How long the log of a group may get; numbers of entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CompactionLimits {
    /// Kept behind what is both applied and in a durable snapshot: a wide margin for applies that are still queued, and so
    /// that a member that was away shortly catches up from the log.
    pub keep_entries: u64,
    /// Applied since the last snapshot when a new one is built.
    pub snapshot_entries: u64,
}

impl Default for CompactionLimits {
    fn default() -> Self {
        Self { keep_entries: 20_000, snapshot_entries: 50_000 }
    }
}

/// Fewest entries worth a purge.
const PURGE_STEP_ENTRIES: u64 = 1_000;

/// Where a group's log stands on this member; indexes of entries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LogProgress {
    /// Last applied.
    pub applied: Option<u64>,
    /// Last one in a snapshot that is durable.
    pub durable_snapshot: Option<u64>,
    /// Last one purged.
    pub purged: Option<u64>,
}

/// What to do now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CompactionStep {
    /// Build a snapshot.
    pub build_snapshot: bool,
    /// Purge the entries up to this index.
    pub purge_upto: Option<u64>,
}

/// The index up to which entries may be purged: in a durable snapshot, applied, and `keep_entries` behind both.
#[must_use]
pub fn purge_upto(
    durable_snapshot_index: Option<u64>,
    applied_index: Option<u64>,
    keep_entries: u64,
) -> Option<u64> {
    durable_snapshot_index?.min(applied_index?).checked_sub(keep_entries)
}

/// Switches openraft's own snapshot and purge policy off, so that [`Compaction`] is the only one that decides.
pub fn own_policy(config: &mut openraft::Config) {
    config.snapshot_policy = openraft::SnapshotPolicy::Never;
    config.max_in_snapshot_log_to_keep = u64::MAX;
}

/// Decides step by step for one group.
#[derive(Debug, Default)]
pub struct Compaction {
    limits: CompactionLimits,
    /// What was applied when the last snapshot was asked for.
    asked_at: Option<u64>,
}

impl Compaction {
    /// Keeps a log within these limits.
    #[must_use]
    pub fn new(limits: CompactionLimits) -> Compaction {
        Compaction { limits, asked_at: None }
    }

    /// What to do, given where the log stands. Called again and again.
    pub fn step(&mut self, progress: LogProgress) -> CompactionStep {
        CompactionStep {
            build_snapshot: self.wants_snapshot(progress),
            purge_upto: self.wanted_purge(progress),
        }
    }

    fn wants_snapshot(&mut self, progress: LogProgress) -> bool {
        let Some(applied) = progress.applied else { return false };
        let since = |mark: Option<u64>| applied.saturating_sub(mark.unwrap_or(0));
        // One that was asked for and never came is asked for again after as many entries more.
        let newest_mark = progress.durable_snapshot.max(self.asked_at);
        if since(newest_mark) < self.limits.snapshot_entries {
            return false;
        }
        self.asked_at = Some(applied);
        true
    }

    fn wanted_purge(&self, progress: LogProgress) -> Option<u64> {
        let upto = purge_upto(progress.durable_snapshot, progress.applied, self.limits.keep_entries)?;
        let purged = progress.purged.map_or(0, |index| index.saturating_add(1));
        (upto >= purged.saturating_add(PURGE_STEP_ENTRIES)).then_some(upto)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn purging_stays_behind_the_snapshot_and_behind_what_is_applied() {
        assert_eq!(purge_upto(Some(50_000), Some(90_000), 20_000), Some(30_000));
        assert_eq!(
            purge_upto(Some(90_000), Some(50_000), 20_000),
            Some(30_000),
            "installed, not yet applied"
        );
        assert_eq!(purge_upto(Some(20_000), Some(20_000), 20_000), Some(0));
        assert_eq!(purge_upto(Some(19_999), Some(90_000), 20_000), None);
        assert_eq!(purge_upto(None, Some(90_000), 20_000), None);
        assert_eq!(purge_upto(Some(90_000), None, 20_000), None);
    }

    fn progress(applied: u64, durable_snapshot: Option<u64>, purged: Option<u64>) -> LogProgress {
        LogProgress { applied: Some(applied), durable_snapshot, purged }
    }

    #[test]
    fn snapshots_are_asked_for_once_per_interval() {
        let mut compaction = Compaction::default();
        let mut asks = |applied, snapshot| compaction.step(progress(applied, snapshot, None)).build_snapshot;
        assert!(!asks(49_999, None));
        assert!(asks(50_000, None));
        assert!(!asks(80_000, None), "it is being built");
        assert!(!asks(99_000, Some(50_010)), "it came, and covers a little more");
        assert!(asks(100_010, Some(50_010)));
        assert!(asks(150_010, Some(50_010)), "the last one never came");
        assert!(!asks(150_011, Some(150_000)));
        assert!(!Compaction::default().step(LogProgress::default()).build_snapshot);
    }

    #[test]
    fn small_purges_wait() {
        let purge = |purged| Compaction::default().step(progress(60_000, Some(50_000), purged)).purge_upto;
        assert_eq!(purge(None), Some(30_000));
        assert_eq!(purge(Some(28_999)), Some(30_000));
        assert_eq!(purge(Some(29_000)), None);
        assert_eq!(purge(Some(30_000)), None);
        assert_eq!(purge(Some(45_000)), None, "an installed snapshot purged further than we would");
    }

    #[test]
    fn smaller_limits_keep_a_shorter_log() {
        let limits = CompactionLimits { keep_entries: 1_000, snapshot_entries: 2_000 };
        let mut compaction = Compaction::new(limits);
        assert!(!compaction.step(progress(1_999, None, None)).build_snapshot);
        let step = compaction.step(progress(4_500, Some(2_500), None));
        assert_eq!(step, CompactionStep { build_snapshot: true, purge_upto: Some(1_500) });
    }

    #[test]
    fn openrafts_own_policy_is_off() {
        let mut config = openraft::Config::default();
        own_policy(&mut config);
        assert_eq!(config.snapshot_policy, openraft::SnapshotPolicy::Never);
        assert_eq!(config.max_in_snapshot_log_to_keep, u64::MAX);
        config.validate().unwrap();
    }
}

//! openraft's figures, passed on to a [`RaftObserver`].

use std::sync::Arc;

use openraft::metrics::MetricsRecorder;

use super::observe::RaftObserver;

/// Passes on what cannot be seen otherwise; positions are in [`GroupStatus`](super::status::GroupStatus).
#[derive(Debug)]
pub(crate) struct Recorder(pub(crate) Arc<dyn RaftObserver>);

impl MetricsRecorder for Recorder {
    fn record_apply_batch(&self, entry_count: u64) {
        self.0.applied(entry_count);
    }

    fn record_append_batch(&self, entry_count: u64) {
        self.0.appended(entry_count);
    }

    fn record_write_batch(&self, _entry_count: u64) {}

    fn set_current_term(&self, _term: u64) {}

    fn set_last_log_index(&self, _index: u64) {}

    fn set_committed_index(&self, _index: u64) {}

    fn set_applied_index(&self, _index: u64) {}

    fn set_snapshot_index(&self, _index: u64) {}

    fn set_purged_index(&self, _index: u64) {}

    fn set_server_state(&self, _state: u8) {}

    fn increment_vote(&self) {
        self.0.vote_asked();
    }

    fn increment_heartbeat(&self) {}

    fn increment_append(&self) {}
}

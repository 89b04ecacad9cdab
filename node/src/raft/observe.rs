//! What a group tells whoever keeps figures of it.

use std::{fmt, time::Duration};

use super::leadership::Leadership;

/// Counts what a group does on this member. Called from the group's own tasks; must not block.
pub trait RaftObserver: fmt::Debug + Send + Sync + 'static {
    /// Commands were proposed together.
    fn proposed(&self, commands: usize) {
        let _ = commands;
    }

    /// A quorum round for [`RaftGroup::confirm_leadership`](super::group::RaftGroup::confirm_leadership) ended.
    fn confirmed(&self, callers: usize, took: Duration, success: bool) {
        let _ = (callers, took, success);
    }

    /// The leader, the term or this member's part changed, as far as this member knows; also called once at the start.
    fn leadership(&self, now: &Leadership) {
        let _ = now;
    }

    /// Another member asked for a vote.
    fn vote_asked(&self) {}

    /// Entries were handed to the log in one write.
    fn appended(&self, entries: u64) {
        let _ = entries;
    }

    /// Entries were handed to the state machine in one go.
    fn applied(&self, entries: u64) {
        let _ = entries;
    }
}

/// Keeps no figures.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoObserver;

impl RaftObserver for NoObserver {}

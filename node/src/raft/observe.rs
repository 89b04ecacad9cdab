//! What a group tells whoever keeps figures of it.

use std::{fmt, time::Duration};

use holdfast_locktable::ids::Term;

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

    /// This member stands for election, in a term of its own.
    fn standing(&self, term: Term) {
        let _ = term;
    }

    /// Entries were applied in one go, and whoever follows them was told.
    fn applied(&self, entries: usize, took: Duration) {
        let _ = (entries, took);
    }

    /// A snapshot from the leader took the place of the state, or could not.
    fn installed(&self, took: Duration, success: bool) {
        let _ = (took, success);
    }
}

/// Keeps no figures.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoObserver;

impl RaftObserver for NoObserver {}

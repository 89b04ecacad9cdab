//! Who is told what was applied.

use std::fmt;

use holdfast_locktable::table::Position;

/// Follows the entries that a group applies on this member. `A` is what applying one entry gives: the lock table's
/// `Applied` or the meta table's `MetaApplied`.
///
/// Called from the task that applies, in log order, before the proposer has its answer; must not block.
pub trait ApplySink<A>: fmt::Debug + Send + Sync + 'static {
    /// These entries were applied, each at its position. Entries without a command are not mentioned.
    fn applied(&self, batch: Vec<(Position, A)>);

    /// The whole state was replaced by a snapshot: what was followed so far says nothing any more, read it anew.
    fn restored(&self);
}

/// Follows nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoSink;

impl<A> ApplySink<A> for NoSink {
    fn applied(&self, _batch: Vec<(Position, A)>) {}

    fn restored(&self) {}
}

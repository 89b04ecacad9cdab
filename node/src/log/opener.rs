//! Opens groups of a member's log: reads a group's bounds once, then hands out handles on the same tail.
//!
//! Works from any task and does not need the actor, so that a member can open its groups while it starts.

use std::{collections::BTreeMap, fmt, sync::Arc};

use parking_lot::Mutex;

use super::{
    codec::{self, Slot},
    error::OpenGroupError,
    group_number::GroupNumber,
    handle::{LogHandle, PumpSink, Sink},
    load::{self, LoadedGroup},
    op::{Op, SharedTail, Waiter, Write},
    pump::Order,
    stats::LogSpace,
    tail::{Tail, TailLimits},
};

/// The tails of all groups that are open.
pub(crate) type OpenTails = Arc<Mutex<BTreeMap<GroupNumber, SharedTail>>>;

/// Opens groups of a member's log. Clones open the same groups.
#[derive(Clone)]
pub struct LogOpener {
    pub(crate) sink: PumpSink,
    pub(crate) limits: TailLimits,
    pub(crate) tails: OpenTails,
}

impl fmt::Debug for LogOpener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LogOpener").finish_non_exhaustive()
    }
}

impl LogOpener {
    /// What the log takes on its disk now.
    #[must_use]
    pub fn space(&self) -> LogSpace {
        self.sink.shared.space()
    }

    /// The log of `group`; a new group has an empty one. Opening it again gives another handle on the same.
    ///
    /// # Errors
    /// When a record of the group is damaged, its committed tail is lost, or the log is closed.
    pub async fn open_group(&self, group: GroupNumber) -> Result<LogHandle, OpenGroupError> {
        let known = self.tails.lock().get(&group).cloned();
        let tail = match known {
            Some(tail) => tail,
            None => {
                let loaded = self.sink.reader.call(move |conn| load::load_group(conn, group)).await;
                let LoadedGroup { start, leftover } = loaded.map_err(|err| match err {
                    tokio_rusqlite::Error::Error(err) => {
                        OpenGroupError::In { path: self.sink.path.to_path_buf(), source: Box::new(err) }
                    }
                    _ => OpenGroupError::Closed,
                })?;
                let purged = start.purged;
                let fresh = Arc::new(Mutex::new(Tail::new(group, self.limits, start)));
                // Another call may have been faster; nothing was written to the group before either of them returned.
                let tail = Arc::clone(self.tails.lock().entry(group).or_insert(fresh));
                if let Some(purged) = purged.filter(|_| !leftover.is_empty()) {
                    let record = codec::seal(group, Slot::Purged, &purged, Vec::new())?;
                    self.delete_leftover(group, &tail, Write::Purge { record, range: leftover }).await?;
                }
                tail
            }
        };
        Ok(LogHandle::new(group, tail, Sink::Pump(self.sink.clone())))
    }

    /// Goes on with a purge that the end of the last process interrupted.
    async fn delete_leftover(
        &self,
        group: GroupNumber,
        tail: &SharedTail,
        write: Write,
    ) -> Result<(), OpenGroupError> {
        let tail = Arc::clone(tail);
        let op = Op { group, tail, write, committed: None, waiter: Waiter::Nobody, queued: None };
        self.sink.queue.send(Order::Write(op)).await.map_err(|_closed| OpenGroupError::Closed)
    }
}

//! What the names of a group cost its leader: counted as proposals come back, told to the planner window by window.
//!
//! Measures; what is hot is for the planner to say.

use std::{collections::BTreeMap, fmt, sync::Arc, time::Duration};

use holdfast_locktable::name::Name;
use holdfast_partitioner::{
    GroupId, MapEpoch, PartitionMap,
    load::{GroupLoad, Meter, PrefixLoad},
    name::routed_name,
};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use super::Group;
use crate::endpoint::MapWatch;

/// How long one window is. What was told last is at most this old, and as much of a past as the planner sees at a time.
pub const WINDOW: Duration = Duration::from_secs(5);
/// The shortest window worth telling: a rate over less says nothing.
const LEAST: Duration = Duration::from_millis(500);

/// What one group measured in one window.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Measured {
    /// The map in force meanwhile.
    pub epoch: MapEpoch,
    /// The group in all.
    pub group: GroupLoad,
    /// Its prefixes and names.
    pub prefixes: Vec<PrefixLoad>,
}

/// Counts what one group's names cost, at its leader. Cheap to clone.
#[derive(Clone)]
pub struct LoadMeter {
    group: GroupId,
    map: MapWatch,
    /// Times are milliseconds since then.
    started: Instant,
    windows: Arc<Mutex<Windows>>,
}

/// The window that is being counted, and the one before it.
struct Windows {
    epoch: MapEpoch,
    now: Meter,
    last: Option<Arc<Meter>>,
    last_ended_ms: u64,
}

impl fmt::Debug for LoadMeter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LoadMeter(group {})", self.group)
    }
}

impl Windows {
    fn new(epoch: MapEpoch, now_ms: u64) -> Self {
        Self { epoch, now: Meter::new(now_ms), last: None, last_ended_ms: now_ms }
    }

    /// Ends the window if it is over, and forgets all that was counted under another map.
    fn turn(&mut self, epoch: MapEpoch, now_ms: u64) {
        if self.epoch != epoch {
            *self = Self::new(epoch, now_ms);
        } else if now_ms.saturating_sub(self.now.since_ms()) >= WINDOW.as_millis() as u64 {
            self.last = Some(Arc::new(std::mem::replace(&mut self.now, Meter::new(now_ms))));
            self.last_ended_ms = now_ms;
        }
    }
}

impl LoadMeter {
    /// Nothing is counted yet. The map says which rule a name falls under.
    pub fn new(group: GroupId, map: MapWatch) -> Self {
        let windows = Arc::new(Mutex::new(Windows::new(MapEpoch::NONE, 0)));
        Self { group, map, started: Instant::now(), windows }
    }

    fn now_ms(&self) -> u64 {
        self.started.elapsed().as_millis() as u64
    }

    /// Counts an entry that was applied so long after it was proposed, of a name or of none.
    pub(super) fn count(&self, name: Option<&Name>, took: Duration) {
        let map = self.map.borrow();
        let Some(map) = map.as_ref() else { return };
        let mut windows = self.windows.lock();
        windows.turn(map.epoch(), self.now_ms());
        let took_ms = took.as_millis() as u64;
        match name {
            Some(name) => windows.now.count(map, name.internal(), 1, took_ms),
            None => windows.now.count_unnamed(1, took_ms),
        }
    }

    /// The last window that is over, or what there is of the first. `waiters` says how many wait for which name.
    pub(super) fn measured(&self, waiters: &BTreeMap<String, u64>) -> Option<Measured> {
        let map: Arc<PartitionMap> = self.map.borrow().clone()?;
        // Proposals that come back wait for the windows, and not for the report.
        let (meter, ended_ms) = {
            let mut windows = self.windows.lock();
            let now_ms = self.now_ms();
            windows.turn(map.epoch(), now_ms);
            match &windows.last {
                Some(last) => (last.clone(), windows.last_ended_ms),
                None => {
                    let least_ms = windows.now.since_ms() + LEAST.as_millis() as u64;
                    (Arc::new(windows.now.clone()), now_ms.max(least_ms))
                }
            }
        };
        let (group, prefixes) = meter.report(ended_ms, self.group, &map, waiters);
        Some(Measured { epoch: map.epoch(), group, prefixes })
    }
}

impl Group {
    /// What the names of this group cost, if its member knows the map.
    pub(super) fn load(&self) -> Option<Measured> {
        let waiters = self.locks(|table| {
            // A lock and an election of one name stand together wherever they go.
            table.contended().fold(BTreeMap::<String, u64>::new(), |mut all, (name, waiters)| {
                *all.entry(routed_name(name.internal()).to_owned()).or_default() += waiters;
                all
            })
        });
        self.parts.metrics.load().measured(&waiters)
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::watch;

    use super::*;

    fn name(text: &str) -> Name {
        Name::lock(text).unwrap()
    }

    fn meter() -> (LoadMeter, watch::Sender<Option<Arc<PartitionMap>>>) {
        let (tell, map) = watch::channel(None);
        (LoadMeter::new(GroupId(1), map), tell)
    }

    fn map() -> PartitionMap {
        PartitionMap::initial(&[GroupId(1), GroupId(2)]).unwrap()
    }

    fn told(meter: &LoadMeter) -> (u64, Vec<(String, u64, u64)>) {
        let waiters = BTreeMap::from([("jobs/a".to_owned(), 3)]);
        let measured = meter.measured(&waiters).unwrap();
        let line = |load: &PrefixLoad| (load.prefix.clone(), load.entries_per_s, load.waiters);
        (measured.group.entries_per_s, measured.prefixes.iter().map(line).collect())
    }

    #[tokio::test(start_paused = true)]
    async fn the_last_whole_window_is_told() {
        let (meter, tell) = meter();
        meter.count(Some(&name("jobs/a")), Duration::ZERO);
        assert_eq!(meter.measured(&BTreeMap::new()), None, "nothing can be said without a map");
        tell.send_replace(Some(Arc::new(map())));
        for _ in 0..50 {
            meter.count(Some(&name("jobs/a")), Duration::from_millis(7));
        }
        meter.count(None, Duration::from_millis(7));
        let all = [(String::new(), 0, 0), ("jobs/".to_owned(), 100, 3)];
        assert_eq!(told(&meter), (102, all.to_vec()), "a first window counts as half a second at least");
        tokio::time::advance(WINDOW).await;
        meter.count(Some(&name("jobs/b")), Duration::ZERO);
        let all = [(String::new(), 0, 0), ("jobs/".to_owned(), 10, 3)];
        assert_eq!(told(&meter), (10, all.to_vec()), "over the whole window, the new one left out");
        tokio::time::advance(WINDOW).await;
        assert_eq!(told(&meter).0, 0, "one entry in five seconds");
        tokio::time::advance(WINDOW).await;
        assert_eq!(told(&meter).1, [], "what is over is forgotten");
    }

    #[tokio::test(start_paused = true)]
    async fn another_map_begins_anew() {
        let (meter, tell) = meter();
        tell.send_replace(Some(Arc::new(map())));
        for _ in 0..50 {
            meter.count(Some(&name("jobs/a")), Duration::ZERO);
        }
        tokio::time::advance(WINDOW).await;
        assert!(told(&meter).0 > 0);
        let mut parts = map().into_parts();
        parts.epoch = MapEpoch(parts.epoch.0 + 1);
        tell.send_replace(Some(Arc::new(PartitionMap::try_from(parts).unwrap())));
        let measured = meter.measured(&BTreeMap::new()).unwrap();
        assert_eq!((measured.epoch, measured.group.entries_per_s), (MapEpoch(2), 0));
    }
}

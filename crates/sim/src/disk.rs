//! The disk of a simulated member: the node's own log over memory, with an fsync that takes time.
//!
//! What was not fsynced is lost in a crash, but for what the system happened to have written already. Knows no entry.

use holdfast_node::{
    log::memory::{FlushMode, MemoryLog},
    member::ground::Disk,
    snapshot::local::MemorySnapshots,
};
use rand::Rng;

use crate::entropy::Dice;

/// How long an fsync takes, in milliseconds: at least and at most.
pub type Fsync = (u64, u64);

/// A good disk.
const QUICK: Fsync = (1, 2);

/// One disk; it outlives its member's process.
#[derive(Debug)]
pub struct SimDisk {
    log: MemoryLog,
    snapshots: MemorySnapshots,
    dice: Dice,
    fsync: Fsync,
    full: bool,
    /// The fsync under way: when it ends, and how many writes it makes durable.
    under_way: Option<(u64, usize)>,
}

impl SimDisk {
    /// An empty disk.
    #[must_use]
    pub fn new(dice: Dice) -> Self {
        let (log, snapshots) = (MemoryLog::new(FlushMode::Manual), MemorySnapshots::default());
        Self { log, snapshots, dice, fsync: QUICK, full: false, under_way: None }
    }

    /// The disk as a member sees it.
    #[must_use]
    pub fn disk(&self) -> Disk {
        Disk::Memory { log: self.log.clone(), snapshots: self.snapshots.clone() }
    }

    /// The log alone.
    #[must_use]
    pub fn log(&self) -> &MemoryLog {
        &self.log
    }

    /// From here on an fsync takes so long; `None` as a good disk's.
    pub fn set_fsync(&mut self, fsync: Option<Fsync>) {
        self.fsync = fsync.unwrap_or(QUICK);
    }

    /// From here on the disk refuses every write.
    pub fn fill(&mut self) {
        self.full = true;
        self.log.break_disk("no space left on device");
    }

    /// Whether it refuses writes.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.full
    }

    /// There is room again. Call it while no process uses the disk.
    pub fn empty(&mut self) {
        self.full = false;
        self.log.mend_disk();
    }

    /// Time has come: ends the fsync that is due, and begins the next. Call it within the member's runtime.
    pub fn advance(&mut self, now: u64) {
        if let Some((at, writes)) = self.under_way
            && at <= now
        {
            self.under_way = None;
            self.log.flush_some(writes);
        }
        let waiting = self.log.waiting();
        if self.under_way.is_none() && waiting > 0 {
            let (least, most) = self.fsync;
            self.under_way = Some((now + self.dice.random_range(least..=most), waiting));
        }
    }

    /// The machine stops. The oldest of the writes that nobody was told of may have reached the disk.
    pub fn crash(&mut self) {
        self.under_way = None;
        let waiting = self.log.waiting();
        if waiting > 0 && self.dice.random_bool(0.5) {
            let written = self.dice.random_range(0..=waiting);
            self.log.flush_some(written);
        }
        self.log.crash();
    }
}

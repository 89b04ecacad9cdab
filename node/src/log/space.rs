//! How much of the log's file is free, and how much of that goes back to the file system at a time.
//!
//! Purged entries leave free pages, which the next entries take; a file only grows beyond them. So under steady load the
//! file is as large as the log was at its longest, and nothing is given back that would be needed again at once. After a
//! burst, or where groups have left, the rest is given back in steps, each a short transaction of its own: large ones while
//! nobody writes, small ones beside the load. This module decides; `pump` carries it out. It knows no entries.

use tokio_rusqlite::rusqlite::{self, Connection, ErrorCode};

/// Pages given back in one step while nobody writes, 1 MiB: some ten milliseconds, for which a write that comes may wait.
const QUIET_STEP_PAGES: u64 = 256;
/// Free pages that stay for the next entries while nobody writes: 4 MiB.
const QUIET_SPARE_PAGES: u64 = 1_024;
/// Pages given back in one step beside the load: two or three milliseconds.
const BUSY_STEP_PAGES: u64 = 64;
/// Free pages that stay in any case under load: 64 MiB.
const BUSY_SPARE_PAGES: u64 = 16_384;

/// Pages of the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Space {
    /// All of them.
    pub(crate) pages: u64,
    /// Those that hold nothing.
    pub(crate) free: u64,
}

impl Space {
    /// Reads the figures from the file's head.
    pub(crate) fn look(conn: &Connection) -> rusqlite::Result<Space> {
        let read = |sql: &'static str| -> rusqlite::Result<u64> {
            let pages: u32 = conn.prepare_cached(sql)?.query_row([], |row| row.get(0))?;
            Ok(u64::from(pages))
        };
        Ok(Space { pages: read("PRAGMA page_count")?, free: read("PRAGMA freelist_count")? })
    }

    /// How many pages to give back now. Under load three quarters of the file may stay free: between two purges that much
    /// is filled again.
    pub(crate) fn step(self, quiet: bool) -> u64 {
        let (spare, step) = match quiet {
            true => (QUIET_SPARE_PAGES, QUIET_STEP_PAGES),
            false => (BUSY_SPARE_PAGES.max(self.pages / 4 * 3), BUSY_STEP_PAGES),
        };
        self.free.saturating_sub(spare).min(step)
    }
}

/// Gives free pages back, in one transaction; none while a foreign process has the write lock. A file that was made before
/// this was possible keeps all its pages.
pub(crate) fn give_back(conn: &Connection, pages: u64) -> rusqlite::Result<()> {
    let work = || -> rusqlite::Result<()> {
        let mut statement = conn.prepare(&format!("PRAGMA incremental_vacuum({pages})"))?;
        let mut rows = statement.query([])?;
        // One page per row.
        while rows.next()?.is_some() {}
        Ok(())
    };
    match work() {
        Err(err) if err.sqlite_error_code() == Some(ErrorCode::DatabaseBusy) => Ok(()),
        done => done,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quiet_log_gives_back_all_but_a_little_in_steps() {
        let step = |free| Space { pages: 100_000, free }.step(true);
        assert_eq!([step(0), step(1_024), step(1_034), step(90_000)], [0, 0, 10, 256]);
    }

    #[test]
    fn a_busy_log_gives_back_only_what_it_will_hardly_need_in_small_steps() {
        let step = |pages, free| Space { pages, free }.step(false);
        assert_eq!(step(16_000, 15_900), 0, "a small file stays as it is");
        assert_eq!(step(100_000, 75_000), 0, "so much is filled again");
        assert_eq!(step(100_000, 75_010), 10);
        assert_eq!(step(100_000, 99_000), 64);
    }
}

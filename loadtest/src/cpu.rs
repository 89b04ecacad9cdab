//! How much CPU time was used: by this process, and by others as the kernel tells it.

use std::{
    fs,
    time::{Duration, Instant},
};

use nix::{
    sys::resource::{UsageWho, getrusage},
    unistd::{SysconfVar, sysconf},
};

/// CPU time of this process so far; zero where the kernel does not tell.
pub(crate) fn own() -> Duration {
    let Ok(usage) = getrusage(UsageWho::RUSAGE_SELF) else { return Duration::ZERO };
    let of = |time: nix::sys::time::TimeVal| {
        let micros = u64::try_from(time.tv_usec()).unwrap_or(0);
        Duration::from_secs(u64::try_from(time.tv_sec()).unwrap_or(0)) + Duration::from_micros(micros)
    };
    of(usage.user_time()) + of(usage.system_time())
}

/// Measures what other processes use from its start on.
#[derive(Debug)]
pub(crate) struct Meter {
    pids: Vec<u32>,
    begin: Instant,
    before: u64,
}

impl Meter {
    /// Starts to measure these processes.
    pub(crate) fn start(pids: &[u32]) -> Self {
        Self { pids: pids.to_vec(), begin: Instant::now(), before: ticks(pids) }
    }

    /// Their share of one CPU since; `None` where there are none, or the kernel does not tell.
    pub(crate) fn share(&self) -> Option<f64> {
        let per_second = sysconf(SysconfVar::CLK_TCK).ok()??;
        if self.pids.is_empty() || per_second <= 0 {
            return None;
        }
        let used = ticks(&self.pids).saturating_sub(self.before) as f64 / per_second as f64;
        Some(used / self.begin.elapsed().as_secs_f64())
    }
}

/// Measures how busy others keep the machine: everything but this process, the given ones, and their children.
#[derive(Debug)]
pub(crate) struct Others {
    ours: Meter,
    own: Duration,
    busy: u64,
}

impl Others {
    /// Starts to measure.
    pub(crate) fn start(ours: &[u32]) -> Self {
        let with_children: Vec<u32> =
            ours.iter().flat_map(|pid| [vec![*pid], children(*pid)].concat()).collect();
        Self { ours: Meter::start(&with_children), own: own(), busy: busy() }
    }

    /// CPUs that others used since, on average.
    pub(crate) fn cpus(&self) -> f64 {
        let Ok(Some(per_second)) = sysconf(SysconfVar::CLK_TCK) else { return 0.0 };
        let seconds = self.ours.begin.elapsed().as_secs_f64();
        let all = busy().saturating_sub(self.busy) as f64 / per_second.max(1) as f64 / seconds;
        let own = (own() - self.own).as_secs_f64() / seconds;
        (all - own - self.ours.share().unwrap_or(0.0)).max(0.0)
    }
}

/// Ticks in which any CPU was busy.
fn busy() -> u64 {
    busy_in(&fs::read_to_string("/proc/stat").unwrap_or_default()).unwrap_or(0)
}

/// The kernel's line for all CPUs: user, nice, system, idle, iowait, irq, softirq, steal.
fn busy_in(stat: &str) -> Option<u64> {
    let line = stat.lines().find_map(|line| line.strip_prefix("cpu "))?;
    let ticks: Vec<u64> = line.split_whitespace().take(8).filter_map(|field| field.parse().ok()).collect();
    let idle = ticks.get(3)? + ticks.get(4)?;
    Some(ticks.iter().sum::<u64>() - idle)
}

/// The direct children of a process.
pub(crate) fn children(pid: u32) -> Vec<u32> {
    let text = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    text.split_whitespace().filter_map(|pid| pid.parse().ok()).collect()
}

/// Ticks in user and kernel mode that the processes have used; those that are gone count nothing.
fn ticks(pids: &[u32]) -> u64 {
    pids.iter().filter_map(|pid| ticks_in(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)).sum()
}

/// Fields 14 and 15 of the kernel's line; the name, field 2, may contain anything.
fn ticks_in(stat: &str) -> Option<u64> {
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_whitespace().skip(11);
    Some(fields.next()?.parse::<u64>().ok()? + fields.next()?.parse::<u64>().ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_found_behind_any_name() {
        let stat = "7 (a) b (c) S 1 7 7 0 -1 4194304 5 0 0 0 123 45 0 0 20 0 3 0 99";
        assert_eq!(ticks_in(stat), Some(168));
        assert_eq!(ticks_in("nothing"), None);
    }

    #[test]
    fn waiting_is_not_being_busy() {
        let stat = "cpu  10 20 30 4000 500 6 7 8 90 90\ncpu0 1 1 1 1 1 1 1 1 1 1\n";
        assert_eq!(busy_in(stat), Some(10 + 20 + 30 + 6 + 7 + 8));
        assert_eq!(busy_in(""), None);
        assert!(Others::start(&[]).cpus() >= 0.0);
    }

    #[test]
    fn this_process_is_found() {
        let meter = Meter::start(&[std::process::id()]);
        assert!(meter.share().is_some());
        assert_eq!(Meter::start(&[]).share(), None);
    }
}

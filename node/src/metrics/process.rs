//! CPU, memory and descriptors of this process, and which build it is. Reads `/proc`; where that is absent, only the
//! CPU time is reported.

use opentelemetry::{KeyValue, metrics::Meter};

use super::Build;

/// Creates the gauges and counters of the process.
pub(super) fn register(meter: &Meter, build: &Build) {
    let info =
        [KeyValue::new("version", build.version.clone()), KeyValue::new("revision", build.revision.clone())];
    meter
        .u64_observable_gauge("holdfast.build.info")
        .with_description("1, with the version and the source revision of the program")
        .with_callback(move |observer| observer.observe(1, &info))
        .build();
    meter
        .f64_observable_counter("process.cpu.time")
        .with_unit("s")
        .with_description("CPU time of the process, by mode: user, system")
        .with_callback(|observer| {
            if let Some((user, system)) = cpu_seconds() {
                observer.observe(user, &[KeyValue::new("cpu.mode", "user")]);
                observer.observe(system, &[KeyValue::new("cpu.mode", "system")]);
            }
        })
        .build();
    meter
        .u64_observable_gauge("process.memory.usage")
        .with_unit("By")
        .with_description("Physical memory in use by the process")
        .with_callback(|observer| {
            if let Some(bytes) = resident_bytes() {
                observer.observe(bytes, &[]);
            }
        })
        .build();
    meter
        .u64_observable_gauge("process.file_descriptor.open")
        .with_unit("{descriptor}")
        .with_description("Open file descriptors of the process")
        .with_callback(|observer| {
            if let Some(open) = open_descriptors() {
                observer.observe(open, &[]);
            }
        })
        .build();
    meter
        .u64_observable_gauge("process.file_descriptor.limit")
        .with_unit("{descriptor}")
        .with_description("File descriptors the process may open")
        .with_callback(|observer| {
            if let Some(limit) = descriptor_limit() {
                observer.observe(limit, &[]);
            }
        })
        .build();
}

fn cpu_seconds() -> Option<(f64, f64)> {
    use nix::sys::resource::{UsageWho, getrusage};
    let usage = getrusage(UsageWho::RUSAGE_SELF).ok()?;
    let seconds = |t: nix::sys::time::TimeVal| t.tv_sec() as f64 + t.tv_usec() as f64 / 1e6;
    Some((seconds(usage.user_time()), seconds(usage.system_time())))
}

fn resident_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1_024)
}

fn open_descriptors() -> Option<u64> {
    let open = std::fs::read_dir("/proc/self/fd").ok()?.count() as u64;
    // The listing itself holds one.
    Some(open.saturating_sub(1))
}

fn descriptor_limit() -> Option<u64> {
    use nix::sys::resource::{Resource, getrlimit};
    getrlimit(Resource::RLIMIT_NOFILE).ok().map(|(soft, _hard)| soft)
}

//! Bucket bounds of histograms, in seconds. One table per span of time that a thing can take.

/// A disk write and its fsync: 50 µs to 2 s.
pub(super) const DISK: [f64; 15] =
    [0.000_05, 0.000_1, 0.000_2, 0.000_5, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0];

/// Work in memory: 5 µs to 1 s.
pub(super) const MEMORY: [f64; 14] = [
    0.000_005, 0.000_01, 0.000_025, 0.000_05, 0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.05,
    0.2, 1.0,
];

/// A commit or an answer over the network: 200 µs to 30 s.
pub(super) const COMMIT: [f64; 16] =
    [0.000_2, 0.000_5, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0];

/// A wait for a lock, or a request that may wait for one: 1 ms to the longest wait limit of 1 h.
pub(super) const WAIT: [f64; 18] = [
    0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 900.0,
    3600.0,
];

/// A hold: 1 ms to a day.
pub(super) const HOLD: [f64; 18] = [
    0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 900.0, 3600.0, 14_400.0,
    43_200.0, 86_400.0,
];

/// Something that should take seconds and may take minutes: 10 ms to 10 min.
pub(super) const MINUTES: [f64; 15] =
    [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0];

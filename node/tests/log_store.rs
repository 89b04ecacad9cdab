//! The log store against openraft's conformance suite, and against crashes, full disks and wrong folders.
#![allow(clippy::unwrap_used, clippy::expect_used)] // clippy allows them in tests, but not in what tests share

#[path = "log_store/conformance.rs"]
mod conformance;
#[path = "log_store/crash.rs"]
mod crash;
#[path = "log_store/damage.rs"]
mod damage;
#[path = "log_store/durability.rs"]
mod durability;
#[path = "log_store/failing_disk.rs"]
mod failing_disk;
#[path = "log_store/install.rs"]
mod install;
#[path = "log_store/memory.rs"]
mod memory;
#[path = "log_store/opening.rs"]
mod opening;
#[path = "log_store/place.rs"]
mod place;
#[path = "log_store/space.rs"]
mod space;
#[path = "log_store/support.rs"]
mod support;
#[path = "log_store/wait.rs"]
mod wait;

//! The parts of the simulation by themselves, and that its checks find what they are for.
//!
//! All in one program: whatever is built for the simulation takes long.
#![cfg(tokio_unstable)]
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod parts {
    mod chance;
    mod fence;
    mod host;
    mod linear;
    mod log;
    mod native;
    mod steady;
    mod watch;
    mod wire;
}

//! A member as a process of its own, without `holdfast dev` above it.

use std::{path::Path, process::Child};

use crate::harness::holdfast;

/// Ended when dropped, and with the test that started it in whatever way that ends.
pub(crate) struct Process(pub Child);

impl Process {
    /// Starts the member with this configuration, after `prepare` has had its way with the command.
    pub(crate) fn start(config: &Path, prepare: impl FnOnce(&mut std::process::Command)) -> Self {
        let mut command = holdfast();
        command.args(["node", "--config"]).arg(config).arg(format!("--parent-pid={}", std::process::id()));
        prepare(&mut command);
        Self(command.spawn().unwrap())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

//! What a cluster is to be like, before it starts.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use crate::{Cluster, FaultError};

/// Shape of a cluster and the faults that its members must be prepared for. Pauses, kills and partitions need no
/// preparation.
///
/// ```no_run
/// # fn example() -> Result<(), holdfast_faults::FaultError> {
/// let cluster = holdfast_faults::Plan::new("target/debug/holdfast").members(3).switches().start()?;
/// cluster.switch(1)?.delay_syncs(std::time::Duration::from_millis(200))?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Plan {
    pub(crate) binary: PathBuf,
    pub(crate) members: u16,
    pub(crate) groups: u16,
    pub(crate) switches: bool,
    pub(crate) small_disks: Option<u32>,
    pub(crate) settings: BTreeMap<String, String>,
}

impl Plan {
    /// Three members with two lock groups, of this binary of Holdfast.
    pub fn new(binary: impl AsRef<Path>) -> Self {
        Self {
            binary: binary.as_ref().to_owned(),
            members: 3,
            groups: 2,
            switches: false,
            small_disks: None,
            settings: BTreeMap::new(),
        }
    }

    /// How many members, 1 to 5.
    #[must_use]
    pub const fn members(mut self, members: u16) -> Self {
        self.members = members;
        self
    }

    /// How many lock groups.
    #[must_use]
    pub const fn groups(mut self, groups: u16) -> Self {
        self.groups = groups;
        self
    }

    /// Prepares slow, failing and full disks, and steps of the wall clock: see [`Cluster::switch`].
    #[must_use]
    pub const fn switches(mut self) -> Self {
        self.switches = true;
        self
    }

    /// Puts the data folder of each member on a tmpfs of its own, of so many MiB: see [`Cluster::small_disk`].
    #[must_use]
    pub const fn small_disks(mut self, size_mib: u32) -> Self {
        self.small_disks = Some(size_mib);
        self
    }

    /// Sets one value of every member's configuration, as `raft.heartbeat_interval`.
    #[must_use]
    pub fn set(mut self, key: &str, value: &str) -> Self {
        self.settings.insert(key.to_owned(), value.to_owned());
        self
    }

    /// Starts the cluster and waits until it serves.
    ///
    /// # Errors
    /// [`FaultError::Impossible`] where the machine lacks what a prepared fault needs; members that do not start.
    pub fn start(self) -> Result<Cluster, FaultError> {
        Cluster::start(self)
    }
}

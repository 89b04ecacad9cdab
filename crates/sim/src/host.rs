//! One simulated process: tasks of its own on a runtime of its own, under virtual time that stands still between steps.
//!
//! All processes of a run share one thread; each runs only while [`Host::run`] lets it. So a process is paused by not
//! running it, and crashes by being dropped, with every task in it. Knows nothing of members, clients or networks.

use std::{future::Future, io, time::Duration};

use tokio::{
    runtime::{Builder, Handle, RngSeed, Runtime},
    task::LocalSet,
};

/// A multiple of every number of lists that a runtime of one thread keeps its tasks in.
const LISTS: u64 = 64;

/// Makes this run's tasks have the numbers that they would have in a process of its own, as far as that matters: a runtime
/// that ends drops its tasks list by list, and which list one is in depends on its number, which the process counts.
///
/// # Errors
/// When the system refuses a runtime, or tasks have no numbers any more.
pub fn align_task_numbers() -> io::Result<()> {
    let runtime = Builder::new_current_thread().build()?;
    for _ in 0..LISTS {
        // An id shows its number, and has no other way to tell it.
        let number: u64 = runtime.spawn(async {}).id().to_string().parse().map_err(io::Error::other)?;
        if number.is_multiple_of(LISTS) {
            return Ok(());
        }
    }
    Err(io::Error::other("tasks are not numbered one by one"))
}

/// One simulated process.
#[derive(Debug)]
pub struct Host {
    /// Dropped before the runtime, and within it.
    tasks: Option<LocalSet>,
    runtime: Runtime,
}

impl Host {
    /// A process without tasks. The seed decides whatever the runtime decides by chance.
    ///
    /// # Errors
    /// When the system refuses a runtime.
    pub fn start(seed: u64) -> io::Result<Self> {
        let runtime = Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .rng_seed(RngSeed::from_bytes(&seed.to_le_bytes()))
            .build()?;
        Ok(Self { tasks: Some(LocalSet::new()), runtime })
    }

    /// What others need to start tasks here.
    #[must_use]
    pub fn handle(&self) -> &Handle {
        self.runtime.handle()
    }

    /// Adds a task; it begins with the next [`Host::run`].
    pub fn spawn(&self, task: impl Future<Output = ()> + 'static) {
        if let Some(tasks) = &self.tasks {
            tasks.spawn_local(task);
        }
    }

    /// Lets the process run for so many milliseconds of its own time.
    pub fn run(&self, ms: u64) {
        if let Some(tasks) = &self.tasks {
            self.runtime
                .block_on(tasks.run_until(async { tokio::time::sleep(Duration::from_millis(ms)).await }));
        }
    }

    /// The process was stopped for so long and is running again: time has passed at once.
    pub fn skip(&self, ms: u64) {
        if let Some(tasks) = &self.tasks {
            self.runtime
                .block_on(tasks.run_until(async { tokio::time::advance(Duration::from_millis(ms)).await }));
        }
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        let _within = self.runtime.enter();
        drop(self.tasks.take());
    }
}

//! One thread that starts all child processes of a cluster.
//!
//! The kernel's parent-death signal is tied to the *thread* that started a child, not to its process: children started
//! from short-lived threads of a test would die with these. The thread has a mount namespace of its own once it mounts
//! anything, which its children share and which is gone with them.

use std::{
    io,
    process::{Child, Command},
    sync::mpsc,
    thread::JoinHandle,
};

use crate::FaultError;

type Job = Box<dyn FnOnce() + Send>;

/// Starts processes that die with it.
#[derive(Debug)]
pub(crate) struct Spawner {
    jobs: Option<mpsc::Sender<Job>>,
    thread: Option<JoinHandle<()>>,
    id: nix::unistd::Pid,
}

impl Spawner {
    pub(crate) fn start() -> Result<Self, FaultError> {
        let (jobs, inbox) = mpsc::channel::<Job>();
        let (tell, told) = mpsc::channel();
        let work = move || {
            // Whoever asked waits for it.
            let _ = tell.send(nix::unistd::gettid());
            inbox.into_iter().for_each(|job| job());
        };
        let thread = std::thread::Builder::new().name("faults-spawner".into()).spawn(work);
        let thread = thread.map_err(FaultError::system("start the thread of child processes"))?;
        let id = told.recv().map_err(|_| gone())?;
        Ok(Self { jobs: Some(jobs), thread: Some(thread), id })
    }

    /// Runs `work` on the thread and answers what it gives.
    pub(crate) fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, FaultError> {
        let (tell, told) = mpsc::channel();
        let job = Box::new(move || {
            let _ = tell.send(work());
        });
        self.jobs.as_ref().and_then(|jobs| jobs.send(job).ok()).ok_or_else(gone)?;
        told.recv().map_err(|_| gone())
    }

    pub(crate) fn spawn(&self, mut command: Command) -> Result<Child, FaultError> {
        let act = format!("start {}", command.get_program().display());
        self.run(move || command.spawn())?.map_err(FaultError::system(act))
    }

    /// The root folder as the thread and its children see it, for everybody else.
    pub(crate) fn root(&self) -> std::path::PathBuf {
        format!("/proc/{}/task/{}/root", std::process::id(), self.id).into()
    }
}

impl Drop for Spawner {
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn gone() -> FaultError {
    FaultError::system("use the thread of child processes")(io::Error::other("it has ended"))
}

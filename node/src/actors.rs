//! Where actors run: one thread per role in a member, or the caller's own task set in a simulation.
//!
//! An actor is started through [`ActorHost::spawn_actor`] and never finds out which it was. This module knows no actor
//! by name, and nothing in this crate uses actix' registry, `SyncArbiter` or `System::current`, none of which exist in a
//! simulation.

use std::{
    io,
    sync::{Arc, mpsc},
    thread,
};

use actix::{Actor, Addr, Context, Message};
use actix_rt::{Arbiter, ArbiterHandle, System};
use parking_lot::Mutex;
use tokio::sync::oneshot;

/// What an actor does, and so on which thread it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Control of the log.
    Log,
    /// Deadlines of sessions and waits.
    Lease,
    /// Delivery of events.
    Watch,
    /// Snapshots.
    Snapshot,
}

/// Tells an actor of a group to end: the group is not on this member any more.
#[derive(Clone, Copy, Debug, Message)]
#[rtype(result = "()")]
pub struct Retire;

/// Asks an actor of a group whether it still answers. Stands in line behind all that the actor was sent before.
#[derive(Clone, Copy, Debug, Message)]
#[rtype(result = "()")]
pub struct Pulse;

/// Where actors are started. Clones are the same host.
#[derive(Clone, Debug)]
pub enum ActorHost {
    /// On the thread of their role.
    Threads(Arc<Arbiters>),
    /// On the `LocalSet` that the caller runs in, under its clock.
    Local,
}

impl ActorHost {
    /// Starts threads for all roles.
    ///
    /// # Errors
    /// When the system refuses a thread.
    pub fn threads() -> io::Result<ActorHost> {
        Ok(ActorHost::Threads(Arc::new(Arbiters::start()?)))
    }

    /// Starts `actor`. With [`ActorHost::Local`] the caller must run within a `LocalSet`.
    pub fn spawn_actor<A>(&self, role: Role, actor: A) -> Addr<A>
    where
        A: Actor<Context = Context<A>> + Send,
    {
        match self {
            ActorHost::Threads(arbiters) => A::start_in_arbiter(arbiters.of(role), move |_ctx| actor),
            ActorHost::Local => actor.start(),
        }
    }
}

/// Number of roles.
const ROLES: usize = 4;

/// One thread per role, and one on which their actix system runs.
#[derive(Debug)]
pub struct Arbiters {
    log: ArbiterHandle,
    lease: ArbiterHandle,
    watch: ArbiterHandle,
    snapshot: ArbiterHandle,
    running: Mutex<Option<Running>>,
}

#[derive(Debug)]
struct Running {
    /// Dropped to end the system.
    stop: oneshot::Sender<()>,
    thread: thread::JoinHandle<()>,
}

impl Arbiters {
    /// Starts the threads.
    ///
    /// # Errors
    /// When the system refuses a thread.
    pub fn start() -> io::Result<Arbiters> {
        let (sender, receiver) = mpsc::channel();
        let (stop, stopped) = oneshot::channel();
        let thread =
            thread::Builder::new().name("actors".to_owned()).spawn(move || run_system(&sender, stopped))?;
        let ended = |_| io::Error::other("the actor system ended while it was starting");
        let Ok([log, lease, watch, snapshot]) =
            <[ArbiterHandle; ROLES]>::try_from(receiver.recv().map_err(ended)??)
        else {
            return Err(io::Error::other("the actor system has the wrong number of threads"));
        };
        let running = Mutex::new(Some(Running { stop, thread }));
        Ok(Arbiters { log, lease, watch, snapshot, running })
    }

    fn of(&self, role: Role) -> &ArbiterHandle {
        match role {
            Role::Log => &self.log,
            Role::Lease => &self.lease,
            Role::Watch => &self.watch,
            Role::Snapshot => &self.snapshot,
        }
    }

    /// Ends all actors and waits for their threads. Not to be called from an actor. Without it they end when the last
    /// host is dropped, and nobody waits.
    pub fn stop(&self) {
        let running = self.running.lock().take();
        if let Some(Running { stop, thread }) = running {
            drop(stop);
            if thread.join().is_err() {
                tracing::warn!("the actor system ended with a panic");
            }
        }
    }
}

/// The life of the thread that owns the actix system.
fn run_system(started: &mpsc::Sender<io::Result<Vec<ArbiterHandle>>>, stopped: oneshot::Receiver<()>) {
    System::new().block_on(async {
        let arbiters: io::Result<Vec<Arbiter>> = (0..ROLES).map(|_role| Arbiter::try_new()).collect();
        let (arbiters, handles) = match arbiters {
            Ok(arbiters) => {
                let handles = arbiters.iter().map(Arbiter::handle).collect();
                (arbiters, Ok(handles))
            }
            Err(err) => (Vec::new(), Err(err)),
        };
        if started.send(handles).is_err() || arbiters.is_empty() {
            return;
        }
        // Ends when the sender is dropped; nothing is ever sent.
        drop(stopped.await);
        for arbiter in arbiters {
            arbiter.stop();
            if arbiter.join().is_err() {
                tracing::warn!("an actor thread ended with a panic");
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use actix::{Handler, Message};

    use super::*;

    struct Where;

    #[derive(Message)]
    #[rtype(result = "String")]
    struct ThreadName;

    impl Actor for Where {
        type Context = Context<Self>;
    }

    impl Handler<ThreadName> for Where {
        type Result = String;

        fn handle(&mut self, _: ThreadName, _ctx: &mut Context<Self>) -> String {
            format!("{:?}", thread::current().id())
        }
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn each_role_has_a_thread_of_its_own() {
        let host = ActorHost::threads().unwrap();
        let mut threads = std::collections::BTreeSet::new();
        for role in [Role::Log, Role::Lease, Role::Watch, Role::Snapshot] {
            let first = host.spawn_actor(role, Where).send(ThreadName).await.unwrap();
            let second = host.spawn_actor(role, Where).send(ThreadName).await.unwrap();
            assert_eq!(first, second);
            threads.insert(first);
        }
        assert_eq!(threads.len(), 4);
        let ActorHost::Threads(arbiters) = host else { unreachable!() };
        tokio::task::spawn_blocking(move || arbiters.stop()).await.unwrap();
    }

    #[tokio::test(flavor = "current_thread", start_paused = true)]
    async fn a_simulation_runs_actors_on_its_own_thread() {
        let here = format!("{:?}", thread::current().id());
        let local = tokio::task::LocalSet::new();
        let there = local
            .run_until(async { ActorHost::Local.spawn_actor(Role::Lease, Where).send(ThreadName).await })
            .await
            .unwrap();
        assert_eq!(here, there);
    }
}

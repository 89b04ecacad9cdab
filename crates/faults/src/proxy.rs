//! TCP proxies that misbehave on demand, each direction by itself.
//!
//! A held direction keeps its sockets open and forwards nothing: whoever sends sees what a network sees that drops
//! packets without a word. What was held is delivered when the link heals, as TCP would repeat it. Knows bytes only.

mod carry;

use std::{io, net::SocketAddr, sync::Arc, thread::JoinHandle, time::Duration};

use tokio::{
    net::{TcpListener, TcpStream},
    runtime::{Builder, Handle},
    sync::{oneshot, watch},
    task::JoinSet,
};

use crate::{FaultError, wait_for};

/// How long opening or closing a link's door may take.
const APPLIED_WITHIN: Duration = Duration::from_secs(10);
/// Pause before a port that is still in use is tried again.
const BIND_AGAIN_AFTER: Duration = Duration::from_millis(10);

/// What happens to bytes of one direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// They are forwarded.
    Pass,
    /// They are kept back, and forwarded once the direction passes again.
    Hold,
    /// They are forwarded so much later.
    Delay(Duration),
}

/// A direction of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// From whoever connects to the target.
    There,
    /// From the target to whoever connected.
    Back,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted {
    open: bool,
    there: Flow,
    back: Flow,
    /// Connections of an earlier generation are reset.
    generation: u64,
    /// Counts changes, so that one can be waited for.
    change: u64,
}

impl Wanted {
    pub(crate) const fn flow(&self, way: Way) -> Flow {
        match way {
            Way::There => self.there,
            Way::Back => self.back,
        }
    }
}

/// The thread that all links run on. Links end with it.
#[derive(Debug)]
pub struct Network {
    runtime: Handle,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Network {
    /// Starts the thread.
    ///
    /// # Errors
    /// The system has no thread to give.
    pub fn start() -> Result<Self, FaultError> {
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(FaultError::system("start the network"))?;
        let handle = runtime.handle().clone();
        let (stop, stopped) = oneshot::channel();
        let run = move || {
            let _ = runtime.block_on(stopped);
        };
        let thread = std::thread::Builder::new().name("faults-network".into()).spawn(run);
        let thread = thread.map_err(FaultError::system("start the network"))?;
        Ok(Self { runtime: handle, stop: Some(stop), thread: Some(thread) })
    }

    /// A link that listens on `address` and leads to `target`. It passes everything until told otherwise.
    ///
    /// # Errors
    /// The address cannot be listened on.
    pub fn link(&self, address: SocketAddr, target: SocketAddr) -> Result<Link, FaultError> {
        let start = Wanted { open: true, there: Flow::Pass, back: Flow::Pass, generation: 0, change: 0 };
        let (wanted, watched) = watch::channel(start);
        let (applied, done) = watch::channel(None);
        self.runtime.spawn(serve(address, target, watched, applied));
        let link = Link { inner: Arc::new(Inner { address, target, wanted, done }) };
        link.wait_applied(0)?;
        Ok(link)
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// One link. Clones are the same link.
#[derive(Clone, Debug)]
pub struct Link {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    address: SocketAddr,
    target: SocketAddr,
    wanted: watch::Sender<Wanted>,
    /// The last change that is in effect at the door.
    done: watch::Receiver<Option<u64>>,
}

impl Link {
    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.inner.address
    }

    /// Where it leads.
    pub fn target(&self) -> SocketAddr {
        self.inner.target
    }

    /// Changes one direction.
    pub fn set(&self, way: Way, flow: Flow) {
        self.change(|wanted| match way {
            Way::There => wanted.there = flow,
            Way::Back => wanted.back = flow,
        });
    }

    /// Holds both directions: a half-open connection.
    pub fn hold(&self) {
        self.change(|wanted| (wanted.there, wanted.back) = (Flow::Hold, Flow::Hold));
    }

    /// Delays both directions.
    pub fn delay(&self, by: Duration) {
        self.change(|wanted| (wanted.there, wanted.back) = (Flow::Delay(by), Flow::Delay(by)));
    }

    /// Resets all connections; new ones are welcome.
    pub fn reset(&self) {
        self.change(|wanted| wanted.generation += 1);
    }

    /// Resets all connections and refuses new ones. In effect when it returns.
    ///
    /// # Errors
    /// The network has ended.
    pub fn refuse(&self) -> Result<(), FaultError> {
        self.wait_applied(self.change(|wanted| {
            wanted.open = false;
            wanted.generation += 1;
        }))
    }

    /// Passes everything again. Connections can be made when it returns.
    ///
    /// # Errors
    /// The network has ended, or somebody else listens on the address now.
    pub fn heal(&self) -> Result<(), FaultError> {
        self.wait_applied(self.change(|wanted| {
            (wanted.open, wanted.there, wanted.back) = (true, Flow::Pass, Flow::Pass);
        }))
    }

    fn change(&self, change: impl FnOnce(&mut Wanted)) -> u64 {
        let mut number = 0;
        self.inner.wanted.send_modify(|wanted| {
            change(wanted);
            wanted.change += 1;
            number = wanted.change;
        });
        number
    }

    fn wait_applied(&self, change: u64) -> Result<(), FaultError> {
        wait_for(&format!("the link at {} follows", self.inner.address), APPLIED_WITHIN, || {
            (*self.inner.done.borrow() >= Some(change)).then_some(())
        })
    }
}

/// Opens and closes the door, and carries connections until the link's last handle is gone.
async fn serve(
    address: SocketAddr,
    target: SocketAddr,
    mut wanted: watch::Receiver<Wanted>,
    applied: watch::Sender<Option<u64>>,
) {
    let mut connections = JoinSet::new();
    let mut door: Option<TcpListener> = None;
    loop {
        let now = *wanted.borrow_and_update();
        if !now.open {
            door = None;
        } else if door.is_none() {
            match TcpListener::bind(address).await {
                Ok(listener) => door = Some(listener),
                Err(_) => {
                    tokio::time::sleep(BIND_AGAIN_AFTER).await;
                    continue;
                }
            }
        }
        applied.send_replace(Some(now.change));
        tokio::select! {
            biased;
            changed = wanted.changed() => if changed.is_err() { return },
            accepted = accept(door.as_ref()) => if let Ok(stream) = accepted {
                connections.spawn(carry::carry(stream, target, wanted.clone(), now.generation));
            },
            Some(_) = connections.join_next() => {}
        }
    }
}

async fn accept(door: Option<&TcpListener>) -> io::Result<TcpStream> {
    match door {
        Some(door) => door.accept().await.map(|(stream, _)| stream),
        None => std::future::pending().await,
    }
}

//! A way to a server that fails as it is told.

use std::net::SocketAddr;

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, copy, copy_bidirectional},
    net::{TcpListener, TcpStream},
    sync::watch,
    task::JoinSet,
};

/// What befalls a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// The server is busy, and says so.
    SlowDown,
    /// Nothing comes back.
    Hang,
    /// It is lost after so many bytes to the server.
    Cut {
        /// The bytes.
        after_bytes: u64,
    },
    /// It is lost after so many bytes from the server.
    CutAnswer {
        /// The bytes.
        after_bytes: u64,
    },
}

const SLOW_DOWN: &[u8] = b"HTTP/1.1 503 Slow Down\r\nContent-Type: application/xml\r\nContent-Length: 79\r\n\
    Connection: close\r\n\r\n<Error><Code>SlowDown</Code><Message>Reduce your request rate</Message></Error>";

/// The way, for as long as this lives.
#[derive(Debug)]
pub(super) struct Proxy {
    address: SocketAddr,
    /// The fault, and how many more connections it befalls.
    plan: watch::Sender<Option<(Fault, u32)>>,
    _serving: JoinSet<()>,
}

impl Proxy {
    /// A way without faults.
    pub(super) async fn start(server: SocketAddr) -> Proxy {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (plan, _) = watch::channel(None);
        let mut serving = JoinSet::new();
        serving.spawn(serve(listener, server, plan.clone()));
        Proxy { address, plan, _serving: serving }
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Ends all connections; the next `times` have this fault.
    pub(super) fn fail(&self, fault: Fault, times: u32) {
        self.plan.send_replace(Some((fault, times)));
    }

    /// Ends all connections; the next ones are well.
    pub(super) fn heal(&self) {
        self.plan.send_replace(None);
    }
}

async fn serve(listener: TcpListener, server: SocketAddr, plan: watch::Sender<Option<(Fault, u32)>>) {
    let mut connections = JoinSet::new();
    while let Ok((client, _)) = listener.accept().await {
        let mut fault = None;
        // Counting does not end the connections that are there.
        plan.send_if_modified(|plan| {
            if let Some((planned, times)) = plan
                && *times > 0
            {
                *times -= 1;
                fault = Some(*planned);
            }
            false
        });
        let mut changed = plan.subscribe();
        connections.spawn(async move {
            tokio::select! {
                biased;
                _ = changed.changed() => {}
                _ = carry(client, server, fault) => {}
            }
        });
    }
}

async fn carry(mut client: TcpStream, server: SocketAddr, fault: Option<Fault>) -> std::io::Result<()> {
    match fault {
        None => {
            let mut server = TcpStream::connect(server).await?;
            copy_bidirectional(&mut client, &mut server).await?;
        }
        Some(Fault::Hang) => std::future::pending().await,
        Some(Fault::SlowDown) => {
            let mut request = [0; 65_536];
            let _begin = client.read(&mut request).await?;
            client.write_all(SLOW_DOWN).await?;
            client.shutdown().await?;
            copy(&mut client, &mut tokio::io::sink()).await?;
        }
        Some(Fault::Cut { after_bytes }) => {
            let mut server = TcpStream::connect(server).await?;
            let ((from_client, mut to_client), (mut from_server, mut to_server)) =
                (client.split(), server.split());
            let mut some = from_client.take(after_bytes);
            tokio::select! {
                _ = copy(&mut some, &mut to_server) => {}
                _ = copy(&mut from_server, &mut to_client) => {}
            }
        }
        Some(Fault::CutAnswer { after_bytes }) => {
            let mut server = TcpStream::connect(server).await?;
            let ((mut from_client, mut to_client), (from_server, mut to_server)) =
                (client.split(), server.split());
            let mut some = from_server.take(after_bytes);
            tokio::select! {
                _ = copy(&mut some, &mut to_client) => {}
                _ = copy(&mut from_client, &mut to_server) => {}
            }
        }
    }
    Ok(())
}

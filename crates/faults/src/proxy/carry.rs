//! One connection through a link: bytes, ends and errors of each direction travel only while that direction passes.

use std::{net::SocketAddr, os::fd::AsFd as _, time::Duration};

use socket2::SockRef;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{
        TcpStream,
        tcp::{ReadHalf, WriteHalf},
    },
    sync::{mpsc, watch},
    time::{Instant, sleep_until},
};

use super::{Flow, Wanted, Way};

const CHUNK: usize = 64 * 1024;
/// Chunks of one direction that may be on their way; then the sender has to wait, as with any full pipe.
const ON_THE_WAY: usize = 64;

type Chunk = (Instant, Vec<u8>);

/// Carries one connection until both directions have ended, or the link resets it.
pub(super) async fn carry(
    near: TcpStream,
    target: SocketAddr,
    wanted: watch::Receiver<Wanted>,
    generation: u64,
) {
    let _ = near.set_nodelay(true);
    let mut reset = wanted.clone();
    let handle = near.as_fd().try_clone_to_owned();
    let through = async {
        // A connection request is the first thing that a held direction holds.
        passes(&mut wanted.clone(), Way::There, Instant::now()).await;
        let Ok(mut far) = TcpStream::connect(target).await else { return };
        let _ = far.set_nodelay(true);
        // Borrowed halves: one that is owned says goodbye when it is dropped, and a reset says nothing.
        let mut near = near;
        let (near_read, near_write) = near.split();
        let (far_read, far_write) = far.split();
        tokio::join!(
            direction(near_read, far_write, wanted.clone(), Way::There),
            direction(far_read, near_write, wanted.clone(), Way::Back),
        );
    };
    tokio::select! {
        biased;
        // The same when the link is gone.
        _ = reset.wait_for(|wanted| wanted.generation != generation) => {
            // A close that waits for nothing is a reset.
            if let Ok(handle) = handle {
                let _ = SockRef::from(&handle).set_linger(Some(Duration::ZERO));
            }
        }
        () = through => {}
    }
}

async fn direction(from: ReadHalf<'_>, to: WriteHalf<'_>, wanted: watch::Receiver<Wanted>, way: Way) {
    let (send, receive) = mpsc::channel(ON_THE_WAY);
    tokio::join!(read(from, send), write(receive, to, wanted, way));
}

async fn read(mut from: ReadHalf<'_>, send: mpsc::Sender<Chunk>) {
    let mut buffer = vec![0; CHUNK];
    // The end of the stream, and a broken one, are told by dropping the channel.
    while let Ok(length @ 1..) = from.read(&mut buffer).await {
        let chunk = buffer.get(..length).unwrap_or_default().to_vec();
        if send.send((Instant::now(), chunk)).await.is_err() {
            return;
        }
    }
}

async fn write(
    mut receive: mpsc::Receiver<Chunk>,
    mut to: WriteHalf<'_>,
    mut wanted: watch::Receiver<Wanted>,
    way: Way,
) {
    while let Some((read_at, chunk)) = receive.recv().await {
        passes(&mut wanted, way, read_at).await;
        if to.write_all(&chunk).await.is_err() {
            return;
        }
    }
    passes(&mut wanted, way, Instant::now()).await;
    let _ = to.shutdown().await;
}

/// Waits until what was read at `read_at` may go on.
async fn passes(wanted: &mut watch::Receiver<Wanted>, way: Way, read_at: Instant) {
    loop {
        let flow = wanted.borrow_and_update().flow(way);
        match flow {
            Flow::Pass => return,
            Flow::Hold => {
                if wanted.changed().await.is_err() {
                    return;
                }
            }
            Flow::Delay(by) => {
                tokio::select! {
                    biased;
                    () = sleep_until(read_at + by) => return,
                    _ = wanted.changed() => {}
                }
            }
        }
    }
}

//! A connection that carries bytes both ways, as TCP does: in order, once, late rather than never, and until one end is
//! gone.
//!
//! A cut holds bytes back, and they arrive when it has healed. Whoever sends to an end that is gone is told so after a
//! while, as by a reset. Nothing else breaks a connection: that nobody answers any more is for either end to notice.

use std::{
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, Waker},
};

use bytes::{Buf, Bytes, BytesMut};
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tonic::transport::server::Connected;

use super::{Network, Node};

/// What has arrived at one end.
#[derive(Debug, Default)]
struct End {
    inbox: BytesMut,
    /// The other end sends no more.
    ended: bool,
    /// The other end has gone, and said so.
    broken: bool,
    /// This end has gone.
    gone: bool,
    reader: Option<Waker>,
}

/// What travels.
enum News {
    Bytes(Bytes),
    Ended,
    Broken,
}

/// One end of a connection. Dropping it ends the connection.
#[derive(Debug)]
pub struct Wire {
    network: Network,
    here: Node,
    there: Node,
    mine: Arc<Mutex<End>>,
    theirs: Arc<Mutex<End>>,
    /// Written, and not flushed yet.
    outgoing: BytesMut,
    /// When the last parcel arrives.
    last: u64,
    /// Nothing more is sent.
    shut: bool,
}

impl Wire {
    /// The two ends of a connection, the first one's and the second one's.
    #[must_use]
    pub fn pair(network: &Network, (one, other): (Node, Node)) -> (Self, Self) {
        let (near, far) = (Arc::<Mutex<End>>::default(), Arc::<Mutex<End>>::default());
        let end = |here, there, mine, theirs| Self {
            network: network.clone(),
            here,
            there,
            mine,
            theirs,
            outgoing: BytesMut::new(),
            last: 0,
            shut: false,
        };
        (end(one, other, near.clone(), far.clone()), end(other, one, far, near))
    }

    /// Nothing of it arrives before this moment.
    pub(super) fn not_before(&mut self, at: u64) {
        self.last = self.last.max(at);
    }

    fn send(&mut self, kind: &'static str, news: News) {
        let (here, there) = (self.here, self.there);
        let (network, mine, theirs) = (self.network.clone(), self.mine.clone(), self.theirs.clone());
        let work = move |_: Option<&super::Seat>| {
            let missed = matches!(news, News::Bytes(_));
            if !tell(&theirs, news) && missed {
                let broken = move |_: Option<&super::Seat>| {
                    tell(&mine, News::Broken);
                };
                network.send_surely(there, here, "reset", 0, Box::new(broken));
            }
        };
        self.last = self.network.send_surely(here, there, kind, self.last, Box::new(work));
    }

    fn flush(&mut self) {
        if !self.outgoing.is_empty() {
            let bytes = self.outgoing.split().freeze();
            self.send("bytes", News::Bytes(bytes));
        }
    }

    fn shut(&mut self) {
        if !self.shut {
            self.shut = true;
            self.flush();
            self.send("end", News::Ended);
        }
    }
}

/// Something arrives at an end. Answers whether there still is one.
fn tell(end: &Mutex<End>, news: News) -> bool {
    let mut end = end.lock();
    if end.gone {
        return false;
    }
    match news {
        News::Bytes(bytes) => end.inbox.extend_from_slice(&bytes),
        News::Ended => end.ended = true,
        News::Broken => end.broken = true,
    }
    let reader = end.reader.take();
    drop(end);
    if let Some(reader) = reader {
        reader.wake();
    }
    true
}

impl Drop for Wire {
    fn drop(&mut self) {
        self.mine.lock().gone = true;
        self.shut();
    }
}

impl AsyncRead for Wire {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let mut end = self.mine.lock();
        if end.broken {
            return Poll::Ready(Err(io::ErrorKind::ConnectionReset.into()));
        }
        if end.inbox.is_empty() && !end.ended {
            end.reader = Some(cx.waker().clone());
            return Poll::Pending;
        }
        let some = end.inbox.len().min(into.remaining());
        into.put_slice(&end.inbox[..some]);
        end.inbox.advance(some);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Wire {
    fn poll_write(mut self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        if self.mine.lock().broken || self.shut {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        }
        self.outgoing.extend_from_slice(bytes);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.flush();
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.shut();
        Poll::Ready(Ok(()))
    }
}

impl Connected for Wire {
    type ConnectInfo = ();

    fn connect_info(&self) {}
}

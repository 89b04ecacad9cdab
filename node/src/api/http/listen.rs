//! The listening socket: opened early, so that a busy port is known before anything else starts.

use std::{
    io,
    net::{SocketAddr, TcpListener},
    time::Duration,
};

use socket2::{Domain, Protocol, SockRef, Socket, TcpKeepalive, Type};

/// Connections that wait to be accepted; more than a burst of clients after a fail-over.
const BACKLOG: i32 = 1_024;

/// A silent connection is probed after this long, and given up after three probes 10 s apart: so a waiting client whose
/// machine has vanished is noticed within a minute.
const PROBE_AFTER: Duration = Duration::from_secs(30);
const PROBE_EVERY: Duration = Duration::from_secs(10);
const PROBES: u32 = 3;

/// Why there is no listening socket.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen for http on {address} (port {port}): {cause}", port = .address.port())]
pub struct ListenError {
    /// Where.
    pub address: SocketAddr,
    /// Why not.
    #[source]
    pub cause: io::Error,
}

/// Opens a listening socket. Port 0 takes a free one.
///
/// # Errors
/// The address is in use, not this machine's, or not allowed; the message names address and port.
pub fn listen(address: SocketAddr) -> Result<TcpListener, ListenError> {
    open(address).map_err(|cause| ListenError { address, cause })
}

fn open(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    // Takes the address over from connections that still close; a second listener is refused all the same.
    socket.set_reuse_address(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    Ok(socket.into())
}

/// Sets what accepted connections inherit: no delay of small answers, probes of silent ones.
pub(super) fn tune(listener: &TcpListener) -> io::Result<()> {
    let socket = SockRef::from(listener);
    socket.set_tcp_nodelay(true)?;
    socket.set_tcp_keepalive(
        &TcpKeepalive::new().with_time(PROBE_AFTER).with_interval(PROBE_EVERY).with_retries(PROBES),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_busy_port_is_named() {
        let first = listen(SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
        let address = first.local_addr().unwrap();
        let error = listen(address).unwrap_err();
        assert_eq!(error.cause.kind(), io::ErrorKind::AddrInUse);
        assert!(error.to_string().contains(&format!("127.0.0.1:{}", address.port())), "{error}");
    }
}

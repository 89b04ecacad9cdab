//! The block of ports of a local cluster: who listens where, and whether those ports are free.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};

use crate::failure::Failure;

/// Ports of one cluster.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Block {
    base: u16,
    members: u16,
}

/// A listener of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Listener {
    /// API, metrics.
    Http,
    /// gRPC.
    Grpc,
    /// Raft.
    Peer,
}

impl Listener {
    const ALL: [Self; 3] = [Self::Http, Self::Grpc, Self::Peer];

    const fn offset(self) -> u16 {
        match self {
            Self::Http => 0,
            Self::Grpc => 1,
            Self::Peer => 2,
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Http => "HTTP",
            Self::Grpc => "gRPC",
            Self::Peer => "peer",
        }
    }
}

impl Block {
    /// The block from `base` on for this many members.
    pub(crate) fn new(base: u16, members: u16) -> Result<Self, Failure> {
        let last = u32::from(base) + 10 * u32::from(members) + 2;
        if last > u32::from(u16::MAX) {
            return Err(Failure::usage(format!(
                "--base-port {base} is too high: {members} members would need ports up to {last}"
            )));
        }
        Ok(Self { base, members })
    }

    /// Where a member listens; members count from 1.
    pub(crate) fn address(self, number: u16, listener: Listener) -> SocketAddr {
        SocketAddr::from((Ipv4Addr::LOCALHOST, self.base + 10 * number + listener.offset()))
    }

    /// URLs of one listener of all members.
    pub(crate) fn urls(self, listener: Listener) -> Vec<String> {
        (1..=self.members).map(|number| format!("http://{}", self.address(number, listener))).collect()
    }

    /// HTTP addresses of all members.
    pub(crate) fn http_addresses(self) -> Vec<SocketAddr> {
        (1..=self.members).map(|number| self.address(number, Listener::Http)).collect()
    }

    /// How many members there are.
    pub(crate) const fn members(self) -> u16 {
        self.members
    }

    /// Names every port that somebody else uses.
    pub(crate) fn check_free(self) -> Result<(), Failure> {
        let mut busy = Vec::new();
        for number in 1..=self.members {
            for listener in Listener::ALL {
                let address = self.address(number, listener);
                if let Err(e) = TcpListener::bind(address) {
                    busy.push(format!(
                        "port {} ({} of member {number}): {e}",
                        address.port(),
                        listener.name()
                    ));
                }
            }
        }
        if busy.is_empty() {
            return Ok(());
        }
        Err(Failure::other(format!(
            "nothing was started, because ports cannot be used; choose another block with --base-port\n  {}",
            busy.join("\n  ")
        )))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_have_ten_ports_each_after_the_base() {
        let block = Block::new(7600, 3).unwrap();
        assert_eq!(block.address(1, Listener::Http).port(), 7610);
        assert_eq!(block.address(3, Listener::Peer).port(), 7632);
        assert_eq!(block.urls(Listener::Grpc)[1], "http://127.0.0.1:7621");
        assert!(Block::new(65_500, 4).is_err());
    }

    #[test]
    fn a_busy_port_is_named() {
        let taken = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = taken.local_addr().unwrap().port();
        let error = Block { base: port - 11, members: 1 }.check_free().unwrap_err().to_string();
        assert!(error.contains(&format!("port {port} (gRPC of member 1)")), "{error}");
    }
}

//! A block of 100 ports per cluster: 10i, 10i+1 and 10i+2 for member i's listeners, the rest for links.

use std::{
    net::{Ipv4Addr, SocketAddr, TcpListener},
    ops::Range,
};

use crate::FaultError;

/// Blocks that are tried: below the ports that systems give out by themselves.
const BLOCKS: Range<u16> = 100..300;
const SIZE: u16 = 100;
/// First port of a block that no member listens on.
const FIRST_SIDE: u16 = 60;
/// Most members of one cluster, so that listeners and links fit.
pub(crate) const MOST_MEMBERS: u16 = 5;

/// The ports of one cluster.
#[derive(Debug)]
pub(crate) struct Block {
    base: u16,
    next_side: u16,
}

impl Block {
    /// A block that looks free, not among the first `skip` ones tried.
    pub(crate) fn find(skip: u16) -> Result<Self, FaultError> {
        let first = std::process::id() as u16;
        let blocks = (skip..BLOCKS.len() as u16)
            .map(|attempt| BLOCKS.start + first.wrapping_add(attempt * 7) % BLOCKS.len() as u16);
        for block in blocks {
            let base = block * SIZE;
            if (0..SIZE).all(|port| TcpListener::bind(local(base + port)).is_ok()) {
                return Ok(Self { base, next_side: FIRST_SIDE });
            }
        }
        Err(FaultError::NoPorts { first: BLOCKS.start * SIZE, last: BLOCKS.end * SIZE })
    }

    pub(crate) fn http(&self, member: u16) -> SocketAddr {
        local(self.base + 10 * member)
    }

    pub(crate) fn grpc(&self, member: u16) -> SocketAddr {
        local(self.base + 10 * member + 1)
    }

    pub(crate) fn peer(&self, member: u16) -> SocketAddr {
        local(self.base + 10 * member + 2)
    }

    /// Where member `from` reaches the peer listener of member `to`.
    pub(crate) fn link(&self, from: u16, to: u16) -> SocketAddr {
        local(self.base + 10 * from + 2 + to)
    }

    /// A port for a client's link.
    pub(crate) fn side(&mut self) -> Result<SocketAddr, FaultError> {
        let port = self.next_side;
        if port >= SIZE {
            return Err(FaultError::NoPorts { first: self.base + FIRST_SIDE, last: self.base + SIZE - 1 });
        }
        self.next_side += 1;
        Ok(local(self.base + port))
    }
}

fn local(port: u16) -> SocketAddr {
    (Ipv4Addr::LOCALHOST, port).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_uses_share_a_port() {
        let mut block = Block { base: 10_000, next_side: FIRST_SIDE };
        let mut ports = Vec::new();
        for member in 1..=MOST_MEMBERS {
            ports.extend([block.http(member), block.grpc(member), block.peer(member)]);
            ports.extend((1..=MOST_MEMBERS).filter(|to| *to != member).map(|to| block.link(member, to)));
        }
        ports.extend((FIRST_SIDE..SIZE).map(|_| block.side().unwrap()));
        let all = ports.len();
        ports.sort();
        ports.dedup();
        assert_eq!(ports.len(), all);
        assert!(block.side().is_err(), "a block has an end");
    }
}

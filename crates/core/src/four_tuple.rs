//! Where a datagram came from and which of our addresses it was sent to, or the same on the way out.

use core::net::{IpAddr, SocketAddr};

/// The addresses of a datagram: the remote end and, where the system provides it, the local one.
///
/// A host may have several addresses. An answer must leave from the address that was asked, or the other
/// end, and every NAT and firewall on the way, discards it. So a server remembers the local address of the
/// datagrams that it receives and passes it on with its answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FourTuple {
    /// The other end.
    pub remote: SocketAddr,
    /// Our own address; `None` if it is unknown, and then the system chooses. The port is that of the
    /// socket.
    pub local: Option<IpAddr>,
    /// What carries the datagrams; `None` is the socket.
    pub carried: Option<Carried>,
}

/// Something else than the socket that carries the datagrams of one peer, such as a session of WebTransport.
/// The peer's address is the one that this transport has for it. A peer of the socket may have the same
/// address and port, so the number is part of the path: neither is taken for the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Carried {
    /// Which one. No two that are open at the same time have the same number.
    pub number: u32,
    /// The transport has exchanged data with the peer at its address, so that nobody else can be flooded in
    /// its name.
    pub is_proven: bool,
}

impl FourTuple {
    /// To or from `remote`, with any of our addresses.
    #[must_use]
    pub const fn new(remote: SocketAddr) -> Self {
        Self { remote, local: None, carried: None }
    }

    /// Whether this is the remote end. The flow label and the scope of an IPv6 address are ignored: the
    /// first is not part of the address, and the second is a name that only this host uses.
    #[doc(hidden)]
    #[must_use]
    pub fn has_remote(&self, remote: SocketAddr) -> bool {
        self.remote.ip() == remote.ip() && self.remote.port() == remote.port()
    }

    /// Whether both have the same remote end, reached by the same transport.
    #[doc(hidden)]
    #[must_use]
    pub fn has_remote_of(&self, other: Self) -> bool {
        let number = |path: &Self| path.carried.map(|carried| carried.number);
        self.has_remote(other.remote) && number(self) == number(&other)
    }
}

impl From<SocketAddr> for FourTuple {
    fn from(remote: SocketAddr) -> Self {
        Self::new(remote)
    }
}

#[cfg(test)]
mod tests {
    use core::net::{Ipv6Addr, SocketAddrV6};

    use super::*;

    #[test]
    fn flow_label_and_scope_are_no_part_of_a_remote() {
        let at = |flow, scope, port| {
            let ip = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 1);
            SocketAddr::V6(SocketAddrV6::new(ip, port, flow, scope))
        };
        assert!(FourTuple::new(at(7, 2, 4000)).has_remote(at(0, 0, 4000)));
        assert!(!FourTuple::new(at(0, 0, 4000)).has_remote(at(0, 0, 4001)));
    }

    #[test]
    fn a_carried_peer_is_no_peer_of_the_socket_and_no_other_carried_peer() {
        let path = |number: Option<u32>, port| {
            let carried = number.map(|number| Carried { number, is_proven: number > 1 });
            FourTuple { carried, ..FourTuple::new(([192, 0, 2, 1], port).into()) }
        };
        assert!(path(None, 9).has_remote_of(path(None, 9)));
        assert!(path(Some(1), 9).has_remote_of(path(Some(1), 9)));
        assert!(!path(Some(1), 9).has_remote_of(path(Some(1), 8)), "its address has changed");
        for other in [path(None, 9), path(Some(2), 9)] {
            assert!(
                !path(Some(1), 9).has_remote_of(other) && !other.has_remote_of(path(Some(1), 9))
            );
        }
    }
}

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
}

impl FourTuple {
    /// To or from `remote`, with any of our addresses.
    #[must_use]
    pub const fn new(remote: SocketAddr) -> Self {
        Self { remote, local: None }
    }

    /// Whether this is the remote end. The flow label and the scope of an IPv6 address are ignored: the
    /// first is not part of the address, and the second is a name that only this host uses.
    #[doc(hidden)]
    #[must_use]
    pub fn has_remote(&self, remote: SocketAddr) -> bool {
        self.remote.ip() == remote.ip() && self.remote.port() == remote.port()
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
}

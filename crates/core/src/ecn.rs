//! The two bits of the IP header by which a router says that a queue is long, without a drop (RFC 3168).

/// The ECN field of a datagram's IP header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Ecn {
    /// Not ECN-capable; or the transport does not report it.
    #[default]
    NotEct,
    /// ECN-capable, for which a mark is as rare as a drop would be.
    Ect0,
    /// ECN-capable, for which a mark comes as soon as there is a queue (L4S, RFC 9331).
    Ect1,
    /// A router has found the queue too long.
    Ce,
}

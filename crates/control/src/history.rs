//! What the caller remembers of the datagrams that it has sent.

#[cfg(test)]
pub(crate) mod tests;

use haulier_core::Instant;

use crate::units::Bytes;

/// Which path of a connection a datagram was sent on: the first, the one after a change of address, and so
/// on. They wrap: nothing is left of a path 256 changes of address ago.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathId(u8);

impl PathId {
    /// That of the address a handshake was made with.
    pub const FIRST: Self = Self(0);

    /// That of the path which takes its place.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0.wrapping_add(1))
    }
}

/// A datagram that was sent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sent {
    /// Its number.
    pub number: u64,
    /// When it was sent.
    pub at: Instant,
    /// Its bytes with the headers of UDP and IP; 0 for one that says nothing of the path, as a probe for
    /// larger datagrams.
    pub bytes: Bytes,
    /// It is acknowledged.
    pub is_acked: bool,
}

/// The datagrams that were sent, by number. Each transport remembers them anyway, until it knows what became
/// of them; here it is asked for those of the last round trips.
pub trait History {
    /// The datagram of this number; `None` if it was never sent, or is forgotten.
    fn get(&self, number: u64) -> Option<Sent>;

    /// Those from this number on that are remembered, in the order of their numbers.
    fn from(&self, number: u64) -> impl Iterator<Item = Sent>;

    /// The number of the next datagram.
    fn next_number(&self) -> u64;
}

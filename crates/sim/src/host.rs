//! Hosts of the world: machines, and abilities that only simulated ones have.

use std::any::Any;
use std::net::SocketAddr;

use haulier_core::{Instant, Machine};

/// A machine in the [`World`](crate::World), usually with an application.
///
/// A type that implements [`Machine`] becomes a host by an empty `impl`. The methods are for attackers, and
/// for tests that check the state after each step.
pub trait Host: Machine + Any {
    /// The next datagram with a source address of the host's choice. Called until it returns `None`, before
    /// the machine's own datagrams are taken.
    fn poll_shot(&mut self) -> Option<Shot> {
        None
    }

    /// A datagram for another host passes this one. It continues as this method leaves it, and is dropped if
    /// it is empty then. Only called on [observers](crate::World::observe).
    fn meddle(
        &mut self,
        _now: Instant,
        _from: SocketAddr,
        _to: SocketAddr,
        _datagram: &mut Vec<u8>,
    ) {
    }

    /// Panics if something is inconsistent.
    fn check_invariants(&self) {}
}

impl Host for haulier_article::PeerMachine {
    fn check_invariants(&self) {
        self.peer.check_invariants();
    }
}

/// A datagram with a source address of the sender's choice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shot {
    /// Its claimed source; `None` for the true one.
    pub from: Option<SocketAddr>,
    /// Its destination.
    pub to: SocketAddr,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

impl Shot {
    /// From the sender's own address.
    #[must_use]
    pub const fn own(to: SocketAddr, bytes: Vec<u8>) -> Self {
        Self { from: None, to, bytes }
    }

    /// From another host's address.
    #[must_use]
    pub const fn spoofed(from: SocketAddr, to: SocketAddr, bytes: Vec<u8>) -> Self {
        Self { from: Some(from), to, bytes }
    }
}

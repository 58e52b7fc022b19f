//! What lives in the world: machines, and what only a simulated one can do.

use std::any::Any;
use std::net::SocketAddr;

use haulier_core::{Instant, Machine};

/// A machine in the [`World`](crate::World), usually with an application round it.
///
/// Whatever implements [`Machine`] is a host by an empty `impl`. The rest is for attackers, and for tests
/// that look inside after each step.
pub trait Host: Machine + Any {
    /// The next datagram that claims to come from an address of the host's choice. Asked, until there is
    /// none, before the machine's own are taken.
    fn poll_shot(&mut self) -> Option<Shot> {
        None
    }

    /// A datagram passes that is not for this host, which sits on everybody's path: the datagram goes on as
    /// this leaves it, and not at all if it is empty then. Only asked of hosts that were made
    /// [observers](crate::World::observe).
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

/// A datagram with a source of the sender's choice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shot {
    /// Where it claims to come from; `None` is the truth.
    pub from: Option<SocketAddr>,
    /// Where it goes.
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

    /// From somebody else's.
    #[must_use]
    pub const fn spoofed(from: SocketAddr, to: SocketAddr, bytes: Vec<u8>) -> Self {
        Self { from: Some(from), to, bytes }
    }
}

//! A server, its clients and strangers on the [`Internet`](crate::Internet): what a join of haulier/1 is
//! measured and attacked with.
//!
//! [`ServerHost`] gives every client that asks the block it was made with, and meters what it sends before
//! an address is proven. [`ClientHost`] notes what it hears and when.

pub mod attack;
mod client;
pub mod crowd;
mod meter;
mod server;

pub use client::ClientHost;
pub use meter::AmplificationMeter;
pub use server::UNIX_TIME;
pub use server::{Answer, ServerHost};

use std::net::{Ipv4Addr, SocketAddr};

use haulier_proto::Instant;

use crate::Host;

/// The protocol id of everything simulated.
pub const PROTOCOL_ID: u64 = 0x6861_756c_6965_7231;

/// Somebody on the internet.
pub enum JoinHost {
    /// The server.
    Server(Box<ServerHost>),
    /// An honest client.
    Client(Box<ClientHost>),
    /// A program that means no good.
    Other(Box<dyn Host>),
}

impl std::fmt::Debug for JoinHost {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Server(_) => "Server",
            Self::Client(_) => "Client",
            Self::Other(_) => "Other",
        })
    }
}

impl JoinHost {
    /// The client.
    ///
    /// # Panics
    /// If it is none.
    #[must_use]
    pub fn client(&self) -> &ClientHost {
        match self {
            Self::Client(client) => client,
            _ => panic!("{self:?} is no client"),
        }
    }

    /// The client, to act on.
    ///
    /// # Panics
    /// If it is none.
    #[must_use]
    pub fn client_mut(&mut self) -> &mut ClientHost {
        match self {
            Self::Client(client) => client,
            _ => panic!("{self:?} is no client"),
        }
    }

    /// The server.
    ///
    /// # Panics
    /// If it is none.
    #[must_use]
    pub fn server(&self) -> &ServerHost {
        match self {
            Self::Server(server) => server,
            _ => panic!("{self:?} is no server"),
        }
    }

    /// The server, to act on.
    ///
    /// # Panics
    /// If it is none.
    #[must_use]
    pub fn server_mut(&mut self) -> &mut ServerHost {
        match self {
            Self::Server(server) => server,
            _ => panic!("{self:?} is no server"),
        }
    }

    fn inner(&self) -> &dyn Host {
        match self {
            Self::Server(server) => &**server,
            Self::Client(client) => &**client,
            Self::Other(other) => &**other,
        }
    }

    fn inner_mut(&mut self) -> &mut dyn Host {
        match self {
            Self::Server(server) => &mut **server,
            Self::Client(client) => &mut **client,
            Self::Other(other) => &mut **other,
        }
    }
}

impl Host for JoinHost {
    fn handle_datagram(&mut self, now: Instant, from: SocketAddr, datagram: &mut [u8]) {
        self.inner_mut().handle_datagram(now, from, datagram);
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.inner_mut().handle_timeout(now);
    }

    fn poll_transmit(&mut self, now: Instant, datagram: &mut Vec<u8>) -> Option<SocketAddr> {
        self.inner_mut().poll_transmit(now, datagram)
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.inner().poll_timeout()
    }

    fn spoofed_source(&self) -> Option<SocketAddr> {
        self.inner().spoofed_source()
    }

    fn overhear(&mut self, now: Instant, from: SocketAddr, to: SocketAddr, datagram: &[u8]) {
        self.inner_mut().overhear(now, from, to, datagram);
    }

    fn meddle(&mut self, now: Instant, from: SocketAddr, to: SocketAddr, datagram: &mut Vec<u8>) {
        self.inner_mut().meddle(now, from, to, datagram);
    }

    fn check_invariants(&self) {
        self.inner().check_invariants();
    }
}

/// The address of the `n`th host of a simulation: 10.x.y.z, port 4000.
#[must_use]
pub fn address(n: u32) -> SocketAddr {
    SocketAddr::from((Ipv4Addr::from_bits(10 << 24 | (n & 0xff_ffff)), 4000))
}

//! The rule of three, measured from outside: what a server sends to an address before that is proven.
//!
//! The meter believes nothing the server says of itself. An address is proven when the server took a data
//! datagram from it, which nobody can make who has not received there, or a request with a cookie.

use std::collections::HashMap;
use std::net::SocketAddr;

use haulier_proto::internals::Kind;

/// What went in and out of an address that is not proven.
#[derive(Clone, Copy, Debug, Default)]
struct Flow {
    bytes_in: u64,
    bytes_out: u64,
    datagrams_in: u64,
    datagrams_out: u64,
    proven: bool,
}

/// Counts what a server sends to whom.
#[derive(Clone, Debug, Default)]
pub struct AmplificationMeter {
    flows: HashMap<SocketAddr, Flow>,
    worst_bytes: f64,
    worst_datagrams: f64,
    to_silent: u64,
}

impl AmplificationMeter {
    /// The server got this; `taken` says whether it was of use.
    pub fn on_received(&mut self, from: SocketAddr, datagram: &[u8], bytes: usize, taken: bool) {
        let flow = self.flows.entry(from).or_default();
        flow.bytes_in += bytes as u64;
        flow.datagrams_in += 1;
        let proves = match Kind::of(datagram) {
            Ok(Kind::Data { .. }) => taken,
            Ok(Kind::Request) => taken && datagram.get(11).is_some_and(|&cookie| cookie > 0),
            _ => false,
        };
        flow.proven |= proves;
    }

    /// The server sends this.
    pub fn on_sent(&mut self, to: SocketAddr, bytes: usize) {
        let flow = self.flows.entry(to).or_default();
        if flow.proven {
            return;
        }
        flow.bytes_out += bytes as u64;
        flow.datagrams_out += 1;
        if flow.bytes_in == 0 {
            self.to_silent += bytes as u64;
            return;
        }
        self.worst_bytes = self.worst_bytes.max(flow.bytes_out as f64 / flow.bytes_in as f64);
        let datagrams = flow.datagrams_out as f64 / flow.datagrams_in as f64;
        self.worst_datagrams = self.worst_datagrams.max(datagrams);
    }

    /// Bytes out for bytes in, the worst prefix of any address that was not proven.
    #[must_use]
    pub const fn worst_bytes(&self) -> f64 {
        self.worst_bytes
    }

    /// The same in datagrams.
    #[must_use]
    pub const fn worst_datagrams(&self) -> f64 {
        self.worst_datagrams
    }

    /// Bytes sent to an address that nothing ever came from.
    #[must_use]
    pub const fn to_silent(&self) -> u64 {
        self.to_silent
    }

    /// Bytes sent to this address while it was not proven.
    #[must_use]
    pub fn unproven_bytes_to(&self, address: SocketAddr) -> u64 {
        self.flows.get(&address).map_or(0, |flow| flow.bytes_out)
    }

    /// Panics if the rule was broken.
    pub fn check(&self) {
        assert!(self.worst_bytes <= 3.0, "{} bytes out for one in", self.worst_bytes);
        assert!(self.worst_datagrams <= 3.0, "{} datagrams for one", self.worst_datagrams);
        assert_eq!(self.to_silent, 0, "bytes to somebody who never spoke");
    }
}

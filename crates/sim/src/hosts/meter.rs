//! The amplification limit, measured from outside: what a server sends to an address before it is validated.
//!
//! The meter does not rely on the server's own state. An address is validated when the server verified a
//! data datagram from it, kept or not, which requires receiving at that address, or a request with a cookie.

use std::collections::HashMap;
use std::net::SocketAddr;

use haulier_proto::internals::Kind;

/// The traffic of an address that is not validated.
#[derive(Clone, Copy, Debug, Default)]
struct Flow {
    bytes_in: u64,
    bytes_out: u64,
    datagrams_in: u64,
    datagrams_out: u64,
    proven: bool,
}

/// Counts what a server sends to each address.
#[derive(Clone, Debug, Default)]
pub struct AmplificationMeter {
    flows: HashMap<SocketAddr, Flow>,
    worst_bytes: f64,
    worst_datagrams: f64,
    to_silent: u64,
}

impl AmplificationMeter {
    /// The server received this datagram; `taken` is whether it was verified.
    pub fn on_received(&mut self, from: SocketAddr, datagram: &[u8], bytes: usize, taken: bool) {
        let flow = self.flows.entry(from).or_default();
        flow.bytes_in += bytes as u64;
        flow.datagrams_in += 1;
        let proves = match Kind::of(datagram) {
            Ok(Kind::Data { .. }) => taken,
            Ok(Kind::Request) => taken && datagram.get(14).is_some_and(|&cookie| cookie > 0),
            _ => false,
        };
        flow.proven |= proves;
    }

    /// The server sends this datagram.
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

    /// The maximum ratio of bytes sent to bytes received, over all times and addresses not validated.
    #[must_use]
    pub const fn worst_bytes(&self) -> f64 {
        self.worst_bytes
    }

    /// The maximum ratio of datagrams sent to datagrams received, over all times and addresses not validated.
    #[must_use]
    pub const fn worst_datagrams(&self) -> f64 {
        self.worst_datagrams
    }

    /// Bytes sent to addresses that nothing was received from.
    #[must_use]
    pub const fn to_silent(&self) -> u64 {
        self.to_silent
    }

    /// Bytes sent to this address while it was not validated.
    #[must_use]
    pub fn unproven_bytes_to(&self, address: SocketAddr) -> u64 {
        self.flows.get(&address).map_or(0, |flow| flow.bytes_out)
    }

    /// Panics if the limit was exceeded.
    pub fn check(&self) {
        assert!(self.worst_bytes <= 3.0, "{} bytes out for one in", self.worst_bytes);
        assert!(self.worst_datagrams <= 3.0, "{} datagrams for one", self.worst_datagrams);
        assert_eq!(self.to_silent, 0, "bytes to addresses that sent nothing");
    }
}

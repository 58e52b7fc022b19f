//! The two ends of a timed transfer: a server that sends blocks, and a client that receives them.

mod article;
mod haulier;

pub(crate) use article::{Article, First};
pub(crate) use haulier::Haulier;

use std::net::SocketAddr;
use std::time::Duration;

use haulier_proto::Instant;
use haulier_proto::connection::Block;
use haulier_sim::{Access, Framed, Rng, SegmentId, World, address};

/// The addresses of the server and the client.
pub(crate) fn addresses() -> (SocketAddr, SocketAddr) {
    (address(1), address(2))
}

/// The accesses of the two.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Homes {
    pub(crate) server: SegmentId,
    pub(crate) client: SegmentId,
}

impl Homes {
    pub(crate) fn new(world: &mut World, server: &Access, client: &Access) -> Self {
        Self { server: world.add_segment(server), client: world.add_segment(client) }
    }
}

/// Two hosts of a world, of any protocol.
pub(crate) trait Ends {
    /// The number of blocks that the client has received, and when the last of them was complete.
    fn received(&self, world: &World) -> (usize, Instant);

    /// The number of slices that the server has sent.
    fn slices_sent(&self, world: &World) -> u64;

    /// Whether everything that the server sent is acknowledged.
    fn is_done(&self, world: &World) -> bool;

    /// Why the transfer failed, if it did.
    fn failure(&self, _world: &World) -> Option<String> {
        None
    }

    /// Sends another block.
    fn send(&self, _world: &mut World, _block: &Block) {}

    /// Bytes that the client's socket dropped.
    fn dropped_bytes(&self, _world: &World) -> u64 {
        0
    }
}

/// How a client reads its socket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reading {
    /// The interval between reads, and between sends; with zero at once.
    pub every: Duration,
    /// Datagrams that the socket's buffer holds between two reads; the rest is dropped. `None` is no limit.
    pub holds: Option<usize>,
}

impl Reading {
    /// A host whose socket is read this way; the first read is at a random time in the first interval. The
    /// host gets the arrival time of each datagram, as with kernel timestamps.
    pub(crate) fn socket<H>(self, host: H, seed: u64) -> Framed<H> {
        let phase = Rng::stream(seed, 91).below(self.every.as_nanos() as u64);
        let socket = Framed::new(host, self.every, Instant::from_nanos(phase)).stamped();
        socket.holding(self.holds.unwrap_or(usize::MAX))
    }
}

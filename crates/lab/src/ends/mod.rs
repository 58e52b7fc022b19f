//! The two ends of a transfer, as a stop-watch sees them: a server that has blocks, a client that wants them.

mod article;
mod haulier;

pub(crate) use article::{Article, First};
pub(crate) use haulier::Haulier;

use std::net::SocketAddr;
use std::time::Duration;

use haulier_proto::Instant;
use haulier_proto::connection::Block;
use haulier_sim::{Access, Framed, Rng, SegmentId, World, address};

/// Where the server is, and where the client.
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

/// Two hosts of a world, whatever they speak.
pub(crate) trait Ends {
    /// Blocks that the client has received, and when the last of them was whole.
    fn received(&self, world: &World) -> (usize, Instant);

    /// Slices that the server has sent.
    fn slices_sent(&self, world: &World) -> u64;

    /// Whether the server knows that everything it was to send is there.
    fn is_done(&self, world: &World) -> bool;

    /// Why nothing more can come of it, if so.
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
    /// From one read to the next, and from one send; zero is at once.
    pub every: Duration,
    /// Datagrams that the socket's buffer holds between two reads; the rest is dropped. `None` is no limit.
    pub holds: Option<usize>,
}

impl Reading {
    /// A host behind a socket that is read so; the first read is somewhere in the first interval. The host
    /// is told when each datagram came, as kernels do.
    pub(crate) fn socket<H>(self, host: H, seed: u64) -> Framed<H> {
        let phase = Rng::stream(seed, 91).below(self.every.as_nanos() as u64);
        let socket = Framed::new(host, self.every, Instant::from_nanos(phase)).stamped();
        socket.holding(self.holds.unwrap_or(usize::MAX))
    }
}

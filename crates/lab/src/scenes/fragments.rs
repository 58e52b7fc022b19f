//! The block as fragments: packets that are too large for a datagram are cut, and one that misses a fragment
//! is thrown away and sent again as a whole (*Packet Fragmentation and Reassembly*).
//!
//! Both ends are the endpoint of the article's packet layer, whose acks say which packets arrived. Each send
//! of a packet is a chunk of its own in the take, because nothing that came of one is of use to the next.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use haulier_article::Instant;
use haulier_article::endpoint::{Endpoint, EndpointConfig, EndpointEvent};
use haulier_article::fragment::{FRAGMENT_BYTES, FragmentPool, MAX_FRAGMENTS};
use haulier_article::packet::numbered::NUMBERED_HEADER_BYTES;
use haulier_core::time::earliest;
use haulier_core::{Batch, FourTuple, Machine, Sequence};
use haulier_sim::{Host, HostId, World};

use super::Scene;
use super::article::{ASKS_EVERY, REQUEST};
use crate::ends::{Homes, addresses};

/// Bytes of the block in a packet of the maximum number of fragments. The first byte of a packet is its
/// number, because a packet whose ack was lost comes twice.
const PACKET_BYTES: usize = MAX_FRAGMENTS * FRAGMENT_BYTES - NUMBERED_HEADER_BYTES - 1;

/// How many packets a block of this length is.
pub(super) const fn packets(bytes: usize) -> usize {
    bytes.div_ceil(PACKET_BYTES)
}

/// One end: the server's has packets to send, the client's asks for them.
pub(super) struct End {
    endpoint: Endpoint,
    pool: FragmentPool,
    path: FourTuple,
    /// What a server answers with, until it is asked.
    answer: Vec<Vec<u8>>,
    /// Packets on their way, and under which sequence.
    under_way: Vec<(Sequence, Vec<u8>)>,
    /// When a client asks next; `None` once something arrived.
    asks_at: Option<Instant>,
    /// When each packet was whole, at a client, by number.
    whole: BTreeMap<u8, Instant>,
}

impl End {
    fn new(scene: &Scene, remote: SocketAddr) -> Self {
        let config = EndpointConfig::default().with_loss_timeout(patience(scene));
        let config = config.with_max_queued_bytes(4 << 20);
        Self {
            endpoint: Endpoint::new(config).expect("a configuration that can work"),
            pool: FragmentPool::default(),
            path: FourTuple::new(remote),
            answer: Vec::new(),
            under_way: Vec::new(),
            asks_at: None,
            whole: BTreeMap::new(),
        }
    }

    /// All of it goes at once, and what was lost once more.
    fn turn(&mut self, now: Instant) {
        while let Some(event) = self.endpoint.poll_event() {
            let is_it =
                |sequence: Sequence| move |(sent, _): &(Sequence, Vec<u8>)| *sent == sequence;
            match event {
                EndpointEvent::Acked { sequence } => {
                    self.under_way.retain(|packet| !is_it(sequence)(packet));
                }
                EndpointEvent::Lost { sequence } => {
                    let lost = self.under_way.iter().position(is_it(sequence));
                    self.answer.extend(lost.map(|lost| self.under_way.remove(lost).1));
                    self.send(now);
                }
                _ => {}
            }
        }
    }

    fn send(&mut self, now: Instant) {
        for packet in std::mem::take(&mut self.answer) {
            let sequence = self.endpoint.send(now, &packet).expect("room for the block");
            self.under_way.push((sequence, packet));
        }
    }
}

/// The time after which a packet counts as lost: twice what the link takes for the block, and a round trip.
fn patience(scene: &Scene) -> Duration {
    let sending = Duration::from_secs_f64(scene.bytes as f64 * 8.0 / scene.rate_bps as f64);
    sending * 2 + Duration::from_millis(scene.rtt_ms + scene.jitter_ms + 100)
}

impl Machine for End {
    fn handle_datagram(&mut self, now: Instant, _path: FourTuple, datagram: &mut [u8]) {
        self.asks_at = None;
        if datagram == REQUEST {
            // A second request finds nothing more to send.
            return self.send(now);
        }
        // A datagram that is dropped is a normal result, and counted.
        if let Ok(Some(delivery)) = self.endpoint.handle_datagram(now, datagram, &mut self.pool) {
            let number = delivery.accept().first().copied().unwrap_or_default();
            self.whole.entry(number).or_insert(now);
        }
        self.turn(now);
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.endpoint.handle_timeout(now);
        self.turn(now);
    }

    fn poll_transmit(&mut self, now: Instant, batch: &mut Batch) {
        if self.asks_at.is_some_and(|at| at <= now) {
            self.asks_at = Some(now + ASKS_EVERY);
            batch.push(self.path, REQUEST);
        }
        self.endpoint.poll_transmit(now, self.path, batch);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        earliest(self.endpoint.poll_timeout(), self.asks_at)
    }
}

impl Host for End {
    fn check_invariants(&self) {
        self.endpoint.check_invariants();
    }
}

/// Both ends.
pub(super) struct Fragments {
    server: HostId<End>,
    client: HostId<End>,
    packets: usize,
}

impl Fragments {
    pub(super) fn new(world: &mut World, homes: Homes, scene: &Scene, block: &[u8]) -> Self {
        let (at_server, at_client) = addresses();
        let mut server = End::new(scene, at_client);
        let packet = |(number, data): (usize, &[u8])| [&[number as u8], data].concat();
        server.answer = block.chunks(PACKET_BYTES).enumerate().map(packet).collect();
        let mut client = End::new(scene, at_server);
        client.asks_at = Some(Instant::ZERO);
        Self {
            server: world.add_behind(server, at_server, homes.server),
            client: world.add_behind(client, at_client, homes.client),
            packets: packets(block.len()),
        }
    }

    /// When the client had every packet, if it has.
    pub(super) fn whole(&self, world: &World) -> Option<Instant> {
        let whole = &world.host(self.client).whole;
        (whole.len() == self.packets).then(|| whole.values().max().copied()).flatten()
    }

    /// Whether the server knows that.
    pub(super) fn is_over(&self, world: &World) -> bool {
        let server = world.host(self.server);
        self.whole(world).is_some() && server.under_way.is_empty() && server.answer.is_empty()
    }
}

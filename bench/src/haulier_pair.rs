//! haulier: two `Endpoint`s. Every datagram has a crc32 of its bytes, made and checked; a packet above
//! 1200 bytes has one over the whole besides. Duplicates are refused, each packet sent is reported as
//! acked or lost, and round trip, loss and bandwidth are kept. Sends from the game's own buffer, and lends
//! the payload out where it lies: no allocation per packet.

use std::time::Duration;

use haulier_article::Instant;
use haulier_article::endpoint::{Endpoint, EndpointConfig, EndpointEvent};
use haulier_article::fragment::FragmentPool;

use crate::{Pair, Payload, TICK, Wire};

struct End {
    endpoint: Endpoint,
    pool: FragmentPool,
}

/// Two endpoints.
pub struct HaulierPair {
    now: Instant,
    a: End,
    b: End,
    datagram: Vec<u8>,
    wire: Wire,
    acked: u64,
}

impl HaulierPair {
    /// Both ends as they come.
    ///
    /// # Panics
    /// Never: the default configuration is a good one.
    #[must_use]
    pub fn new() -> Self {
        let end = || End {
            endpoint: Endpoint::new(EndpointConfig::default()).expect("the default works"),
            pool: FragmentPool::default(),
        };
        Self {
            now: Instant::ZERO,
            a: end(),
            b: end(),
            datagram: Vec::new(),
            wire: Wire::default(),
            acked: 0,
        }
    }

    /// `b` sends an ack packet to `a`, and `a` reads the report on each packet. Due after 16 packets.
    pub fn ack_back(&mut self) -> u64 {
        carry(self.now, &mut self.b, &mut self.a, &mut self.wire, &mut self.datagram, |_| ());
        self.hear()
    }

    fn hear(&mut self) -> u64 {
        let mut acked = 0;
        while let Some(event) = self.a.endpoint.poll_event() {
            acked += u64::from(matches!(event, EndpointEvent::Acked { .. }));
        }
        while self.b.endpoint.poll_event().is_some() {}
        self.acked += acked;
        acked
    }
}

fn carry(
    now: Instant,
    from: &mut End,
    to: &mut End,
    wire: &mut Wire,
    datagram: &mut Vec<u8>,
    mut take: impl FnMut(&[u8]),
) {
    while from.endpoint.poll_datagram(now, datagram) {
        wire.send(datagram);
    }
    for datagram in wire.receive() {
        if let Ok(Some(delivery)) = to.endpoint.handle_datagram(now, datagram, &mut to.pool) {
            take(delivery.accept());
        }
    }
}

impl Pair for HaulierPair {
    fn there(&mut self, payload: &Payload, take: impl FnMut(&[u8])) {
        self.a.endpoint.send(self.now, &payload.bytes).expect("the queue is empty");
        carry(self.now, &mut self.a, &mut self.b, &mut self.wire, &mut self.datagram, take);
    }

    fn back(&mut self, payload: &Payload, take: impl FnMut(&[u8])) {
        self.b.endpoint.send(self.now, &payload.bytes).expect("the queue is empty");
        carry(self.now, &mut self.b, &mut self.a, &mut self.wire, &mut self.datagram, take);
        self.hear();
    }

    fn tick(&mut self) {
        self.now = self.now + TICK;
        self.a.endpoint.handle_timeout(self.now);
        self.b.endpoint.handle_timeout(self.now);
    }

    fn settle(&mut self) {
        // The time after which an ack packet is sent, whatever is under way.
        self.now = self.now + Duration::from_millis(50);
        self.tick();
        self.ack_back();
    }

    fn wire(&mut self) -> &mut Wire {
        &mut self.wire
    }

    fn check_acks(&self) {
        let stats = self.a.endpoint.stats();
        assert_eq!((stats.packets_acked, stats.packets_lost), (stats.packets_sent, 0));
        assert_eq!(self.acked, stats.packets_sent, "each was told");
    }
}

impl Default for HaulierPair {
    fn default() -> Self {
        Self::new()
    }
}

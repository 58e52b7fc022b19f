//! The endpoint, STANDARD §9, point by point.
//!
//! * `packets`: headers and sizes, what is offered, what counts as received, what is refused;
//! * `acks`: ack packets, and which packets are acknowledged;
//! * `measures`: fates, loss, bandwidth, modes and deadlines;
//! * `restarts`: peers that start over, strays and forgeries.

use haulier_article::endpoint::{Endpoint, EndpointConfig, EndpointEvent};
use haulier_article::fragment::{Fragment, FragmentPool};
use haulier_article::packet::fragment::FragmentPacket;
use haulier_article::packet::numbered::NumberedPacket;
use haulier_article::packet::{self, ProtocolId};
use haulier_article::{Instant, PacketDropReason, Sequence};

use crate::support::framed;

mod acks;
mod measures;
mod packets;
mod restarts;

/// One end, with a pool of its own.
struct End {
    endpoint: Endpoint,
    pool: FragmentPool,
}

impl End {
    fn new() -> Self {
        Self::with(EndpointConfig::default())
    }

    fn starting_at(sequence: u16) -> Self {
        Self::with(EndpointConfig::default().with_first_sequence(Sequence::new(sequence)))
    }

    fn with(config: EndpointConfig) -> Self {
        Self { endpoint: Endpoint::new(config).unwrap(), pool: FragmentPool::default() }
    }

    fn transmit(&mut self, now: Instant) -> Vec<Vec<u8>> {
        let mut datagram = Vec::new();
        std::iter::from_fn(|| {
            self.endpoint.poll_datagram(now, &mut datagram).then(|| datagram.clone())
        })
        .collect()
    }

    fn send(&mut self, now: Instant, payload: &[u8]) -> Vec<Vec<u8>> {
        self.endpoint.send(now, payload).unwrap();
        self.transmit(now)
    }

    /// Accepts whatever the datagram brings.
    fn receive(
        &mut self,
        now: Instant,
        datagram: &[u8],
    ) -> Result<Option<Vec<u8>>, PacketDropReason> {
        let delivery = self.endpoint.handle_datagram(now, datagram, &mut self.pool);
        let payload = delivery.map(|delivery| delivery.map(|packet| packet.accept().to_vec()));
        self.endpoint.check_invariants();
        self.pool.check_invariants();
        payload
    }

    fn events(&mut self) -> Vec<EndpointEvent> {
        std::iter::from_fn(|| self.endpoint.poll_event()).collect()
    }
}

fn acked(number: u16) -> EndpointEvent {
    EndpointEvent::Acked { sequence: Sequence::new(number) }
}

fn lost(number: u16) -> EndpointEvent {
    EndpointEvent::Lost { sequence: Sequence::new(number) }
}

fn read(datagram: &[u8]) -> NumberedPacket<'_> {
    packet::read(ProtocolId::PACKETS, datagram).unwrap()
}

/// A fragment of a packet of two, as an attacker makes it.
fn forged_fragment(sequence: u16) -> Vec<u8> {
    let data = [7; 1024];
    let fragment = Fragment::new(Sequence::new(sequence), 0, 2, &data).unwrap();
    framed(FragmentPacket(fragment), ProtocolId::PACKETS)
}

//! laminar: two `VirtualConnection`s. The checksum in its packets is of the protocol's version, not of
//! their bytes. An unreliable packet has neither sequence nor ack and is never cut, so what can be set
//! beside the others is the reliable unordered one: it has both, and is cut into fragments. It is also
//! kept, in a copy, until it is acked, and sent again when it falls more than 32 behind what was acked;
//! here that never happens. Acks ride on reliable packets only, so there is no ack to measure apart. The
//! packet to send, its datagrams and the packet received are allocated. It reads the clock by itself for
//! each reliable packet that comes.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Instant;

use laminar::{Config, Connection, ConnectionMessenger, Packet, SocketEvent, VirtualConnection};

use crate::{ANSWER_BYTES, Pair, Payload, TICK, Wire};

/// How laminar is asked to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Guarantee {
    /// Without sequence, acks and fragments.
    Unreliable,
    /// With all of them.
    Reliable,
}

/// What a connection calls: it sends datagrams and reports received packets.
#[derive(Debug)]
struct Messenger {
    config: Config,
    wire: Wire,
    arrived: Vec<Packet>,
}

impl ConnectionMessenger<SocketEvent> for Messenger {
    fn config(&self) -> &Config {
        &self.config
    }

    fn send_event(&mut self, _: &SocketAddr, event: SocketEvent) {
        match event {
            SocketEvent::Packet(packet) => self.arrived.push(packet),
            SocketEvent::Connect(_) => {}
            lost => panic!("the connection is lost: {lost:?}"),
        }
    }

    fn send_packet(&mut self, _: &SocketAddr, payload: &[u8]) {
        self.wire.send(payload);
    }
}

/// Two connections.
pub struct LaminarPair {
    guarantee: Guarantee,
    now: Instant,
    a: VirtualConnection,
    b: VirtualConnection,
    outward: Messenger,
    inward: Messenger,
}

const ADDRESS: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 1);

impl LaminarPair {
    /// Both ends with the default limits, but fragments of 1200 bytes and not of 1024, so that the same
    /// packets are cut as by the others.
    #[must_use]
    pub fn new(guarantee: Guarantee) -> Self {
        let config = Config { fragment_size: 1200, ..Config::default() };
        let now = Instant::now();
        let end = || VirtualConnection::new(ADDRESS, &config, now);
        let messenger =
            || Messenger { config: config.clone(), wire: Wire::default(), arrived: Vec::new() };
        Self { guarantee, now, a: end(), b: end(), outward: messenger(), inward: messenger() }
    }

    fn carry(&mut self, is_back: bool, payload: &Payload, mut take: impl FnMut(&[u8])) {
        let (from, to) = match is_back {
            false => (&mut self.a, &mut self.b),
            true => (&mut self.b, &mut self.a),
        };
        let packet = match self.guarantee {
            Guarantee::Unreliable => Packet::unreliable(ADDRESS, payload.bytes.to_vec()),
            Guarantee::Reliable => Packet::reliable_unordered(ADDRESS, payload.bytes.to_vec()),
        };
        from.process_event(&mut self.outward, packet, self.now);
        for datagram in self.outward.wire.receive() {
            to.process_packet(&mut self.inward, datagram, self.now);
        }
        self.inward.arrived.drain(..).for_each(|packet| take(packet.payload()));
    }
}

impl Pair for LaminarPair {
    fn there(&mut self, payload: &Payload, take: impl FnMut(&[u8])) {
        self.carry(false, payload, take);
    }

    fn back(&mut self, payload: &Payload, take: impl FnMut(&[u8])) {
        self.carry(true, payload, take);
    }

    fn tick(&mut self) {
        self.now += TICK;
        for end in [&mut self.a, &mut self.b] {
            end.update(&mut self.outward, self.now);
            assert!(!end.should_drop(&mut self.outward, self.now));
        }
    }

    fn settle(&mut self) {
        // The answer acks the 16 packets before it.
        let answer = Payload::new(ANSWER_BYTES, 0);
        self.carry(true, &answer, |_| ());
        self.carry(false, &answer, |_| ());
        self.tick();
    }

    fn wire(&mut self) -> &mut Wire {
        &mut self.outward.wire
    }

    fn check_acks(&self) {
        // The last answer is acked by the packet after it.
        assert_eq!(self.a.packets_in_flight(), 0);
        let answers = u16::from(self.guarantee == Guarantee::Reliable);
        assert_eq!(self.b.packets_in_flight(), answers);
    }
}

//! renet: two `RenetClient`s with one channel, unreliable. No checksum: it expects one below, as its
//! netcode transport has. An unreliable message that comes twice is delivered twice. Acks go as packets
//! of their own, with every flush from the first packet received on, and are acked themselves. Acks count
//! for round trip and loss, and are not reported to the application. Datagrams and received messages are
//! allocated; the payload is not copied on its way in, because it is a counted reference.

use renet::{ChannelConfig, ConnectionConfig, RenetClient, SendType};

use crate::{Pair, Payload, TICK, Wire};

const CHANNEL: u8 = 0;

/// Two connections.
pub struct RenetPair {
    a: RenetClient,
    b: RenetClient,
    wire: Wire,
}

impl RenetPair {
    /// Both ends with the default limits, and of the default channels the unreliable one only.
    #[must_use]
    pub fn new() -> Self {
        Self { a: end(), b: end(), wire: Wire::default() }
    }

    /// Two new connections.
    pub fn renew(&mut self) {
        (self.a, self.b) = (end(), end());
    }

    /// An ack packet from `b` to `a`.
    pub fn ack_back(&mut self) {
        carry(&mut self.b, &mut self.a, &mut self.wire, |_| ());
    }
}

fn end() -> RenetClient {
    let channel = ChannelConfig {
        channel_id: CHANNEL,
        max_memory_usage_bytes: 5 * 1024 * 1024,
        send_type: SendType::Unreliable,
    };
    let mut end = RenetClient::new(ConnectionConfig {
        server_channels_config: vec![channel.clone()],
        client_channels_config: vec![channel],
        ..ConnectionConfig::default()
    });
    end.set_connected();
    end
}

fn carry(
    from: &mut RenetClient,
    to: &mut RenetClient,
    wire: &mut Wire,
    mut take: impl FnMut(&[u8]),
) {
    for datagram in from.get_packets_to_send() {
        wire.send(&datagram);
    }
    for datagram in wire.receive() {
        to.process_packet(datagram);
    }
    while let Some(message) = to.receive_message(CHANNEL) {
        take(&message);
    }
}

impl Pair for RenetPair {
    fn there(&mut self, payload: &Payload, take: impl FnMut(&[u8])) {
        self.a.send_message(CHANNEL, payload.shared.clone());
        carry(&mut self.a, &mut self.b, &mut self.wire, take);
    }

    fn back(&mut self, payload: &Payload, take: impl FnMut(&[u8])) {
        self.b.send_message(CHANNEL, payload.shared.clone());
        carry(&mut self.b, &mut self.a, &mut self.wire, take);
    }

    fn tick(&mut self) {
        self.a.update(TICK);
        self.b.update(TICK);
    }

    fn settle(&mut self) {
        // An end that has received anything sends an ack packet with every flush from then on. Ends that
        // were never answered do not, and are the cheaper ones; what they allocate once is allocated here.
        self.renew();
        let warm_up = Payload::new(5_000, 0);
        (0..4).for_each(|_| self.there(&warm_up, |_| ()));
    }

    fn wire(&mut self) -> &mut Wire {
        &mut self.wire
    }

    fn check_acks(&self) {
        assert!(self.a.is_connected() && self.b.is_connected());
        assert!(self.a.bytes_sent_per_sec() > 0.0, "it was looked at for long enough");
        assert_eq!((self.a.packet_loss(), self.b.packet_loss()), (0.0, 0.0));
    }
}

impl Default for RenetPair {
    fn default() -> Self {
        Self::new()
    }
}

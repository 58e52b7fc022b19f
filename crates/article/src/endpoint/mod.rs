//! The packet layer as one object: sends packets once, and reports which of them arrived.
//!
//! An [`Endpoint`] is one end towards one peer. It numbers packets, cuts those above the MTU, sends and
//! handles acks, and measures round trip, loss and bandwidth. It resends nothing: it is for data that is out
//! of date in a tenth of a second (*Reliability, Ordering and Congestion Avoidance over UDP*, *Packet
//! Fragmentation and Reassembly*; STANDARD §9).
//!
//! # The run loop
//!
//! 1. Hand in the datagrams that arrived: [`handle_datagram`](Endpoint::handle_datagram). It returns a
//!    [`Delivery`], which is acknowledged only if it is accepted.
//! 2. Hand in the time if a deadline has passed: [`handle_timeout`](Endpoint::handle_timeout), and that of
//!    the pool ([`FragmentPool::handle_timeout`]), which holds incomplete packets.
//! 3. Send the game's packet: [`send`](Endpoint::send), as often as
//!    [`send_interval`](Endpoint::send_interval) advises.
//! 4. Learn what became of earlier ones: [`poll_event`](Endpoint::poll_event) until `None`.
//! 5. Send all datagrams: [`poll_transmit`](Endpoint::poll_transmit) until a batch comes back that is not
//!    full, then sleep until [`poll_timeout`](Endpoint::poll_timeout) or the next datagram.
//!
//! The whole of it, a snapshot of 3000 bytes sixty times a second, over a wire that loses every 20th
//! datagram:
//!
//! ```
//! use haulier_article::endpoint::{Endpoint, EndpointConfig, EndpointEvent};
//! use haulier_article::fragment::FragmentPool;
//! use haulier_article::Instant;
//!
//! let mut server = Endpoint::new(EndpointConfig::default())?;
//! let mut client = Endpoint::new(EndpointConfig::default())?;
//! // One pool for all endpoints of a socket. Here each end has its own socket, so its own pool.
//! let (mut server_pool, mut client_pool) = (FragmentPool::default(), FragmentPool::default());
//!
//! let (mut datagram, mut sent, mut snapshots, mut lost) = (Vec::new(), 0, 0, 0);
//! for frame in 0..120u64 {
//!     let now = Instant::from_millis(frame * 1000 / 60);
//!     server.handle_timeout(now);
//!     client.handle_timeout(now);
//!     client_pool.handle_timeout(now); // or at its own poll_timeout
//!
//!     server.send(now, &vec![frame as u8; 3000])?;
//!     client.send(now, b"forward, fire")?;
//!
//!     while server.poll_datagram(now, &mut datagram) {
//!         sent += 1;
//!         if sent % 20 == 0 {
//!             continue;
//!         }
//!         // A refusal is an ordinary outcome, already counted.
//!         if let Ok(Some(delivery)) = client.handle_datagram(now, &datagram, &mut client_pool) {
//!             snapshots += usize::from(delivery.accept().len() == 3000);
//!         }
//!     }
//!     while client.poll_datagram(now, &mut datagram) {
//!         if let Ok(Some(delivery)) = server.handle_datagram(now, &datagram, &mut server_pool) {
//!             delivery.accept();
//!         }
//!     }
//!     while let Some(event) = server.poll_event() {
//!         lost += u32::from(matches!(event, EndpointEvent::Lost { .. }));
//!     }
//! }
//! assert_eq!((sent, snapshots), (360, 102)); // 18 of 360 datagrams gone, each with its snapshot
//! assert!(lost > 0 && server.stats().packets_acked > 90);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod config;
mod incoming;
mod outbox;
mod stats;

pub use config::{EndpointConfig, EndpointConfigError};
pub use incoming::Delivery;
pub use stats::EndpointStats;

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::time::Duration;

use haulier_core::fragment::FragmentPool;
use haulier_core::time::earliest;
use haulier_core::{Batch, DatagramBuffer, FourTuple};
use thiserror::Error;

use crate::ack::{AckBits, SentPackets};
use crate::congestion::{CongestionController, GoodBad};
use crate::packet;
use crate::packet::numbered::{MAX_PAYLOAD_BYTES, NumberedPacket};
use crate::{
    ArticleRtt, Instant, PacketDropCounts, PacketDropReason, RttEstimator, RttHistory, RttSpread,
    Sequence,
};
use incoming::{Incoming, Opened};
use outbox::{Outbox, UDP_IPV4_BYTES};
use stats::Smoothed;

/// The interval at which loss, bandwidth and conditions are measured while there is traffic: the step of the
/// article's timelines.
const MEASURE_INTERVAL: Duration = Duration::from_millis(100);

/// The number of packets lost in a row that means an outage: at 10 % loss chance does this to one run of
/// four in 10,000.
const OUTAGE_PACKETS: u32 = 4;

/// Events that may wait for the application: two windows of packets, far more than one round of the loop
/// produces. Beyond that the oldest are dropped and counted.
const MAX_EVENTS: usize = 512;

/// What became of a packet. Each packet sent is reported once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum EndpointEvent {
    /// The peer's application accepted it. Certain, unless this end has just restarted under the same
    /// protocol id: STANDARD §9.4 says when an ack may then be for a packet from before the restart.
    Acked {
        /// Which one.
        sequence: Sequence,
    },
    /// No ack arrived in time: the packet is probably lost.
    Lost {
        /// Which one.
        sequence: Sequence,
    },
}

/// Why a packet was not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SendPacketError {
    /// The payload is above [`MAX_PAYLOAD_BYTES`]. Data of that size is sent as a chunk.
    #[error("a packet carries at most {MAX_PAYLOAD_BYTES} bytes, not {bytes}: send a chunk")]
    TooLarge {
        /// Its size in bytes.
        bytes: usize,
    },
    /// The queue of earlier packets for [`Endpoint::poll_transmit`] is full.
    #[error("too many packets wait: call poll_transmit first, or raise max_queued_bytes")]
    QueueFull,
}

/// One end towards one peer. The module's page has the loop that drives it.
#[derive(Clone, Debug)]
pub struct Endpoint<C = GoodBad> {
    config: EndpointConfig,
    sent: SentPackets,
    incoming: Incoming,
    outbox: Outbox,
    article_rtt: ArticleRtt,
    rtt: RttEstimator,
    history: RttHistory,
    controller: C,
    events: VecDeque<EndpointEvent>,
    drops: PacketDropCounts,
    counters: EndpointStats,
    smoothed: Smoothed,
    /// The time since which packets are sent and none is acked.
    unanswered_since: Option<Instant>,
    lost_in_a_row: u32,
    /// Packets that have left the window unacked since the last measurement.
    pushed_out: u32,
    next_measurement: Option<Instant>,
}

impl Endpoint {
    /// An endpoint that has sent and received nothing, with the article's good and bad mode. Allocates its
    /// windows here, some 20 KiB.
    ///
    /// # Errors
    /// [`EndpointConfigError`].
    pub fn new(config: EndpointConfig) -> Result<Self, EndpointConfigError> {
        Self::with_controller(config, GoodBad::default())
    }
}

impl<C: CongestionController> Endpoint<C> {
    /// With another congestion controller.
    ///
    /// # Errors
    /// [`EndpointConfigError`].
    pub fn with_controller(
        config: EndpointConfig,
        controller: C,
    ) -> Result<Self, EndpointConfigError> {
        config.check()?;
        Ok(Self {
            config,
            sent: SentPackets::starting_at(config.first_sequence, config.loss_timeout),
            incoming: Incoming::new(config.loss_timeout),
            outbox: Outbox::default(),
            article_rtt: ArticleRtt::new(),
            rtt: RttEstimator::new(),
            history: RttHistory::new(),
            controller,
            events: VecDeque::with_capacity(MAX_EVENTS),
            drops: PacketDropCounts::new(),
            counters: EndpointStats::default(),
            smoothed: Smoothed::default(),
            unanswered_since: None,
            lost_in_a_row: 0,
            pushed_out: 0,
            next_measurement: None,
        })
    }

    /// Its configuration.
    #[must_use]
    pub const fn config(&self) -> &EndpointConfig {
        &self.config
    }

    /// Counters and measurements.
    #[must_use]
    pub fn stats(&self) -> EndpointStats {
        let mut stats = self.counters;
        stats.packets_received = self.incoming.packets;
        stats.bytes_received = self.incoming.bytes;
        stats.restarts = self.incoming.received.restarts();
        self.smoothed.fill(&mut stats);
        stats
    }

    /// Dropped datagrams, by reason.
    #[must_use]
    pub const fn drops(&self) -> &PacketDropCounts {
        &self.drops
    }

    /// The round trip as the article smooths it; the congestion controller sees this one. It includes the
    /// delay until the peer sent a packet: up to 20 ms for a packet that arrives alone.
    #[must_use]
    pub const fn article_rtt(&self) -> Option<Duration> {
        self.article_rtt.smoothed_rtt()
    }

    /// The round trip as RFC 9002 keeps it.
    #[must_use]
    pub const fn rtt(&self) -> &RttEstimator {
        &self.rtt
    }

    /// How the last 256 round trips spread: jitter.
    #[must_use]
    pub fn rtt_spread(&self) -> RttSpread {
        self.history.spread()
    }

    /// The congestion controller.
    #[must_use]
    pub const fn controller(&self) -> &C {
        &self.controller
    }

    /// How long to wait from one packet to the next, as the controller advises.
    #[must_use]
    pub fn send_interval(&self) -> Duration {
        self.controller.send_interval()
    }

    /// The number of the next packet.
    #[must_use]
    pub const fn next_sequence(&self) -> Sequence {
        self.sent.next_sequence()
    }

    /// The number of packets that are neither acked nor lost.
    #[must_use]
    pub const fn in_flight(&self) -> u32 {
        self.sent.in_flight()
    }

    /// Sends a packet of 0 to [`MAX_PAYLOAD_BYTES`] bytes: queues it for
    /// [`poll_transmit`](Self::poll_transmit), cut into fragments if it is too large for one datagram, and
    /// returns its number. Does not allocate once packets of this size were sent before.
    ///
    /// Between two calls of `poll_transmit` up to 256 packets may be sent. This layer is not made for more
    /// than 256 within the loss timeout: each further one reports the oldest as lost.
    ///
    /// # Errors
    /// [`SendPacketError`]; the packet then has no number, and nothing has changed.
    pub fn send(&mut self, now: Instant, payload: &[u8]) -> Result<Sequence, SendPacketError> {
        let bytes = payload.len();
        if bytes > MAX_PAYLOAD_BYTES {
            return Err(SendPacketError::TooLarge { bytes });
        }
        if !self.outbox.has_room(bytes, self.config.max_queued_bytes) {
            return Err(SendPacketError::QueueFull);
        }
        let sequence = self.sent.next_sequence();
        let packet =
            NumberedPacket::Payload { sequence, acks: self.incoming.take_acks(now), payload };
        let (protocol, max) = (self.config.protocol_id, self.config.max_datagram_bytes);
        let cost = self
            .outbox
            .push(packet, protocol, max)
            .map_err(|_| SendPacketError::TooLarge { bytes })?;
        if let Some((lost, bytes)) = self.sent.on_sent(now, cost.bytes).pushed_out {
            self.pushed_out += 1;
            self.on_lost(now, lost, bytes);
        }
        self.controller.on_sent(now, cost.bytes);
        self.counters.packets_sent += 1;
        self.counters.packets_fragmented += u64::from(cost.datagrams > 1);
        self.counters.bytes_sent += cost.bytes as u64;
        self.unanswered_since.get_or_insert(now);
        self.schedule_measurement(now);
        Ok(sequence)
    }

    /// Handles a datagram. If it completes a packet, the packet is returned for acceptance; `None` for an
    /// ack packet, and for a fragment of a packet that is not complete yet. Bounded work: one packet of at
    /// most 256 KiB.
    ///
    /// `pool` must always be the same for this endpoint, and may be shared with others.
    ///
    /// # Errors
    /// Why it was dropped, already counted in [`drops`](Self::drops).
    pub fn handle_datagram<'a>(
        &'a mut self,
        now: Instant,
        datagram: &'a [u8],
        pool: &'a mut FragmentPool,
    ) -> Result<Option<Delivery<'a>>, PacketDropReason> {
        let opened = self.incoming.open(self.config.protocol_id, now, datagram, pool);
        match opened.inspect_err(|&reason| self.drops.count(reason))? {
            Opened::Fragment => Ok(None),
            Opened::Acks(acks) => {
                self.on_acks(now, acks);
                Ok(None)
            }
            Opened::Packet { sequence, acks, payload, cost } => {
                if let Some(acks) = acks {
                    self.on_acks(now, acks);
                }
                self.schedule_measurement(now);
                Ok(Some(Delivery { incoming: &mut self.incoming, now, sequence, payload, cost }))
            }
        }
    }

    /// Acts on deadlines that have passed; no effect at any other time.
    pub fn handle_timeout(&mut self, now: Instant) {
        while let Some(lost) = self.sent.next_lost(now) {
            self.on_lost(now, lost, self.sent.bytes(lost).unwrap_or(0));
        }
        if self.next_measurement.is_some_and(|at| at <= now) {
            self.measure(now);
        }
    }

    /// The next event. Call until `None`.
    #[must_use]
    pub fn poll_event(&mut self) -> Option<EndpointEvent> {
        self.events.pop_front()
    }

    /// Appends the datagrams to send now, until none is left or the batch is full. `to` is the path to the
    /// peer, which this wire does not know.
    pub fn poll_transmit(&mut self, now: Instant, to: FourTuple, batch: &mut Batch) {
        while batch.compose(|datagram| self.compose(now, datagram).then_some(to)).is_some() {}
    }

    /// Replaces the contents of `datagram` with the next datagram and returns `true`, or returns `false` if
    /// no datagram is due. For transports that take one at a time. Does not allocate once `datagram` has the
    /// capacity for [`MAX_PACKET_BYTES`](crate::MAX_PACKET_BYTES).
    #[must_use]
    pub fn poll_datagram(&mut self, now: Instant, datagram: &mut Vec<u8>) -> bool {
        datagram.clear();
        self.compose(now, &mut DatagramBuffer::behind(datagram))
    }

    fn compose(&mut self, now: Instant, datagram: &mut DatagramBuffer<'_>) -> bool {
        let is_packet = self.outbox.compose(self.config.protocol_id, datagram);
        let is_any = is_packet || self.compose_ack_packet(now, datagram);
        self.counters.datagrams_sent += u64::from(is_any);
        is_any
    }

    /// When to call [`handle_timeout`](Self::handle_timeout) and [`poll_transmit`](Self::poll_transmit)
    /// next, if nothing else happens; a time in the past means at once, `None` never.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        let transmit = match self.outbox.is_empty() {
            true => self.incoming.ack_due(self.config.ack_interval),
            false => Some(Instant::ZERO),
        };
        earliest(transmit, earliest(self.sent.poll_timeout(), self.next_measurement))
    }

    /// Ends the endpoint, and returns the memory of its incomplete packets to the pool. Those of an endpoint
    /// that is only dropped stay until the pool's timeout.
    pub fn close(mut self, pool: &mut FragmentPool) {
        self.incoming.reassembler.clear(pool);
    }

    fn compose_ack_packet(&mut self, now: Instant, datagram: &mut DatagramBuffer<'_>) -> bool {
        if self.incoming.ack_due(self.config.ack_interval).is_none_or(|due| due > now) {
            return false;
        }
        let Some(acks) = self.incoming.next_ack_packet(now) else { return false };
        packet::compose(NumberedPacket::Ack(acks), self.config.protocol_id, datagram);
        self.counters.acks_sent += 1;
        self.counters.bytes_sent += (datagram.len() + UDP_IPV4_BYTES) as u64;
        true
    }

    fn on_acks(&mut self, now: Instant, acks: AckBits) {
        let news = self.sent.on_ack(now, acks);
        for &sequence in news.acked() {
            self.counters.packets_acked += 1;
            self.controller.on_acked(now, self.sent.bytes(sequence).unwrap_or(0));
            self.push_event(EndpointEvent::Acked { sequence });
        }
        if let Some(sample) = news.rtt_sample {
            self.article_rtt.on_sample(sample);
            self.rtt.on_sample(sample, Duration::ZERO);
            self.history.on_sample(sample);
        }
        if !news.acked().is_empty() {
            self.lost_in_a_row = 0;
            self.unanswered_since = (self.sent.in_flight() > 0).then_some(now);
        }
    }

    fn on_lost(&mut self, now: Instant, sequence: Sequence, bytes: usize) {
        self.counters.packets_lost += 1;
        self.lost_in_a_row = self.lost_in_a_row.saturating_add(1);
        self.controller.on_lost(now, bytes);
        self.push_event(EndpointEvent::Lost { sequence });
    }

    fn push_event(&mut self, event: EndpointEvent) {
        if self.events.len() >= MAX_EVENTS {
            self.events.pop_front();
            self.counters.events_dropped += 1;
        }
        self.events.push_back(event);
    }

    /// There is traffic: measure every 100 ms. The next measurement is never further away than that, so that
    /// a clock that jumped ahead and came back does not stop them.
    fn schedule_measurement(&mut self, now: Instant) {
        let next = now + MEASURE_INTERVAL;
        self.next_measurement = Some(self.next_measurement.map_or(next, |at| at.min(next)));
    }

    fn measure(&mut self, now: Instant) {
        let (sent, received) = (self.sent.measure(now), self.incoming.received.measure(now));
        self.smoothed.update(&sent, core::mem::take(&mut self.pushed_out), &received);
        if let Some(rtt) = self.conditions(now) {
            self.controller.on_conditions(now, rtt);
        }
        // Measurements go on as long as there are packets to measure.
        let is_idle = self.sent.in_flight() == 0 && sent.packets + received.packets == 0;
        if is_idle {
            self.smoothed.on_idle();
            self.unanswered_since = None;
        }
        self.next_measurement = (!is_idle).then(|| now + MEASURE_INTERVAL);
    }

    /// The round trip that the controller gets. While nothing is acked it is at least the time since the
    /// last ack, once that is a whole loss timeout and some packets are lost (STANDARD §9.5).
    fn conditions(&mut self, now: Instant) -> Option<Duration> {
        self.unanswered_since = self.unanswered_since.map(|since| since.min(now));
        let silence = self.unanswered_since.map(|since| now.since(since));
        let is_outage = |&silence: &Duration| {
            silence >= self.config.loss_timeout && self.lost_in_a_row >= OUTAGE_PACKETS
        };
        self.article_rtt.smoothed_rtt().max(silence.filter(is_outage))
    }

    /// Panics if the parts contradict each other. For tests, fuzzers and the simulator.
    pub fn check_invariants(&self) {
        self.sent.check_invariants();
        self.incoming.received.check_invariants();
        self.incoming.reassembler.check_invariants();
        let settled = self.counters.packets_acked + self.counters.packets_lost;
        let in_flight = u64::from(self.sent.in_flight());
        assert_eq!(settled + in_flight, self.counters.packets_sent, "each packet has one fate");
    }
}

//! One end of the article's wire: a chunk sender, a chunk receiver, and the frame around their packets.
//!
//! It has no policy of its own. Datagrams are parsed and passed to the part they are for, the packets of the
//! parts are framed, and the earlier deadline of the two is the deadline of the peer.

use alloc::vec::Vec;

use bytes::Bytes;
use haulier_core::time::earliest;
use haulier_core::{Batch, DatagramBuffer, FourTuple};

use crate::chunk::{
    Cancelled, ChunkHandle, ChunkId, ChunkReceiver, ChunkReceiverConfig, ChunkReceiverEvent,
    ChunkSender, ChunkSenderConfig, ChunkSenderEvent, SendChunkError,
};
use crate::packet::article::ArticlePacket;
use crate::packet::{self, ProtocolId};
use crate::settings;
use crate::{Instant, PacketDropCounts, PacketDropReason};

settings! {
    /// How an [`ArticlePeer`] behaves.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct ArticleConfig {
        /// The number that both ends must share. Default [`ProtocolId::ARTICLE`].
        protocol_id: ProtocolId = ProtocolId::ARTICLE, with_protocol_id;
        /// The sending end.
        sender: ChunkSenderConfig = ChunkSenderConfig::default(), with_sender;
        /// The receiving end.
        receiver: ChunkReceiverConfig = ChunkReceiverConfig::default(), with_receiver;
    }
}

/// An event of an [`ArticlePeer`]. Received chunks are not events: they wait in [`ArticlePeer::pop_chunk`],
/// because a chunk that waits holds the sender back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PeerEvent {
    /// A chunk was sent, or failed.
    Sender(ChunkSenderEvent),
    /// An incomplete chunk was dropped.
    Receiver(ChunkReceiverEvent),
}

/// One end of the article's wire. The crate's front page has the loop that drives it.
#[derive(Clone, Debug)]
pub struct ArticlePeer {
    protocol_id: ProtocolId,
    sender: ChunkSender,
    receiver: ChunkReceiver,
    drops: PacketDropCounts,
}

impl ArticlePeer {
    /// A peer that has sent and received nothing.
    #[must_use]
    pub fn new(config: ArticleConfig) -> Self {
        Self {
            protocol_id: config.protocol_id,
            sender: ChunkSender::new(config.sender),
            receiver: ChunkReceiver::new(config.receiver),
            drops: PacketDropCounts::new(),
        }
    }

    /// The sending end, for its state and statistics.
    #[must_use]
    pub const fn sender(&self) -> &ChunkSender {
        &self.sender
    }

    /// The receiving end, for its state and statistics.
    #[must_use]
    pub const fn receiver(&self) -> &ChunkReceiver {
        &self.receiver
    }

    /// Dropped datagrams, by reason.
    #[must_use]
    pub const fn drops(&self) -> &PacketDropCounts {
        &self.drops
    }

    /// Handles a datagram. Bounded work: one packet of at most 1200 bytes.
    ///
    /// # Errors
    /// Why it was dropped, already counted in [`drops`](Self::drops). This is an ordinary outcome, which
    /// most callers ignore.
    pub fn handle_datagram(
        &mut self,
        now: Instant,
        datagram: &[u8],
    ) -> Result<(), PacketDropReason> {
        let outcome = packet::read(self.protocol_id, datagram).and_then(|packet| match packet {
            ArticlePacket::Slice(slice) => self.receiver.handle_slice(now, &slice).map(|_| ()),
            ArticlePacket::Ack(ack) => self.sender.handle_ack(now, &ack),
        });
        outcome.inspect_err(|&reason| self.drops.count(reason))
    }

    /// Acts on deadlines that have passed; no effect at any other time.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.sender.handle_timeout(now);
        self.receiver.handle_timeout(now);
    }

    /// Queues a chunk of 1 byte to 256 KiB. See [`ChunkSender::send_chunk`].
    ///
    /// # Errors
    /// See [`SendChunkError`].
    pub fn send_chunk(&mut self, chunk: impl Into<Bytes>) -> Result<ChunkHandle, SendChunkError> {
        self.sender.send_chunk(chunk)
    }

    /// Cancels a chunk. See [`ChunkSender::cancel`].
    pub fn cancel(&mut self, handle: ChunkHandle) -> Cancelled {
        self.sender.cancel(handle)
    }

    /// Removes and returns the oldest complete chunk. Until then the other end cannot send more than the
    /// receive queue holds.
    #[must_use]
    pub fn pop_chunk(&mut self) -> Option<Bytes> {
        self.receiver.pop()
    }

    /// Restarts both directions with chunk `first_chunk_id`; the other end must do the same.
    pub fn reset(&mut self, first_chunk_id: ChunkId) {
        self.sender.reset(first_chunk_id);
        self.receiver.reset(first_chunk_id);
    }

    /// Changes the budget, in bits per second.
    pub const fn set_rate_bps(&mut self, rate_bps: u64) {
        self.sender.set_rate_bps(rate_bps);
    }

    /// Switches the initial burst on or off, from the next chunk on.
    pub const fn set_burst(&mut self, burst: bool) {
        self.sender.set_burst(burst);
    }

    /// Appends the datagrams to send now, until none is left or the batch is full. Acks go before slices.
    /// `to` is where the other end is, which this wire does not know.
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
        let packet = match self.receiver.poll_ack(now) {
            Some(ack) => ArticlePacket::Ack(ack),
            None => match self.sender.poll_slice(now) {
                Some(slice) => ArticlePacket::Slice(slice),
                None => return false,
            },
        };
        packet::compose(packet, self.protocol_id, datagram)
    }

    /// The next event. Call until `None`.
    #[must_use]
    pub fn poll_event(&mut self) -> Option<PeerEvent> {
        let sender = self.sender.poll_event().map(PeerEvent::Sender);
        sender.or_else(|| self.receiver.poll_event().map(PeerEvent::Receiver))
    }

    /// When to call [`handle_timeout`](Self::handle_timeout) and [`poll_transmit`](Self::poll_transmit)
    /// next, if nothing else happens; a time in the past means at once, `None` never.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        earliest(self.sender.poll_timeout(), self.receiver.poll_timeout())
    }

    /// Panics if the parts contradict each other. For tests, fuzzers and the simulator.
    pub fn check_invariants(&self) {
        self.sender.check_invariants();
        self.receiver.check_invariants();
    }
}

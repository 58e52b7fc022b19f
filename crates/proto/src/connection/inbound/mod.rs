//! The receiving half of a connection: which datagrams arrived, the blocks, packets and messages in them
//! until the application takes them, and (`answers`) the acks and reports to the peer.
//!
//! The invariants: a datagram is acknowledged only if all that was in it is kept [H-4.2e]. The receiver of
//! blocks is made with the first frame of a block, or when the application names a block that it has; the
//! receiver of messages is made with the first message. A server of ten thousand joiners sends them a world
//! and receives none.

mod answers;

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::time::Duration;

use bytes::Bytes;

use super::ConnectionConfig;
use super::event::Event;
use super::packets::IncomingPackets;
use super::reading::Reading;
use crate::channels::{MessageReceiver, MessageViolation};
use crate::fragment::{Fragment, FragmentPool};
use crate::incoming::{IncomingBlocks, IncomingConfig};
use crate::outgoing::Heard;
use crate::transit::{Arrivals, ReceivedDatagrams};
use crate::wire::frames::MessageFrame;
use crate::work::Work;
use crate::{DropReason, Ecn, Instant, Sequence};

/// The half that receives blocks.
#[derive(Debug)]
struct BlocksIn {
    blocks: IncomingBlocks,
    /// Recorded while a block is received.
    arrivals: Arrivals,
    /// The entries of a progress frame being made: kept, so that an ack allocates nothing.
    entries: Vec<u8>,
}

/// What arrives.
#[derive(Debug)]
pub(super) struct Inbound {
    received: ReceivedDatagrams,
    /// Made when something of a block arrives: a server that only sends them stays small.
    blocks: Option<Box<BlocksIn>>,
    packets: IncomingPackets,
    /// Made when the first arrives.
    messages: Option<Box<MessageReceiver>>,
    reading: Reading,
    /// What the application holds for the peer.
    application_bytes: usize,
}

impl Inbound {
    /// Nothing has arrived.
    pub(super) fn new() -> Self {
        Self {
            received: ReceivedDatagrams::new(),
            blocks: None,
            packets: IncomingPackets::default(),
            messages: None,
            reading: Reading::new(),
            application_bytes: 0,
        }
    }

    /// The packet number of which these bits are on the wire, if its datagram may be opened at all.
    pub(super) fn number(&self, truncated: u32) -> (u64, Result<(), DropReason>) {
        let number = self.received.expand(truncated);
        (number, self.received.check(number))
    }

    /// Whether no datagram with a larger number arrived.
    pub(super) fn is_newest(&self, number: u64) -> bool {
        self.received.largest().is_none_or(|largest| number > largest)
    }

    /// What is known of the peer's datagrams.
    pub(super) fn heard(&self) -> Heard {
        let next = self.received.largest().map_or(0, |largest| largest + 1);
        Heard { next, received: self.received.received() }
    }

    /// A datagram was opened that arrived then.
    pub(super) fn on_datagram(&mut self, arrived: Instant) {
        self.reading.on_datagram(arrived);
    }

    /// The connection may send.
    pub(super) fn on_turn(&mut self, now: Instant) {
        self.reading.on_turn(now);
    }

    /// The datagram that was just handled had this ECN field.
    pub(super) const fn on_mark(&mut self, ecn: Ecn) {
        self.received.on_mark(ecn);
    }

    /// The peer wants an ack after this number of datagrams, and `delay` after one of a block.
    pub(super) const fn set_frequency(&mut self, datagrams: u8, delay: Duration) {
        self.received.set_frequency(datagrams, delay);
    }

    /// A datagram of the peer was verified.
    pub(super) fn on_heard(&mut self, now: Instant) {
        if let Some(it) = &mut self.blocks {
            it.blocks.on_heard(now);
        }
    }

    /// All of a datagram was acted on: it is to be acknowledged, if that is kept.
    pub(super) fn on_verified(
        &mut self,
        now: Instant,
        number: u64,
        is_ack_eliciting: bool,
        is_kept: bool,
    ) -> Result<(), DropReason> {
        let is_receiving = self.is_receiving_blocks();
        self.received.set_block(is_receiving);
        if !is_kept {
            self.received.on_not_kept(number);
            return Err(DropReason::NotKept);
        }
        self.received.on_verified(now, number, is_ack_eliciting);
        if let Some(it) = self.blocks.as_mut().filter(|_| is_receiving) {
            it.arrivals.on_datagram(now, number);
        }
        Ok(())
    }

    /// The blocks, if there is something of one.
    pub(super) fn blocks(&self) -> Option<&IncomingBlocks> {
        Some(&self.blocks.as_ref()?.blocks)
    }

    /// The blocks, to be changed, if there is something of one.
    pub(super) fn blocks_mut(&mut self) -> Option<&mut IncomingBlocks> {
        Some(&mut self.blocks.as_mut()?.blocks)
    }

    /// The blocks, to be changed. If their receiver is not made yet, it is made with these settings and this
    /// round trip.
    pub(super) fn blocks_or_new(
        &mut self,
        now: Instant,
        with: impl FnOnce() -> (IncomingConfig, Option<Duration>),
    ) -> &mut IncomingBlocks {
        let it = self.blocks.get_or_insert_with(|| {
            let (config, rtt) = with();
            let mut blocks = IncomingBlocks::new(now, config);
            rtt.into_iter().for_each(|rtt| blocks.set_rtt(rtt));
            Box::new(BlocksIn { blocks, arrivals: Arrivals::new(), entries: Vec::new() })
        });
        &mut it.blocks
    }

    /// Whether slices are expected.
    pub(super) fn is_receiving_blocks(&self) -> bool {
        self.blocks().is_some_and(IncomingBlocks::is_receiving)
    }

    pub(super) fn on_packet(
        &mut self,
        datagram: u64,
        (sequence, data): (Sequence, &[u8]),
        config: &ConnectionConfig,
        pool: &mut FragmentPool,
    ) {
        let (data, max_bytes) = (Bytes::copy_from_slice(data), config.max_unread_packet_bytes);
        self.packets.on_packet(datagram, sequence, data, pool, max_bytes);
    }

    /// A fragment that is refused is lost like any other.
    pub(super) fn on_fragment(
        &mut self,
        now: Instant,
        datagram: u64,
        fragment: &Fragment<'_>,
        config: &ConnectionConfig,
        pool: &mut FragmentPool,
    ) {
        let max_bytes = config.max_unread_packet_bytes;
        let _lost = self.packets.on_fragment(now, datagram, fragment, pool, max_bytes);
    }

    pub(super) fn on_message(
        &mut self,
        message: &MessageFrame<'_>,
        config: &ConnectionConfig,
    ) -> Result<(), MessageViolation> {
        let (channels, bytes) = (config.max_channels, config.max_channel_bytes);
        let new = || Box::new(MessageReceiver::new(channels, bytes));
        self.messages.get_or_insert_with(new).receive(message).map(|_| ())
    }

    /// The next of what the application has not taken: packets, messages, then blocks.
    pub(super) fn poll_event(&mut self, now: Instant) -> Option<Event> {
        let packet = self.packets.pop();
        let message = || {
            let (channel, data) = self.messages.as_mut()?.pop()?;
            Some(Event::Message { channel, data })
        };
        let next = packet.or_else(message);
        next.or_else(|| self.blocks_mut()?.poll_event(now).map(Event::from))
    }

    pub(super) fn has_events(&self) -> bool {
        self.packets.has_events()
            || self.messages.as_ref().is_some_and(|it| it.has_next())
            || self.blocks().is_some_and(IncomingBlocks::has_events)
    }

    /// When a block has to be looked at.
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        self.blocks().and_then(IncomingBlocks::deadline)
    }

    /// What was computed for blocks.
    pub(super) fn work(&self) -> Work {
        let Some(done) = self.blocks().map(IncomingBlocks::work) else { return Work::default() };
        Work {
            decodes: done.decodes,
            decoded_bytes: done.decoded_bytes,
            hashed_bytes: done.hashed_bytes,
            ..Work::default()
        }
    }

    /// Packets that were dropped because nobody read them.
    pub(super) const fn packets_dropped(&self) -> u64 {
        self.packets.dropped
    }

    /// The application holds `bytes` bytes for the peer.
    pub(super) const fn set_application_bytes(&mut self, bytes: usize) {
        self.application_bytes = bytes;
    }

    /// Memory held for the peer, in bytes: blocks, packets and messages that are incomplete or not read yet,
    /// and the memory that the application has reported.
    pub(super) fn memory_bytes(&self) -> usize {
        self.blocks().map_or(0, IncomingBlocks::memory_bytes)
            + self.packets.memory_bytes()
            + self.messages.as_ref().map_or(0, |it| it.memory_bytes())
            + self.application_bytes
    }

    /// Drops everything that is not read. The application hears of the end, and drops what it has.
    pub(super) fn drop_unread(&mut self, now: Instant, config: IncomingConfig) {
        if let Some(blocks) = self.blocks_mut() {
            let dropped = core::mem::replace(blocks, IncomingBlocks::new(now, config));
            blocks.add_work_of(&dropped);
        }
        self.packets.drop_unread();
        self.messages = None;
        self.application_bytes = 0;
    }

    /// Frees its fragments in the pool.
    pub(super) fn clear(&mut self, pool: &mut FragmentPool) {
        self.packets.clear(pool);
    }

    /// Panics if its parts contradict each other.
    pub(super) fn check_invariants(&self) {
        self.blocks().iter().for_each(|blocks| blocks.check_invariants());
        self.messages.iter().for_each(|it| it.check_invariants());
    }
}

//! Blocks: what the application asks of a connection for them, and a server of those that it has.
//!
//! The invariant: a block is sent only while the connection is open, and only if the peer takes one of its
//! size.

use alloc::vec::Vec;
use core::time::Duration;

use haulier_control::{Controller, Rate, Span, Urgency};

use super::config::{ConnectionConfig, LOWEST_MAX_RATE_BPS};
use super::trace::TraceEvent;
use super::{
    Block, BlockHandle, BlockNumber, BlockOptions, BlockProgress, Connection, Event, SendError,
};
use crate::Instant;
use crate::block_map::BlockMap;

use crate::bulk::Sender;
use crate::fields::MAX_VARINT;
use crate::incoming::{Delivery, Here, IncomingBlocks};
use crate::outgoing::{OutgoingBlocks, OutgoingEvent, PeerLimits, SendBlockError, SendOptions};
use crate::wire::EndParameters;
use crate::wire::parameters::REED_SOLOMON;

/// Datagrams in flight, and all that were acknowledged and lost so far.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Flight {
    pub(crate) in_flight: u32,
    /// Those of them that have a slice.
    pub(crate) slices: u32,
    pub(crate) acked: u64,
    pub(crate) lost: u64,
    /// The last round trip, and the shortest.
    pub(crate) rtt: Duration,
    pub(crate) min_rtt: Duration,
    /// The least queueing delay of the last report, in seconds; `None` before one.
    pub(crate) queue: Option<f64>,
    /// The time by which the path was found to have become longer, since it began.
    pub(crate) longer: Duration,
    /// The rate of the path as its trains show it, in bits per second; 0 before.
    pub(crate) link_bps: u64,
}

/// The rest of the blocks that are being sent, and the rate of the path.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Left {
    pub(crate) bytes: u64,
    /// The rate of the path to the peer in bits per second, if it is known.
    pub(crate) link_bps: Option<u64>,
}

impl Connection {
    /// The progress of the block being sent.
    #[must_use]
    pub fn sending(&self) -> Option<BlockProgress> {
        self.outbound.blocks().progress()
    }

    /// The progress of the first block being received.
    #[must_use]
    pub fn receiving(&self) -> Option<BlockProgress> {
        let (tag, received, length) = self.inbound.blocks()?.progress().next()?;
        Some(BlockProgress { tag, done: received, length })
    }

    /// Bytes that have arrived of chunks that are not whole and verified yet, in all blocks being received.
    /// On a slow link a chunk takes seconds, in which this alone says that something comes.
    #[must_use]
    pub fn unfinished_bytes(&self) -> u64 {
        self.inbound.blocks().map_or(0, IncomingBlocks::unfinished_bytes)
    }

    /// The map of the block being sent: which of its chunks are done, and the slices of the first
    /// `max_chunks` chunks on the way. It is for display to people: it costs a copy of that size.
    #[must_use]
    pub fn sending_map(&self, max_chunks: usize) -> Option<BlockMap> {
        self.outbound.blocks().map(max_chunks)
    }

    /// The map of the first block being received, like [`sending_map`](Self::sending_map).
    #[must_use]
    pub fn receiving_map(&self, max_chunks: usize) -> Option<BlockMap> {
        self.inbound.blocks()?.map(max_chunks)
    }

    /// The progress of this block; `None` if it is finished.
    #[must_use]
    pub fn sending_block(&self, handle: BlockHandle) -> Option<BlockProgress> {
        self.outbound.blocks().progress_of(handle.0)
    }

    /// Changes the maximum rate of blocks, in bits per second including headers; less than 4000 counts as
    /// 4000. A limit from the client's token still applies.
    pub fn set_max_rate_bps(&mut self, rate_bps: u64) {
        let rate_bps = rate_bps.max(LOWEST_MAX_RATE_BPS);
        self.outbound.transfer_mut().set_max_rate_bps(rate_bps);
    }

    /// Changes how much of the link blocks may take, from the next slice on.
    pub fn set_urgency(&mut self, urgency: Urgency) {
        self.outbound.blocks_mut().set_urgency(self.life.now(), urgency);
    }

    /// Sends a block of any size. Its bytes are not copied; those of one from a source are asked for
    /// ([`want_chunk`](Self::want_chunk)).
    ///
    /// # Errors
    /// [`SendError`]; `BlockTooLarge` if the peer accepts no blocks of this size.
    pub fn send_block(&mut self, now: Instant, block: &Block) -> Result<BlockHandle, SendError> {
        self.send_block_with(now, block, BlockOptions::default())
    }

    /// Sends a block with these options beside other blocks: the one with the highest priority goes first.
    ///
    /// # Errors
    /// As [`send_block`](Self::send_block).
    pub fn send_block_with(
        &mut self,
        now: Instant,
        block: &Block,
        options: BlockOptions,
    ) -> Result<BlockHandle, SendError> {
        self.open()?;
        let max = self.agreement.max_block_bytes();
        if block.length() > max {
            return Err(SendError::BlockTooLarge { max });
        }
        if block.tag() > MAX_VARINT {
            return Err(SendError::TagTooLarge { tag: block.tag() });
        }
        if self.outbound.blocks().is_idle() {
            self.liveness.forget_unanswered();
        }
        let BlockOptions { priority, weight, urgency } = options;
        let options = SendOptions { priority, weight, urgency, ..SendOptions::default() };
        let (path, next) = (&mut self.path.blocks, self.recovery.next_number());
        let sent = self.outbound.blocks_mut().send(now, path, block.clone(), options, next);
        sent.map(BlockHandle).map_err(|error| match error {
            SendBlockError::QueueFull => SendError::QueueFull { setting: "max_queued_blocks" },
            SendBlockError::NumbersUsedUp => SendError::NumbersUsedUp,
        })
    }

    /// Gives a block up and sends the peer the `code`, the application's own. Returns whether the block was
    /// on its way; there is no event.
    pub fn cancel_block(&mut self, now: Instant, handle: BlockHandle, code: u32) -> bool {
        self.outbound.blocks_mut().cancel(now, handle.0, code)
    }

    /// Declines the rest of a block that the peer announced, and sends the peer the `code`, the application's
    /// own. Returns whether the block was being received.
    pub fn decline_block(&mut self, now: Instant, block: BlockNumber, code: u32) -> bool {
        self.inbound.blocks_mut().is_some_and(|blocks| blocks.decline(now, block.0, code))
    }

    /// The application has the block with this BLAKE3 already: that is reported to the peer, which then sends
    /// only the announcement of the block. At most 64 are remembered; returns whether this one is.
    pub fn have_block(&mut self, digest: [u8; 32]) -> bool {
        self.blocks_in(self.life.now()).have(digest, Here::Whole, false)
    }

    /// The application has these chunks of the block with this BLAKE3 already, verified: bit `i` of the map,
    /// the lowest of each byte first, is the chunk from byte `i * 262144` on. Say so before the peer
    /// announces the block: then it sends only the others, as far as it has not begun, and only these are
    /// handed out. At most 64 blocks are remembered with [`have_block`](Self::have_block); returns whether
    /// this one is. With [`Delivery::Blocks`] none is.
    pub fn have_chunks(&mut self, digest: [u8; 32], map: impl Into<Vec<u8>>) -> bool {
        self.config.delivery != Delivery::Blocks
            && self.blocks_in(self.life.now()).have(digest, Here::Chunks(map.into()), false)
    }

    /// The half that receives, which is made if need be.
    pub(super) fn blocks_in(&mut self, now: Instant) -> &mut IncomingBlocks {
        let Self { config, liveness, path, inbound, .. } = self;
        inbound.blocks_or_new(now, || {
            let rtt = path.timing.rtt().smoothed_rtt();
            (config.incoming(liveness.idle_timeout()), rtt)
        })
    }

    /// Passes on what became of blocks, after input and after a timeout.
    pub(super) fn after_blocks(&mut self, now: Instant) {
        let blocks = self.outbound.blocks_mut();
        blocks.poll(now);
        if blocks.transfer.sender().is_none() {
            self.path.blocks.end();
        }
        while let Some(event) = blocks.poll_event() {
            let event = match event {
                OutgoingEvent::Sent { handle } => {
                    let handle = BlockHandle(handle);
                    self.life.note(now, || TraceEvent::BlockSent { handle });
                    Event::BlockSent { handle }
                }
                OutgoingEvent::Declined { handle, code } => {
                    Event::BlockDeclined { handle: BlockHandle(handle), code }
                }
            };
            self.life.tell([event]);
        }
    }

    /// Whether blocks may use the server's uplink now.
    pub(crate) fn set_uplink_open(&mut self, now: Instant, is_open: bool) {
        if let Some(sender) = self.outbound.transfer_mut().sender_mut() {
            sender.set_uplink_open(now, is_open);
        }
    }

    /// Sets whether the server paces the connections to this address together.
    pub(crate) fn set_paced_together(&mut self, is_paced: bool) {
        if let Some(sender) = self.outbound.transfer_mut().sender_mut() {
            sender.set_paced_together(is_paced);
        }
    }

    /// The rest of the blocks, if they wait only for the server's uplink to open.
    pub(crate) fn awaits_uplink(&self) -> Option<Left> {
        let blocks = self.outbound.blocks();
        let awaits = blocks.transfer.sender().is_some_and(Sender::awaits_uplink);
        let link_bps = || self.path.blocks.known().bandwidth_bps();
        awaits.then(|| Left { bytes: blocks.bytes_left(), link_bps: link_bps() })
    }

    /// Many connections lost datagrams together, which says nothing of this connection's own link: the link
    /// is measured anew.
    pub(crate) fn excuse_losses(&mut self) {
        let (now, next) = (self.life.now(), self.recovery.next_number());
        self.outbound.transfer_mut().measure_anew(now, &mut self.path.blocks, next);
    }

    /// Whether it sends blocks.
    pub(crate) fn sends_blocks(&self) -> bool {
        let blocks = self.outbound.blocks();
        blocks.transfer.sender().is_some() && !blocks.is_idle()
    }

    /// The chunk sender and what it has measured of the path, while there are blocks.
    fn sender(&self) -> Option<(&Sender, &Controller)> {
        self.outbound.transfer().asked_on(&self.path.blocks)
    }

    /// The rate at which blocks go, or would before anything is known of the path, in bits per second.
    pub(crate) fn first_bps(&self) -> u64 {
        self.sender().map_or(0, |(sender, path)| sender.first_bps(path))
    }

    /// The rate at which blocks go, in bits per second; `None` while none is known.
    pub(super) fn pace_bps(&self) -> Option<u64> {
        let (sender, path) = self.sender()?;
        sender.pace_bps(path)
    }

    /// What it has in flight while it sends blocks. Of a peer that does not answer that is nothing.
    pub(crate) fn flight(&self) -> Option<Flight> {
        let (sender, path) = self.sender().filter(|_| !self.outbound.blocks().is_idle())?;
        let ledger = self.recovery.ledger();
        let (in_flight, slices) = match sender.is_probing() {
            true => (0, 0),
            false => (ledger.in_flight(), ledger.slices_in_flight()),
        };
        let (latest, min_rtt) =
            (self.path.timing.rtt().latest_rtt(), self.path.timing.rtt().min_rtt());
        let (rtt, min_rtt) = (latest.unwrap_or_default(), min_rtt.unwrap_or_default());
        // A clock that steps leaves a delay one way, but none there and back.
        let most = rtt.saturating_sub(min_rtt).as_secs_f64();
        Some(Flight {
            in_flight,
            slices,
            acked: ledger.acked(),
            lost: ledger.lost(),
            rtt,
            min_rtt,
            queue: path.queueing_delay().map(|queue| (queue / Span::from_secs(1)).min(most)),
            longer: path.longer(),
            link_bps: path.link_rate().map_or(0, Rate::bps),
        })
    }
}

/// The half that sends, to a peer that says this of itself, with the idle timeout of both ends. A slice frame
/// may have `room` bytes at first.
pub(super) fn outgoing(
    config: &ConnectionConfig,
    idle_timeout: Duration,
    peer: &EndParameters,
    room: usize,
) -> OutgoingBlocks {
    let limits = PeerLimits {
        credit: peer.credit,
        receive_buffer: peer.receive_buffer_bytes,
        has_repair: peer.repair_codes & REED_SOLOMON != 0,
        announced_blocks: peer.announced_blocks,
    };
    OutgoingBlocks::new(&config.outgoing(idle_timeout), &limits, room)
}

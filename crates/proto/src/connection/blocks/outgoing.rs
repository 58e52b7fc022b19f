//! The sending half: announcements, and one chunk after the other for the chunk sender.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use core::time::Duration;

use super::{Block, BlockProgress, CHUNK_ACK_INTERVAL, MAX_ANNOUNCED, longest_time};
use crate::Instant;
use crate::chunk::{
    ChunkHandle, ChunkId, MAX_CHUNK_BYTES, ResendDelay, Sender, SenderConfig, SenderEvent,
};
use crate::connection::{BlockHandle, CloseCode, ConnectionConfig, SendError};
use crate::wire::TAG_BYTES;
use crate::wire::frame::{BlockFrame, SLICE_FRAME_BYTES};
use crate::wire::header::DATA_HEADER_BYTES;

/// Before anything was measured (RFC 9002, 6.2.2): the first slices are not sent again sooner. The first ack,
/// which is for the handshake, says better.
const INITIAL_RTT: Duration = Duration::from_millis(333);

/// UDP and IPv4 round a datagram.
const UDP_IPV4_BYTES: usize = 28;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Announcement {
    Due,
    InFlight,
    Acked,
}

#[derive(Debug)]
struct Outgoing {
    number: u32,
    block: Block,
    announcement: Announcement,
    /// Bytes handed to the chunk sender.
    handed: usize,
    /// Chunks handed and not acked.
    open_chunks: usize,
    /// When it became the first in the line: one that waits behind a long one does not crawl.
    started: Instant,
}

/// The sending half.
#[derive(Debug)]
pub(crate) struct OutgoingBlocks {
    /// There while there are blocks: an idle connection is small.
    sender: Option<Box<Sender>>,
    /// For the next sender.
    next_chunk_id: ChunkId,
    rate_bps: u64,
    /// What a token allows at most.
    rate_cap_bps: u64,
    burst: bool,
    rtt: Option<Duration>,
    blocks: VecDeque<Outgoing>,
    next: u32,
    chunks: VecDeque<(ChunkHandle, u32)>,
    /// Slices sent and resent by senders that are gone.
    past: (u64, u64),
    failed: bool,
}

impl OutgoingBlocks {
    pub(crate) const fn new(config: &ConnectionConfig) -> Self {
        Self {
            sender: None,
            next_chunk_id: ChunkId::new(0),
            rate_bps: config.rate_bps,
            rate_cap_bps: u64::MAX,
            burst: config.burst,
            rtt: None,
            blocks: VecDeque::new(),
            next: 0,
            chunks: VecDeque::new(),
            past: (0, 0),
            failed: false,
        }
    }

    fn new_sender(&self, config: &ConnectionConfig) -> Box<Sender> {
        let mut sender = Sender::new(SenderConfig {
            rate_bps: self.rate_bps,
            burst: self.burst,
            // What is lost is known by then, not guessed after a wait.
            burst_wait: Duration::ZERO,
            resend_delay: ResendDelay::Rtt,
            peer_ack_interval: CHUNK_ACK_INTERVAL,
            give_up_after: Some(config.no_progress_timeout),
            overhead_bytes: DATA_HEADER_BYTES + SLICE_FRAME_BYTES + TAG_BYTES + UDP_IPV4_BYTES,
            first_chunk_id: self.next_chunk_id,
            ..SenderConfig::default()
        });
        sender.set_rtt(self.rtt.unwrap_or(INITIAL_RTT) + CHUNK_ACK_INTERVAL);
        Box::new(sender)
    }

    /// The chunk sender, while there are blocks.
    pub(crate) fn sender(&self) -> Option<&Sender> {
        self.sender.as_deref()
    }

    /// The same, to ask it for slices and give it acks.
    pub(crate) fn sender_mut(&mut self) -> Option<&mut Sender> {
        self.sender.as_deref_mut()
    }

    pub(crate) fn set_rate_bps(&mut self, rate_bps: u64) {
        self.rate_bps = rate_bps.min(self.rate_cap_bps);
        let rate_bps = self.rate_bps;
        if let Some(sender) = &mut self.sender {
            sender.set_rate_bps(rate_bps);
        }
    }

    /// From now on no rate is above this one.
    pub(crate) fn cap_rate_bps(&mut self, rate_cap_bps: u64) {
        self.rate_cap_bps = rate_cap_bps;
        self.set_rate_bps(self.rate_bps);
    }

    pub(crate) fn set_burst(&mut self, burst: bool) {
        self.burst = burst;
        if let Some(sender) = &mut self.sender {
            sender.set_burst(burst);
        }
    }

    /// The round trip of the connection is this now. The ack of a slice may come a chunk ack later.
    pub(crate) fn set_rtt(&mut self, rtt: Duration) {
        self.rtt = Some(rtt);
        if let Some(sender) = &mut self.sender {
            sender.set_rtt(rtt + CHUNK_ACK_INTERVAL);
        }
    }

    /// Slices sent, and of these resent.
    pub(crate) fn slices(&self) -> (u64, u64) {
        let now = self.sender.as_ref().map(|sender| *sender.stats()).unwrap_or_default();
        (self.past.0 + now.slices_sent, self.past.1 + now.slices_resent)
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.blocks.is_empty()
    }

    pub(crate) fn send(
        &mut self,
        now: Instant,
        block: Block,
        config: &ConnectionConfig,
    ) -> Result<BlockHandle, SendError> {
        if self.blocks.len() >= config.queued_blocks {
            return Err(SendError::QueueFull);
        }
        if self.sender.is_none() {
            self.sender = Some(self.new_sender(config));
        }
        let number = self.next;
        self.next = number.checked_add(1).ok_or(SendError::QueueFull)?;
        self.blocks.push_back(Outgoing {
            number,
            block,
            announcement: Announcement::Due,
            handed: 0,
            open_chunks: 0,
            started: now,
        });
        self.hand_on();
        Ok(BlockHandle(number))
    }

    /// Gives the chunk sender its next chunks: one in flight and one behind it.
    fn hand_on(&mut self) {
        let Some(sender) = &mut self.sender else { return };
        for outgoing in self.blocks.iter_mut().take(MAX_ANNOUNCED) {
            let length = outgoing.block.data.len();
            while outgoing.handed < length {
                if self.chunks.len() >= 2 {
                    return;
                }
                let end = length.min(outgoing.handed + MAX_CHUNK_BYTES);
                let chunk = outgoing.block.data.slice(outgoing.handed..end);
                let Ok(handle) = sender.send_chunk(chunk) else { return };
                self.chunks.push_back((handle, outgoing.number));
                outgoing.handed = end;
                outgoing.open_chunks += 1;
            }
        }
    }

    /// The next announcement that is due.
    pub(crate) fn poll_announcement(&mut self) -> Option<BlockFrame> {
        let due = |outgoing: &&mut Outgoing| outgoing.announcement == Announcement::Due;
        let outgoing = self.blocks.iter_mut().take(MAX_ANNOUNCED).find(due)?;
        outgoing.announcement = Announcement::InFlight;
        Some(BlockFrame {
            number: outgoing.number,
            tag: outgoing.block.tag,
            length: outgoing.block.data.len() as u64,
            digest: outgoing.block.digest,
        })
    }

    pub(crate) fn has_announcement(&self) -> bool {
        let due = |outgoing: &Outgoing| outgoing.announcement == Announcement::Due;
        self.blocks.iter().take(MAX_ANNOUNCED).any(due)
    }

    pub(crate) fn on_announced(&mut self, number: u32, acked: bool) {
        if let Some(outgoing) = self.blocks.iter_mut().find(|outgoing| outgoing.number == number) {
            outgoing.announcement = if acked { Announcement::Acked } else { Announcement::Due };
        }
    }

    /// Takes in what the chunk sender says, and hands finished blocks to `done`.
    pub(crate) fn poll(&mut self, now: Instant, mut done: impl FnMut(BlockHandle)) {
        let Some(sender) = &mut self.sender else { return };
        while let Some(event) = sender.poll_event() {
            match event {
                SenderEvent::Sent { handle, .. } => {
                    let Some((sent, number)) = self.chunks.pop_front() else { continue };
                    debug_assert_eq!(sent, handle, "chunks are sent in order");
                    if let Some(outgoing) = self.blocks.iter_mut().find(|o| o.number == number) {
                        outgoing.open_chunks -= 1;
                    }
                }
                SenderEvent::Failed { .. } => self.failed = true,
            }
        }
        let is_done = |outgoing: &Outgoing| {
            outgoing.announcement == Announcement::Acked
                && outgoing.handed == outgoing.block.data.len()
                && outgoing.open_chunks == 0
        };
        while self.blocks.front().is_some_and(is_done) {
            let Some(outgoing) = self.blocks.pop_front() else { break };
            done(BlockHandle(outgoing.number));
            if let Some(next) = self.blocks.front_mut() {
                next.started = now;
            }
        }
        self.hand_on();
        if self.blocks.is_empty() {
            self.past = self.slices();
            self.next_chunk_id =
                self.sender.take().map_or(self.next_chunk_id, |s| s.next_chunk_id());
            self.blocks = VecDeque::new();
            self.chunks = VecDeque::new();
        }
    }

    pub(crate) fn progress(&self) -> Option<BlockProgress> {
        let outgoing = self.blocks.front()?;
        let open = self.chunks.iter().filter(|(_, number)| *number == outgoing.number).count();
        let length = outgoing.block.data.len();
        let queued = open.saturating_sub(1) * MAX_CHUNK_BYTES;
        let in_flight = match self.sender.as_ref().and_then(|sender| sender.progress()) {
            Some(chunk) if open > 0 => {
                let acked = (chunk.acked * crate::chunk::SLICE_BYTES).min(chunk.bytes);
                chunk.bytes - acked
            }
            _ => 0,
        };
        let done = outgoing.handed.saturating_sub(queued + in_flight);
        Some(BlockProgress { tag: outgoing.block.tag, done: done as u64, length: length as u64 })
    }

    /// Why the connection must end, if it must: nothing moves any more, or too slowly.
    pub(crate) fn verdict(&self, now: Instant, config: &ConnectionConfig) -> Option<CloseCode> {
        let is_late = self.crawl_deadline(config).is_some_and(|at| at <= now);
        (self.failed || is_late).then_some(CloseCode::NO_PROGRESS)
    }

    fn crawl_deadline(&self, config: &ConnectionConfig) -> Option<Instant> {
        let outgoing = self.blocks.front()?;
        let rate = Some(config.least_block_rate_bps).filter(|&rate| rate > 0)?;
        Some(outgoing.started + longest_time(outgoing.block.data.len() as u64, rate))
    }

    /// When time alone ends something, whether or not anything may be sent.
    pub(crate) fn poll_deadline(&self, config: &ConnectionConfig) -> Option<Instant> {
        if self.failed { Some(Instant::ZERO) } else { self.crawl_deadline(config) }
    }
}

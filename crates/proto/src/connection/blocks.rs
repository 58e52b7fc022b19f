//! Blocks over chunks: what the application sends, of any size, as a run of chunks (STANDARD-1, 4.2).
//!
//! A block frame announces number, tag, length and digest; the chunks follow on the chunk sender, without a
//! copy. On the other side a chunk waits in the chunk receiver until its block is announced.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
use core::time::Duration;

use bytes::Bytes;

use super::config::ConnectionConfig;
use super::event::{BlockHandle, CloseCode, Event, SendError};
use crate::Instant;
use crate::chunk::{
    ChunkHandle, ChunkId, MAX_CHUNK_BYTES, Receiver, ReceiverConfig, ResendDelay, Sender,
    SenderConfig, SenderEvent,
};
use crate::time::earliest;
use crate::wire::TAG_BYTES;
use crate::wire::frame::{BlockFrame, SLICE_FRAME_BYTES};
use crate::wire::header::DATA_HEADER_BYTES;

/// Blocks announced and not finished: enough that the next one follows without a pause, few enough that a
/// receiver needs no memory for them.
const MAX_ANNOUNCED: usize = 8;

/// Chunk acks are at least this far apart: with the sender at half a megabit they are 3 % of what they
/// answer.
const CHUNK_ACK_INTERVAL: Duration = Duration::from_millis(30);

/// Before anything was measured (RFC 9002, 6.2.2): the first slices are not sent again sooner. The first ack,
/// which is for the handshake, says better.
const INITIAL_RTT: Duration = Duration::from_millis(333);

/// UDP and IPv4 round a datagram.
const UDP_IPV4_BYTES: usize = 28;

/// What a finished block is counted for beside its bytes: empty ones take a place too.
const FINISHED_COST: u64 = 256;

/// What a block may take beside its size at the least rate.
const LEAST_BLOCK_TIME: Duration = Duration::from_secs(60);

/// A block with its digest, which is computed once, however many connections send it. Cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    tag: u64,
    data: Bytes,
    digest: [u8; 32],
}

impl Block {
    /// A block that the receiver will know by `tag`.
    #[must_use]
    pub fn new(tag: u64, data: impl Into<Bytes>) -> Self {
        let data = data.into();
        let digest = *blake3::hash(&data).as_bytes();
        Self { tag, data, digest }
    }

    /// The application's name for it.
    #[must_use]
    pub const fn tag(&self) -> u64 {
        self.tag
    }

    /// Its bytes.
    #[must_use]
    pub const fn data(&self) -> &Bytes {
        &self.data
    }

    /// Their BLAKE3.
    #[must_use]
    pub const fn digest(&self) -> &[u8; 32] {
        &self.digest
    }
}

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

/// How far the block in flight is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockProgress {
    /// The application's name for it.
    pub tag: u64,
    /// Bytes that are through, in whole chunks and slices.
    pub done: u64,
    /// Bytes it has.
    pub length: u64,
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

/// What a block of this size may take at this rate, in bits per second (H-5.1b).
fn longest_time(bytes: u64, rate: u64) -> Duration {
    Duration::from_secs(bytes.saturating_mul(8) / rate).saturating_add(LEAST_BLOCK_TIME)
}

#[derive(Debug)]
struct Announced {
    tag: u64,
    length: u64,
    digest: [u8; 32],
    began: Option<Instant>,
}

/// The receiving half.
#[derive(Debug)]
pub(crate) struct IncomingBlocks {
    pub(crate) receiver: Receiver,
    announced: BTreeMap<u32, Announced>,
    /// The block that the next chunk belongs to.
    current: u32,
    data: Vec<u8>,
    /// Of the bytes in `data`: a chunk at a time, for no datagram may cost the digest of a whole block.
    hasher: Option<Box<blake3::Hasher>>,
    finished: VecDeque<(u64, Bytes)>,
    finished_bytes: u64,
    progressed: bool,
    /// When the block in progress last came further.
    moved: Instant,
    /// A rule was broken where nobody could be told: the connection closes at its next time-out.
    violation: Option<CloseCode>,
}

impl IncomingBlocks {
    pub(crate) fn new(config: &ConnectionConfig) -> Self {
        let receiver = Receiver::new(ReceiverConfig {
            ack_interval: CHUNK_ACK_INTERVAL,
            // The sender gives up first, and the connection ends with that.
            abandon_after: Some(config.no_progress_timeout.saturating_mul(2)),
            ..ReceiverConfig::default()
        });
        Self {
            receiver,
            announced: BTreeMap::new(),
            current: 0,
            data: Vec::new(),
            hasher: None,
            finished: VecDeque::new(),
            finished_bytes: 0,
            progressed: false,
            moved: Instant::ZERO,
            violation: None,
        }
    }

    /// A block frame came.
    pub(crate) fn on_frame(
        &mut self,
        now: Instant,
        frame: &BlockFrame,
        config: &ConnectionConfig,
    ) -> Result<(), CloseCode> {
        if frame.number < self.current || self.announced.contains_key(&frame.number) {
            return Ok(());
        }
        if (frame.number - self.current) as usize >= MAX_ANNOUNCED {
            // Empty blocks are finished for their sender once they are announced. Held back by a reader
            // that does not read, they pile up here, and that is nobody's lie.
            return Err(match self.is_held_back(config) {
                true => CloseCode::RESOURCES,
                false => CloseCode::PROTOCOL,
            });
        }
        if frame.length > config.largest_block {
            return Err(CloseCode::BLOCK_TOO_LARGE);
        }
        let announced =
            Announced { tag: frame.tag, length: frame.length, digest: frame.digest, began: None };
        self.announced.insert(frame.number, announced);
        self.advance(now, config)
    }

    /// A slice was new; chunks may be whole now.
    pub(crate) fn on_slice(
        &mut self,
        now: Instant,
        config: &ConnectionConfig,
    ) -> Result<(), CloseCode> {
        self.progressed = true;
        self.moved = now;
        self.advance(now, config)
    }

    /// Finished blocks wait for the application, and no more are taken before it reads them.
    const fn is_held_back(&self, config: &ConnectionConfig) -> bool {
        self.finished_bytes > config.unread_block_bytes
    }

    /// Takes finished chunks into their blocks, as far as blocks are announced and read.
    pub(crate) fn advance(
        &mut self,
        now: Instant,
        config: &ConnectionConfig,
    ) -> Result<(), CloseCode> {
        while !self.is_held_back(config) {
            let Some(block) = self.announced.get_mut(&self.current) else { break };
            if block.began.is_none() {
                (block.began, self.moved) = (Some(now), now);
            }
            let missing = block.length - self.data.len() as u64;
            if missing == 0 {
                self.finish()?;
                continue;
            }
            let Some(chunk) = self.receiver.pop() else { break };
            if chunk.len() as u64 != missing.min(MAX_CHUNK_BYTES as u64) {
                return Err(CloseCode::PROTOCOL);
            }
            if chunk.len() as u64 == block.length {
                let digest = blake3::hash(&chunk);
                self.finish_with(chunk, digest)?;
            } else {
                self.hasher.get_or_insert_default().update(&chunk);
                self.data.extend_from_slice(&chunk);
            }
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<(), CloseCode> {
        let data = core::mem::take(&mut self.data);
        let digest = self.hasher.take().unwrap_or_default().finalize();
        self.finish_with(data.into(), digest)
    }

    fn finish_with(&mut self, data: Bytes, digest: blake3::Hash) -> Result<(), CloseCode> {
        let Some(block) = self.announced.remove(&self.current) else { return Ok(()) };
        if digest != block.digest {
            return Err(CloseCode::BLOCK_DAMAGED);
        }
        self.current = self.current.checked_add(1).ok_or(CloseCode::PROTOCOL)?;
        self.finished_bytes += data.len() as u64 + FINISHED_COST;
        self.finished.push_back((block.tag, data));
        self.progressed = false;
        Ok(())
    }

    pub(crate) fn poll_event(&mut self, now: Instant, config: &ConnectionConfig) -> Option<Event> {
        if let Some((tag, data)) = self.finished.pop_front() {
            self.finished_bytes -= data.len() as u64 + FINISHED_COST;
            if self.finished.is_empty() {
                self.finished = VecDeque::new();
            }
            // There is room again for what was held back, and the waiting was not the peer's fault.
            self.moved = now;
            self.violation = self.violation.or(self.advance(now, config).err());
            return Some(Event::Block { tag, data });
        }
        let progress = self.progress().filter(|_| self.progressed)?;
        self.progressed = false;
        Some(Event::BlockProgress {
            tag: progress.tag,
            received: progress.done,
            length: progress.length,
        })
    }

    pub(crate) fn has_events(&self) -> bool {
        !self.finished.is_empty() || (self.progressed && self.announced.contains_key(&self.current))
    }

    pub(crate) fn progress(&self) -> Option<BlockProgress> {
        let block = self.announced.get(&self.current)?;
        let slices = self.receiver.progress().map_or(0, |progress| progress.received.len());
        let done = self.data.len() + slices * crate::chunk::SLICE_BYTES;
        let done = (done as u64).min(block.length);
        Some(BlockProgress { tag: block.tag, done, length: block.length })
    }

    /// Memory held for blocks, in bytes.
    pub(crate) fn memory_bytes(&self) -> usize {
        let finished = usize::try_from(self.finished_bytes).unwrap_or(usize::MAX);
        let receiver = self.receiver.memory_bytes() + self.receiver.unread() * MAX_CHUNK_BYTES;
        finished.saturating_add(self.data.capacity() + receiver)
    }

    /// Why the connection must end, if it must: a rule was broken, or the block in progress crawls.
    pub(crate) fn verdict(&self, now: Instant, config: &ConnectionConfig) -> Option<CloseCode> {
        let late = self.late_at(config).filter(|&at| at <= now);
        self.violation.or(late.map(|_| CloseCode::NO_PROGRESS))
    }

    pub(crate) fn poll_deadline(&self, config: &ConnectionConfig) -> Option<Instant> {
        self.violation.map_or_else(|| self.late_at(config), |_| Some(Instant::ZERO))
    }

    /// When the block in progress stood still, or crawled, for too long. Twice what its sender takes: that
    /// one knows better, and gives up first if it is honest.
    fn late_at(&self, config: &ConnectionConfig) -> Option<Instant> {
        let block = self.announced.get(&self.current).filter(|_| !self.is_held_back(config))?;
        let began = block.began?;
        let still = self.moved + config.no_progress_timeout.saturating_mul(2);
        let rate = Some(config.least_block_rate_bps).filter(|&rate| rate > 0);
        let crawl = rate.map(|rate| began + longest_time(block.length, rate).saturating_mul(2));
        earliest(Some(still), crawl)
    }

    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        self.receiver.poll_timeout()
    }
}

//! The sending half: announces blocks, and hands their chunks to the chunk sender one after the other.

use alloc::boxed::Box;
use alloc::collections::{BTreeSet, VecDeque};
use core::time::Duration;

use super::{Block, BlockProgress, MAX_ANNOUNCED, max_block_time};
use crate::Instant;
use crate::bulk::cut::{SliceSize, chunk_count};
use crate::bulk::repair::RepairSlice;
use crate::bulk::{
    Chosen, Credit, Known, NewBlock, RequestTrain, SEND_WINDOW, SendBlock, Sender, SenderConfig,
    SenderStats, SlicePart,
};
use crate::chunk::{Ack, ChunkId, SLICE_BYTES, Slice, SliceCount};
use crate::connection::{BlockHandle, CloseCode, ConnectionConfig, SendError, Urgency};
use crate::transit::{ChunkAt, Ledger, Symbol};
use crate::wire::Frame;
use crate::wire::frame::BlockFrame;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Announcement {
    Due,
    InFlight {
        copies: u8,
        /// Slices that had been sent before the last copy.
        slices: u64,
    },
    Acked,
}

/// Copies of an announcement that are sent before one is acknowledged or lost. Without it the receiver can
/// do nothing with a chunk, and 53 bytes cost less than a round trip.
const MAX_ANNOUNCEMENTS: u8 = 4;

/// Slices between the first two copies, halved: they follow after 8, 16 and 32 more.
const SLICES_BETWEEN: u64 = 4;

impl Announcement {
    /// Whether it belongs into the next datagram, after `slices` were sent.
    const fn is_due(self, slices: u64) -> bool {
        match self {
            Self::Due => true,
            Self::InFlight { copies, slices: last } => {
                copies < MAX_ANNOUNCEMENTS && slices >= last + (SLICES_BETWEEN << copies)
            }
            Self::Acked => false,
        }
    }
}

#[derive(Debug)]
struct Outgoing {
    number: u32,
    block: Block,
    announcement: Announcement,
    /// The id of its first chunk, and the number of its chunks.
    first_chunk: ChunkId,
    chunks: u32,
    /// The chunk sender has it.
    is_given: bool,
    /// When it became the first in the queue: waiting for an earlier block does not count as crawling.
    started: Instant,
}

/// The sending half.
#[derive(Debug)]
pub(crate) struct OutgoingBlocks {
    /// Exists while there are blocks, so that an idle connection is small.
    sender: Option<Box<Sender>>,
    /// The id of the next block's first chunk.
    next_chunk_id: ChunkId,
    /// The oldest chunk that is not done, and later ones that are: a window of ids begins with it.
    first_open: ChunkId,
    done: BTreeSet<u16>,
    known: Known,
    /// The spacing of the copies of the request.
    requests: RequestTrain,
    max_rate_bps: u64,
    /// The maximum that the client's token sets.
    rate_cap_bps: u64,
    urgency: Urgency,
    rtt: Option<Duration>,
    blocks: VecDeque<Outgoing>,
    next: u32,
    /// The counters of earlier senders.
    past: SenderStats,
    failed: bool,
}

impl OutgoingBlocks {
    pub(crate) const fn new(config: &ConnectionConfig) -> Self {
        Self {
            sender: None,
            next_chunk_id: ChunkId::new(0),
            first_open: ChunkId::new(0),
            done: BTreeSet::new(),
            known: Known::NOTHING,
            requests: RequestTrain::new(),
            max_rate_bps: config.max_rate_bps,
            rate_cap_bps: u64::MAX,
            urgency: config.urgency,
            rtt: None,
            blocks: VecDeque::new(),
            next: 0,
            past: SenderStats { slices: 0, repairs: 0, resent: 0 },
            failed: false,
        }
    }

    fn new_sender(
        &self,
        now: Instant,
        config: &ConnectionConfig,
        first_number: u64,
    ) -> Box<Sender> {
        let config = SenderConfig {
            urgency: self.urgency,
            max_rate_bps: self.max_rate_bps,
            min_rate_bps: config.min_rate_bps,
            give_up_after: config.no_progress_timeout,
            first_number,
            slice_room: SLICE_BYTES,
            max_slice: SliceSize::SMALLEST_OF_FULL_CHUNK,
            max_open: SEND_WINDOW,
            has_repair: true,
            credit: Credit::new(u64::MAX),
        };
        let mut sender = Sender::new(now, config, self.known.discounted(now));
        if let Some(rtt) = self.rtt {
            sender.set_rtt(rtt);
        }
        if let Some(rate) = self.requests.rate() {
            sender.set_hint(rate);
        }
        Box::new(sender)
    }

    /// The chunk sender, while there are blocks.
    pub(crate) fn sender(&self) -> Option<&Sender> {
        self.sender.as_deref()
    }

    /// The same, to be changed.
    pub(crate) fn sender_mut(&mut self) -> Option<&mut Sender> {
        self.sender.as_deref_mut()
    }

    /// A copy of the request arrived; `bytes` includes UDP and IP headers.
    pub(crate) fn on_request(&mut self, now: Instant, bytes: usize) {
        self.requests.on_copy(now, bytes);
        if let (Some(rate), Some(sender)) = (self.requests.rate(), &mut self.sender) {
            sender.set_hint(rate);
        }
    }

    /// What was measured of the path, for the client's next visit.
    pub(crate) fn known(&self) -> Known {
        self.sender.as_ref().map_or(self.known, |sender| sender.known())
    }

    /// The client's address has changed: what was measured does not apply to its new path.
    pub(crate) fn forget_path(&mut self) {
        (self.known, self.requests) = (Known::NOTHING, RequestTrain::new());
        if let Some(sender) = &mut self.sender {
            sender.forget_path();
        }
    }

    /// Starts from what an earlier connection measured of the path.
    pub(crate) const fn set_known(&mut self, known: Known) {
        self.known = known;
    }

    pub(crate) fn set_max_rate_bps(&mut self, rate_bps: u64) {
        self.max_rate_bps = rate_bps.min(self.rate_cap_bps);
        if let Some(sender) = &mut self.sender {
            sender.set_max_rate_bps(self.max_rate_bps);
        }
    }

    /// Limits this and every later maximum rate.
    pub(crate) fn cap_rate_bps(&mut self, rate_cap_bps: u64) {
        self.rate_cap_bps = rate_cap_bps;
        self.set_max_rate_bps(self.max_rate_bps);
    }

    pub(crate) fn set_urgency(&mut self, urgency: Urgency) {
        self.urgency = urgency;
        if let Some(sender) = &mut self.sender {
            sender.set_urgency(urgency);
        }
    }

    /// The connection measured a round trip; `rtt` is the smoothed value.
    pub(crate) fn set_rtt(&mut self, rtt: Duration) {
        self.rtt = Some(rtt);
        if let Some(sender) = &mut self.sender {
            sender.set_rtt(rtt);
        }
    }

    /// The counters of all its senders.
    pub(crate) fn stats(&self) -> SenderStats {
        let now = self.sender.as_ref().map(|sender| sender.stats()).unwrap_or_default();
        SenderStats {
            slices: self.past.slices + now.slices,
            repairs: self.past.repairs + now.repairs,
            resent: self.past.resent + now.resent,
        }
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.blocks.is_empty()
    }

    /// Queues a block. `next_number` is that of the next datagram.
    pub(crate) fn send(
        &mut self,
        now: Instant,
        block: Block,
        config: &ConnectionConfig,
        next_number: u64,
    ) -> Result<BlockHandle, SendError> {
        if self.blocks.len() >= config.max_queued_blocks {
            return Err(SendError::QueueFull { setting: "max_queued_blocks" });
        }
        if self.sender.is_none() {
            self.sender = Some(self.new_sender(now, config, next_number));
        }
        let number = self.next;
        self.next = number.checked_add(1).ok_or(SendError::NumbersUsedUp)?;
        let chunks = chunk_count(block.data().len() as u64).unwrap_or(0);
        self.blocks.push_back(Outgoing {
            number,
            block,
            announcement: Announcement::Due,
            first_chunk: self.next_chunk_id,
            chunks,
            is_given: false,
            started: now,
        });
        self.next_chunk_id = chunk_id(self.next_chunk_id, chunks);
        self.feed_sender(now);
        Ok(BlockHandle(number))
    }

    /// Gives the chunk sender the blocks that are announced.
    fn feed_sender(&mut self, now: Instant) {
        let Some(sender) = &mut self.sender else { return };
        let announced = self.blocks.iter_mut().take(MAX_ANNOUNCED);
        for outgoing in announced.filter(|outgoing| !outgoing.is_given && outgoing.chunks > 0) {
            outgoing.is_given = true;
            let (data, repair) = (outgoing.block.data().clone(), outgoing.block.repair().clone());
            sender.push(now, NewBlock { number: outgoing.number, priority: 0, data, repair });
            sender.set_ready(outgoing.number, u32::MAX);
        }
    }

    /// The slice to send now, and its frame.
    pub(crate) fn poll_slice(
        &mut self,
        now: Instant,
        ledger: &Ledger,
    ) -> Option<((ChunkAt, Symbol), Frame<'_>)> {
        let chosen = self.sender.as_mut()?.poll_slice(now, ledger, usize::MAX)?;
        let of_block = |outgoing: &&Outgoing| outgoing.number == chosen.at.block;
        let first = self.blocks.iter().find(of_block)?.first_chunk;
        let frame = slice_frame(chunk_id(first, chosen.at.index), &chosen)?;
        Some(((chosen.at, chosen.symbol), frame))
    }

    /// The peer reported which slices of a chunk it has.
    pub(crate) fn on_chunk_ack(&mut self, now: Instant, ack: &Ack) {
        let (Some(at), Some(sender)) = (self.at(ack.chunk_id), &mut self.sender) else { return };
        let mut map = [0; 32];
        for index in ack.received.iter() {
            if let Some(byte) = map.get_mut(index.get() / 8) {
                *byte |= 1 << (index.get() % 8);
            }
        }
        sender.on_slices_here(now, at, SliceSize::SMALLEST_OF_FULL_CHUNK, &map);
        if ack.received.is_full()
            && sender.block(at.block).is_some_and(|b| b.get(at.index).is_some())
        {
            self.done.insert(ack.chunk_id.get());
        }
        while self.done.remove(&self.first_open.get())
            && let (Some(at), Some(sender)) = (self.at(self.first_open), &mut self.sender)
        {
            sender.on_done(now, at);
            self.first_open = self.first_open.next();
        }
    }

    /// The chunk of this id.
    fn at(&self, id: ChunkId) -> Option<ChunkAt> {
        self.blocks.iter().find_map(|outgoing| {
            let index = u32::try_from(id.distance_from(outgoing.first_chunk)).ok()?;
            (index < outgoing.chunks).then_some(ChunkAt { block: outgoing.number, index })
        })
    }

    /// The next announcement that is due.
    pub(crate) fn poll_announcement(&mut self) -> Option<BlockFrame> {
        let slices = self.stats().slices;
        let due = |outgoing: &&mut Outgoing| outgoing.announcement.is_due(slices);
        let outgoing = self.blocks.iter_mut().take(MAX_ANNOUNCED).find(due)?;
        let copies = match outgoing.announcement {
            Announcement::InFlight { copies, .. } => copies + 1,
            Announcement::Due | Announcement::Acked => 1,
        };
        outgoing.announcement = Announcement::InFlight { copies, slices };
        Some(BlockFrame {
            number: outgoing.number,
            tag: outgoing.block.tag(),
            length: outgoing.block.data().len() as u64,
            digest: *outgoing.block.digest(),
        })
    }

    pub(crate) fn has_announcement(&self) -> bool {
        let due = |outgoing: &Outgoing| outgoing.announcement == Announcement::Due;
        self.blocks.iter().take(MAX_ANNOUNCED).any(due)
    }

    /// An announcement was acknowledged, or is lost.
    pub(crate) fn on_announced(&mut self, number: u32, acked: bool) {
        if let Some(outgoing) = self.blocks.iter_mut().find(|outgoing| outgoing.number == number) {
            outgoing.announcement = match outgoing.announcement {
                Announcement::Acked => Announcement::Acked,
                _ if acked => Announcement::Acked,
                _ => Announcement::Due,
            };
        }
    }

    /// Passes finished blocks to `done`.
    pub(crate) fn poll(&mut self, now: Instant, mut done: impl FnMut(BlockHandle)) {
        let Some(sender) = &mut self.sender else { return };
        let is_done = |sender: &Sender, outgoing: &Outgoing| {
            outgoing.announcement == Announcement::Acked
                && (outgoing.chunks == 0
                    || sender.block(outgoing.number).is_some_and(SendBlock::is_done))
        };
        while self.blocks.front().is_some_and(|outgoing| is_done(sender, outgoing)) {
            let Some(outgoing) = self.blocks.pop_front() else { break };
            sender.remove(outgoing.number);
            done(BlockHandle(outgoing.number));
            if let Some(next) = self.blocks.front_mut() {
                next.started = now;
            }
        }
        self.failed |= sender.has_failed();
        self.feed_sender(now);
        if self.blocks.is_empty() {
            self.past = self.stats();
            self.known = self.known();
            self.sender = None;
            self.first_open = self.next_chunk_id;
            self.blocks = VecDeque::new();
        }
    }

    pub(crate) fn progress(&self) -> Option<BlockProgress> {
        let outgoing = self.blocks.front()?;
        let length = outgoing.block.data().len() as u64;
        let block = self.sender.as_ref().and_then(|sender| sender.block(outgoing.number));
        let done = block.map_or(0, SendBlock::received_bytes).min(length);
        Some(BlockProgress::new(outgoing.block.tag(), done, length))
    }

    /// Why the connection has to close, if it has to: a block makes no progress, or too little.
    pub(crate) fn failure(&self, now: Instant, config: &ConnectionConfig) -> Option<CloseCode> {
        let is_late = self.crawl_deadline(config).is_some_and(|at| at <= now);
        (self.failed || is_late).then_some(CloseCode::NO_PROGRESS)
    }

    fn crawl_deadline(&self, config: &ConnectionConfig) -> Option<Instant> {
        let outgoing = self.blocks.front()?;
        let rate = Some(config.min_block_rate_bps).filter(|&rate| rate > 0)?;
        Some(outgoing.started + max_block_time(outgoing.block.data().len() as u64, rate))
    }

    /// When [`failure`](Self::failure) has to be called.
    pub(crate) fn poll_deadline(&self, config: &ConnectionConfig) -> Option<Instant> {
        if self.failed { Some(Instant::ZERO) } else { self.crawl_deadline(config) }
    }
}

/// The id of the chunk that is so many after this one; ids wrap.
fn chunk_id(first: ChunkId, index: u32) -> ChunkId {
    let [low, high, ..] = index.to_le_bytes();
    ChunkId::new(first.get().wrapping_add(u16::from_le_bytes([low, high])))
}

fn slice_frame<'a>(chunk_id: ChunkId, chosen: &Chosen<'a>) -> Option<Frame<'a>> {
    let count = SliceCount::for_bytes(chosen.cut.chunk_bytes())?;
    if chosen.part != SlicePart::Repair {
        let index = count.index(chosen.index.into())?;
        return Slice::new(chunk_id, index, chosen.data).map(Frame::Slice);
    }
    let last_bytes = chosen.cut.chunk_bytes() - (count.get() - 1) * SLICE_BYTES;
    Some(Frame::Repair(RepairSlice {
        chunk_id,
        count,
        index: chosen.index,
        last_bytes: u16::try_from(last_bytes).ok()?,
        data: chosen.data.first_chunk()?,
    }))
}

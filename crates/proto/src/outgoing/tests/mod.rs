//! Blocks to a receiver that loses, reorders, reads slowly, has some of it already, and changes its mind.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec;
use alloc::vec::Vec;
use core::time::Duration;

use haulier_control::{Controller, PathId, Urgency};

use super::ack_frequency::Wanted;
use super::feedback::Contradiction;
use super::*;
use crate::Instant;
use crate::bulk::cut::{Cut, SliceSize, chunk_bytes, chunk_count};
use crate::bulk::tree::Value;

use crate::bulk::Sender;
use crate::transit::{
    Arrivals, ChunkAt, Datagram, Item, KEPT, Ledger, Outgoing, ReceivedDatagrams, Symbol, Timing,
};
use crate::wire::frames::{
    ChunksHereFrame, ProgressEntry, ProgressFrame, SliceFrame, SlicesHereFrame,
};

mod feedback;
mod transfers;

const CHUNK: usize = 262_144;

const CONFIG: OutgoingConfig = OutgoingConfig {
    urgency: Urgency::LoadScreen,
    max_rate_bps: u64::MAX,
    min_rate_bps: 200_000,
    no_progress_timeout: Duration::from_secs(15),
    // These peers say nothing but what a test is about: silence counts.
    idle_timeout_ms: 0,
    min_block_rate_bps: 16_000,
    max_queued_blocks: 64,
};

const PEER: PeerLimits =
    PeerLimits { credit: 32, receive_buffer: 0, has_repair: true, announced_blocks: 64 };

/// Room for a slice frame in datagrams of 1200 bytes.
const ROOM: usize = 1171;

const fn at(block: u32, index: u32) -> ChunkAt {
    ChunkAt { block, index }
}

const fn millis(millis: u64) -> Instant {
    Instant::from_millis(millis)
}

/// Blocks on their only path.
struct Sending {
    blocks: OutgoingBlocks,
    path: BlocksPath,
}

impl core::ops::Deref for Sending {
    type Target = OutgoingBlocks;

    fn deref(&self) -> &OutgoingBlocks {
        &self.blocks
    }
}

impl core::ops::DerefMut for Sending {
    fn deref_mut(&mut self) -> &mut OutgoingBlocks {
        &mut self.blocks
    }
}

impl Sending {
    fn send(
        &mut self,
        now: Instant,
        block: Block,
        options: SendOptions,
        next_number: u64,
    ) -> Result<u32, SendBlockError> {
        self.blocks.send(now, &mut self.path, block, options, next_number)
    }

    fn sending(&mut self) -> Option<(&mut Sender, &mut Controller)> {
        self.blocks.transfer.sender_on(&mut self.path)
    }

    fn poll_slice(
        &mut self,
        now: Instant,
        ledger: &Ledger,
        room: usize,
    ) -> Option<((ChunkAt, Symbol), SliceFrame<'_>)> {
        self.blocks.transfer.poll_slice(&mut self.path, now, ledger, (room, false))
    }

    fn on_slices_here(
        &mut self,
        now: Instant,
        frame: &SlicesHereFrame<'_>,
    ) -> Result<(), Contradiction> {
        self.blocks.on_slices_here(&mut self.path, now, frame)
    }

    fn set_slice_room(&mut self, room: usize) {
        self.blocks.transfer.set_slice_room(&mut self.path, room);
    }
}

fn outgoing(peer: PeerLimits) -> Sending {
    let path = BlocksPath::new(PathId::FIRST, None);
    Sending { blocks: OutgoingBlocks::new(&CONFIG, &peer, ROOM), path }
}

fn block(bytes: usize) -> Block {
    Block::new(7, vec![7; bytes])
}

fn options(priority: u8) -> SendOptions {
    SendOptions { priority, ..SendOptions::default() }
}

/// What is in a datagram.
#[derive(Clone, Debug)]
enum Sent {
    Announcement {
        number: u32,
        length: u64,
    },
    Page,
    AckFrequency,
    /// After a probe timeout, as of a connection.
    Ping,
    Cancel(u32),
    Slice {
        at: ChunkAt,
        symbol: Symbol,
        kind: crate::wire::frames::SliceKind,
        bytes: usize,
    },
}

/// A receiver of blocks, as far as a sender sees it.
#[derive(Debug, Default)]
struct Peer {
    /// The length of each announced block.
    announced: BTreeMap<u32, u64>,
    finished: BTreeSet<u32>,
    chunks: BTreeMap<ChunkAt, (SliceSize, BTreeSet<Symbol>)>,
    done: BTreeSet<ChunkAt>,
    given: u64,
    /// Chunks and announcements that were taken.
    taken: u64,
    is_reading: bool,
    declines: BTreeSet<u32>,
}

impl Peer {
    fn receive(&mut self, sent: &Sent) {
        match *sent {
            Sent::Announcement { number, length } => {
                if self.announced.insert(number, length).is_none() {
                    self.taken += 1;
                }
            }
            Sent::Page | Sent::AckFrequency | Sent::Ping => {}
            Sent::Cancel(number) => {
                self.finished.insert(number);
            }
            Sent::Slice { at, symbol, bytes, kind } => self.slice(at, symbol, bytes, kind),
        }
    }

    fn slice(
        &mut self,
        at: ChunkAt,
        symbol: Symbol,
        bytes: usize,
        kind: crate::wire::frames::SliceKind,
    ) {
        if self.finished.contains(&at.block) || self.done.contains(&at) {
            return;
        }
        let size = match kind {
            crate::wire::frames::SliceKind::Last(size) => size,
            _ => SliceSize::new(bytes).unwrap(),
        };
        let (known, symbols) = self.chunks.entry(at).or_insert((size, BTreeSet::new()));
        if size > *known {
            return;
        }
        if size < *known {
            (*known, *symbols) = (size, BTreeSet::new());
        }
        symbols.insert(symbol);
    }

    /// Chunks that are whole and announced are done.
    fn finish(&mut self) {
        let whole = |at: &ChunkAt, size: SliceSize, symbols: &BTreeSet<Symbol>| {
            let length = self.announced.get(&at.block)?;
            let cut = Cut::new(chunk_bytes(*length, at.index)?, size)?;
            (symbols.len() >= cut.count()).then_some(*at)
        };
        let done = self.chunks.iter().filter_map(|(at, (size, symbols))| whole(at, *size, symbols));
        for at in done.collect::<Vec<_>>() {
            self.chunks.remove(&at);
            self.done.insert(at);
            self.taken += 1;
        }
        for (&number, &length) in &self.announced {
            if self.first(number) == chunk_count(length).unwrap() {
                self.finished.insert(number);
            }
        }
        if self.is_reading {
            self.given = self.given.max(self.taken + PEER.credit);
        }
    }

    fn first(&self, block: u32) -> u32 {
        (0..).find(|&index| !self.done.contains(&at(block, index))).unwrap()
    }

    /// Hands the sender its progress, as the frame of datagram `number`.
    fn progress(
        &self,
        now: Instant,
        number: u64,
        blocks: &mut OutgoingBlocks,
    ) -> Result<(), Contradiction> {
        let floor = (0..).find(|number| !self.finished.contains(number)).unwrap();
        let (mut entries, mut count) = (Vec::new(), 0);
        for (&block, &length) in self.announced.range(floor..).take(32) {
            let chunks = chunk_count(length).unwrap();
            let first = if self.finished.contains(&block) { chunks } else { self.first(block) };
            let mut map = vec![0_u8; (chunks.saturating_sub(first) as usize).div_ceil(8).min(128)];
            for index in (first + 1..chunks).filter(|&index| self.done.contains(&at(block, index)))
            {
                let bit = (index - first - 1) as usize;
                map[bit / 8] |= 1 << (bit % 8);
            }
            ProgressEntry { block, first, map: &map }.write(&mut entries);
            count += 1;
        }
        let frame = ProgressFrame::new(self.given, 0, floor, count, &entries).unwrap();
        blocks.on_progress(now, number, &frame)
    }
}

/// A link of 10 Mbit/s and 40 ms with a queue that is long enough; what comes back does so at once.
struct World {
    now: u64,
    blocks: Sending,
    ledger: Ledger,
    timing: Timing,
    peer: Peer,
    received: ReceivedDatagrams,
    arrivals: Arrivals,
    free_at: u64,
    arriving: BTreeMap<(u64, u64), Sent>,
    /// Progress frames that the peer has sent.
    progress: u64,
    /// Bytes of a datagram that the path carries, with UDP and IPv4.
    carries: usize,
    room: usize,
    seed: u64,
    /// Lost of a thousand, and reordered.
    loss: u64,
    reordered: u64,
    events: Vec<(u64, OutgoingEvent)>,
    /// The number of slices that were sent of each chunk.
    sent: BTreeMap<ChunkAt, usize>,
    announced: BTreeSet<u32>,
    pages: usize,
    /// Ack frequency frames.
    asked: usize,
}

impl World {
    fn new(peer: PeerLimits, seed: u64) -> Self {
        Self {
            now: 0,
            blocks: outgoing(peer),
            ledger: Ledger::new(),
            timing: Timing::new(PathId::FIRST),
            peer: Peer { given: peer.credit, is_reading: true, ..Peer::default() },
            received: ReceivedDatagrams::new(),
            arrivals: Arrivals::new(),
            free_at: 0,
            arriving: BTreeMap::new(),
            progress: 0,
            carries: usize::MAX,
            room: ROOM,
            seed,
            loss: 0,
            reordered: 0,
            events: Vec::new(),
            sent: BTreeMap::new(),
            announced: BTreeSet::new(),
            pages: 0,
            asked: 0,
        }
    }

    fn now(&self) -> Instant {
        Instant::from_nanos(self.now * 1_000)
    }

    fn random(&mut self, below: u64) -> u64 {
        self.seed = self.seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.seed >> 33) % below
    }

    fn send(&mut self, block: &Block, options: SendOptions) -> u32 {
        let next = self.ledger.next_number();
        self.blocks.send(self.now(), block.clone(), options, next).unwrap()
    }

    fn run(&mut self, millis: u64) {
        (0..millis).for_each(|_| self.step());
    }

    /// Runs until nothing is left to send. Returns how many milliseconds that took.
    fn run_out(&mut self, at_most: u64) -> u64 {
        let ms = (0..at_most).position(|_| {
            self.step();
            self.blocks.is_idle() && !self.blocks.announced.has_cancel()
        });
        ms.unwrap_or_else(|| panic!("not done after {at_most} ms: {:?}", self.blocks.progress()))
            as u64
    }

    fn step(&mut self) {
        self.now += 1_000;
        let now = self.now();
        while let Some(arrival) =
            self.arriving.first_entry().filter(|entry| entry.key().0 <= self.now)
        {
            let ((at, number), sent) = arrival.remove_entry();
            let at = Instant::from_nanos(at * 1_000);
            if self.received.check(number).is_ok() {
                self.received.on_verified(at, number, true);
                self.arrivals.on_datagram(at, number);
                self.peer.receive(&sent);
            }
        }
        self.peer.finish();
        self.feed_back(now);
        self.settle(now);
        if let Some((sender, path)) = self.blocks.sending() {
            sender.handle_timeout(path, now, &mut self.ledger);
        }
        if self.ledger.on_pto(now, &mut self.timing) {
            self.ledger.begin();
            self.put(now, 1, None, Sent::Ping);
        }
        self.blocks.poll(now);
        self.transmit(now);
        self.blocks.check_invariants();
        self.ledger.check_invariants();
        assert!(!self.blocks.has_failed(now), "at {} us", self.now);
        while let Some(event) = self.blocks.poll_event() {
            self.events.push((self.now / 1_000, event));
        }
        let counted = self.announced.len() + self.sent.len();
        assert!(counted as u64 <= self.peer.given, "{counted} counted of {}", self.peer.given);
    }

    /// An ack with arrivals and progress.
    fn feed_back(&mut self, now: Instant) {
        for number in core::mem::take(&mut self.peer.declines) {
            self.peer.finished.insert(number);
            self.blocks.on_decline(now, number, 9).unwrap();
        }
        let Some(ack) = self.received.ack_frame(now).filter(|_| self.received.ack_due().is_some())
        else {
            return;
        };
        self.received.on_ack_sent(now, false);
        if self.random(1_000) < self.loss {
            return;
        }
        let mut walk = self.ledger.begin_ack(&ack).unwrap();
        while let Some(acked) = self.ledger.poll_acked(now, &mut self.timing, &mut walk) {
            if let Some((sender, path)) = self.blocks.sending() {
                sender.on_acked(path, now, &acked);
            }
            if !acked.was_lost {
                self.pass(&acked.datagram, true);
            }
        }
        self.ledger.end_ack(&mut self.timing, &walk);
        if let Some((sender, path)) = self.blocks.sending() {
            sender.end_ack(path, now, &self.ledger, self.timing.reordering());
            if let Some(arrivals) = self.arrivals.frame() {
                sender.on_arrivals(path, &arrivals, &self.ledger);
            }
        }
        let Sending { blocks, path } = &mut self.blocks;
        blocks.transfer.set_rtt(path, Duration::from_millis(41));
        self.progress += 1;
        self.peer.progress(now, self.progress, &mut self.blocks).unwrap();
    }

    fn settle(&mut self, now: Instant) {
        let Self { ledger, timing, .. } = self;
        if let Some((sender, path)) = self.blocks.sending() {
            while let Some(settled) = ledger.poll_fate(timing) {
                sender.on_settled(path, &settled);
            }
            sender.note_in_flight(path, ledger);
        }
        while let Some(lost) = self.ledger.poll_lost(now, &mut self.timing) {
            self.pass(&lost, false);
        }
        self.ledger.trim(KEPT);
    }

    fn pass(&mut self, datagram: &Datagram, is_acked: bool) {
        for item in (0..).map_while(|n| self.ledger.item(datagram, n)) {
            match item {
                Item::Block(number) => self.blocks.announced.on_announced(number, is_acked),
                Item::Page { block, place } if !is_acked => self.blocks.on_page_lost(block, place),
                Item::Cancel(number) => self.blocks.announced.on_cancel(number, is_acked),
                Item::AckFrequency if !is_acked => self.blocks.transfer.on_ack_frequency_lost(),
                _ => {}
            }
        }
    }

    fn transmit(&mut self, now: Instant) {
        loop {
            self.ledger.begin();
            if let Some((block, ..)) = self.blocks.announced.poll_cancel() {
                self.ledger.add(Item::Cancel(block));
                self.put(now, 50, None, Sent::Cancel(block));
            } else if let Some(wanted) = self.ack_frequency_due() {
                self.blocks.transfer.on_ack_frequency_sent(wanted);
                self.ledger.add(Item::AckFrequency);
                self.asked += 1;
                self.put(now, 6, None, Sent::AckFrequency);
            } else if let Some(frame) = self.blocks.poll_announcement(now) {
                self.announced.insert(frame.number);
                self.ledger.add(Item::Block(frame.number));
                let sent = Sent::Announcement { number: frame.number, length: frame.length };
                self.put(now, frame.encoded_len(), None, sent);
            } else if let Some((place, frame)) = self.blocks.poll_page(self.room) {
                let (block, bytes) = (frame.block, frame.encoded_len());
                self.ledger.add(Item::Page { block, place });
                self.pages += 1;
                self.put(now, bytes, None, Sent::Page);
            } else if let Some((slice, frame)) =
                self.blocks.poll_slice(now, &self.ledger, self.room)
            {
                let head = crate::wire::frames::SliceFrame::head_bytes(frame.at, frame.kind);
                let (bytes, kind) = (frame.data.len(), frame.kind);
                assert!(head + bytes <= self.room, "{head} + {bytes}");
                *self.sent.entry(slice.0).or_default() += 1;
                let sent = Sent::Slice { at: slice.0, symbol: slice.1, kind, bytes };
                self.put(now, head + bytes, Some(slice), sent);
            } else {
                return;
            }
        }
    }

    fn ack_frequency_due(&mut self) -> Option<Wanted> {
        let Sending { blocks, path } = &mut self.blocks;
        blocks.transfer.ack_frequency_due(path, self.ledger.in_flight().into(), Heard::default())
    }

    fn put(&mut self, now: Instant, frames: usize, slice: Option<(ChunkAt, Symbol)>, sent: Sent) {
        let (number, wire_bytes) = (self.ledger.next_number(), frames + 57);
        if let Some((sender, path)) = self.blocks.sending() {
            sender.on_sent(path, now, number, wire_bytes, slice);
        }
        let is_ack_eliciting = true;
        self.ledger.on_sent(
            now,
            &mut self.timing,
            Outgoing { number, wire_bytes, is_ack_eliciting, is_marked: false, slice },
        );
        self.free_at = self.free_at.max(self.now) + wire_bytes as u64 * 8 / 10;
        let is_lost = self.random(1_000) < self.loss || wire_bytes > self.carries;
        let late = if self.random(1_000) < self.reordered { self.random(9_000) } else { 0 };
        if !is_lost {
            self.arriving.insert((self.free_at + 40_000 + late, number), sent);
        }
    }

    /// When the block with this handle was there, in milliseconds.
    fn sent_at(&self, handle: u32) -> Option<u64> {
        let is_it = |event: &OutgoingEvent| *event == OutgoingEvent::Sent { handle };
        self.events.iter().find(|(_, event)| is_it(event)).map(|(at, _)| *at)
    }
}

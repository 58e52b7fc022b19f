//! A peer with the right keys that lies, hoards or floods: it makes the datagrams of one [`Lie`], for a
//! client's end or a server's.
//!
//! The invariant: its datagrams depend on its seed alone, and on what it received.

use std::cmp::Ordering;
use std::time::Duration;

use haulier_core::fragment::Fragment;
use haulier_core::{Instant, Sequence};
use haulier_proto::connection::Block;
use haulier_proto::internals::frames::{
    BlockFrame, ChunkAt, Cut, HashesFrame, MAX_PROGRESS_MAP_BYTES, MessageFrame, MessagePart,
    ProgressEntry, ProgressFrame, SliceFrame, SliceKind, SliceSize,
};
use haulier_proto::internals::{AckFrame, ArrivalsFrame, Frame, Frames, encode_repair};

use super::Lie;
use super::bomb::Bomb;
use crate::Rng;
use crate::attack::raw::Link;

/// The largest plaintext that fits into a datagram in all modes.
const ROOM: usize = 1160;

/// Bytes of a slice; a full chunk has 256 of them.
const SLICE_BYTES: usize = 1024;

/// Slices of a full chunk.
const FULL: u64 = 256;

/// Datagrams after which a hoarder has enough: less than a chunk.
const HOARDED: u64 = 160;

/// Chunks of the large blocks of liars.
const CHUNKS: u64 = 32;

/// Chunks of a block that is announced late: to hash them all at once is too much.
const LATE_CHUNKS: u64 = 8;

/// Blocks that may be announced and not finished.
const BLOCKS: u32 = 32;

/// What may be opened before the first progress frame (parameter 6).
const FIRST_CREDIT: u64 = 32;

/// Acks after which they are repeated in a datagram: the other end has sent some hundred datagrams by then.
const MANY_ACKS_AFTER: u64 = 200;

/// Messages that may wait on a channel, and the channels of the default configuration.
const MESSAGES: u64 = 256;
const CHANNELS: u64 = 16;

/// Makes the datagrams of one lie.
pub struct Liar {
    lie: Lie,
    rng: Rng,
    step: u64,
    next_block: u32,
    /// Its clock, for arrivals.
    clock: Instant,
    /// Its last ack.
    ack: Option<AckFrame>,
    bomb: Bomb,
    /// Chunks and announcements that it may count in all, and those counted.
    credit: u64,
    opened: u64,
    /// The other end has announced a block, so that there is one to lie about.
    has_block: bool,
    /// Datagrams of the lie that are left of a round.
    left: Vec<Vec<u8>>,
}

impl Liar {
    /// A liar whose random choices are those of the seed.
    #[must_use]
    pub fn new(lie: Lie, seed: u64) -> Self {
        let mut rng = Rng::stream(seed, 91);
        let bomb = Bomb::new(&mut rng, if lie == Lie::SmallBombs { 2 } else { SLICE_BYTES });
        let (clock, credit) = (Instant::from_millis(1_000), FIRST_CREDIT);
        let left = Vec::new();
        let (step, next_block, opened, ack, has_block) = (0, 0, 0, None, false);
        Self { lie, rng, step, next_block, clock, ack, bomb, credit, opened, has_block, left }
    }

    /// Reads from the other end how much may be opened, and that it sends a block. The rest is ignored.
    pub fn hear(&mut self, plaintext: &[u8]) {
        for frame in Frames::of(plaintext).flatten() {
            match frame {
                Frame::Progress(progress) => self.credit = self.credit.max(progress.credit),
                Frame::Block(_) => self.has_block = true,
                _ => {}
            }
        }
    }

    /// The next datagram.
    pub fn next(&mut self, now: Instant, link: &mut Link) -> Vec<u8> {
        self.step += 1;
        if let Some(plaintext) = self.left.pop() {
            return link.seal(&plaintext);
        }
        if matches!(self.lie, Lie::ProgressFlood | Lie::Declines) && !self.has_block {
            return link.frames(&[Frame::Ping]);
        }
        match self.lie {
            Lie::DecodeBombs | Lie::SmallBombs => self.bombs(link, true),
            Lie::UnannouncedBombs => self.bombs(link, false),
            Lie::UnannouncedSlices => self.slices(link, 0),
            Lie::UnannouncedPages => self.pages(link),
            Lie::Hoarding => self.hoard(link),
            Lie::Openings => self.openings(link),
            Lie::LateAnnouncement => self.late_announcements(link),
            Lie::LateChunk => self.late_chunk(link),
            Lie::LateBlock => self.late_block(link),
            Lie::UnackedBlocks | Lie::UnreadBlocks => self.empty_blocks(link),
            Lie::UnreadBytes => self.small_blocks(link),
            Lie::AckFlood => self.acks(now, link, 1),
            Lie::RepeatedAcks => self.acks(now, link, usize::MAX),
            Lie::ProgressFlood => self.progress(now, link),
            Lie::Announcements => self.announcements(link),
            Lie::Cancels => self.cancels(link),
            Lie::Declines => self.declines(link),
            Lie::Fragments => self.fragments(link),
            Lie::Messages => self.messages(link),
            Lie::MessageParts => self.message_parts(link),
            Lie::UnreadPackets => self.packets(link),
            Lie::SlowArrivals => self.arrivals(now, link, Duration::from_secs(3)),
            Lie::FastArrivals => self.arrivals(now, link, Duration::from_micros(1)),
        }
    }

    /// Takes `count` from the credit, if enough is left. Returns whether it was.
    const fn open(&mut self, count: u64) -> bool {
        let may = self.opened + count <= self.credit;
        if may {
            self.opened += count;
        }
        may
    }

    /// The next number of a block.
    const fn number(&mut self) -> u32 {
        let number = self.next_block;
        self.next_block += 1;
        number
    }

    fn bombs(&mut self, link: &mut Link, announced: bool) -> Vec<u8> {
        if announced && !self.open(2) {
            return link.frames(&[Frame::Ping]);
        }
        let number = self.number();
        let (block, [last, repair]) = (self.bomb.block(number), self.bomb.slices(number));
        let frames = [block, last];
        self.left.push(plaintext(&[repair]));
        link.frames(&frames[usize::from(!announced)..])
    }

    /// Slices of one chunk after the other, of a block that was never announced or that was announced before.
    fn slices(&mut self, link: &mut Link, before: u64) -> Vec<u8> {
        let at = self.step - 1 - before;
        let (index, data) = ((at % FULL) as u8, [5; SLICE_BYTES]);
        let chunk = ChunkAt { block: 0, index: (at / FULL) as u32 };
        // The block is longer than everything sent here, so only the last slice of a full chunk is a last
        // one.
        let kind = match index {
            u8::MAX => SliceKind::Last(SliceSize::SMALLEST_OF_FULL_CHUNK),
            _ => SliceKind::Source,
        };
        link.frames(&[Frame::Slice(SliceFrame { at: chunk, kind, index, data: &data })])
    }

    fn pages(&mut self, link: &mut Link) -> Vec<u8> {
        let (number, first) = (self.step as u32 % BLOCKS, (self.step / 32) as u32 % 1024 * 32);
        let values = [[self.step as u8; 32]; 32];
        link.frames(&[Frame::Hashes(HashesFrame {
            block: number,
            level: 0,
            first,
            values: &values,
        })])
    }

    fn hoard(&mut self, link: &mut Link) -> Vec<u8> {
        match self.step {
            1 => {
                let (length, root) = (CHUNKS * FULL * SLICE_BYTES as u64, [7; 32]);
                link.frames(&[Frame::Block(BlockFrame { number: 0, tag: 0, length, root })])
            }
            2..=HOARDED => self.slices(link, 1),
            _ => link.frames(&[Frame::Ping]),
        }
    }

    /// Blocks of two slices a chunk as large as they can be announced, of which one slice is sent.
    fn openings(&mut self, link: &mut Link) -> Vec<u8> {
        let (length, root) = (1 << 20, [7; 32]);
        let first = u64::from(self.next_block) < u64::from(BLOCKS) && self.open(2);
        if first {
            let number = self.number();
            let (at, data) = (ChunkAt { block: number, index: 0 }, [5; SLICE_BYTES]);
            let slice = SliceFrame { at, kind: SliceKind::Source, index: 9, data: &data };
            let block = BlockFrame { number, tag: 0, length, root };
            return link.frames(&[Frame::Block(block), Frame::Slice(slice)]);
        }
        link.frames(&[Frame::Ping])
    }

    /// The slices of as many bombs as there may be, and then their announcements in one datagram.
    fn late_announcements(&mut self, link: &mut Link) -> Vec<u8> {
        let room = (self.credit - self.opened) / 2;
        let count = room.min(u64::from(BLOCKS) - 4) as u32;
        if count == 0 || !self.open(2 * u64::from(count)) {
            return link.frames(&[Frame::Ping]);
        }
        let numbers: Vec<u32> = (0..count).map(|_| self.number()).collect();
        let blocks: Vec<_> = numbers.iter().map(|&number| self.bomb.block(number)).collect();
        let slices = numbers.iter().rev().flat_map(|&number| self.bomb.slices(number));
        let slices: Vec<_> = slices.map(|slice| plaintext(&[slice])).collect();
        self.left.push(plaintext(&blocks));
        self.left.extend(slices);
        self.left.pop().map_or_else(Vec::new, |first| link.seal(&first))
    }

    /// Repair slices of a chunk, as many as are kept, and then its announcement.
    fn late_chunk(&mut self, link: &mut Link) -> Vec<u8> {
        if !self.open(2) {
            return link.frames(&[Frame::Ping]);
        }
        let number = self.number();
        let bytes = vec![self.step as u8; 200 * SLICE_BYTES];
        let cut = Cut::new(bytes.len(), SliceSize::SMALLEST_OF_FULL_CHUNK).expect("a chunk");
        let repair = encode_repair(&bytes, cut);
        let (at, length) = (ChunkAt { block: number, index: 0 }, bytes.len() as u64);
        let block = BlockFrame { number, tag: 0, length, root: *Block::new(0, bytes).digest() };
        self.left.push(plaintext(&[Frame::Block(block)]));
        for (index, data) in (0..=u8::MAX).zip(repair.chunks(SLICE_BYTES)).take(cut.count()) {
            let slice = SliceFrame { at, kind: SliceKind::Repair, index, data };
            self.left.push(plaintext(&[Frame::Slice(slice)]));
        }
        self.left.pop().map_or_else(Vec::new, |first| link.seal(&first))
    }

    fn empty_blocks(&mut self, link: &mut Link) -> Vec<u8> {
        let root = *Block::new(0, Vec::new()).digest();
        let mut frames = vec![Frame::Ping];
        while frames.len() < 28 && self.open(1) {
            let number = self.number();
            frames.push(Frame::Block(BlockFrame { number, tag: 0, length: 0, root }));
        }
        link.frames(&frames)
    }

    fn small_blocks(&mut self, link: &mut Link) -> Vec<u8> {
        if !self.open(2) {
            return link.frames(&[Frame::Ping]);
        }
        let (number, root) = (self.number(), *Block::new(0, vec![9u8]).digest());
        let size = SliceSize::new(2).expect("an even size");
        let (at, kind) = (ChunkAt { block: number, index: 0 }, SliceKind::Last(size));
        let slice = SliceFrame { at, kind, index: 0, data: &[9] };
        let block = BlockFrame { number, tag: 0, length: 1, root };
        link.frames(&[Frame::Block(block), Frame::Slice(slice)])
    }

    /// The slices of a block, whole chunks of them, and then its announcement.
    fn late_block(&mut self, link: &mut Link) -> Vec<u8> {
        match self.step.cmp(&(LATE_CHUNKS * FULL + 1)) {
            Ordering::Less => self.slices(link, 0),
            Ordering::Equal => {
                let bytes = vec![5; LATE_CHUNKS as usize * FULL as usize * SLICE_BYTES];
                let (length, root) = (bytes.len() as u64, *Block::new(0, bytes).digest());
                link.frames(&[Frame::Block(BlockFrame { number: 0, tag: 0, length, root })])
            }
            Ordering::Greater => link.frames(&[Frame::Ping]),
        }
    }

    /// An ack of everything, as far back as acks reach: one in each datagram, and after
    /// [`MANY_ACKS_AFTER`] datagrams of the lie up to `times`, as many as fit.
    fn acks(&mut self, now: Instant, link: &mut Link, times: usize) -> Vec<u8> {
        if let Some(ack) = link.received.ack_frame(now) {
            link.received.on_ack_sent(now, true);
            self.ack = Some(ack);
        }
        let ack = self.ack.map_or(Frame::Ping, Frame::Ack);
        let times = if self.step < MANY_ACKS_AFTER { 1 } else { times };
        let mut plaintext = plaintext(&[ack]);
        let fit = ROOM / plaintext.len();
        plaintext = plaintext.repeat(times.min(fit));
        link.seal(&plaintext)
    }

    /// An honest ack, and as many entries of the block as fit: nothing of it is done.
    fn progress(&mut self, now: Instant, link: &mut Link) -> Vec<u8> {
        let mut frames: Vec<_> = link.received.ack_frame(now).map(Frame::Ack).into_iter().collect();
        link.received.on_ack_sent(now, true);
        let map = [0; MAX_PROGRESS_MAP_BYTES];
        let (mut entries, mut count) = (Vec::new(), 0);
        // The block has 16 chunks, and a map may be no longer.
        while entries.len() < ROOM - 300 && count < 32 {
            ProgressEntry { block: 0, first: 0, map: &map[..2] }.write(&mut entries);
            count += 1;
        }
        let progress = ProgressFrame::new(FIRST_CREDIT, 0, 0, count, &entries);
        frames.extend(progress.map(Frame::Progress));
        frames.push(Frame::Ping);
        link.frames(&frames)
    }

    /// Announces the same blocks again and again.
    fn announcements(&mut self, link: &mut Link) -> Vec<u8> {
        let first = self.step * 26;
        let block = |n: u64| {
            let number = n as u32 % BLOCKS;
            let root = [number as u8; 32];
            Frame::Block(BlockFrame { number, tag: number.into(), length: 1 << 20, root })
        };
        let frames: Vec<_> = (first..first + 26).map(block).collect();
        link.frames(&frames)
    }

    fn cancels(&mut self, link: &mut Link) -> Vec<u8> {
        let mut frames = vec![Frame::Ping];
        while frames.len() < 130 && self.open(1) {
            let block = self.number();
            frames.push(Frame::Cancel { block, code: 9, opened: 0 });
        }
        link.frames(&frames)
    }

    fn declines(&mut self, link: &mut Link) -> Vec<u8> {
        let mut frames = vec![Frame::Decline { block: 0, code: 7 }; 100];
        for _ in 0..20 {
            let root = self.rng.bytes(32).try_into().expect("32 bytes");
            frames.push(Frame::RootHere(root));
        }
        link.frames(&frames)
    }

    fn fragments(&mut self, link: &mut Link) -> Vec<u8> {
        let sequence = Sequence::new(self.step as u16);
        let index = self.rng.below(255) as usize;
        let data = [3; 1024];
        let fragment = Fragment::new(sequence, index, 256, &data).expect("a fragment");
        link.frames(&[Frame::Fragment(fragment)])
    }

    /// All messages of each channel except the first, with as many bytes as may wait.
    fn messages(&mut self, link: &mut Link) -> Vec<u8> {
        let at = self.step * 40;
        let channel = (at / MESSAGES % CHANNELS) as u8;
        let data = [4; 20];
        let message = |number| {
            let (is_unordered, part, data) = (false, None, &data[..]);
            Frame::Message(MessageFrame { channel, is_unordered, number, part, data })
        };
        let first = at % MESSAGES + 1;
        let messages: Vec<_> = (first..MESSAGES).take(40).map(message).collect();
        if messages.is_empty() {
            return link.frames(&[Frame::Ping]);
        }
        link.frames(&messages)
    }

    /// Two messages of each channel, of which one byte in 1024 is sent.
    fn message_parts(&mut self, link: &mut Link) -> Vec<u8> {
        let data = [4; 1];
        let parts = (0..60u64).map(|n| {
            let at = self.step * 60 + n;
            let (number, channel) = (at / 64 % 2, (at / 128 % CHANNELS) as u8);
            let offset = (at % 64 * 1024) as u32;
            let part = Some(MessagePart { whole: 65_536, offset });
            Frame::Message(MessageFrame { channel, is_unordered: false, number, part, data: &data })
        });
        link.frames(&parts.collect::<Vec<_>>())
    }

    fn packets(&mut self, link: &mut Link) -> Vec<u8> {
        let first = self.step * 100;
        let packets: Vec<_> = (first..first + 100)
            .map(|n| Frame::Packet { sequence: Sequence::new(n as u16), data: &[7; 3] })
            .collect();
        link.frames(&packets)
    }

    /// An honest ack with false arrivals, `apart` from each other.
    fn arrivals(&mut self, now: Instant, link: &mut Link, apart: Duration) -> Vec<u8> {
        let Some(ack) = link.received.ack_frame(now) else { return link.frames(&[Frame::Ping]) };
        link.received.on_ack_sent(now, true);
        self.clock = self.clock + apart;
        let number = link.received.largest().unwrap_or(0);
        let mut arrivals = ArrivalsFrame::new(number, self.clock);
        let earlier = (1..=number.min(31) as u32).map(|n| apart.saturating_mul(n));
        let _said = earlier.take_while(|&before| arrivals.push(1, before)).count();
        link.frames(&[Frame::Ack(ack), Frame::Arrivals(arrivals)])
    }
}

fn plaintext(frames: &[Frame<'_>]) -> Vec<u8> {
    let mut out = Vec::new();
    frames.iter().for_each(|frame| frame.write(&mut out));
    out
}

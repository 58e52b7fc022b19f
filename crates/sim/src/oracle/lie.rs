//! Peers with the right keys that lie, hoard or flood: each [`Lie`] is one way to make the other end hold or
//! do more than it was sent.
//!
//! A [`Liar`] makes the datagrams of one lie, for a client's end or a server's. It obeys the wire: a
//! violation would only close the connection. The invariant: its datagrams depend on its seed alone, and on
//! what it received.

use std::time::Duration;

use haulier_core::chunk::{ChunkId, SLICE_BYTES, Slice, SliceCount};
use haulier_core::fragment::Fragment;
use haulier_core::{Instant, Sequence};
use haulier_proto::connection::Block;
use haulier_proto::internals::{
    AckFrame, ArrivalsFrame, BlockFrame, Frame, RepairSlice, encode_repair,
};

use crate::Rng;
use crate::attack::raw::Link;

/// The largest plaintext that fits into a datagram in all modes.
const ROOM: usize = 1160;

/// Slices of a full chunk.
const FULL: usize = 256;

/// Numbers that the longest ack names.
const SPAN: u64 = 1024;

/// Datagrams after which a hoarder has enough: less than a chunk.
const HOARDED: u64 = 160;

/// Chunks of the large blocks of liars: as many as a receiver holds today.
const CHUNKS: u64 = 32;

/// A way to lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Lie {
    /// Announces blocks of two slices, and sends the last, of a byte, and a repair slice: a decoding each.
    DecodeBombs,
    /// The same without an announcement.
    UnannouncedBombs,
    /// Sends slices of chunks of no announced block.
    UnannouncedSlices,
    /// Sends blocks of one byte that are read, and acks nothing.
    UnackedBlocks,
    /// Sends blocks of one byte that are not read.
    UnreadBlocks,
    /// Announces a block, sends a part of it, and then no more.
    Hoarding,
    /// Announces a block when all of its chunks are there.
    LateAnnouncement,
    /// Fills datagrams with acks of everything.
    AckFlood,
    /// Announces blocks, and sends nothing of them.
    Announcements,
    /// Sends one fragment of each of many packets.
    Fragments,
    /// Sends messages without the first.
    Messages,
    /// Sends packets that are not read.
    UnreadPackets,
    /// Reports arrivals as if the link were slow.
    SlowArrivals,
    /// Reports arrivals as if the link were fast.
    FastArrivals,
}

impl Lie {
    /// Every lie.
    pub const ALL: [Self; 14] = [
        Self::DecodeBombs,
        Self::UnannouncedBombs,
        Self::UnannouncedSlices,
        Self::UnackedBlocks,
        Self::UnreadBlocks,
        Self::Hoarding,
        Self::LateAnnouncement,
        Self::AckFlood,
        Self::Announcements,
        Self::Fragments,
        Self::Messages,
        Self::UnreadPackets,
        Self::SlowArrivals,
        Self::FastArrivals,
    ];

    /// The fault that it exploited, by its number in [`KNOWN_FAULTS`](super::KNOWN_FAULTS); `None` if it
    /// never did.
    #[must_use]
    pub const fn fault(self) -> Option<u8> {
        match self {
            Self::DecodeBombs | Self::UnannouncedBombs => Some(1),
            Self::UnannouncedSlices => Some(5),
            Self::Hoarding => Some(6),
            Self::SlowArrivals | Self::FastArrivals => Some(7),
            Self::UnackedBlocks => Some(8),
            Self::UnreadBlocks => Some(9),
            Self::LateAnnouncement | Self::AckFlood => Some(10),
            Self::Announcements | Self::Fragments | Self::Messages | Self::UnreadPackets => None,
        }
    }

    /// Whether the application of the other end reads nothing.
    #[must_use]
    pub const fn is_unread(self) -> bool {
        matches!(self, Self::UnreadBlocks | Self::UnreadPackets | Self::Messages)
    }

    /// Whether the other end sends a block meanwhile, so that there are datagrams to lie about.
    #[must_use]
    pub const fn needs_a_block(self) -> bool {
        matches!(self, Self::AckFlood | Self::SlowArrivals | Self::FastArrivals)
    }
}

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
}

/// A block that is whole from one datagram, after a decoding.
struct Bomb {
    bytes: Vec<u8>,
    repair: Vec<u8>,
    digest: [u8; 32],
}

impl Bomb {
    fn new(rng: &mut Rng) -> Self {
        let bytes = rng.bytes(SLICE_BYTES + 1);
        let repair = encode_repair(&bytes)[..SLICE_BYTES].to_vec();
        let digest = *Block::new(0, bytes.clone()).digest();
        Self { bytes, repair, digest }
    }
}

impl Liar {
    /// A liar whose random choices are those of the seed.
    #[must_use]
    pub fn new(lie: Lie, seed: u64) -> Self {
        let mut rng = Rng::stream(seed, 91);
        let bomb = Bomb::new(&mut rng);
        let clock = Instant::from_millis(1_000);
        Self { lie, rng, step: 0, next_block: 0, clock, ack: None, bomb }
    }

    /// The next datagram.
    pub fn next(&mut self, now: Instant, link: &mut Link) -> Vec<u8> {
        self.step += 1;
        match self.lie {
            Lie::DecodeBombs => self.bombs(link, true),
            Lie::UnannouncedBombs => self.bombs(link, false),
            Lie::UnannouncedSlices => self.slices(link, u64::MAX),
            Lie::Hoarding => self.hoard(link),
            Lie::LateAnnouncement => self.slices(link, CHUNKS * FULL as u64),
            Lie::UnackedBlocks | Lie::UnreadBlocks => self.small_blocks(link),
            Lie::AckFlood => self.acks(now, link),
            Lie::Announcements => self.announcements(link),
            Lie::Fragments => self.fragments(link),
            Lie::Messages => self.messages(link),
            Lie::UnreadPackets => self.packets(link),
            Lie::SlowArrivals => self.arrivals(now, link, Duration::from_secs(3)),
            Lie::FastArrivals => self.arrivals(now, link, Duration::from_micros(1)),
        }
    }

    fn bombs(&mut self, link: &mut Link, announced: bool) -> Vec<u8> {
        let Bomb { bytes, repair, digest } = &self.bomb;
        let (number, length) = (self.next_block, bytes.len() as u64);
        self.next_block += 1;
        let count = SliceCount::for_bytes(bytes.len()).expect("a chunk");
        let chunk_id = ChunkId::new(number as u16);
        let slice = count.index(1).and_then(|index| Slice::of_chunk(chunk_id, index, bytes));
        let data = repair[..].try_into().expect("a slice");
        let repair = RepairSlice { chunk_id, count, index: 0, last_bytes: 1, data };
        let block = BlockFrame { number, tag: 0, length, digest: *digest };
        let mut frames = vec![Frame::Block(block)];
        frames.extend(slice.map(Frame::Slice));
        frames.push(Frame::Repair(repair));
        link.frames(&frames[usize::from(!announced)..])
    }

    /// Full slices of one chunk after the other, and after so many the announcement of their block.
    fn slices(&mut self, link: &mut Link, announced_after: u64) -> Vec<u8> {
        let (at, data) = (self.step - 1, [5; SLICE_BYTES]);
        if at == announced_after {
            let length = at * SLICE_BYTES as u64;
            let digest = *Block::new(0, vec![5; length as usize]).digest();
            return link.frames(&[Frame::Block(BlockFrame { number: 0, tag: 0, length, digest })]);
        }
        if at > announced_after {
            return link.frames(&[Frame::Ping]);
        }
        let chunk_id = ChunkId::new((at / FULL as u64) as u16);
        let count = SliceCount::new(FULL).expect("a full chunk");
        let index = count.index(at as usize % FULL).expect("below the count");
        let slice = Slice::new(chunk_id, index, &data).map(Frame::Slice);
        link.frames(slice.as_slice())
    }

    fn hoard(&mut self, link: &mut Link) -> Vec<u8> {
        match self.step {
            1 => {
                let (length, digest) = (CHUNKS * 256 * SLICE_BYTES as u64, [7; 32]);
                link.frames(&[Frame::Block(BlockFrame { number: 0, tag: 0, length, digest })])
            }
            2..=HOARDED => self.slices(link, u64::MAX),
            _ => link.frames(&[Frame::Ping]),
        }
    }

    fn small_blocks(&mut self, link: &mut Link) -> Vec<u8> {
        let digest = *Block::new(0, vec![9u8]).digest();
        let mut frames = Vec::new();
        for _ in 0..19 {
            let number = self.next_block;
            self.next_block += 1;
            frames.push(Frame::Block(BlockFrame { number, tag: 0, length: 1, digest }));
            let id = ChunkId::new(number as u16);
            frames.extend(Slice::new(id, SliceCount::ONE.first(), &[9]).map(Frame::Slice));
        }
        link.frames(&frames)
    }

    /// Honest acks until there is much to name, so that the other end's window opens; then as many copies of
    /// an ack of everything as fit.
    fn acks(&mut self, now: Instant, link: &mut Link) -> Vec<u8> {
        if let Some(ack) = link.received.ack_frame(now) {
            link.received.on_ack_sent(now, true);
            self.ack = Some(ack);
        }
        let Some(ack) = self.ack else { return link.frames(&[Frame::Ping]) };
        let floods = link.received.largest().is_some_and(|largest| largest > SPAN);
        let copies = if floods { ROOM / (ack.encoded_len() + 1) } else { 1 };
        link.frames(&vec![Frame::Ack(ack); copies.max(1)])
    }

    fn announcements(&mut self, link: &mut Link) -> Vec<u8> {
        let block = |n: u64| {
            let number = n as u32 % 30;
            Frame::Block(BlockFrame { number, tag: n, length: 1 << 20, digest: [n as u8; 32] })
        };
        let frames: Vec<_> = (0..20).map(|n| block(self.step * 20 + n)).collect();
        link.frames(&frames)
    }

    fn fragments(&mut self, link: &mut Link) -> Vec<u8> {
        let sequence = Sequence::new(self.step as u16);
        let index = self.rng.below(255) as usize;
        let data = [3; 1024];
        let fragment = Fragment::new(sequence, index, 256, &data).expect("a fragment");
        link.frames(&[Frame::Fragment(fragment)])
    }

    fn messages(&mut self, link: &mut Link) -> Vec<u8> {
        let first = (self.step * 40 % 255) as u32 + 1;
        let data = [4; 20];
        let messages: Vec<_> =
            (first..256).take(40).map(|number| Frame::Message { number, data: &data }).collect();
        link.frames(&messages)
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

//! A block that is never whole in memory: a server whose program reads it from a disk, and a client whose
//! program writes it to one, each at its own rate and with pauses.
//!
//! The bytes of a block are a function of where they are ([`bytes_at`]), so nothing of it is stored, and
//! each chunk that arrives is compared.

use std::collections::VecDeque;
use std::ops::Range;
use std::time::Duration;

use haulier_core::time::earliest;
use haulier_core::{Batch, Ecn, FourTuple, Instant, Machine};
use haulier_proto::client::{ClientConfig, ClientMachine};
use haulier_proto::connection::{
    Block, BlockHandle, BlockTree, ChunkValue, CloseReason, Connection, Delivery, Event,
    ProvideError, WantedChunk,
};

use super::App;
use crate::{Host, Rng};

const CHUNK: u64 = ChunkValue::CHUNK_BYTES as u64;

/// The bytes of every block of these hosts from `offset` on, which is a multiple of 8.
#[must_use]
pub fn bytes_at(offset: u64, length: usize) -> Vec<u8> {
    let words = (offset / 8..).take(length.div_ceil(8));
    let mut bytes: Vec<u8> = words
        .flat_map(|word| {
            let mixed = (word ^ 0x5eed).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            (mixed ^ mixed >> 29).to_le_bytes()
        })
        .collect();
    bytes.truncate(length);
    bytes
}

/// A block of this many of these bytes, from a source.
///
/// # Panics
/// If it is longer than a block may be.
#[must_use]
pub fn block_of(tag: u64, length: u64) -> Block {
    let chunks = u32::try_from(length.div_ceil(CHUNK)).expect("a block");
    let value = |index: u32| {
        let offset = u64::from(index) * CHUNK;
        let bytes = CHUNK.min(length - offset) as usize;
        ChunkValue::of(length, index, &bytes_at(offset, bytes))
    };
    let values = (0..chunks).map(value).collect();
    Block::from_source(tag, BlockTree::from_values(length, values).expect("a value for each"))
}

/// How fast a disk is.
#[derive(Clone, Debug, Default)]
pub struct Disk {
    /// Bits per second; `None` is at once.
    pub rate_bps: Option<u64>,
    /// Times in which it stands still.
    pub pauses: Vec<Range<Instant>>,
    /// What it did last ends then.
    busy_until: Instant,
}

impl Disk {
    /// One of this rate.
    #[must_use]
    pub fn with_rate_bps(rate_bps: u64) -> Self {
        Self { rate_bps: Some(rate_bps), ..Self::default() }
    }

    /// One that stands still for a time.
    #[must_use]
    pub fn with_pause(mut self, pause: Range<Instant>) -> Self {
        self.pauses.push(pause);
        self
    }

    /// Reads or writes this number of bytes. Returns the time at which it is done.
    fn work(&mut self, now: Instant, bytes: usize) -> Instant {
        let time = self.rate_bps.map_or(0, |rate| bytes as u64 * 8_000_000_000 / rate);
        let done = self.free_at(now) + Duration::from_nanos(time);
        let pause = self.pauses.iter().find(|pause| pause.contains(&done));
        self.busy_until = pause.map_or(done, |pause| pause.end);
        self.busy_until
    }

    /// When it can begin with something.
    fn free_at(&self, now: Instant) -> Instant {
        let from = self.busy_until.max(now);
        self.pauses.iter().find(|pause| pause.contains(&from)).map_or(from, |pause| pause.end)
    }
}

/// The program of a server that sends a block from a disk.
#[derive(Clone, Debug)]
pub struct SourceApp {
    block: Block,
    disk: Disk,
    /// A chunk that is not what it should be.
    wrong: Option<u32>,
    handle: Option<BlockHandle>,
    is_asking: bool,
    reading: VecDeque<(Instant, WantedChunk)>,
    /// When it looks which chunks are wanted, without an event that some are.
    looks_at: Option<Instant>,
    /// Chunks that were refused.
    pub refused: Vec<ProvideError>,
    /// The block was received.
    pub is_sent: bool,
    /// The peer declined it.
    pub is_declined: bool,
    /// How the connection ended.
    pub end: Option<CloseReason>,
}

impl SourceApp {
    /// Sends this block, whose bytes are [`bytes_at`], from this disk.
    #[must_use]
    pub const fn new(block: Block, disk: Disk) -> Self {
        Self {
            block,
            disk,
            wrong: None,
            handle: None,
            is_asking: false,
            reading: VecDeque::new(),
            looks_at: Some(Instant::ZERO),
            refused: Vec::new(),
            is_sent: false,
            is_declined: false,
            end: None,
        }
    }

    /// Its file has changed in this chunk since the tree was made.
    #[must_use]
    pub const fn with_wrong_chunk(mut self, index: u32) -> Self {
        self.wrong = Some(index);
        self
    }

    /// It sends the block then.
    #[must_use]
    pub const fn starting_at(mut self, at: Instant) -> Self {
        self.looks_at = Some(at);
        self
    }

    /// The block, once it is sent.
    #[must_use]
    pub const fn handle(&self) -> Option<BlockHandle> {
        self.handle
    }
}

impl App for SourceApp {
    fn hear(&mut self, _now: Instant, event: Event) {
        match event {
            Event::ChunksWanted => self.is_asking = true,
            Event::BlockSent { .. } => self.is_sent = true,
            Event::BlockDeclined { .. } => self.is_declined = true,
            Event::Closed(reason) => self.end = Some(reason),
            _ => {}
        }
    }

    fn wakes_at(&self) -> Option<Instant> {
        let asks = self.is_asking.then_some(Instant::ZERO);
        earliest(earliest(asks, self.looks_at), self.reading.front().map(|(at, _)| *at))
    }

    fn act(&mut self, now: Instant, connection: &mut Connection) {
        if self.handle.is_none() && self.looks_at.is_some_and(|at| at > now) {
            return;
        }
        if self.handle.is_none() {
            self.handle = connection.send_block(now, &self.block).ok();
            self.looks_at = Some(now + Duration::from_millis(1));
        } else if self.looks_at.is_some_and(|at| at <= now) {
            (self.looks_at, self.is_asking) = (None, true);
        }
        if std::mem::take(&mut self.is_asking) {
            while let Some(wanted) = connection.want_chunk() {
                let at = self.disk.work(now, wanted.length);
                self.reading.push_back((at, wanted));
            }
        }
        while self.reading.front().is_some_and(|(at, _)| *at <= now)
            && let Some((_, wanted)) = self.reading.pop_front()
        {
            let mut data = bytes_at(wanted.offset, wanted.length);
            if self.wrong == Some(wanted.index) {
                data[0] ^= 1;
            }
            let provided = connection.provide_chunk(now, wanted.block, wanted.index, data);
            self.refused.extend(provided.err());
        }
    }
}

/// A client whose program takes chunks as fast as its disk writes them, and compares each.
#[derive(Debug)]
pub struct SinkHost {
    /// The client; `None` before it begins.
    pub client: Option<ClientMachine>,
    disk: Disk,
    is_in_order: bool,
    /// Declines the block after this number of bytes.
    declines_after: Option<u64>,
    /// What it has of a block already: its digest and a bit for each chunk.
    has: Option<([u8; 32], Vec<u8>)>,
    config: ClientConfig,
    seed: [u8; 32],
    now: Instant,
    /// Bytes written, each once.
    pub written: u64,
    /// A bit for each chunk that was written.
    seen: Vec<u64>,
    /// The block is complete.
    pub is_complete: bool,
    /// Chunks that were written, and when.
    pub log: Vec<(Instant, u64)>,
    /// How the connection ended.
    pub end: Option<CloseReason>,
}

impl SinkHost {
    /// A client that writes to this disk.
    #[must_use]
    pub fn new(config: ClientConfig, disk: Disk, seed: u64) -> Self {
        Self {
            client: None,
            disk,
            is_in_order: config.connection.delivery == Delivery::InOrder,
            declines_after: None,
            has: None,
            config,
            seed: Rng::stream(seed, 79).key(),
            now: Instant::ZERO,
            written: 0,
            seen: Vec::new(),
            is_complete: false,
            log: Vec::new(),
            end: None,
        }
    }

    /// Declines the rest after this number of bytes.
    #[must_use]
    pub const fn declining_after(mut self, bytes: u64) -> Self {
        self.declines_after = Some(bytes);
        self
    }

    /// It has these chunks of the block with this digest, a bit for each.
    #[must_use]
    pub fn having(mut self, digest: [u8; 32], map: Vec<u8>) -> Self {
        self.has = Some((digest, map));
        self
    }

    fn turn(&mut self, now: Instant) {
        self.now = now;
        if let Some(connection) = self.client.as_mut().and_then(ClientMachine::connection_mut)
            && let Some((digest, map)) = self.has.take()
        {
            assert!(connection.have_chunks(digest, map));
        }
        while self.disk.free_at(now) <= now {
            let Some(event) = self.client.as_mut().and_then(|it| it.poll_event(now)) else {
                return;
            };
            self.take(now, event);
        }
    }

    fn take(&mut self, now: Instant, event: Event) {
        match event {
            Event::Chunk { block, offset, data, .. } => {
                assert!(data == bytes_at(offset, data.len()), "wrong bytes at {offset}");
                assert!(!self.is_in_order || offset == self.written, "{offset} is not in order");
                self.mark(offset / CHUNK);
                self.written += data.len() as u64;
                self.log.push((now, self.written));
                self.disk.work(now, data.len());
                if self.declines_after.take_if(|after| *after <= self.written).is_some()
                    && let Some(connection) =
                        self.client.as_mut().and_then(|it| it.connection_mut())
                {
                    assert!(connection.decline_block(now, block, 7));
                }
            }
            Event::BlockComplete { .. } => self.is_complete = true,
            Event::Closed(reason) => self.end = Some(reason),
            _ => {}
        }
    }

    fn mark(&mut self, index: u64) {
        let (word, bit) = (index as usize / 64, 1 << (index % 64));
        if self.seen.len() <= word {
            self.seen.resize(word + 1, 0);
        }
        assert!(self.seen[word] & bit == 0, "chunk {index} came twice");
        self.seen[word] |= bit;
    }
}

impl Machine for SinkHost {
    fn handle_datagram(&mut self, now: Instant, path: FourTuple, datagram: &mut [u8]) {
        self.handle_marked_datagram(now, path, Ecn::NotEct, datagram);
    }

    fn handle_marked_datagram(
        &mut self,
        now: Instant,
        path: FourTuple,
        ecn: Ecn,
        datagram: &mut [u8],
    ) {
        if let Some(client) = &mut self.client {
            let _counted = client.handle_marked_datagram(now, path, ecn, datagram);
        }
        self.turn(now);
    }

    fn handle_timeout(&mut self, now: Instant) {
        let Self { client, config, seed, .. } = self;
        let client = client.get_or_insert_with(|| {
            ClientMachine::new(now, config.clone(), *seed).expect("a configuration")
        });
        client.handle_timeout(now);
        self.turn(now);
    }

    fn poll_transmit(&mut self, now: Instant, batch: &mut Batch) {
        if let Some(client) = &mut self.client {
            client.poll_transmit(now, batch);
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let Some(client) = &self.client else { return Some(Instant::ZERO) };
        let reads_at = Some(self.disk.free_at(self.now)).filter(|&at| at > self.now);
        earliest(client.poll_timeout(), reads_at)
    }
}

impl Host for SinkHost {
    fn check_invariants(&self) {
        self.client.iter().for_each(ClientMachine::check_invariants);
    }
}

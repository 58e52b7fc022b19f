//! The receiving half: chunks become blocks, in the order of their numbers, verified before they are
//! delivered.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;

use bytes::Bytes;

use super::{BlockProgress, MAX_ANNOUNCED, max_block_time};
use crate::Instant;
use crate::bulk::Receiver;
use crate::chunk::MAX_CHUNK_BYTES;
use crate::connection::{CloseCode, ConnectionConfig, Event};
use crate::time::earliest;
use crate::wire::frame::BlockFrame;
use crate::work::Work;

/// Bytes charged for a finished block besides its data: empty blocks need memory too.
const FINISHED_COST: u64 = 256;

#[derive(Debug)]
struct Announced {
    tag: u64,
    length: u64,
    digest: [u8; 32],
    /// When it became the current block.
    started: Option<Instant>,
}

/// The receiving half.
#[derive(Debug)]
pub(crate) struct IncomingBlocks {
    pub(crate) receiver: Receiver,
    announced: BTreeMap<u32, Announced>,
    /// The number of the block that the next chunk belongs to.
    current: u32,
    data: Vec<u8>,
    /// Over the bytes in `data`, a chunk at a time: no single datagram may cost the digest of a whole block.
    hasher: Option<Box<blake3::Hasher>>,
    finished: VecDeque<(u64, Bytes)>,
    finished_bytes: u64,
    has_progress_event: bool,
    /// When the current block last made progress.
    last_progress: Instant,
    /// A violation found while an event was read: the connection closes at its next timeout.
    violation: Option<CloseCode>,
    hashed_bytes: u64,
}

impl IncomingBlocks {
    pub(crate) fn new(config: &ConnectionConfig) -> Self {
        // The sender waits half as long, so that it is the one that reports it (H-5.1b).
        let receiver = Receiver::new(config.no_progress_timeout.saturating_mul(2));
        Self {
            receiver,
            announced: BTreeMap::new(),
            current: 0,
            data: Vec::new(),
            hasher: None,
            finished: VecDeque::new(),
            finished_bytes: 0,
            has_progress_event: false,
            last_progress: Instant::ZERO,
            violation: None,
            hashed_bytes: 0,
        }
    }

    /// A block was announced.
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
            // For their sender, empty blocks are done once they are announced. They pile up here if this
            // application does not read, which is not a violation.
            return Err(match self.is_held_back(config) {
                true => CloseCode::RESOURCES,
                false => CloseCode::PROTOCOL,
            });
        }
        if frame.length > config.max_block_bytes {
            return Err(CloseCode::BLOCK_TOO_LARGE);
        }
        let announced =
            Announced { tag: frame.tag, length: frame.length, digest: frame.digest, started: None };
        self.announced.insert(frame.number, announced);
        self.advance(now, config)
    }

    /// A new slice arrived, and may have completed a chunk.
    pub(crate) fn on_slice(
        &mut self,
        now: Instant,
        config: &ConnectionConfig,
    ) -> Result<(), CloseCode> {
        self.has_progress_event = true;
        self.last_progress = now;
        self.advance(now, config)
    }

    /// Whether too many finished blocks wait: no more are accepted before the application reads them.
    const fn is_held_back(&self, config: &ConnectionConfig) -> bool {
        self.finished_bytes > config.max_unread_block_bytes
    }

    /// Moves finished chunks into their blocks, as far as blocks are announced and read.
    pub(crate) fn advance(
        &mut self,
        now: Instant,
        config: &ConnectionConfig,
    ) -> Result<(), CloseCode> {
        while !self.is_held_back(config) {
            let Some(block) = self.announced.get_mut(&self.current) else { break };
            if block.started.is_none() {
                (block.started, self.last_progress) = (Some(now), now);
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
            self.hashed_bytes += chunk.len() as u64;
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
        self.has_progress_event = false;
        Ok(())
    }

    pub(crate) fn poll_event(&mut self, now: Instant, config: &ConnectionConfig) -> Option<Event> {
        if let Some((tag, data)) = self.finished.pop_front() {
            self.finished_bytes -= data.len() as u64 + FINISHED_COST;
            if self.finished.is_empty() {
                self.finished = VecDeque::new();
            }
            // What was held back may proceed. The pause was not the peer's fault.
            self.last_progress = now;
            self.violation = self.violation.or(self.advance(now, config).err());
            return Some(Event::Block { tag, data });
        }
        let progress = self.progress().filter(|_| self.has_progress_event)?;
        self.has_progress_event = false;
        Some(Event::BlockProgress {
            tag: progress.tag,
            received: progress.done,
            length: progress.length,
        })
    }

    pub(crate) fn has_events(&self) -> bool {
        !self.finished.is_empty()
            || (self.has_progress_event && self.announced.contains_key(&self.current))
    }

    pub(crate) fn progress(&self) -> Option<BlockProgress> {
        let block = self.announced.get(&self.current)?;
        let done = self.data.len() + self.receiver.slices() * crate::chunk::SLICE_BYTES;
        let done = (done as u64).min(block.length);
        Some(BlockProgress { tag: block.tag, done, length: block.length })
    }

    /// Memory held for blocks, in bytes.
    pub(crate) fn memory_bytes(&self) -> usize {
        let finished = usize::try_from(self.finished_bytes).unwrap_or(usize::MAX);
        finished.saturating_add(self.data.capacity() + self.receiver.memory_bytes())
    }

    /// The decoding and hashing so far.
    pub(crate) fn work(&self) -> Work {
        let (decodes, hashed_bytes) = (self.receiver.decodes(), self.hashed_bytes);
        Work { decodes, hashed_bytes, ..Work::default() }
    }

    /// Goes on counting where another one ended.
    pub(crate) const fn add_work_of(&mut self, dropped: &Self) {
        self.hashed_bytes += dropped.hashed_bytes;
        self.receiver.add_decodes(dropped.receiver.decodes());
    }

    /// Whether slices are expected: their arrival times are recorded then.
    pub(crate) fn is_receiving(&self) -> bool {
        self.announced.contains_key(&self.current) || self.receiver.slices() > 0
    }

    /// Why the connection has to close, if it has to: a violation, or a block without enough progress.
    pub(crate) fn failure(&self, now: Instant, config: &ConnectionConfig) -> Option<CloseCode> {
        let late = self.late_at(config).filter(|&at| at <= now);
        self.violation.or(late.map(|_| CloseCode::NO_PROGRESS))
    }

    pub(crate) fn poll_deadline(&self, config: &ConnectionConfig) -> Option<Instant> {
        let late_at = self.violation.map_or_else(|| self.late_at(config), |_| Some(Instant::ZERO));
        earliest(late_at, self.receiver.abandon_at())
    }

    /// When the current block has made no progress, or too little, for too long. Twice the time that its
    /// sender waits: the sender knows better, and an honest one gives up first.
    fn late_at(&self, config: &ConnectionConfig) -> Option<Instant> {
        let block = self.announced.get(&self.current).filter(|_| !self.is_held_back(config))?;
        let started = block.started?;
        let stalled = self.last_progress + config.no_progress_timeout.saturating_mul(2);
        let rate = Some(config.min_block_rate_bps).filter(|&rate| rate > 0);
        let crawled =
            rate.map(|rate| started + max_block_time(block.length, rate).saturating_mul(2));
        earliest(Some(stalled), crawled)
    }

    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        self.receiver.poll_timeout()
    }
}

//! The receiving half: chunks become blocks, in the order of their numbers, verified before anybody hears.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;

use bytes::Bytes;

use super::{BlockProgress, MAX_ANNOUNCED, longest_time};
use crate::Instant;
use crate::bulk::Receiver;
use crate::chunk::MAX_CHUNK_BYTES;
use crate::connection::{CloseCode, ConnectionConfig, Event};
use crate::time::earliest;
use crate::wire::frame::BlockFrame;

/// What a finished block is counted for beside its bytes: empty ones take a place too.
const FINISHED_COST: u64 = 256;

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
        // The sender gives up first, and the connection ends with that.
        let receiver = Receiver::new(config.no_progress_timeout.saturating_mul(2));
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
        let done = self.data.len() + self.receiver.slices() * crate::chunk::SLICE_BYTES;
        let done = (done as u64).min(block.length);
        Some(BlockProgress { tag: block.tag, done, length: block.length })
    }

    /// Memory held for blocks, in bytes.
    pub(crate) fn memory_bytes(&self) -> usize {
        let finished = usize::try_from(self.finished_bytes).unwrap_or(usize::MAX);
        finished.saturating_add(self.data.capacity() + self.receiver.memory_bytes())
    }

    /// Whether slices may be on their way: when they arrive matters then.
    pub(crate) fn is_receiving(&self) -> bool {
        self.announced.contains_key(&self.current) || self.receiver.slices() > 0
    }

    /// Why the connection must end, if it must: a rule was broken, or the block in progress crawls.
    pub(crate) fn verdict(&self, now: Instant, config: &ConnectionConfig) -> Option<CloseCode> {
        let late = self.late_at(config).filter(|&at| at <= now);
        self.violation.or(late.map(|_| CloseCode::NO_PROGRESS))
    }

    pub(crate) fn poll_deadline(&self, config: &ConnectionConfig) -> Option<Instant> {
        let late_at = self.violation.map_or_else(|| self.late_at(config), |_| Some(Instant::ZERO));
        earliest(late_at, self.receiver.abandon_at())
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

//! The reports of the receiving end: progress, slices here, and frames that have to arrive.
//!
//! The invariant: each open chunk is scheduled once, so for chunks in progress at most one frame is sent for
//! each in 50 ms.

use alloc::vec::Vec;
use core::time::Duration;

use super::IncomingBlocks;
use super::block::Block;
use super::here::MAP_BYTES;
use super::progress::ProgressDue;
use super::slots::Slot;
use crate::Instant;
use crate::bulk::cut::{ChunkAt, SliceSize};
use crate::chunk::MAX_SLICES;
use crate::transit::{Control, ProgressMark};
use crate::wire::frames::{ChunksHereFrame, Frame, ProgressFrame, SlicesHereFrame};

/// The interval between slices here frames of a chunk in progress. They repeat what acks say.
const REPORT_INTERVAL: Duration = Duration::from_millis(50);

/// Chunks of the map of a chunks here frame.
const MAP_CHUNKS: usize = 8 * MAP_BYTES;

/// Which source slices of a chunk are here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SlicesHere {
    at: ChunkAt,
    size: SliceSize,
    map: [u8; MAX_SLICES / 8],
    bytes: usize,
}

impl SlicesHere {
    /// As it is sent.
    pub(crate) fn frame(&self) -> SlicesHereFrame<'_> {
        let map = self.map.get(..self.bytes).unwrap_or_default();
        SlicesHereFrame { at: self.at, size: self.size, map }
    }
}

impl IncomingBlocks {
    /// Whether a progress frame belongs in the next datagram.
    pub(crate) fn progress_due(&self) -> ProgressDue {
        self.unheard.due(self.has_open())
    }

    /// The progress frame, in at most `room` bytes; `None` if there is not enough. `entries` is a buffer that
    /// the frame is written into. With `lateness` the caller says how much later than datagrams arrive it is
    /// called.
    pub(crate) fn progress_frame<'a>(
        &self,
        lateness: Duration,
        room: usize,
        entries: &'a mut Vec<u8>,
    ) -> Option<ProgressFrame<'a>> {
        let lateness = u64::try_from(lateness.as_millis()).unwrap_or(u64::MAX);
        self.unheard.frame(&self.slots, self.credit.get(), lateness, room, entries)
    }

    /// A progress frame goes out in an ack-eliciting datagram. What this returns is passed back when that is
    /// acknowledged or lost.
    pub(crate) const fn on_progress_sent(&mut self) -> ProgressMark {
        self.unheard.on_sent(self.credit.get())
    }

    /// The datagram with this progress frame was acknowledged.
    pub(crate) fn on_progress_heard(&mut self, mark: ProgressMark) {
        self.unheard.on_heard(mark);
    }

    /// The datagram with this progress frame is lost.
    pub(crate) fn on_progress_lost(&mut self, mark: ProgressMark) {
        self.unheard.on_lost(mark);
    }

    /// The next frame that has to arrive: it is written by [`control_frame`](Self::control_frame), and
    /// passed back when its datagram is acknowledged or lost.
    pub(crate) fn poll_control(&mut self) -> Option<Control> {
        let control = self.controls.pop_front();
        if self.controls.is_empty() {
            self.controls = alloc::collections::VecDeque::new();
        }
        control
    }

    /// Whether there is one.
    pub(crate) fn has_control(&self) -> bool {
        !self.controls.is_empty()
    }

    /// The frame of a control; `None` if it is out of date.
    pub(crate) fn control_frame(&self, control: Control) -> Option<Frame<'_>> {
        match control {
            Control::RootHere(place) => self.roots.get(place).map(|root| Frame::RootHere(*root)),
            Control::ChunksHere { block, first } => {
                let map = self.slots.open(block)?.done.here().get(first as usize / 8..)?;
                let map = map.get(..MAP_BYTES).unwrap_or(map);
                Some(Frame::ChunksHere(ChunksHereFrame { block, first, map }))
            }
            Control::Decline(block) => match self.slots.get(block)? {
                Slot::Declined { code, .. } => Some(Frame::Decline { block, code: *code }),
                _ => None,
            },
        }
    }

    /// The datagram with this frame was acknowledged.
    pub(crate) fn on_control_acked(&mut self, now: Instant, control: Control) {
        match control {
            Control::RootHere(place) => {
                self.roots.on_heard(place);
                let here: Vec<_> = self.slots.here(place).collect();
                here.into_iter().for_each(|(number, chunks)| self.finish(number, chunks));
            }
            Control::ChunksHere { block, .. } => {
                if let Some(open) = self.slots.open_mut(block) {
                    open.unheard_here = open.unheard_here.saturating_sub(1);
                }
                self.finish_if_full(block);
            }
            Control::Decline(_) => {}
        }
        self.after(now);
    }

    /// The datagram with this frame is lost: it is sent again, unless it is out of date.
    pub(crate) fn on_control_lost(&mut self, control: Control) {
        if self.control_frame(control).is_some() && !self.controls.contains(&control) {
            self.controls.push_back(control);
        }
    }

    /// Schedules what the application has of a block.
    pub(super) fn say_chunks_here(&mut self, number: u32, block: &mut Block) {
        let here = |block: &Block, n| {
            let map = block.done.here().get(n * MAP_BYTES..).unwrap_or_default();
            map.iter().take(MAP_BYTES).any(|&byte| byte != 0)
        };
        let pieces = block.done.here().len().div_ceil(MAP_BYTES);
        for n in (0..pieces).filter(|&n| here(block, n)).collect::<Vec<_>>() {
            let first = u32::try_from(n * MAP_CHUNKS).unwrap_or(u32::MAX);
            self.controls.push_back(Control::ChunksHere { block: number, first });
            block.unheard_here += 1;
        }
    }

    /// A new slice of this chunk is here, or it was started over.
    pub(super) fn schedule_report(&mut self, now: Instant, at: ChunkAt) {
        let chunk = self.slots.open_mut(at.block).and_then(|block| block.open_mut(at.index));
        if let Some(chunk) = chunk.filter(|chunk| !chunk.is_scheduled) {
            chunk.is_scheduled = true;
            self.drop_old_reports();
            self.reports.push_back((now + REPORT_INTERVAL, at));
        }
    }

    /// When the next slices here frame is due.
    pub(crate) fn slices_here_at(&self) -> Option<Instant> {
        self.reports.front().map(|&(at, _)| at)
    }

    /// The next slices here frame that is due. A datagram has at most one (H-4b).
    pub(crate) fn poll_slices_here(&mut self, now: Instant) -> Option<SlicesHere> {
        self.drop_old_reports();
        let &(_, at) = self.reports.front().filter(|(due, _)| *due <= now)?;
        self.reports.pop_front();
        let chunk = self.slots.open_mut(at.block)?.open_mut(at.index)?;
        let (was_wrong, assembly) = (chunk.was_wrong(), chunk.partial()?);
        let mut map = [0; MAX_SLICES / 8];
        let words = assembly.sources().words().iter().map(|word| word.to_le_bytes());
        map.as_chunks_mut().0.iter_mut().zip(words).for_each(|(to, word)| *to = word);
        let cut = assembly.cut();
        chunk.is_scheduled = was_wrong;
        if was_wrong {
            self.reports.push_back((now + REPORT_INTERVAL, at));
        }
        Some(SlicesHere { at, size: cut.size(), map, bytes: cut.count().div_ceil(8) })
    }

    /// Forgets the first reports, as long as they are of chunks that are done: only then is the first one's
    /// time that of a frame.
    pub(super) fn drop_old_reports(&mut self) {
        while let Some(&(_, at)) = self.reports.front() {
            let chunk = self.slots.open_mut(at.block).and_then(|block| block.open_mut(at.index));
            if chunk.is_some_and(|chunk| chunk.partial().is_some()) {
                return;
            }
            if let Some(block) = self.slots.open_mut(at.block)
                && let Some(chunk) = block.open_mut(at.index)
            {
                chunk.is_scheduled = false;
            }
            self.reports.pop_front();
        }
        self.reports = alloc::collections::VecDeque::new();
    }
}

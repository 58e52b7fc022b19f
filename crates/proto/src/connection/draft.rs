//! A datagram that is being composed: its frames, and what the connection has to know of it when it goes.
//!
//! The invariant: what is noted here is of what was appended, frame by frame.

use crate::DatagramBuffer;
use crate::transit::{ChunkAt, Symbol};
use crate::wire::frames::{Frame, SliceFrame, SliceKind};

/// A datagram that is being composed.
pub(super) struct Draft<'a, 'b> {
    pub(super) out: &'a mut DatagramBuffer<'b>,
    /// Where its frames have to end.
    end: usize,
    pub(super) is_ack_eliciting: bool,
    /// It has a frame that is not an ack, nor goes with one.
    pub(super) has_content: bool,
    /// It asks for an ack, because as an ack alone it might not go.
    pub(super) is_asking: bool,
    pub(super) slice: Option<(ChunkAt, Symbol)>,
    /// Bytes of the slice that are still in the block: they are encrypted from there.
    elsewhere_bytes: usize,
    /// Slices may be sent: nothing that is composed changes that.
    pub(super) may_send_slices: bool,
    /// It follows a slice alone: if another one is due shows when it is asked for.
    pub(super) is_next: bool,
    /// How many frames it has.
    frames: u32,
    /// It has what a receiver of blocks says without being asked for an ack.
    pub(super) has_report: bool,
    pub(super) has_progress: bool,
    pub(super) has_ack: bool,
}

impl<'a, 'b> Draft<'a, 'b> {
    /// One whose frames come after what is in `out`, and end at `end`.
    pub(super) const fn new(
        out: &'a mut DatagramBuffer<'b>,
        end: usize,
        may_send_slices: bool,
        is_next: bool,
    ) -> Self {
        Self {
            out,
            end,
            may_send_slices,
            is_next,
            frames: 0,
            is_ack_eliciting: false,
            has_content: false,
            is_asking: false,
            slice: None,
            elsewhere_bytes: 0,
            has_report: false,
            has_progress: false,
            has_ack: false,
        }
    }

    pub(super) const fn has_frames(&self) -> bool {
        self.has_content || self.has_report
    }

    /// Whether it has a slice, and nothing else.
    pub(super) const fn is_slice_alone(&self) -> bool {
        self.slice.is_some() && self.frames == 1
    }

    pub(super) fn room(&self) -> usize {
        self.end.saturating_sub(self.bytes())
    }

    /// Bytes that it has, with its header.
    pub(super) fn bytes(&self) -> usize {
        self.out.len() + self.elsewhere_bytes
    }

    /// The slice whose data is still in the block.
    pub(super) fn elsewhere(&self) -> Option<(ChunkAt, Symbol)> {
        self.slice.filter(|_| self.elsewhere_bytes > 0)
    }

    pub(super) fn push(&mut self, frame: &Frame<'_>) {
        frame.write(self.out.vec());
        self.frames += 1;
        self.is_ack_eliciting |= frame.is_ack_eliciting();
        match frame {
            Frame::Ack(_) => self.has_ack = true,
            Frame::SlicesHere(_) | Frame::Progress(_) => self.has_report = true,
            // Always beside an ack.
            Frame::Arrivals(_) => {}
            _ => self.has_content = true,
        }
    }

    /// A slice, which ends it. The data of a source slice is not copied.
    pub(super) fn push_slice(&mut self, slice: (ChunkAt, Symbol), frame: &SliceFrame<'_>) {
        self.slice = Some(slice);
        if frame.kind == SliceKind::Repair {
            return self.push(&Frame::Slice(*frame));
        }
        frame.write_head(self.out.vec());
        self.elsewhere_bytes = frame.data.len();
        self.on_data();
    }

    /// Something ack-eliciting was appended directly.
    pub(super) const fn on_data(&mut self) {
        (self.is_ack_eliciting, self.has_content) = (true, true);
        self.frames += 1;
    }
}

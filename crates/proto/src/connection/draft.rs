//! A datagram that is being composed: its frames, and what has to be known of it when it is sent.
//!
//! The invariant: the notes here, and the items of the datagram in the [`Recovery`], are of the frames that
//! were appended, one by one.

use alloc::vec::Vec;

use super::recovery::Recovery;
use crate::DatagramBuffer;
use crate::transit::{ChunkAt, Item, Ledger, Symbol};
use crate::wire::frames::{Frame, SliceFrame, SliceKind};

/// A datagram that is being composed.
pub(super) struct Draft<'a, 'b> {
    out: &'a mut DatagramBuffer<'b>,
    recovery: &'a mut Recovery,
    room: Room,
    written: Written,
}

/// What may go into a datagram.
#[derive(Clone, Copy)]
pub(super) struct Room {
    /// Where its frames have to end.
    pub(super) end: usize,
    /// Bytes of frames that any datagram may have now: this one perhaps fewer.
    pub(super) frames: usize,
    /// Slices may be sent: nothing that is composed changes that.
    pub(super) may_send_slices: bool,
    /// It follows a slice alone: if another one is due shows when it is asked for.
    pub(super) is_next: bool,
}

/// What was put into a datagram.
#[derive(Clone, Copy, Default)]
pub(super) struct Written {
    pub(super) is_ack_eliciting: bool,
    /// It has a frame that is not an ack, nor goes with one.
    pub(super) has_content: bool,
    /// It asks for an ack, because as an ack alone it might not go.
    pub(super) is_asking: bool,
    pub(super) slice: Option<(ChunkAt, Symbol)>,
    /// Bytes of the slice that are still in the block: they are encrypted from there.
    elsewhere_bytes: usize,
    /// The number of frames in it.
    frames: u32,
    /// It has what a receiver of blocks says without being asked for an ack.
    pub(super) has_report: bool,
    pub(super) has_progress: bool,
    pub(super) has_ack: bool,
    /// What it took, beside its bytes ([`Work`](crate::work::Work)).
    pub(super) steps: u64,
}

impl Written {
    /// Whether it has a slice, and nothing else.
    pub(super) const fn is_slice_alone(&self) -> bool {
        self.slice.is_some() && self.frames == 1
    }

    /// Whether it has only an ack and frames that go with an ack, and asks for no ack.
    pub(super) const fn is_ack_alone(&self) -> bool {
        !self.has_content && !self.is_asking
    }

    /// The slice whose data is still in the block.
    pub(super) fn elsewhere(&self) -> Option<(ChunkAt, Symbol)> {
        self.slice.filter(|_| self.elsewhere_bytes > 0)
    }
}

impl<'a, 'b> Draft<'a, 'b> {
    /// A draft whose frames come after the bytes in `out`.
    pub(super) fn new(
        out: &'a mut DatagramBuffer<'b>,
        recovery: &'a mut Recovery,
        room: Room,
    ) -> Self {
        Self { out, recovery, room, written: Written::default() }
    }

    /// A summary of the frames that it has.
    pub(super) const fn written(&self) -> &Written {
        &self.written
    }

    pub(super) const fn has_frames(&self) -> bool {
        self.written.has_content || self.written.has_report
    }

    pub(super) fn room(&self) -> usize {
        self.room.end.saturating_sub(self.bytes())
    }

    /// Bytes of frames that any datagram may have now.
    pub(super) const fn frame_room(&self) -> usize {
        self.room.frames
    }

    /// Whether slices may be sent.
    pub(super) const fn may_send_slices(&self) -> bool {
        self.room.may_send_slices
    }

    /// Whether it follows a slice alone.
    pub(super) const fn is_next(&self) -> bool {
        self.room.is_next
    }

    /// Bytes that it has, with its header.
    pub(super) fn bytes(&self) -> usize {
        self.out.len() + self.written.elsewhere_bytes
    }

    /// What was sent before it.
    pub(super) const fn ledger(&self) -> &Ledger {
        self.recovery.ledger()
    }

    pub(super) fn push(&mut self, frame: &Frame<'_>) {
        frame.write(self.out.vec());
        let it = &mut self.written;
        it.frames += 1;
        it.is_ack_eliciting |= frame.is_ack_eliciting();
        match frame {
            Frame::Ack(_) => it.has_ack = true,
            Frame::SlicesHere(_) => it.has_report = true,
            Frame::Progress(frame) => {
                (it.has_report, it.has_progress) = (true, true);
                it.steps += frame.entry_bytes() as u64;
            }
            // Always beside an ack.
            Frame::Arrivals(_) => {}
            _ => it.has_content = true,
        }
    }

    /// What was appended last is handed back with the fate of the datagram.
    pub(super) fn add(&mut self, item: Item) {
        self.recovery.add(item);
    }

    /// Appends what `write` does, if it finds room for it: something that asks for an ack.
    pub(super) fn append<T>(
        &mut self,
        write: impl FnOnce(usize, &mut Vec<u8>) -> Option<T>,
    ) -> Option<T> {
        let written = write(self.room(), self.out.vec());
        if written.is_some() {
            self.on_data();
        }
        written
    }

    /// Asks for an ack, behind what does not do so by itself; `is_asking` if it might not go otherwise.
    pub(super) fn ask(&mut self, is_asking: bool) {
        Frame::Ping.write(self.out.vec());
        self.written.is_ack_eliciting = true;
        self.written.is_asking |= is_asking;
    }

    /// A slice, which ends it. The data of a source slice is not copied.
    pub(super) fn push_slice(&mut self, slice: (ChunkAt, Symbol), frame: &SliceFrame<'_>) {
        self.written.slice = Some(slice);
        if frame.kind == SliceKind::Repair {
            return self.push(&Frame::Slice(*frame));
        }
        frame.write_head(self.out.vec());
        self.written.elsewhere_bytes = frame.data.len();
        self.on_data();
    }

    /// Something ack-eliciting was appended directly.
    const fn on_data(&mut self) {
        (self.written.is_ack_eliciting, self.written.has_content) = (true, true);
        self.written.frames += 1;
    }
}

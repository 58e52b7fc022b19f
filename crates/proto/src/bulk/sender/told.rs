//! The inputs of a sender: the blocks, the chunks that the receiver can take and has, the datagrams that the
//! path carries, and the settings of the application.

use core::time::Duration;

use haulier_control::{Bytes, Controller, FULL_PACKET, Rate, Urgency};

use super::super::block::{NewBlock, SendBlock};
use super::super::credit::Credit;
use super::super::cut::SliceSize;
use super::super::tuning::{MAX_SLICE, SLICE_OVERHEAD};
use super::Sender;
use crate::Instant;
use crate::transit::{ChunkAt, Symbol};

/// How long a receiver must report slices as missing that it had acknowledged, before they are sent again: an
/// older report may be on the way for that time (STANDARD-1, 4.2.3).
const START_OVER_RTTS: u32 = 3;
const START_OVER: Duration = Duration::from_millis(100);

impl Sender {
    /// The credit, given and used.
    pub(crate) const fn credit(&self) -> Credit {
        self.chunks.credit
    }

    /// A block that is being sent.
    pub(crate) fn block(&self, number: u32) -> Option<&SendBlock> {
        self.chunks.block(number)
    }

    /// From now on it is asked with this path. What is open keeps its cut.
    pub(crate) fn begin_path(&mut self, path: &mut Controller) {
        path.set_packet(self.packet);
        self.chunks.rescan_margins();
    }

    /// Bytes that a slice frame may have: what the path carries, less the header of a datagram and its tag.
    /// Chunks that are open keep their cut; those of which slices do not fit any more wait for
    /// [`on_black_hole`](Self::on_black_hole).
    pub(crate) fn set_slice_room(&mut self, path: &mut Controller, room: usize) {
        self.chunks.cutting.room = room;
        if !self.chunks.has_open() || self.path_packet() < self.packet {
            self.follow_cut(path);
        }
    }

    /// What the largest datagram with a slice takes on this path.
    fn path_packet(&self) -> Bytes {
        FULL_PACKET.max(SLICE_OVERHEAD + self.chunks.cutting.room.into())
    }

    /// The chunk that is opened now, and the next ones, are cut small if a slice as large as the path carries
    /// would keep a game's packet waiting, as far as is known.
    pub(super) fn cut_for_game(&mut self, path: &mut Controller) {
        let rate = path.pace();
        let is_long = |rate| self.path_packet() / rate > MAX_SLICE;
        self.chunks.cutting.is_fine =
            self.config.urgency == Urgency::DuringPlay && rate.is_none_or(is_long);
        self.follow_cut(path);
    }

    /// What is counted in full datagrams follows how chunks are cut, and not what the path is found to carry:
    /// those that are open keep their cut. A law that waits for larger datagrams than are sent hears nothing.
    fn follow_cut(&mut self, path: &mut Controller) {
        let is_fine = self.chunks.cutting.is_fine;
        self.packet = if is_fine { FULL_PACKET } else { self.path_packet() };
        path.set_packet(self.packet);
    }

    /// The path no longer carries what it did, and [`set_slice_room`](Self::set_slice_room) has said what it
    /// does: open chunks are cut anew.
    pub(crate) fn on_black_hole(&mut self) {
        self.chunks.cut_anew(self.next_number);
        self.chunks.rescan_margins();
    }

    /// The peer's program reads datagrams up to `lateness` after they arrive. No more is sent in that time
    /// than can wait for the program, and its answer may take that much longer.
    pub(crate) fn set_lateness(&mut self, lateness: Duration) {
        let floor = Rate::from_bps(self.config.min_rate_bps);
        self.pacer.set_reader_lateness(lateness.into(), floor);
        self.silence.set_lateness(lateness);
    }

    /// The peer was asked to delay its acks by `later` more than it does unasked.
    pub(crate) fn set_ack_delay(&mut self, later: Duration) {
        self.silence.set_ack_delay(later);
    }

    pub(crate) fn set_rtt(&mut self, path: &mut Controller, rtt: Duration) {
        path.set_rtt(rtt);
        self.chunks.rescan_margins();
    }

    pub(crate) fn set_max_rate_bps(&mut self, max_rate_bps: u64) {
        self.pacer.set_limit(max_rate_bps);
    }

    #[cfg(test)]
    pub(crate) const fn urgency(&self) -> Urgency {
        self.config.urgency
    }

    pub(crate) const fn set_urgency(&mut self, urgency: Urgency) {
        self.config.urgency = urgency;
    }

    /// Sends a block, which is announced, and whose number is above all before.
    pub(crate) fn push(&mut self, now: Instant, block: NewBlock) {
        if self.chunks.is_empty() {
            self.silence.begin(now);
        }
        self.after_program(now, |sender| sender.chunks.push(block));
        self.pacer.on_input(now);
    }

    /// Nothing more is sent of a block: all of it is done, or it is given up.
    pub(crate) fn remove(&mut self, number: u32) {
        self.chunks.remove(number);
        self.chunks.rescan_margins();
    }

    /// Chunks of this block below `ready` may be opened: what is needed to verify them was sent.
    pub(crate) fn set_ready(&mut self, number: u32, ready: u32) {
        if let Some(block) = self.chunks.block_mut(number) {
            block.set_ready(ready);
        }
    }

    /// Chunks whose values are in the page of this chunk may be opened.
    pub(crate) fn set_page_ready(&mut self, at: ChunkAt) {
        if let Some(block) = self.chunks.block_mut(at.block) {
            block.set_page_ready(at.index);
        }
    }

    /// The chunk that is opened next, if it is not ready.
    pub(crate) fn next_unready(&self) -> Option<ChunkAt> {
        self.chunks.next_unready()
    }

    /// The receiver can take `given` chunks and announcements in all.
    pub(crate) fn on_credit(&mut self, now: Instant, given: u64) {
        let was_held_back = self.chunks.is_held_back();
        if self.chunks.credit.raise(given) && was_held_back {
            // The pause was the receiver's.
            self.end_pause(now);
        }
    }

    /// A block is announced, which uses credit like a chunk.
    pub(crate) fn on_announced(&mut self) {
        self.chunks.credit.on_used();
    }

    /// Whether there are chunks to open.
    pub(crate) fn has_unopened(&self) -> bool {
        self.chunks.has_unopened()
    }

    /// Whether there are chunks to open, but no credit for them.
    pub(crate) fn is_held_back(&self) -> bool {
        self.chunks.is_held_back()
    }

    /// The receiver had this chunk before.
    pub(crate) fn on_here(&mut self, now: Instant, at: ChunkAt) {
        if self.chunks.on_here(at) {
            self.chunks.credit.give_back();
        }
        self.on_done(now, at);
    }

    /// The receiver has this chunk.
    pub(crate) fn on_done(&mut self, now: Instant, at: ChunkAt) {
        let is_news = self.chunks.on_done(at);
        self.on_report(now, is_news);
    }

    /// The peer reported which source slices of a chunk it has: those with a bit in `map`, if they have this
    /// size. Those that were never sent are passed over.
    pub(crate) fn on_slices_here(
        &mut self,
        path: &Controller,
        now: Instant,
        at: ChunkAt,
        size: SliceSize,
        map: &[u8],
    ) {
        let chunk = self.chunks.get(at).filter(|chunk| chunk.cut().size() == size);
        // It says the size, so that it is of the present cut.
        let Some(news) = chunk.map(|chunk| chunk.news_in(map)) else { return };
        let mut is_news = false;
        for (word, bits) in (0_u8..).zip(news).filter(|&(_, bits)| bits != 0) {
            for bit in (0..32).filter(|bit| bits >> bit & 1 != 0) {
                let symbol = Symbol::source(32 * word + bit);
                is_news |= self.chunks.on_received(at, u64::MAX, symbol);
            }
        }
        let patience = START_OVER_RTTS * path.rtt() + START_OVER;
        if self.chunks.on_lacking(now, at, map, patience) {
            self.chunks.rescan_margins();
        }
        self.on_report(now, is_news);
    }

    /// Opens or closes the server's uplink to this connection.
    pub(crate) fn set_uplink_open(&mut self, now: Instant, is_open: bool) {
        if self.pacer.set_uplink_open(now, is_open) {
            // Nobody could make progress meanwhile.
            self.silence.on_progress(now);
        }
    }

    /// Whether a slice could go as soon as the server's uplink is open.
    pub(crate) const fn awaits_uplink(&self) -> bool {
        self.pacer.awaits_uplink()
    }

    /// Sets whether the server paces the connections to this address together.
    pub(crate) const fn set_paced_together(&mut self, is_paced: bool) {
        self.pacer.set_paced_together(is_paced);
    }

    /// Something was heard from the peer, whatever it was.
    pub(crate) fn on_heard(&mut self, now: Instant) {
        self.silence.on_heard(now);
    }

    /// The peer said something of what it has.
    pub(crate) fn on_told(&mut self, now: Instant) {
        self.on_report(now, false);
    }

    /// It goes on after a pause that was not its own: it was no silence, and nothing was late.
    pub(super) fn end_pause(&mut self, now: Instant) {
        self.silence.on_feedback(now);
        self.silence.on_progress(now);
        self.pacer.on_input(now);
    }

    /// The peer reported what it has.
    fn on_report(&mut self, now: Instant, is_progress: bool) {
        if is_progress {
            self.silence.on_feedback(now);
            self.silence.on_progress(now);
            self.chunks.rescan_margins();
        }
        self.pacer.on_input(now);
    }
}

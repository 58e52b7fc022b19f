//! What goes into a datagram, and when: the parts of one, in the order of [H-4.3].
//!
//! Control frames first; then what the receiver of blocks says; then the application's data, in the order of
//! its lanes: packets, messages, slices. A slice goes to the end of its datagram, so an ack that is due comes
//! before it; one that is not due rides along where there is room. For each [`Part`] this file says side by
//! side when it has something to send by itself ([`due_at`](Connection::due_at)) and how it is put into a
//! datagram ([`put`](Composer::put)): a connection wakes up for exactly what it will then send. A new frame
//! appears in `Part`, in [`ORDER`] and in these two. Path challenges, probes of the path's size and the close
//! have datagrams of their own (`path`, `transmit`, `closing`).

use super::Connection;
use super::draft::{Draft, Room, Written};
use super::inbound::Inbound;
use super::outbound::{MIN_ROOM, Outbound};
use super::path::Path;
use super::signals::Signals;
use crate::bulk::Sender;
use crate::crypto::Entropy;
use crate::time::earliest;
use crate::wire::MAX_DATAGRAM_BYTES;
use crate::{DatagramBuffer, Instant};

/// The least room for a slice of a full chunk with its frame: 1024 bytes and 12.
const MIN_SLICE_ROOM: usize = 1036;

/// A part of a datagram.
#[derive(Clone, Copy)]
enum Part {
    PathResponse,
    ResetToken,
    ChannelLimits,
    Controls,
    Cancels,
    Announcements,
    Pages,
    Ping,
    Progress,
    SlicesHere,
    Data,
    Ack,
    Grease,
}

/// In this order.
const ORDER: [Part; 13] = [
    Part::PathResponse,
    Part::ResetToken,
    Part::ChannelLimits,
    Part::Controls,
    Part::Cancels,
    Part::Announcements,
    Part::Pages,
    Part::Ping,
    Part::Progress,
    Part::SlicesHere,
    Part::Data,
    Part::Ack,
    Part::Grease,
];

/// Those that have something to put into a datagram.
struct Composer<'a> {
    now: Instant,
    signals: &'a mut Signals,
    inbound: &'a mut Inbound,
    outbound: &'a mut Outbound,
    path: &'a mut Path,
    entropy: &'a mut Entropy,
    has_grease: bool,
    /// An ack alone should ask for an ack itself.
    is_sample_due: bool,
}

impl Composer<'_> {
    /// Puts what this part has now into a datagram.
    #[inline]
    fn put(&mut self, part: Part, draft: &mut Draft<'_, '_>) {
        let now = self.now;
        match part {
            Part::PathResponse => self.signals.put_path_response(draft),
            Part::ResetToken => self.signals.put_reset_token(draft),
            Part::ChannelLimits => self.inbound.put_limits(draft),
            Part::Controls => self.inbound.put_controls(draft),
            Part::Cancels => self.outbound.put_cancels(draft),
            Part::Announcements => self.outbound.put_announcements(now, draft),
            Part::Pages => self.outbound.put_pages(self.path, self.inbound.heard(), draft),
            Part::Ping => {
                if self.signals.put_ping(draft) {
                    self.outbound.put_copies(draft);
                }
            }
            Part::Progress => {
                if self.inbound.is_progress_due(draft.ledger().in_flight()) {
                    self.inbound.put_progress(draft);
                }
            }
            Part::SlicesHere => self.inbound.put_slices_here(now, draft),
            Part::Data => self.put_data(draft),
            Part::Ack => self.inbound.put_ack(now, self.is_sample_due, draft),
            Part::Grease => self.put_grease(draft),
        }
    }

    /// The application's data. The ack that is due goes before a slice, which ends the datagram.
    fn put_data(&mut self, draft: &mut Draft<'_, '_>) {
        let (now, is_sample_due) = (self.now, self.is_sample_due);
        let inbound = &mut *self.inbound;
        let before_slice = |draft: &mut Draft<'_, '_>| {
            inbound.put_due_ack(now, is_sample_due, draft);
        };
        self.outbound.put_data(now, self.path, draft, before_slice);
    }

    fn put_grease(&mut self, draft: &mut Draft<'_, '_>) {
        if self.has_grease {
            self.signals.put_grease(self.entropy, draft);
        }
    }

    /// What a datagram may have that follows one with a slice alone, in the same call: all else was asked
    /// there, and nothing came in since. What rides along with others does so here, too.
    fn put_next(&mut self, draft: &mut Draft<'_, '_>) {
        self.outbound.put_announcements(self.now, draft);
        self.outbound.put_pages(self.path, self.inbound.heard(), draft);
        self.inbound.put_slices_here(self.now, draft);
        self.put_data(draft);
        if draft.written().slice.is_none() {
            // Both leave its end to a slice.
            self.inbound.put_ack(self.now, self.is_sample_due, draft);
            self.put_grease(draft);
        }
    }
}

impl Connection {
    /// When there is something to send, as far as the amplification limit allows.
    pub(super) fn transmit_at(&self) -> Option<Instant> {
        let room = self.frame_room();
        if room < MIN_ROOM {
            return None;
        }
        let due = ORDER.into_iter().filter_map(|part| self.due_at(part, room)).min();
        let due = earliest(due, self.mtu_probe_at());
        earliest(due, self.recovery.poll_timeout(&self.path))
    }

    /// When this part is a reason to send a datagram. What does not fit into the rest of the amplification
    /// limit waits for more of it.
    fn due_at(&self, part: Part, room: usize) -> Option<Instant> {
        let Self { signals, inbound, outbound, .. } = self;
        let now_if = |is_pending: bool| is_pending.then_some(Instant::ZERO);
        match part {
            Part::PathResponse => now_if(signals.is_response_due()),
            Part::ResetToken => now_if(signals.is_token_due()),
            Part::ChannelLimits => now_if(inbound.is_limit_due()),
            Part::Controls => now_if(inbound.is_control_due(room)),
            Part::Cancels => now_if(outbound.blocks().announced.has_cancel()),
            Part::Announcements => now_if(outbound.blocks().has_announcement()),
            Part::Pages => now_if(outbound.blocks().has_page() && self.may_send_slices()),
            Part::Ping => now_if(signals.is_ping_due()),
            Part::Progress => now_if(inbound.is_progress_due(self.recovery.in_flight())),
            Part::SlicesHere => inbound.report_at(),
            Part::Data => outbound.data_at(&self.path, room, || self.may_send_slices()),
            Part::Ack => inbound.ack_at(),
            Part::Grease => None,
        }
    }

    /// Puts the frames that are due behind the header of a datagram.
    pub(super) fn compose(
        &mut self,
        now: Instant,
        out: &mut DatagramBuffer<'_>,
        room: Room,
    ) -> Written {
        let is_sample_due = self.is_sample_due(now);
        let mut draft = Draft::new(out, &mut self.recovery, room);
        let mut composer = Composer {
            now,
            signals: &mut self.signals,
            inbound: &mut self.inbound,
            outbound: &mut self.outbound,
            path: &mut self.path,
            entropy: &mut self.entropy,
            has_grease: self.config.grease,
            is_sample_due,
        };
        match room.is_next {
            true => composer.put_next(&mut draft),
            false => ORDER.into_iter().for_each(|part| composer.put(part, &mut draft)),
        }
        let written = *draft.written();
        self.counters.steps += written.steps;
        written
    }

    /// Bytes that the next datagram has for frames.
    pub(super) fn frame_room(&self) -> usize {
        self.agreement.frame_room(&self.path)
    }

    /// Whether an ack alone should ask for an ack itself. An end that only receives would otherwise never
    /// measure the round trip.
    fn is_sample_due(&self, now: Instant) -> bool {
        let is_unmeasured = || self.path.timing.rtt().latest_rtt().is_none();
        self.recovery.in_flight() == 0 && (is_unmeasured() || self.liveness.is_sample_due(now))
    }

    /// Whether slices may be sent: there is room for one within the amplification limit, and the peer is
    /// not silent (H-4.5b). Otherwise the full rate would be sent until the block fails, to a client that is
    /// gone, or to the victim whose address an attacker joined with. Pings continue, and so do a few slices
    /// after each probe timeout; slices resume with the first answer. And a slice waits while the ledger has
    /// no room for it: with one more record the oldest datagram would count as lost.
    pub(super) fn may_send_slices(&self) -> bool {
        // Larger slices wait while only small datagrams go: pings find out whether the path still takes
        // them.
        let fit =
            self.path.max_datagram_bytes() as usize <= MAX_DATAGRAM_BYTES || !self.is_doubted();
        fit && self.may_send_more_slices()
    }

    /// Whether slices may be sent after a slice as large has just been sent: no ack has become overdue since.
    pub(super) fn may_send_more_slices(&self) -> bool {
        let (now, timing) = (self.life.now(), &self.path.timing);
        let is_heard = || !self.liveness.is_peer_silent(now, timing.probe_timeout());
        let ledger = self.recovery.ledger();
        self.frame_room() >= MIN_SLICE_ROOM
            && (self.outbound.transfer().sender().is_some_and(Sender::is_probing)
                || ledger.in_flight() == 0
                || ledger.has_slice_room() && is_heard())
    }

    /// Whether an ack is so long overdue that only datagrams go that every path carries. The slices after a
    /// probe timeout are as large as before, for they are few, and pings go beside them. While they waited,
    /// only pings searched for the end of a run of losses, for up to five seconds.
    pub(super) fn is_doubted(&self) -> bool {
        let transfer = self.outbound.transfer();
        let is_probing = || transfer.sender().is_some_and(Sender::is_probing);
        self.recovery.is_ack_overdue(self.life.now(), &self.path, transfer.lateness())
            && !is_probing()
    }
}

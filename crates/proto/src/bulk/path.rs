//! What a path was seen to do while blocks are sent on it, and how their slices are paced there.
//!
//! A [`Sender`](super::Sender) chooses slices and knows no path: it is handed the one that it sends on. So a
//! new path is a new value of this type, and nothing of the old one reaches it. The invariant: only datagrams
//! of this path, from number `from` on, change it.

use core::time::Duration;

use super::bottleneck::Bottleneck;
use super::delivered::{Delivered, Proven};
use super::known::{Known, Trust};
use super::loss::LossEstimate;
use super::pacing::{Blind, Pacing};
use super::recalled::Recalled;
use super::trains::Trains;
use super::tuning::silence::FIRST_RTT;
use super::tuning::{FULL_PACKET, blind};
use super::units::{Bytes, Rate, Span};
use crate::Instant;
use crate::transit::{Acked, Datagram, Fate, PathId};

/// The state of a path on which blocks are sent.
#[derive(Debug)]
pub(crate) struct PathState {
    id: PathId,
    /// Datagrams below this number say nothing of it.
    pub(super) from: u64,
    pub(super) rtt: Duration,
    /// The same, for those who ask with each datagram: to convert it takes divisions.
    pub(super) rtt_span: Span,
    /// Datagrams overtake others that were sent so much earlier.
    pub(super) disorder: Span,
    pub(super) bottleneck: Bottleneck,
    pub(super) loss: LossEstimate,
    pub(super) pacing: Pacing,
    pub(super) delivered: Delivered,
    /// The rate is from an earlier connection.
    pub(super) recalled: Option<Recalled>,
    pub(super) trains: Trains,
    /// The number of acknowledged slices.
    pub(super) acked: usize,
    /// Datagrams whose fate was settled while no rate was known.
    pub(super) without_rate: usize,
    /// Datagrams below this number were sent faster than a policer passes them.
    pub(super) too_fast_below: u64,
    pub(super) next_tail: Instant,
    /// The size of the last datagram, and of a full one.
    pub(super) last_bytes: Bytes,
    pub(super) packet: Bytes,
    /// When there was feedback last.
    pub(super) heard_at: Instant,
}

impl PathState {
    /// A path of which this is known, for datagrams from number `from` on. A transfer with a rate of its own
    /// has at least `min_rate_bps`.
    pub(crate) fn new(
        now: Instant,
        id: PathId,
        from: u64,
        min_rate_bps: u64,
        known: Known,
    ) -> Self {
        let (floor, is_own) = (Rate::from_bps(min_rate_bps), known.trust == Trust::Own);
        let queue = if is_own { f64::from(known.queue_bytes) } else { 0.0 };
        let recalled = || Recalled::new(known.proven, Blind::new(floor, None));
        Self {
            id,
            from,
            rtt: FIRST_RTT,
            rtt_span: FIRST_RTT.into(),
            disorder: Span::ZERO,
            bottleneck: Bottleneck::new(known.rate, from).recalling(Bytes(queue)),
            loss: known.loss,
            pacing: Pacing::new(floor, known.rate).at_least(known.is_least),
            delivered: Delivered::new(if is_own { known.proven } else { Proven::NOTHING }),
            recalled: (!is_own && known.rate.is_some()).then(recalled),
            trains: Trains::new(),
            acked: 0,
            without_rate: 0,
            too_fast_below: 0,
            next_tail: Instant::ZERO,
            last_bytes: FULL_PACKET,
            packet: FULL_PACKET,
            heard_at: now,
        }
    }

    /// The measured rate and loss.
    pub(crate) fn known(&self) -> Known {
        let rate = self.bottleneck.rate();
        let least = self.pacing.least_rate().filter(|_| rate.is_none());
        Known {
            rate: rate.or(least),
            is_least: least.is_some(),
            proven: self.delivered.proven(),
            queue_bytes: self.bottleneck.queue_seen().saturating_u32(),
            loss: self.loss,
            at: self.heard_at,
            trust: Trust::Own,
        }
    }

    /// Whether a datagram says anything of this path.
    pub(super) fn is_of(&self, datagram: &Datagram) -> bool {
        datagram.path == self.id && datagram.number >= self.from
    }

    /// How a datagram was lost: dropped at the bottleneck's queue, or lost behind it.
    pub(crate) fn lost_as(&self, datagram: &Datagram) -> Fate {
        if self.is_of(datagram) { self.bottleneck.fate_of(datagram) } else { Fate::Lost }
    }

    /// A datagram of it was acknowledged for the first time.
    pub(super) fn on_acked(&mut self, acked: &Acked) {
        let (number, bytes) = (acked.datagram.number, Bytes(acked.datagram.wire_bytes()));
        self.delivered.on_acked(bytes);
        self.bottleneck.on_acked(number, bytes);
        if matches!(acked.before, Fate::Lost | Fate::GivenUp) {
            self.loss.on_late();
            self.pacing.on_spurious();
        }
        if acked.datagram.slice.is_none() {
            return;
        }
        self.acked += 1;
        if let Some(recalled) = &mut self.recalled {
            recalled.on_acked(bytes);
        }
    }

    /// The fate of the next datagram of it is settled.
    pub(super) fn on_settled(&mut self, datagram: &Datagram) {
        let is_lost = datagram.fate != Fate::Acked;
        if is_lost {
            self.bottleneck.on_lost(datagram);
        }
        self.pacing.on_settled(datagram.number, is_lost, self.rtt_span);
        // Without a rate, drops at the bottleneck and losses behind it cannot be distinguished. Where no
        // train has given one, they are all that there is to plan with.
        let is_known = self.bottleneck.rate().is_some();
        self.without_rate += usize::from(!is_known);
        let is_counted = is_known || self.without_rate > blind::BELIEVED_SLICES;
        if is_counted && datagram.fate != Fate::Dropped {
            self.loss.on_packet(datagram.fate == Fate::Lost);
        }
    }

    /// The smoothed round trip is this.
    pub(super) fn set_rtt(&mut self, rtt: Duration) {
        (self.rtt, self.rtt_span) = (rtt, rtt.into());
    }

    /// Sets the initial rate, as measured on the reverse path.
    pub(crate) fn set_hint(&mut self, rate: Rate) {
        self.pacing.set_hint(rate);
        if let Some(recalled) = &mut self.recalled {
            recalled.set_hint(rate);
        }
    }

    /// A full datagram has this size. A larger one takes longer at the bottleneck, which is no queue.
    pub(super) fn set_packet(&mut self, packet: Bytes) {
        let longer =
            self.bottleneck.rate().map_or(Span::ZERO, |rate| (packet - self.packet) / rate);
        self.packet = packet;
        self.pacing.set_packet(packet, longer);
        self.bottleneck.set_packet(packet);
        self.trains.set_packet(packet);
    }

    /// The least queueing delay that the peer's last report shows, in seconds; `None` before one.
    pub(crate) fn queueing_seconds(&self) -> Option<f64> {
        Some(self.bottleneck.queueing_delay()? / Span::from_millis(1_000))
    }

    /// The rate of the bottleneck, in bits per second; `None` while it is not known.
    pub(crate) fn link_bps(&self) -> Option<u64> {
        self.bottleneck.rate().map(Rate::bps)
    }

    /// Whether the transfer has its own rate, its share of the link.
    #[cfg(test)]
    pub(crate) const fn has_share(&self) -> bool {
        self.pacing.has_own_rate()
    }
}

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
use super::tuning::silence::{FIRST_RTT, MAX_COUNTED_LOST};
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
    /// How much earlier datagrams were sent that others have overtaken.
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
    /// Losses of datagrams from this number on are in the estimate: those that were sent before there was a
    /// rate are not.
    pub(super) loss_from: u64,
    /// Those in it of datagrams that were given up.
    pub(super) given_up: usize,
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
            loss_from: u64::MAX,
            given_up: 0,
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
    #[inline]
    pub(super) fn is_of(&self, datagram: &Datagram) -> bool {
        datagram.path == self.id && datagram.number >= self.from
    }

    /// A datagram of it was acknowledged for the first time.
    pub(super) fn on_acked(&mut self, acked: &Acked) {
        let (number, bytes) = (acked.datagram.number, Bytes(acked.datagram.wire_bytes()));
        self.delivered.on_acked(bytes);
        self.bottleneck.on_acked(number, bytes);
        self.take_back(number, acked.before);
        if acked.datagram.slice.is_none() {
            return;
        }
        self.acked += 1;
        if let Some(recalled) = &mut self.recalled {
            recalled.on_acked(bytes);
        }
    }

    /// A datagram was acknowledged that counted as lost: what that has changed is undone, and no more than
    /// that.
    fn take_back(&mut self, number: u64, before: Fate) {
        match before {
            Fate::InFlight | Fate::Acked => {}
            Fate::Lost => {
                self.pacing.on_spurious(number);
                if number >= self.loss_from {
                    self.loss.on_late();
                }
            }
            Fate::GivenUp if self.given_up > 0 => {
                self.given_up -= 1;
                self.loss.on_late();
            }
            Fate::GivenUp => {}
        }
    }

    /// This many datagrams are given up, for nothing was heard for long.
    pub(super) fn on_given_up(&mut self, datagrams: usize) {
        let counted = datagrams.min(MAX_COUNTED_LOST);
        (0..counted).for_each(|_| self.loss.on_packet(true));
        self.given_up += counted;
    }

    /// The fate of the next datagram of it is settled.
    pub(super) fn on_settled(&mut self, datagram: &Datagram) {
        let is_lost = datagram.fate != Fate::Acked;
        if is_lost {
            self.bottleneck.on_lost(datagram.number);
        }
        self.pacing.on_settled(datagram.number, is_lost, self.rtt_span);
        // What is lost before there is a rate was sent too fast. Where no train gives one, it is all that
        // there is to plan with.
        let is_known = self.bottleneck.rate().is_some();
        self.without_rate += usize::from(!is_known);
        let is_counted = is_known || self.without_rate > blind::BELIEVED_SLICES;
        if is_counted && self.loss_from == u64::MAX {
            self.loss_from = datagram.number;
        }
        if datagram.number >= self.loss_from {
            self.loss.on_packet(is_lost);
        }
    }

    /// When the bottleneck will have passed all that is in flight, at the latest.
    pub(super) fn drains_at(&self, now: Instant) -> Span {
        let in_flight = f64::from(self.pacing.in_flight()) * self.packet;
        let queue = self.bottleneck.queueing_delay().unwrap_or(Span::ZERO);
        Span::from(now) + self.bottleneck.rate().map_or(Span::ZERO, |rate| queue + in_flight / rate)
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
        if packet == self.packet {
            return;
        }
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

#[cfg(test)]
mod tests {
    use super::super::pacing::Link;
    use super::*;
    use crate::transit::{AckFrame, Ledger, Outgoing, Timing};

    const ID: PathId = PathId::FIRST;

    /// A path, and a ledger of datagrams that were sent on it a millisecond apart.
    struct Line {
        path: PathState,
        ledger: Ledger,
        timing: Timing,
    }

    impl Line {
        fn new(known: Option<Rate>, datagrams: u64) -> Self {
            let known = Known { rate: known, ..Known::NOTHING };
            let path = PathState::new(Instant::ZERO, ID, 0, 0, known);
            let mut it = Self { path, ledger: Ledger::new(), timing: Timing::new(ID) };
            (0..datagrams).for_each(|number| it.send(number));
            it
        }

        fn send(&mut self, number: u64) {
            let (now, link) = (Instant::from_millis(number), self.link());
            self.ledger.on_sent(now, &mut self.timing, Outgoing::without_slice(number));
            self.path.pacing.on_sent(now, number, FULL_PACKET, &link);
        }

        fn link(&self) -> Link {
            let rtt = Span::from_millis(50);
            Link::new(&self.path.bottleneck, rtt, FULL_PACKET, false, Span::ZERO)
        }

        /// These are acknowledged, and what others overtook is lost.
        fn ack(&mut self, numbers: core::ops::RangeInclusive<u64>) {
            let Self { path, ledger, timing } = self;
            let first = u32::try_from(numbers.end() - numbers.start()).unwrap();
            let ack = AckFrame::new(*numbers.end(), Duration::ZERO, first);
            let mut walk = ledger.begin_ack(&ack).unwrap();
            while let Some(acked) = ledger.poll_acked(Instant::ZERO, timing, &mut walk) {
                if path.is_of(&acked.datagram) {
                    path.on_acked(&acked);
                }
            }
            while let Some(settled) = ledger.poll_fate(timing) {
                if path.is_of(&settled) {
                    path.on_settled(&settled);
                }
            }
        }

        fn lost(&self) -> f64 {
            let losses = self.path.loss.measured();
            losses.share * losses.packets
        }
    }

    /// Losses before a rate is known are not in the estimate, so the late ones of them take nothing out of
    /// it.
    #[test]
    fn no_more_is_taken_back_than_was_counted() {
        let mut line = Line::new(None, 400);
        line.ack(20..=299);
        assert!(line.lost() < 1e-9, "no rate is known, and few have a fate");
        line.ack(320..=399);
        assert!((line.lost() - 20.0).abs() < 1e-9, "{}", line.lost());
        line.ack(0..=19);
        assert!((line.lost() - 20.0).abs() < 1e-9, "{}", line.lost());
        line.ack(300..=309);
        assert!((line.lost() - 10.0).abs() < 1e-9, "{}", line.lost());
    }

    /// After a silence a chunk at most counts as lost, of all that is given up: when it arrives after all, no
    /// more is taken back.
    #[test]
    fn what_is_given_up_is_taken_back_as_far_as_it_counted() {
        let mut line = Line::new(Some(Rate::from_kbps(10_000)), 2_000);
        line.ack(10..=19);
        assert!((line.lost() - 10.0).abs() < 1e-9);
        let given_up = line.ledger.give_up(0);
        line.path.on_given_up(given_up);
        assert!(given_up > 2 * MAX_COUNTED_LOST && line.lost() > 10.0);
        line.ack(20..=1_999);
        assert!((line.lost() - 10.0).abs() < 1.0, "{}", line.lost());
    }

    /// Four of the first eight count as lost, and the guess is reduced; then they arrive.
    #[test]
    fn what_was_late_does_not_reduce_a_guess() {
        let mut line = Line::new(None, 16);
        let guess = |line: &Line| line.path.pacing.asks();
        let first = guess(&line);
        line.ack(4..=7);
        assert!(guess(&line) < first);
        line.ack(0..=3);
        assert_eq!(guess(&line), first);
    }

    /// What was on another path, or before this one was measured, changes nothing.
    #[test]
    fn only_datagrams_of_the_path_count() {
        let mut line = Line::new(Some(Rate::from_kbps(10_000)), 100);
        let old = line.path.known();
        line.path = PathState::new(Instant::ZERO, ID.next(), 0, 0, old);
        line.ack(50..=99);
        line.ack(0..=9);
        assert_eq!(line.path.known().loss, LossEstimate::new(), "sent on another path");
        line.path = PathState::new(Instant::ZERO, ID, 100, 0, old);
        line.ack(10..=49);
        assert_eq!(line.path.known().proven, Proven::NOTHING, "sent before it was measured");
    }
}

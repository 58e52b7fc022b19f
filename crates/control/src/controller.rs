//! The congestion controller of a path: what the path was seen to do, and how datagrams are paced there.
//!
//! A new path is a new value of this type, and nothing of the old one reaches it. The invariant: only
//! datagrams of this path, from number `from` on, change it.

use core::time::Duration;

use haulier_core::Instant;

use crate::belief::bottleneck::Bottleneck;
use crate::belief::delivered::{Delivered, Proven};
use crate::belief::known::{Known, Trust};
use crate::belief::loss::LossEstimate;
use crate::belief::path_loss::PathLoss;
use crate::belief::samples::Sample;
use crate::belief::way_back::WayBack;
use crate::history::{History, PathId};
use crate::law::recalled::Recalled;
use crate::law::trains::Trains;
use crate::law::{Blind, Link, Pacing};
use crate::tuning::near::{NEAR, is_fast};
use crate::tuning::rate_finder::TRAIN_ABOVE;
use crate::tuning::{ACK_DELAY, FIRST_RTT, FULL_PACKET, flow};
use crate::units::{Bytes, Rate, Span};
use crate::urgency::Urgency;

/// The state of a path on which blocks are sent.
///
/// The caller reports the fate of each datagram, in this order: with each ack [`on_acked`](Self::on_acked)
/// for each datagram that the ack names for the first time, then [`end_ack`](Self::end_ack),
/// [`on_arrivals`](Self::on_arrivals), and [`on_settled`](Self::on_settled) for each datagram in the order of
/// sending, as soon as its fate is known. A [`Pacer`](crate::Pacer) asks it when the next one may go.
#[derive(Debug)]
pub struct Controller {
    id: PathId,
    /// Datagrams below this number say nothing of it.
    from: u64,
    urgency: Urgency,
    rtt: Duration,
    /// The round trip as a [`Span`], for code that needs it with each datagram: a conversion takes divisions.
    pub(crate) rtt_span: Span,
    /// How much earlier datagrams were sent that others have overtaken.
    disorder: Span,
    pub(crate) bottleneck: Bottleneck,
    loss: PathLoss,
    pub(crate) pacing: Pacing,
    delivered: Delivered,
    way_back: WayBack,
    /// The rate is from an earlier connection.
    pub(crate) recalled: Option<Recalled>,
    pub(crate) trains: Trains,
    /// The number of acknowledged slices.
    acked: usize,
    pub(crate) next_tail: Instant,
    /// The size of the last datagram, and of a full one.
    pub(crate) last_bytes: Bytes,
    pub(crate) packet: Bytes,
    /// When there was feedback last.
    heard_at: Instant,
    /// The sum of what the path was found to have become longer by.
    longer: Span,
}

impl Controller {
    /// A path of which this is known, for datagrams from number `from` on. A transfer with a rate of its own
    /// has at least `min_rate_bps`.
    #[must_use]
    pub fn new(now: Instant, id: PathId, from: u64, min_rate_bps: u64, known: Known) -> Self {
        let (floor, is_own) = (Rate::from_bps(min_rate_bps), known.trust == Trust::Own);
        let queue = if is_own { f64::from(known.queue_bytes) } else { 0.0 };
        let recalled = || Recalled::new(known.proven, Blind::new(None));
        Self {
            id,
            from,
            urgency: Urgency::LoadScreen,
            rtt: FIRST_RTT,
            rtt_span: FIRST_RTT.into(),
            disorder: Span::ZERO,
            bottleneck: Bottleneck::new(known.rate, from).recalling(Bytes(queue)),
            loss: PathLoss::new(known.loss),
            pacing: Pacing::new(floor, known.rate).at_least(known.is_least),
            delivered: Delivered::new(if is_own { known.proven } else { Proven::NOTHING }),
            recalled: (!is_own && known.rate.is_some()).then(recalled),
            way_back: WayBack::new(),
            trains: Trains::new(),
            acked: 0,
            next_tail: Instant::ZERO,
            last_bytes: FULL_PACKET,
            packet: FULL_PACKET,
            heard_at: now,
            longer: Span::ZERO,
        }
    }

    /// The measured rate and loss, for a later transfer on this path.
    #[must_use]
    pub fn known(&self) -> Known {
        let rate = self.bottleneck.rate();
        let least = self.pacing.least_rate().filter(|_| rate.is_none());
        Known {
            rate: rate.or(least),
            is_least: least.is_some(),
            proven: self.delivered.proven(),
            queue_bytes: self.bottleneck.queue_seen().saturating_u32(),
            loss: *self.loss.estimate(),
            at: self.heard_at,
            trust: Trust::Own,
        }
    }

    /// Whether a datagram says anything of this path.
    #[inline]
    #[must_use]
    pub fn is_of(&self, path: PathId, number: u64) -> bool {
        path == self.id && number >= self.from
    }

    /// The number of its first datagram.
    #[must_use]
    pub const fn from(&self) -> u64 {
        self.from
    }

    /// The sender is called, perhaps by frames, to send with this urgency.
    pub(crate) fn on_call(&mut self, urgency: Urgency, is_by_frame: bool) {
        self.urgency = urgency;
        let is_near = self.rtt_span < NEAR;
        self.bottleneck.set_near(is_near);
        if is_near {
            self.trains.lengthen();
        }
        self.bottleneck.try_more(self.is_alone() && is_by_frame);
    }

    /// Selects the law by which the next datagram goes.
    pub fn follow(&mut self) {
        self.pacing.follow(self.urgency, false, self.bottleneck.rate());
    }

    fn is_alone(&self) -> bool {
        self.urgency == Urgency::LoadScreen
    }

    /// A datagram was sent, over a link as the pacer saw it.
    pub(crate) fn on_sent(
        &mut self,
        now: Instant,
        (number, bytes): (u64, Bytes),
        is_slice: bool,
        link: &Link,
    ) {
        self.delivered.on_sent(now, number);
        self.pacing.on_sent(now, number, bytes, link);
        self.last_bytes = bytes;
        if !is_slice {
            return;
        }
        self.pacing.on_slice_sent(now, bytes, link);
        if let Some(recalled) = &mut self.recalled {
            recalled.on_slice_sent(now, bytes);
        }
        self.trains.on_slice_sent();
    }

    /// A datagram of it was acknowledged for the first time; `is_slice` if it carried a part of a block.
    pub fn on_acked(&mut self, number: u64, bytes: Bytes, is_slice: bool) {
        self.delivered.on_acked(bytes);
        self.bottleneck.on_acked(number, bytes);
        if !is_slice {
            return;
        }
        self.acked += 1;
        if let Some(recalled) = &mut self.recalled {
            recalled.on_acked(bytes);
        }
    }

    /// A datagram of it was acknowledged that counted as lost, or was given up: what that has changed is
    /// undone, and no more than that.
    pub fn on_spurious(&mut self, number: u64, was_given_up: bool) {
        if was_given_up {
            return self.loss.on_back();
        }
        self.pacing.on_spurious(number);
        self.loss.on_spurious(number);
    }

    /// This many datagrams are given up, because nothing was heard for long.
    pub fn on_given_up(&mut self, datagrams: usize) {
        self.loss.on_given_up(datagrams);
    }

    /// The fate of the next datagram of it is settled.
    pub fn on_settled(&mut self, number: u64, is_lost: bool) {
        if is_lost {
            self.bottleneck.on_lost(number);
        }
        self.pacing.on_settled(number, is_lost);
        self.loss.on_settled(number, is_lost, self.bottleneck.rate().is_some());
    }

    /// A router has marked a datagram, no older than `number`: its queue is too long.
    pub fn on_mark(&mut self, number: u64) {
        self.pacing.on_congestion_mark(number);
        self.trains.stop();
    }

    /// All datagrams of an ack, up to `largest`, were passed to [`on_acked`](Self::on_acked). Datagrams of
    /// the path overtake others that were sent up to `reordering` earlier.
    pub fn end_ack(&mut self, now: Instant, largest: Option<u64>, reordering: Duration) {
        self.heard_at = now;
        if let Some(largest) = largest {
            self.delivered.end_ack(now, largest);
        }
        self.disorder = reordering.into();
        self.pacing.set_disorder(self.disorder);
        let rtt = self.rtt_span;
        self.recalled = self.recalled.filter(|recalled| !recalled.is_over(rtt));
        if !self.bottleneck.finder().has_train(self.trains.packets() / 2) {
            self.trains.try_again();
        }
    }

    /// The receiver reported when datagrams arrived: numbers, the newest first, and microseconds by its
    /// clock, which may wrap after 32 bits. Only the first [`MAX_ARRIVALS`](crate::MAX_ARRIVALS) count.
    /// Called after the ack of these datagrams. Returns whether the rate found is high enough that waiting
    /// slices may go now ([`Pacer::resume`](crate::Pacer::resume)).
    pub fn on_arrivals(
        &mut self,
        now: Instant,
        arrivals: impl Iterator<Item = (u64, u32)>,
        history: &impl History,
    ) -> bool {
        let is_disordered = self.disorder > 0.75 * self.rtt_span;
        let is_long = self.acked > if is_disordered { flow::LONG / 4 } else { flow::LONG };
        let Self { bottleneck, pacing, .. } = self;
        let known = bottleneck.rate();
        let count = bottleneck.on_arrivals(arrivals, history, self.loss.estimate(), now, is_long);
        if let Some((sent, queue)) = bottleneck.newest_queue().filter(|_| count > 0) {
            self.way_back.on_report(now.into(), sent, queue);
        }
        if bottleneck.is_disordered() {
            pacing.trust();
        }
        let found = bottleneck.look_upward(count, history.next_number());
        let is_faster = |rate: &Rate| known.is_none_or(|known| *rate > TRAIN_ABOVE * known);
        let faster = bottleneck.rate().filter(is_faster);
        // What waits for the queue to drain at a lower rate, or for a guess's tick, has waited.
        let has_waited = faster.is_some_and(|rate| {
            let has_short_ticks = bottleneck.is_near() && is_fast(rate, self.packet);
            let is_beside_game = self.urgency == Urgency::DuringPlay;
            has_short_ticks || is_beside_game || known.is_some() && pacing.is_start()
        });
        pacing.follow(self.urgency, is_long, bottleneck.rate());
        if let Some(rate) = bottleneck.rate().filter(|_| found.is_none() && bottleneck.is_clear()) {
            pacing.learn(rate);
        }
        for sample in bottleneck.newest(count) {
            pacing.on_arrival(now, sample);
        }
        if let Some(queue) = bottleneck.queueing_delay().filter(|_| bottleneck.is_near())
            && let Some(Sample { sent, .. }) = bottleneck.newest(1).next()
        {
            pacing.hold(*sent + queue);
        }
        if let Some(longer) = pacing.poll_rise() {
            bottleneck.on_longer(longer);
            self.way_back.on_longer(longer);
            self.longer += longer;
        }
        has_waited
    }

    /// `in_flight` datagrams are in flight, and `slices` of them carry a slice. The news of their fates takes
    /// longer than a round trip by `later`. To be called when one of these has changed, before the next
    /// datagram is asked for.
    pub fn set_in_flight(&mut self, in_flight: u32, slices: u32, later: Span) {
        self.pacing.set_in_flight((in_flight, slices), self.rtt_span, later);
    }

    /// The blocks to send have this many bytes, those that were acknowledged included; the largest number
    /// counts. The more there are, the smaller is the part of them that goes before the path has shown that
    /// it is free. Without a call all may go that a block of 256 KiB may. To be called before the first
    /// datagram is asked for, and when there are more.
    #[expect(clippy::cast_precision_loss, reason = "of petabytes, some bytes")]
    pub fn set_total(&mut self, bytes: u64) {
        self.pacing.set_total(Bytes(bytes as f64));
    }

    /// When the bottleneck will have passed all that is in flight, at the latest.
    #[must_use]
    pub fn drains_at(&self, now: Instant) -> Span {
        let in_flight = f64::from(self.pacing.in_flight()) * self.packet;
        let queue = self.bottleneck.queueing_delay().unwrap_or(Span::ZERO);
        Span::from(now) + self.bottleneck.rate().map_or(Span::ZERO, |rate| queue + in_flight / rate)
    }

    /// Whether the reports since the last call came later on average than the earliest ever, by more than an
    /// ack may wait and one datagram follow another: the way back has a queue.
    pub fn poll_queued_back(&mut self) -> bool {
        let apart = self.bottleneck.rate().map_or(Span::ZERO, |rate| self.packet / rate);
        self.way_back.poll_queue() > ACK_DELAY + apart
    }

    /// The smoothed round trip is this.
    pub fn set_rtt(&mut self, rtt: Duration) {
        (self.rtt, self.rtt_span) = (rtt, rtt.into());
    }

    /// The smoothed round trip; 333 ms before it was set (RFC 9002, 6.2.2).
    #[must_use]
    pub const fn rtt(&self) -> Duration {
        self.rtt
    }

    /// The smoothed round trip as a [`Span`]; 333 ms before it was set.
    #[inline]
    #[must_use]
    pub const fn rtt_span(&self) -> Span {
        self.rtt_span
    }

    /// Sets the initial rate, as measured on the reverse path.
    pub fn set_hint(&mut self, rate: Rate) {
        self.pacing.set_hint(rate);
        if let Some(recalled) = &mut self.recalled {
            recalled.set_hint(rate);
        }
    }

    /// A full datagram has this size. A larger one takes longer at the bottleneck, which is no queue.
    pub fn set_packet(&mut self, packet: Bytes) {
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

    /// The size of a full datagram.
    #[must_use]
    pub const fn packet(&self) -> Bytes {
        self.packet
    }

    /// The loss estimate of the path.
    #[inline]
    #[must_use]
    pub const fn loss(&self) -> &LossEstimate {
        self.loss.estimate()
    }

    /// The rate of the bottleneck; `None` while it is not known.
    #[inline]
    #[must_use]
    pub const fn link_rate(&self) -> Option<Rate> {
        self.bottleneck.rate()
    }

    /// The rate at which slices go by the law; `None` while it only guesses.
    #[inline]
    #[must_use]
    pub fn pace(&self) -> Option<Rate> {
        self.pacing.rate()
    }

    /// The rate at which slices go by the law, also one that is only guessed.
    #[must_use]
    pub fn asks(&self) -> Rate {
        self.pacing.asks()
    }

    /// The least queueing delay that the peer's last report shows; `None` before one.
    #[must_use]
    pub fn queueing_delay(&self) -> Option<Span> {
        self.bottleneck.queueing_delay()
    }

    /// The time by which the path was found to have become longer, as the sum of all such findings: delays
    /// that no smaller window made shorter.
    #[must_use]
    pub const fn longer(&self) -> Duration {
        self.longer.duration()
    }

    /// Whether a window paces the transfer: it has a rate of its own, its share of the link.
    #[must_use]
    pub const fn has_share(&self) -> bool {
        self.pacing.has_own_rate()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::tests::Log;
    use crate::pacer::Pacer;
    use crate::tuning::MAX_COUNTED_LOST;

    const ID: PathId = PathId::FIRST;

    /// A path, on which datagrams were sent a millisecond apart, and those that were acknowledged or lost.
    struct Line {
        path: Controller,
        sent: u64,
        acked: [bool; 2_000],
        settled: u64,
        given_up: bool,
    }

    impl Line {
        fn new(known: Option<Rate>, datagrams: u64) -> Self {
            let known = Known { rate: known, ..Known::NOTHING };
            let mut path = Controller::new(Instant::ZERO, ID, 0, 0, known);
            let mut pacer = Pacer::new(u64::MAX, 0);
            for number in 0..datagrams {
                let now = Instant::from_millis(number);
                pacer.on_sent(&mut path, now, number, FULL_PACKET, false);
            }
            Self { path, sent: datagrams, acked: [false; 2_000], settled: 0, given_up: false }
        }

        /// These are acknowledged, and what others overtook is lost.
        fn ack(&mut self, numbers: core::ops::RangeInclusive<u64>) {
            let end = *numbers.end();
            for number in numbers.clone() {
                if !self.path.is_of(ID, number) {
                    continue;
                }
                self.path.on_acked(number, FULL_PACKET, false);
                if number < self.settled {
                    self.path.on_spurious(number, self.given_up);
                }
            }
            numbers.for_each(|number| self.acked[usize::try_from(number).unwrap()] = true);
            for number in self.settled..=end {
                let is_lost = !self.acked[usize::try_from(number).unwrap()];
                if self.path.is_of(ID, number) {
                    self.path.on_settled(number, is_lost);
                }
            }
            self.settled = self.settled.max(end + 1);
        }

        fn lost(&self) -> f64 {
            let losses = self.path.loss().measured();
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
        let given_up = usize::try_from(line.sent - line.settled).unwrap();
        line.path.on_given_up(given_up);
        (line.settled, line.given_up) = (line.sent, true);
        assert!(given_up > 2 * MAX_COUNTED_LOST && line.lost() > 10.0);
        line.ack(20..=1_999);
        assert!((line.lost() - 10.0).abs() < 1.0, "{}", line.lost());
    }

    /// Four of the first eight count as lost, and have overrun the link; not if they arrive first.
    #[test]
    fn what_was_late_does_not_end_a_guess() {
        let heard = || {
            let mut line = Line::new(None, 16);
            let (bytes, at, sent) = (FULL_PACKET, Span::from_millis(30), Span::ZERO);
            let (passed, received) = (Bytes::ZERO, Bytes::ZERO);
            let sample =
                Sample { number: 4, bytes, at, sent, delay: at, passed, received, ..Sample::ZERO };
            line.path.pacing.on_arrival(Instant::from_millis(60), &sample);
            line
        };
        let (mut lost, mut late) = (heard(), heard());
        lost.ack(4..=7);
        assert!(lost.path.has_share());
        late.ack(4..=6);
        late.ack(0..=3);
        late.ack(7..=7);
        assert!(!late.path.has_share());
    }

    /// Acks were thinned where they got lost by chance, and not where they filled a thin way back.
    #[test]
    fn the_way_back_has_a_queue_if_news_is_late_and_its_datagram_was_not() {
        let mut line = Line::new(Some(Rate::from_kbps(10_000)), 60);
        let log = Log::of(60, 60, Instant::from_millis);
        // Datagram `n` was sent at `n` ms. It arrives, and is heard of, these times after that.
        let mut is_queued = |numbers: core::ops::Range<u64>, arrives_ms: u64, heard_ms: u64| {
            for number in numbers {
                let at = u32::try_from(1_000 * (number + arrives_ms)).unwrap();
                let now = Instant::from_millis(number + heard_ms);
                line.path.on_arrivals(now, [(number, at)].into_iter(), &log);
            }
            line.path.poll_queued_back()
        };
        assert!(!is_queued(0..20, 25, 50));
        assert!(is_queued(20..40, 25, 80));
        assert!(!is_queued(40..60, 55, 80), "they waited on the way there");
    }

    /// What was on another path, or before this one was measured, changes nothing.
    #[test]
    fn only_datagrams_of_the_path_count() {
        let mut line = Line::new(Some(Rate::from_kbps(10_000)), 100);
        let old = line.path.known();
        line.path = Controller::new(Instant::ZERO, ID.next(), 0, 0, old);
        line.ack(50..=99);
        line.ack(0..=9);
        assert_eq!(line.path.known().loss, LossEstimate::new(), "sent on another path");
        line.path = Controller::new(Instant::ZERO, ID, 100, 0, old);
        line.ack(10..=49);
        assert_eq!(line.path.known().proven, Proven::NOTHING, "sent before it was measured");
    }
}

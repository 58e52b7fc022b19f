//! The beginning of a transfer, at the rate of the link, and what it shows of others there.
//!
//! A rate that a train shows is that of the whole link, and not of its free part: a flow of a crowd that goes
//! on at this rate floods the link. So rounds of [`MIN_ROUND`] are judged, and where others are seen a window
//! begins. The datagrams in flight have a bound ([`allowance`](super::allowance)).
//! docs/SENDER.md, "The start", says why.

use libm::sqrt;

use super::link::Link;
use super::pace::Pace;
use super::seen::Seen;
use super::stretch::{Found, Stretch};
use crate::belief::samples::Sample;
use crate::tuning::delay::{MIN_ROOT, MIN_TARGET, REFERENCE, TARGET};
use crate::tuning::flow::{BACKLOG, DISORDERED_ARRIVALS, DISORDERED_ROUND, MIN_ROUND};
use crate::tuning::start::{
    ALONE, CROWDED, LOSSY, LOSSY_ALONE, MIN_ARRIVALS, MIN_FATES, PART, SURE,
};
use crate::units::{Bytes, Rate, Span};
use haulier_core::Instant;

/// The queueing delay at which flows of this rate neither grow nor yield: the larger of two accepts less.
pub(super) fn target(rate: Rate) -> Span {
    MIN_TARGET + TARGET / sqrt(rate / REFERENCE).max(MIN_ROOT)
}

/// Arrivals and fates of the round that is under way.
#[derive(Clone, Copy, Debug, Default)]
struct Round {
    first: Option<Sample>,
    last: Option<Sample>,
    /// The number of full datagrams, and their smallest queueing delay.
    arrivals: usize,
    min_delay: Span,
    fates: Seen,
}

impl Round {
    /// The time from its first to its last arrival; `None` before the second.
    fn lasts(&self) -> Option<Span> {
        Some(self.last?.at - self.first?.at)
    }

    fn on_arrival(&mut self, sample: &Sample, delay: Span) {
        self.min_delay = if self.arrivals == 0 { delay } else { self.min_delay.min(delay) };
        self.arrivals += 1;
        match self.first {
            None => self.first = Some(*sample),
            Some(_) => self.last = Some(*sample),
        }
    }

    /// The rate at which these bytes went by.
    fn rate(&self, bytes: impl Fn(&Sample) -> Bytes) -> Option<Rate> {
        let (first, last) = (self.first?, self.last?);
        Some((bytes(&last) - bytes(&first)) / (last.at - first.at).max(Span(1.0)))
    }
}

/// The measurements of the start.
#[derive(Clone, Debug)]
pub(super) struct Start {
    pub(super) pace: Pace,
    /// The rate that the link is known to have, when this began.
    known: Rate,
    round: Round,
    stretch: Stretch,
    /// Datagrams below this number are not judged.
    judged_from: u64,
    /// Datagrams overtake others that were sent up to this time earlier.
    disorder: Span,
    /// The rate with which a window begins that takes its place beside others.
    share: Option<Rate>,
    /// What became of the datagrams that were sent since this began.
    since: u64,
    seen: Seen,
    /// No round has shown that less passes than the link's rate.
    is_alone: bool,
    /// The first and the last arrival of a round in which most was lost.
    flood: Option<(Sample, Sample)>,
    /// Rounds in succession that have shown a queue of others for sure.
    squeezed: u32,
    /// By how much the caller was late in this round at most: what it sends at once is a queue of its own.
    late: Span,
}

impl Start {
    /// Begins at this rate with datagram `next`. Datagrams from `judged_from` on are judged, also those that
    /// were sent at the `guess`.
    pub(super) fn new(rate: Rate, guess: Rate, judged_from: u64, next: u64) -> Self {
        Self {
            pace: Pace::new(rate),
            known: rate,
            round: Round::default(),
            stretch: Stretch::new(guess),
            judged_from,
            disorder: Span::ZERO,
            share: None,
            since: next,
            seen: Seen::new(),
            is_alone: true,
            flood: None,
            squeezed: 0,
            late: Span::ZERO,
        }
    }

    /// The link has this rate, which is the pace.
    pub(super) const fn set_rate(&mut self, rate: Rate) {
        self.pace.set(rate);
    }

    pub(super) const fn set_disorder(&mut self, disorder: Span) {
        self.disorder = disorder;
    }

    /// By how much longer than others some datagrams are on their way.
    pub(super) const fn disorder(&self) -> Span {
        self.disorder
    }

    /// A datagram was sent.
    pub(super) fn on_sent(&mut self, now: Instant, bytes: Bytes, link: &Link) {
        let rate = self.pace.rate();
        self.pace.on_sent(now, bytes, link.catch_up_at(rate) + link.lateness_at(rate));
        self.late = self.late.max(link.late);
    }

    /// The bottleneck will have passed all that was sent at this time. What goes on waits until its queue is
    /// short, or holds no more than there is room for. It is known when a start begins, and with each report
    /// on a near path, where a start lasts as long as a transfer: a rate that is a little too high would fill
    /// the queue for good.
    pub(super) fn hold(&mut self, idle_at: Span, room: Bytes) {
        self.pace.hold(idle_at - BACKLOG.min(room / self.pace.rate()));
    }

    /// The fate of a datagram is settled.
    pub(super) fn on_settled(&mut self, number: u64, is_lost: bool) {
        if number >= self.judged_from {
            self.round.fates.on_settled(is_lost);
        }
        if number >= self.since {
            self.seen.on_settled(is_lost);
        }
    }

    /// A datagram that counted as lost has arrived.
    pub(super) const fn on_spurious(&mut self, number: u64) {
        if number >= self.judged_from {
            self.round.fates.on_spurious();
        }
        if number >= self.since {
            self.seen.on_spurious();
        }
    }

    /// A full datagram arrived with this queueing delay. Returns what it shows of others.
    pub(super) fn on_arrival(&mut self, sample: &Sample, delay: Span) -> Option<Found> {
        if sample.number < self.judged_from {
            return None;
        }
        self.round.on_arrival(sample, delay);
        if self.is_round() {
            let round = core::mem::take(&mut self.round);
            self.judge(&round);
            self.late = Span::ZERO;
        }
        self.stretch.on_arrival(sample, self.known)
    }

    /// Whether a round is complete. Where datagrams are held up for longer than a round lasts, it takes more
    /// time and arrivals: the minimum of few delays is chance, and no queue.
    fn is_round(&self) -> bool {
        let Some(lasts) = self.round.lasts() else { return false };
        let disordered = DISORDERED_ROUND * self.disorder;
        let least = if disordered <= MIN_ROUND { MIN_ARRIVALS } else { DISORDERED_ARRIVALS };
        lasts >= disordered.max(MIN_ROUND) && self.round.arrivals >= least
    }

    fn judge(&mut self, round: &Round) {
        let (known, pace) = (self.known, self.pace.rate());
        let (fates, kept) = (round.fates.total(), 1.0 - round.fates.share());
        let passed = round.rate(|sample| sample.passed).unwrap_or(pace).min(known);
        let arrived = round.rate(|sample| sample.received).unwrap_or(pace);
        let arrived = arrived.max(kept * passed).min(known);
        let is_queued = round.min_delay > target(known) + self.late;
        let is_flooded = fates >= MIN_FATES && kept < CROWDED * CROWDED;
        // A link that loses much on its own is not squeezed for that, and one round may be jitter.
        let is_squeezed = is_queued && passed < CROWDED * known;
        self.squeezed = if is_squeezed { self.squeezed + 1 } else { 0 };
        self.is_alone &= !(is_queued && passed < ALONE * known);
        if is_flooded && arrived < CROWDED * known {
            self.flood = round.first.zip(round.last);
        }
        if self.is_crowded() || is_flooded {
            // Where losses alone show others they may be the path's own.
            let is_sure = is_queued && arrived < CROWDED * known;
            self.share = Some(if is_sure { PART * arrived } else { arrived });
        }
    }

    /// Whether datagrams arrive in order, so that a rate that they show is that of the link.
    pub(super) fn is_in_order(&self) -> bool {
        DISORDERED_ROUND * self.disorder <= MIN_ROUND
    }

    /// The first and the last arrival of a round in which most was lost: the link is overrun.
    pub(super) const fn flood(&self) -> Option<(Sample, Sample)> {
        self.flood
    }

    /// Whether others are on the link for sure: their queue is seen.
    pub(super) const fn is_crowded(&self) -> bool {
        self.squeezed >= SURE
    }

    /// What a window begins with that takes its place beside others, or has losses to explain, on a link of
    /// this rate; `None` if nothing of that was seen.
    pub(super) fn share(&self, rate: Rate) -> Option<Rate> {
        let kept = 1.0 - self.seen.share();
        let usual = if self.is_alone { LOSSY_ALONE } else { LOSSY };
        self.share.or_else(|| (kept < 1.0 - usual).then(|| PART * kept * rate))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::belief::bottleneck::Bottleneck;
    use crate::belief::samples::Sample;
    use crate::tuning::blind::FIRST_RATE;

    const PACKET: Bytes = Bytes(1_250.0);
    const RTT: Span = Span::from_millis(50);

    /// Of 100 Mbit/s one datagram of this many arrives, in order, each so late for a queue of others.
    fn arrive_late(start: &mut Start, number: u64, one_in: u64, delay: Span) {
        let is_lost = !number.is_multiple_of(one_in);
        start.on_settled(number, is_lost);
        if is_lost {
            return;
        }
        let sent = f64::from(u32::try_from(number).unwrap()) * Span(100.0);
        let passed = Rate::from_kbps(100_000) * sent;
        let received = passed * (1.0 / f64::from(u32::try_from(one_in).unwrap()));
        let sample = Sample::of((number, PACKET), [sent, sent + RTT], [passed, received]);
        start.on_arrival(&sample, delay);
    }

    /// A round of 20 ms that looks squeezed may be jitter: when one was enough, 16 MiB over jitter in order
    /// began with half of what had arrived.
    #[test]
    fn one_squeezed_round_is_no_crowd() {
        let known = Rate::from_kbps(100_000);
        let mut start = Start::new(known, known, 0, 0);
        let mut squeezed = |number: u32| {
            let sent = f64::from(number) * Span(1_000.0);
            let passed = 0.5 * known * sent;
            let (at, delay) = (sent + RTT, Span::from_millis(30));
            let (bytes, received, number) = (PACKET, passed, number.into());
            let sample =
                Sample { number, bytes, at, sent, delay, passed, received, ..Sample::ZERO };
            start.on_arrival(&sample, delay);
            start.share(known)
        };
        assert!((0..25).all(|number| squeezed(number).is_none()));
        assert!((25..60).map(squeezed).last().is_some_and(|share| share.is_some()));
    }

    /// A caller that is late sends at once what is a queue of its own; one that is longer is that of others.
    /// Rounds of such a caller were not judged, and nine servers that were called once a frame dropped 14 %.
    #[test]
    fn a_queue_beyond_that_of_a_late_caller_is_a_crowds() {
        let known = Rate::from_kbps(100_000);
        // The caller is late for the first datagrams, up to this number.
        let is_crowded = |late, until, delay| {
            let mut start = Start::new(known, known, 0, 0);
            let link = Link::new(&Bottleneck::new(None, 0), RTT, PACKET, false, Span::ZERO);
            for number in 0..100_u32 {
                if number < until {
                    let link = Link { late: Span::from_millis(late), ..link };
                    start.on_sent(Instant::from_millis(number.into()), PACKET, &link);
                }
                let sent = f64::from(number) * Span(1_000.0);
                let passed = 0.5 * known * sent;
                let times = [sent, sent + RTT];
                let sample = Sample::of((number.into(), PACKET), times, [passed, passed]);
                start.on_arrival(&sample, Span::from_millis(delay));
            }
            start.is_crowded()
        };
        assert!(is_crowded(0, 100, 30) && !is_crowded(33, 100, 30) && is_crowded(16, 100, 30));
        assert!(is_crowded(33, 10, 30), "it is late no more");
    }

    /// Datagrams of a train wait side by side, however late they arrive.
    #[test]
    fn only_what_is_behind_a_train_shows_others() {
        let mut start = Start::new(Rate::from_kbps(100_000), FIRST_RATE, 20, 40);
        let found = (0..40_u32).find(|&number| {
            let at = f64::from(number) * Span::from_millis(10);
            let sample = Sample::of((number.into(), PACKET), [Span::ZERO, at], [PACKET; 2]);
            start.on_arrival(&sample, Span::ZERO) == Some(Found::Others)
        });
        assert_eq!(found, Some(23), "the fourth behind the train");
    }

    /// Of 20 Mbit/s behind a short queue most of a guess was lost, but that rate arrives: it is alone.
    #[test]
    fn a_flood_of_which_the_rate_of_the_link_arrives_is_its_own() {
        let floods = [20_000, 100_000].map(|kbps| {
            let mut start = Start::new(Rate::from_kbps(kbps), FIRST_RATE, 20, 800);
            (20..400).for_each(|number| arrive_late(&mut start, number, 5, Span::ZERO));
            start.flood().is_some()
        });
        assert_eq!(floods, [false, true]);
    }

    /// Where the queue of others was seen a window begins with a share, and where only losses were with all
    /// that arrived. Ten that joined half a second apart began with the whole link each, and dropped a tenth.
    #[test]
    fn a_window_begins_with_less_where_a_queue_shows_others() {
        let known = Rate::from_kbps(100_000);
        let shares = [Span::ZERO, Span::from_millis(30)].map(|delay| {
            let mut start = Start::new(known, FIRST_RATE, 20, 800);
            (20..400).for_each(|number| arrive_late(&mut start, number, 10, delay));
            start.share(known).unwrap() / known
        });
        assert!((shares[0] - 0.1).abs() < 0.02 && (shares[1] - 0.05).abs() < 0.01, "{shares:?}");
    }
}

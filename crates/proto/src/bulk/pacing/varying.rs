//! The rate of a long transfer on a link that changes its own rate several times a second.
//!
//! What such a link has is known a round trip later, so that a rate which is set and then judged is always of
//! the past. What is bounded instead is what is in flight: as much as the link delivered in the last round
//! trip, and a short queue. That follows a fall within a round trip, stops where nothing arrives, and grows
//! by half in a round trip whose queue was empty. The invariant: no more is in flight than the link lately
//! took in a round trip, and such a queue; where that queue drops, or others fill it, another law applies.

use libm::sqrt;

use super::super::samples::Sample;
use super::super::tuning::FULL_PACKET;
use super::super::tuning::delay::MIN_EMPTY;
use super::super::tuning::varying::{
    EMPTY, ENDED, FILLED, FILLED_FOR, MAX_QUEUE, MAX_WAY, MEAN, MIN_ARRIVALS, MIN_KEPT, MIN_PACE,
    MIN_PACKETS, PACE, PROBE, QUEUE, REFERENCE, SMOOTHED, SPAN, STEPS,
};
use super::super::units::{Bytes, Rate, Span};
use super::delay::Delay;
use super::drains::Drains;
use super::flow::Flow;
use super::usual::Usual;
use super::varied::Varied;

/// What had been received, and when.
#[derive(Clone, Copy, Debug)]
struct Mark {
    at: Span,
    received: Bytes,
}

impl From<&Sample> for Mark {
    fn from(sample: &Sample) -> Self {
        Self { at: sample.at, received: sample.received }
    }
}

/// A flow that follows a link which varies.
#[derive(Clone, Debug)]
pub(super) struct Varying {
    pub(super) flow: Flow,
    pub(super) usual: Usual,
    pub(super) drains: Drains,
    pub(super) varied: Varied,
    /// The last round trips, the newest first.
    marks: [Mark; STEPS],
    /// The round trip less the queueing delay: lately, and at least.
    way: Span,
    min_way: Span,
    /// The number after the newest datagram that is no longer in flight.
    settled: u64,
    /// When the queue was last short, and the arrivals since.
    short_at: Span,
    long: u32,
    /// The mean rate of some seconds, and how much may be in flight.
    mean: Rate,
    window: Bytes,
}

impl Varying {
    /// Continues after the law for which the link varies too much.
    pub(super) fn new(law: &Delay, sample: &Sample, rtt: Span) -> Self {
        let Delay { flow, usual, drains, varied, .. } = law.clone();
        let rate = flow.rate();
        let mut law = Self {
            flow,
            usual,
            drains,
            varied,
            marks: [sample.into(); STEPS],
            way: rtt,
            min_way: rtt,
            settled: sample.number + 1,
            short_at: sample.at,
            long: 0,
            mean: rate,
            window: rate * rtt,
        };
        law.flow.restart(rate);
        law
    }

    /// Whether as much is in flight as may be, in datagrams of this size, before `next` is sent.
    pub(super) fn is_full(&self, next: u64, packet: Bytes) -> bool {
        let window = self.window.in_units_of(packet).max(MIN_PACKETS);
        usize::try_from(next.saturating_sub(self.settled)).is_ok_and(|sent| sent >= window)
    }

    /// This one is no longer in flight.
    pub(super) fn on_settled(&mut self, number: u64) {
        self.settled = self.settled.max(number + 1);
    }

    /// It was heard at `now` that a full datagram arrived with this queueing delay. `fell`: its delay is so
    /// much less than the least before. Returns the rate to continue with if this law no longer applies.
    pub(super) fn on_arrival(
        &mut self,
        now: Span,
        sample: &Sample,
        delay: Span,
        fell: Span,
    ) -> Option<Rate> {
        if delay <= MIN_EMPTY {
            self.drains.on_empty(sample.sent, fell);
        }
        self.on_settled(sample.number);
        let way = now - sample.sent - delay;
        self.min_way = self.min_way.min(way);
        self.way = (self.way + SMOOTHED * (way - self.way)).min(MAX_WAY * self.min_way);
        let delivered = self.delivered(sample);
        self.mean = Rate(self.mean.0 + MEAN * (delivered.0 - self.mean.0));
        let mut queue = (QUEUE / sqrt(self.mean / REFERENCE)).min(MAX_QUEUE);
        self.long += 1;
        if delay < FILLED * queue {
            (self.short_at, self.long) = (sample.at, 0);
        }
        if delay < EMPTY {
            queue = queue.max(PROBE * self.way);
        }
        self.window = delivered * (self.way + queue);
        self.flow.adjust((PACE * delivered).max(self.window * MIN_PACE / self.way));
        self.varied.on_arrival(sample, delay);
        let is_filled = self.long > FILLED_FOR.0 && sample.at - self.short_at > FILLED_FOR.1;
        if is_filled || self.flow.round.is_marked {
            self.varied = Varied::new();
        }
        (self.varied.amount() < ENDED).then_some(delivered)
    }

    /// What was received lately, as a rate before the link's own losses.
    fn delivered(&mut self, sample: &Sample) -> Rate {
        let span = self.way.clamp(SPAN.0, SPAN.1);
        if sample.at - self.marks[0].at >= span / 8.0 {
            self.marks.rotate_right(1);
            self.marks[0] = sample.into();
        }
        let received = |since: &Mark| sample.received - since.received;
        let is_long = |since: &&Mark| {
            sample.at - since.at >= span && received(since) >= MIN_ARRIVALS * FULL_PACKET
        };
        let since = self.marks.iter().find(is_long).unwrap_or(&self.marks[STEPS - 1]);
        let lasts = sample.at - since.at;
        if lasts < SPAN.0 / 2.0 {
            return self.flow.rate() / PACE;
        }
        received(since) / lasts * (1.0 / (1.0 - self.usual.share()).max(MIN_KEPT))
    }
}

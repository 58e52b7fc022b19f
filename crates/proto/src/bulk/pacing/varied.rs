//! Whether the link itself changes its rate, as cellular ones do several times a second.
//!
//! While a queue stands, what arrives is what the link passes of this flow, and changes with what others send
//! only by as much as they do. So what was delivered is compared from window to window, less what the flow
//! itself has changed: a fall counts if a queue stands after it, and a rise if one stood before. On a link of
//! one rate both are rare, however many share it; one that varies shows them again and again. The invariant:
//! neither a single change, nor what happens while a flow finds its rate or a queue drops, says anything.

use libm::{exp, log};

use super::super::samples::Sample;
use super::super::tuning::varied::{
    FORGOTTEN_AFTER, MAX_CHANGE, MAX_LOST, MIN_AGE, MIN_ARRIVALS, MIN_CHANGE, QUEUED, STEADY,
    WINDOW,
};
use super::super::units::{Bytes, Rate, Span};

/// What was delivered in a window, and at which rate that was sent.
#[derive(Clone, Copy, Debug)]
struct Window {
    delivered: Rate,
    sent: Rate,
    /// The queue was never empty in it.
    is_standing: bool,
}

/// How much what is delivered changes, beyond what the flow has changed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Varied {
    /// The first arrival of all, and of the present window.
    since: Span,
    first: Option<Sample>,
    arrivals: u32,
    /// The smallest queueing delay in it, and the newest one.
    min_delay: Span,
    newest: Span,
    last: Option<Window>,
    /// Sums of the logarithms of changes, of which older ones count less.
    rises: f64,
    falls: f64,
}

impl Varied {
    pub(super) const fn new() -> Self {
        Self {
            since: Span::INFINITY,
            first: None,
            arrivals: 0,
            min_delay: Span::INFINITY,
            newest: Span::ZERO,
            last: None,
            rises: 0.0,
            falls: 0.0,
        }
    }

    /// How much the rate of the link varies.
    pub(super) const fn amount(&self) -> f64 {
        self.rises.min(self.falls)
    }

    /// Whether hardly any change of the rate was seen.
    pub(super) fn is_steady(&self) -> bool {
        self.rises.max(self.falls) < STEADY
    }

    /// A full datagram arrived with this queueing delay.
    pub(super) fn on_arrival(&mut self, sample: &Sample, delay: Span) {
        let before = core::mem::replace(&mut self.newest, delay);
        let Some(first) = self.first else {
            self.since = self.since.min(sample.at);
            (self.first, self.arrivals, self.min_delay) = (Some(*sample), 0, Span::INFINITY);
            return;
        };
        self.arrivals += 1;
        self.min_delay = self.min_delay.min(delay);
        let lasts = sample.at - first.at;
        if lasts < WINDOW || self.arrivals < MIN_ARRIVALS {
            return;
        }
        self.first = None;
        if is_dropped(first, sample) {
            // A full queue is the doing of those who send.
            *self = Self::new();
            return;
        }
        let received = (sample.received - first.received).max(Bytes(1.0));
        let sent = (sample.passed - first.passed) / (sample.sent - first.sent).max(Span(1.0));
        let is_standing = self.min_delay > QUEUED;
        let window = Window { delivered: received / lasts, sent, is_standing };
        if let Some(last) = self.last.replace(window)
            && sample.at - self.since > MIN_AGE
        {
            self.compare(last, window, lasts, delay.min(before) > QUEUED);
        }
    }

    /// `is_queued`: a queue stands at the end of the second window.
    fn compare(&mut self, last: Window, window: Window, lasts: Span, is_queued: bool) {
        let kept = exp(0.0 - lasts / FORGOTTEN_AFTER);
        (self.rises, self.falls) = (kept * self.rises, kept * self.falls);
        let own = log(window.sent / last.sent);
        let change = log(window.delivered / last.delivered);
        let beyond = |by: f64| if by > MIN_CHANGE { by.min(MAX_CHANGE) } else { 0.0 };
        if last.is_standing {
            self.rises += beyond(change - own.max(0.0));
        }
        if is_queued {
            self.falls += beyond(own.min(0.0) - change);
        }
    }
}

/// Whether so much was lost from one arrival to another that a queue is full.
fn is_dropped(first: Sample, last: &Sample) -> bool {
    let passed = last.passed - first.passed;
    let lost = passed - (last.received - first.received);
    lost > MAX_LOST.0 * last.bytes + MAX_LOST.1 * passed
}

#[cfg(test)]
mod tests {
    use super::super::super::tuning::varied::VARIES;
    use super::*;

    const PACKET: Bytes = Bytes(1_000.0);

    /// What a flow sees that sends at these rates, each for 0.2 s, over a link with those, and a queue that
    /// holds all.
    fn seen(sent: &[f64], link: &[f64]) -> f64 {
        let mut varied = Varied::new();
        let (mut done, mut at, mut bytes) = (Span::ZERO, Span::ZERO, Bytes::ZERO);
        let step = Span::from_millis(200);
        let nth = |of: &[f64], at: Span| {
            let steps = of.iter().enumerate();
            let now = steps.take_while(|&(n, _)| n as f64 * (step / Span(1.0)) <= at.0).last();
            Rate(now.map_or(1.0, |(_, &rate)| rate))
        };
        while at < sent.len() as f64 * step {
            done = done.max(at);
            done += PACKET / nth(link, done);
            bytes += PACKET;
            let sample = Sample {
                number: 0,
                bytes: PACKET,
                at: done,
                sent: at,
                delay: done - at,
                passed: bytes,
                received: bytes,
            };
            varied.on_arrival(&sample, done - at);
            at += PACKET / nth(sent, at);
        }
        varied.amount()
    }

    #[test]
    fn a_link_that_rises_and_falls_varies() {
        let link: [f64; 30] = core::array::from_fn(|n| [1.0, 0.3, 0.8, 0.4, 1.2][n % 5]);
        assert!(seen(&[0.8; 30], &link) > VARIES);
    }

    #[test]
    fn a_link_of_one_rate_does_not_whatever_is_sent() {
        let sent: [f64; 30] = core::array::from_fn(|n| [1.0, 0.3, 0.8, 0.4, 2.2][n % 5]);
        assert!(seen(&sent, &[0.9; 30]) < 0.2, "{}", seen(&sent, &[0.9; 30]));
    }

    #[test]
    fn a_rate_that_changes_once_each_way_is_no_variation() {
        let link: [f64; 30] =
            core::array::from_fn(|n| if (10..20).contains(&n) { 0.5 } else { 1.0 });
        assert!(seen(&[0.9; 30], &link) < VARIES, "{}", seen(&[0.9; 30], &link));
    }
}

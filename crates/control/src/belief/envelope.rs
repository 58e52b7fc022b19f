//! The lower envelope of arrivals: when datagrams would have arrived if nothing had held them up.
//!
//! Jitter, bunches and reordering make datagrams later, never earlier. So the earliest of all arrivals show
//! how fast the bottleneck drains: plotted over the bytes sent, no arrival is below the line of its rate.
//! Ordinary averages need the spread of the jitter to be much less than the time of a train; the envelope
//! needs only that some datagrams were not held up. The height of the others above it is the doubt.
//!
//! The invariant: both ends of an [`Envelope`] are samples. The last is newer than the first, and late enough
//! that it is not of the same bunch.

use super::samples::Sample;
use crate::tuning::samples::TOGETHER;
use crate::units::{Bytes, Span};

/// The longest stretch of samples that is looked at.
pub(super) const MAX_SAMPLES: usize = 128;

/// Two samples on the lower envelope of a stretch, as far from each other as possible.
#[derive(Clone, Copy, Debug)]
pub(super) struct Envelope {
    pub(super) first: Sample,
    pub(super) last: Sample,
    /// The mean time by which a sample is above the line through both.
    pub(super) noise: Span,
    /// The time over which the stretch arrived.
    pub(super) span: Span,
}

impl Envelope {
    /// Where arrivals are in order and follow each other as the bottleneck sends them, all are on it.
    pub(super) fn between(first: Sample, last: Sample) -> Self {
        Self { first, last, noise: Span::ZERO, span: last.at - first.at }
    }

    /// That of these samples, which are in the order of sending and of arrival.
    pub(super) fn of(samples: &[Sample]) -> Option<Self> {
        let samples = samples.get(samples.len().saturating_sub(MAX_SAMPLES)..)?;
        let (oldest, newest) = (samples.first()?, samples.last()?);
        let slope = middle_slope(samples)?;
        let bytes = newest.passed - oldest.passed;
        // Time above the line of this slope through the oldest.
        let above = |sample: &Sample| sample.at.0 - slope * sample.passed.0;
        let lowest =
            |part: &[Sample]| part.iter().copied().min_by(|a, b| above(a).total_cmp(&above(b)));
        let third = |n: f64| oldest.passed + n / 3.0 * bytes;
        let early = samples.partition_point(|sample| sample.passed <= third(1.0));
        let late = samples.partition_point(|sample| sample.passed < third(2.0));
        let (first, last) = (lowest(samples.get(..early)?)?, lowest(samples.get(late..)?)?);
        if last.at - first.at < TOGETHER || last.passed <= first.passed {
            return None;
        }
        let slope = (last.at - first.at).0 / (last.passed - first.passed).0;
        let line = |sample: &Sample| first.at.0 + slope * (sample.passed - first.passed).0;
        #[expect(clippy::cast_precision_loss, reason = "at most 128")]
        let count = samples.len() as f64;
        let noise = samples.iter().map(|it| (it.at.0 - line(it)).max(0.0)).sum::<f64>() / count;
        Some(Self { first, last, noise: Span(noise), span: newest.at - oldest.at })
    }

    /// The part by which a rate between the two ends may be wrong.
    pub(super) fn doubt(&self) -> f64 {
        (2.0 * self.noise / self.span.max(Span(1.0))).min(1.0)
    }
}

/// The slope, in time over bytes, of the edge of the lower convex hull that is below the middle of the bytes.
fn middle_slope(samples: &[Sample]) -> Option<f64> {
    let mut hull = [0_usize; MAX_SAMPLES];
    let mut len = 0;
    let slope = |a: usize, b: usize| {
        let (a, b) = (samples.get(a)?, samples.get(b)?);
        let bytes = (b.passed - a.passed).0;
        (bytes > 0.0).then(|| (b.at - a.at).0 / bytes)
    };
    for next in 0..samples.len() {
        while let [.., before, last] = *hull.get(..len)?
            && slope(before, next) <= slope(before, last)
        {
            len -= 1;
        }
        *hull.get_mut(len)? = next;
        len += 1;
    }
    let middle: Bytes = 0.5 * (samples.first()?.passed + samples.last()?.passed);
    let edges = hull.get(..len)?.windows(2);
    let mut below = edges.filter_map(|edge| match *edge {
        [a, b] => Some((samples.get(b)?.passed, slope(a, b)?)),
        _ => None,
    });
    below.find(|&(end, _)| end >= middle).map(|(_, slope)| slope)
}

#[cfg(test)]
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "numbers of a test")]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    /// A packet each 250 us, held up by these times; those that later ones overtake are left out.
    fn samples(held_up: impl Fn(u64) -> f64) -> Vec<Sample> {
        let at = |number: u64| 250.0 * number as f64 + held_up(number);
        let is_in_order = |&number: &u64| (number + 1..200).all(|later| at(number) <= at(later));
        let sample = |number: u64| Sample {
            number,
            bytes: Bytes(1_250.0),
            at: Span(at(number)),
            sent: Span::ZERO,
            delay: Span(at(number)),
            passed: Bytes(1_250.0 * number as f64),
            received: Bytes(1_250.0 * number as f64),
            ..Sample::ZERO
        };
        (0..200).filter(is_in_order).map(sample).collect()
    }

    /// In Mbit/s.
    fn rate(samples: &[Sample]) -> (f64, f64) {
        let envelope = Envelope::of(samples).unwrap();
        let Envelope { first, last, .. } = envelope;
        (8.0 * ((last.passed - first.passed) / (last.at - first.at)).0, envelope.doubt())
    }

    /// 8 ms of jitter on a link of 40 Mbit/s: 32 packets overtake each other.
    #[test]
    fn jitter_is_seen_through() {
        let (found, doubt) = rate(&samples(|number| (number * 7_919 % 8_000) as f64));
        assert!((found / 40.0 - 1.0).abs() < doubt && doubt < 0.2, "{found} Mbit/s, {doubt}");
    }

    /// A bunch each 8 ms: 32 packets arrive at once.
    #[test]
    fn bunches_are_seen_through() {
        let (found, doubt) = rate(&samples(|number| 250.0 * (31 - number % 32) as f64));
        assert!((found / 40.0 - 1.0).abs() < 0.05 && doubt < 0.3, "{found} Mbit/s, {doubt}");
    }

    #[test]
    fn a_moment_shows_no_rate() {
        let together = samples(|number| 50_000.0 - 250.0 * number as f64);
        assert!(Envelope::of(&together).is_none() && Envelope::of(&[]).is_none());
    }

    /// A system hands over a bunch with some microseconds between its datagrams: that is no rate.
    #[test]
    fn a_bunch_has_no_envelope() {
        let mut bunch = samples(|_| 0.0);
        for (sample, nth) in bunch.iter_mut().zip(0_u32..) {
            sample.at = Span(f64::from(nth % 40));
        }
        assert!(Envelope::of(&bunch[..40]).is_none());
        assert!(Envelope::of(&samples(|_| 0.0)[..40]).is_some());
    }
}

//! The ack frame: what was received of the newest 131,072 packet numbers, as runs (STANDARD-1, 4.1).
//!
//! The invariant: no gap and no run is 0, and together they cover at most `MAX_SPAN` numbers. So a frame
//! can be walked without checks, and no claim is longer than that.

use alloc::vec::Vec;
use core::ops::RangeInclusive;
use core::time::Duration;

use super::number::expand_number;
use crate::DropReason;
use crate::fields::{Fields, put_varint, varint_len};

/// The maximum of numbers that an ack covers, including its largest: those of 10 Gbit/s in 150 ms.
const MAX_SPAN: u32 = 1 << 17;

/// Runs after the first: what they leave out is in other acks.
pub(super) const MAX_ACK_RUNS: usize = 31;

/// A delay of this many microseconds or more is too long for an RTT sample.
const MAX_DELAY_MICROS: u32 = 1 << 24;

/// How many datagrams arrived with each mark of ECN, since the start (RFC 9000, 13.4).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EcnCounts {
    /// With ECT(0).
    pub ect0: u64,
    /// With ECT(1).
    pub ect1: u64,
    /// With CE: a queue was too long.
    pub ce: u64,
}

/// Which of the other end's datagrams one end received. About 300 bytes, and no heap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AckFrame {
    largest: u32,
    delay_micros: u32,
    first: u32,
    span: u32,
    len: u8,
    /// Gap and run, newest first; zeros from `len` on, so that equal frames are equal.
    runs: [(u32, u32); MAX_ACK_RUNS],
    ecn: Option<EcnCounts>,
}

impl AckFrame {
    /// An ack of `largest` and the `first` numbers before it (at most 131,071, more are left out), delayed
    /// for `delay` (in whole microseconds; 16.8 s and more is too long for a sample).
    #[must_use]
    pub fn new(largest: u64, delay: Duration, first: u32) -> Self {
        let first = first.min(MAX_SPAN - 1);
        let micros = u32::try_from(delay.as_micros()).unwrap_or(u32::MAX);
        Self {
            #[expect(clippy::cast_possible_truncation, reason = "the wire has the low 32 bits")]
            largest: largest as u32,
            delay_micros: micros.min(MAX_DELAY_MICROS),
            first,
            span: 1 + first,
            len: 0,
            runs: [(0, 0); MAX_ACK_RUNS],
            ecn: None,
        }
    }

    /// Returns this frame with the counts of ECN.
    #[must_use]
    pub const fn with_ecn(mut self, counts: EcnCounts) -> Self {
        self.ecn = Some(counts);
        self
    }

    /// The counts of ECN, if its sender can read them.
    #[must_use]
    pub const fn ecn(&self) -> Option<EcnCounts> {
        self.ecn
    }

    /// Adds `gap` numbers that it does not name and `run` older ones that arrived. Returns whether there was
    /// room: not for a 32nd run, beyond 131,072 numbers, or for a gap or run of 0.
    #[must_use]
    pub fn push_run(&mut self, gap: u32, run: u32) -> bool {
        let span = self.span.saturating_add(gap).saturating_add(run);
        let Some(place) = self.runs.get_mut(usize::from(self.len)) else { return false };
        if gap == 0 || run == 0 || span > MAX_SPAN {
            return false;
        }
        *place = (gap, run);
        self.span = span;
        self.len += 1;
        true
    }

    /// How long the ack of its largest number was delayed; `None` if too long for a sample.
    #[must_use]
    pub const fn delay(&self) -> Option<Duration> {
        if self.delay_micros >= MAX_DELAY_MICROS {
            return None;
        }
        Some(Duration::from_micros(self.delay_micros as u64))
    }

    /// The ranges received, newest first, of a sender whose next number is `next`; `None` if they reach
    /// `next` or below 0, where no number was ever sent.
    #[must_use]
    pub fn ranges(&self, next: u64) -> Option<AckRanges<'_>> {
        let largest = expand_number(self.largest, next);
        let is_sent = largest < next && largest.checked_add(1)? >= u64::from(self.span);
        is_sent.then(|| AckRanges {
            first: Some(self.first),
            runs: self.runs().iter(),
            // One above the next range. The span was checked, so nothing falls below 0.
            above: largest + 1,
        })
    }

    /// The largest number, of a sender whose next number is `next`.
    #[must_use]
    pub const fn largest(&self, next: u64) -> u64 {
        expand_number(self.largest, next)
    }

    /// Bytes of the frame, with its type.
    #[must_use]
    pub fn encoded_len(&self) -> usize {
        let runs = self.runs().iter().flat_map(|&(gap, run)| [gap, run]);
        let numbers = [self.delay_micros, self.first].into_iter().chain(runs);
        6 + numbers.map(|number| varint_len(number.into())).sum::<usize>()
            + self.ecn_numbers().map(varint_len).sum::<usize>()
    }

    /// Appends the frame, with its type.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.push(if self.ecn.is_some() { 3 } else { 2 });
        out.extend_from_slice(&self.largest.to_le_bytes());
        put_varint(self.delay_micros.into(), out);
        put_varint(self.first.into(), out);
        out.push(self.len);
        for &(gap, run) in self.runs() {
            put_varint(gap.into(), out);
            put_varint(run.into(), out);
        }
        self.ecn_numbers().for_each(|count| put_varint(count, out));
    }

    /// Reads a frame, whose type was read.
    ///
    /// # Errors
    /// [`DropReason::Truncated`], or [`DropReason::OutOfRange`] for more than 31 runs, a gap or run
    /// of 0, or more than 131,072 numbers.
    pub(crate) fn read(fields: &mut Fields<'_>, has_ecn: bool) -> Result<Self, DropReason> {
        let largest = fields.u32()?;
        let delay = fields.varint()?;
        let first = number(fields)?;
        let runs = fields.u8()?;
        if usize::from(runs) > MAX_ACK_RUNS || first >= MAX_SPAN {
            return Err(DropReason::OutOfRange);
        }
        let delay = Duration::from_micros(delay);
        let mut frame = Self::new(u64::from(largest), delay, first);
        for _ in 0..runs {
            let (gap, run) = (number(fields)?, number(fields)?);
            if !frame.push_run(gap, run) {
                return Err(DropReason::OutOfRange);
            }
        }
        if has_ecn {
            let (ect0, ect1, ce) = (fields.varint()?, fields.varint()?, fields.varint()?);
            frame.ecn = Some(EcnCounts { ect0, ect1, ce });
        }
        Ok(frame)
    }

    fn ecn_numbers(&self) -> impl Iterator<Item = u64> {
        self.ecn.into_iter().flat_map(|counts| [counts.ect0, counts.ect1, counts.ce])
    }

    fn runs(&self) -> &[(u32, u32)] {
        self.runs.get(..usize::from(self.len)).unwrap_or_default()
    }
}

/// A number of packet numbers.
fn number(fields: &mut Fields<'_>) -> Result<u32, DropReason> {
    u32::try_from(fields.varint()?).map_err(|_| DropReason::OutOfRange)
}

/// The ranges of an [`AckFrame`], newest first: at most 32, and 131,072 numbers in all.
#[derive(Clone, Debug)]
pub struct AckRanges<'a> {
    first: Option<u32>,
    runs: core::slice::Iter<'a, (u32, u32)>,
    above: u64,
}

impl Iterator for AckRanges<'_> {
    type Item = RangeInclusive<u64>;

    fn next(&mut self) -> Option<Self::Item> {
        let (gap, run) = match self.first.take() {
            Some(first) => (0, u64::from(first) + 1),
            None => self.runs.next().map(|&(gap, run)| (u64::from(gap), u64::from(run)))?,
        };
        let end = self.above.checked_sub(gap + 1)?;
        let start = end.checked_sub(run - 1)?;
        self.above = start;
        Some(start..=end)
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use proptest::prelude::*;

    use super::*;

    /// By hand from the table of section 4.
    #[test]
    fn golden_bytes() {
        let mut frame = AckFrame::new(0x1_0203_0405, Duration::from_micros(130), 3);
        assert!(frame.push_run(1, 0x102));
        let counts = EcnCounts { ect0: 9, ect1: 0, ce: 64 };
        let plain = [2, 5, 4, 3, 2, 0x40, 130, 3, 1, 1, 0x41, 2];
        let marked = [&[3][..], &plain[1..], &[9, 0, 0x40, 64]].concat();
        for (frame, golden) in [(frame, &plain[..]), (frame.with_ecn(counts), &marked)] {
            let mut bytes = Vec::new();
            frame.write(&mut bytes);
            assert_eq!(bytes, golden);
            assert_eq!(bytes.len(), frame.encoded_len());
        }
        assert_eq!(frame.delay(), Some(Duration::from_micros(130)));
        let ranges: Vec<_> = frame.ranges(0x1_0203_0406).unwrap().collect();
        assert_eq!(ranges, [0x1_0203_0402..=0x1_0203_0405, 0x1_0203_02ff..=0x1_0203_0400]);
    }

    #[test]
    fn what_is_out_of_range_is_refused() {
        let read =
            |tail: &[u8]| AckFrame::read(&mut Fields(&[&[9, 0, 0, 0, 0], tail].concat()), false);
        let long = |number: u32| (number | 0x8000_0000).to_be_bytes();
        assert!(read(&[&long(MAX_SPAN - 1)[..], &[0]].concat()).is_ok());
        let too_long = read(&[&long(MAX_SPAN)[..], &[0]].concat());
        assert_eq!(too_long, Err(DropReason::OutOfRange), "131,072 before the largest");
        assert_eq!(read(&[0, 1, 0, 1]), Err(DropReason::OutOfRange), "gap 0");
        assert_eq!(read(&[0, 1, 1, 0]), Err(DropReason::OutOfRange), "run 0");
        assert!(read(&[&[0, 1, 1][..], &long(MAX_SPAN - 2)].concat()).is_ok());
        let too_many = read(&[&[0, 1, 1][..], &long(MAX_SPAN - 1)].concat());
        assert_eq!(too_many, Err(DropReason::OutOfRange), "131,073 in all");
        let huge = read(&[&[0, 1][..], &[0xff; 16]].concat());
        assert_eq!(huge, Err(DropReason::OutOfRange));
        let many = [&[0, 32][..], &[1, 1].repeat(32)].concat();
        assert_eq!(read(&many), Err(DropReason::OutOfRange));
        assert_eq!(read(&[0, 1, 1]), Err(DropReason::Truncated));
    }

    #[test]
    fn no_range_is_below_0_or_at_the_next_number() {
        let frame = AckFrame::new(3, Duration::ZERO, 3);
        assert_eq!(frame.ranges(4).unwrap().collect::<Vec<_>>(), [0..=3]);
        assert!(frame.ranges(3).is_none());
        assert!(AckFrame::new(3, Duration::ZERO, 4).ranges(4).is_none());
        assert!(AckFrame::new(0, Duration::ZERO, 0).ranges(0).is_none());
        assert!(AckFrame::new(u64::MAX, Duration::ZERO, 0).ranges(u64::MAX).is_none());
    }

    #[test]
    fn a_delay_that_the_wire_cannot_say_is_none() {
        assert_eq!(AckFrame::new(0, Duration::MAX, 0).delay(), None);
        let long = Duration::from_secs(16);
        assert_eq!(AckFrame::new(0, long, 0).delay(), Some(long));
    }

    proptest! {
        #[test]
        fn what_was_written_is_read(
            largest: u64, micros in 0..20_000_000u64, first in 0..140_000u32, ce: Option<u32>,
            runs in prop::collection::vec((1..6000u32, 1..60u32), 0..40),
        ) {
            let mut frame = AckFrame::new(largest, Duration::from_micros(micros), first);
            if let Some(ce) = ce {
                frame = frame.with_ecn(EcnCounts { ce: ce.into(), ..EcnCounts::default() });
            }
            let _fitted = runs.iter().all(|&(gap, run)| frame.push_run(gap, run));
            let mut bytes = vec![];
            frame.write(&mut bytes);
            prop_assert_eq!(bytes.len(), frame.encoded_len());
            bytes.push(8);
            let mut fields = Fields(&bytes[1..]);
            prop_assert_eq!(AckFrame::read(&mut fields, ce.is_some()), Ok(frame));
            prop_assert_eq!(fields.0, [8]);
        }

        /// The ranges of what is accepted are separate, in order, and few.
        #[test]
        fn any_bytes(
            mut bytes in prop::collection::vec(prop_oneof![Just(0u8), 0..4u8, any::<u8>()], 0..150),
            next: u64,
        ) {
            if let (Some(runs), true) = (bytes.get_mut(6), next % 2 == 0) {
                *runs %= 33;
            }
            let mut fields = Fields(&bytes);
            let Ok(frame) = AckFrame::read(&mut fields, false) else { return Ok(()) };
            let mut written = Vec::new();
            frame.write(&mut written);
            prop_assert_eq!(AckFrame::read(&mut Fields(&written[1..]), false), Ok(frame));
            let (mut above, mut numbers) = (next, 0);
            for range in frame.ranges(next).into_iter().flatten() {
                prop_assert!(range.start() <= range.end() && *range.end() < above);
                numbers += range.end() - range.start() + 1;
                above = range.start().saturating_sub(1);
            }
            prop_assert!(numbers <= u64::from(MAX_SPAN));
        }
    }
}

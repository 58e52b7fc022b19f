//! The ack frame: what was received of the newest 1024 packet numbers, as runs.
//!
//! The invariant: no gap and no run is 0, and together they cover at most `ACK_SPAN` numbers. So a frame
//! can be walked without checks, and no claim is longer than that.

use alloc::vec::Vec;
use core::ops::RangeInclusive;
use core::time::Duration;

use super::number::expand_number;
use crate::DropReason;
use crate::fields::Fields;

/// Numbers that an ack covers, including its largest: 1.2 MB of full datagrams. Older ones were in earlier
/// acks, or are lost for their sender by now.
pub(crate) const ACK_SPAN: u16 = 1024;

/// Runs after the first: with them an ack frame has 134 bytes, including its type.
pub(super) const MAX_ACK_RUNS: usize = 31;

/// Bytes before the runs.
const HEAD_BYTES: usize = 9;

/// The unit of the delay on the wire: 16 bits of it are 4.2 s.
const DELAY_UNIT_MICROS: u64 = 64;

/// Which of the other end's datagrams one end received. About 132 bytes, and no heap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AckFrame {
    largest: u32,
    delay: u16,
    first: u16,
    span: u16,
    len: u8,
    /// Gap and run, newest first; zeros from `len` on, so that equal frames are equal.
    runs: [(u16, u16); MAX_ACK_RUNS],
}

impl AckFrame {
    /// An ack of `largest` and the `first` numbers before it (at most 1023, more are left out), delayed for
    /// `delay` (rounded down to 64 us, at most 4.2 s).
    #[must_use]
    pub fn new(largest: u64, delay: Duration, first: u16) -> Self {
        let first = first.min(ACK_SPAN - 1);
        let units = delay.as_micros() / u128::from(DELAY_UNIT_MICROS);
        Self {
            #[expect(clippy::cast_possible_truncation, reason = "the wire has the low 32 bits")]
            largest: largest as u32,
            delay: u16::try_from(units).unwrap_or(u16::MAX),
            first,
            span: 1 + first,
            len: 0,
            runs: [(0, 0); MAX_ACK_RUNS],
        }
    }

    /// Adds `gap` numbers that did not arrive and `run` older ones that did. Returns whether there was room:
    /// not for a 32nd run, beyond `ACK_SPAN`, or for a gap or run of 0.
    #[must_use]
    pub fn push_run(&mut self, gap: u16, run: u16) -> bool {
        let span = u32::from(self.span) + u32::from(gap) + u32::from(run);
        let (Ok(span), Some(place)) =
            (u16::try_from(span), self.runs.get_mut(usize::from(self.len)))
        else {
            return false;
        };
        if gap == 0 || run == 0 || span > ACK_SPAN {
            return false;
        }
        *place = (gap, run);
        self.span = span;
        self.len += 1;
        true
    }

    /// How long the ack of its largest number was delayed; `None` if longer than the wire can say.
    #[must_use]
    pub const fn delay(&self) -> Option<Duration> {
        if self.delay == u16::MAX {
            return None;
        }
        Some(Duration::from_micros(self.delay as u64 * DELAY_UNIT_MICROS))
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

    /// Bytes of the frame without its type: 9 to 133.
    #[must_use]
    pub fn encoded_len(&self) -> usize {
        HEAD_BYTES + 4 * usize::from(self.len)
    }

    /// Appends the frame without its type.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.largest.to_le_bytes());
        out.extend_from_slice(&self.delay.to_le_bytes());
        out.push(self.len);
        out.extend_from_slice(&self.first.to_le_bytes());
        for (gap, run) in self.runs() {
            out.extend_from_slice(&gap.to_le_bytes());
            out.extend_from_slice(&run.to_le_bytes());
        }
    }

    /// Reads a frame, whose type was read, from the front of `bytes`.
    ///
    /// # Errors
    /// [`DropReason::Truncated`], or [`DropReason::OutOfRange`] for more than 31 runs, a gap or run
    /// of 0, or more than `ACK_SPAN` numbers. `bytes` is unchanged then.
    pub fn read(bytes: &mut &[u8]) -> Result<Self, DropReason> {
        let mut fields = Fields(bytes);
        let largest = fields.u32()?;
        let delay = fields.u16()?;
        let runs = fields.u8()?;
        let first = fields.u16()?;
        if usize::from(runs) > MAX_ACK_RUNS || first >= ACK_SPAN {
            return Err(DropReason::OutOfRange);
        }
        let mut frame = Self { delay, ..Self::new(u64::from(largest), Duration::ZERO, first) };
        for _ in 0..runs {
            let gap = fields.u16()?;
            let run = fields.u16()?;
            if !frame.push_run(gap, run) {
                return Err(DropReason::OutOfRange);
            }
        }
        *bytes = fields.0;
        Ok(frame)
    }

    fn runs(&self) -> &[(u16, u16)] {
        self.runs.get(..usize::from(self.len)).unwrap_or_default()
    }
}

/// The ranges of an [`AckFrame`], newest first: at most 32, and 1024 numbers in all.
#[derive(Clone, Debug)]
pub struct AckRanges<'a> {
    first: Option<u16>,
    runs: core::slice::Iter<'a, (u16, u16)>,
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
        let mut bytes = Vec::new();
        frame.write(&mut bytes);
        assert_eq!(bytes, [5, 4, 3, 2, 2, 0, 1, 3, 0, 1, 0, 2, 1]);
        assert_eq!(bytes.len(), frame.encoded_len());
        assert_eq!(frame.delay(), Some(Duration::from_micros(128)));
        let ranges: Vec<_> = frame.ranges(0x1_0203_0406).unwrap().collect();
        assert_eq!(ranges, [0x1_0203_0402..=0x1_0203_0405, 0x1_0203_02ff..=0x1_0203_0400]);
    }

    #[test]
    fn what_is_out_of_range_is_refused() {
        let read = |tail: &[u8]| AckFrame::read(&mut &[&[9, 0, 0, 0, 0, 0], tail].concat()[..]);
        assert!(read(&[0, 255, 3]).is_ok());
        assert_eq!(read(&[0, 0, 4]), Err(DropReason::OutOfRange), "1024 before the largest");
        assert_eq!(read(&[1, 0, 0, 0, 0, 1, 0]), Err(DropReason::OutOfRange), "gap 0");
        assert_eq!(read(&[1, 0, 0, 1, 0, 0, 0]), Err(DropReason::OutOfRange), "run 0");
        assert!(read(&[1, 0, 0, 1, 0, 254, 3]).is_ok());
        assert_eq!(read(&[1, 0, 0, 1, 0, 255, 3]), Err(DropReason::OutOfRange), "1025 in all");
        assert_eq!(read(&[1, 0, 0, 255, 255, 255, 255]), Err(DropReason::OutOfRange));
        let many = [&[32, 0, 0][..], &[1, 0, 1, 0].repeat(32)].concat();
        assert_eq!(read(&many), Err(DropReason::OutOfRange));
        assert_eq!(read(&[1, 0, 0, 1, 0, 1]), Err(DropReason::Truncated));
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
        assert_eq!(
            AckFrame::new(0, Duration::from_secs(4), 0).delay(),
            Some(Duration::from_secs(4))
        );
    }

    proptest! {
        #[test]
        fn what_was_written_is_read(
            largest: u64, micros in 0..9_000_000u64, first in 0..1024u16,
            runs in prop::collection::vec((1..60u16, 1..60u16), 0..40),
        ) {
            let mut frame = AckFrame::new(largest, Duration::from_micros(micros), first);
            let _fitted = runs.iter().all(|&(gap, run)| frame.push_run(gap, run));
            let mut bytes = vec![7];
            frame.write(&mut bytes);
            prop_assert_eq!(bytes.len() - 1, frame.encoded_len());
            bytes.push(8);
            let mut rest = &bytes[1..];
            prop_assert_eq!(AckFrame::read(&mut rest), Ok(frame));
            prop_assert_eq!(rest, [8]);
        }

        /// What is accepted is canonical, and its ranges are separate, in order, and few.
        #[test]
        fn any_bytes(
            mut bytes in prop::collection::vec(prop_oneof![Just(0u8), 0..4u8, any::<u8>()], 0..150),
            next: u64,
        ) {
            if let (Some(runs), true) = (bytes.get_mut(6), next % 2 == 0) {
                *runs %= 33;
            }
            let mut rest = &bytes[..];
            let Ok(frame) = AckFrame::read(&mut rest) else {
                prop_assert_eq!(rest.len(), bytes.len());
                return Ok(());
            };
            let mut written = Vec::new();
            frame.write(&mut written);
            written.extend_from_slice(rest);
            prop_assert_eq!(&written, &bytes);
            let (mut above, mut numbers) = (next, 0);
            for range in frame.ranges(next).into_iter().flatten() {
                prop_assert!(range.start() <= range.end() && *range.end() < above);
                numbers += range.end() - range.start() + 1;
                above = range.start().saturating_sub(1);
            }
            prop_assert!(numbers <= u64::from(ACK_SPAN));
        }
    }
}

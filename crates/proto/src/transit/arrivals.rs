//! When datagrams arrived, by their receiver's clock: what a sender measures the link with (STANDARD-1,
//! 4.1).
//!
//! The invariant of an [`ArrivalsFrame`]: its numbers decrease, and its times are not above the first. The
//! clock's origin has no meaning; only differences have.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::time::Duration;

use super::number::expand_number;
use crate::fields::{Fields, put_varint, varint_len};
use crate::{DropReason, Instant};

/// Arrivals reported beside the newest: with them the frame has some 100 bytes.
pub(super) const MAX_EARLIER_ARRIVALS: usize = 31;

/// How often an arrival is reported: acks get lost, but hardly four in a row, and on a slow link each would
/// otherwise be reported in 31 of them.
const MAX_REPORTS: u8 = 4;

/// Bytes before the list.
const HEAD_BYTES: usize = 9;

/// Arrival times of up to 32 datagrams, the newest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArrivalsFrame {
    number: u32,
    at_micros: u32,
    len: u8,
    /// Numbers below the one before it in the list, and microseconds before the newest.
    earlier: [(u32, u32); MAX_EARLIER_ARRIVALS],
}

impl ArrivalsFrame {
    /// Says that datagram `number` arrived at `at`.
    #[must_use]
    pub const fn new(number: u64, at: Instant) -> Self {
        Self {
            #[expect(clippy::cast_possible_truncation, reason = "the wire has the low 32 bits")]
            number: number as u32,
            #[expect(clippy::cast_possible_truncation, reason = "the wire has the low 32 bits")]
            at_micros: (at.as_nanos() / 1000) as u32,
            len: 0,
            earlier: [(0, 0); MAX_EARLIER_ARRIVALS],
        }
    }

    /// Adds the arrival of the datagram `back` numbers below the last one added, `before` the newest.
    /// Returns whether there was room: not for a 32nd, for 0 numbers, or beyond what the wire can say.
    #[must_use]
    pub fn push(&mut self, back: u64, before: Duration) -> bool {
        let (Ok(back), Ok(micros)) = (u32::try_from(back), u32::try_from(before.as_micros()))
        else {
            return false;
        };
        match self.earlier.get_mut(usize::from(self.len)) {
            Some(place) if back > 0 => {
                *place = (back, micros);
                self.len += 1;
                true
            }
            _ => false,
        }
    }

    /// The arrivals, newest first, for a sender whose next number is `next`: numbers, and microseconds by
    /// the receiver's clock, which wraps after 71 minutes; `None` if one was never sent.
    pub fn arrivals(&self, next: u64) -> Option<impl Iterator<Item = (u64, u32)> + '_> {
        let newest = expand_number(self.number, next);
        let reach: u64 = self.listed().iter().map(|&(back, _)| u64::from(back)).sum();
        if newest >= next || newest < reach {
            return None;
        }
        let mut number = newest;
        let earlier = self.listed().iter().map(move |&(back, micros)| {
            number -= u64::from(back);
            (number, self.at_micros.wrapping_sub(micros))
        });
        Some(core::iter::once((newest, self.at_micros)).chain(earlier))
    }

    /// Bytes of the frame without its type.
    #[must_use]
    pub fn encoded_len(&self) -> usize {
        let numbers = self.listed().iter().flat_map(|&(back, micros)| [back, micros]);
        HEAD_BYTES + numbers.map(|number| varint_len(number.into())).sum::<usize>()
    }

    /// Appends the frame without its type.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.number.to_le_bytes());
        out.extend_from_slice(&self.at_micros.to_le_bytes());
        out.push(self.len);
        for &(back, micros) in self.listed() {
            put_varint(back.into(), out);
            put_varint(micros.into(), out);
        }
    }

    /// Reads a frame, whose type was read.
    ///
    /// # Errors
    /// [`DropReason::Truncated`], or [`DropReason::OutOfRange`] for more than 31 earlier arrivals or one
    /// that is 0 numbers back.
    pub(crate) fn read(fields: &mut Fields<'_>) -> Result<Self, DropReason> {
        let number = fields.u32()?;
        let at_micros = fields.u32()?;
        let count = fields.u8()?;
        let mut frame = Self { number, at_micros, ..Self::new(0, Instant::ZERO) };
        for _ in 0..count {
            let back = fields.varint()?;
            let before = Duration::from_micros(fields.varint()?);
            if !frame.push(back, before) {
                return Err(DropReason::OutOfRange);
            }
        }
        Ok(frame)
    }

    fn listed(&self) -> &[(u32, u32)] {
        self.earlier.get(..usize::from(self.len)).unwrap_or_default()
    }
}

/// The newest arrivals on one connection, while they are worth reporting.
#[derive(Clone, Debug, Default)]
pub(crate) struct Arrivals {
    /// Number and time, in the order of the numbers, the largest last; and how often each was reported.
    newest: VecDeque<(u64, Instant, u8)>,
}

impl Arrivals {
    /// Nothing has arrived.
    #[must_use]
    pub(crate) const fn new() -> Self {
        Self { newest: VecDeque::new() }
    }

    /// A datagram arrived. One that others have overtaken says nothing of the rate and is left out.
    pub(crate) fn on_datagram(&mut self, now: Instant, number: u64) {
        if self.newest.back().is_some_and(|&(newest, at, _)| number <= newest || now < at) {
            return;
        }
        if self.newest.len() > MAX_EARLIER_ARRIVALS {
            self.newest.pop_front();
        }
        self.newest.push_back((number, now, 0));
    }

    /// The newest arrivals, as many as one frame can hold; `None` without an arrival. Each except the newest
    /// is reported at most four times.
    #[must_use]
    pub(crate) fn frame(&mut self) -> Option<ArrivalsFrame> {
        let mut earlier = self.newest.iter_mut().rev();
        let (number, newest_at, reports) = earlier.next()?;
        let (mut last, newest_at) = (*number, *newest_at);
        *reports = reports.saturating_add(1);
        let mut frame = ArrivalsFrame::new(last, newest_at);
        for (number, at, reports) in earlier {
            if *reports >= MAX_REPORTS || !frame.push(last - *number, newest_at.since(*at)) {
                break;
            }
            *reports += 1;
            last = *number;
        }
        Some(frame)
    }

    /// Forgets them and frees their memory: no block is being received.
    pub(crate) fn clear(&mut self) {
        self.newest = VecDeque::new();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn micros(micros: u64) -> Instant {
        Instant::from_nanos(micros * 1000)
    }

    /// By hand from the table of section 4.
    #[test]
    fn golden_bytes() {
        let mut frame = ArrivalsFrame::new(0x1_0000_0007, micros(0x0102_0304));
        assert!(frame.push(2, Duration::from_micros(17)));
        let mut bytes = Vec::new();
        frame.write(&mut bytes);
        assert_eq!(bytes, [7, 0, 0, 0, 4, 3, 2, 1, 1, 2, 17]);
        assert_eq!(bytes.len(), frame.encoded_len());
        assert_eq!(ArrivalsFrame::read(&mut Fields(&bytes)), Ok(frame));
        let reported: Vec<_> = frame.arrivals(0x1_0000_0008).unwrap().collect();
        assert_eq!(reported, [(0x1_0000_0007, 0x0102_0304), (0x1_0000_0005, 0x0102_0304 - 17)]);
    }

    #[test]
    fn what_is_out_of_range_is_refused() {
        let read = |tail: &[u8]| ArrivalsFrame::read(&mut Fields(&[&[0; 8], tail].concat()));
        assert!(read(&[0]).is_ok());
        assert_eq!(read(&[]), Err(DropReason::Truncated));
        assert_eq!(read(&[1, 1]), Err(DropReason::Truncated));
        assert_eq!(read(&[1, 0, 0]), Err(DropReason::OutOfRange), "0 numbers back");
        let many = [&[32][..], &[1, 0].repeat(32)].concat();
        assert_eq!(read(&many), Err(DropReason::OutOfRange));
        let frame = read(&[1, 0x40, 200, 0]).unwrap();
        assert!(frame.arrivals(1).is_none(), "below 0");
        assert!(ArrivalsFrame::new(5, micros(0)).arrivals(5).is_none(), "not sent yet");
    }

    #[test]
    fn the_newest_32_are_reported_and_late_ones_left_out() {
        let mut arrivals = Arrivals::new();
        assert!(arrivals.frame().is_none());
        (0..40).for_each(|n| arrivals.on_datagram(micros(n * 100), n * 2));
        arrivals.on_datagram(micros(5000), 3);
        let frame = arrivals.frame().unwrap();
        let reported: Vec<_> = frame.arrivals(1000).unwrap().collect();
        assert_eq!(reported.len(), 32);
        assert_eq!((reported[0], reported[31].0), ((78, 3900), 16));
    }

    #[test]
    fn each_is_reported_four_times() {
        let mut arrivals = Arrivals::new();
        let reported: Vec<_> = (0..10)
            .map(|n| {
                arrivals.on_datagram(micros(n * 30_000), n);
                arrivals.frame().unwrap().encoded_len()
            })
            .collect();
        assert_eq!(reported, [9, 14, 19, 24, 24, 24, 24, 24, 24, 24]);
        let reported: Vec<_> = (0..6).map(|_| arrivals.frame().unwrap().encoded_len()).collect();
        assert_eq!(reported, [19, 14, 9, 9, 9, 9], "the newest always");
    }
}

//! Recorded links: when each 1500 bytes may pass, in the usual form of such records (Mahimahi's).
//!
//! A record is text. Each line is a time in milliseconds from its start, at which an opportunity to deliver
//! 1500 bytes comes; the same time on several lines is several of them. It repeats without end, and takes as
//! long as its last line says. A packet leaves when the opportunities that came since it was queued have
//! carried all of its bytes; one opportunity can carry the end of a packet and the start of the next, and an
//! opportunity is lost if no packet waits.
//!
//! The invariant: times never fall, and the last is above zero. So a link with a record always goes on.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use haulier_proto::Instant;

/// Bytes that an opportunity carries, headers of IP included.
pub const OPPORTUNITY_BYTES: u64 = 1500;

/// A record of a longer time is a mistake: of a week.
const MAX_MILLIS: u64 = 7 * 24 * 3_600 * 1_000;

/// When a link could deliver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Milliseconds, never falling; the last is the length.
    at_ms: Arc<[u64]>,
}

/// What is wrong with a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecordError {
    /// It has no line.
    Empty,
    /// This line, counted from one, is not a whole number of milliseconds.
    NotATime(usize, String),
    /// This line is before the one above.
    Backwards(usize),
    /// This line is beyond a week.
    TooLong(usize),
    /// All lines are zero: it would repeat at once, with no end.
    NoLength,
}

impl fmt::Display for RecordError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str(
                "a record without a line: each is a time in milliseconds at which 1500 bytes pass",
            ),
            Self::NotATime(line, text) => {
                write!(f, "line {line} is no whole number of milliseconds: {text:?}")
            }
            Self::Backwards(line) => write!(f, "line {line} is earlier than the line above"),
            Self::TooLong(line) => write!(f, "line {line} is later than a week"),
            Self::NoLength => {
                f.write_str("all lines are 0, and a record repeats after the time of its last line")
            }
        }
    }
}

impl std::error::Error for RecordError {}

impl Record {
    /// Reads the text of one.
    ///
    /// # Errors
    /// If the text is not a record.
    pub fn parse(text: &str) -> Result<Self, RecordError> {
        let mut at_ms: Vec<u64> = Vec::new();
        for (line, text) in (1..).zip(text.lines()) {
            let text = text.trim();
            let at = text.parse::<u64>().map_err(|_| {
                RecordError::NotATime(line, text.chars().take(MAX_QUOTED_CHARS).collect())
            })?;
            if at_ms.last().is_some_and(|&last| at < last) {
                return Err(RecordError::Backwards(line));
            }
            if at > MAX_MILLIS {
                return Err(RecordError::TooLong(line));
            }
            at_ms.push(at);
        }
        match at_ms.last() {
            None => Err(RecordError::Empty),
            Some(0) => Err(RecordError::NoLength),
            Some(_) => Ok(Self { at_ms: at_ms.into() }),
        }
    }

    /// One of the records that come with this crate: `lte-like` and `evdo-like`, each way. They are made and
    /// not measured: see [`synthetic`](crate::synthetic).
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        let text = match name {
            "lte-like.down" => include_str!("../records/lte-like.down"),
            "lte-like.up" => include_str!("../records/lte-like.up"),
            "evdo-like.down" => include_str!("../records/evdo-like.down"),
            "evdo-like.up" => include_str!("../records/evdo-like.up"),
            _ => return None,
        };
        Some(Self::parse(text).expect("the tests have read it"))
    }

    /// How long it takes until it repeats.
    #[must_use]
    pub fn lasts(&self) -> Duration {
        Duration::from_millis(self.lasts_ms())
    }

    /// The mean rate in bits per second.
    #[must_use]
    pub fn mean_bps(&self) -> u64 {
        self.at_ms.len() as u64 * OPPORTUNITY_BYTES * 8 * 1_000 / self.lasts_ms()
    }

    /// This record as text.
    #[must_use]
    pub fn to_text(&self) -> String {
        self.at_ms.iter().map(|at| format!("{at}\n")).collect()
    }

    pub(crate) fn from_millis(at_ms: Vec<u64>) -> Self {
        debug_assert!(at_ms.is_sorted() && at_ms.last().is_some_and(|&last| last > 0));
        Self { at_ms: at_ms.into() }
    }

    fn lasts_ms(&self) -> u64 {
        self.at_ms.last().copied().unwrap_or(1)
    }

    /// The time of an opportunity, by its number from the start of the first repetition.
    fn at(&self, number: u64) -> Duration {
        let count = self.at_ms.len() as u64;
        let (repetition, place) = (number / count, (number % count) as usize);
        Duration::from_millis(repetition * self.lasts_ms() + self.at_ms[place])
    }

    /// The number of the first opportunity that is not before this time.
    fn first_from(&self, time: Duration) -> u64 {
        let nanos = time.as_nanos().div_ceil(1_000_000);
        let millis = u64::try_from(nanos).unwrap_or(u64::MAX);
        // An opportunity at the very end of one repetition comes before one at the start of the next.
        let repetition = millis.saturating_sub(1) / self.lasts_ms();
        let rest = millis - repetition * self.lasts_ms();
        let place = self.at_ms.partition_point(|&at| at < rest);
        repetition * self.at_ms.len() as u64 + place as u64
    }
}

/// The maximum number of characters that an error shows of a line that is not a time.
const MAX_QUOTED_CHARS: usize = 32;

/// A record as a link has it: it may begin anywhere in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recorded {
    /// The record.
    pub record: Record,
    /// The part of it that has passed at time zero.
    pub skipped: Duration,
}

impl From<Record> for Recorded {
    fn from(record: Record) -> Self {
        Self { record, skipped: Duration::ZERO }
    }
}

impl Recorded {
    /// Bytes that could pass from one time to another, the latter not included.
    #[must_use]
    pub fn bytes_between(&self, from: Instant, to: Instant) -> u64 {
        let first_from = |at: Instant| self.record.first_from(self.since_start(at));
        first_from(to).saturating_sub(first_from(from)) * OPPORTUNITY_BYTES
    }

    /// When `bytes` bytes have passed, if all of them wait at the time `from`.
    #[must_use]
    pub fn passed(&self, from: Instant, bytes: u64) -> Instant {
        let first = self.record.first_from(self.since_start(from));
        self.time(first + bytes.div_ceil(OPPORTUNITY_BYTES).saturating_sub(1))
    }

    /// When the next opportunity comes, from a time on.
    #[must_use]
    pub fn next_from(&self, at: Instant) -> Instant {
        self.time(self.record.first_from(self.since_start(at)))
    }

    fn since_start(&self, at: Instant) -> Duration {
        at.since(Instant::ZERO) + self.skipped
    }

    fn time(&self, number: u64) -> Instant {
        Instant::ZERO + self.record.at(number).saturating_sub(self.skipped)
    }
}

/// How far a link is in its record.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Position {
    /// The opportunity, and what it has carried.
    number: u64,
    used_bytes: u64,
}

impl Position {
    /// When the last of these bytes leaves, of a packet that may leave from `released` on and after all that
    /// were before it.
    pub(crate) fn leaves(&mut self, of: &Recorded, released: Instant, bytes: u64) -> Instant {
        if of.record.at(self.number) < of.since_start(released) {
            *self = Self { number: of.record.first_from(of.since_start(released)), used_bytes: 0 };
        }
        let all = self.used_bytes + bytes;
        // The last byte may fill an opportunity exactly.
        self.number += (all - 1) / OPPORTUNITY_BYTES;
        self.used_bytes = (all - 1) % OPPORTUNITY_BYTES + 1;
        of.time(self.number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Fate, Link, LinkConfig};

    fn ms(millis: u64) -> Instant {
        Instant::from_millis(millis)
    }

    fn record(text: &str) -> Record {
        Record::parse(text).unwrap()
    }

    #[test]
    fn what_is_no_record_is_refused_with_its_line() {
        let error = |text| Record::parse(text).unwrap_err().to_string();
        assert!(error("").contains("without a line"));
        assert!(error("0\n0\n").contains("all lines are 0"));
        assert_eq!(error("1\n\n2\n"), "line 2 is no whole number of milliseconds: \"\"");
        assert!(error("1\n2.5\n").contains("line 2 is no whole number of milliseconds: \"2.5\""));
        assert!(error("-1\n").contains("line 1"));
        assert_eq!(error("5\n7\n6\n"), "line 3 is earlier than the line above");
        assert_eq!(error("5\n700000000\n"), "line 2 is later than a week");
        assert!(error(&"x".repeat(1_000)).len() < 100);
    }

    #[test]
    fn other_line_ends_and_a_missing_last_one_are_the_same() {
        let reference = record("0\n4\n4\n10\n");
        assert_eq!(record("0\r\n4\r\n4\r\n10"), reference);
        assert_eq!(record(&reference.to_text()), reference);
        assert_eq!(
            (reference.lasts(), reference.mean_bps()),
            (Duration::from_millis(10), 4_800_000)
        );
    }

    /// As the emulator of the lab has it: six of 1000 bytes, 1500 every 10 ms.
    #[test]
    fn a_packet_leaves_when_its_last_byte_has_an_opportunity() {
        let config =
            LinkConfig { record: Some(record("10\n20\n30\n40\n").into()), ..LinkConfig::default() };
        let mut link = Link::new(config, 1);
        let mut arrivals = |at, packets| -> Vec<u64> {
            for _ in 0..packets {
                assert_eq!(link.offer(ms(at), &[0; 972]), Fate::Carried);
            }
            let mut datagram = Vec::new();
            let mut out = Vec::new();
            while let Some(at) = link.poll_timeout() {
                assert!(link.poll_delivery(at, &mut datagram));
                out.push(at.as_nanos() / 1_000_000);
            }
            out
        };
        assert_eq!(arrivals(0, 6), [10, 20, 20, 30, 40, 40]);
        // Opportunities without a waiting packet are lost, and the record repeats.
        assert_eq!(arrivals(75, 3), [80, 90, 90]);
        assert_eq!(arrivals(90, 1), [100], "that of 90 is used up");
        assert_eq!(arrivals(100, 1), [110], "that of 100 has 500 bytes left");
    }

    #[test]
    fn opportunities_are_counted_over_repetitions() {
        let mut recorded = Recorded::from(record("0\n3\n3\n10\n"));
        assert_eq!(recorded.bytes_between(ms(0), ms(1)), 1_500);
        assert_eq!(recorded.bytes_between(ms(0), ms(4)), 4_500);
        assert_eq!(recorded.bytes_between(ms(4), ms(10)), 0);
        // The one at 10, and the first of the second repetition, which is at 10 too.
        assert_eq!(recorded.bytes_between(ms(10), ms(11)), 3_000);
        assert_eq!(recorded.bytes_between(ms(0), ms(1_000)), 100 * 6_000 - 1_500);
        assert_eq!(recorded.next_from(ms(4)), ms(10));
        assert_eq!(recorded.passed(ms(1), 3_000), ms(3));
        assert_eq!(recorded.passed(ms(1), 6_001), ms(13));
        recorded.skipped = Duration::from_millis(3);
        assert_eq!(recorded.next_from(ms(1)), ms(7));
        assert_eq!(recorded.bytes_between(ms(0), ms(1)), 3_000);
    }

    /// A queue of four full packets holds four, whatever the record does; time in it is that of the record.
    #[test]
    fn a_record_has_a_queue_before_it() {
        let record = Some(record("100\n").into());
        let config = LinkConfig { record, ..LinkConfig::default() }.with_queue(6_000);
        let mut link = Link::new(config, 1);
        let fates: Vec<Fate> = (0..5).map(|_| link.offer(ms(0), &[0; 1_472])).collect();
        assert_eq!(fates.iter().filter(|fate| **fate == Fate::QueueFull).count(), 1);
        assert_eq!(link.queueing_delay(ms(50)), Duration::from_millis(350));
    }
}

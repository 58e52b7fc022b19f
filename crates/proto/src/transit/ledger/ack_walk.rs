//! Walks an ack over the records: each datagram that it names for the first time is handed back once.
//!
//! The invariant: the work of a walk is a search for each of its ranges, 32 at most, and some steps for each
//! datagram that was not acknowledged before.

use core::time::Duration;

use super::Ledger;
use crate::Instant;
use crate::transit::ack_frame::{AckFrame, AckRanges};
use crate::transit::datagram::{Contents, Datagram, Fate};
use crate::transit::runs;
use crate::transit::timing::Timing;

/// The peer acknowledged a number that was never used: it acknowledges what it did not receive, to be sent
/// more. The connection is closed with `protocol` [H-2.2c].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NeverSent;

/// An ack while it is walked.
#[derive(Debug)]
pub(crate) struct AckWalk<'a> {
    ranges: AckRanges<'a>,
    /// The last number of the current range; `None` between two of them.
    end: Option<u64>,
    /// The place of the next record to look at.
    place: usize,
    /// When the newest datagram that arrived before this range was sent.
    newest: Option<Instant>,
    /// The newest one that was acknowledged before this ack, and when it was sent.
    before: Option<(u64, Instant)>,
    largest: u64,
    delay: Option<Duration>,
    has_news: bool,
    sample: Option<Duration>,
    steps: u64,
}

impl AckWalk<'_> {
    /// The number of steps that it took: ranges looked up, and records walked over.
    pub(crate) const fn steps(&self) -> u64 {
        self.steps
    }
}

/// A datagram that was acknowledged for the first time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Acked {
    pub(crate) datagram: Datagram,
    /// Its fate until now. Unless it was in flight, the ack is late.
    pub(crate) before: Fate,
    /// What was in it counted as lost, and was handed back as such.
    pub(crate) was_lost: bool,
}

impl Ledger {
    /// Begins to walk an ack. Call [`poll_acked`](Self::poll_acked) until `None` next, and then
    /// [`end_ack`](Self::end_ack).
    ///
    /// # Errors
    /// [`NeverSent`].
    pub(crate) fn begin_ack<'a>(&self, ack: &'a AckFrame) -> Result<AckWalk<'a>, NeverSent> {
        let ranges = ack.ranges(self.next).ok_or(NeverSent)?;
        if ranges.clone().any(|range| self.skipped.count_in(*range.start(), *range.end()) > 0) {
            return Err(NeverSent);
        }
        Ok(AckWalk {
            ranges,
            end: None,
            place: 0,
            newest: None,
            before: self.newest,
            largest: ack.largest(self.next),
            delay: ack.delay(),
            has_news: false,
            sample: None,
            steps: 0,
        })
    }

    /// The next datagram that the ack names for the first time: newer ranges first, in order within each.
    /// The work of a whole walk is 32 searches and some steps for each of these, and not for each datagram
    /// named: nearly all were in the ack before.
    pub(crate) fn poll_acked(
        &mut self,
        now: Instant,
        timing: &mut Timing,
        walk: &mut AckWalk<'_>,
    ) -> Option<Acked> {
        loop {
            let Some(end) = walk.end else {
                let range = walk.ranges.next()?;
                walk.steps += 1;
                walk.newest = self.newest.map(|(_, sent_at)| sent_at);
                (walk.place, walk.end) = (self.place(*range.start()), Some(*range.end()));
                continue;
            };
            walk.steps += runs::pass_acked(&mut self.records, &mut walk.place);
            let news = self.records.get_mut(walk.place).filter(|record| record.number <= end);
            let Some(record) = news else {
                walk.end = None;
                continue;
            };
            (walk.place, walk.steps) = (walk.place + 1, walk.steps + 1);
            self.has_news = true;
            self.acked = self.acked.saturating_add(1);
            let before = core::mem::replace(&mut record.fate, Fate::Acked);
            let (was_open, acked) = (record.is_open(), *record);
            if was_open {
                record.contents = Contents::Settled;
                walk.has_news = true;
                // A datagram from the future shows that the clock went back, not how long it took.
                let is_timed = acked.contents == Contents::Open && acked.sent_at <= now;
                if acked.number == walk.largest && is_timed && acked.path == timing.path() {
                    walk.sample = Some(now.since(acked.sent_at));
                }
                self.on_closed(&acked);
            }
            if acked.path == timing.path() {
                learn_reordering(timing, &acked, before, walk);
            }
            if self.newest.is_none_or(|(newest, _)| newest < acked.number) {
                self.newest = Some((acked.number, acked.sent_at));
            }
            let was_lost = acked.contents == Contents::Settled;
            return Some(Acked { datagram: acked, before, was_lost });
        }
    }

    /// Ends the walk of an ack. Returns whether it gave an RTT sample: its largest number has to be news,
    /// and its delay known.
    pub(crate) fn end_ack(&self, timing: &mut Timing, walk: &AckWalk<'_>) -> bool {
        if walk.has_news {
            timing.on_news();
        }
        match (walk.sample, walk.delay) {
            (Some(sample), Some(delay)) => timing.on_sample(sample, delay),
            _ => false,
        }
    }
}

/// What a datagram that is acknowledged says of how datagrams overtake each other. Of one that was in flight
/// only an earlier ack shows it that names later ones, and not this one: in a single ack it stands below a
/// gap without having been overtaken.
fn learn_reordering(timing: &mut Timing, acked: &Datagram, before: Fate, walk: &AckWalk<'_>) {
    let overtaken = |newest: Instant| newest.since(acked.sent_at);
    match before {
        Fate::Lost => {
            let newest = walk.newest.filter(|&newest| newest > acked.sent_at);
            newest.into_iter().for_each(|newest| timing.on_spurious(overtaken(newest)));
        }
        Fate::InFlight => {
            let newest = walk.before.filter(|&(newest, _)| newest > acked.number);
            newest.into_iter().for_each(|(_, newest)| timing.on_overtaken(overtaken(newest)));
        }
        Fate::Acked | Fate::GivenUp => {}
    }
}

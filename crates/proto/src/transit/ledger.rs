//! The ledger of datagrams: one record for each one sent, and the only place that judges what became of it.
//!
//! A record holds what has to be known once the fate of a datagram is known: its number, its path, when it
//! was sent, its bytes, its contents. An ack is walked once ([`Ledger::poll_acked`]).
//! Then two lines move forward over the records. [`Ledger::poll_fate`] settles what the block sender counts:
//! a datagram that was overtaken by more than the learned reordering is lost at once, for any other slice
//! can replace its slice, and a late ack corrects the count. [`Ledger::poll_lost`] hands back the rest of a
//! datagram's contents, and waits as RFC 9002 says: a packet is reported as lost only once, and a message is
//! sent again. Both have their verdict from [`detect`], and the patience from the [`Timing`] of the path,
//! which the caller hands in: the ledger outlives a path. RTT, probes, retransmission, the estimates of the
//! path and the choice of slices follow from these three; none of them judges for itself.
//!
//! The invariant: records are in the order of their numbers, and each before `settled` has a fate. What was
//! in a datagram is handed back once, as acknowledged or as lost. A fate may still change: a datagram that
//! counts as lost may arrive, and its lateness shows the ledger how long to wait for later ones.

mod ack_walk;

use alloc::collections::VecDeque;

use super::datagram::{Contents, Datagram, Fate, LossReason, Outgoing};
use super::items::{Item, Items, MIN_ROOM};
use super::runs;
use super::skipped::Skipped;
use super::timing::Timing;
use super::verdict::{Verdict, detect};
use super::window::window_after;
use crate::Instant;

pub(crate) use ack_walk::{AckWalk, Acked, NeverSent};

/// Settled records kept while a block is sent, for acks that come late, and for samples of the path.
pub(crate) const KEPT: usize = 1024;

/// Records that are reserved for datagrams without a slice: a sixteenth of the first 8192, for all packets
/// and messages of some round trips.
const RESERVE: usize = 512;

/// The datagrams sent on one connection.
///
/// Memory follows the number of datagrams in flight, and is given back after none was in flight.
#[derive(Clone, Debug)]
pub(crate) struct Ledger {
    records: VecDeque<Datagram>,
    items: Items,
    next: u64,
    /// The place of the first record without a settled fate.
    settled: usize,
    /// Before this place nothing is open.
    first_open: usize,
    /// The largest number acknowledged, and when it was sent.
    newest: Option<(u64, Instant)>,
    skipped: Skipped,
    lost: u64,
    /// Why the last one was.
    lost_because: LossReason,
    /// Datagrams acknowledged, ack-eliciting or not.
    acked: u64,
    in_flight: u32,
    /// Those of them that have a slice.
    slices: u32,
    /// Something was acknowledged since the last [`poll_news`](Self::poll_news).
    has_news: bool,
    /// Nothing is in flight any more, since the last [`trim`](Self::trim).
    is_drained: bool,
    /// The most records since nothing was in flight: what there is room kept for.
    peak: u32,
}

impl Ledger {
    /// Nothing sent; the first number is 0.
    pub(crate) const fn new() -> Self {
        Self {
            records: VecDeque::new(),
            items: Items::new(),
            next: 0,
            settled: 0,
            first_open: 0,
            newest: None,
            skipped: Skipped::new(),
            lost: 0,
            lost_because: LossReason::NoRoom,
            acked: 0,
            in_flight: 0,
            slices: 0,
            has_news: false,
            is_drained: false,
            peak: 0,
        }
    }

    /// The connection closes: nothing that was sent matters any more.
    pub(crate) fn forget(&mut self) {
        (self.records, self.items) = (VecDeque::new(), Items::new());
        self.skipped = Skipped::new();
        (self.settled, self.first_open, self.peak) = (0, 0, 0);
        (self.in_flight, self.slices) = (0, 0);
    }

    /// Memory held, in bytes, besides itself: a peer that acknowledges nothing makes it grow.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.records.capacity() * size_of::<Datagram>()
            + self.items.memory_bytes()
            + self.skipped.memory_bytes()
    }

    /// The number of the next datagram. They end at 2^64, which no connection lives to see.
    pub(crate) const fn next_number(&self) -> u64 {
        self.next
    }

    /// Leaves the next number out, so that a peer that acknowledges it is caught. When is the caller's to
    /// draw [H-2.2c]. It is remembered for as long as there is a record of a datagram before it.
    pub(crate) fn skip(&mut self) {
        self.skipped.insert(self.next);
        self.next = self.next.saturating_add(1);
    }

    /// Begins a datagram: items added for one that was not sent are dropped.
    pub(crate) fn begin(&mut self) {
        self.items.discard();
    }

    /// This goes into the next datagram, and is handed back with its fate if that is ack-eliciting.
    pub(crate) fn add(&mut self, item: Item) {
        self.items.add(item);
    }

    /// A datagram was sent as [`next_number`](Self::next_number) (asserted), with the items added since
    /// [`begin`](Self::begin).
    #[inline]
    pub(crate) fn on_sent(&mut self, now: Instant, timing: &mut Timing, outgoing: Outgoing) {
        if !outgoing.is_ack_eliciting {
            self.items.discard();
        }
        self.on_unrecorded(outgoing.number);
        if self.records.capacity() == 0 {
            // A ping and an ack now and then need no more.
            self.records.reserve_exact(2);
        }
        let items = self.items.commit();
        self.records.push_back(Datagram::new(now, timing.path(), outgoing, items));
        self.peak = self.peak.max(self.count());
        if outgoing.is_ack_eliciting {
            self.in_flight += 1;
            self.slices += u32::from(outgoing.slice.is_some());
            timing.restart(now);
        }
    }

    /// A datagram was sent that is not recorded: it goes another way, or is the last one.
    pub(crate) fn on_unrecorded(&mut self, number: u64) {
        assert_eq!(number, self.next, "numbers are used in order");
        self.next = self.next.saturating_add(1);
    }

    fn count(&self) -> u32 {
        u32::try_from(self.records.len()).unwrap_or(u32::MAX)
    }

    /// Records at most: as many datagrams as a peer can tell apart that received as many as it acknowledged.
    /// When there are more, the oldest datagram is lost.
    fn max_records(&self) -> usize {
        usize::try_from(window_after(self.acked)).unwrap_or(usize::MAX)
    }

    /// Whether there is no room for another record: the oldest one is lost next.
    pub(crate) fn is_full(&self) -> bool {
        self.records.len() >= self.max_records()
    }

    /// Whether there is room for another slice. Without room slices wait, so that none counts as lost because
    /// it cannot be recorded. Other datagrams do not wait: [`RESERVE`] of the records are for them.
    pub(crate) fn has_slice_room(&self) -> bool {
        self.records.len() + RESERVE < self.max_records()
    }

    /// Whether there may be fates to settle.
    pub(crate) fn poll_news(&mut self) -> bool {
        core::mem::take(&mut self.has_news) || self.is_full()
    }

    /// The next datagram that has a fate, in the order of sending: it is acknowledged, or lost because
    /// another, sent later by at least the reordering that was seen, is. Call it until `None` after each ack.
    pub(crate) fn poll_fate(&mut self, timing: &mut Timing) -> Option<Datagram> {
        let must_go = self.must_go(self.settled);
        let record = self.records.get_mut(self.settled)?;
        if record.fate == Fate::InFlight {
            let patience = timing.patience_of_slices();
            // However long it waits, no time makes it lost.
            let verdict = detect(record.sent_at, record, self.newest, patience, |_, _| 1);
            if !matches!(verdict, Verdict::Lost(_)) && !must_go {
                return None;
            }
            record.fate = Fate::Lost;
            if record.path == timing.path() {
                timing.on_lost(record.number, self.next);
            }
        }
        self.settled += 1;
        Some(*record)
    }

    /// The next datagram whose contents are lost by `now`, in the order of sending: three later ones or more
    /// were sent up to one that is acknowledged, and that as much later as reordering was seen to reach, or
    /// 9/8 RTT have passed. Call it until `None`, after each ack and each timeout.
    pub(crate) fn poll_lost(&mut self, now: Instant, timing: &mut Timing) -> Option<Datagram> {
        timing.on_time(now);
        let is_open = |record: &Datagram| record.is_open();
        let skipped = self.records.range(self.first_open..).position(is_open);
        self.first_open += skipped.unwrap_or(self.records.len() - self.first_open);
        let must_go = self.must_go(self.first_open);
        if self.records.get(self.first_open)?.sent_at > now {
            self.on_clock_went_back(now);
        }
        let record = self.records.get_mut(self.first_open)?;
        let skipped = &self.skipped;
        let later = |from: u64, to: u64| (to - from).saturating_sub(skipped.count_in(from, to));
        let why = match detect(now, record, self.newest, timing.patience_of_contents(), later) {
            Verdict::Lost(why) => Some(why),
            Verdict::NotLostYet { .. } => must_go.then_some(LossReason::NoRoom),
        };
        self.lost_because = why?;
        record.contents = Contents::Settled;
        let lost = *record;
        self.lost += u64::from(!lost.is_probe());
        self.on_closed(&lost);
        Some(lost)
    }

    /// The timeouts of the datagrams in flight restart, and none of these shows a round trip any more. A
    /// datagram that was sent later than `now` gets this time, however far the clock went back.
    fn on_clock_went_back(&mut self, now: Instant) {
        for record in self.records.range_mut(self.first_open..) {
            record.sent_at = record.sent_at.min(now);
            if record.is_open() {
                record.contents = Contents::Untimed;
            }
        }
    }

    /// Nothing was received for long: the datagrams in flight no longer count as in flight. Returns how many
    /// of them have this number or a higher one and are no probes.
    pub(crate) fn give_up(&mut self, from: u64) -> usize {
        let mut given_up = 0;
        for record in self.records.range_mut(self.settled..) {
            if record.fate == Fate::InFlight {
                record.fate = Fate::GivenUp;
                given_up += usize::from(record.number >= from && !record.is_probe());
            }
        }
        self.settled = self.records.len();
        given_up
    }

    /// Drops records with nothing to settle, except the newest `kept`.
    pub(crate) fn trim(&mut self, kept: usize) {
        let is_settled = |ledger: &Self| ledger.settled.min(ledger.first_open) > 0;
        while is_settled(self) && (self.settled > kept || !self.has_slice_room()) {
            let Some(record) = self.records.pop_front() else { break };
            self.items.drop_front(record.items);
            (self.first_open, self.settled) = (self.first_open - 1, self.settled - 1);
        }
        self.skipped.forget_below(self.records.front().map_or(self.next, |oldest| oldest.number));
        if !core::mem::take(&mut self.is_drained) {
            return;
        }
        let needed = (self.peak as usize).max(MIN_ROOM);
        if self.records.capacity() > 2 * needed {
            self.records.shrink_to(needed);
        }
        self.peak = self.count();
        self.items.shrink();
    }

    /// Nothing was heard for a while: gives back what [`trim`](Self::trim) keeps for the next datagrams.
    pub(crate) fn rest(&mut self) {
        if self.records.is_empty() {
            (self.records, self.peak) = (VecDeque::new(), 0);
            self.items.rest();
            self.skipped.rest();
        }
    }

    /// What was in a recorded datagram, the `n`th of it.
    pub(crate) fn item(&self, datagram: &Datagram, n: u16) -> Option<Item> {
        self.items.get(datagram.items, n)
    }

    /// What was in the oldest datagram in flight, the `n`th of it.
    pub(crate) fn oldest_item(&self, n: u16) -> Option<Item> {
        self.items.get(self.oldest_open()?.items, n)
    }

    /// When to call [`poll_lost`](Self::poll_lost) and [`on_pto`](Self::on_pto) next; `None` while nothing
    /// is in flight.
    pub(crate) fn poll_timeout(&self, timing: &Timing) -> Option<Instant> {
        let oldest = self.oldest_open()?;
        let patience = timing.patience_of_contents();
        // What too many have overtaken is lost at the next call, whenever that is.
        match detect(oldest.sent_at, oldest, self.newest, patience, |_, _| 1) {
            Verdict::NotLostYet { at: None } => Some(timing.probe_at()),
            Verdict::NotLostYet { at } => at,
            Verdict::Lost(_) => Some(oldest.sent_at),
        }
    }

    /// When the oldest datagram in flight was sent.
    pub(crate) fn oldest_sent_at(&self) -> Option<Instant> {
        self.oldest_open().map(|oldest| oldest.sent_at)
    }

    /// Whether a probe is due: nothing was acknowledged for a probe timeout (RFC 9002, 6.2) since the last
    /// ack-eliciting datagram. Any such datagram is a probe, a ping if there is nothing else. Nothing is
    /// lost by it. The next one is due after twice the time, at most 2 s.
    #[must_use]
    pub(crate) fn on_pto(&self, now: Instant, timing: &mut Timing) -> bool {
        let is_due = self
            .oldest_open()
            .is_some_and(|oldest| !self.is_overtaken(oldest) && now >= timing.probe_at());
        if is_due {
            timing.on_probe(now);
        }
        is_due
    }

    /// Ack-eliciting datagrams that are neither acknowledged nor lost.
    pub(crate) const fn in_flight(&self) -> u32 {
        self.in_flight
    }

    /// Those of them that have a slice.
    pub(crate) const fn slices_in_flight(&self) -> u32 {
        self.slices
    }

    /// Datagrams acknowledged, ack-eliciting or not.
    pub(crate) const fn acked(&self) -> u64 {
        self.acked
    }

    /// Ack-eliciting datagrams that were lost, without probes for larger ones.
    pub(crate) const fn lost(&self) -> u64 {
        self.lost
    }

    /// Why the one that [`poll_lost`](Self::poll_lost) returned last is lost.
    pub(crate) const fn lost_because(&self) -> LossReason {
        self.lost_because
    }

    /// The largest number acknowledged.
    pub(crate) fn largest_acked(&self) -> Option<u64> {
        self.newest.map(|(number, _)| number)
    }

    /// The place of this number, or of the next one above. Places are good until the next
    /// [`trim`](Self::trim). Few numbers have no record, so that the search is near where it would be if each
    /// had one.
    pub(crate) fn place(&self, number: u64) -> usize {
        let Some(front) = self.records.front() else { return 0 };
        let Some(above) = number.checked_sub(front.number) else { return 0 };
        let end =
            usize::try_from(above).map_or(self.records.len(), |at| at.min(self.records.len()));
        let is_below = |at: usize| self.records.get(at).is_some_and(|it| it.number < number);
        let (mut end, mut step) = (end, 1);
        // All from `end` on are not below; that is looked for in steps that double.
        while let Some(at) = end.checked_sub(step).filter(|&at| !is_below(at)) {
            (end, step) = (at, 2 * step);
        }
        let mut from = end.saturating_sub(step);
        while from < end {
            let middle = from.midpoint(end);
            if is_below(middle) { from = middle + 1 } else { end = middle }
        }
        end
    }

    /// The record of this number.
    pub(crate) fn get(&self, number: u64) -> Option<&Datagram> {
        self.records.get(self.place(number)).filter(|record| record.number == number)
    }

    /// The records from this place on.
    pub(crate) fn iter_from(&self, place: usize) -> impl Iterator<Item = &Datagram> {
        self.records.range(place.min(self.records.len())..)
    }

    /// The place of the first record without a settled fate.
    pub(crate) const fn settled(&self) -> usize {
        self.settled
    }

    /// Panics if the records contradict each other. For tests, fuzzers and the simulator.
    pub(crate) fn check_invariants(&self) {
        let open = || self.records.iter().filter(|record| record.is_open());
        assert_eq!(open().count(), self.in_flight as usize, "datagrams in flight");
        let slices = open().filter(|record| record.slice.is_some()).count();
        assert_eq!(slices, self.slices as usize, "slices in flight");
        assert!(self.records.len() <= self.max_records(), "too many records");
        let numbers = || self.records.iter().map(|record| record.number);
        assert!(numbers().zip(numbers().skip(1)).all(|(a, b)| a < b), "not in order");
        assert!(self.records.back().is_none_or(|last| last.number < self.next), "from the future");
        assert!(self.skipped.is_in_order(), "skipped numbers in order");
        let has_fate = |record: &Datagram| record.fate != Fate::InFlight;
        assert!(self.records.range(..self.settled).all(has_fate), "a fate for each");
        assert!(!self.records.range(..self.first_open).any(Datagram::is_open), "open before");
        runs::check_invariants(&self.records);
        self.items.check_invariants(self.records.iter().map(|record| record.items));
        let is_waiting = self.oldest_open().is_some();
        assert_eq!(is_waiting, self.in_flight > 0, "a deadline for those in flight");
    }

    /// Records there is room for.
    #[cfg(test)]
    pub(super) fn capacity(&self) -> usize {
        self.records.capacity()
    }

    fn oldest_open(&self) -> Option<&Datagram> {
        if self.in_flight == 0 {
            return None;
        }
        self.records.range(self.first_open..).find(|record| record.is_open())
    }

    fn is_overtaken(&self, record: &Datagram) -> bool {
        self.newest.is_some_and(|(newest, _)| newest > record.number)
    }

    /// Whether the record at this place has to make room.
    fn must_go(&self, place: usize) -> bool {
        place == 0 && self.is_full()
    }

    const fn on_closed(&mut self, record: &Datagram) {
        self.in_flight -= 1;
        self.slices -= record.slice.is_some() as u32;
        self.is_drained |= self.in_flight == 0;
    }
}

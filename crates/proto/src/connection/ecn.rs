//! Marks datagrams as ECN-capable, and checks whether the path keeps the marks and the peer counts them
//! (STANDARD-1, 4.1; RFC 9000, 13.4.2 and A.4).
//!
//! Routers on the way clear the field, drop what has it, or mark everything. The invariant: more than a test
//! flight is marked only while the peer's counts agree with what it acknowledges.

use core::time::Duration;

use crate::Instant;
use crate::transit::EcnCounts;

/// Datagrams that are marked before the first of them is acknowledged (RFC 9000, A.4).
const TEST_FLIGHT: u8 = 10;

/// A path that marks this many datagrams in succession, for this many round trips and this time, marks
/// everything: in that time a sender that obeys has emptied any queue of its own many times over.
const ALL_MARKED: u8 = 64;
const ALL_MARKED_RTTS: u32 = 16;
const ALL_MARKED_FOR: Duration = Duration::from_secs(1);

/// What is known of the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// `sent` datagrams were marked, of which `lost` were lost.
    Testing {
        sent: u8,
        lost: u8,
    },
    Capable,
    /// It is not ECN-capable, or the marks or counts are false.
    Failed,
}

/// What a new ack says about the marks.
#[derive(Clone, Copy, Debug)]
pub(super) struct AckedMarks {
    /// The peer's counts, if it can read them.
    pub(super) counts: Option<EcnCounts>,
    /// Marked datagrams that it acknowledges for the first time.
    pub(super) acked: u64,
    /// No later ack arrived before it: counts do not go back.
    pub(super) is_newest: bool,
}

/// The sending half of ECN.
#[derive(Clone, Copy, Debug)]
pub(super) struct EcnMarking {
    state: State,
    /// Datagrams marked on all paths, because the peer counts them together.
    sent: u64,
    counts: EcnCounts,
    /// How many datagrams in succession had a mark, up to [`ALL_MARKED`], and since when, in milliseconds
    /// that wrap: every connection has this.
    all_marked: u8,
    all_marked_since: u32,
}

impl EcnMarking {
    /// Nothing was marked. If it is not wanted, nothing ever is.
    pub(super) const fn new(is_wanted: bool) -> Self {
        let state = if is_wanted { State::Testing { sent: 0, lost: 0 } } else { State::Failed };
        let counts = EcnCounts { ect0: 0, ect1: 0, ce: 0 };
        Self { state, sent: 0, counts, all_marked: 0, all_marked_since: 0 }
    }

    /// That of the next path: it is tested anew, and the peer goes on to count.
    pub(super) const fn on_new_path(&self, is_wanted: bool) -> Self {
        Self { sent: self.sent, counts: self.counts, ..Self::new(is_wanted) }
    }

    /// Whether to mark the next datagram.
    pub(super) const fn is_due(&self) -> bool {
        match self.state {
            State::Testing { sent, .. } => sent < TEST_FLIGHT,
            State::Capable => true,
            State::Failed => false,
        }
    }

    /// A marked datagram was sent.
    pub(super) const fn on_sent(&mut self) {
        self.sent = self.sent.saturating_add(1);
        if let State::Testing { sent, .. } = &mut self.state {
            *sent = sent.saturating_add(1);
        }
    }

    /// A marked datagram of this path was lost. If the whole test flight is lost, the path drops marked
    /// datagrams.
    pub(super) const fn on_lost(&mut self) {
        if let State::Testing { sent, lost } = &mut self.state {
            *lost = lost.saturating_add(1);
            if *lost >= TEST_FLIGHT && *lost >= *sent {
                self.state = State::Failed;
            }
        }
    }

    /// An ack arrived. Returns whether a router has marked more datagrams: there is congestion. As long as no
    /// datagram has arrived without such a mark, the marks show nothing: perhaps the path marks everything.
    pub(super) fn on_ack(&mut self, now: Instant, rtt: Duration, acked: AckedMarks) -> bool {
        let AckedMarks { counts, acked, is_newest } = acked;
        let Some(new) = counts else {
            if acked > 0 {
                self.state = State::Failed;
            }
            return false;
        };
        if self.state == State::Failed || !is_newest {
            return false;
        }
        let old = core::mem::replace(&mut self.counts, new);
        let (Some(ect0), Some(ce)) = (new.ect0.checked_sub(old.ect0), new.ce.checked_sub(old.ce))
        else {
            self.state = State::Failed;
            return false;
        };
        let is_each_counted = ect0.saturating_add(ce) >= acked;
        let is_invented = new.ect1 > 0 || new.ect0.saturating_add(new.ce) > self.sent;
        let is_always_marked = new.ect0 == 0 && new.ce >= TEST_FLIGHT.into()
            || self.is_all_marked(now, rtt, (ect0, ce));
        self.state = match self.state {
            _ if is_invented || !is_each_counted || is_always_marked => State::Failed,
            State::Testing { .. } if new.ect0 > 0 => State::Capable,
            state => state,
        };
        self.state == State::Capable && ce > 0
    }

    /// Whether all have been marked for so long that no queue explains it.
    fn is_all_marked(&mut self, now: Instant, rtt: Duration, (ect0, ce): (u64, u64)) -> bool {
        let millis = u32::try_from(now.since(Instant::ZERO).as_millis() & u128::from(u32::MAX));
        let millis = millis.unwrap_or_default();
        if ect0 > 0 {
            self.all_marked = 0;
        } else if ce > 0 {
            if self.all_marked == 0 {
                self.all_marked_since = millis;
            }
            let more = u8::try_from(ce).unwrap_or(u8::MAX);
            self.all_marked = self.all_marked.saturating_add(more).min(ALL_MARKED);
        }
        let lasts = Duration::from_millis(millis.wrapping_sub(self.all_marked_since).into());
        let long = ALL_MARKED_FOR.max(rtt.saturating_mul(ALL_MARKED_RTTS));
        self.all_marked >= ALL_MARKED && lasts >= long
    }

    /// Datagrams that were marked.
    pub(super) const fn sent(&self) -> u64 {
        self.sent
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A marking that has marked `count` datagrams.
    fn marked(count: u8) -> EcnMarking {
        let mut marking = EcnMarking::new(true);
        for _ in 0..count {
            assert!(marking.is_due());
            marking.on_sent();
        }
        marking
    }

    impl EcnMarking {
        /// An ack at time zero.
        fn on(&mut self, acked: AckedMarks) -> bool {
            self.on_ack(Instant::ZERO, Duration::ZERO, acked)
        }
    }

    fn ack(ect0: u64, ect1: u64, ce: u64, acked: u64) -> AckedMarks {
        AckedMarks { counts: Some(EcnCounts { ect0, ect1, ce }), acked, is_newest: true }
    }

    #[test]
    fn ten_are_marked_until_one_is_counted() {
        let mut marking = marked(10);
        assert!(!marking.is_due(), "nothing is known yet");
        assert!(!marking.on(ack(1, 0, 0, 1)));
        assert!(marking.is_due());
        assert!(marking.on(ack(8, 0, 1, 8)), "one was marked on the way");
        assert!(!marking.on(ack(8, 0, 1, 0)), "and no more");
        assert!(marking.is_due());
        assert!(!EcnMarking::new(false).is_due());
    }

    #[test]
    fn counts_that_are_wrong_end_it() {
        let fails = |acks: &[AckedMarks]| {
            let mut marking = marked(10);
            let is_due = acks.iter().map(|&ack| {
                marking.on(ack);
                marking.is_due()
            });
            is_due.collect::<alloc::vec::Vec<_>>()
        };
        let none = AckedMarks { counts: None, acked: 1, is_newest: true };
        assert_eq!(fails(&[none, ack(9, 0, 0, 0)]), [false; 2], "they were cleared");
        assert_eq!(fails(&[ack(4, 0, 0, 4), ack(5, 0, 0, 2)]), [true, false], "one was cleared");
        assert_eq!(fails(&[ack(4, 0, 1, 4), ack(8, 0, 0, 2)]), [true, false], "back");
        assert_eq!(fails(&[ack(4, 0, 0, 4), ack(11, 0, 0, 2)]), [true, false], "never sent");
        assert_eq!(fails(&[ack(4, 1, 0, 4)]), [false], "another mark");
        assert_eq!(fails(&[ack(0, 0, 1, 1), ack(0, 0, 10, 9)]), [false; 2], "all are marked");
        let late = AckedMarks { is_newest: false, ..ack(2, 0, 0, 0) };
        assert_eq!(fails(&[ack(4, 0, 0, 4), late]), [true; 2], "an ack that was overtaken");
    }

    #[test]
    fn a_test_flight_that_is_lost_ends_it_and_a_new_path_begins_it() {
        let mut marking = marked(10);
        (0..9).for_each(|_| marking.on_lost());
        assert_ne!(marking.state, State::Failed);
        marking.on_lost();
        assert_eq!(marking.state, State::Failed);
        let mut marking = marking.on_new_path(true);
        assert!(marking.is_due());
        marking.on(ack(9, 0, 0, 1));
        assert_eq!((marking.state, marking.sent()), (State::Capable, 10));
    }

    /// A router that began to mark everything: no rate ends it. One datagram without a mark says that it is a
    /// queue's doing.
    #[test]
    fn marks_that_never_end_end_it() {
        let rtt = Duration::from_millis(100);
        let after = |unmarked_at: Option<u64>| {
            let mut marking = marked(10);
            let (mut counts, mut congested) = ((1, 0), 0);
            marking.on(ack(1, 0, 0, 1));
            for n in 0..400 {
                (0..2).for_each(|_| marking.on_sent());
                let is_marked = unmarked_at.is_none_or(|at| n % 100 != at);
                counts =
                    if is_marked { (counts.0, counts.1 + 1) } else { (counts.0 + 1, counts.1) };
                let now = Instant::from_millis(n * 10);
                congested += u32::from(marking.on_ack(now, rtt, ack(counts.0, 0, counts.1, 1)));
            }
            (congested, marking.is_due())
        };
        assert_eq!(after(None), (160, false), "for 16 round trips they count");
        assert_eq!(after(Some(7)), (396, true));
    }
}

//! Properties: both ends over a link that loses and reorders, and acks compared with a set.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use core::time::Duration;

use proptest::prelude::*;

use super::{Sent, acked, at, lost, send};
use crate::DropReason;
use crate::transit::ledger::NeverSent;
use crate::transit::{AckFrame, ReceivedDatagrams};

/// One direction of a link with the acks that come back.
struct Link {
    sent: Sent,
    received: ReceivedDatagrams,
    /// In flight: by arrival, then in the order sent.
    datagrams: BTreeMap<(u64, usize), u64>,
    acks: BTreeMap<(u64, usize), AckFrame>,
    carried: usize,
    draws: Vec<u8>,
}

impl Link {
    /// When a datagram that is sent now arrives, if it does: 5 to 60 ms later; `loss` of 256 never do.
    fn draw(&mut self, now: u64, loss: u8) -> Option<(u64, usize)> {
        self.carried += 1;
        let draw = self.draws[self.carried * 7 % self.draws.len()];
        // Spread, so that few draws are no rhythm in which each datagram that arrives has its ack lost. The
        // factor alone is one of 13 and 21 datagrams (SplitMix64 mixes what it multiplies).
        let mut spread = (self.carried as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        for (shift, factor) in [(30, 0xbf58_476d_1ce4_e5b9_u64), (27, 0x94d0_49bb_1331_11eb)] {
            spread = (spread ^ (spread >> shift)).wrapping_mul(factor);
        }
        let spread = (spread ^ (spread >> 31)).to_be_bytes()[0];
        let draw = draw.wrapping_mul(29).wrapping_add(spread);
        (draw >= loss).then(|| (now + 5 + u64::from(draw % 56), self.carried))
    }

    fn send(&mut self, now: u64, loss: u8) -> u64 {
        let number = self.sent.next_number();
        send(&mut self.sent, at(now), 1);
        if let Some(arrival) = self.draw(now, loss) {
            self.datagrams.insert(arrival, number);
        }
        number
    }

    fn deliver(&mut self, now: u64, loss: u8) {
        while let Some(entry) = self.datagrams.first_entry() {
            if entry.key().0 > now {
                break;
            }
            let number = entry.remove();
            assert_eq!(self.received.check(number), Ok(()));
            self.received.on_verified(at(now), number, true);
        }
        self.received.check_invariants();
        if self.received.ack_due().is_some_and(|due| due <= at(now)) {
            let frame = self.received.ack_frame(at(now)).unwrap();
            self.received.on_ack_sent(crate::Instant::ZERO, true);
            if let Some(arrival) = self.draw(now, loss) {
                self.acks.insert(arrival, frame);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    /// Whatever the link does, each datagram is acknowledged or lost, once; and what is acknowledged
    /// arrived.
    #[test]
    fn everything_is_acknowledged_or_lost_once(
        draws in prop::collection::vec(any::<u8>(), 1..300), loss in 0..140u8,
        pauses in prop::collection::vec(prop_oneof![4 => 0..3u64, 1 => 0..300u64], 1..400),
    ) {
        let mut link = Link {
            sent: Sent::new(),
            received: ReceivedDatagrams::new(),
            datagrams: BTreeMap::new(),
            acks: BTreeMap::new(),
            carried: 0,
            draws,
        };
        let (mut open, mut sent, mut settled) = (BTreeSet::new(), 0, 0);
        let (mut pauses, mut next_send) = (pauses.into_iter(), Some(0));
        for now in 0.. {
            prop_assert!(now < 400_000, "{} are still in flight", link.sent.in_flight());
            while next_send == Some(now) {
                open.insert(link.send(now, loss));
                sent += 1;
                if now % 5 == 0 {
                    link.sent.skip();
                }
                next_send = pauses.next().map(|pause| now + pause);
            }
            link.deliver(now, loss);
            while let Some(entry) = link.acks.first_entry() {
                if entry.key().0 > now {
                    break;
                }
                let frame = entry.remove();
                for number in acked(&mut link.sent, at(now), &frame).unwrap() {
                    prop_assert!(open.remove(&number), "{number} is settled");
                    prop_assert_eq!(link.received.check(number), Err(DropReason::Duplicate));
                    settled += 1;
                }
            }
            for number in lost(&mut link.sent, at(now)) {
                prop_assert!(open.remove(&number), "{number} is settled");
                settled += 1;
            }
            if link.sent.poll_timeout() <= Some(at(now)) && link.sent.on_pto(at(now)) {
                open.insert(link.send(now, loss));
                sent += 1;
            }
            link.sent.check_invariants();
            if next_send.is_none() && link.sent.in_flight() == 0 {
                break;
            }
        }
        prop_assert!(open.is_empty());
        prop_assert_eq!((settled, link.sent.poll_timeout()), (sent, None));
    }

    /// An ack says what arrived: read back, it is the newest 1024 numbers of a set, as far as 31 runs reach.
    #[test]
    fn an_ack_says_what_arrived(steps in prop::collection::vec(-40..60i64, 1..400)) {
        let (mut received, mut model) = (ReceivedDatagrams::new(), BTreeSet::new());
        for step in steps {
            let largest = model.last().copied().unwrap_or(1000u64);
            let number = largest.saturating_add_signed(step);
            received.on_verified(at(0), number, true);
            model.insert(number);
        }
        let largest = *model.last().unwrap();
        let frame = received.ack_frame(at(0)).unwrap();
        let ranges: Vec<_> = frame.ranges(largest + 1).unwrap().collect();
        let named: BTreeSet<u64> = ranges.iter().cloned().flatten().collect();
        let lowest = *named.first().unwrap();
        let reach = if ranges.len() == 32 { lowest } else { largest.saturating_sub(8191) };
        prop_assert_eq!(named, model.range(reach..).copied().collect::<BTreeSet<_>>());
    }

    /// Any ack, however invented, is refused and changes nothing, or settles what it names.
    #[test]
    fn an_invented_ack(
        acks in prop::collection::vec(
            (0..300u64, 0..1024u32, prop::collection::vec((1..40u32, 1..40u32), 0..31)), 1..50,
        ),
    ) {
        let mut sent = Sent::new();
        let mut open = BTreeSet::new();
        for (now, (largest, first, runs)) in (0..).zip(acks) {
            for _ in 0..9 {
                open.insert(sent.next_number());
                send(&mut sent, at(now), 1);
            }
            sent.skip();
            let mut frame = AckFrame::new(largest, Duration::ZERO, first % 64);
            let _fitted = runs.iter().all(|&(gap, run)| frame.push_run(gap, run));
            let before = sent.in_flight();
            match acked(&mut sent, at(now), &frame) {
                Ok(numbers) => prop_assert!(numbers.iter().all(|number| open.remove(number))),
                Err(NeverSent) => prop_assert_eq!(sent.in_flight(), before),
            }
            for number in lost(&mut sent, at(now)) {
                prop_assert!(open.remove(&number));
            }
            sent.check_invariants();
        }
        prop_assert_eq!(open.len(), sent.in_flight() as usize);
    }
}

//! Properties: both ends over a link that loses and reorders, and acks against a set.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec;
use alloc::vec::Vec;
use core::time::Duration;

use proptest::prelude::*;

use super::{Sent, acked, at, lost, send};
use crate::DropReason;
use crate::transit::{AckFrame, NeverSent, ReceivedDatagrams};

/// One direction of a link with the acks that come back.
struct Link {
    sent: Sent,
    received: ReceivedDatagrams,
    /// Under way: by arrival, then in the order sent.
    datagrams: BTreeMap<(u64, usize), u64>,
    acks: BTreeMap<(u64, usize), AckFrame>,
    carried: usize,
    draws: Vec<u8>,
}

impl Link {
    /// When what is sent now arrives, if it does: 5 to 60 ms later, one in `loss` of 256 never.
    fn draw(&mut self, now: u64, loss: u8) -> Option<(u64, usize)> {
        self.carried += 1;
        let draw = self.draws[self.carried * 7 % self.draws.len()];
        let draw = draw.wrapping_mul(29).wrapping_add(self.carried.to_le_bytes()[0]);
        (draw >= loss).then(|| (now + 5 + u64::from(draw % 56), self.carried))
    }

    fn send(&mut self, now: u64, loss: u8) -> u64 {
        let number = self.sent.next_number();
        assert!(self.sent.on_sent(at(now), number, 100, Some(number)).is_none());
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
    /// Whatever the link does, each datagram is acked or lost, once; and what is acked arrived.
    #[test]
    fn everything_is_acked_or_lost_once(
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
        let (mut open, mut settled) = (BTreeSet::new(), 0);
        let (mut pauses, mut next_send) = (pauses.into_iter(), Some(0));
        for now in 0.. {
            prop_assert!(now < 400_000, "{} are still in flight", link.sent.in_flight());
            while next_send == Some(now) {
                open.insert(link.send(now, loss));
                if now % 5 == 0 {
                    link.sent.skip(1);
                }
                next_send = pauses.next().map(|pause| now + pause);
            }
            link.deliver(now, loss);
            while let Some(entry) = link.acks.first_entry() {
                if entry.key().0 > now {
                    break;
                }
                let frame = entry.remove();
                let mut news = vec![];
                prop_assert!(link.sent.on_ack(at(now), &frame, |d| news.push(d.contents)).is_ok());
                for number in news {
                    prop_assert!(open.remove(&number), "{number} is settled");
                    prop_assert_eq!(link.received.check(number), Err(DropReason::Duplicate));
                    settled += 1;
                }
            }
            while let Some(lost) = link.sent.poll_lost(at(now)) {
                prop_assert!(open.remove(&lost.contents), "{} is settled", lost.contents);
                settled += 1;
            }
            if link.sent.poll_timeout() <= Some(at(now)) && link.sent.on_pto(at(now)) {
                open.insert(link.send(now, loss));
            }
            link.sent.check_invariants();
            if next_send.is_none() && link.sent.in_flight() == 0 {
                break;
            }
        }
        prop_assert!(open.is_empty());
        let stats = *link.sent.stats();
        prop_assert_eq!((stats.datagrams, stats.acked + stats.lost), (settled, settled));
        prop_assert_eq!(stats.bytes, stats.acked_bytes + stats.lost_bytes);
        prop_assert_eq!((link.sent.bytes_in_flight(), link.sent.poll_timeout()), (0, None));
    }

    /// What an ack says is what came: read back, it is the newest 1024 numbers of a set, as far as
    /// 31 runs reach.
    #[test]
    fn an_ack_says_what_came(steps in prop::collection::vec(-40..60i64, 1..400)) {
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
        let reach = if ranges.len() == 32 { lowest } else { largest.saturating_sub(1023) };
        prop_assert_eq!(named, model.range(reach..).copied().collect::<BTreeSet<_>>());
    }

    /// Any ack, however made up, changes nothing or settles what it names.
    #[test]
    fn any_ack(
        acks in prop::collection::vec(
            (0..300u64, 0..1024u16, prop::collection::vec((1..40u16, 1..40u16), 0..31)), 1..50,
        ),
    ) {
        let mut sent = Sent::new();
        let mut open = BTreeSet::new();
        for (now, (largest, first, runs)) in (0..).zip(acks) {
            for _ in 0..9 {
                open.insert(sent.next_number());
                send(&mut sent, at(now), 1);
            }
            sent.skip(1);
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
        prop_assert_eq!(open.len(), usize::from(sent.in_flight()));
    }
}

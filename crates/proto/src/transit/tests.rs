//! The two ends together, and what a peer can try on either.

mod link;

use alloc::vec::Vec;
use core::time::Duration;

use super::*;
use crate::{DropReason, Instant};

const fn at(millis: u64) -> Instant {
    Instant::from_millis(millis)
}

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

type Sent = SentDatagrams<u64>;

/// Sends `count` datagrams of 100 bytes whose content is their number.
fn send(sent: &mut Sent, now: Instant, count: usize) {
    for _ in 0..count {
        let number = sent.next_number();
        assert!(sent.on_sent(now, number, 100, Some(number)).is_none());
    }
}

fn ack(largest: u64, first: u16, runs: &[(u16, u16)]) -> AckFrame {
    let mut frame = AckFrame::new(largest, Duration::ZERO, first);
    assert!(runs.iter().all(|&(gap, run)| frame.push_run(gap, run)));
    frame
}

/// What an ack settles, by number.
fn acked(sent: &mut Sent, now: Instant, frame: &AckFrame) -> Result<Vec<u64>, NeverSent> {
    let mut contents = Vec::new();
    sent.on_ack(now, frame, |datagram| contents.push(datagram.contents))?;
    sent.check_invariants();
    contents.sort_unstable();
    Ok(contents)
}

fn lost(sent: &mut Sent, now: Instant) -> Vec<u64> {
    core::iter::from_fn(|| sent.poll_lost(now)).map(|datagram| datagram.number).collect()
}

#[test]
fn sizes() {
    assert!(size_of::<ReceivedDatagrams>() <= 112, "{}", size_of::<ReceivedDatagrams>());
    assert!(size_of::<Sent>() <= 400, "{}", size_of::<Sent>());
    assert!(size_of::<AckFrame>() <= 136, "{}", size_of::<AckFrame>());
}

#[test]
fn replays_are_refused_and_change_nothing() {
    let mut received = ReceivedDatagrams::new();
    received.on_verified(at(0), 8191, true);
    assert_eq!(received.check(0), Ok(()));
    received.on_verified(at(0), 0, true);
    assert_eq!(received.check(0), Err(DropReason::Duplicate));
    received.on_verified(at(0), 8192, true);
    assert_eq!(received.check(0), Err(DropReason::TooOld));
    received.on_verified(at(9), 0, true);
    received.on_verified(at(9), 8192, true);
    assert_eq!(received.received(), 3);
    assert_eq!(received.expand(8193), 8193);
}

#[test]
fn the_top_of_u64() {
    let mut received = ReceivedDatagrams::new();
    received.on_verified(at(0), u64::MAX, true);
    assert_eq!(received.expand(u32::MAX), u64::MAX);
    assert_eq!(received.expand(0), u64::MAX - u64::from(u32::MAX));
    assert_eq!(received.check(u64::MAX - 8191), Ok(()));
    assert_eq!(received.check(u64::MAX - 8192), Err(DropReason::TooOld));
    received.on_verified(at(0), u64::MAX - 1, true);
    assert_eq!(received.ack_frame(at(0)), Some(ack(u64::MAX, 1, &[])));
    received.check_invariants();
}

#[test]
fn acks_are_due_at_once_first_then_after_16_or_20_ms() {
    let mut received = ReceivedDatagrams::new();
    let mut due = Vec::new();
    for number in 0..60 {
        received.on_verified(at(number), number, true);
        if received.ack_due().is_some_and(|due| due <= at(number)) {
            due.push(number);
            assert!(received.ack_frame(at(number)).is_some());
            received.on_ack_sent(Instant::ZERO, true);
            assert!(received.ack_due().is_none() && received.ack_frame(at(number)).is_none());
        }
    }
    assert_eq!(due, [0, 3, 7, 15, 31, 47]);
    assert_eq!(received.ack_due(), Some(at(48 + 20)), "20 ms after the first");
    received.on_ack_sent(Instant::ZERO, false);
    received.on_verified(at(100), 60, false);
    assert_eq!(received.ack_due(), None, "an ack is not acked");
}

/// While a block comes: its sender measures by them, so they come sooner, and one that may be lost is said
/// again.
#[test]
fn acks_of_a_block_wait_for_10_ms_and_are_said_again() {
    let mut received = ReceivedDatagrams::new();
    received.set_block(true);
    (0..17).for_each(|number| received.on_verified(at(0), number, true));
    received.on_ack_sent(at(0), true);
    let mut said = Vec::new();
    while let Some(due) = received.ack_due() {
        said.push(due);
        assert!(received.ack_frame(due).is_some());
        received.on_ack_sent(due, true);
        received.check_invariants();
    }
    assert_eq!(said, [10, 30, 70, 150, 310].map(at), "and then there is silence");
    received.on_verified(at(400), 17, true);
    assert_eq!(received.ack_due(), Some(at(410)), "news begins anew");
    received.set_block(false);
    received.on_ack_sent(at(410), true);
    assert_eq!(received.ack_due(), None, "no block, no repetition");
}

#[test]
fn a_gap_is_acked_when_its_sender_can_act_on_it_but_not_every_time() {
    let mut received = ReceivedDatagrams::new();
    (0..8).for_each(|number| received.on_verified(at(0), number, true));
    received.on_ack_sent(Instant::ZERO, true);
    for number in [9, 10] {
        received.on_verified(at(1), number, true);
        assert_eq!(received.ack_due(), Some(at(21)), "{number}");
    }
    received.on_verified(at(2), 11, true);
    assert_eq!(received.ack_due(), Some(at(2)));
    received.on_ack_sent(Instant::ZERO, true);
    for number in [13, 14, 15, 16] {
        received.on_verified(at(3), number, true);
    }
    assert_eq!(received.ack_due(), Some(at(23)), "the last ack was for a gap");
    received.check_invariants();
}

/// [H-4.1c]
#[test]
fn acks_alone_are_at_most_one_for_two() {
    let mut received = ReceivedDatagrams::new();
    let mut alone = 0;
    for number in 0..200 {
        let now = at(number * 1000);
        received.on_verified(now, number * 5, true);
        if received.ack_due().is_some() {
            alone += 1;
            received.on_ack_sent(Instant::ZERO, true);
        }
        assert!(alone <= received.received().div_ceil(2));
        received.check_invariants();
    }
    assert_eq!(alone, 100);
    received.on_ack_sent(Instant::ZERO, true);
    received.on_verified(at(0), 2000, true);
    assert_eq!(received.ack_due(), None);
    assert!(received.ack_frame(at(0)).is_some(), "it may still go with data");
}

#[test]
fn an_ack_has_no_more_than_31_runs_of_the_newest_1024() {
    let mut received = ReceivedDatagrams::new();
    (0..500).for_each(|number| received.on_verified(at(0), number * 2, true));
    let frame = received.ack_frame(at(64)).unwrap();
    assert_eq!(frame, {
        let mut frame = AckFrame::new(998, ms(64), 0);
        assert!((0..31).all(|_| frame.push_run(1, 1)));
        frame
    });
    let mut received = ReceivedDatagrams::new();
    [0, 1, 1024].into_iter().for_each(|number| received.on_verified(at(0), number, true));
    assert_eq!(received.ack_frame(at(0)), Some(ack(1024, 0, &[(1022, 1)])), "0 is out of reach");
    (2..1024).for_each(|number| received.on_verified(at(0), number, true));
    assert_eq!(received.ack_frame(at(0)), Some(ack(1024, 1023, &[])));
}

#[test]
fn an_optimistic_ack_is_caught() {
    let mut sent = Sent::new();
    assert_eq!(acked(&mut sent, at(0), &ack(0, 0, &[])), Err(NeverSent), "nothing was sent");
    send(&mut sent, at(0), 10);
    assert_eq!(acked(&mut sent, at(1), &ack(10, 3, &[])), Err(NeverSent));
    assert_eq!(acked(&mut sent, at(1), &ack(9, 10, &[])), Err(NeverSent), "below 0");
    assert_eq!(acked(&mut sent, at(1), &ack(u64::MAX, 0, &[])), Err(NeverSent));
    assert_eq!(sent.in_flight(), 10, "nothing was believed");
    assert_eq!(acked(&mut sent, at(1), &ack(9, 9, &[])).unwrap().len(), 10);
}

/// [H-2.2c]
#[test]
fn an_ack_of_a_skipped_number_is_caught() {
    let mut sent = Sent::new();
    let mut skipped = Vec::new();
    for _ in 0..10 {
        send(&mut sent, at(0), 97);
        skipped.push(sent.next_number());
        sent.skip(1);
    }
    send(&mut sent, at(0), 20);
    for number in skipped {
        assert_eq!(acked(&mut sent, at(1), &ack(number, 0, &[])), Err(NeverSent));
        assert_eq!(acked(&mut sent, at(1), &ack(number + 9, 30, &[])), Err(NeverSent));
        assert!(acked(&mut sent, at(1), &ack(number + 9, 8, &[(1, 30)])).is_ok());
    }
    assert_eq!(sent.in_flight(), 990 - 39 * 10);
}

/// An ack names at most 1024 numbers, each of which can be news once.
#[test]
fn a_flood_of_acks_costs_bounded_work() {
    let mut sent = Sent::new();
    send(&mut sent, at(0), MAX_SENT_RECORDS);
    let mut news = 0;
    for _ in 0..10_000 {
        let outcome = sent.on_ack(at(1), &ack(8191, 511, &[(1, 511)]), |_| news += 1).unwrap();
        assert!(outcome.acked <= 1023);
    }
    assert_eq!(news, 1023);
    assert_eq!(sent.stats().acked, 1023);
    assert!(sent.rtt().latest_rtt().is_some());
    sent.check_invariants();
}

#[test]
fn three_later_or_nine_eighths_of_a_round_trip_is_lost() {
    let mut sent = Sent::new();
    send(&mut sent, at(0), 5);
    assert_eq!(acked(&mut sent, at(80), &ack(3, 0, &[])).unwrap(), [3]);
    assert_eq!(lost(&mut sent, at(80)), [0]);
    assert_eq!(sent.poll_timeout(), Some(at(90)));
    assert_eq!(lost(&mut sent, at(89)), [0; 0]);
    assert_eq!(lost(&mut sent, at(90)), [1, 2]);
    assert_eq!(sent.in_flight(), 1, "nothing after 4 was acked");
    assert_eq!(acked(&mut sent, at(91), &ack(4, 4, &[])).unwrap(), [4], "the others are lost");
    assert_eq!(sent.poll_timeout(), None);
    assert_eq!((sent.stats().acked, sent.stats().lost), (2, 3));
}

/// A number left out is no datagram sent later.
#[test]
fn a_skipped_number_does_not_hasten_a_loss() {
    let mut sent = Sent::new();
    send(&mut sent, at(0), 2);
    sent.skip(1);
    send(&mut sent, at(0), 2);
    assert!(acked(&mut sent, at(80), &ack(3, 0, &[])).is_ok());
    assert_eq!(lost(&mut sent, at(80)), [0; 0]);
    assert!(acked(&mut sent, at(80), &ack(4, 1, &[])).is_ok());
    assert_eq!(lost(&mut sent, at(80)), [0]);
}

#[test]
fn probes_come_later_and_later_and_nothing_is_lost_by_them() {
    let mut sent = Sent::new();
    sent.set_initial_rtt(ms(100));
    send(&mut sent, at(0), 1);
    let mut probes = Vec::new();
    while probes.len() < 6 {
        let now = sent.poll_timeout().unwrap();
        assert_eq!(lost(&mut sent, now), [0; 0]);
        assert!(!sent.on_pto(at(0)) && sent.on_pto(now) && !sent.on_pto(now));
        probes.push(now.as_nanos() / 1_000_000);
        send(&mut sent, now, 1);
    }
    assert_eq!(probes, [320, 960, 2240, 4240, 6240, 8240]);
    assert!(acked(&mut sent, at(8300), &ack(6, 0, &[])).is_ok());
    assert_eq!(lost(&mut sent, at(8300)), [0, 1, 2, 3, 4, 5]);
}

#[test]
fn a_clock_that_jumps_does_no_harm() {
    let hour = 3_600_000;
    let mut sent = Sent::new();
    send(&mut sent, at(0), 1);
    send(&mut sent, at(hour), 2);
    assert_eq!(lost(&mut sent, at(10)), [0; 0], "back again");
    assert!(sent.poll_timeout().unwrap() <= at(10 + 2000));
    assert!(acked(&mut sent, at(20), &ack(1, 0, &[])).is_ok());
    assert_eq!(sent.rtt().latest_rtt(), None, "it took less than no time");
    assert_eq!(lost(&mut sent, at(2000)), [0]);
    send(&mut sent, at(2000), 1);
    assert!(acked(&mut sent, at(hour), &ack(3, 0, &[])).is_ok());
    assert_eq!(sent.rtt().latest_rtt(), None, "an hour is no round trip");

    let mut sent = Sent::new();
    send(&mut sent, at(hour), 1);
    assert_eq!(lost(&mut sent, at(0)), [0; 0]);
    send(&mut sent, at(0), 1);
    assert!(acked(&mut sent, at(80), &ack(1, 0, &[])).is_ok());
    assert_eq!(lost(&mut sent, at(90)), [0], "its time began anew");

    let mut received = ReceivedDatagrams::new();
    [0, 1].into_iter().for_each(|number| received.on_verified(at(hour), number, true));
    received.on_ack_sent(Instant::ZERO, true);
    received.on_verified(at(hour), 2, true);
    received.on_verified(at(5), 3, true);
    assert!(received.ack_due() <= Some(at(25)));
    assert_eq!(received.ack_frame(at(0)).unwrap().delay(), Some(Duration::ZERO));
}

#[test]
fn an_ack_of_unknown_delay_is_no_sample() {
    let mut sent = Sent::new();
    send(&mut sent, at(0), 1);
    let outcome = sent.on_ack(at(5000), &AckFrame::new(0, ms(4900), 0), drop).unwrap();
    assert_eq!((outcome.acked, outcome.rtt_sample), (1, None));
}

#[test]
fn the_oldest_makes_room_and_memory_is_given_back() {
    let mut sent = Sent::new();
    send(&mut sent, at(0), MAX_SENT_RECORDS);
    let pushed_out = sent.on_sent(at(0), 8192, 100, Some(8192)).unwrap();
    assert_eq!((pushed_out.number, sent.in_flight()), (0, 8192));
    assert!(sent.on_sent(at(0), 8193, 100, None).is_none(), "an ack has no contents");
    assert_eq!(acked(&mut sent, at(1), &ack(8192, 0, &[])).unwrap(), [8192]);
    assert_eq!(lost(&mut sent, at(5000)).len(), 8191);
    assert_eq!((sent.bytes_in_flight(), sent.stats().lost), (0, 8192));
    send(&mut sent, at(6000), 1);
    assert_eq!(acked(&mut sent, at(6001), &ack(8194, 0, &[])).unwrap(), [8194]);
    assert!(sent.capacity() <= 4, "{}", sent.capacity());
}

//! What a receiver remembers, and when it acknowledges.

use alloc::vec;
use alloc::vec::Vec;
use core::time::Duration;

use super::{ack, at, ms};
use crate::transit::{AckFrame, ReceivedDatagrams};
use crate::{DropReason, Instant};

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

/// A link that loses most, then one that loses nothing, so that the window grows: no number that was refused
/// passes later, and no ack names one that did not arrive. The window took in what had left it once, and of
/// 60,000 numbers every eighth that had arrived was accepted again [H-2.2b].
#[test]
fn a_window_that_grows_after_losses_accepts_nothing_again() {
    for kept in [2, 4, 7, 8, 9, 10, 12, 16, 32, 64_u64] {
        let mut received = ReceivedDatagrams::new();
        let mut was_refused = vec![false; 140_000];
        let has_arrived = |number| number > 60_000 || number % kept == 0;
        for number in 0..140_000_u64 {
            if has_arrived(number) {
                received.on_verified(at(number), number, true);
                assert!(received.check(number).is_err());
            }
            if number % 2048 > 0 {
                continue;
            }
            for (number, was_refused) in (0..=number).zip(&mut was_refused) {
                let is_refused = received.check(number).is_err();
                let must_be_refused = *was_refused || has_arrived(number);
                assert!(is_refused || !must_be_refused, "{number} passes: 1 of {kept} arrives");
                *was_refused = is_refused;
            }
            for range in received.ack_frame(at(number)).unwrap().ranges(number + 1).unwrap() {
                assert!(range.clone().all(has_arrived), "{range:?} did not all arrive");
            }
        }
    }
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
    assert_eq!(received.ack_due(), None, "acks are not acknowledged");
}

/// While a block is received: its sender measures by the acks, so they are sent sooner, and one that may be
/// lost is repeated.
/// Where a peer wants acks later than usual the way to it is too thin for them: a gap waits, and so do
/// repetitions.
#[test]
fn thinned_acks_wait_at_a_gap_too() {
    let mut received = ReceivedDatagrams::new();
    received.set_block(true);
    received.set_frequency(64, Duration::from_millis(100));
    (0..17).for_each(|number| received.on_verified(at(0), number, true));
    received.on_ack_sent(at(0), true);
    (20..30).for_each(|number| received.on_verified(at(1), number, true));
    assert_eq!(received.ack_due(), Some(at(101)));
    received.on_ack_sent(at(101), true);
    assert_eq!(received.ack_due(), Some(at(201)));
}

#[test]
fn acks_of_a_block_wait_for_10_ms_and_are_repeated() {
    let mut received = ReceivedDatagrams::new();
    received.set_block(true);
    (0..17).for_each(|number| received.on_verified(at(0), number, true));
    received.on_ack_sent(at(0), true);
    let mut times = Vec::new();
    while let Some(due) = received.ack_due() {
        times.push(due);
        assert!(received.ack_frame(due).is_some());
        received.on_ack_sent(due, true);
        received.check_invariants();
    }
    assert_eq!(times, [10, 30, 70, 150, 310].map(at), "and then no more");
    received.on_verified(at(400), 17, true);
    assert_eq!(received.ack_due(), Some(at(410)), "with news it begins again");
    received.set_block(false);
    received.on_ack_sent(at(410), true);
    assert_eq!(received.ack_due(), None, "no block, no repetition");
}

#[test]
fn a_gap_is_acknowledged_when_its_sender_can_act_on_it_but_not_every_time() {
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
    assert!(received.ack_frame(at(0)).is_some(), "it may still be sent with data");
}

#[test]
fn an_ack_has_no_more_than_31_runs_of_the_window() {
    let mut received = ReceivedDatagrams::new();
    (0..500).for_each(|number| received.on_verified(at(0), number * 2, true));
    let frame = received.ack_frame(at(64)).unwrap();
    assert_eq!(frame, {
        let mut frame = AckFrame::new(998, ms(64), 0);
        assert!((0..31).all(|_| frame.push_run(1, 1)));
        frame
    });
    let mut received = ReceivedDatagrams::new();
    [0, 1, 8192].into_iter().for_each(|number| received.on_verified(at(0), number, true));
    assert_eq!(received.ack_frame(at(0)), Some(ack(8192, 0, &[(8190, 1)])), "0 is out of reach");
    (2..8192).for_each(|number| received.on_verified(at(0), number, true));
    assert_eq!(received.ack_frame(at(0)), Some(ack(8192, 8191, &[])));
}

/// Names what the ack names, and returns it.
fn named(frame: &AckFrame, into: &mut [u32]) {
    for number in frame.ranges(into.len() as u64 + 1).unwrap().flatten() {
        if let Some(times) = usize::try_from(number).ok().and_then(|number| into.get_mut(number)) {
            *times += 1;
        }
    }
}

/// So many datagrams that arrive at random up to `width` places late, of which one in ten is lost. Returns
/// how many acks there were, and how often each datagram that arrived was named.
fn disordered(seed: u64, count: u64, width: u64) -> (usize, Vec<u32>) {
    let mut state = seed;
    let mut draw = move |below: u64| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    let mut arriving: Vec<_> = (0..count)
        .filter_map(|number| match draw(10) {
            0 => None,
            _ => Some((number + draw(width + 1), number)),
        })
        .collect();
    arriving.sort_unstable();
    let mut received = ReceivedDatagrams::new();
    received.set_block(true);
    let (mut acks, mut times) = (0, alloc::vec![0; usize::try_from(count).unwrap()]);
    let mut unnamed = Vec::new();
    for (_, number) in arriving.iter().copied() {
        received.on_verified(at(0), number, true);
        unnamed.push(usize::try_from(number).unwrap());
        while received.ack_due().is_some_and(|due| due <= at(0)) {
            named(&received.ack_frame(at(0)).unwrap(), &mut times);
            received.on_ack_sent(at(0), false);
            received.check_invariants();
            acks += 1;
        }
        unnamed.retain(|&number| times[number] == 0);
        assert!(unnamed.len() <= 16, "seed {seed}: {} wait for an ack", unnamed.len());
    }
    for repeat in 1..4 {
        named(&received.ack_frame(at(1000 * repeat)).unwrap(), &mut times);
        received.on_ack_sent(at(1000 * repeat), false);
    }
    (acks, arriving.iter().map(|&(_, number)| times[usize::try_from(number).unwrap()]).collect())
}

/// [H-4.1e] However far datagrams overtake each other, what arrived is named within 16 arrivals, and twice;
/// and that takes no more acks than order does.
#[test]
fn whatever_arrives_late_is_named_twice() {
    for (seed, width) in [0, 2, 30, 60, 200, 1_000, 4_000].into_iter().enumerate() {
        let (acks, times) = disordered(seed as u64, 8_000, width);
        let twice = times.iter().filter(|&&times| times >= 2).count();
        assert_eq!(twice, times.len(), "{width} places: named twice");
        assert!(width < 30 || acks <= times.len() / 15 + 16, "{width} places: {acks} acks");
    }
}

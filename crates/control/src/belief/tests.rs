//! The bottleneck's rate, from true and from forged arrival times.

use alloc::vec::Vec;

use haulier_core::Instant;
use proptest::prelude::*;

use super::bottleneck::Bottleneck;
use super::loss::LossEstimate;
use crate::history::History;
use crate::history::tests::{BYTES, Log};
use crate::units::{Bytes, Rate};

const fn micros(micros: u64) -> Instant {
    Instant::from_nanos(micros * 1_000)
}

/// A train of `count` datagrams sent at once and all acknowledged.
fn train(count: u64) -> Log {
    Log::of(count, count, |_| micros(1_000))
}

/// Arrivals `apart` microseconds from each other, the newest first.
fn arrivals(count: u64, apart: f64) -> impl Iterator<Item = (u64, u32)> {
    (0..count).rev().map(move |number| (number, 50_000 + (number as f64 * apart) as u32))
}

#[test]
fn a_train_gives_the_rate_of_a_link() {
    for mbit in [1.0, 5.0, 20.0, 100.0, 300.0] {
        let rate = Rate(mbit / 8.0);
        let mut bottleneck = Bottleneck::new(None, 0);
        let no_loss = (0..2000).fold(LossEstimate::new(), |mut loss, _| {
            loss.on_packet(false);
            loss
        });
        bottleneck.on_arrivals(
            arrivals(24, (BYTES / rate).0),
            &train(24),
            &no_loss,
            micros(2_000),
            false,
        );
        let found = bottleneck.rate().unwrap();
        assert!((found / rate - 1.0).abs() < 0.06, "{mbit} Mbit/s: found {found:?}");
    }
}

/// Of 20 datagrams that were sent at once, and 20 at twice the rate of a link of 10 Mbit/s, those arrive that
/// its queue of 8 KiB has room for. What it drops counts as the path's own, for too much was sent before.
/// Returns what is taken for the rate, in Mbit/s, after the train and after all.
fn behind_a_short_queue() -> [Option<f64>; 2] {
    let apart = (BYTES / Rate(10.0 / 8.0)).0;
    let sent = |number: u64| number.saturating_sub(19) as f64 * apart / 2.0;
    let mut log = Log::of(40, 0, |number| micros(1_000 + sent(number) as u64));
    let mut loss = LossEstimate::new();
    let (mut passes, mut arrived) = (0.0, Vec::new());
    for number in 0..40 {
        let at = f64::max(passes, sent(number)) + apart;
        let is_lost = at - sent(number) > 7.0 * apart;
        loss.on_packet(is_lost);
        if !is_lost {
            passes = at;
            log.ack_one(number);
            arrived.push((number, 50_000 + at as u32));
        }
    }
    let mut bottleneck = Bottleneck::new(None, 0);
    [7, arrived.len()].map(|count| {
        let newest = arrived.iter().take(count).rev().copied();
        bottleneck.on_arrivals(newest, &log, &loss, micros(90_000), false);
        bottleneck.rate().map(|rate| rate.0 * 8.0)
    })
}

/// Eight were needed for a train, and what a full queue dropped was taken for what the path had lost behind
/// it: the rate was 1.6 times the link's, and two fifths of 256 KiB were dropped.
#[test]
fn behind_a_short_queue_the_rate_is_that_of_the_link() {
    let rates = behind_a_short_queue();
    let is_right = |rate: Option<f64>| rate.is_some_and(|rate| (9.4..10.6).contains(&rate));
    assert!(rates.into_iter().all(is_right), "{rates:?}");
}

/// The last of 24 datagrams that were sent at once has waited for all others: 24 fit the queue. A late caller
/// tries four times as many, until two in succession are lost behind the longest queue that was seen.
#[test]
fn delays_show_how_much_fits_the_queue_and_losses_behind_the_longest_that_no_more_does() {
    let mut bottleneck = Bottleneck::new(None, 0);
    let (loss, now) = (LossEstimate::new(), micros(2_000));
    bottleneck.on_arrivals(arrivals(24, 982.0), &train(24), &loss, now, false);
    let seen = bottleneck.queue_seen();
    assert!((seen / BYTES - 24.0).abs() < 2.0, "{seen:?}");
    bottleneck.try_more(true);
    bottleneck.on_lost(12);
    bottleneck.on_lost(24);
    assert!(bottleneck.room() > 3.9 * seen, "one alone may be the link's own");
    bottleneck.on_lost(25);
    assert_eq!(bottleneck.room(), seen);
}

/// A train of 24 that arrives at once, with `apart` microseconds between datagrams, and eight datagrams sent
/// 2 ms later, which arrive `later_us` microseconds after it.
fn bunch(apart: f64, later_us: u32) -> Bottleneck {
    let mut log = train(24);
    (0..8).for_each(|_| log.send(micros(3_000)));
    let mut bottleneck = Bottleneck::new(None, 0);
    let (loss, now) = (LossEstimate::new(), micros(4_000));
    bottleneck.on_arrivals(arrivals(24, apart), &log, &loss, now, false);
    assert_eq!(bottleneck.rate(), None, "it may be a bunch");
    log.ack(32);
    let later = (24..32).rev().map(|number| (number, 50_000 + later_us));
    bottleneck.on_arrivals(later, &log, &loss, now, false);
    bottleneck
}

/// Network cards and operating systems deliver what arrived within some microseconds at once: that shows a
/// fast link. But what was sent later arrives later then; if it does not, the train was held up.
#[test]
fn a_train_that_arrives_at_once_shows_a_fast_link_unless_all_does() {
    // A system hands them over one after the other.
    for apart in [0.0, 4.0] {
        let mbit = bunch(apart, 2_000).rate().unwrap().0 * 8.0;
        assert!((500.0..3_000.0).contains(&mbit), "{mbit} Mbit/s");
        assert_eq!(bunch(apart, 100).rate(), None);
    }
}

#[test]
fn arrivals_of_datagrams_never_sent_or_acked_are_ignored() {
    let loss = LossEstimate::new();
    let mut bottleneck = Bottleneck::new(Some(Rate(2.0)), 0);
    let never_sent = arrivals(24, 100.0).filter(|&(number, _)| number >= 10);
    bottleneck.on_arrivals(never_sent, &train(10), &loss, micros(2_000), true);
    let unacked = Log::of(24, 0, |_| micros(1_000));
    bottleneck.on_arrivals(arrivals(24, 100.0), &unacked, &loss, micros(2_000), true);
    assert_eq!(bottleneck.rate(), Some(Rate(2.0)));
    assert_eq!(bottleneck.newest(100).count(), 0);
}

/// A datagram of these bytes, which is sent and arrives after those before over 2 Mbit/s without a queue.
fn arrive(bottleneck: &mut Bottleneck, log: &mut Log, bytes: f64) {
    let (number, loss) = (log.next_number(), LossEstimate::new());
    let at = 10_000 * number;
    log.send_bytes(micros(at), Bytes(bytes));
    log.ack(number + 1);
    let arrives = at as u32 + 50_000 + (8.0 * bytes / 2.0) as u32;
    let heard = micros(at + 100_000);
    bottleneck.on_arrivals([(number, arrives)].into_iter(), log, &loss, heard, true);
}

/// What ends a chunk is smaller and arrives sooner: full datagrams after it, and larger ones, met no queue.
#[test]
fn a_smaller_datagram_does_not_make_a_queue_of_full_ones() {
    let (mut bottleneck, mut log) = (Bottleneck::new(Some(Rate(0.25)), 0), Log::default());
    let mut queue_after = |bottleneck: &mut Bottleneck, bytes| {
        arrive(bottleneck, &mut log, bytes);
        bottleneck.queueing_delay().unwrap().0
    };
    for bytes in [BYTES.0, 757.0, BYTES.0, 58.0, BYTES.0] {
        let queue = queue_after(&mut bottleneck, bytes);
        assert!(queue < 100.0, "{queue} us after {bytes} bytes");
    }
    for bytes in [1_452.0, 1_228.0, 1_452.0] {
        let queue = queue_after(&mut bottleneck, bytes);
        assert!(queue < 100.0, "{queue} us after {bytes} bytes");
    }
    bottleneck.set_packet(BYTES);
    let queue = queue_after(&mut bottleneck, BYTES.0);
    assert!(queue < 100.0, "{queue} us after {BYTES:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Whatever a receiver reports, the rate is finite, and at most that of a train that arrives at once.
    #[test]
    fn forged_arrivals_stay_within_bounds(
        known in proptest::option::of(0.001f64..1000.0),
        forged in proptest::collection::vec((0u64..200, any::<u32>(), any::<[(u8, u16); 12]>()), 0..40),
        is_long in any::<bool>(),
    ) {
        let log = Log::of(200, 151, |number| micros(number / 20 * 3_000));
        let mut bottleneck = Bottleneck::new(known.map(Rate), 0);
        let loss = LossEstimate::new();
        for (number, at, earlier) in forged {
            let mut last = number;
            let earlier = earlier.map(|(back, before)| {
                last = last.saturating_sub(back.into());
                (last, at.wrapping_sub(u32::from(before) * 8))
            });
            let frame: Vec<_> = core::iter::once((number, at)).chain(earlier).collect();
            bottleneck.on_arrivals(frame.into_iter(), &log, &loss, micros(40_000), is_long);
            bottleneck.on_lost(number);
            prop_assert!(bottleneck.room().is_finite());
            prop_assert!(bottleneck.finder().standing().is_finite());
            let rate = bottleneck.rate().map_or(1.0, |rate| rate.0);
            prop_assert!(rate >= 0.000_5, "{rate}");
            // A train of 20 in 100 us, corrected for losses that did not happen.
            let max = known.unwrap_or(0.0).max(20.0 * BYTES.0 / 100.0 / 0.6);
            prop_assert!(rate <= max, "{rate} of {max}");
        }
    }
}

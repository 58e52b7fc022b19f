//! The bottleneck's rate, from true and from forged arrival times.

use proptest::prelude::*;

use super::*;
use crate::bulk::bottleneck::Bottleneck;
use crate::bulk::loss::LossEstimate;
use crate::bulk::units::{Bytes, Rate};
use crate::transit::{AckFrame, ArrivalsFrame, Ledger};

const BYTES: Bytes = Bytes(1_228.0);

/// A train of `count` datagrams sent at once and all acknowledged.
fn train(count: u16) -> Ledger {
    let mut ledger = Ledger::new();
    (0..count).for_each(|_| send(&mut ledger, micros(1_000)));
    let ack = AckFrame::new(u64::from(count) - 1, Duration::ZERO, (count - 1).into());
    handle_ack(&mut ledger, micros(2_000), &ack);
    ledger
}

/// An arrivals frame with arrivals `apart` microseconds from each other.
fn arrivals(count: u64, apart: f64) -> ArrivalsFrame {
    let at = |number: u64| micros(50_000 + (number as f64 * apart) as u64);
    let mut frame = ArrivalsFrame::new(count - 1, at(count - 1));
    for number in (0..count - 1).rev() {
        assert!(frame.push(1, at(count - 1).since(at(number))));
    }
    frame
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
            &arrivals(24, (BYTES / rate).0),
            &train(24),
            &no_loss,
            micros(2_000),
            false,
        );
        let found = bottleneck.rate().unwrap();
        assert!((found / rate - 1.0).abs() < 0.06, "{mbit} Mbit/s: found {found:?}");
    }
}

/// The last of 24 datagrams that were sent at once has waited for all others: 24 fit the queue. A late caller
/// tries four times as many, until two in succession are lost behind the longest queue that was seen.
#[test]
fn delays_show_how_much_fits_the_queue_and_losses_behind_the_longest_that_no_more_does() {
    let mut bottleneck = Bottleneck::new(None, 0);
    let (loss, now) = (LossEstimate::new(), micros(2_000));
    bottleneck.on_arrivals(&arrivals(24, 982.0), &train(24), &loss, now, false);
    let seen = bottleneck.queue_seen();
    assert!((seen / BYTES - 24.0).abs() < 2.0, "{seen:?}");
    bottleneck.try_more(true);
    bottleneck.on_lost(12);
    bottleneck.on_lost(24);
    assert!(bottleneck.room() > 3.9 * seen, "one alone may be the link's own");
    bottleneck.on_lost(25);
    assert_eq!(bottleneck.room(), seen);
}

/// A train of 24 that arrives at once, these microseconds apart, and eight datagrams sent 2 ms later, which
/// arrive so much after it.
fn bunch(apart: f64, later_us: u64) -> Bottleneck {
    let mut ledger = train(24);
    (0..8).for_each(|_| send(&mut ledger, micros(3_000)));
    let mut bottleneck = Bottleneck::new(None, 0);
    let (loss, now) = (LossEstimate::new(), micros(4_000));
    bottleneck.on_arrivals(&arrivals(24, apart), &ledger, &loss, now, false);
    assert_eq!(bottleneck.rate(), None, "it may be a bunch");
    handle_ack(&mut ledger, micros(4_000), &AckFrame::new(31, Duration::ZERO, 31));
    let mut frame = ArrivalsFrame::new(31, micros(50_000 + later_us));
    assert!((0..7).all(|_| frame.push(1, Duration::ZERO)));
    bottleneck.on_arrivals(&frame, &ledger, &loss, now, false);
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
    bottleneck.on_arrivals(&arrivals(24, 100.0), &train(10), &loss, micros(2_000), true);
    let mut unacked = Ledger::new();
    (0..24).for_each(|_| send(&mut unacked, micros(1_000)));
    bottleneck.on_arrivals(&arrivals(24, 100.0), &unacked, &loss, micros(2_000), true);
    assert_eq!(bottleneck.rate(), Some(Rate(2.0)));
    assert_eq!(bottleneck.newest(100).count(), 0);
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
        let mut ledger = Ledger::new();
        (0..200).for_each(|number| send(&mut ledger, micros(number / 20 * 3_000)));
        let ack = AckFrame::new(150, Duration::ZERO, 150);
        handle_ack(&mut ledger, micros(40_000), &ack);
        let mut bottleneck = Bottleneck::new(known.map(Rate), 0);
        let loss = LossEstimate::new();
        for (number, at, earlier) in forged {
            let mut frame = ArrivalsFrame::new(number, micros(at.into()));
            for (back, units) in earlier {
                let _room = frame.push(back.into(), Duration::from_micros(u64::from(units) * 8));
            }
            bottleneck.on_arrivals(&frame, &ledger, &loss, micros(40_000), is_long);
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

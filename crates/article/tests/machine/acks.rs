//! Acks between two windows: what *Reliability, Ordering and Congestion Avoidance over UDP* promises beyond
//! the vectors, and what broke in the 2016 original.

use std::time::Duration;

use haulier_article::ack::{AckBits, PacketFate, ReceivedPackets, SentPackets};
use haulier_article::{Instant, PacketDropReason, Sequence};

use crate::support::ms;

fn seq(number: u16) -> Sequence {
    Sequence::new(number)
}

fn only(ack: u16) -> AckBits {
    AckBits { ack: seq(ack), bits: 0 }
}

/// The original says 65,535 before it received anything. In the article's convention that acknowledges a
/// packet, and of a sender that begins near the wrap even one that it sent.
#[test]
fn nothing_received_yet_acknowledges_nothing() {
    let received = ReceivedPackets::<Sequence>::new();
    assert_eq!(received.ack_bits(), None);
    assert_eq!(received.newest(), None);
}

/// A packet that the application did not accept is not acknowledged, and may come again.
#[test]
fn only_what_was_accepted_is_acknowledged() {
    let mut received = ReceivedPackets::new();
    assert_eq!(received.check(ms(0), seq(5)), Ok(()));
    assert_eq!(received.ack_bits(), None);
    assert_eq!(received.check(ms(0), seq(5)), Ok(()));
    received.on_accepted(ms(0), seq(5), 1);
    assert_eq!(received.ack_bits(), Some(only(5)));
    assert_eq!(received.check(ms(0), seq(5)), Err(PacketDropReason::Duplicate));
}

/// The original did not clear the entries that a jump skips; a turn later they acknowledged packets that
/// had not come.
#[test]
fn a_skipped_number_is_not_acknowledged_a_turn_later() {
    let mut received = ReceivedPackets::new();
    let mut accept = |number: u32| {
        let sequence = seq(number as u16);
        received.check(ms(0), sequence).unwrap();
        received.on_accepted(ms(0), sequence, 1);
        received.ack_bits().unwrap()
    };
    for number in 0..40 {
        accept(number);
    }
    let turn = (50..65_536 + 40).step_by(50);
    let last = turn.map(accept).last().unwrap();
    assert_eq!(last.bits, 0, "{last:?}");
}

#[test]
fn packets_older_than_the_window_are_refused() {
    let mut received = ReceivedPackets::new();
    received.on_accepted(ms(0), seq(1_000), 1);
    assert_eq!(received.check(ms(0), seq(745)), Ok(()));
    assert_eq!(received.check(ms(0), seq(744)), Err(PacketDropReason::TooOld));
}

/// As for reassembly: a peer that starts over is heard again after a second, and acknowledged from there.
#[test]
fn a_peer_that_starts_over_is_heard_again() {
    let mut received = ReceivedPackets::new();
    received.on_accepted(ms(0), seq(30_000), 1);
    let mut heard = None;
    for number in 0..60u16 {
        let now = ms(u64::from(number) * 33);
        if received.check(now, seq(number)).is_ok() {
            heard = heard.or(Some(number));
            received.on_accepted(now, seq(number), 1);
        }
    }
    assert_eq!(heard, Some(31), "31 * 33 ms is the first moment after a second");
    assert_eq!(received.restarts(), 1);
    assert_eq!(received.ack_bits(), Some(AckBits { ack: seq(59), bits: (1 << 28) - 1 }));
}

/// Old packets that come again and again among new ones, replayed or late, are not a peer that started over.
#[test]
fn old_packets_among_new_ones_are_no_restart() {
    let mut received = ReceivedPackets::new();
    for i in 0..100u16 {
        let now = ms(u64::from(i) * 50);
        assert_eq!(received.check(now, seq(30_000 + i)), Ok(()));
        received.on_accepted(now, seq(30_000 + i), 1);
        assert_eq!(received.check(now, seq(i)), Err(PacketDropReason::TooOld));
    }
    assert_eq!(received.restarts(), 0);
}

#[test]
fn each_packet_has_one_fate_and_is_reported_once() {
    let mut sent = SentPackets::<Sequence>::new();
    for i in 0..10 {
        sent.on_sent(ms(i * 10), 100);
    }
    assert_eq!(sent.on_ack(ms(200), AckBits { ack: seq(7), bits: 0b101 }).acked().len(), 3);
    assert!(sent.on_ack(ms(210), AckBits { ack: seq(7), bits: 0b101 }).acked().is_empty());
    let lost: Vec<u16> =
        std::iter::from_fn(|| sent.next_lost(ms(9_000))).map(Sequence::get).collect();
    assert_eq!(lost, [0, 1, 2, 3, 5, 8, 9]);
    assert_eq!(sent.next_lost(ms(9_000)), None);
    // "An ack after it was called lost" finds nothing.
    let late = sent.on_ack(ms(9_001), AckBits { ack: seq(9), bits: u32::MAX });
    assert!(late.acked().is_empty() && late.rtt_sample.is_none());
    assert_eq!(sent.in_flight(), 0);
    sent.check_invariants();
}

/// Exactly at the timeout a packet is pending; the deadline is a nanosecond later, and what it says is true.
#[test]
fn the_loss_deadline_is_exact() {
    let mut sent = SentPackets::<Sequence>::new();
    assert_eq!(sent.poll_timeout(), None);
    sent.on_sent(ms(10), 1);
    sent.on_sent(ms(20), 1);
    let at = sent.poll_timeout().unwrap();
    assert_eq!(at, ms(1_010) + Duration::from_nanos(1));
    assert_eq!(sent.next_lost(ms(1_010)), None);
    assert_eq!(sent.next_lost(at), Some(seq(0)));
    assert_eq!(sent.next_lost(at), None);
}

/// 257 packets within the timeout: the first has no place any more, and must not be forgotten silently.
#[test]
fn a_packet_that_leaves_the_window_is_lost() {
    let mut sent = SentPackets::<Sequence>::new();
    (0..256).for_each(|_| assert_eq!(sent.on_sent(ms(0), 1).pushed_out, None));
    sent.on_ack(ms(1), only(1));
    assert_eq!(sent.on_sent(ms(1), 7).pushed_out, Some((seq(0), 1)));
    assert_eq!(sent.on_sent(ms(1), 1).pushed_out, None, "packet 1 was acked");
    assert_eq!(sent.on_sent(ms(1), 1).pushed_out, Some((seq(2), 1)));
    assert_eq!((sent.fate(seq(0)), sent.fate(seq(3))), (None, Some(PacketFate::InFlight)));
    sent.check_invariants();
    assert!(sent.on_ack(ms(2), only(0)).acked().is_empty(), "an ack of what left the window");
}

/// A hostile ack of everything: only what was sent counts.
#[test]
fn acks_of_packets_never_sent_are_ignored() {
    let mut sent = SentPackets::<Sequence>::new();
    sent.on_sent(ms(0), 1);
    for ack in (1..=u16::MAX).rev().step_by(7).chain([0]) {
        let news = sent.on_ack(ms(1), AckBits { ack: seq(ack), bits: u32::MAX });
        assert_eq!(news.acked().len(), usize::from(ack == 0), "{ack}");
        assert_eq!(news.rtt_sample.is_some(), ack == 0, "{ack}");
    }
    sent.check_invariants();
}

/// A program restarts, 31 numbers back, while ten seconds' worth of its packets are still under way. Its
/// peer acknowledges those one by one, and the bits of each ack name the numbers that are just being sent
/// anew: 321 packets were reported as acked that nobody had.
#[test]
fn an_ack_whose_newest_was_never_sent_is_ignored() {
    let mut sent = SentPackets::starting_at(seq(100), Duration::from_secs(1));
    for number in 100..400 {
        let now = ms(u64::from(number) * 16);
        assert_eq!(sent.on_sent(now, 1).sequence, seq(number));
        let stale = AckBits { ack: seq(number + 31), bits: u32::MAX };
        assert!(sent.on_ack(now, stale).acked().is_empty(), "{number}");
    }
    let own = AckBits { ack: seq(399), bits: u32::MAX };
    assert_eq!(sent.on_ack(ms(6_400), own).acked().len(), 33);
}

/// A bit is new only because earlier packets with acks were lost; its delay says nothing about the link.
#[test]
fn a_round_trip_is_measured_on_the_ack_itself() {
    let mut sent = SentPackets::<Sequence>::new();
    sent.on_sent(ms(0), 1);
    sent.on_sent(ms(500), 1);
    let news = sent.on_ack(ms(540), AckBits { ack: seq(1), bits: 1 });
    assert_eq!(news.acked(), [seq(1), seq(0)]);
    assert_eq!(news.rtt_sample, Some(Duration::from_millis(40)));
    sent.on_sent(ms(600), 1);
    sent.on_sent(ms(600), 1);
    assert!(sent.on_ack(ms(640), only(3)).rtt_sample.is_some());
    let news = sent.on_ack(ms(900), AckBits { ack: seq(3), bits: 1 });
    assert_eq!((news.acked(), news.rtt_sample), (&[seq(2)][..], None));
}

/// A hundred packets a second of 1000 bytes, every tenth lost. Packets under way are not counted as lost.
#[test]
fn loss_and_bandwidth_are_those_of_the_older_half() {
    let mut sent = SentPackets::<Sequence>::new();
    let mut received = ReceivedPackets::new();
    for i in 0..400u64 {
        let now = ms(i * 10);
        while sent.next_lost(now).is_some() {}
        let sequence = sent.on_sent(now, 1_000).sequence;
        if i % 10 != 3 {
            received.on_accepted(now, sequence, 1_000);
        }
        // Acks come half a second late.
        if i >= 50 && (i - 50) % 10 != 3 {
            sent.on_ack(now, only((i - 50) as u16));
        }
    }
    let measured = sent.measure(ms(4_000));
    // The older half of the newest 256: packets 144 to 271.
    assert_eq!((measured.packets, measured.acked, measured.lost), (128, 116, 12));
    assert_eq!(measured.span, Duration::from_millis(1_280));
    assert_eq!(measured.bps(), Some(800_000));
    assert_eq!(measured.acked_bps(), Some(116 * 8_000 * 100 / 128));
    let loss = measured.loss().unwrap();
    assert!((loss - 12.0 / 128.0).abs() < 1e-12, "{loss}");
    let received = received.measure(ms(4_000));
    assert_eq!((received.packets, received.span), (116, Duration::from_millis(1_280)));
}

/// In the first second everything is under way or acked: no loss is made up, and no rate without a span.
#[test]
fn nothing_is_measured_before_there_is_something() {
    let mut sent = SentPackets::<Sequence>::new();
    assert_eq!(measured(&sent, ms(0)), (None, None));
    sent.on_sent(Instant::ZERO, 1_000);
    assert_eq!(measured(&sent, ms(0)), (None, None));
    for i in 1..20 {
        sent.on_sent(ms(i * 10), 1_000);
    }
    assert_eq!(measured(&sent, ms(200)), (None, Some(800_000)));
}

fn measured(sent: &SentPackets<Sequence>, now: Instant) -> (Option<f64>, Option<u64>) {
    let measured = sent.measure(now);
    (measured.loss(), measured.bps())
}

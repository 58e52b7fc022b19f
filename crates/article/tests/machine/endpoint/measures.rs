//! What is measured and decided: fates, loss, bandwidth, modes and deadlines.

use std::time::Duration;

use haulier_article::Instant;
use haulier_article::congestion::{CongestionController, CongestionMode};
use haulier_article::endpoint::{Endpoint, EndpointConfig};
use haulier_article::fragment::FragmentPool;

use super::{End, lost};
use crate::support::ms;

#[test]
fn packets_without_an_ack_are_lost_after_a_second() {
    let mut a = End::new();
    a.send(ms(0), b"one");
    a.send(ms(500), b"two");
    a.endpoint.handle_timeout(ms(1_000));
    assert_eq!(a.events(), []);
    a.endpoint.handle_timeout(ms(1_001));
    assert_eq!(a.events(), [lost(0)]);
    a.endpoint.handle_timeout(ms(2_000));
    assert_eq!(a.events(), [lost(1)]);
    assert_eq!((a.endpoint.stats().packets_lost, a.endpoint.in_flight()), (2, 0));
}

/// Events of packets that the application never reads must not fill the memory.
#[test]
fn unread_events_are_bounded() {
    let mut a = End::new();
    for i in 0..2_000 {
        a.send(ms(i * 10), b"");
        a.endpoint.handle_timeout(ms(i * 10));
    }
    let events = a.events();
    assert_eq!(events.len(), 512);
    let stats = a.endpoint.stats();
    assert_eq!(stats.packets_lost, 512 + stats.events_dropped);
    // The newest are kept.
    assert_eq!(events.last(), Some(&lost((stats.packets_lost - 1) as u16)));
}

/// Two ends that play for ten seconds with a fixed delay.
fn play(a: &mut End, b: &mut End, delay_ms: u64, lose: impl Fn(u64) -> bool) {
    let mut under_way: Vec<(u64, bool, Vec<u8>)> = vec![];
    for now in 0..10_000u64 {
        a.endpoint.handle_timeout(ms(now));
        b.endpoint.handle_timeout(ms(now));
        if now % 33 == 0 {
            a.endpoint.send(ms(now), &[1; 100]).unwrap();
            b.endpoint.send(ms(now), &[2; 50]).unwrap();
        }
        for (to_b, end) in [(true, &mut *a), (false, &mut *b)] {
            let sent = end.transmit(ms(now)).into_iter().filter(|_| !lose(now / 33));
            under_way.extend(sent.map(|datagram| (now + delay_ms, to_b, datagram)));
        }
        for (_, to_b, datagram) in under_way.extract_if(.., |(at, ..)| *at <= now) {
            let end = if to_b { &mut *b } else { &mut *a };
            end.receive(ms(now), &datagram).unwrap();
        }
        a.events();
    }
}

#[test]
fn round_trip_loss_and_bandwidth_of_a_game() {
    let (mut a, mut b) = (End::new(), End::new());
    play(&mut a, &mut b, 40, |frame| frame % 10 == 7);
    let stats = a.endpoint.stats();
    assert!((stats.loss - 0.1).abs() < 0.01, "{stats:?}");
    // 100 + 17 + 28 bytes every 33 ms, of which nine in ten arrive.
    let sent = 145.0 * 8.0 / 0.033;
    assert!((stats.sent_bps / sent - 1.0).abs() < 0.02, "{stats:?}");
    assert!((stats.acked_bps / sent - 0.9).abs() < 0.02, "{stats:?}");
    assert!((stats.received_bps / (95.0 * 8.0 / 0.033) - 0.9).abs() < 0.02, "{stats:?}");
    // There and back, and up to 20 ms until the other end speaks or acks.
    let rtt = a.endpoint.article_rtt().unwrap();
    assert!((80..=113).contains(&rtt.as_millis()), "{rtt:?}");
    assert_eq!(a.endpoint.rtt().min_rtt().map(|rtt| rtt.as_millis()), Some(100));
    let spread = a.endpoint.rtt_spread();
    assert!(spread.samples > 200 && spread.jitter < Duration::from_millis(4), "{spread:?}");
    assert_eq!(a.endpoint.controller().mode(), CongestionMode::Good);
    assert_eq!(a.endpoint.send_interval(), Duration::from_secs(1) / 30);
}

#[test]
fn a_long_round_trip_leads_to_bad_mode() {
    let (mut a, mut b) = (End::new(), End::new());
    play(&mut a, &mut b, 150, |_| false);
    assert_eq!(a.endpoint.controller().mode(), CongestionMode::Bad);
    assert_eq!(a.endpoint.send_interval(), Duration::from_millis(100));
}

/// No ack, no sample: the estimate would stay good for ever while nothing arrives.
#[test]
fn an_outage_is_bad_conditions() {
    let (mut a, mut b) = (End::new(), End::new());
    // Acks stop after 250 packets, 8.25 s; at 9.3 s nothing was acked for a second.
    play(&mut a, &mut b, 40, |frame| frame >= 250);
    assert_eq!(a.endpoint.controller().mode(), CongestionMode::Bad);
    assert!(a.endpoint.article_rtt().unwrap() < Duration::from_millis(120));
}

/// A clock that shows the end of time once, and is right again, ends neither looks nor verdicts.
#[test]
fn a_clock_that_jumps_and_comes_back_does_no_lasting_harm() {
    let (mut a, mut b) = (End::new(), End::new());
    let end_of_time = Instant::from_nanos(u64::MAX);
    for end in [&mut a, &mut b] {
        end.send(ms(0), b"x");
        end.endpoint.handle_timeout(end_of_time);
        end.events();
    }
    play(&mut a, &mut b, 40, |frame| frame % 10 == 7);
    let stats = a.endpoint.stats();
    assert!((stats.loss - 0.1).abs() < 0.02, "{stats:?}");
    assert!(stats.packets_lost > 20 && a.endpoint.in_flight() < 20, "{stats:?}");
}

/// Looks end when nothing is under way, so that an idle end can sleep; and begin again with traffic.
#[test]
fn an_idle_endpoint_has_no_deadline() {
    let (mut a, mut b) = (End::new(), End::new());
    assert_eq!(a.endpoint.poll_timeout(), None);
    let datagram = a.send(ms(0), b"x").remove(0);
    b.receive(ms(5), &datagram).unwrap();
    let (mut wakes, mut last) = (0, Instant::ZERO);
    for end in [&mut a, &mut b] {
        while let Some(at) = end.endpoint.poll_timeout() {
            assert!(at > last || wakes == 0 || end.endpoint.poll_timeout().is_some());
            last = at;
            end.endpoint.handle_timeout(at);
            end.transmit(at);
            wakes += 1;
            assert!(wakes < 120, "it never sleeps");
        }
    }
    a.send(ms(9_000), b"x");
    assert!(a.endpoint.poll_timeout().is_some());
}

/// Acked in bad mode, ten packets a second, as fast as in good mode: a wait for acks would be part of every
/// round trip, and a link of 220 ms could never leave bad mode.
#[test]
fn bad_mode_does_not_lengthen_the_round_trip() {
    let (mut a, mut b) = (End::new(), End::new());
    let mut under_way: Vec<(u64, bool, Vec<u8>)> = vec![];
    let mut next_send = [0, 0];
    for now in 0..40_000u64 {
        // A spike of two seconds to a round trip of 600 ms.
        let one_way = if (5_000..7_000).contains(&now) { 300 } else { 110 };
        for (at, end) in [&mut a, &mut b].into_iter().enumerate() {
            end.endpoint.handle_timeout(ms(now));
            if now >= next_send[at] {
                end.endpoint.send(ms(now), &[1; 100]).unwrap();
                next_send[at] = now + end.endpoint.send_interval().as_millis() as u64;
            }
            let sent = end.transmit(ms(now)).into_iter();
            under_way.extend(sent.map(|datagram| (now + one_way, at == 0, datagram)));
            end.events();
        }
        for (_, to_b, datagram) in under_way.extract_if(.., |(at, ..)| *at <= now) {
            let _late = if to_b { &mut b } else { &mut a }.receive(ms(now), &datagram);
        }
        let mode = a.endpoint.controller().mode();
        assert!(now != 8_000 || mode == CongestionMode::Bad, "the spike went unnoticed");
    }
    assert_eq!(a.endpoint.controller().mode(), CongestionMode::Good);
}

/// One packet each two seconds, of which one is lost: that is no outage.
#[test]
fn one_lost_packet_of_a_slow_sender_is_no_outage() {
    let (mut a, mut b) = (End::new(), End::new());
    for i in 0..20u64 {
        let datagram = a.send(ms(i * 2_000), b"x").remove(0);
        if i != 10 {
            b.receive(ms(i * 2_000 + 20), &datagram).unwrap();
            for acks in b.transmit(ms(i * 2_000 + 20)) {
                a.receive(ms(i * 2_000 + 40), &acks).unwrap();
            }
        }
        for step in 0..19 {
            a.endpoint.handle_timeout(ms(i * 2_000 + 50 + step * 100));
            assert_eq!(a.endpoint.controller().mode(), CongestionMode::Good, "after packet {i}");
        }
    }
    assert_eq!(a.endpoint.stats().packets_lost, 1);
}

/// A thousand packets a second: most leave the window before their ack can come. They count as lost, each is
/// reported as lost once, and the measured loss includes them.
#[test]
fn packets_that_leave_the_window_are_lost_and_counted() {
    let mut a = End::new();
    for i in 0..2_000 {
        a.send(ms(i), b"x");
        a.endpoint.handle_timeout(ms(i));
        a.endpoint.check_invariants();
    }
    let stats = a.endpoint.stats();
    assert_eq!((stats.packets_lost, a.endpoint.in_flight()), (2_000 - 256, 256));
    assert_eq!(stats.packets_lost, a.events().len() as u64 + stats.events_dropped);
    assert!(stats.loss > 0.9, "{stats:?}");
}

#[derive(Debug, Default)]
struct Counting {
    sent: (u32, usize),
    acked: (u32, usize),
    lost: (u32, usize),
}

fn count(what: &mut (u32, usize), bytes: usize) {
    *what = (what.0 + 1, what.1 + bytes);
}

impl CongestionController for Counting {
    fn on_sent(&mut self, _: Instant, bytes: usize) {
        count(&mut self.sent, bytes);
    }

    fn on_acked(&mut self, _: Instant, bytes: usize) {
        count(&mut self.acked, bytes);
    }

    fn on_lost(&mut self, _: Instant, bytes: usize) {
        count(&mut self.lost, bytes);
    }

    fn on_conditions(&mut self, _: Instant, _: Duration) {}

    fn send_interval(&self) -> Duration {
        Duration::from_millis(7)
    }
}

/// The numbers reported to a controller add up: packets and bytes sent are those acked and lost.
#[test]
fn a_controller_sees_every_packet() {
    let (config, controller) = (EndpointConfig::default(), Counting::default());
    let mut a = Endpoint::with_controller(config, controller).unwrap();
    let (mut b, mut pool, mut datagram) = (End::new(), FragmentPool::default(), Vec::new());
    for i in 0..600u64 {
        // At first so many that they leave the window, then few.
        let now = ms(if i < 400 { i } else { i * 10 });
        a.handle_timeout(now);
        a.send(now, &vec![1; i as usize * 5]).unwrap();
        while a.poll_datagram(now, &mut datagram) {
            if i % 3 == 0 {
                let _fragment = b.receive(now, &datagram);
            }
        }
        if i >= 300 {
            b.transmit(now).iter().for_each(|acks| drop(a.handle_datagram(now, acks, &mut pool)));
        }
    }
    a.handle_timeout(ms(60_000));
    let Counting { sent, acked, lost } = *a.controller();
    assert_eq!(a.in_flight(), 0);
    assert!(acked.0 > 50 && lost.0 > 300, "{acked:?} {lost:?}");
    assert_eq!((acked.0 + lost.0, acked.1 + lost.1), sent);
    assert_eq!(a.send_interval(), Duration::from_millis(7));
}

/// An end that only receives measures the received rate too, and some time after the last packet it is 0.
#[test]
fn a_listener_measures_what_it_receives_and_silence_is_no_rate() {
    let (mut a, mut b) = (End::new(), End::new());
    for i in 0..300u64 {
        let datagram = a.send(ms(i * 10), &[1; 100]).remove(0);
        b.receive(ms(i * 10), &datagram).unwrap();
        b.endpoint.handle_timeout(ms(i * 10));
    }
    let received = b.endpoint.stats().received_bps;
    assert!((received / (139.0 * 8.0 * 100.0) - 1.0).abs() < 0.06, "{received}");
    while let Some(at) = b.endpoint.poll_timeout() {
        b.endpoint.handle_timeout(at);
        b.transmit(at);
    }
    assert!(b.endpoint.stats().received_bps.abs() < f64::EPSILON);
}

/// Everything is lost from one moment on; a slow sender must not learn it only after its window.
#[test]
fn loss_shows_within_seconds_at_ten_packets_a_second() {
    let (mut a, mut b) = (End::new(), End::new());
    let mut seen_at = None;
    for i in 0..200u64 {
        let now = ms(i * 100);
        a.endpoint.handle_timeout(now);
        let datagram = a.send(now, b"x").remove(0);
        if i < 100 {
            b.receive(now, &datagram).unwrap();
            b.transmit(now).iter().for_each(|acks| drop(a.receive(now, acks)));
        }
        if a.endpoint.stats().loss > 0.5 {
            seen_at.get_or_insert(i * 100);
        }
    }
    let seen_at = seen_at.unwrap();
    assert!((11_000..15_000).contains(&seen_at), "{seen_at} ms");
}

/// An ack that comes when its packet should be called lost does not make it acked, whichever of the two
/// calls the driver makes first.
#[test]
fn an_ack_after_the_timeout_is_late_in_whatever_order_the_driver_calls() {
    for timeout_first in [false, true] {
        let (mut a, mut b) = (End::new(), End::new());
        let datagram = a.send(ms(0), b"x").remove(0);
        b.receive(ms(500), &datagram).unwrap();
        let acks = b.transmit(ms(500)).remove(0);
        if timeout_first {
            a.endpoint.handle_timeout(ms(1_200));
        }
        a.receive(ms(1_200), &acks).unwrap();
        a.endpoint.handle_timeout(ms(1_200));
        assert_eq!((a.events(), a.endpoint.article_rtt()), (vec![lost(0)], None));
    }
}

/// The clock is an hour ahead for one call, at both ends: nothing waits for that hour to pass.
#[test]
fn a_clock_an_hour_ahead_for_a_moment_delays_nothing_for_an_hour() {
    let (mut a, mut b) = (End::new(), End::new());
    let ahead = ms(3_600_000);
    let datagram = b.send(ahead, b"x").remove(0);
    a.send(ahead, b"lost");
    a.receive(ahead, &datagram).unwrap();
    a.transmit(ahead);
    for i in 0..100u64 {
        let now = ms(i * 100);
        for end in [&mut a, &mut b] {
            end.endpoint.handle_timeout(now);
        }
        let datagram = a.send(now, b"x").remove(0);
        b.receive(now, &datagram).unwrap();
        b.transmit(now).iter().for_each(|acks| drop(a.receive(now, acks)));
    }
    // What was sent an hour ahead is lost, a second after it was found to lie ahead.
    let (stats, events) = (a.endpoint.stats(), a.events());
    assert_eq!(events.iter().filter(|event| **event == lost(0)).count(), 1);
    assert!(stats.packets_acked >= 95 && a.endpoint.in_flight() <= 1, "{stats:?}");
}

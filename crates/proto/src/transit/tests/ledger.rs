//! Verdicts on datagrams: acknowledged once, lost when they should be, and what a late ack teaches.

use alloc::vec;
use alloc::vec::Vec;

use haulier_control::PathId;

use super::*;
use crate::transit::items::MIN_ROOM;

fn fates(sent: &Ledger) -> Vec<Fate> {
    sent.iter_from(0).map(|datagram| datagram.fate).collect()
}

/// Sends datagrams, each a millisecond after the one before.
fn send_apart(count: u64) -> Sent {
    let mut sent = Sent::new();
    (0..count).for_each(|millis| send(&mut sent, at(millis), 1));
    sent
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
        sent.skip();
    }
    send(&mut sent, at(0), 20);
    for number in skipped {
        assert_eq!(acked(&mut sent, at(1), &ack(number, 0, &[])), Err(NeverSent));
        assert_eq!(acked(&mut sent, at(1), &ack(number + 9, 30, &[])), Err(NeverSent));
        assert!(acked(&mut sent, at(1), &ack(number + 9, 8, &[(1, 30)])).is_ok());
    }
    assert_eq!(sent.in_flight(), 990 - 39 * 10);
}

/// However many datagrams are in flight, an ack of any skipped number is caught, and once no record is
/// older it has no effect. The newest 16 were remembered once, and acks of all but the newest 4,300 numbers
/// passed [H-2.2c].
#[test]
fn a_skipped_number_is_remembered_for_as_long_as_an_ack_counts() {
    let mut sent = Sent::new();
    // As many as may be in flight when as many were acknowledged.
    for largest in (999..30_000_u64).step_by(1_000) {
        send(&mut sent, at(0), 1_000);
        assert_eq!(acked(&mut sent, at(1), &ack(largest, 999, &[])).unwrap().len(), 1_000);
        assert_eq!(lost(&mut sent, at(1)), [0; 0]);
    }
    let mut skipped = Vec::new();
    while sent.has_slice_room() {
        skipped.push(sent.next_number());
        sent.skip();
        send(&mut sent, at(2), 255);
    }
    assert!(skipped.len() > 500, "{} of them", skipped.len());
    for &number in &skipped {
        assert_eq!(acked(&mut sent, at(3), &ack(number, 0, &[])), Err(NeverSent), "{number}");
    }
    let all_but = ack(sent.next_number() - 4_300, 8_000, &[]);
    assert_eq!(acked(&mut sent, at(3), &all_but), Err(NeverSent));
    let before = sent.memory_bytes();
    for &number in &skipped {
        assert_eq!(acked(&mut sent, at(3), &ack(number + 255, 254, &[])).unwrap().len(), 255);
    }
    assert_eq!(lost(&mut sent, at(3)), [0; 0]);
    sent.trim(0);
    assert_eq!(acked(&mut sent, at(4), &ack(skipped[0], 0, &[])).unwrap(), [0; 0]);
    sent.rest();
    assert!(before > 500 * 8 && sent.memory_bytes() < 100, "{before}, {}", sent.memory_bytes());
    sent.check_invariants();
}

/// The chance that false acks pass (`skipped.rs`): peers name some numbers of each 256 that they did not get.
/// After `n` of those no more than `e^(-n / 256)` of a thousand peers pass, so with 3,537 one in a million.
#[test]
fn false_acks_pass_with_the_chance_that_is_promised() {
    let first = |count: u64| u32::try_from(count).unwrap();
    let passes = |mut state: u64, named: u64, windows: u64| {
        let mut draw = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) % 256
        };
        let mut sent = Sent::new();
        (0..windows).all(|window| {
            let (skipped, from) = (draw(), draw());
            for number in 256 * window..256 * (window + 1) {
                match number % 256 == skipped {
                    true => sent.skip(),
                    false => sent.on_unrecorded(number),
                }
            }
            // As a ring: up to the end of the 256, and from their start.
            let (start, end) = (256 * window, 256 * window + 255);
            let above = named.min(256 - from);
            let upper = ack(start + from + above - 1, first(above - 1), &[]);
            let lower =
                named.checked_sub(above + 1).map(|more| ack(start + more, first(more), &[]));
            assert!(sent.next_number() == end + 1);
            [Some(upper), lower].iter().flatten().all(|ack| sent.begin_ack(ack).is_ok())
        })
    };
    for (named, windows) in [(1, 64), (8, 32), (32, 16), (128, 4), (255, 1), (200, 3)] {
        let passed = (0..1_000).filter(|&seed| passes(seed, named, windows)).count();
        let promised = (-((named * windows) as f64) / 256.0).exp();
        // Three standard deviations.
        let most = 1_000.0 * promised + 3.0 * (1_000.0 * promised * (1.0 - promised)).sqrt();
        assert!((passed as f64) <= most, "{named} of 256, {windows} times: {passed} pass");
    }
    assert!((-3_537.0_f64 / 256.0).exp() < 1e-6);
}

/// The news in an ack, and the steps that it took.
fn counted(sent: &mut Sent, frame: &AckFrame) -> (u64, u64) {
    let mut walk = sent.begin_ack(frame).unwrap();
    let news = core::iter::from_fn(|| sent.poll_acked(at(1), &mut walk)).count();
    sent.end_ack(&walk);
    (news as u64, walk.steps())
}

/// Each of the numbers that an ack names can be news once, and costs nothing later.
#[test]
fn a_flood_of_acks_costs_bounded_work() {
    let mut sent = Sent::new();
    send(&mut sent, at(0), 8191);
    let frame = ack(8190, 511, &[(1, 511)]);
    let (mut news, mut steps) = (0, 0);
    for _ in 0..10_000 {
        let counted = counted(&mut sent, &frame);
        (news, steps) = (news + counted.0, steps + counted.1);
    }
    assert_eq!(news, 1023);
    assert!(sent.rtt().latest_rtt().is_some());
    assert!(steps <= 10_000 * 4 + 3 * 1023, "two ranges and two runs each, not {steps} steps");
    sent.check_invariants();
}

/// An honest peer sends an ack for every 16 datagrams, which names the newest 4096 numbers except each 37th,
/// which is lost. However many numbers the acks name, each datagram is looked at a few times only.
#[test]
fn acks_that_name_thousands_cost_what_is_news() {
    let mut sent = Sent::new();
    send(&mut sent, at(0), 8191);
    let (mut news, mut steps, mut acks) = (0, 0, 0);
    for largest in (15..8191_u64).step_by(16).filter(|largest| largest % 37 != 0) {
        let mut frame = ack(largest, u32::try_from(largest % 37 - 1).unwrap(), &[]);
        let mut rest = largest - largest % 37;
        while rest >= 37 && frame.push_run(1, 36) {
            rest -= 37;
        }
        let counted = counted(&mut sent, &frame);
        (news, steps, acks) = (news + counted.0, steps + counted.1, acks + 1);
    }
    assert!(news > 7_900, "{news}");
    assert!(steps <= 3 * news + acks * 32 * 2, "{steps} steps for {acks} acks");
    sent.check_invariants();
}

#[test]
fn contents_are_lost_three_datagrams_or_nine_eighths_of_a_round_trip_later() {
    let mut sent = Sent::new();
    send(&mut sent, at(0), 5);
    assert_eq!(acked(&mut sent, at(80), &ack(3, 0, &[])).unwrap(), [3]);
    assert_eq!(lost(&mut sent, at(80)), [0]);
    assert_eq!(sent.poll_timeout(), Some(at(90)));
    assert_eq!(lost(&mut sent, at(89)), [0; 0]);
    assert_eq!(lost(&mut sent, at(90)), [1, 2]);
    assert_eq!(sent.in_flight(), 1, "nothing after 4 was acknowledged");
    assert_eq!(acked(&mut sent, at(91), &ack(4, 4, &[])).unwrap(), [4], "the others are lost");
    assert_eq!((sent.poll_timeout(), sent.lost()), (None, 3));
}

/// A skipped number is no datagram that was sent later.
#[test]
fn a_skipped_number_does_not_hasten_a_loss() {
    let mut sent = Sent::new();
    send(&mut sent, at(0), 2);
    sent.skip();
    send(&mut sent, at(0), 2);
    assert!(acked(&mut sent, at(80), &ack(3, 0, &[])).is_ok());
    assert_eq!(lost(&mut sent, at(80)), [0; 0]);
    assert!(acked(&mut sent, at(80), &ack(4, 1, &[])).is_ok());
    assert_eq!(lost(&mut sent, at(80)), [0]);
}

#[test]
fn a_datagram_that_was_overtaken_is_lost_until_it_arrives_late() {
    let mut sent = send_apart(6);
    assert!(acked(&mut sent, at(10), &ack(0, 0, &[])).is_ok());
    assert!(acked(&mut sent, at(11), &ack(3, 1, &[])).is_ok());
    settle(&mut sent);
    assert_eq!(fates(&sent)[..4], [Fate::Acked, Fate::Lost, Fate::Acked, Fate::Acked]);
    assert_eq!((fates(&sent)[4], sent.settled()), (Fate::InFlight, 4));
    assert_eq!(sent.in_flight(), 3, "what was in it waits for longer");
    let (late, _) = walk(&mut sent, at(12), &ack(3, 3, &[])).unwrap();
    let late: Vec<_> = late.iter().map(|acked| (acked.datagram.number, acked.before)).collect();
    assert_eq!(late, [(1, Fate::Lost)], "each is news once");
    assert_eq!((fates(&sent)[1], sent.in_flight()), (Fate::Acked, 2));
}

/// What was in a datagram was handed back as lost, and is not again when it arrives after all.
#[test]
fn contents_that_arrive_late_stay_lost() {
    let mut sent = send_apart(4);
    assert_eq!(acked(&mut sent, at(50), &ack(3, 2, &[])).unwrap(), [1, 2, 3]);
    assert_eq!(lost(&mut sent, at(50)), [0]);
    let (late, is_sample) = walk(&mut sent, at(51), &ack(3, 3, &[])).unwrap();
    assert_eq!((late.len(), late[0].datagram.number, late[0].was_lost), (1, 0, true));
    assert!(!is_sample && walk(&mut sent, at(52), &ack(3, 3, &[])).unwrap().0.is_empty());
}

/// What is in a datagram is lost after three later ones; once it was seen that they overtake each other, only
/// as much later.
#[test]
fn contents_wait_as_long_as_reordering_reaches() {
    let lost = |sent: &mut Sent| core::iter::from_fn(|| sent.poll_lost(at(30))).count();
    let mut sent = send_apart(30);
    acked(&mut sent, at(30), &ack(9, 0, &[])).unwrap();
    assert_eq!(lost(&mut sent), 7, "two are not three later ones");
    while sent.poll_fate().is_some() {}
    // The first was overtaken by 9 ms, and a quarter more is waited from then on.
    acked(&mut sent, at(30), &ack(9, 0, &[(8, 1)])).unwrap();
    acked(&mut sent, at(30), &ack(20, 0, &[])).unwrap();
    assert_eq!(lost(&mut sent), 2, "7 and 8 by 13 and 12 ms, and not 10 by 10");
}

/// After a datagram that counted as lost has arrived 2 ms behind its successors, others get as long, and a
/// quarter more. Those that an ack names for the first time, however far below its largest, teach nothing.
#[test]
fn reordering_is_learned() {
    let mut sent = send_apart(20);
    for number in [2, 1] {
        assert!(acked(&mut sent, at(30), &ack(number, 0, &[])).is_ok());
    }
    settle(&mut sent);
    assert_eq!(fates(&sent)[..3], [Fate::Lost, Fate::Acked, Fate::Acked], "nothing is learned");
    for number in [0, 4] {
        assert!(acked(&mut sent, at(30), &ack(number, 0, &[])).is_ok());
    }
    settle(&mut sent);
    assert_eq!(fates(&sent)[3], Fate::InFlight, "1 ms is not long any more");
    assert!(acked(&mut sent, at(30), &ack(6, 0, &[])).is_ok());
    settle(&mut sent);
    assert_eq!(fates(&sent)[3], Fate::Lost);
}

/// Reordering that is over is waited for in 32 recoveries at most: it only grew.
#[test]
fn reordering_that_is_over_is_unlearned() {
    let mut sent = send_apart(60);
    acked(&mut sent, at(60), &ack(49, 0, &[])).unwrap();
    settle(&mut sent);
    acked(&mut sent, at(60), &ack(49, 0, &[(48, 1)])).unwrap();
    assert!(sent.timing.reordering() >= ms(40), "one that counted as lost has arrived");
    let mut recoveries = 0;
    while !sent.timing.reordering().is_zero() {
        // Of ten, a quarter of a second apart, two are lost, and nothing overtakes anything.
        for n in 0..10 {
            let now = at(1_000 + 2_500 * recoveries + 250 * n);
            send(&mut sent, now, 1);
            let number = sent.next_number() - 1;
            if n % 5 != 3 {
                assert!(acked(&mut sent, now, &ack(number, 0, &[])).is_ok());
                assert!(lost(&mut sent, now).len() <= 60);
            }
        }
        recoveries += 1;
        assert!(recoveries <= 32, "{:?}", sent.timing.reordering());
    }
    assert!(recoveries >= 8, "for some time it is: {recoveries}");
}

/// Where it goes on it is kept, although nothing counts as lost any more that arrives: an earlier ack names
/// what was sent later.
#[test]
fn reordering_that_goes_on_is_kept() {
    let mut sent = send_apart(60);
    acked(&mut sent, at(60), &ack(49, 0, &[])).unwrap();
    settle(&mut sent);
    acked(&mut sent, at(60), &ack(49, 0, &[(48, 1)])).unwrap();
    for round in 0..200 {
        let now = |ms: u64| at(1_000 + 250 * round + ms);
        let first = sent.next_number();
        (0..3).for_each(|n| send(&mut sent, now(20 * n), 1));
        // The third arrives before the second, and the first never.
        assert_eq!(acked(&mut sent, now(90), &ack(first + 2, 0, &[])).unwrap().len(), 1);
        assert!(lost(&mut sent, now(90)).contains(&first));
        let (late, _) = walk(&mut sent, now(95), &ack(first + 2, 1, &[])).unwrap();
        let before: Vec<_> = late.iter().map(|it| (it.datagram.number, it.before)).collect();
        assert_eq!(before, [(first + 1, Fate::InFlight)], "it was waited for");
        lost(&mut sent, now(240));
        assert!(sent.timing.reordering() >= ms(25), "{round}: {:?}", sent.timing.reordering());
    }
}

/// The second path of a connection, in whose place the first was. What was sent on the first is acknowledged
/// or lost, and teaches the second nothing: no RTT, no reordering.
#[test]
fn a_new_path_learns_nothing_of_the_old_one() {
    let mut sent = send_apart(30);
    acked(&mut sent, at(40), &ack(9, 0, &[])).unwrap();
    settle(&mut sent);
    sent.timing = Timing::validated(PathId::FIRST.next(), at(50), ms(70));
    assert_eq!(sent.timing.probe_timeout(), ms(70 + 4 * 35 + 20), "by what its challenge took");
    let (late, is_sample) = walk(&mut sent, at(51), &ack(29, 29, &[])).unwrap();
    assert!(late.len() == 29 && !is_sample);
    assert_eq!((sent.rtt().latest_rtt(), sent.timing.reordering()), (None, ms(0)));
    let number = sent.next_number();
    send(&mut sent, at(60), 1);
    let (acked, is_sample) = walk(&mut sent, at(160), &ack(number, 0, &[])).unwrap();
    assert!(is_sample && acked[0].datagram.path == PathId::FIRST.next());
    assert_eq!(sent.rtt().min_rtt(), Some(ms(100)));
}

/// Silence ends what counts as in flight, and loses nothing: a later ack does that.
#[test]
fn what_is_given_up_is_not_lost_yet() {
    let mut sent = Sent::new();
    send(&mut sent, at(0), 3_000);
    assert_eq!(acked(&mut sent, at(1), &ack(9, 9, &[])).unwrap().len(), 10);
    assert_eq!(sent.give_up(1_000), 2_000, "of those from number 1000 on");
    assert_eq!((sent.settled(), sent.in_flight()), (3_000, 2_990));
    assert_eq!(lost(&mut sent, at(1)), [0; 0]);
    let (late, _) = walk(&mut sent, at(1), &ack(2_990, 0, &[])).unwrap();
    assert_eq!((late[0].before, late[0].was_lost), (Fate::GivenUp, false));
    assert_eq!(lost(&mut sent, at(1)).len(), 2_978);
    assert!(lost(&mut sent, at(5_000)).len() == 2 && sent.in_flight() == 9);
    sent.trim(KEPT);
    assert!(sent.get(9).is_none() && sent.iter_from(0).count() <= KEPT);
}

/// An ack asks for no ack: its record has a fate, and nothing waits for that.
#[test]
fn an_ack_alone_starts_no_timer() {
    let mut sent = Sent::new();
    let ack_only = Outgoing { is_ack_eliciting: false, ..outgoing(&mut sent) };
    sent.on_sent(at(0), ack_only);
    assert_eq!((sent.in_flight(), sent.poll_timeout()), (0, None));
    send(&mut sent, at(1), 1);
    let (acked, is_sample) = walk(&mut sent, at(9), &ack(1, 0, &[])).unwrap();
    assert!(acked.len() == 1 && is_sample);
    assert_eq!(lost(&mut sent, at(9)), [0; 0]);
    assert_eq!(fates(&sent), [Fate::Lost, Fate::Acked]);
    assert_eq!(sent.lost(), 0);
}

#[test]
fn probes_come_later_and_later_and_lose_nothing() {
    let mut sent = Sent::new();
    send(&mut sent, at(0), 1);
    assert!(acked(&mut sent, at(100), &ack(0, 0, &[])).is_ok());
    send(&mut sent, at(100), 1);
    let mut probes = Vec::new();
    while probes.len() < 6 {
        let now = sent.poll_timeout().unwrap();
        assert_eq!(lost(&mut sent, now), [0; 0]);
        assert!(!sent.on_pto(at(100)) && sent.on_pto(now) && !sent.on_pto(now));
        probes.push(now.as_nanos() / 1_000_000 - 100);
        send(&mut sent, now, 1);
    }
    assert_eq!(probes, [320, 960, 2240, 4240, 6240, 8240]);
    assert!(acked(&mut sent, at(8400), &ack(7, 0, &[])).is_ok());
    assert_eq!(lost(&mut sent, at(8400)), [1, 2, 3, 4, 5, 6]);
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
    assert_eq!(lost(&mut sent, at(90)), [0], "its timeout restarted");

    // Half a second back, less than a round trip before the ack.
    let mut sent = Sent::new();
    send(&mut sent, at(500), 1);
    assert_eq!(lost(&mut sent, at(40)), [0; 0]);
    assert!(acked(&mut sent, at(45), &ack(0, 0, &[])).is_ok());
    assert_eq!(sent.rtt().min_rtt(), None, "5 ms since its timeout restarted are no round trip");
    send(&mut sent, at(50), 1);
    assert!(acked(&mut sent, at(130), &ack(1, 0, &[])).is_ok());
    assert_eq!(sent.rtt().min_rtt(), Some(ms(80)), "what was sent since is timed");
}

#[test]
fn an_ack_of_unknown_delay_is_no_sample() {
    let mut sent = Sent::new();
    send(&mut sent, at(0), 1);
    let (acked, is_sample) = walk(&mut sent, at(20_000), &AckFrame::new(0, ms(17_000), 0)).unwrap();
    assert_eq!((acked.len(), is_sample, sent.rtt().latest_rtt()), (1, false, None));
}

/// What was put aside for a datagram that was never sent is in no other.
#[test]
fn items_of_a_datagram_that_was_not_sent_are_dropped() {
    let mut sent = Sent::new();
    sent.add(Item::Block(7));
    send(&mut sent, at(0), 2);
    assert_eq!(acked(&mut sent, at(1), &ack(1, 1, &[])).unwrap(), [0, 1]);
}

/// [H-2.2b] More may be in flight as more was acknowledged, up to 131,072. The last 512 are not for slices,
/// so that none makes the oldest one count as lost.
#[test]
fn slices_wait_before_the_oldest_makes_room() {
    let mut sent = Sent::new();
    send(&mut sent, at(0), 7679);
    assert!(sent.has_slice_room());
    send(&mut sent, at(0), 1);
    assert!(!sent.has_slice_room() && !sent.is_full());
    assert_eq!(acked(&mut sent, at(1), &ack(2047, 2047, &[])).unwrap().len(), 2048);
    assert!(sent.has_slice_room());
    send(&mut sent, at(1), 16_384 - 7680);
    assert!(sent.is_full(), "eight for each that was acknowledged");
    assert_eq!(acked(&mut sent, at(2), &ack(16_383, 14_335, &[])).unwrap().len(), 14_336);
    sent.trim(KEPT);
    let room = 131_072 - sent.iter_from(0).count();
    send(&mut sent, at(2), room - 1);
    assert!(!sent.is_full());
    send(&mut sent, at(2), 1);
    assert!(sent.is_full(), "and no more than the peer's window ever has");
}

#[test]
fn the_oldest_makes_room_and_memory_is_given_back() {
    let mut sent = Sent::new();
    send(&mut sent, at(0), 8192);
    assert!(sent.is_full() && sent.in_flight() == 8192);
    assert_eq!(lost(&mut sent, at(0)), [0]);
    assert!(!sent.is_full() && sent.in_flight() == 8191);
    assert_eq!(acked(&mut sent, at(1), &ack(8191, 0, &[])).unwrap(), [8191]);
    assert_eq!(lost(&mut sent, at(5000)).len(), 8190);
    assert_eq!((sent.in_flight(), sent.poll_timeout(), sent.lost()), (0, None, 8191));
    sent.trim(0);
    for now in [6000, 7000] {
        send(&mut sent, at(now), 1);
        let number = sent.next_number() - 1;
        assert_eq!(acked(&mut sent, at(now + 1), &ack(number, 0, &[])), Ok(vec![number]));
        assert_eq!(lost(&mut sent, at(now + 1)), [0; 0]);
        sent.trim(0);
    }
    assert!(
        sent.iter_from(0).count() == 0 && sent.capacity() <= 2 * MIN_ROOM,
        "{}",
        sent.capacity()
    );
}

//! Peers that start over, strays of their former life, and forgeries.

use std::collections::BTreeSet;

use haulier_article::endpoint::EndpointEvent;
use haulier_article::packet::numbered::NumberedPacket;
use haulier_article::{PacketDropReason, Sequence};

use super::{End, acked, forged_fragment, read};
use crate::support::{data, ms};

/// A forged fragment with a number far ahead moves the reassembly window; honest fragments would then be
/// too old for minutes. The next honest packet that came whole puts it right.
#[test]
fn a_forged_jump_of_the_reassembly_window_heals_with_the_next_packet() {
    let (mut a, mut b) = (End::new(), End::new());
    let large = data(1, 3000);
    let deliver = |b: &mut End, datagrams: Vec<Vec<u8>>| {
        let brought: Vec<_> = datagrams.iter().map(|d| b.receive(ms(1), d)).collect();
        brought.last().unwrap().clone()
    };
    assert!(deliver(&mut b, a.send(ms(0), &large)).unwrap().is_some());
    assert_eq!(b.receive(ms(1), &forged_fragment(20_000)), Ok(None));
    assert_eq!(deliver(&mut b, a.send(ms(1), &large)), Err(PacketDropReason::TooOld));
    assert!(deliver(&mut b, a.send(ms(2), b"small")).unwrap().is_some());
    assert!(deliver(&mut b, a.send(ms(3), &large)).unwrap().is_some());
}

/// The server restarts and counts from 0; the client hears it again after a second, fragments and all.
#[test]
fn a_restarted_peer_is_heard_again() {
    let mut b = End::new();
    let mut old = End::starting_at(30_000);
    old.send(ms(0), &data(1, 3000)).iter().for_each(|d| drop(b.receive(ms(0), d)));
    let mut new = End::new();
    let mut heard = vec![];
    for i in 0..60u64 {
        let now = ms(100 + i * 33);
        let payload = if i % 2 == 0 { data(2, 3000) } else { vec![1; 20] };
        for datagram in new.send(now, &payload) {
            if let Ok(Some(payload)) = b.receive(now, &datagram) {
                heard.push((i, payload.len()));
            }
        }
    }
    assert_eq!(heard[..3], [(31, 20), (32, 3000), (33, 20)], "from the first after a second on");
    assert_eq!(heard.len(), 29);
}

/// A restart so soon that the new numbers lie within the old window. None of the new packets was accepted,
/// so none may be reported as acked, and it must not stay so for long.
#[test]
fn a_restart_within_the_window_gives_no_false_acks_and_heals() {
    for (old_packets, hertz) in [(200u64, 60u64), (20, 60), (200, 10), (33, 30)] {
        let (mut old, mut b) = (End::new(), End::new());
        let step = 1_000 / hertz;
        for i in 0..old_packets {
            let datagram = old.send(ms(i * step), b"old").remove(0);
            b.receive(ms(i * step), &datagram).unwrap();
            b.send(ms(i * step), b"answer");
        }
        // The program is back two seconds later.
        let start = old_packets * step + 2_000;
        let (mut new, mut first_heard) = (End::new(), None);
        let mut accepted = BTreeSet::new();
        for i in 0..hertz * 8 {
            let now = ms(start + i * step);
            new.endpoint.handle_timeout(now);
            let datagram = new.send(now, b"new").remove(0);
            if b.receive(now, &datagram).is_ok() {
                accepted.insert(i as u16);
                first_heard = first_heard.or(Some(i * step));
            }
            b.send(now, b"answer").iter().for_each(|answer| drop(new.receive(now, answer)));
            for event in new.events() {
                if let EndpointEvent::Acked { sequence } = event {
                    assert!(accepted.contains(&sequence.get()), "{sequence:?} was not accepted");
                }
            }
        }
        assert!(first_heard.unwrap() < 3_400, "deaf for {first_heard:?} ms");
        assert!(new.endpoint.stats().packets_acked > 0);
    }
}

/// Once a new life is proven a stray of the old one must not take the window back.
#[test]
fn a_stray_of_the_old_life_is_not_taken_for_the_new() {
    let mut b = End::new();
    let mut old = End::starting_at(30_000);
    let stray = old.send(ms(0), b"stray").remove(0);
    let datagram = old.send(ms(0), b"old").remove(0);
    b.receive(ms(0), &datagram).unwrap();
    // The new life sends packets of two fragments only, so what proves it is a fragment.
    let mut new = End::new();
    let (mut heard, mut strays) = (0, 0);
    for i in 0..60u64 {
        let now = ms(100 + i * 33);
        for datagram in new.send(now, &data(2, 1500)) {
            let lives = b.endpoint.stats().restarts;
            heard += u32::from(matches!(b.receive(now, &datagram), Ok(Some(_))));
            if b.endpoint.stats().restarts > lives {
                assert_eq!(b.receive(now, &stray), Err(PacketDropReason::TooOld));
                strays += 1;
            }
        }
    }
    assert_eq!((b.endpoint.stats().restarts, strays), (1, 1));
    assert!(heard >= 28, "{heard}");
}

/// A fragment with a number that may be forged does not disprove that the peer has started over.
#[test]
fn forged_fragments_do_not_keep_a_restarted_peer_out() {
    let mut b = End::new();
    let mut old = End::starting_at(30_000);
    old.send(ms(0), b"old").iter().for_each(|datagram| drop(b.receive(ms(0), datagram)));
    let mut new = End::new();
    let mut heard = 0;
    for i in 0..120u64 {
        let now = ms(100 + i * 33);
        if i % 20 == 0 {
            assert_eq!(b.receive(now, &forged_fragment(30_010 + i as u16)), Ok(None));
        }
        let datagrams = new.send(now, b"new");
        heard += datagrams.iter().filter(|datagram| b.receive(now, datagram).is_ok()).count();
        if heard > 0 {
            break;
        }
    }
    assert_eq!(heard, 1, "it was never heard");
}

/// A restarted peer sends only fragments: reassembly must start over with it.
#[test]
fn a_restarted_peer_of_fragments_alone_is_heard() {
    let mut b = End::new();
    let mut old = End::starting_at(30_000);
    old.send(ms(0), &data(1, 3000)).iter().for_each(|datagram| drop(b.receive(ms(0), datagram)));
    let (mut new, mut heard) = (End::new(), 0);
    for i in 0..60u64 {
        for datagram in new.send(ms(100 + i * 33), &data(2, 1500)) {
            heard += u32::from(matches!(b.receive(ms(100 + i * 33), &datagram), Ok(Some(_))));
        }
    }
    assert!(heard >= 28, "{heard}");
}

/// A link that makes copies, up to a second late, and a game that pauses: copies are no new life.
#[test]
fn late_copies_after_a_pause_are_no_restart() {
    let (mut a, mut b) = (End::new(), End::new());
    let datagrams: Vec<_> = (0..60).flat_map(|i| a.send(ms(i * 16), b"x")).collect();
    for (i, datagram) in (0..).zip(&datagrams) {
        b.receive(ms(i * 16), datagram).unwrap();
    }
    for (i, datagram) in (0..).zip(&datagrams) {
        assert_eq!(b.receive(ms(960 + i * 16), datagram), Err(PacketDropReason::Duplicate));
    }
    assert_eq!(b.endpoint.stats().restarts, 0);
}

/// Acks that were put aside for ack packets and not sent yet: after a restart of the peer they would name
/// packets of its new life that this end has not received.
#[test]
fn acks_that_wait_do_not_outlive_the_life_they_are_of() {
    let (mut old, mut b) = (End::new(), End::new());
    for datagram in (0..192).flat_map(|_| old.send(ms(0), b"old")) {
        b.receive(ms(0), &datagram).unwrap();
    }
    let (mut new, mut accepted) = (End::new(), BTreeSet::new());
    for i in 0..200u16 {
        let now = ms(2_000 + u64::from(i) * 17);
        let datagram = new.send(now, b"new").remove(0);
        if b.receive(now, &datagram).is_ok() {
            accepted.insert(i);
        }
    }
    assert!(b.endpoint.stats().restarts == 1 && !accepted.is_empty());
    for answer in b.transmit(ms(6_000)) {
        let NumberedPacket::Ack(acks) = read(&answer) else { panic!("{answer:?}") };
        let named: Vec<u16> = acks.sequences().map(Sequence::get).collect();
        assert!(named.iter().all(|number| accepted.contains(number)), "{named:?}");
    }
}

/// The link loses every second packet, the peer crashes and begins 150 numbers back. Its packets fell into
/// the gaps, and each one that was used counted as a sign that there had been no restart: for 15 seconds
/// every second packet was refused, and none was acknowledged.
#[test]
fn a_restart_into_the_gaps_of_the_window_heals() {
    let (mut old, mut b) = (End::new(), End::new());
    for i in 0..200 {
        let datagram = old.send(ms(i * 100), b"old").remove(0);
        if i % 2 == 0 {
            b.receive(ms(i * 100), &datagram).unwrap();
        }
    }
    let mut new = End::starting_at(50);
    for i in 0..60 {
        let now = ms(22_000 + i * 100);
        let datagram = new.send(now, b"new").remove(0);
        let is_known = i > 30;
        assert!(b.receive(now, &datagram).is_ok() || !is_known, "packet {i} was refused");
        assert_eq!(
            b.receive(now, &datagram),
            Err(PacketDropReason::Duplicate),
            "packet {i}, a copy"
        );
        new.events();
        b.send(now, b"answer").iter().for_each(|answer| drop(new.receive(now, answer)));
        let is_acked = new.events().contains(&acked(50 + i as u16));
        assert!(is_acked || !is_known, "packet {i} was not acknowledged");
    }
    assert_eq!(b.endpoint.stats().restarts, 1);
}

/// What was accepted since the restart, in gaps, before the restart was known: a copy is not delivered again.
#[test]
fn a_restart_that_is_found_late_delivers_nothing_twice() {
    let (mut b, mut old) = (End::new(), End::starting_at(250));
    b.receive(ms(0), &old.send(ms(0), b"old")[0]).unwrap();
    let mut new = End::new();
    let datagrams: Vec<_> =
        (0..40).map(|i| new.send(ms(2_000 + i * 100), b"new").remove(0)).collect();
    for (i, datagram) in (0..).zip(&datagrams) {
        assert!(b.receive(ms(2_000 + i * 100), datagram).unwrap().is_some(), "{i}");
    }
    assert_eq!(b.endpoint.stats().restarts, 1);
    for datagram in &datagrams {
        assert_eq!(b.receive(ms(6_000), datagram), Err(PacketDropReason::Duplicate));
    }
}

/// Packets of which the link lost a fragment leave numbers behind that are newer than every packet that came
/// whole. After a restart the peer's packets with these numbers were refused as evicted, on a healthy link.
#[test]
fn numbers_left_unfinished_before_a_restart_are_free_after_it() {
    let (mut old, mut b) = (End::new(), End::new());
    for i in 0..20 {
        let first = old.send(ms(i * 100), &data(1, 3_000)).remove(0);
        assert_eq!(b.receive(ms(i * 100), &first), Ok(None));
    }
    let mut new = End::new();
    for i in 0..20 {
        let now = ms(7_000 + i * 100);
        b.pool.handle_timeout(now);
        let datagrams = new.send(now, &data(2, 3_000));
        let brought = datagrams.iter().map(|datagram| b.receive(now, datagram)).last();
        assert_eq!(brought, Some(Ok(Some(data(2, 3_000)))), "packet {i}");
    }
}

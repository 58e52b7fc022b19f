//! Ack packets, and which packets are acknowledged.

use std::time::Duration;

use haulier_article::Sequence;
use haulier_article::ack::AckBits;
use haulier_article::endpoint::EndpointConfig;
use haulier_article::packet::numbered::NumberedPacket;

use super::{End, acked, read};
use crate::support::ms;

/// Without them the other end would believe that everything it sends is lost. A packet that comes alone is
/// answered at once: a wait would be part of its round trip.
#[test]
fn an_end_that_sends_nothing_answers_with_ack_packets() {
    let (mut a, mut b) = (End::new(), End::new());
    let mut datagrams = a.send(ms(0), b"x");
    datagrams.extend(a.send(ms(5), b"y"));
    b.receive(ms(10), &datagrams[0]).unwrap();
    assert_eq!(b.endpoint.poll_timeout(), Some(ms(10)));
    let acks = b.transmit(ms(10));
    assert_eq!(acks.len(), 1);
    assert_eq!(read(&acks[0]), NumberedPacket::Ack(AckBits { ack: Sequence::new(0), bits: 0 }));
    assert_eq!(a.receive(ms(20), &acks[0]), Ok(None));
    assert_eq!(a.events(), [acked(0)]);
    assert_eq!(a.endpoint.article_rtt(), Some(Duration::from_millis(20)));
    // The next is not answered before 50 ms have passed, and once.
    b.receive(ms(15), &datagrams[1]).unwrap();
    assert!(b.transmit(ms(59)).is_empty());
    assert_eq!(b.transmit(ms(60)).len(), 1);
    // An ack packet has no number and is not acknowledged.
    assert!(a.transmit(ms(5_000)).is_empty() && b.transmit(ms(5_000)).is_empty());
    assert_eq!((b.endpoint.stats().acks_sent, b.endpoint.stats().packets_sent), (2, 0));
}

#[test]
fn ack_packets_are_an_interval_apart_however_many_packets_come() {
    let (mut a, mut b) = (End::new(), End::new());
    for now in 0..1_000 {
        if now % 10 == 0 {
            let datagram = a.send(ms(now), b"x").remove(0);
            b.receive(ms(now), &datagram).unwrap();
        }
        b.transmit(ms(now));
    }
    assert_eq!(b.endpoint.stats().acks_sent, 20);
}

#[test]
fn a_flood_of_packets_gets_an_ack_packet_for_sixteen() {
    let (mut a, mut b) = (End::new(), End::new());
    let (mut answers, mut bytes) = (0, (0, 0));
    for i in 0..=160 {
        if i < 160 {
            let datagram = a.send(ms(0), b"").remove(0);
            bytes.0 += datagram.len();
            b.receive(ms(0), &datagram).unwrap();
        }
        for answer in b.transmit(ms(if i < 160 { 0 } else { 50 })) {
            bytes.1 += answer.len();
            answers += 1;
            a.receive(ms(50), &answer).unwrap();
        }
    }
    assert_eq!(answers, 11, "the first, then one for sixteen");
    assert!(bytes.1 * 9 <= bytes.0, "{bytes:?}");
    assert_eq!(a.events().len(), 160, "every packet was acked");
}

/// A loop that was held up takes in a hundred packets before it sends. One ack reaches back over 33 only.
#[test]
fn many_packets_at_once_are_all_acknowledged() {
    for speaks in [false, true] {
        let (mut a, mut b) = (End::new(), End::new());
        let datagrams: Vec<_> = (0..100).flat_map(|i| a.send(ms(i), b"x")).collect();
        datagrams.iter().for_each(|datagram| drop(b.receive(ms(100), datagram)));
        if speaks {
            b.endpoint.send(ms(100), b"y").unwrap();
        }
        for answer in [b.transmit(ms(100)), b.transmit(ms(150))].concat() {
            a.receive(ms(160), &answer).unwrap();
        }
        assert_eq!(a.endpoint.stats().packets_acked, 100);
    }
}

/// A packet acknowledged later than its sender waits for finds nothing, or after a restart the wrong one.
#[test]
fn what_was_received_long_ago_is_not_acknowledged() {
    let (mut a, mut b) = (End::new(), End::new());
    let datagram = a.send(ms(0), b"x").remove(0);
    b.receive(ms(10), &datagram).unwrap();
    let acks = |b: &mut End, now| {
        let sent = b.send(ms(now), b"");
        match read(&sent[0]) {
            NumberedPacket::Payload { acks, .. } => acks,
            other @ NumberedPacket::Ack(_) => panic!("{other:?}"),
        }
    };
    assert!(acks(&mut b, 1_010).is_some());
    assert_eq!(acks(&mut b, 1_011), None);
}

#[test]
fn no_ack_packet_where_a_payload_carries_the_acks_or_none_is_wanted() {
    let (mut a, mut b) = (End::new(), End::new());
    let datagram = a.send(ms(0), b"x").remove(0);
    b.receive(ms(0), &datagram).unwrap();
    let said = b.send(ms(0), b"y");
    assert_eq!(said.len(), 1, "the payload packet said it");
    assert!(b.transmit(ms(60)).is_empty());

    let mut silent = End::with(EndpointConfig::default().with_ack_interval(None));
    silent.receive(ms(0), &datagram).unwrap();
    assert!(silent.transmit(ms(60_000)).is_empty());
}

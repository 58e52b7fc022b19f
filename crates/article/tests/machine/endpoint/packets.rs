//! Headers and sizes, what is offered, what counts as received, and what is refused.

use std::time::Duration;

use haulier_article::ack::AckBits;
use haulier_article::endpoint::{Endpoint, EndpointConfig, EndpointConfigError, SendPacketError};
use haulier_article::packet::fragment::FragmentPacket;
use haulier_article::packet::numbered::{MAX_PAYLOAD_BYTES, NumberedPacket};
use haulier_article::packet::{self, ProtocolId};
use haulier_article::{MAX_PACKET_BYTES, PacketDropReason, Sequence};

use super::{End, acked, lost, read};
use crate::support::{data, framed, ms};

/// STANDARD §9.7, byte for byte.
#[test]
fn the_worked_examples_of_the_standard() {
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let payload = |sequence, acks| {
        let sequence = Sequence::new(sequence);
        framed(NumberedPacket::Payload { sequence, acks, payload: b"jump" }, ProtocolId::PACKETS)
    };
    let acks = AckBits { ack: Sequence::new(100), bits: 0x8000_0001 };
    let examples = [
        payload(257, None),
        payload(258, Some(acks)),
        framed(NumberedPacket::Ack(acks), ProtocolId::PACKETS),
    ];
    let page = include_str!("../../../../../docs/STANDARD.md");
    for example in examples {
        let row = page.lines().any(|line| line.replace(' ', "") == hex(&example));
        assert!(row, "not in STANDARD: {}", hex(&example));
        assert_eq!(framed(read(&example), ProtocolId::PACKETS), example);
    }
}

#[test]
fn the_first_packet_says_that_nothing_was_received() {
    let (mut a, mut b) = (End::new(), End::new());
    let datagrams = a.send(ms(0), b"hello");
    let [datagram] = &datagrams[..] else { panic!("{datagrams:?}") };
    assert_eq!(datagram.len(), 11 + 5);
    let NumberedPacket::Payload { sequence, acks, payload } = read(datagram) else { panic!() };
    assert_eq!((sequence.get(), acks, payload), (0, None, &b"hello"[..]));
    assert_eq!(b.receive(ms(20), datagram), Ok(Some(b"hello".to_vec())));

    let answer = b.send(ms(30), b"");
    assert_eq!(answer[0].len(), 17);
    let NumberedPacket::Payload { acks, payload, .. } = read(&answer[0]) else { panic!() };
    assert_eq!((acks, payload), (Some(AckBits { ack: sequence, bits: 0 }), &b""[..]));
    assert_eq!(a.receive(ms(50), &answer[0]), Ok(Some(vec![])));
    assert_eq!(a.events(), [acked(0)]);
    assert_eq!(a.endpoint.article_rtt(), Some(Duration::from_millis(50)));
    assert_eq!(a.endpoint.rtt().rttvar(), Some(Duration::from_millis(25)));
}

/// The article sends up to 1200 bytes whole; the original refused what was above 1024.
#[test]
fn packets_up_to_1200_bytes_go_whole_and_larger_ones_in_fragments() {
    for (payload_bytes, datagrams) in
        [(1025, 1), (1189, 1), (1190, 2), (2048 - 11, 2), (2048 - 10, 3), (MAX_PAYLOAD_BYTES, 256)]
    {
        let (mut a, mut b) = (End::new(), End::new());
        let payload = data(1, payload_bytes);
        let sent = a.send(ms(0), &payload);
        assert_eq!(sent.len(), datagrams, "{payload_bytes}");
        assert!(sent.iter().all(|datagram| datagram.len() <= MAX_PACKET_BYTES));
        let brought: Vec<_> = sent.iter().map(|d| b.receive(ms(1), d).unwrap()).collect();
        assert_eq!(brought.iter().flatten().collect::<Vec<_>>(), [&payload], "{payload_bytes}");
        assert!(brought.last().unwrap().is_some());
        // One packet, one sequence, however many datagrams.
        assert_eq!(a.endpoint.next_sequence().get(), 1);
        assert_eq!(b.endpoint.stats().packets_received, 1);
        assert_eq!(a.endpoint.stats().bytes_sent, b.endpoint.stats().bytes_received);
    }
}

#[test]
fn a_packet_that_is_too_large_takes_no_number() {
    let mut a = End::new();
    let bytes = MAX_PAYLOAD_BYTES + 1;
    let refused = a.endpoint.send(ms(0), &vec![0; bytes]);
    assert_eq!(refused, Err(SendPacketError::TooLarge { bytes }));
    assert_eq!((a.endpoint.next_sequence().get(), a.endpoint.in_flight()), (0, 0));
    assert!(a.transmit(ms(0)).is_empty());
}

/// If a driver does not send the packets that are queued, `send` fails, and nothing grows without bound.
#[test]
fn the_queue_of_packets_is_bounded() {
    let mut a = End::new();
    let payload = vec![0; 200_000];
    let queued = (0..9).take_while(|_| a.endpoint.send(ms(0), &payload).is_ok()).count();
    assert_eq!(queued, 5, "1 MiB");
    assert_eq!(a.endpoint.send(ms(0), &payload), Err(SendPacketError::QueueFull));
    let mut datagram = Vec::new();
    for _ in 0..196 {
        assert!(a.endpoint.poll_datagram(ms(0), &mut datagram));
    }
    // The first has left, so another may wait; and so on, the buffer being closed up now and then.
    let mut b = End::new();
    let mut brought = 0;
    for _ in 0..20 {
        assert!(a.endpoint.send(ms(0), &payload).is_ok());
        for _ in 0..196 {
            assert!(a.endpoint.poll_datagram(ms(0), &mut datagram));
            brought += usize::from(b.receive(ms(0), &datagram).unwrap().is_some());
        }
    }
    let rest = a.transmit(ms(0));
    brought += rest.iter().filter_map(|datagram| b.receive(ms(0), datagram).unwrap()).count();
    assert_eq!(brought, 24, "each packet intact, but the first, which b did not get");
}

/// Small packets that wait are bounded too: more than a window of them would be lost before they are sent.
#[test]
fn no_more_than_a_window_of_packets_may_wait() {
    let mut a = End::new();
    let queued = (0..1_000).take_while(|_| a.endpoint.send(ms(0), b"").is_ok()).count();
    assert_eq!((queued, a.events()), (256, vec![]));
    assert_eq!(a.transmit(ms(0)).len(), 256);
    assert!(a.endpoint.send(ms(0), b"").is_ok());
}

#[test]
fn a_packet_that_is_not_accepted_is_not_acknowledged() {
    let (mut a, mut b) = (End::new(), End::new());
    let datagram = a.send(ms(0), b"too much for now").remove(0);
    let delivery = b.endpoint.handle_datagram(ms(1), &datagram, &mut b.pool).unwrap().unwrap();
    assert_eq!((delivery.sequence().get(), delivery.payload()), (0, &b"too much for now"[..]));
    drop(delivery);
    assert_eq!(b.endpoint.stats().packets_received, 0);
    let answer = b.send(ms(2), b"").remove(0);
    assert!(matches!(read(&answer), NumberedPacket::Payload { acks: None, .. }));
    // A second copy is offered again.
    assert!(b.receive(ms(3), &datagram).unwrap().is_some());
    assert_eq!(b.receive(ms(4), &datagram), Err(PacketDropReason::Duplicate));
    assert_eq!(b.endpoint.drops().get(PacketDropReason::Duplicate), 1);
}

/// Fragments of a refused packet are not put together again; and it is not acknowledged either.
#[test]
fn a_fragmented_packet_that_is_not_accepted_is_not_acknowledged() {
    let (mut a, mut b) = (End::new(), End::new());
    let datagrams = a.send(ms(0), &data(1, 3000));
    for datagram in &datagrams {
        let _refused = b.endpoint.handle_datagram(ms(1), datagram, &mut b.pool).unwrap();
    }
    let answer = b.send(ms(2), b"").remove(0);
    assert!(matches!(read(&answer), NumberedPacket::Payload { acks: None, .. }));
    assert_eq!(b.receive(ms(3), &datagrams[0]), Err(PacketDropReason::Duplicate));
    a.receive(ms(4), &answer).unwrap();
    a.endpoint.handle_timeout(ms(1_001));
    assert_eq!(a.events(), [lost(0)]);
}

/// Every fragment of a delivered packet arrives a second time, but the packet is not delivered again.
#[test]
fn duplicates_of_a_delivered_packet_are_not_delivered() {
    let (mut a, mut b) = (End::new(), End::new());
    let datagrams = a.send(ms(0), &data(1, 5000));
    let brought = datagrams.iter().chain(&datagrams).map(|d| b.receive(ms(1), d));
    let delivered = brought.filter(|brought| matches!(brought, Ok(Some(_)))).count();
    assert_eq!(delivered, 1);
    assert_eq!(b.endpoint.drops().get(PacketDropReason::Duplicate), datagrams.len() as u64);
}

/// A datagram refused for a hostile reason changes nothing and is not answered.
#[test]
fn a_refused_datagram_changes_nothing() {
    let mut b = End::new();
    let good = End::new().send(ms(0), b"payload").remove(0);
    let mut sealed = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = good.clone();
        change(&mut bytes);
        if let Some((crc, body)) = bytes.split_first_chunk_mut::<4>() {
            *crc = packet::checksum(ProtocolId::PACKETS, body).to_le_bytes();
        }
        let untouched = format!("{:?}", b.endpoint.stats());
        let reason = b.receive(ms(0), &bytes).unwrap_err();
        assert_eq!(format!("{:?}", b.endpoint.stats()), untouched);
        assert!(b.transmit(ms(10_000)).is_empty());
        reason
    };
    assert_eq!(sealed(&|bytes| bytes[6] |= 3), PacketDropReason::BadType);
    assert_eq!(sealed(&|bytes| bytes[6] |= 8), PacketDropReason::NonzeroPadding);
    assert_eq!(sealed(&|bytes| bytes.truncate(10)), PacketDropReason::Truncated);
    assert_eq!(sealed(&|bytes| bytes.truncate(3)), PacketDropReason::TooShort);
    assert_eq!(sealed(&|bytes| bytes.push(0)), PacketDropReason::BadCheck);
    assert_eq!(sealed(&|bytes| bytes.resize(1201, 0)), PacketDropReason::TooLong);
    // An ack packet with a sequence is no ack packet.
    let ack = |number: u8| {
        let mut bytes = framed(
            NumberedPacket::Ack(AckBits { ack: Sequence::new(1), bits: 0 }),
            ProtocolId::PACKETS,
        );
        bytes[4] = number;
        let crc = packet::checksum(ProtocolId::PACKETS, &bytes[4..]);
        bytes[..4].copy_from_slice(&crc.to_le_bytes());
        bytes
    };
    assert_eq!(b.receive(ms(0), &ack(0)), Ok(None));
    assert_eq!(b.receive(ms(0), &ack(1)), Err(PacketDropReason::OutOfRange));
}

/// "The packet header inside fragment 0 must carry the same sequence", and be a payload packet.
#[test]
fn what_is_in_the_fragments_must_be_what_they_say() {
    let inside = |packet: NumberedPacket<'_>, outside: u16| {
        let (mut b, packet) = (End::new(), framed(packet, ProtocolId::PACKETS));
        let pieces = haulier_article::fragment::split(Sequence::new(outside), &packet).unwrap();
        let mut brought = Ok(None);
        for fragment in pieces {
            let datagram = framed(FragmentPacket(fragment), ProtocolId::PACKETS);
            brought = b.receive(ms(0), &datagram);
        }
        brought
    };
    let payload = data(1, 3000);
    let sequence = Sequence::new(7);
    let packet = NumberedPacket::Payload { sequence, acks: None, payload: &payload };
    assert_eq!(inside(packet, 7), Ok(Some(payload.clone())));
    assert_eq!(inside(packet, 8), Err(PacketDropReason::SequenceMismatch));
    let ack = NumberedPacket::Ack(AckBits { ack: sequence, bits: 0 });
    assert_eq!(inside(ack, 0), Err(PacketDropReason::BadType));
}

#[test]
fn a_closed_endpoint_leaves_nothing_in_the_pool() {
    let (mut a, mut b) = (End::new(), End::new());
    let datagrams = a.send(ms(0), &data(1, 9000));
    datagrams[1..].iter().for_each(|d| assert_eq!(b.receive(ms(0), d), Ok(None)));
    assert!(b.pool.stats().used_bytes > 8 * 1024);
    b.endpoint.close(&mut b.pool);
    assert_eq!(b.pool.stats().used_bytes, 0);
}

#[test]
fn configurations_that_cannot_work_are_refused() {
    let with = |change: fn(&mut EndpointConfig)| {
        let mut config = EndpointConfig::default();
        change(&mut config);
        Endpoint::new(config).err()
    };
    assert_eq!(with(|_| {}), None);
    assert_eq!(with(|c| c.max_datagram_bytes = 1033), None);
    let error = Some(EndpointConfigError::MaxDatagramBytes);
    assert_eq!(with(|c| c.max_datagram_bytes = 1032), error);
    assert_eq!(with(|c| c.max_datagram_bytes = 1201), error);
    let error = Some(EndpointConfigError::LossTimeout);
    assert_eq!(with(|c| c.loss_timeout = Duration::ZERO), error);
    assert_eq!(with(|c| c.ack_interval = Some(c.loss_timeout)), error);
    let error = Some(EndpointConfigError::MaxQueuedBytes);
    assert_eq!(with(|c| c.max_queued_bytes = 1000), error);
}

//! The endpoint: headers, ack packets, what is offered and what counts as received, and the deadlines.

use std::time::Duration;

use haulier_proto::ack::AckBits;
use haulier_proto::congestion::Mode;
use haulier_proto::endpoint::{
    Endpoint, EndpointConfig, EndpointConfigError, EndpointEvent, SendPacketError,
};
use haulier_proto::fragment::FragmentPool;
use haulier_proto::packet::fragment::FragmentPacket;
use haulier_proto::packet::numbered::{MAX_PAYLOAD_BYTES, NumberedPacket};
use haulier_proto::packet::{self, ProtocolId};
use haulier_proto::{DropReason, Instant, MAX_PACKET_BYTES, Sequence};

use crate::support::{data, ms};

/// One end, with a pool of its own.
struct End {
    endpoint: Endpoint,
    pool: FragmentPool,
}

impl End {
    fn new() -> Self {
        Self::with(EndpointConfig::default())
    }

    fn with(config: EndpointConfig) -> Self {
        Self { endpoint: Endpoint::new(config).unwrap(), pool: FragmentPool::default() }
    }

    fn transmit(&mut self, now: Instant) -> Vec<Vec<u8>> {
        let mut datagram = Vec::new();
        std::iter::from_fn(|| {
            self.endpoint.poll_transmit(now, &mut datagram).then(|| datagram.clone())
        })
        .collect()
    }

    fn send(&mut self, now: Instant, payload: &[u8]) -> Vec<Vec<u8>> {
        self.endpoint.send(now, payload).unwrap();
        self.transmit(now)
    }

    /// Accepts whatever the datagram brings.
    fn receive(&mut self, now: Instant, datagram: &[u8]) -> Result<Option<Vec<u8>>, DropReason> {
        let delivery = self.endpoint.handle_datagram(now, datagram, &mut self.pool);
        let payload = delivery.map(|delivery| delivery.map(|packet| packet.accept().to_vec()));
        self.endpoint.check_invariants();
        self.pool.check_invariants();
        payload
    }

    fn events(&mut self) -> Vec<EndpointEvent> {
        std::iter::from_fn(|| self.endpoint.poll_event()).collect()
    }
}

fn acked(number: u16) -> EndpointEvent {
    EndpointEvent::Acked { sequence: Sequence::new(number) }
}

fn lost(number: u16) -> EndpointEvent {
    EndpointEvent::Lost { sequence: Sequence::new(number) }
}

fn read(datagram: &[u8]) -> NumberedPacket<'_> {
    packet::read(ProtocolId::PACKETS, datagram).unwrap()
}

fn write(packet: NumberedPacket<'_>) -> Vec<u8> {
    let mut out = vec![0; 300_000];
    let length = packet::write(packet, ProtocolId::PACKETS, &mut out).unwrap();
    out.truncate(length);
    out
}

/// STANDARD §9.7, byte for byte.
#[test]
fn the_worked_examples_of_the_standard() {
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let payload = |sequence, acks| {
        let sequence = Sequence::new(sequence);
        write(NumberedPacket::Payload { sequence, acks, payload: b"jump" })
    };
    let acks = AckBits { ack: Sequence::new(100), bits: 0x8000_0001 };
    let examples = [payload(257, None), payload(258, Some(acks)), write(NumberedPacket::Ack(acks))];
    let page = include_str!("../../../../docs/STANDARD.md");
    for example in examples {
        let row = page.lines().any(|line| line.replace(' ', "") == hex(&example));
        assert!(row, "not in STANDARD: {}", hex(&example));
        assert_eq!(write(read(&example)), example);
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

/// A driver that does not send what it is given is told so, and nothing grows without bound.
#[test]
fn the_queue_of_packets_is_bounded() {
    let mut a = End::new();
    let payload = vec![0; 200_000];
    let queued = (0..9).take_while(|_| a.endpoint.send(ms(0), &payload).is_ok()).count();
    assert_eq!(queued, 5, "1 MiB");
    assert_eq!(a.endpoint.send(ms(0), &payload), Err(SendPacketError::QueueFull));
    let mut datagram = Vec::new();
    for _ in 0..196 {
        assert!(a.endpoint.poll_transmit(ms(0), &mut datagram));
    }
    // The first has left: its place is used again, and what follows is intact.
    assert!(a.endpoint.send(ms(0), &payload).is_ok());
    let mut b = End::new();
    let brought = a.transmit(ms(0)).iter().filter_map(|d| b.receive(ms(0), d).unwrap()).count();
    assert_eq!(brought, 5);
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
    assert_eq!(b.receive(ms(4), &datagram), Err(DropReason::Duplicate));
    assert_eq!(b.endpoint.drops().get(DropReason::Duplicate), 1);
}

/// Every fragment of a delivered packet comes again, and the packet does not.
#[test]
fn duplicates_of_a_delivered_packet_are_not_delivered() {
    let (mut a, mut b) = (End::new(), End::new());
    let datagrams = a.send(ms(0), &data(1, 5000));
    let brought = datagrams.iter().chain(&datagrams).map(|d| b.receive(ms(1), d));
    let delivered = brought.filter(|brought| matches!(brought, Ok(Some(_)))).count();
    assert_eq!(delivered, 1);
    assert_eq!(b.endpoint.drops().get(DropReason::Duplicate), datagrams.len() as u64);
}

/// Who is only listened to would else believe that everything it sends is lost.
#[test]
fn an_end_that_sends_nothing_answers_with_ack_packets() {
    let (mut a, mut b) = (End::new(), End::new());
    let datagram = a.send(ms(0), b"x").remove(0);
    b.receive(ms(10), &datagram).unwrap();
    assert!(b.transmit(ms(59)).is_empty(), "an ack packet waits for 50 ms");
    assert_eq!(b.endpoint.poll_timeout(), Some(ms(60)));
    let acks = b.transmit(ms(60));
    assert_eq!(acks.len(), 1);
    assert_eq!(read(&acks[0]), NumberedPacket::Ack(AckBits { ack: Sequence::new(0), bits: 0 }));
    assert_eq!(a.receive(ms(70), &acks[0]), Ok(None));
    assert_eq!(a.events(), [acked(0)]);
    // It has no number, is not acknowledged, and comes only once.
    assert!(a.transmit(ms(5_000)).is_empty() && b.transmit(ms(5_000)).is_empty());
    assert_eq!((b.endpoint.stats().acks_sent, b.endpoint.stats().packets_sent), (1, 0));
}

#[test]
fn a_flood_of_packets_gets_an_ack_packet_for_sixteen() {
    let (mut a, mut b) = (End::new(), End::new());
    let (mut answers, mut bytes) = (0, (0, 0));
    for _ in 0..160 {
        let datagram = a.send(ms(0), b"").remove(0);
        bytes.0 += datagram.len();
        b.receive(ms(0), &datagram).unwrap();
        for answer in b.transmit(ms(0)) {
            bytes.1 += answer.len();
            answers += 1;
            a.receive(ms(0), &answer).unwrap();
        }
    }
    assert_eq!(answers, 10);
    assert!(bytes.1 * 10 <= bytes.0, "{bytes:?}");
    assert_eq!(a.events().len(), 160, "every packet was acked");
}

#[test]
fn no_ack_packet_where_there_is_something_to_say_or_none_is_wanted() {
    let (mut a, mut b) = (End::new(), End::new());
    let datagram = a.send(ms(0), b"x").remove(0);
    b.receive(ms(0), &datagram).unwrap();
    b.send(ms(40), b"y");
    assert!(b.transmit(ms(60)).is_empty(), "the payload packet said it");

    let mut silent = End::with(EndpointConfig { ack_delay: None, ..EndpointConfig::default() });
    silent.receive(ms(0), &datagram).unwrap();
    assert!(silent.transmit(ms(60_000)).is_empty());
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
    assert_eq!(sealed(&|bytes| bytes[6] |= 3), DropReason::BadType);
    assert_eq!(sealed(&|bytes| bytes[6] |= 8), DropReason::NonzeroPadding);
    assert_eq!(sealed(&|bytes| bytes.truncate(10)), DropReason::Truncated);
    assert_eq!(sealed(&|bytes| bytes.truncate(3)), DropReason::TooShort);
    assert_eq!(sealed(&|bytes| bytes.push(0)), DropReason::BadCheck);
    assert_eq!(sealed(&|bytes| bytes.resize(1201, 0)), DropReason::TooLong);
    // An ack packet with a sequence is no ack packet.
    let ack = |number: u8| {
        let mut bytes = write(NumberedPacket::Ack(AckBits { ack: Sequence::new(1), bits: 0 }));
        bytes[4] = number;
        let crc = packet::checksum(ProtocolId::PACKETS, &bytes[4..]);
        bytes[..4].copy_from_slice(&crc.to_le_bytes());
        bytes
    };
    assert_eq!(b.receive(ms(0), &ack(0)), Ok(None));
    assert_eq!(b.receive(ms(0), &ack(1)), Err(DropReason::OutOfRange));
}

/// "The packet header inside fragment 0 must carry the same sequence", and be a payload packet.
#[test]
fn what_is_in_the_fragments_must_be_what_they_say() {
    let inside = |packet: NumberedPacket<'_>, outside: u16| {
        let (mut b, packet) = (End::new(), write(packet));
        let pieces = haulier_proto::fragment::split(Sequence::new(outside), &packet).unwrap();
        let mut brought = Ok(None);
        for fragment in pieces {
            let mut out = [0; MAX_PACKET_BYTES];
            let length = packet::write(FragmentPacket(fragment), ProtocolId::PACKETS, &mut out);
            brought = b.receive(ms(0), &out[..length.unwrap()]);
        }
        brought
    };
    let payload = data(1, 3000);
    let sequence = Sequence::new(7);
    let packet = NumberedPacket::Payload { sequence, acks: None, payload: &payload };
    assert_eq!(inside(packet, 7), Ok(Some(payload.clone())));
    assert_eq!(inside(packet, 8), Err(DropReason::SequenceMismatch));
    let ack = NumberedPacket::Ack(AckBits { ack: sequence, bits: 0 });
    assert_eq!(inside(ack, 0), Err(DropReason::BadType));
}

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

/// Packets that nobody asks about must not fill the memory.
#[test]
fn events_that_nobody_hears_are_bounded() {
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
    // There and back, and up to a frame until the other end sends.
    let rtt = a.endpoint.article_rtt().unwrap();
    assert!((80..=113).contains(&rtt.as_millis()), "{rtt:?}");
    assert_eq!(a.endpoint.rtt().min_rtt().map(|rtt| rtt.as_millis()), Some(106));
    let spread = a.endpoint.rtt_spread();
    assert!(spread.samples > 200 && spread.jitter < Duration::from_millis(2), "{spread:?}");
    assert_eq!(a.endpoint.controller().mode(), Mode::Good);
    assert_eq!(a.endpoint.send_interval(), Duration::from_secs(1) / 30);
}

#[test]
fn a_long_round_trip_leads_to_bad_mode() {
    let (mut a, mut b) = (End::new(), End::new());
    play(&mut a, &mut b, 150, |_| false);
    assert_eq!(a.endpoint.controller().mode(), Mode::Bad);
    assert_eq!(a.endpoint.send_interval(), Duration::from_millis(100));
}

/// No ack, no sample: the estimate would stay good for ever while nothing arrives.
#[test]
fn an_outage_is_bad_conditions() {
    let (mut a, mut b) = (End::new(), End::new());
    // Acks stop after 250 packets, 8.25 s; at 9.3 s nothing was acked for a second.
    play(&mut a, &mut b, 40, |frame| frame >= 250);
    assert_eq!(a.endpoint.controller().mode(), Mode::Bad);
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
            assert!(wakes < 50, "it never sleeps");
        }
    }
    a.send(ms(9_000), b"x");
    assert!(a.endpoint.poll_timeout().is_some());
}

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
    let forged = [7; 1024];
    let fragment =
        haulier_proto::packet::fragment::Fragment::new(Sequence::new(20_000), 0, 2, &forged)
            .unwrap();
    let mut out = [0; MAX_PACKET_BYTES];
    let length = packet::write(FragmentPacket(fragment), ProtocolId::PACKETS, &mut out).unwrap();
    assert_eq!(b.receive(ms(1), &out[..length]), Ok(None));
    assert_eq!(deliver(&mut b, a.send(ms(1), &large)), Err(DropReason::TooOld));
    assert!(deliver(&mut b, a.send(ms(2), b"small")).unwrap().is_some());
    assert!(deliver(&mut b, a.send(ms(3), &large)).unwrap().is_some());
}

/// The server restarts and counts from 0; the client hears it again after a second, fragments and all.
#[test]
fn a_restarted_peer_is_heard_again() {
    let mut b = End::new();
    let first = Sequence::new(30_000);
    let mut old = End::with(EndpointConfig { first_sequence: first, ..EndpointConfig::default() });
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
    let error = Some(EndpointConfigError::MaxQueuedBytes);
    assert_eq!(with(|c| c.max_queued_bytes = 1000), error);
}

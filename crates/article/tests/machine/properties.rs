//! Properties: random operations against a trivial model, and arbitrary bytes at every parser.

use std::collections::BTreeMap;
use std::time::Duration;

use haulier_article::bits::{Reader, Stream};
use haulier_article::chunk::{
    Ack, ChunkId, ChunkReceiver, ChunkReceiverConfig, ChunkSender, ChunkSenderConfig,
    MAX_CHUNK_BYTES, ResendDelay, Slice, SliceCount, SliceSet,
};
use haulier_article::packet::article::ArticlePacket;
use haulier_article::packet::fragment::{FragmentPacket, RawFragmentPacket};
use haulier_article::packet::numbered::NumberedPacket;
use haulier_article::packet::{self, Packet, ProtocolId};
use haulier_article::{ArticleConfig, ArticlePeer, Instant, Sequence, SequenceBuffer};
use proptest::prelude::*;

use crate::support::{data, framed, ms};

const PROTOCOL: ProtocolId = ProtocolId::ARTICLE;

/// Gives any bytes a valid checksum, so that they reach what is behind the first gate.
fn with_crc(mut bytes: Vec<u8>) -> Vec<u8> {
    if bytes.len() > 4 {
        let crc = packet::checksum(PROTOCOL, &bytes[4..]);
        bytes[..4].copy_from_slice(&crc.to_le_bytes());
    }
    bytes
}

/// What is accepted is canonical: writing it again gives the same bytes.
fn accepted_only_if_canonical<'a, P: Packet<'a>>(bytes: &'a [u8]) {
    if let Ok(packet) = packet::read::<P>(PROTOCOL, bytes) {
        assert_eq!(framed(packet, PROTOCOL), bytes);
    }
}

/// Bytes that look like packets: a legal header more often than chance would have it.
fn packet_like() -> impl Strategy<Value = Vec<u8>> {
    let tail = prop_oneof![Just(vec![]), Just(vec![0xe2, 0xac, 0x08, 0x99]), Just(vec![0; 3])];
    let middle = prop::collection::vec(
        prop_oneof![3 => Just(0u8), 1 => any::<u8>(), 1 => Just(0xff)],
        0..1300,
    );
    (any::<[u8; 8]>(), middle, tail)
        .prop_map(|(head, middle, tail)| with_crc([&[0; 4][..], &head, &middle, &tail].concat()))
}

fn any_ack() -> impl Strategy<Value = Ack> {
    (any::<u16>(), prop::collection::vec(any::<bool>(), 1..=256)).prop_map(|(id, flags)| {
        let count = SliceCount::new(flags.len()).unwrap();
        let mut received = SliceSet::empty(count);
        for (index, _) in count.indices().zip(&flags).filter(|(_, flag)| **flag) {
            received.insert(index);
        }
        Ack { chunk_id: ChunkId::new(id), received }
    })
}

proptest! {
    #[test]
    fn no_bytes_make_a_parser_panic(bytes in prop::collection::vec(any::<u8>(), 0..1300)) {
        for bytes in [bytes.clone(), with_crc(bytes)] {
            accepted_only_if_canonical::<ArticlePacket<'_>>(&bytes);
            accepted_only_if_canonical::<FragmentPacket<'_>>(&bytes);
            accepted_only_if_canonical::<NumberedPacket<'_>>(&bytes);
        accepted_only_if_canonical::<RawFragmentPacket<'_>>(&bytes);
        }
    }

    #[test]
    fn bytes_that_look_like_packets_are_canonical_or_refused(bytes in packet_like()) {
        accepted_only_if_canonical::<ArticlePacket<'_>>(&bytes);
        accepted_only_if_canonical::<FragmentPacket<'_>>(&bytes);
        accepted_only_if_canonical::<NumberedPacket<'_>>(&bytes);
        accepted_only_if_canonical::<RawFragmentPacket<'_>>(&bytes);
    }

    #[test]
    fn every_slice_survives_the_wire(id: u16, len in 1..=MAX_CHUNK_BYTES, at: prop::sample::Index) {
        let chunk = data(id.into(), len);
        let count = SliceCount::for_bytes(len).unwrap();
        let index = count.index(at.index(count.get())).unwrap();
        let slice = Slice::of_chunk(ChunkId::new(id), index, &chunk).unwrap();
        let packet = ArticlePacket::Slice(slice);
        let bytes = framed(packet, PROTOCOL);
        prop_assert_eq!(packet::read(PROTOCOL, &bytes), Ok(packet));
    }

    #[test]
    fn every_ack_survives_the_wire(ack in any_ack()) {
        let packet = ArticlePacket::Ack(ack);
        let bytes = framed(packet, PROTOCOL);
        prop_assert_eq!(packet::read(PROTOCOL, &bytes), Ok(packet));
    }

    /// Every single-bit error is found: that is what the crc is for.
    #[test]
    fn a_flipped_bit_is_refused(ack in any_ack(), at: prop::sample::Index) {
        let mut bytes = framed(ArticlePacket::Ack(ack), PROTOCOL);
        let bit = at.index(bytes.len() * 8);
        bytes[bit / 8] ^= 1 << (bit % 8);
        prop_assert!(packet::read::<ArticlePacket<'_>>(PROTOCOL, &bytes).is_err());
    }

    /// Any widths over any bytes: the reader gives exactly the bits that are there.
    #[test]
    fn a_reader_reads_what_a_bit_loop_reads(
        bytes in prop::collection::vec(any::<u8>(), 0..40),
        widths in prop::collection::vec(0u32..=33, 0..40),
    ) {
        let mut reader = Reader::new(&bytes);
        let mut at = 0;
        for width in widths {
            let fits = width <= 32 && at + width as usize <= bytes.len() * 8;
            let expected = fits.then(|| (0..width as usize).fold(0u64, |value, i| {
                let bit = at + i;
                value | u64::from(bytes[bit / 8] >> (bit % 8) & 1) << i
            }));
            let read = reader.bits(0, width).ok();
            prop_assert_eq!(read.map(u64::from), expected);
            at += if fits { width as usize } else { 0 };
        }
    }

    /// The ring against a map that is trimmed to the window.
    #[test]
    fn a_sequence_buffer_is_a_window_of_a_map(
        start: u16,
        ops in prop::collection::vec((any::<bool>(), -20i32..300), 1..200),
    ) {
        let mut buffer = SequenceBuffer::<i64, 16>::new();
        let mut model = BTreeMap::new();
        let mut newest = None;
        let mut base = i64::from(start);
        for (insert, step) in ops {
            let number = base + i64::from(step) % 40;
            let sequence = Sequence::new(number.rem_euclid(65_536) as u16);
            if insert {
                let in_window = newest.is_none_or(|newest: i64| number > newest - 16);
                let taken = buffer.insert(sequence, number).is_some();
                prop_assert_eq!(taken, in_window, "{} with newest {:?}", number, newest);
                if taken {
                    newest = newest.max(Some(number));
                    model.insert(number, number);
                    let oldest = newest.unwrap() - 15;
                    model.retain(|&number, _| number >= oldest);
                }
                base = base.max(number);
            }
            prop_assert_eq!(buffer.get(sequence), model.get(&number));
        }
    }

    /// Whatever a hostile peer says, the machine stays consistent, bounded, and does not panic.
    #[test]
    fn a_peer_survives_any_packets(
        packets in prop::collection::vec(prop_oneof![
            packet_like(),
            (0u16..4, 0usize..256, 1usize..=256, 1usize..=1024).prop_map(|(id, i, count, len)| {
                let count = SliceCount::new(count).unwrap();
                let index = count.index(i).unwrap_or(count.first());
                let data = vec![1; if index.is_last() { len } else { 1024 }];
                let slice = Slice::new(ChunkId::new(id), index, &data).unwrap();
                framed(ArticlePacket::Slice(slice), PROTOCOL)
            }),
            any_ack().prop_map(|ack| {
                let ack = Ack { chunk_id: ChunkId::new(ack.chunk_id.get() % 4), ..ack };
                framed(ArticlePacket::Ack(ack), PROTOCOL)
            }),
        ], 0..60),
        sizes in prop::collection::vec(1usize..5_000, 0..4),
    ) {
        let mut peer = ArticlePeer::new(ArticleConfig::default());
        for size in sizes {
            peer.send_chunk(vec![0; size]).unwrap();
        }
        let mut out = Vec::new();
        for (i, packet) in packets.iter().enumerate() {
            let now = ms(i as u64 * 37);
            let _refused = peer.handle_datagram(now, packet);
            peer.handle_timeout(now);
            peer.check_invariants();
            let mut sent = 0;
            while peer.poll_datagram(now, &mut out) {
                sent += 1;
                prop_assert!(sent <= 300, "a flood");
                prop_assert!(packet::read::<ArticlePacket<'_>>(PROTOCOL, &out).is_ok());
            }
            prop_assert!(peer.poll_timeout().is_none_or(|at| at > now), "a deadline left behind");
            if i % 5 == 0 {
                let _ = peer.pop_chunk();
            }
        }
    }

    /// A chunk arrives whole whatever is lost, doubled or overtaken on the way.
    #[test]
    fn a_chunk_arrives_whole(
        len in 1usize..20_000,
        fates in prop::collection::vec(0u8..4, 1..400),
    ) {
        let chunk = data(5, len);
        let mut sender = ChunkSender::new(ChunkSenderConfig::default().with_burst(false));
        let mut receiver = ChunkReceiver::new(ChunkReceiverConfig::default());
        sender.send_chunk(chunk.clone()).unwrap();
        let mut fates = fates.into_iter().chain(std::iter::repeat(1));
        let mut held = Vec::new();
        for now in (0..600_000).step_by(10).map(ms) {
            while let Some(slice) = sender.poll_slice(now) {
                let copies = fates.next().unwrap();
                held.extend(std::iter::repeat_n(slice.index(), copies.min(2).into()));
            }
            // The newest first: everything is overtaken.
            while let Some(index) = held.pop() {
                let slice = Slice::of_chunk(ChunkId::new(0), index, &chunk).unwrap();
                let _ = receiver.handle_slice(now, &slice);
            }
            if let Some(ack) = receiver.poll_ack(now) && fates.next() != Some(0) {
                let _ = sender.handle_ack(now, &ack);
            }
            if sender.poll_event().is_some() {
                break;
            }
        }
        prop_assert_eq!(sender.stats().chunks_sent, 1);
        prop_assert_eq!(receiver.pop().unwrap(), chunk);
    }
}

/// Configurations at the ends of their ranges, and clocks at the ends of theirs: slow or useless they may
/// be, but they neither panic nor ask to be woken for ever at one moment.
#[test]
fn odd_configurations_and_clocks_are_harmless() {
    let durations = [Duration::ZERO, Duration::from_nanos(1), Duration::MAX];
    let mut tried = 0;
    for rate_bps in [0, 1, 1_000_000, u64::MAX] {
        for duration in durations {
            for (count, bytes) in [(0, 0), (1, 41), (usize::MAX, usize::MAX / 2)] {
                for origin in [0, u64::MAX - 5_000_000_000] {
                    let mut config = ArticleConfig::default();
                    config.sender.rate_bps = rate_bps;
                    config.sender.burst = tried % 2 == 0;
                    config.sender.burst_wait = duration;
                    config.sender.resend_delay = if tried % 3 == 0 {
                        ResendDelay::Fixed(duration)
                    } else {
                        ResendDelay::Rtt
                    };
                    config.sender.peer_ack_interval = duration;
                    config.sender.give_up_after = Some(duration);
                    config.sender.overhead_bytes = bytes;
                    config.sender.max_queued = count;
                    config.receiver.ack_interval = duration;
                    config.receiver.max_unread = count;
                    config.receiver.abandon_after = Some(duration);
                    run_oddly(config, origin);
                    tried += 1;
                }
            }
        }
    }
    assert_eq!(tried, 72);
}

fn run_oddly(config: ArticleConfig, origin: u64) {
    let mut a = ArticlePeer::new(config.clone());
    let mut b = ArticlePeer::new(config.clone());
    let _full = a.send_chunk(vec![1; 5_000]);
    let _full = b.send_chunk(vec![2; 1]);
    let mut datagram = Vec::new();
    for step in 0..40u64 {
        // A second on, half a second back, to the very end of the clock.
        let nanos = origin.saturating_add(step * 500_000_000 * (1 + step % 2));
        let now = Instant::from_nanos(nanos);
        for turn in 0..2 {
            let (from, to) = if turn == 0 { (&mut a, &mut b) } else { (&mut b, &mut a) };
            from.handle_timeout(now);
            let mut sent = 0;
            while sent < 1_000 && from.poll_datagram(now, &mut datagram) {
                sent += 1;
                let _refused = to.handle_datagram(now, &datagram);
            }
            assert!(sent <= 600, "{sent} packets at one moment with {config:?}");
            let _ = (from.poll_timeout(), to.pop_chunk());
            from.check_invariants();
            to.check_invariants();
        }
    }
}

//! Reassembly: the attacks that *Packet Fragmentation and Reassembly* lists, each by name, and the bugs of
//! the 2016 original, each with its story. What memory really is taken is counted in `alloc.rs`.

use std::time::Duration;

use haulier_article::fragment::{
    Fragment, FragmentError, FragmentPool, FragmentPoolConfig, MAX_FRAGMENTED_BYTES, Reassembler,
    split,
};
use haulier_article::packet::fragment::FragmentPacket;
use haulier_article::packet::{self, ProtocolId};
use haulier_article::{Instant, PacketDropReason, Sequence};

use crate::support::{data, framed, ms};

mod pool;

/// One peer and its pool, with everything checked after every step.
struct Bench {
    pool: FragmentPool,
    peer: Reassembler,
    now: Instant,
}

type Put = Result<Option<Vec<u8>>, PacketDropReason>;

impl Bench {
    fn new() -> Self {
        Self { pool: FragmentPool::default(), peer: Reassembler::new(), now: ms(0) }
    }

    fn with(config: FragmentPoolConfig) -> Self {
        Self { pool: FragmentPool::new(config).unwrap(), ..Self::new() }
    }

    fn put(&mut self, fragment: &Fragment<'_>) -> Put {
        put(self.now, &mut self.peer, &mut self.pool, fragment)
    }

    /// Fragment `index` of a packet of `count` full fragments.
    fn put_one(&mut self, sequence: u16, index: usize, count: usize) -> Put {
        let packet = data(sequence.into(), count * 1024);
        self.put(&piece(sequence, index, &packet))
    }

    /// All fragments of a packet; returns what the last of them brought.
    fn put_all(&mut self, sequence: u16, packet: &[u8]) -> Put {
        let fragments = split(Sequence::new(sequence), packet).unwrap();
        fragments.map(|fragment| self.put(&fragment)).last().unwrap()
    }
}

fn put(
    now: Instant,
    peer: &mut Reassembler,
    pool: &mut FragmentPool,
    fragment: &Fragment<'_>,
) -> Put {
    let put = peer.handle_fragment(now, fragment, pool).map(|whole| whole.map(<[u8]>::to_vec));
    peer.check_invariants();
    pool.check_invariants();
    put.map_err(Into::into)
}

fn piece(sequence: u16, index: usize, packet: &[u8]) -> Fragment<'_> {
    split(Sequence::new(sequence), packet).unwrap().nth(index).unwrap()
}

/// A fragment packet of any bytes with a right checksum, as an attacker makes it.
fn forged(sequence: u16, index: u8, count_less_one: u8, data_bytes: usize) -> Vec<u8> {
    let legal = [7u8; 1024];
    let fragment = Fragment::new(Sequence::new(sequence), 0, 1, &legal).unwrap();
    let mut bytes = framed(FragmentPacket(fragment), ProtocolId::PACKETS);
    bytes.truncate(bytes.len() - 1024);
    // Index and count lie behind 50 bits: the two type bits, then eight and eight, then six of padding.
    bytes[6] = index << 2;
    bytes[7] = index >> 6 | count_less_one << 2;
    bytes[8] = count_less_one >> 6;
    bytes.resize(9 + data_bytes, 9);
    let crc = packet::checksum(ProtocolId::PACKETS, &bytes[4..]);
    bytes[..4].copy_from_slice(&crc.to_le_bytes());
    bytes
}

fn refusal(bytes: &[u8]) -> Option<PacketDropReason> {
    packet::read::<FragmentPacket<'_>>(ProtocolId::PACKETS, bytes).err()
}

/// "Try to send out of bound fragment ids trying to get you to crash memory. eg: send fragments [0,255] in
/// a packet that has just two fragments."
#[test]
fn attack_1_fragment_ids_out_of_range() {
    let mut accepted = vec![];
    for index in 0..=255 {
        match refusal(&forged(9, index, 1, 1024)) {
            None => accepted.push(index),
            Some(reason) => assert_eq!(reason, PacketDropReason::FragmentIdOutOfRange),
        }
    }
    assert_eq!(accepted, [0, 1]);
    // The type behind the parser has no such value either.
    let fragment = Fragment::new(Sequence::new(9), 2, 2, &[1]);
    assert_eq!(fragment, Err(FragmentError::IndexOutOfRange));
}

/// "Send packet n with some maximum fragment count of say 2, and then send more fragment packets belonging
/// to the same packet n but with maximum fragments of 256 hoping that you didn't realize I widened the
/// maximum number of fragments in the packet after the first one you received."
#[test]
fn attack_2_a_count_that_changes() {
    for (first, then) in [(2, 256), (256, 2), (2, 3)] {
        let mut bench = Bench::new();
        assert_eq!(bench.put_one(9, 0, first), Ok(None));
        let before = bench.pool.stats();
        for index in [0, 1, then - 1] {
            assert_eq!(bench.put_one(9, index, then), Err(PacketDropReason::CountChanged));
        }
        assert_eq!(bench.pool.stats(), before, "a refused fragment took memory");
    }
    // The honest packet is not harmed: what it was begun with still completes it.
    let (mut bench, packet) = (Bench::new(), data(9, 2048));
    assert_eq!(bench.put(&piece(9, 0, &packet)), Ok(None));
    assert_eq!(bench.put_one(9, 200, 256), Err(PacketDropReason::CountChanged));
    assert_eq!(bench.put(&piece(9, 1, &packet)), Ok(Some(packet.clone())));
}

/// "Send really large fragment packets with fragment data larger than 1k hoping to get you to trash memory
/// as you try to copy that fragment data into the data structure, or blow memory budget."
#[test]
fn attack_3_data_over_a_kilobyte() {
    for bytes in [1025, 1100, 1191] {
        assert_eq!(
            refusal(&forged(9, 0, 1, bytes)),
            Some(PacketDropReason::FragmentTooBig),
            "{bytes}"
        );
        assert_eq!(
            refusal(&forged(9, 1, 1, bytes)),
            Some(PacketDropReason::FragmentTooBig),
            "{bytes}"
        );
    }
    assert_eq!(refusal(&forged(9, 0, 1, 1192)), Some(PacketDropReason::TooLong));
    assert_eq!(refusal(&forged(9, 0, 1, 0)), Some(PacketDropReason::FragmentEmpty));
    assert_eq!(refusal(&forged(9, 0, 1, 1023)), Some(PacketDropReason::MiddleFragmentNotFull));
    assert_eq!(refusal(&forged(9, 1, 1, 1023)), None);
}

/// "Continually send you fragments of maximum size in hope that I could make you allocate a bunch of memory
/// and crash you out. [256 packets, 256 fragments, 1k:] 64 mb per-client maximum."
#[test]
fn attack_4_the_bomb() {
    let mut bench = Bench::new();
    let cap = bench.pool.config().max_bytes_per_peer;
    // Every packet but its last fragment, so that none is ever whole.
    for sequence in 0..256 {
        for index in 0..255 {
            let block = data(0, 1024);
            let fragment = Fragment::new(Sequence::new(sequence), index, 256, &block).unwrap();
            let put = put(ms(0), &mut bench.peer, &mut bench.pool, &fragment);
            assert_eq!(put, Ok(None));
        }
        assert!(bench.pool.stats().used_bytes <= cap);
    }
    let stats = bench.pool.stats();
    assert!(stats.peak_bytes > cap - 300_000, "the cap was never reached: {}", stats.peak_bytes);
    assert!(stats.evicted_for_own_peer >= 252, "{stats:?}");
    // An honest packet of the same peer still comes through.
    let packet = data(1, 3_000);
    assert_eq!(bench.put_all(256, &packet), Ok(Some(packet)));
}

/// The original copied the fragment numbered by the wrong loop, 7 bytes shifted, and could not say 256.
#[test]
fn every_size_and_order_gives_the_packet_back() {
    for bytes in [1, 1023, 1024, 1025, 2048, 2049, 5000, 255 * 1024, 255 * 1024 + 1, 256 * 1024] {
        let packet = data(3, bytes);
        let mut bench = Bench::new();
        assert_eq!(bench.put_all(0, &packet), Ok(Some(packet.clone())), "{bytes} in order");
        let count = bytes.div_ceil(1024);
        let shuffled = (0..count).map(|i| (i * 97 + 31) % count.max(1));
        let mut order: Vec<usize> = shuffled.collect();
        order.sort_unstable();
        order.dedup();
        if order.len() == count {
            let puts: Vec<Put> =
                (0..count).map(|i| bench.put(&piece(1, (i * 97 + 31) % count, &packet))).collect();
            assert_eq!(puts.last().unwrap(), &Ok(Some(packet)), "{bytes} shuffled");
        }
    }
}

#[test]
fn a_packet_above_256_kib_is_not_split() {
    let packet = vec![0; MAX_FRAGMENTED_BYTES + 1];
    assert_eq!(split(Sequence::new(0), &packet).err(), Some(FragmentError::CountTooLarge));
    assert_eq!(split(Sequence::new(0), &[]).err(), Some(FragmentError::Empty));
    assert_eq!(split(Sequence::new(0), &packet[1..]).unwrap().len(), 256);
}

/// The original forgot a packet when it was whole, and delivered each duplicate again.
#[test]
fn a_delivered_packet_is_not_delivered_again() {
    let (mut bench, packet) = (Bench::new(), data(9, 2500));
    assert_eq!(bench.put_all(9, &packet), Ok(Some(packet.clone())));
    for sequence in 10..=264 {
        bench.put_one(sequence, 0, 1).unwrap();
        assert_eq!(bench.put(&piece(9, 0, &packet)), Err(PacketDropReason::Duplicate));
        assert_eq!(bench.put(&piece(9, 2, &packet)), Err(PacketDropReason::Duplicate));
    }
    bench.put_one(265, 0, 1).unwrap();
    assert_eq!(bench.put(&piece(9, 0, &packet)), Err(PacketDropReason::TooOld));
}

/// Of two copies that differ the first wins, whatever its length.
#[test]
fn the_first_copy_of_a_fragment_wins() {
    let (mut bench, packet) = (Bench::new(), data(9, 1500));
    assert_eq!(bench.put(&piece(9, 1, &packet)), Ok(None));
    let longer = [0; 900];
    let other = Fragment::new(Sequence::new(9), 1, 2, &longer).unwrap();
    assert_eq!(bench.put(&other), Err(PacketDropReason::Duplicate));
    assert_eq!(bench.put(&piece(9, 0, &packet)), Ok(Some(packet.clone())));
}

/// The original emptied every entry whenever the window moved, so that a newer packet wiped those in
/// progress, and leaked them.
#[test]
fn packets_in_progress_survive_newer_ones() {
    let mut bench = Bench::new();
    let packets: Vec<Vec<u8>> = (0..50).map(|i| data(i, 3000)).collect();
    for (sequence, packet) in (0..).zip(&packets) {
        assert_eq!(bench.put(&piece(sequence, 0, packet)), Ok(None));
    }
    for (sequence, packet) in (0..).zip(&packets) {
        assert_eq!(bench.put(&piece(sequence, 2, packet)), Ok(None));
        assert_eq!(bench.put(&piece(sequence, 1, packet)), Ok(Some(packet.clone())));
    }
    assert_eq!(bench.pool.stats().used_bytes, 0);
}

/// The original looked at the slot before it moved the window, so that an unfinished packet blocked the
/// one 256 later.
#[test]
fn of_two_packets_for_one_slot_the_newer_wins() {
    let mut bench = Bench::new();
    bench.put_one(9, 0, 3).unwrap();
    let packet = data(265, 3 * 1024);
    assert_eq!(bench.put_all(265, &packet), Ok(Some(packet)));
    assert_eq!(bench.pool.stats().used_bytes, 0, "the old packet kept its memory");
    assert_eq!(bench.put_one(9, 1, 3), Err(PacketDropReason::TooOld));
}

/// The original refused whatever was more than 1024 ahead of what it had heard, and stayed deaf for good.
#[test]
fn a_jump_of_the_sequence_heals() {
    let mut bench = Bench::new();
    for sequence in [40_000u16, 40_001, 45_000, 60_000, 20_000] {
        let packet = data(sequence.into(), 2000);
        assert_eq!(bench.put_all(sequence, &packet), Ok(Some(packet)), "{sequence}");
    }
}

#[test]
fn sequences_wrap() {
    let mut bench = Bench::new();
    for sequence in (65_000..=65_535).chain(0..500) {
        let packet = data(sequence.into(), 1500);
        assert_eq!(bench.put_all(sequence, &packet), Ok(Some(packet)), "{sequence}");
    }
    assert_eq!(bench.put_one(65_535, 0, 2), Err(PacketDropReason::TooOld));
    assert_eq!(bench.put_one(499, 0, 2), Err(PacketDropReason::Duplicate));
}

/// A peer that starts over counts from the beginning again, far behind the window. It must not be deaf to
/// it for the 32,768 packets until the number is ahead again.
#[test]
fn a_restart_of_the_peer_heals() {
    let mut bench = Bench::new();
    bench.put_all(30_000, &data(0, 2000)).unwrap();
    let (mut delivered_at, mut refused) = (None, 0);
    for sequence in 0..100u16 {
        bench.now = bench.now + Duration::from_millis(50);
        match bench.put_all(sequence, &data(0, 2000)) {
            Ok(Some(_)) => delivered_at = delivered_at.or(Some(bench.now)),
            Ok(None) => {}
            Err(reason) => {
                assert_eq!(reason, PacketDropReason::TooOld);
                refused += 1;
            }
        }
    }
    // Packet 20, at 1.05 s, has the proof in its first fragment.
    assert_eq!((delivered_at, refused), (Some(ms(1_050)), 20));
    assert_eq!(bench.peer.stats().restarts, 1);
}

/// Strays of the window before are old too; they do not take the window back.
#[test]
fn old_fragments_among_new_ones_are_no_restart() {
    let mut bench = Bench::new();
    for i in 0..200u16 {
        bench.now = bench.now + Duration::from_millis(50);
        bench.put_all(30_000 + i, &data(0, 1500)).unwrap();
        assert_eq!(bench.put_one(i, 0, 2), Err(PacketDropReason::TooOld));
    }
}

/// Numbers that were all delivered come again: a peer that started over soon after.
#[test]
fn a_restart_within_the_window_heals() {
    let mut bench = Bench::new();
    (0..50).for_each(|sequence| drop(bench.put_all(sequence, &data(0, 1500))));
    let mut heard = None;
    for sequence in 0..50 {
        bench.now = bench.now + Duration::from_millis(100);
        if let Ok(Some(_)) = bench.put_all(sequence, &data(1, 1500)) {
            heard = heard.or(Some(sequence));
        }
    }
    assert_eq!(heard, Some(30), "after three seconds of nothing but duplicates");
}

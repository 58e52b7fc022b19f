//! Reassembly: the attacks that *Packet Fragmentation and Reassembly* lists, each by name, and the bugs of
//! the 2016 original, each with its story. What memory really is taken is counted in `alloc.rs`.

use std::time::Duration;

use haulier_proto::fragment::{
    EntryState, FragmentPool, FragmentPoolConfig, MAX_FRAGMENTED_BYTES, PoolConfigError,
    Reassembler, split,
};
use haulier_proto::packet::fragment::{Fragment, FragmentPacket};
use haulier_proto::packet::{self, ProtocolId};
use haulier_proto::{DropReason, Instant, MAX_PACKET_BYTES, Sequence};

use crate::support::{data, ms};

/// One peer and its pool, with everything checked after every step.
struct Bench {
    pool: FragmentPool,
    peer: Reassembler,
    now: Instant,
}

type Put = Result<Option<Vec<u8>>, DropReason>;

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

    /// Fragment `index` of a packet of so many full fragments.
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
    put
}

fn piece(sequence: u16, index: usize, packet: &[u8]) -> Fragment<'_> {
    split(Sequence::new(sequence), packet).unwrap().nth(index).unwrap()
}

/// A fragment packet of any bytes with a right checksum, as an attacker makes it.
fn forged(sequence: u16, index: u8, count_less_one: u8, data_bytes: usize) -> Vec<u8> {
    let legal = [7u8; 1024];
    let fragment = Fragment::new(Sequence::new(sequence), 0, 1, &legal).unwrap();
    let mut bytes = vec![0; MAX_PACKET_BYTES + 100];
    let header = packet::write(FragmentPacket(fragment), ProtocolId::PACKETS, &mut bytes).unwrap();
    bytes.truncate(header - 1024);
    // Index and count lie behind 50 bits: the two type bits, then eight and eight, then six of padding.
    bytes[6] = index << 2;
    bytes[7] = index >> 6 | count_less_one << 2;
    bytes[8] = count_less_one >> 6;
    bytes.resize(9 + data_bytes, 9);
    let crc = packet::checksum(ProtocolId::PACKETS, &bytes[4..]);
    bytes[..4].copy_from_slice(&crc.to_le_bytes());
    bytes
}

fn refusal(bytes: &[u8]) -> Option<DropReason> {
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
            Some(reason) => assert_eq!(reason, DropReason::FragmentIdOutOfRange),
        }
    }
    assert_eq!(accepted, [0, 1]);
    // The type behind the parser has no such value either.
    let fragment = Fragment::new(Sequence::new(9), 2, 2, &[1]);
    assert_eq!(fragment, Err(DropReason::FragmentIdOutOfRange));
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
            assert_eq!(bench.put_one(9, index, then), Err(DropReason::CountChanged));
        }
        assert_eq!(bench.pool.stats(), before, "a refused fragment took memory");
    }
    // The honest packet is not harmed: what it was begun with still completes it.
    let (mut bench, packet) = (Bench::new(), data(9, 2048));
    assert_eq!(bench.put(&piece(9, 0, &packet)), Ok(None));
    assert_eq!(bench.put_one(9, 200, 256), Err(DropReason::CountChanged));
    assert_eq!(bench.put(&piece(9, 1, &packet)), Ok(Some(packet.clone())));
}

/// "Send really large fragment packets with fragment data larger than 1k hoping to get you to trash memory
/// as you try to copy that fragment data into the data structure, or blow memory budget."
#[test]
fn attack_3_data_over_a_kilobyte() {
    for bytes in [1025, 1100, 1191] {
        assert_eq!(refusal(&forged(9, 0, 1, bytes)), Some(DropReason::FragmentTooBig), "{bytes}");
        assert_eq!(refusal(&forged(9, 1, 1, bytes)), Some(DropReason::FragmentTooBig), "{bytes}");
    }
    assert_eq!(refusal(&forged(9, 0, 1, 1192)), Some(DropReason::TooLong));
    assert_eq!(refusal(&forged(9, 0, 1, 0)), Some(DropReason::FragmentEmpty));
    assert_eq!(refusal(&forged(9, 0, 1, 1023)), Some(DropReason::MiddleFragmentNotFull));
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

/// One fragment that announces 256 takes what one fragment needs.
#[test]
fn memory_follows_what_came_not_what_was_announced() {
    let mut bench = Bench::new();
    bench.put_one(0, 255, 256).unwrap();
    let one = bench.pool.stats().used_bytes;
    assert!(one < 2 * 1024, "{one} bytes for one fragment");
    (0..100).for_each(|index| drop(bench.put_one(0, index, 256)));
    assert!(bench.pool.stats().used_bytes < 101 * 1100 + 1024);
}

/// "Consider reducing the maximum number of fragments per-packet."
#[test]
fn a_lower_limit_of_fragments_is_kept() {
    let config = FragmentPoolConfig { max_fragments: 4, ..FragmentPoolConfig::default() };
    let mut bench = Bench::with(config);
    assert_eq!(bench.put_one(0, 0, 5), Err(DropReason::PacketTooBig));
    assert_eq!(bench.peer.state(Sequence::new(0)), EntryState::Unheard);
    let packet = data(0, 4096);
    assert_eq!(bench.put_all(0, &packet), Ok(Some(packet)));
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
    assert_eq!(split(Sequence::new(0), &packet).err(), Some(DropReason::PacketTooBig));
    assert_eq!(split(Sequence::new(0), &[]).err(), Some(DropReason::FragmentEmpty));
    assert_eq!(split(Sequence::new(0), &packet[1..]).unwrap().len(), 256);
}

/// The original forgot a packet when it was whole, and delivered each duplicate again.
#[test]
fn a_delivered_packet_is_not_delivered_again() {
    let (mut bench, packet) = (Bench::new(), data(9, 2500));
    assert_eq!(bench.put_all(9, &packet), Ok(Some(packet.clone())));
    for sequence in 10..=264 {
        bench.put_one(sequence, 0, 1).unwrap();
        assert_eq!(bench.put(&piece(9, 0, &packet)), Err(DropReason::Duplicate));
        assert_eq!(bench.put(&piece(9, 2, &packet)), Err(DropReason::Duplicate));
    }
    bench.put_one(265, 0, 1).unwrap();
    assert_eq!(bench.put(&piece(9, 0, &packet)), Err(DropReason::TooOld));
}

/// Of two copies that differ the first wins, whatever its length.
#[test]
fn the_first_copy_of_a_fragment_wins() {
    let (mut bench, packet) = (Bench::new(), data(9, 1500));
    assert_eq!(bench.put(&piece(9, 1, &packet)), Ok(None));
    let longer = [0; 900];
    let other = Fragment::new(Sequence::new(9), 1, 2, &longer).unwrap();
    assert_eq!(bench.put(&other), Err(DropReason::Duplicate));
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
    assert_eq!(bench.put_one(9, 1, 3), Err(DropReason::TooOld));
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
    assert_eq!(bench.put_one(65_535, 0, 2), Err(DropReason::TooOld));
    assert_eq!(bench.put_one(499, 0, 2), Err(DropReason::Duplicate));
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
                assert_eq!(reason, DropReason::TooOld);
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
        assert_eq!(bench.put_one(i, 0, 2), Err(DropReason::TooOld));
    }
}

/// Whole packets make room, the oldest first, and what comes late for them is dropped without a new entry.
#[test]
fn the_oldest_packet_makes_room() {
    let config = FragmentPoolConfig {
        max_fragments: 8,
        max_bytes_per_peer: 20_000,
        ..FragmentPoolConfig::default()
    };
    let mut bench = Bench::with(config);
    for sequence in 0..20 {
        bench.put_one(sequence, 0, 8).unwrap();
    }
    // What is kept is the newest packets, as many as fit.
    let kept = bench.pool.stats().packets as u16;
    assert!((10..20).contains(&kept), "{kept} packets");
    for sequence in 0..20 - kept {
        for index in [1, 2, 0] {
            assert_eq!(bench.put_one(sequence, index, 8), Err(DropReason::Evicted), "{sequence}");
        }
        assert_eq!(bench.peer.state(Sequence::new(sequence)), EntryState::Evicted);
    }
    // Each further fragment of the newest pushes out the oldest that is left, in order.
    for index in 1..7 {
        bench.put_one(19, index, 8).unwrap();
    }
    let left = bench.pool.stats().packets as u16;
    let oldest_left = 20 - left;
    assert_eq!(bench.put_one(oldest_left - 1, 1, 8), Err(DropReason::Evicted));
    assert_eq!(bench.put_one(oldest_left, 0, 8), Err(DropReason::Duplicate));
    let whole = bench.put_one(19, 7, 8).unwrap().unwrap();
    assert_eq!(whole, data(19, 8 * 1024));
}

/// The cap of all peers: who holds more than an equal share makes room out of its own.
#[test]
fn a_flood_of_one_peer_costs_the_others_nothing() {
    let config = FragmentPoolConfig {
        max_fragments: 8,
        max_bytes_per_peer: 40_000,
        max_bytes: 44_000,
        ..FragmentPoolConfig::default()
    };
    let mut pool = FragmentPool::new(config).unwrap();
    let (mut honest, mut flood) = (Reassembler::new(), Reassembler::new());
    let packet = data(7, 5 * 1024);
    // The honest packet is the oldest of all, and all but its last fragment is here.
    for fragment in split(Sequence::new(0), &packet).unwrap().take(4) {
        assert_eq!(put(ms(0), &mut honest, &mut pool, &fragment), Ok(None));
    }
    let block = [1; 1024];
    for i in 0..1_000u16 {
        let fragment = Fragment::new(Sequence::new(i), 0, 8, &block).unwrap();
        assert_eq!(put(ms(0), &mut flood, &mut pool, &fragment), Ok(None));
    }
    let held = pool.stats().used_bytes;
    assert!(held > config.max_bytes - 2_000, "the cap of all was not what stopped it: {held}");
    let last = piece(0, 4, &packet);
    assert_eq!(put(ms(0), &mut honest, &mut pool, &last), Ok(Some(packet.clone())));
    assert!(pool.stats().evicted_for_own_peer > 900);
    assert_eq!(pool.stats().evicted_for_others, 0);
}

/// With so many peers that an equal share is less than a packet, a packet must not make room for itself: it
/// would be given up by its own fragments, and no packet of that size ever come through.
#[test]
fn a_packet_larger_than_a_fair_share_comes_through_a_full_pool() {
    let config = FragmentPoolConfig {
        max_fragments: 16,
        max_bytes_per_peer: 20_000,
        max_bytes: 100_000,
        ..FragmentPoolConfig::default()
    };
    let mut pool = FragmentPool::new(config).unwrap();
    let mut flood: Vec<Reassembler> = (0..100).map(|_| Reassembler::new()).collect();
    let block = [1; 1024];
    for peer in &mut flood {
        let fragment = Fragment::new(Sequence::new(0), 0, 16, &block).unwrap();
        assert_eq!(put(ms(0), peer, &mut pool, &fragment), Ok(None));
    }
    for sequence in 0..20 {
        let (mut honest, packet) = (Reassembler::new(), data(7, 12 * 1024));
        let mut whole = Ok(None);
        for fragment in split(Sequence::new(sequence), &packet).unwrap() {
            whole = put(ms(1), &mut honest, &mut pool, &fragment);
            let flooding = &mut flood[usize::from(sequence) * 4 + fragment.index() % 4];
            let more = Fragment::new(Sequence::new(1 + sequence), 0, 16, &block).unwrap();
            drop(put(ms(1), flooding, &mut pool, &more));
        }
        assert_eq!(whole, Ok(Some(packet)), "packet {sequence}");
    }
}

/// A fragment may cost its own packet the place: the packet is then gone, and its blocks are given back.
#[test]
fn a_packet_that_is_the_oldest_of_a_peer_at_its_cap_gives_way() {
    let config = FragmentPoolConfig {
        max_fragments: 8,
        max_bytes_per_peer: 12_000,
        max_bytes: 20_000,
        ..FragmentPoolConfig::default()
    };
    let mut bench = Bench::with(config);
    bench.put_one(0, 0, 8).unwrap();
    for index in 0..6 {
        bench.put_one(1, index, 8).unwrap();
    }
    let full = bench.pool.stats().used_bytes;
    let outcomes: Vec<Put> = (1..6).map(|index| bench.put_one(0, index, 8)).collect();
    assert!(outcomes.contains(&Err(DropReason::Evicted)), "{outcomes:?}");
    assert_eq!(outcomes[4], Err(DropReason::Evicted));
    assert!(bench.pool.stats().used_bytes < full);
    assert_eq!(bench.pool.stats().packets, 1);
}

/// Many peers, none above its share: then the oldest packet of all makes room.
#[test]
fn among_equal_peers_the_oldest_packet_of_all_makes_room() {
    let config = FragmentPoolConfig {
        max_fragments: 8,
        max_bytes_per_peer: 20_000,
        max_bytes: 30_000,
        ..FragmentPoolConfig::default()
    };
    let mut pool = FragmentPool::new(config).unwrap();
    let mut peers: Vec<Reassembler> = (0..40).map(|_| Reassembler::new()).collect();
    let block = [1; 1024];
    let fragment = |index| Fragment::new(Sequence::new(0), index, 8, &block).unwrap();
    for peer in &mut peers {
        put(ms(0), peer, &mut pool, &fragment(0)).unwrap();
    }
    let kept = pool.stats().packets;
    assert!((15..25).contains(&kept), "{kept}");
    assert_eq!(pool.stats().evicted_for_others, 40 - kept as u64);
    let (gone, left) = peers.split_at_mut(40 - kept);
    for peer in gone {
        assert_eq!(put(ms(0), peer, &mut pool, &fragment(1)), Err(DropReason::Evicted));
    }
    for peer in left {
        assert_eq!(put(ms(0), peer, &mut pool, &fragment(0)), Err(DropReason::Duplicate));
    }
}

/// A packet whose last fragment is lost does not hold memory until the sequence comes round.
#[test]
fn a_packet_that_takes_too_long_is_given_up() {
    let mut bench = Bench::new();
    bench.put_one(0, 0, 2).unwrap();
    assert_eq!(bench.pool.poll_timeout(), Some(ms(5_000) + Duration::from_nanos(1)));
    bench.now = ms(5_000);
    bench.put_one(1, 0, 3).unwrap();
    assert_eq!(bench.pool.stats().packets, 2, "five seconds are not too long");
    bench.now = ms(5_001);
    assert_eq!(bench.put_one(0, 1, 2), Err(DropReason::Evicted));
    assert_eq!(bench.pool.stats().packets, 1);
    bench.pool.handle_timeout(ms(11_000));
    assert_eq!(bench.pool.stats().used_bytes, 0);
    assert_eq!((bench.pool.stats().timed_out, bench.pool.poll_timeout()), (2, None));
}

/// One fragment does not pay for the silence of thousands: it gives a few of the late packets up.
#[test]
fn many_packets_that_took_too_long_are_given_up_a_few_at_a_time() {
    let (mut bench, mut others) = (Bench::new(), vec![]);
    for i in 0..100 {
        let mut peer = Reassembler::new();
        let packet = data(i, 2048);
        put(ms(0), &mut peer, &mut bench.pool, &piece(0, 0, &packet)).unwrap();
        others.push(peer);
    }
    bench.now = ms(6_000);
    bench.put_one(0, 0, 2).unwrap();
    let left = bench.pool.stats().packets;
    assert!((85..100).contains(&left), "{left}");
    (1..20).for_each(|sequence| drop(bench.put_one(sequence, 0, 2)));
    assert_eq!(bench.pool.stats().packets, 20);
}

/// The clock is a year ahead when a packet begins: it must not keep all others from timing out.
#[test]
fn a_clock_that_jumped_ahead_does_not_stop_the_timeouts() {
    let mut bench = Bench::new();
    bench.now = ms(365 * 24 * 3_600_000);
    bench.put_one(0, 0, 2).unwrap();
    bench.now = ms(1_000);
    bench.put_one(1, 0, 2).unwrap();
    bench.pool.handle_timeout(ms(1_000));
    bench.pool.handle_timeout(ms(6_500));
    assert_eq!(bench.pool.stats().packets, 0);
}

/// The same numbers again, all of them delivered once: a peer that started over soon after.
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

#[test]
fn a_peer_that_leaves_gives_its_memory_back() {
    let mut bench = Bench::new();
    (0..9).for_each(|sequence| drop(bench.put_one(sequence, 0, 2)));
    assert!(bench.pool.stats().used_bytes > 9 * 1024);
    bench.peer.clear(&mut bench.pool);
    let stats = bench.pool.stats();
    assert_eq!((stats.used_bytes, stats.packets, stats.peers), (0, 0, 0));
    // And may come again.
    let packet = data(0, 3000);
    assert_eq!(bench.put_all(0, &packet), Ok(Some(packet)));
}

#[test]
fn limits_that_cannot_work_are_refused() {
    let with = |change: fn(&mut FragmentPoolConfig)| {
        let mut config = FragmentPoolConfig::default();
        change(&mut config);
        FragmentPool::new(config).err()
    };
    assert_eq!(with(|_| {}), None);
    assert_eq!(with(|c| c.max_fragments = 0), Some(PoolConfigError::MaxFragments));
    assert_eq!(with(|c| c.max_fragments = 257), Some(PoolConfigError::MaxFragments));
    assert_eq!(with(|c| c.max_bytes = 1 << 19), Some(PoolConfigError::CapBelowPeerCap));
    let Some(PoolConfigError::PeerCapTooSmall { least }) = with(|c| c.max_bytes_per_peer = 1)
    else {
        panic!("a cap of one byte was taken");
    };
    assert!((256 * 1024..300 * 1024).contains(&least), "{least}");
}

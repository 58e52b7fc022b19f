//! The memory of fragments: which are accepted, which peer makes room, which packets are given up and when.

use std::time::Duration;

use haulier_article::fragment::{
    EntryState, Fragment, FragmentPool, FragmentPoolConfig, PoolConfigError, Reassembler, split,
};
use haulier_article::{PacketDropReason, Sequence};

use super::{Bench, Put, piece, put};
use crate::support::{data, ms};

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
    let config = FragmentPoolConfig::default().with_max_fragments(4);
    let mut bench = Bench::with(config);
    assert_eq!(bench.put_one(0, 0, 5), Err(PacketDropReason::PacketTooBig));
    assert_eq!(bench.peer.state(Sequence::new(0)), EntryState::Unheard);
    let packet = data(0, 4096);
    assert_eq!(bench.put_all(0, &packet), Ok(Some(packet)));
}

/// Whole packets make room, the oldest first, and what comes late for them is dropped without a new entry.
#[test]
fn the_oldest_packet_makes_room() {
    let config =
        FragmentPoolConfig::default().with_max_fragments(8).with_max_bytes_per_peer(20_000);
    let mut bench = Bench::with(config);
    for sequence in 0..20 {
        bench.put_one(sequence, 0, 8).unwrap();
    }
    // What is kept is the newest packets, as many as fit.
    let kept = bench.pool.stats().packets as u16;
    assert!((10..20).contains(&kept), "{kept} packets");
    for sequence in 0..20 - kept {
        for index in [1, 2, 0] {
            assert_eq!(
                bench.put_one(sequence, index, 8),
                Err(PacketDropReason::Evicted),
                "{sequence}"
            );
        }
        assert_eq!(bench.peer.state(Sequence::new(sequence)), EntryState::Evicted);
    }
    // Each further fragment of the newest pushes out the oldest that is left, in order.
    for index in 1..7 {
        bench.put_one(19, index, 8).unwrap();
    }
    let left = bench.pool.stats().packets as u16;
    let oldest_left = 20 - left;
    assert_eq!(bench.put_one(oldest_left - 1, 1, 8), Err(PacketDropReason::Evicted));
    assert_eq!(bench.put_one(oldest_left, 0, 8), Err(PacketDropReason::Duplicate));
    let whole = bench.put_one(19, 7, 8).unwrap().unwrap();
    assert_eq!(whole, data(19, 8 * 1024));
}

/// The limit for all peers: a peer that holds more than an equal share makes room out of its own.
#[test]
fn a_flood_of_one_peer_costs_the_others_nothing() {
    let config = FragmentPoolConfig::default()
        .with_max_fragments(8)
        .with_max_bytes_per_peer(40_000)
        .with_max_bytes(44_000);
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

/// Below its share a peer makes room out of the others, and keeps what it has; also when that is the oldest
/// of all, as long as there is anything else.
#[test]
fn a_peer_below_its_share_keeps_what_it_has() {
    let config = FragmentPoolConfig::default()
        .with_max_fragments(8)
        .with_max_bytes_per_peer(20_000)
        .with_max_bytes(40_000);
    for begins_first in [true, false] {
        let mut pool = FragmentPool::new(config).unwrap();
        let mut honest = Reassembler::new();
        let packets = [data(7, 5 * 1024), data(8, 5 * 1024)];
        let block = [1; 1024];
        if begins_first {
            put(ms(0), &mut honest, &mut pool, &piece(0, 0, &packets[0])).unwrap();
        }
        // Others fill the pool to the brim, in packets of one fragment each.
        let mut flood = [Reassembler::new(), Reassembler::new(), Reassembler::new()];
        for i in 0..60 {
            if pool.stats().used_bytes + 2_000 > config.max_bytes {
                break;
            }
            let fragment = Fragment::new(Sequence::new(i / 3), 0, 8, &block).unwrap();
            put(ms(0), &mut flood[usize::from(i % 3)], &mut pool, &fragment).unwrap();
        }
        assert_eq!(pool.stats().evicted_for_others, 0, "the pool overflowed already");
        if !begins_first {
            put(ms(0), &mut honest, &mut pool, &piece(0, 0, &packets[0])).unwrap();
        }
        // Its second packet would push its first out if that were the oldest of all.
        let packets = &packets[..if begins_first { 1 } else { 2 }];
        for index in 0..5 {
            for (at, packet) in (0..).zip(packets) {
                let put = put(ms(1), &mut honest, &mut pool, &piece(at, index, packet));
                match (at, index) {
                    (0, 0) => assert!(put == Err(PacketDropReason::Duplicate)),
                    (_, 4) => assert!(put == Ok(Some(packet.clone())), "first: {begins_first}"),
                    _ => assert!(put == Ok(None)),
                }
            }
        }
        assert!(pool.stats().evicted_for_others > 0 && pool.stats().evicted_for_own_peer == 0);
    }
}

/// With so many peers that an equal share is less than a packet, a packet must not make room for itself: it
/// would be given up by its own fragments, and no packet of that size ever come through.
#[test]
fn a_packet_larger_than_a_fair_share_comes_through_a_full_pool() {
    let config = FragmentPoolConfig::default()
        .with_max_fragments(16)
        .with_max_bytes_per_peer(20_000)
        .with_max_bytes(100_000);
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
    let config = FragmentPoolConfig::default()
        .with_max_fragments(8)
        .with_max_bytes_per_peer(12_000)
        .with_max_bytes(20_000);
    let mut bench = Bench::with(config);
    bench.put_one(0, 0, 8).unwrap();
    for index in 0..6 {
        bench.put_one(1, index, 8).unwrap();
    }
    let full = bench.pool.stats().used_bytes;
    let outcomes: Vec<Put> = (1..6).map(|index| bench.put_one(0, index, 8)).collect();
    assert!(outcomes.contains(&Err(PacketDropReason::Evicted)), "{outcomes:?}");
    assert_eq!(outcomes[4], Err(PacketDropReason::Evicted));
    assert!(bench.pool.stats().used_bytes < full);
    assert_eq!(bench.pool.stats().packets, 1);
}

/// Many peers, none above its share: then the oldest packet of all makes room.
#[test]
fn among_equal_peers_the_oldest_packet_of_all_makes_room() {
    let config = FragmentPoolConfig::default()
        .with_max_fragments(8)
        .with_max_bytes_per_peer(20_000)
        .with_max_bytes(30_000);
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
        assert_eq!(put(ms(0), peer, &mut pool, &fragment(1)), Err(PacketDropReason::Evicted));
    }
    for peer in left {
        assert_eq!(put(ms(0), peer, &mut pool, &fragment(0)), Err(PacketDropReason::Duplicate));
    }
}

/// A packet whose last fragment is lost does not hold memory until the sequence comes round.
#[test]
fn a_packet_that_takes_too_long_is_given_up() {
    let mut bench = Bench::new();
    bench.put_one(0, 0, 3).unwrap();
    assert_eq!(bench.pool.poll_timeout(), Some(ms(5_000) + Duration::from_nanos(1)));
    bench.now = ms(5_000);
    bench.put_one(0, 1, 3).unwrap();
    bench.put_one(1, 0, 3).unwrap();
    assert_eq!(bench.pool.stats().packets, 2, "five seconds are not too long");
    bench.now = ms(5_001);
    assert_eq!(bench.put_one(0, 2, 3), Err(PacketDropReason::Evicted));
    assert_eq!(bench.pool.stats().packets, 1);
    bench.pool.handle_timeout(ms(11_000));
    assert_eq!(bench.pool.stats().used_bytes, 0);
    assert_eq!((bench.pool.stats().timed_out, bench.pool.poll_timeout()), (2, None));
}

/// The remaining fragments of a packet that was given up are refused for as long as they keep arriving. A
/// fragment with its number that comes much later belongs to another packet, after a restart of the peer.
#[test]
fn the_number_of_a_packet_that_was_given_up_is_free_after_a_second() {
    let mut bench = Bench::new();
    bench.put_one(0, 0, 9).unwrap();
    bench.pool.handle_timeout(ms(5_001));
    bench.now = ms(900);
    for index in 1..8 {
        assert_eq!(bench.put_one(0, index, 9), Err(PacketDropReason::Evicted), "{index}");
        bench.now = bench.now + Duration::from_secs(1);
    }
    bench.now = bench.now + Duration::from_millis(1);
    let packet = data(0, 2 * 1024);
    assert_eq!(bench.put_all(0, &packet), Ok(Some(packet)));
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
    let Some(PoolConfigError::PeerCapTooSmall { min_bytes }) = with(|c| c.max_bytes_per_peer = 1)
    else {
        panic!("a cap of one byte was taken");
    };
    assert!((256 * 1024..300 * 1024).contains(&min_bytes), "{min_bytes}");
}

//! Whole transfers.

use super::*;
use crate::bulk::repair::counted;

/// Loss, reordering and lost acks, with blocks of all sizes and priorities, some of them cancelled or
/// declined: each ends once, and what was not given up arrives.
#[test]
fn blocks_of_all_sizes_arrive_whatever_the_link_does() {
    for seed in 0..12 {
        let mut world = World::new(PEER, seed);
        (world.loss, world.reordered) = (world.random(150), world.random(100));
        let mut handles = BTreeSet::new();
        let mut given_up = BTreeSet::new();
        for _ in 0..12 {
            let bytes = match world.random(4) {
                0 => 0,
                1 => 1 + world.random(2_000),
                2 => 1 + world.random(200_000),
                _ => CHUNK as u64 + world.random(3 * CHUNK as u64),
            };
            let priority = world.random(3) as u8;
            let handle = world.send(&block(bytes as usize), options(priority));
            handles.insert(handle);
            let pause = world.random(200);
            world.run(pause);
            let now = world.now();
            match world.random(8) {
                0 if world.blocks.cancel(now, handle, 1) => {
                    given_up.insert(handle);
                }
                1 => {
                    let unfinished = |number: &&u32| !world.peer.finished.contains(number);
                    let number = world.peer.announced.keys().find(unfinished).copied();
                    world.peer.declines.extend(number);
                }
                _ => {}
            }
        }
        world.run_out(60_000);
        let mut ended = BTreeSet::new();
        for (_, event) in &world.events {
            let (OutgoingEvent::Sent { handle } | OutgoingEvent::Declined { handle, .. }) = *event;
            assert!(ended.insert(handle) && !given_up.contains(&handle), "{seed}: {handle} twice");
        }
        ended.extend(given_up);
        assert_eq!(ended, handles, "seed {seed}");
    }
}

/// One world for many joiners, on links of two sizes that lose a tenth: its tree is made with the block, and
/// the repair slices of a chunk once for each size, whoever sends them first.
#[test]
fn a_block_is_hashed_and_encoded_once_for_all_who_get_it() {
    const CHUNKS: usize = 3;
    let block = block(CHUNKS * CHUNK);
    let (before, sizes) = (counted::encodings(), [ROOM, 1_423]);
    let mut repaired = 0;
    for seed in 0..8 {
        let mut world = World { loss: 100, ..World::new(PEER, seed) };
        world.room = sizes[seed as usize % 2];
        world.blocks.set_slice_room(world.room);
        world.send(&block, options(0));
        world.step();
        let announced = world.blocks.announced.iter().next().expect("it is announced");
        assert!(core::ptr::eq(announced.block.pages(), block.pages()), "the tree is shared");
        assert_eq!(announced.block.data().as_ptr(), block.data().as_ptr(), "so are the bytes");
        world.run_out(60_000);
        repaired += usize::from(world.blocks.transfer.stats().repairs > 0);
    }
    let encodings = counted::encodings() - before;
    assert!(repaired == 8 && encodings <= CHUNKS * sizes.len(), "{repaired}: {encodings}");
}

#[test]
fn an_urgent_block_overtakes_at_once() {
    let mut world = World::new(PEER, 1);
    let map = world.send(&block(20 * CHUNK), options(0));
    world.run(2_000);
    let begun = world.now / 1_000;
    let urgent = world.send(&block(50_000), options(5));
    world.run(150);
    // 40 ms on the way, 43 ms for 50 kB, and what the flow has waiting at the bottleneck.
    let took = world.sent_at(urgent).expect("the urgent block is there") - begun;
    assert!(took < 120, "{took} ms");
    assert_eq!(world.sent_at(map), None);
    world.run_out(10_000);
    assert!(world.sent_at(map).is_some());
    assert!((1..=3).contains(&world.asked), "{} ack frequency frames", world.asked);
}

/// 56 slices of the first chunk of one block, and each slice that replaces them, get through one time in ten:
/// both blocks end. The other block waits for that chunk, and if no such slice ever gets through it waits
/// for good: the window is full of them, and each probe is one of them (decision 0025). Which slices get
/// through is drawn by number: when every tenth did, probes in groups of four missed one for 20 s.
#[test]
fn a_chunk_that_nearly_always_gets_lost_ends() {
    let run = |seed: u64| {
        let mut world = World::new(PEER, 2);
        let held = world.send(&block(2 * CHUNK), options(0));
        let other = world.send(&block(4 * CHUNK), options(0));
        let is_held = |sent: &mut Sent| match sent {
            Sent::Slice { at, symbol, .. } => *at == super::at(0, 0) && symbol.get() >= 200,
            _ => false,
        };
        let drawn = |number: u64| (number + 1_000 * seed).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
        for _ in 0..20_000 {
            world.arriving.retain(|(_, number), sent| drawn(*number) % 10 == 0 || !is_held(sent));
            world.step();
        }
        let [took, held] = [other, held].map(|it| world.sent_at(it).expect("it is there"));
        took.max(held)
    };
    let mut took: Vec<u64> = (0..11).map(run).collect();
    took.sort_unstable();
    // Without losses six chunks take 1.3 s.
    assert!(took[5] < 4_500 && took[10] < 10_000, "{took:?} ms");
}

/// Without repair slices the sources are repeated.
#[test]
fn a_peer_without_repair_codes_gets_sources_alone() {
    let mut world = World::new(PeerLimits { has_repair: false, ..PEER }, 3);
    world.loss = 100;
    world.send(&block(4 * CHUNK), options(0));
    world.run_out(10_000);
    let stats = world.blocks.transfer.stats();
    assert!(stats.repairs == 0 && stats.resent > 50, "{stats:?}");
    let mut world = World::new(PEER, 3);
    world.loss = 100;
    world.send(&block(4 * CHUNK), options(0));
    world.run_out(10_000);
    let stats = world.blocks.transfer.stats();
    assert!(stats.repairs > 20, "of the last chunk at least: {stats:?}");
}

/// [H-4.2h] A reader that pauses for a minute stops the sender. Nothing is lost or late for that, and no
/// timer runs out.
#[test]
fn without_credit_the_sender_waits_and_learns_nothing() {
    let mut world = World::new(PeerLimits { credit: 6, ..PEER }, 4);
    (world.peer.is_reading, world.peer.given) = (false, 6);
    world.send(&block(12 * CHUNK), options(0));
    world.run(5_000);
    let (slices, known) = (world.blocks.transfer.stats().slices, world.blocks.path.known());
    assert_eq!((world.sent.len(), world.peer.done.len()), (5, 5), "and one for the announcement");
    world.run(60_000);
    assert_eq!(world.blocks.transfer.stats().slices, slices, "nothing is sent");
    assert_eq!(world.blocks.path.known().loss, known.loss, "nothing counts as lost");
    world.peer.is_reading = true;
    world.peer.finish();
    world.progress += 1;
    world.peer.progress(world.now(), world.progress, &mut world.blocks).unwrap();
    let took = world.run_out(10_000);
    assert!(took < 2_000, "{took} ms for 7 chunks: at the rate from before");
}

/// The path carried 1500 bytes and then 1200: chunks in slices of 1434 are cut anew, and what was in flight
/// of them does not count.
#[test]
fn a_path_that_shrinks_cuts_chunks_anew() {
    let mut world = World::new(PEER, 5);
    world.room = 1472 - 29;
    world.blocks.set_slice_room(world.room);
    let handle = world.send(&block(6 * CHUNK), options(0));
    world.run(500);
    assert!(world.peer.chunks.values().any(|(size, _)| size.bytes() == 1434));
    world.carries = 1228;
    world.run(200);
    world.room = ROOM;
    world.blocks.set_slice_room(ROOM);
    world.blocks.transfer.on_black_hole();
    world.run_out(10_000);
    assert!(world.sent_at(handle).is_some());
    let stats = world.blocks.transfer.stats();
    // 1 or 2 of 6 chunks twice, and what was sent into the hole.
    assert!(stats.slices < 9 * 226, "{stats:?}");
}

/// The announcement is sent first, then the pages, then the chunk; a lost page is sent again.
#[test]
fn pages_go_before_their_chunks_and_again_when_lost() {
    let mut world = World::new(PEER, 6);
    world.blocks.transfer.set_max_rate_bps(100_000_000);
    let data = block(70 * CHUNK);
    let handle = world.send(&data, options(0));
    assert!(world.blocks.poll_page(ROOM).is_none(), "not announced");
    let now = world.now();
    let frame = world.blocks.poll_announcement(now).unwrap();
    assert_eq!((frame.number, frame.length, frame.root), (0, 70 * CHUNK as u64, *data.digest()));
    let now = millis(1);
    assert!(world.blocks.poll_slice(now, &world.ledger, ROOM).is_none(), "no pages yet");
    assert!(world.blocks.poll_page(100).is_none(), "no room");
    let mut page = || {
        world
            .blocks
            .poll_page(ROOM)
            .map(|(_, frame)| (frame.level, frame.first, frame.values.len()))
    };
    assert_eq!([page(), page(), page()], [Some((1, 0, 3)), Some((0, 0, 32)), None]);
    let ((at, _), _) = world.blocks.poll_slice(now, &world.ledger, ROOM).unwrap();
    assert_eq!(at, super::at(0, 0));
    world.blocks.on_page_lost(0, 0);
    let (place, frame) = world.blocks.poll_page(ROOM).unwrap();
    assert_eq!((place, frame.level, frame.first), (0, 0, 0));
    assert!(!world.blocks.has_page());
    world.blocks.announced.on_announced(0, false);
    world.loss = 50;
    world.run_out(30_000);
    assert!(world.sent_at(handle).is_some() && (2..12).contains(&world.pages), "{}", world.pages);
}

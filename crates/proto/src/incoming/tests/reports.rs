//! The reports of the receiving end.

use super::*;

#[test]
fn progress_says_what_is_done_of_each_block() {
    let sent = [Sent::new(0, 5 * CHUNK), Sent::new(1, CHUNK), Sent::new(2, CHUNK)];
    let mut to = receiver();
    assert_eq!(to.progress_due(), ProgressDue::No);
    sent.iter().for_each(|block| block.announce(&mut to));
    assert_eq!(to.progress_due(), ProgressDue::WithAck);
    for (block, chunk) in [(0, 0), (0, 2), (0, 4), (2, 0)] {
        sent[block].send_chunk(&mut to, chunk, 1434);
    }
    let map = alloc::vec![0b101];
    let open = alloc::vec![(2, 1, Vec::new()), (0, 1, map), (1, 0, Vec::new())];
    assert_eq!(said(&to), (39, 0, open), "seven that are done, and 32");
    assert_eq!(to.progress_due(), ProgressDue::Now, "a block is finished");
    let mark = to.on_progress_sent();
    assert_eq!(to.progress_due(), ProgressDue::WithAck);
    sent[0].send_chunk(&mut to, 1, 1434);
    sent[0].send_chunk(&mut to, 3, 1434);
    sent[1].send_chunk(&mut to, 0, 1434);
    assert_eq!(to.progress_due(), ProgressDue::Now);
    assert_eq!(said(&to), (42, 3, Vec::new()), "the floor says all");
    let second = to.on_progress_sent();
    to.on_progress_heard(mark);
    to.on_progress_lost(second);
    assert_eq!(to.progress_due(), ProgressDue::Now);
    let third = to.on_progress_sent();
    to.on_progress_heard(third);
    assert_eq!(to.progress_due(), ProgressDue::No);
}

/// However many blocks and chunks, the frame fits: maps are cut, lowest blocks first.
#[test]
fn progress_fits_its_room() {
    let config = IncomingConfig { max_block_bytes: 1 << 30, initial_credit: 1024, ..config() };
    let mut to = IncomingBlocks::new(NOW, config);
    for number in 0..32 {
        let root = [number as u8; 32];
        let frame = BlockFrame { number, tag: 0, length: 1 << 30, root };
        to.on_block(NOW, &frame).unwrap();
        // As if every other chunk were done.
        let block = to.slots.open_mut(number).unwrap();
        (0..512).for_each(|n| block.done.insert(2 * n + 1));
    }
    for room in [0, 60, 150, 300, 900, 1150, 5000] {
        let mut entries = Vec::new();
        let frame = to.progress_frame(Duration::from_millis(16), room, &mut entries);
        assert_eq!(frame.is_some(), room >= 150, "{room}");
        if let Some(frame) = frame {
            assert!(frame.encoded_len() <= room && frame.entries().count() == 32);
            assert_eq!(frame.lateness_ms, 16);
            let maps = frame.entries().map(|entry| entry.map.len());
            assert_eq!(maps.sum::<usize>(), (room - 102).min(32 * 128));
        }
    }
}

#[test]
fn slices_here_are_said_every_50_ms() {
    let sent = Sent::new(0, 2 * CHUNK);
    let ms = Instant::from_millis;
    let mut to = receiver();
    sent.announce(&mut to);
    sent.send_chunk(&mut to, 0, 1434);
    for (at, slice) in [(100, 3), (110, 17), (120, 3)] {
        let _ = to.on_slice(ms(at), &sent.source(1, 1434, slice)).unwrap();
    }
    assert!(to.poll_slices_here(ms(149)).is_none());
    assert_eq!(to.slices_here_at(), Some(ms(150)), "not for the chunk that is done");
    let here = to.poll_slices_here(ms(150)).unwrap();
    let frame = here.frame();
    assert_eq!((frame.at.index, frame.size.bytes(), frame.map.len()), (1, 1434, 23));
    assert_eq!(frame.map[..3], [0b1000, 0, 0b10]);
    assert_eq!((to.slices_here_at(), to.poll_slices_here(ms(900))), (None, None), "nothing is new");
    to.on_slice(ms(200), &sent.source(1, 1434, 0)).unwrap();
    assert_eq!(to.slices_here_at(), Some(ms(250)));
    to.on_cancel(ms(210), 0, 0, 2).unwrap();
    assert!(to.poll_slices_here(ms(250)).is_none() && to.slices_here_at().is_none());
}

/// Its sender takes the slices to be here, because they were acknowledged: the map alone says otherwise, so
/// it is said until the chunk is whole, though nothing arrives.
#[test]
fn a_chunk_that_was_started_over_is_reported_until_it_is_whole() {
    let sent = Sent::new(0, 2 * CHUNK);
    for page_first in [true, false] {
        let mut to = receiver();
        to.on_block(NOW, &sent.frame()).unwrap();
        if page_first {
            to.on_hashes(NOW, &sent.page(0, 0)).unwrap();
        }
        let data = [1; 8934];
        let forged = SliceFrame { data: &data, ..sent.repair(1, 8934, 0) };
        assert_eq!(to.on_slice(NOW, &forged), Ok(Fate::New));
        for slice in 1..30 {
            to.on_slice(NOW, &sent.source(1, 8934, slice)).unwrap();
        }
        if !page_first {
            to.on_hashes(NOW, &sent.page(0, 0)).unwrap();
        }
        assert_eq!(to.waiting_chunks(), 0);
        let mut now = NOW;
        for _ in 0..100 {
            now = to.slices_here_at().unwrap();
            let here = to.poll_slices_here(now).unwrap();
            assert_eq!((here.frame().at.index, here.frame().map), (1, &[0; 4][..]));
            assert!(to.poll_slices_here(now).is_none());
        }
        assert_eq!(now, NOW + Duration::from_secs(5));
        sent.send_chunk(&mut to, 1, 8934);
        assert!(to.poll_slices_here(now + Duration::from_secs(1)).is_none());
    }
}

#[test]
fn a_block_that_is_here_by_its_root_is_finished_when_its_sender_knows() {
    let sent = [Sent::new(0, 600_000), Sent::new(1, 70_000)];
    let mut to = receiver();
    assert!(to.have(*sent[0].tree.root(), Here::Whole, false));
    assert!(!to.have(*sent[0].tree.root(), Here::Whole, false), "known");
    assert!(to.have(*sent[1].tree.root(), Here::Whole, true));
    let control = to.poll_control().unwrap();
    assert_eq!(to.control_frame(control), Some(Frame::RootHere(*sent[0].tree.root())));
    to.on_block(NOW, &sent[0].frame()).unwrap();
    to.on_block(NOW, &sent[1].frame()).unwrap();
    for block in 0..2 {
        assert_eq!(to.poll_event(NOW), Some(IncomingEvent::Here { block, tag: 7 }));
    }
    assert_eq!(to.on_slice(NOW, &sent[0].source(0, 1434, 0)), Ok(Fate::Dropped));
    assert_eq!(said(&to).1, 0, "what was opened counts no more once the sender knows");
    to.on_control_lost(control);
    assert_eq!(to.poll_control(), Some(control));
    to.on_control_acked(NOW, control);
    assert_eq!((said(&to).1, to.has_control(), to.work()), (2, false, Work::default()));
    to.check_invariants();
}

#[test]
fn chunks_that_are_here_need_not_be_sent() {
    let sent = Sent::new(0, 11 * CHUNK + 9);
    let config = IncomingConfig { delivery: Delivery::Chunks, ..config() };
    let mut to = IncomingBlocks::new(NOW, config);
    let map = alloc::vec![0b1111_1110, 0b0011];
    assert!(to.have(*sent.tree.root(), Here::Chunks(map.clone()), false));
    to.on_block(NOW, &sent.frame()).unwrap();
    let control = to.poll_control().unwrap();
    let here = ChunksHereFrame { block: 0, first: 0, map: &map };
    assert_eq!(to.control_frame(control), Some(Frame::ChunksHere(here)));
    assert_eq!(to.on_hashes(NOW, &sent.page(0, 0)), Ok(Fate::New));
    assert_eq!(to.on_slice(NOW, &sent.source(3, 1434, 0)), Ok(Fate::Dropped), "it is here");
    assert_eq!(said(&to).2, [(0, 0, alloc::vec![0xff, 0b1])]);
    assert_eq!(to.progress().next(), Some((7, 9 * CHUNK as u64, 11 * CHUNK as u64 + 9)));
    [10, 0, 11].into_iter().for_each(|chunk| sent.send_chunk(&mut to, chunk, 1434));
    assert!(matches!(to.poll_event(NOW), Some(IncomingEvent::Announced { block: 0, .. })));
    for chunk in [10, 0, 11] {
        let Some(IncomingEvent::Chunk { at, data, .. }) = to.poll_event(NOW) else { panic!() };
        assert!(at.index == chunk && data == sent.chunk(chunk));
    }
    // It is finished when the sender has heard which chunks it need not count.
    assert_eq!((said(&to).1, said(&to).2), (0, Vec::new()));
    to.check_invariants();
    to.on_control_acked(NOW, control);
    assert_eq!(said(&to).1, 1);
    assert!(
        core::iter::from_fn(|| to.poll_event(NOW))
            .any(|event| event == IncomingEvent::Complete { block: 0, tag: 7 })
    );
    to.check_invariants();
}

/// The application first reports that it has both chunks, and then none, because its journal was wrong.
#[test]
fn what_is_here_of_a_block_can_become_less() {
    let sent = Sent::new(0, 2 * CHUNK);
    let config = IncomingConfig { delivery: Delivery::Chunks, ..config() };
    let mut to = IncomingBlocks::new(NOW, config);
    assert!(to.have(*sent.tree.root(), Here::Chunks(alloc::vec![3]), false));
    assert!(to.have(*sent.tree.root(), Here::Chunks(alloc::vec![0]), false));
    to.on_block(NOW, &sent.frame()).unwrap();
    assert!(to.poll_control().is_none(), "nothing is here");
    assert!(matches!(to.poll_event(NOW), Some(IncomingEvent::Announced { block: 0, .. })));
}

/// A report of all chunks is sent as a report of the root.
#[test]
fn all_chunks_here_are_the_whole() {
    let sent = Sent::new(0, 2 * CHUNK);
    let config = IncomingConfig { delivery: Delivery::Chunks, ..config() };
    let mut to = IncomingBlocks::new(NOW, config);
    to.have(*sent.tree.root(), Here::Chunks(alloc::vec![3]), false);
    to.on_block(NOW, &sent.frame()).unwrap();
    let control = to.poll_control().unwrap();
    assert_eq!(to.control_frame(control), Some(Frame::RootHere(*sent.tree.root())));
    to.on_control_acked(NOW, control);
    assert_eq!(said(&to).1, 1);
}

/// Chunks that are whole before those ahead of them wait, and are charged; what was here before is passed
/// over.
#[test]
fn chunks_are_handed_out_in_order() {
    let sent = Sent::new(0, 7 * CHUNK + 9);
    let config = IncomingConfig { delivery: Delivery::InOrder, ..config() };
    let mut to = IncomingBlocks::new(NOW, config);
    assert!(to.have(*sent.tree.root(), Here::Chunks(alloc::vec![0b10]), false));
    sent.announce(&mut to);
    let control = to.poll_control().unwrap();
    assert!(matches!(to.poll_event(NOW), Some(IncomingEvent::Announced { block: 0, .. })));
    let chunks = |to: &mut IncomingBlocks| -> Vec<u32> {
        let events = core::iter::from_fn(|| to.poll_event(NOW));
        let index = |event| match event {
            IncomingEvent::Chunk { at, data, .. } => {
                assert!(data == sent.chunk(at.index));
                Some(at.index)
            }
            _ => None,
        };
        events.filter_map(index).collect()
    };
    for (chunk, handed_out) in [
        (7, [].as_slice()),
        (2, &[]),
        (0, &[0, 2]),
        (4, &[]),
        (3, &[3, 4]),
        (6, &[]),
        (5, &[5, 6, 7]),
    ] {
        sent.send_chunk(&mut to, chunk, 1434);
        to.check_invariants();
        assert_eq!(chunks(&mut to), handed_out, "after {chunk}");
    }
    assert_eq!(to.parts_cost, 0);
    to.on_control_acked(NOW, control);
    assert_eq!(to.poll_event(NOW), Some(IncomingEvent::Complete { block: 0, tag: 7 }));
}

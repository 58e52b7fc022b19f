//! What a sender may do, and what closes the connection.

use super::*;

#[test]
fn announcements_beyond_the_limits_close() {
    let mut to = receiver();
    let frame = |number, length| BlockFrame { number, tag: 0, length, root: [number as u8; 32] };
    assert_eq!(to.on_block(NOW, &frame(0, (8 << 20) + 1)), Err(Fault::TooLarge));
    assert_eq!(to.on_block(NOW, &frame(64, 1)), Err(Fault::Protocol), "65 not finished");
    assert_eq!(to.on_block(NOW, &frame(0, 8 << 20)), Ok(()));
    assert_eq!(to.on_block(NOW, &frame(0, 8 << 20)), Ok(()), "the same again");
    assert_eq!(to.on_block(NOW, &BlockFrame { tag: 1, ..frame(0, 8 << 20) }), Err(Fault::Protocol));
    assert_eq!(to.on_block(NOW, &frame(0, 9)), Err(Fault::Protocol), "another content");
    to.check_invariants();
    let mut none = IncomingBlocks::new(NOW, IncomingConfig { max_block_bytes: 0, ..config() });
    assert_eq!(none.on_block(NOW, &frame(0, 0)), Err(Fault::TooLarge));
}

/// Nothing of a block that is not taken is kept, be it announced or not.
#[test]
fn who_takes_no_blocks_keeps_nothing() {
    let mut none = IncomingBlocks::new(NOW, IncomingConfig { max_block_bytes: 0, ..config() });
    assert_eq!(none.config.first_credit(), 0);
    let sent = Sent::new(0, 100_000);
    for slice in 0..69 {
        assert_eq!(none.on_slice(NOW, &sent.source(0, 1434, slice)), Ok(Fate::NotKept));
    }
    assert_eq!((none.memory_bytes(), none.work()), (0, Work::default()));
}

#[test]
fn slices_that_do_not_agree_with_the_announcement_close() {
    let sent = Sent::new(0, CHUNK + 5000);
    let good = || sent.source(1, 1024, 1);
    let zeros = [0; 65_472];
    let at = |block, index| ChunkAt { block, index };
    let last = |size| SliceKind::Last(SliceSize::new(size).unwrap());
    let wrong = [
        SliceFrame { at: at(0, 2), ..good() },
        SliceFrame { index: 4, ..good() },
        SliceFrame { index: 5, ..good() },
        SliceFrame { data: &zeros[..18], ..good() },
        SliceFrame { kind: last(1024), ..good() },
        SliceFrame { kind: last(1024), index: 4, data: &zeros[..903], ..good() },
        SliceFrame { kind: SliceKind::Repair, index: 8, ..good() },
        SliceFrame { kind: SliceKind::Repair, index: 0, data: &zeros[..5000], ..good() },
    ];
    for (n, slice) in wrong.iter().enumerate() {
        let mut to = receiver();
        sent.announce(&mut to);
        assert_eq!(to.on_slice(NOW, slice), Err(Fault::Protocol), "{n}");
        // A slice that waited for the announcement has the same result.
        let mut to = receiver();
        assert_eq!(to.on_slice(NOW, slice), Ok(Fate::New));
        assert_eq!(to.on_block(NOW, &sent.frame()), Err(Fault::Protocol), "{n}");
    }
}

#[test]
fn what_was_not_credited_closes() {
    let mut to = receiver();
    let data = [0; 1024];
    let slice = |index| SliceFrame {
        at: ChunkAt { block: 0, index },
        kind: SliceKind::Source,
        index: 0,
        data: &data,
    };
    let length = 8 << 20;
    to.on_block(NOW, &BlockFrame { number: 0, tag: 0, length, root: [0; 32] }).unwrap();
    let (credit, ..) = said(&to);
    assert_eq!(credit, 33, "the announcement is not in progress");
    for index in 0..32 {
        assert_eq!(to.on_slice(NOW, &slice(index)), Ok(Fate::New));
    }
    assert_eq!(to.on_slice(NOW, &slice(3)), Ok(Fate::Dropped), "that is open already");
    let mut small = IncomingBlocks::new(NOW, IncomingConfig { initial_credit: 4, ..config() });
    small.on_block(NOW, &BlockFrame { number: 0, tag: 0, length, root: [0; 32] }).unwrap();
    (0..4).for_each(|index| assert_eq!(small.on_slice(NOW, &slice(index)), Ok(Fate::New)));
    assert_eq!(small.on_slice(NOW, &slice(4)), Err(Fault::Credit));
    // A sender may not leave more than the window behind either.
    let large = IncomingConfig { max_block_bytes: 1 << 40, ..config() };
    let mut to = IncomingBlocks::new(NOW, large);
    let length = 2000 * CHUNK as u64;
    to.on_block(NOW, &BlockFrame { number: 0, tag: 0, length, root: [0; 32] }).unwrap();
    assert_eq!(to.on_slice(NOW, &slice(1023)), Ok(Fate::New));
    assert_eq!(to.on_slice(NOW, &slice(1024)), Err(Fault::Credit));
}

#[test]
fn slices_before_their_announcement_are_kept_and_not_looked_at() {
    let sent = Sent::new(1, 300_000);
    let mut to = receiver();
    let fates = (0..183).map(|slice| to.on_slice(NOW, &sent.source(0, 1434, slice)).unwrap());
    let kept = fates.filter(|&fate| fate == Fate::New).count();
    assert_eq!(to.on_slice(NOW, &sent.repair(1, 1434, 0)), Ok(Fate::NotKept));
    assert!((170..183).contains(&kept), "{kept}");
    assert_eq!(to.work(), Work::default());
    assert!(to.memory_bytes() <= CHUNK + 4000);
    assert_eq!(
        to.on_slice(
            NOW,
            &SliceFrame { at: ChunkAt { block: 32, index: 0 }, ..sent.source(0, 1434, 0) }
        ),
        Ok(Fate::NotKept)
    );
    sent.announce(&mut to);
    let fates = (0..183).map(|slice| to.on_slice(NOW, &sent.source(0, 1434, slice)).unwrap());
    assert_eq!(fates.filter(|&fate| fate == Fate::New).count(), 183 - kept);
    sent.send_chunk(&mut to, 1, 1434);
    assert!(sent.is_in(next_block(&mut to)));
}

#[test]
fn blocks_finish_in_any_order_and_late_slices_have_no_effect() {
    let sent = [Sent::new(0, 600_000), Sent::new(1, 1), Sent::new(2, 0), Sent::new(3, CHUNK)];
    let mut to = receiver();
    sent.iter().for_each(|block| block.announce(&mut to));
    for (block, chunk) in [(3, 0), (0, 2), (1, 0), (0, 0), (0, 1)] {
        sent[block].send_chunk(&mut to, chunk, 1200);
    }
    for block in [2, 3, 1, 0] {
        let event = next_block(&mut to);
        assert!(sent[block].is_in(event.clone()), "{block}: {event:?}");
    }
    let before = to.memory_bytes();
    for block in &sent[..2] {
        assert_eq!(to.on_slice(NOW, &block.source(0, 1200, 0)), Ok(Fate::Dropped));
        assert_eq!(to.on_block(NOW, &block.frame()), Ok(()));
    }
    assert_eq!(to.on_hashes(NOW, &sent[0].page(0, 0)), Ok(Fate::Dropped));
    assert_eq!((to.memory_bytes(), to.poll_event(NOW)), (before, None));
    to.check_invariants();
}

/// So that a lost announcement costs no more than itself. What one of many unknown blocks sends is bounded.
#[test]
fn pages_before_their_announcement_are_kept() {
    let sent = Sent::new(0, 2 * CHUNK);
    let mut to = receiver();
    assert_eq!(to.on_hashes(NOW, &sent.page(0, 0)), Ok(Fate::New));
    assert_eq!(to.on_hashes(NOW, &sent.page(0, 0)), Ok(Fate::Dropped));
    let fates = (1..32).map(|block| {
        let page = HashesFrame { block, ..sent.page(0, 0) };
        to.on_hashes(NOW, &page).unwrap()
    });
    assert_eq!(fates.filter(|&fate| fate == Fate::New).count(), 7);
    assert_eq!((to.work(), to.is_receiving()), (Work::default(), true));
    to.on_block(NOW, &sent.frame()).unwrap();
    (0..2).for_each(|index| sent.send_chunk(&mut to, index, 8934));
    assert!(sent.is_in(next_block(&mut to)));
    to.on_cancel(NOW, 1, 0, 0).unwrap();
    assert_eq!(to.on_hashes(NOW, &HashesFrame { block: 20, ..sent.page(0, 0) }), Ok(Fate::New));
    to.check_invariants();
}

/// A chunk is done when it is verified, not before; and what a page costs does not depend on how many
/// chunks wait for it.
#[test]
fn whole_chunks_wait_for_their_page() {
    let sent = Sent::new(0, 5 * CHUNK);
    let mut to = receiver();
    to.on_block(NOW, &sent.frame()).unwrap();
    (1..5).for_each(|index| sent.send_chunk(&mut to, index, 8934));
    assert_eq!((to.waiting_chunks(), said(&to).2), (4, alloc::vec![(0, 0, Vec::new())]));
    let before = to.work();
    assert_eq!(to.on_hashes(NOW, &sent.page(0, 0)), Ok(Fate::New));
    assert_eq!(to.work().hashed_bytes - before.hashed_bytes, 5 * 32);
    assert_eq!((to.waiting_chunks(), said(&to).2), (0, alloc::vec![(0, 0, alloc::vec![0b1111])]));
    sent.send_chunk(&mut to, 0, 8934);
    assert!(sent.is_in(next_block(&mut to)));
}

#[test]
fn a_wrong_chunk_or_page_closes() {
    let sent = Sent::new(0, 2 * CHUNK);
    let mut to = receiver();
    sent.announce(&mut to);
    let data = [1; 8934];
    let mut last = Ok(Fate::New);
    for slice in 0..30 {
        let right = sent.source(0, 8934, slice);
        last = to.on_slice(NOW, &SliceFrame { data: &data[..right.data.len()], ..right });
    }
    assert_eq!(last, Err(Fault::Damaged));
    let mut to = receiver();
    to.on_block(NOW, &BlockFrame { root: [1; 32], ..sent.frame() }).unwrap();
    assert_eq!(to.on_hashes(NOW, &sent.page(0, 0)), Err(Fault::Damaged));
    let single = Sent::new(1, 10);
    to.on_block(NOW, &single.frame()).unwrap();
    let page = HashesFrame { block: 1, ..sent.page(0, 0) };
    assert_eq!(to.on_hashes(NOW, &page), Err(Fault::Protocol), "one chunk has no pages");
}

/// One datagram with an announcement, a last slice of one byte and a repair slice cost a decode of 1 ms.
#[test]
fn nothing_is_decoded_that_was_not_announced_and_what_is_costs_what_it_is() {
    let sent = Sent::new(0, 1025);
    let mut to = receiver();
    assert_eq!(to.on_slice(NOW, &sent.source(0, 1024, 1)), Ok(Fate::New));
    assert_eq!(to.on_slice(NOW, &sent.repair(0, 1024, 1)), Ok(Fate::New));
    assert_eq!(to.work(), Work::default());
    to.on_block(NOW, &sent.frame()).unwrap();
    assert_eq!(to.work(), Work { decodes: 1, decoded_bytes: 2048, hashed_bytes: 1025 });
    assert!(sent.is_in(next_block(&mut to)));
}

/// What a sender opened and no slice of which arrived is known from its cancel alone: without it, each
/// cancelled block would cost credit for good.
#[test]
fn a_cancel_frees_the_block_and_gives_its_credit_back() {
    let sent = Sent::new(0, 8 << 20);
    let mut to = IncomingBlocks::new(NOW, IncomingConfig { initial_credit: 8, ..config() });
    sent.announce(&mut to);
    sent.send_chunk(&mut to, 1, 1434);
    assert_eq!(to.on_slice(NOW, &sent.source(0, 1434, 0)), Ok(Fate::New));
    let (credit, ..) = said(&to);
    assert_eq!((credit, to.credit.left()), (10, 7));
    assert_eq!(to.on_cancel(NOW, 0, 9, 1), Err(Fault::Protocol), "two were seen");
    let mut to = IncomingBlocks::new(NOW, IncomingConfig { initial_credit: 8, ..config() });
    sent.announce(&mut to);
    sent.send_chunk(&mut to, 1, 1434);
    to.on_slice(NOW, &sent.source(0, 1434, 0)).unwrap();
    to.on_cancel(NOW, 0, 9, 9).unwrap();
    assert_eq!(said(&to), (18, 1, Vec::new()), "nine and the announcement, and the window");
    let cancelled = IncomingEvent::Cancelled { block: 0, tag: 7, code: 9 };
    assert_eq!(to.poll_event(NOW), Some(cancelled));
    assert!(to.memory_bytes() <= 200);
    assert_eq!(to.on_slice(NOW, &sent.source(0, 1434, 1)), Ok(Fate::Dropped));
    assert_eq!(to.on_cancel(NOW, 0, 9, 9), Ok(()), "the same again");
    // One whose announcement is on the way.
    to.on_cancel(NOW, 1, 0, 2).unwrap();
    to.on_block(NOW, &Sent::new(1, 9).frame()).unwrap();
    assert_eq!((said(&to), to.poll_event(NOW)), ((21, 2, Vec::new()), None));
    assert_eq!(to.on_cancel(NOW, 2, 0, 100), Err(Fault::Credit));
    to.check_invariants();
}

#[test]
fn a_declined_block_is_finished_when_its_sender_has_cancelled_it() {
    let sent = Sent::new(0, 600_000);
    let mut to = receiver();
    assert!(!to.decline(NOW, 0, 5));
    sent.announce(&mut to);
    sent.send_chunk(&mut to, 0, 1434);
    assert!(to.decline(NOW, 0, 5) && !to.decline(NOW, 0, 5));
    to.check_invariants();
    let control = to.poll_control().unwrap();
    assert_eq!(to.control_frame(control), Some(Frame::Decline { block: 0, code: 5 }));
    to.on_control_lost(control);
    assert_eq!(to.poll_control(), Some(control));
    assert_eq!(to.on_slice(NOW, &sent.source(1, 1434, 0)), Ok(Fate::Dropped));
    assert_eq!(said(&to).1, 0);
    to.on_cancel(NOW, 0, 0, 2).unwrap();
    assert_eq!((said(&to).1, to.failure(Instant::from_millis(1 << 40))), (1, None));
    to.on_control_lost(control);
    assert_eq!((to.poll_control(), to.poll_event(NOW)), (None, None));
    to.check_invariants();
}

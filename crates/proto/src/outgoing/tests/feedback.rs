//! Reports of the peer about blocks.

use super::*;

/// Announces what waits, and returns the numbers.
fn announce(blocks: &mut OutgoingBlocks) -> Vec<u32> {
    core::iter::from_fn(|| blocks.poll_announcement(millis(1))).map(|frame| frame.number).collect()
}

/// Announced blocks of these `sizes` in bytes; single chunks unless they are larger.
fn announced(sizes: &[usize]) -> Sending {
    let mut blocks = outgoing(PeerLimits { credit: 64, ..PEER });
    for bytes in sizes {
        blocks.send(millis(1), block(*bytes), options(0), 0).unwrap();
    }
    assert_eq!(announce(&mut blocks).len(), sizes.len());
    blocks
}

fn progress(
    blocks: &mut OutgoingBlocks,
    number: u64,
    (credit, floor): (u64, u32),
    entries: &[(u32, u32, &[u8])],
) -> Result<(), Contradiction> {
    let mut bytes = Vec::new();
    for &(block, first, map) in entries {
        ProgressEntry { block, first, map }.write(&mut bytes);
    }
    let frame = ProgressFrame::new(credit, 0, floor, entries.len(), &bytes).unwrap();
    let result = blocks.on_progress(millis(2), number, &frame);
    blocks.check_invariants();
    result
}

fn events(blocks: &mut OutgoingBlocks) -> Vec<OutgoingEvent> {
    core::iter::from_fn(|| blocks.poll_event()).collect()
}

const fn sent(handle: u32) -> OutgoingEvent {
    OutgoingEvent::Sent { handle }
}

#[test]
fn chunks_are_done_by_first_and_map() {
    let mut blocks = announced(&[4 * CHUNK]);
    let done = |blocks: &OutgoingBlocks| blocks.progress().unwrap().done / CHUNK as u64;
    assert_eq!(progress(&mut blocks, 5, (64, 0), &[(0, 1, &[0b10])]), Ok(()));
    assert_eq!(done(&blocks), 2, "0 and 3");
    assert_eq!(progress(&mut blocks, 4, (99, 1), &[(0, 0, &[])]), Ok(()), "an older one");
    assert_eq!((done(&blocks), events(&mut blocks)), (2, vec![]));
    assert_eq!(progress(&mut blocks, 6, (64, 0), &[(0, 4, &[])]), Ok(()));
    assert_eq!(events(&mut blocks), [sent(0)]);
    assert!(blocks.is_idle() && blocks.transfer.sender().is_none());
}

#[test]
fn the_floor_finishes_all_below() {
    let mut blocks = announced(&[10, CHUNK + 1, 10]);
    assert_eq!(progress(&mut blocks, 1, (64, 2), &[]), Ok(()));
    assert_eq!(events(&mut blocks), [sent(0), sent(1)]);
}

/// [H-4.2g]
#[test]
fn contradictions_are_found() {
    type Case = ((u64, u32), &'static [(u32, u32, &'static [u8])]);
    let wrong: [Case; 7] = [
        ((63, 0), &[]),
        ((64, 2), &[]),
        ((64, 0), &[(1, 0, &[])]),
        ((64, 0), &[(0, 5, &[])]),
        ((64, 0), &[(0, 3, &[1])]),
        ((64, 0), &[(0, 0, &[0, 1])]),
        ((64, 0), &[(0, 1, &[])]),
    ];
    for (head, entries) in wrong {
        let mut blocks = announced(&[4 * CHUNK]);
        assert_eq!(progress(&mut blocks, 1, (64, 0), &[(0, 2, &[])]), Ok(()));
        assert_eq!(
            progress(&mut blocks, 2, head, entries),
            Err(Contradiction),
            "{head:?} {entries:?}"
        );
    }
    let mut blocks = announced(&[4 * CHUNK]);
    let size = SliceSize::SMALLEST_OF_FULL_CHUNK;
    let slices = |block, index| SlicesHereFrame { at: at(block, index), size, map: &[1] };
    assert_eq!(blocks.on_slices_here(millis(2), &slices(0, 3)), Ok(()));
    assert_eq!(blocks.on_slices_here(millis(2), &slices(0, 4)), Err(Contradiction));
    assert_eq!(blocks.on_slices_here(millis(2), &slices(1, 0)), Err(Contradiction));
    let here = |block, first| ChunksHereFrame { block, first, map: &[1] };
    assert_eq!(blocks.on_chunks_here(millis(2), &here(0, 4)), Err(Contradiction));
    assert_eq!(blocks.on_chunks_here(millis(2), &here(1, 0)), Err(Contradiction));
    assert_eq!(blocks.on_decline(millis(2), 1, 0), Err(Contradiction));
}

/// [H-4.2k] Nothing of a block is sent but its announcement, if the peer had it before or finds it then.
#[test]
fn of_a_block_that_is_here_only_the_announcement_is_sent() {
    let mut blocks = outgoing(PEER);
    let known = block(3 * CHUNK);
    blocks.on_root_here(millis(1), *known.digest());
    blocks.send(millis(1), known, options(0), 0).unwrap();
    let late = Block::new(1, vec![9; 5 * CHUNK]);
    blocks.send(millis(1), late.clone(), options(0), 0).unwrap();
    assert_eq!(announce(&mut blocks), [0, 1]);
    blocks.announced.on_announced(0, true);
    blocks.on_root_here(millis(2), *late.digest());
    assert!(!blocks.has_page() && blocks.poll_slice(millis(2), &Ledger::new(), ROOM).is_none());
    blocks.poll(millis(2));
    assert_eq!(events(&mut blocks), [sent(0)]);
    blocks.check_invariants();
    blocks.announced.on_announced(1, true);
    blocks.poll(millis(3));
    assert_eq!((events(&mut blocks), blocks.is_idle()), (vec![sent(1)], true));
    (0..100_u8).for_each(|n| blocks.on_root_here(millis(3), [n; 32] as Value));
    let is_known = |n: u8| blocks.feedback.has_root(&[n; 32]);
    assert!(!is_known(35) && is_known(36) && is_known(99), "the newest 64");
}

/// [H-4.2k]
#[test]
fn chunks_that_are_here_are_never_opened() {
    let mut world = World::new(PEER, 1);
    world.send(&block(9 * CHUNK), options(0));
    world.run(1);
    let here: Vec<u32> = vec![2, 3, 8];
    let map = [0b1100, 1];
    let frame = ChunksHereFrame { block: 0, first: 0, map: &map };
    world.peer.done.extend(here.iter().map(|&index| at(0, index)));
    let now = world.now();
    world.blocks.on_chunks_here(now, &frame).unwrap();
    world.run_out(10_000);
    assert!(world.sent.keys().all(|at| !here.contains(&at.index)) && world.sent.len() == 6);
    assert_eq!(world.events.len(), 1);
}

#[test]
fn slices_that_are_here_count_if_their_size_is_the_senders() {
    let mut blocks = announced(&[10_000]);
    let ledger = Ledger::new();
    assert!(blocks.poll_slice(millis(2), &ledger, ROOM).is_some());
    let mut here = |size, map: &[u8]| {
        let size = SliceSize::new(size).unwrap();
        blocks.on_slices_here(millis(2), &SlicesHereFrame { at: at(0, 0), size, map }).unwrap();
        blocks.progress().unwrap().done
    };
    assert_eq!(here(1024, &[1]), 0);
    assert_eq!(here(1162, &[1]), 1162);
}

/// An empty block is done once its announcement is acknowledged.
#[test]
fn an_empty_block_is_only_announced() {
    let mut blocks = announced(&[0, 0]);
    blocks.announced.on_announced(1, true);
    blocks.poll(millis(2));
    assert_eq!(events(&mut blocks), [sent(1)]);
    assert_eq!(progress(&mut blocks, 1, (64, 0), &[(0, 0, &[])]), Ok(()));
    assert_eq!((events(&mut blocks), blocks.is_idle()), (vec![sent(0)], true));
}

/// It counts as announced until the peer knows that it is given up.
#[test]
fn a_cancel_is_sent_until_it_is_acknowledged() {
    let mut blocks = announced(&[2 * CHUNK, 10]);
    assert!(blocks.cancel(millis(2), 0, 77) && !blocks.cancel(millis(2), 0, 77));
    assert_eq!(
        (blocks.announced.poll_cancel(), blocks.announced.poll_cancel()),
        (Some((0, 77, 0)), None)
    );
    blocks.announced.on_cancel(0, false);
    assert_eq!(blocks.announced.poll_cancel(), Some((0, 77, 0)));
    blocks.announced.on_cancel(0, true);
    assert!(!blocks.announced.has_cancel() && blocks.announced.has_room(62));
    // One that is not announced is forgotten without a word.
    let handle = blocks.send(millis(2), block(10), options(0), 0).unwrap();
    assert!(blocks.cancel(millis(2), handle, 0) && blocks.announced.has_room(62));
    assert_eq!(events(&mut blocks), []);
    blocks.check_invariants();
}

#[test]
fn a_declined_block_is_not_sent_any_more() {
    let mut blocks = announced(&[2 * CHUNK, 10]);
    assert_eq!(blocks.on_decline(millis(2), 0, 5), Ok(()));
    assert_eq!(blocks.on_decline(millis(2), 0, 5), Ok(()), "a repetition");
    assert_eq!(events(&mut blocks), [OutgoingEvent::Declined { handle: 0, code: 5 }]);
    assert!(!blocks.has_page());
    let ((at, _), _) = blocks.poll_slice(millis(2), &Ledger::new(), ROOM).unwrap();
    assert_eq!(at.block, 1);
}

/// [H-4.2a]
#[test]
fn some_announcements_are_left_to_urgent_blocks() {
    let announced_by = |announced_blocks| {
        let mut blocks = outgoing(PeerLimits { credit: 1_000, announced_blocks, ..PEER });
        (0..62).for_each(|_| assert!(blocks.send(millis(1), block(0), options(1), 0).is_ok()));
        (announce(&mut blocks).len(), blocks)
    };
    assert_eq!((announced_by(64).0, announced_by(255).0), (60, 60));
    let (announced, mut blocks) = announced_by(32);
    assert_eq!(announced, 28, "as many as the peer accepts");
    blocks.send(millis(1), block(0), options(2), 0).unwrap();
    assert_eq!(announce(&mut blocks), [28], "numbers are in the order of announcement");
    assert!(blocks.cancel(millis(2), 0, 0) && blocks.cancel(millis(2), 1, 0));
    assert!(announce(&mut blocks).is_empty(), "the peer does not know yet that they are given up");
    blocks.check_invariants();
    blocks.announced.on_cancel(0, true);
    blocks.announced.on_cancel(1, true);
    assert_eq!(announce(&mut blocks), [29], "28 again");
}

/// Announcements use credit, and those of blocks that are not sent yet leave most of it to chunks.
#[test]
fn announcements_do_not_use_up_the_credit() {
    let mut blocks = outgoing(PeerLimits { credit: 18, ..PEER });
    (0..20).for_each(|_| assert!(blocks.send(millis(1), block(CHUNK), options(0), 0).is_ok()));
    assert_eq!(announce(&mut blocks).len(), 3);
    let mut blocks = outgoing(PeerLimits { credit: 0, ..PEER });
    blocks.send(millis(1), block(0), options(0), 0).unwrap();
    assert!(!blocks.has_announcement() && blocks.poll_deadline().is_none());
    assert_eq!(progress(&mut blocks, 1, (1, 0), &[]), Ok(()));
    assert_eq!(announce(&mut blocks), [0]);
}

/// The sender is as urgent as the most urgent block that is being sent.
#[test]
fn urgency_is_that_of_the_most_urgent() {
    let mut blocks = outgoing(PEER);
    let during = SendOptions { urgency: Some(Urgency::DuringPlay), ..options(0) };
    let background = blocks.send(millis(1), block(9 * CHUNK), during, 0).unwrap();
    announce(&mut blocks);
    let urgency = |blocks: &OutgoingBlocks| blocks.transfer.sender().unwrap().urgency();
    assert_eq!(urgency(&blocks), Urgency::DuringPlay);
    let load = blocks.send(millis(1), block(10), options(1), 0).unwrap();
    announce(&mut blocks);
    assert_eq!(urgency(&blocks), Urgency::LoadScreen);
    assert!(blocks.cancel(millis(2), load, 0));
    assert_eq!(urgency(&blocks), Urgency::DuringPlay);
    assert!(blocks.cancel(millis(2), background, 0) && blocks.is_idle());
}

/// [H-5.1b] 60 s and the time at 16 kbit/s, without that in which there was no credit.
#[test]
fn a_crawling_block_fails_but_not_for_want_of_credit() {
    let mut blocks = outgoing(PeerLimits { credit: 4, ..PEER });
    blocks.send(millis(0), block(2 * CHUNK), options(0), 0).unwrap();
    announce(&mut blocks);
    assert!(blocks.poll_page(ROOM).is_some());
    let ledger = Ledger::new();
    assert!(blocks.poll_slice(millis(1_000), &ledger, ROOM).is_some());
    blocks.poll(millis(1_000));
    let limit = blocks.poll_deadline().unwrap();
    // 262 s; the block began when it was announced.
    assert!((321_000..324_000).contains(&(limit.as_nanos() / 1_000_000)), "{limit:?}");
    assert!(!blocks.has_failed(millis(300_000)) && blocks.has_failed(limit));
}

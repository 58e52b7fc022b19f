//! What a peer can make this end hold: counted by the allocator, not by ourselves.

use super::*;

/// What `act` leaves allocated beyond what [`IncomingBlocks::memory_bytes`] says, and what that says.
fn beyond(to: &mut IncomingBlocks, mut act: impl FnMut(&mut IncomingBlocks)) -> (i64, usize) {
    let before = to.memory_bytes();
    let held = allocation_counter::measure(|| act(to)).bytes_current;
    to.check_invariants();
    let grown = to.memory_bytes() as i64 - before as i64;
    (held - grown, to.memory_bytes())
}

/// Bytes that the allocator may have beyond what is said: a constant, for queues of a few entries.
const CONSTANT: i64 = 2048;

#[test]
fn memory_bytes_is_what_is_allocated() {
    let sent: Vec<_> = (0..4).map(|number| Sent::new(number, 5 * CHUNK + 77)).collect();
    let mut to = receiver();
    let (beyond, _) = beyond(&mut to, |to| {
        for slice in 0..40 {
            to.on_slice(NOW, &sent[3].source(0, 1434, slice)).unwrap();
        }
        for block in &sent[..3] {
            to.on_block(NOW, &block.frame()).unwrap();
            for slice in 0..20 {
                to.on_slice(NOW, &block.source(2, 1434, slice * 7)).unwrap();
            }
        }
        to.on_hashes(NOW, &sent[0].page(0, 0)).unwrap();
        for slice in 0..183 {
            to.on_slice(NOW, &sent[0].source(4, 1434, slice)).unwrap();
            to.on_slice(NOW, &sent[1].source(4, 1434, 182 - slice)).unwrap();
        }
    });
    assert!(beyond <= CONSTANT, "{beyond}");
    assert_eq!(to.waiting_chunks(), 1);
}

/// 8.4 MB of acks piled up for 71 MB of blocks of one byte; and unread, each cost 4.4 times what it was
/// charged.
#[test]
fn a_flood_of_small_blocks_costs_what_it_is_charged() {
    for bytes in [0, 1, 300] {
        let mut to = receiver();
        let sent: Vec<_> = (0..2000).map(|number| Sent::new(number, bytes)).collect();
        let (beyond, unread) = beyond(&mut to, |to| {
            sent.iter().for_each(|block| {
                to.on_block(NOW, &block.frame()).unwrap();
                if bytes > 0 {
                    to.on_slice(NOW, &block.source(0, 1434, 0)).unwrap();
                }
            });
        });
        assert!(beyond <= CONSTANT, "{beyond} of {unread}");
        let charged = to.ready.cost();
        assert!(charged >= 2000 * bytes && unread <= charged + CONSTANT as usize);
        while to.poll_event(NOW).is_some() {}
        assert!(to.memory_bytes() <= CONSTANT as usize, "{}", to.memory_bytes());
    }
}

/// One that never reads is not flooded: the credit ends, and more is a violation.
#[test]
fn unread_small_blocks_use_up_the_credit() {
    let mut to = IncomingBlocks::new(
        NOW,
        IncomingConfig { max_block_bytes: 1000, max_unread_bytes: 100_000, ..config() },
    );
    let fault = (0..100_000).find_map(|number| {
        to.on_block(
            NOW,
            &BlockFrame { root: *blake3::hash(&[]).as_bytes(), number, tag: 0, length: 0 },
        )
        .err()
    });
    assert_eq!(fault, Some(Fault::Credit));
    let budget = to.config.budget() as usize;
    assert!(to.memory_bytes() <= budget + CONSTANT as usize, "{} {budget}", to.memory_bytes());
}

/// As many blocks as allowed, each with a slice of as many chunks as allowed and with pages that cannot be
/// checked: what can be kept apart is bounded.
#[test]
fn the_largest_that_a_peer_can_have_held() {
    let mut to = receiver();
    let budget = to.config.budget();
    let data = [7; 65_472];
    for number in 0..64 {
        let root = [number as u8; 32];
        let frame = BlockFrame { number, tag: 0, length: 8 << 20, root };
        to.on_block(NOW, &frame).unwrap();
    }
    let credit = to.credit.left() as u32;
    for n in 0..credit {
        let at = ChunkAt { block: n % 64, index: n / 64 };
        // All but one of the slices, and the last one has a place of full size.
        for index in 0..4 {
            let slice = SliceFrame { at, kind: SliceKind::Source, index, data: &data };
            assert_eq!(to.on_slice(NOW, &slice), Ok(Fate::New));
        }
    }
    to.check_invariants();
    assert_eq!(to.credit.left(), 0);
    assert!(to.memory_bytes() as u64 <= budget + (64 << 10), "{} {budget}", to.memory_bytes());
}

/// An application that drops each chunk at once: the next is put together where that one was, and the end of
/// the block gives all of it back.
#[test]
fn a_chunk_is_put_together_where_one_was_that_is_dropped() {
    let sent = Sent::new(0, 6 * CHUNK + 9);
    let delivery = Delivery::Chunks;
    let mut to = IncomingBlocks::new(NOW, IncomingConfig { delivery, ..config() });
    sent.announce(&mut to);
    let take_all = |to: &mut IncomingBlocks| {
        let events = core::iter::from_fn(|| to.poll_event(NOW));
        events.filter(|event| matches!(event, IncomingEvent::Chunk { .. })).count()
    };
    sent.send_chunk(&mut to, 0, 1434);
    assert_eq!(take_all(&mut to), 1);
    assert!(to.memory_bytes() >= CHUNK, "what is kept is said");
    for chunk in 1..6 {
        let counted = allocation_counter::measure(|| {
            for slice in 0..sent.cut(chunk, 1434).count() {
                to.on_slice(NOW, &sent.source(chunk, 1434, slice)).unwrap();
            }
            assert_eq!(take_all(&mut to), 1);
        });
        assert!(counted.bytes_total < 8192, "chunk {chunk}: {counted:?}");
    }
    sent.send_chunk(&mut to, 6, 1434);
    assert_eq!(take_all(&mut to), 1);
    assert!(to.memory_bytes() <= CONSTANT as usize, "{}", to.memory_bytes());
}

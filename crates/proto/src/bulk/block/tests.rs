//! Tests of the order in which chunks are opened, and of the chunks that are done.

use super::*;
use crate::bulk::cut::SliceSize;
use crate::chunk::MAX_CHUNK_BYTES;

fn block(chunks: usize) -> SendBlock {
    let data = alloc::vec![7; (chunks - 1) * MAX_CHUNK_BYTES + 100];
    let mut block = SendBlock::new(NewBlock::of(0, data));
    block.set_ready(u32::MAX);
    block
}

fn open(block: &mut SendBlock) -> Option<u32> {
    let index = block.next_ready()?;
    let size = SliceSize::SMALLEST_OF_FULL_CHUNK;
    block.open(index, Cut::new(block.chunk_bytes(index), size)?, true, 0);
    Some(index)
}

/// A chunk that the receiver has is never opened, in whatever order chunks are reported as done.
#[test]
fn chunks_that_are_done_are_passed_over() {
    let mut block = block(9);
    assert!(block.on_done(2) && !block.on_done(2) && !block.on_done(9));
    assert_eq!(open(&mut block), Some(0));
    assert!(block.on_done(1));
    block.check_invariants();
    assert_eq!(open(&mut block), Some(3));
    assert_eq!((block.first(), block.open_chunks()), (0, 2));
    assert!(block.on_done(0));
    assert_eq!((block.first(), block.received_bytes()), (3, 3 * 262_144));
    (4..9).for_each(|index| assert!(block.on_done(index)));
    block.check_invariants();
    assert_eq!((open(&mut block), block.is_done()), (None, false));
    assert_eq!(block.done_from(0), 0b1111_0111);
    assert_eq!((block.done_from(2), block.done_from(4)), (0b0111_1101, 0b0001_1111));
    assert!(block.on_done(3) && block.is_done());
    assert_eq!(block.received_bytes(), 8 * 262_144 + 100);
    block.check_invariants();
}

#[test]
fn a_chunk_that_is_not_done_holds_the_window() {
    let mut block = SendBlock { chunks: 5000, ..block(1) };
    while let Some(index) = block.next_ready() {
        let size = SliceSize::SMALLEST_OF_FULL_CHUNK;
        block.open(index, Cut::new(1, size).unwrap(), true, 0);
        assert!(index == 0 || block.on_done(index));
    }
    block.check_invariants();
    assert_eq!((block.unopened, block.open_chunks()), (MAX_SPAN, 1));
    assert!(block.on_done(0));
    assert_eq!((block.first, block.next_ready()), (MAX_SPAN, Some(MAX_SPAN)));
}

#[test]
fn a_chunk_is_opened_when_it_can_be_verified() {
    let mut block = SendBlock { ready: Ready::default(), ..block(3) };
    assert_eq!((block.next(), block.next_ready()), (Some(0), None));
    block.set_ready(1);
    assert_eq!((open(&mut block), open(&mut block)), (Some(0), None));
}

/// The first chunk that is not done goes before them when no other is open, and what is preferred can be
/// changed.
#[test]
fn preferred_chunks_go_first() {
    let mut block = block(40);
    block.prefer((20, 23));
    assert_eq!([open(&mut block), open(&mut block)], [Some(0), Some(20)]);
    block.prefer((30, 32));
    assert_eq!([open(&mut block), open(&mut block)], [Some(30), Some(31)]);
    block.check_invariants();
    assert_eq!(open(&mut block), Some(1), "they are all open: in order again");
    assert!([0, 1, 20, 30, 31].into_iter().all(|index| block.on_done(index)));
    block.prefer((10, 99));
    assert_eq!([open(&mut block), open(&mut block)], [Some(2), Some(10)]);
    let rest: Vec<_> = core::iter::from_fn(|| open(&mut block)).collect();
    let expected = (11..20).chain(21..30).chain(32..40).chain(3..10);
    assert!(rest.iter().copied().eq(expected), "{rest:?}");
    block.check_invariants();
    assert!(!block.has_unopened());
}

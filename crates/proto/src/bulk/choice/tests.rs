//! Which slice is next, or whether it is enough.

use alloc::vec::Vec;

use super::*;
use crate::bulk::block::NewBlock;
use crate::bulk::chunks::Cutting;
use crate::bulk::credit::Credit;
use crate::bulk::cut::SliceSize;

const SIZE: SliceSize = SliceSize::SMALLEST_OF_FULL_CHUNK;

fn empty() -> Chunks {
    let cutting = Cutting { room: 0, is_fine: false, max_slice: SIZE, has_repair: true };
    Chunks::new(cutting, Credit::new(u64::MAX))
}

/// Adds a block of this number of slices; all chunks except the last have 256.
fn push(chunks: &mut Chunks, number: u32, priority: u8, slices: usize) {
    let data: bytes::Bytes = alloc::vec![7; slices * 1024].into();
    chunks.push(NewBlock { priority, ..NewBlock::of(number, data) });
    chunks.block_mut(number).unwrap().set_ready(u32::MAX);
}

fn block(slices: usize) -> Chunks {
    let mut chunks = empty();
    push(&mut chunks, 0, 0, slices);
    chunks
}

fn loss(percent: u32) -> LossEstimate {
    let mut loss = LossEstimate::new();
    (0..1_000).for_each(|n| loss.on_packet(n % 100 < percent));
    loss
}

fn path(loss: &LossEstimate) -> Conditions<'_> {
    Conditions { loss, rtt: Span::from_millis(50), rate: Some(Rate::from_kbps(10_000)), window: 16 }
}

/// The next slice, as (block, chunk, symbol, tail). It counts as in flight.
fn next(chunks: &mut Chunks, loss: &LossEstimate) -> Option<(u32, u32, usize, bool)> {
    let choice = chunks.choose(false, &path(loss));
    assert_eq!(choice, chunks.choose_and_note(false, &path(loss)));
    let choice = choice?;
    let Chosen { at, symbol, data, .. } =
        chunks.take((choice, chunks.frame_bytes(choice)), &Ledger::new(), 0).unwrap();
    assert_eq!(data.len(), 1024);
    chunks.get_mut(at).unwrap().expect();
    // A search from the beginning finds the same.
    let noted = chunks.choose(false, &path(loss));
    let places: Vec<_> =
        chunks.classes.iter().map(|class| (class.searched, class.lacking.clone())).collect();
    chunks.classes.search_anew();
    assert_eq!(noted, chunks.choose(false, &path(loss)));
    for (place, (searched, lacking)) in places.into_iter().enumerate() {
        let class = chunks.classes.at_mut(place).unwrap();
        (class.searched, class.lacking) = (searched, lacking);
    }
    chunks.check_invariants();
    Some((at.block, at.index, symbol.get(), choice.is_tail))
}

fn all(chunks: &mut Chunks, loss: &LossEstimate) -> Vec<(u32, u32, usize, bool)> {
    core::iter::from_fn(|| next(chunks, loss)).collect()
}

#[test]
fn source_slices_are_sent_in_order() {
    let chosen = all(&mut block(259), &loss(0));
    let sources = (0..256).map(|n| (0, 0, n, false));
    assert!(chosen.into_iter().eq(sources.chain((0..3).map(|n| (0, 1, n, false)))));
}

#[test]
fn repair_covers_expected_losses_and_a_margin() {
    let chosen = all(&mut block(256), &loss(10));
    let repairs = chosen.iter().filter(|(_, _, symbol, _)| *symbol >= 256).count();
    let tails = chosen.iter().filter(|(.., is_tail)| *is_tail).count();
    // 10 % is 29, because repair slices are lost too.
    assert!((35..75).contains(&repairs) && (1..repairs).contains(&tails), "{repairs} {tails}");
}

/// A link that is idle because a window is small is no reason to send anything.
#[test]
fn while_chunks_wait_only_measured_losses_are_replaced() {
    let (mut chunks, assumed) = (block(20 * 256), LossEstimate::new());
    let chosen = all(&mut chunks, &assumed);
    assert_eq!(chosen.len(), 16 * 256, "sources alone");
    chunks.rescan_margins();
    let chosen = all(&mut chunks, &loss(10));
    assert!((16 * 10..16 * 60).contains(&chosen.len()), "{}", chosen.len());
    assert!(chosen.iter().all(|(.., is_tail)| !is_tail));
    let chosen = all(&mut block(16 * 256), &assumed);
    assert!(chosen.len() > 16 * 270, "at the end assumed ones are, too");
}

#[test]
fn repair_of_missing_slices_comes_before_unsent_slices() {
    let (mut chunks, loss) = (block(300), loss(0));
    for _ in 0..260 {
        next(&mut chunks, &loss).unwrap();
    }
    // Nothing of the first chunk is expected to arrive.
    chunks.get_mut(ChunkAt { block: 0, index: 0 }).unwrap().on_given_up();
    chunks.classes.search_anew();
    assert_eq!(next(&mut chunks, &loss), Some((0, 0, 256, false)));
}

/// While there are chunks to open. Afterwards a repair slice goes, which is of use whatever is missing then.
#[test]
fn a_lost_slice_goes_again_as_it_is_but_not_at_the_end() {
    let (at, lost) = (ChunkAt { block: 0, index: 0 }, Symbol::source(7));
    let lose = |chunks: &mut Chunks| {
        let chunk = chunks.get_mut(at).unwrap();
        chunk.unexpect();
        chunk.on_lost(lost);
        chunks.note_lack(at);
    };
    let (mut chunks, loss) = (block(300), loss(0));
    (0..256).for_each(|_| assert!(next(&mut chunks, &loss).is_some()));
    lose(&mut chunks);
    assert_eq!(next(&mut chunks, &loss), Some((0, 0, 7, false)));
    assert_eq!(next(&mut chunks, &loss), Some((0, 1, 0, false)), "there is no other chunk to open");
    lose(&mut chunks);
    assert_eq!(next(&mut chunks, &loss), Some((0, 0, 256, false)));
}

#[test]
fn open_chunks_are_limited_by_the_window_and_the_credit() {
    let loss = loss(0);
    let opened = |chunks: &mut Chunks| all(chunks, &loss).last().unwrap().1 + 1;
    assert_eq!(opened(&mut block(20 * 256)), 16);
    let mut chunks = block(20 * 256);
    chunks.credit = Credit::new(9);
    assert_eq!(opened(&mut chunks), 7, "two are left for a block that is more urgent");
    assert!(!chunks.is_held_back());
    push(&mut chunks, 1, 9, 2 * 256);
    assert_eq!(all(&mut chunks, &loss).len(), 256);
    assert!(chunks.credit.left() == 1 && !chunks.is_held_back());
    assert!(chunks.credit.raise(10) && next(&mut chunks, &loss).is_none());
}

#[test]
fn a_probe_is_sent_even_if_enough_is_in_flight() {
    let (mut chunks, loss) = (block(2), loss(0));
    all(&mut chunks, &loss);
    let path = path(&loss);
    assert_eq!(chunks.choose(false, &path), None);
    assert!(chunks.choose(true, &path).is_some());
    let at = ChunkAt { block: 0, index: 0 };
    (0..2).for_each(|n| assert!(chunks.on_received(at, 0, Symbol::source(n))));
    assert!(chunks.choose(true, &path).is_some(), "the receiver has enough, but did not say so");
    assert!(chunks.on_done(at) && chunks.choose(true, &path).is_none());
}

/// In the middle of a chunk. The margin against losses comes before anything less urgent.
#[test]
fn a_block_of_higher_priority_goes_first_with_its_margin() {
    let (mut chunks, loss) = (block(600), loss(10));
    let first: Vec<_> = (0..10).map_while(|_| next(&mut chunks, &loss)).collect();
    assert!(first.iter().all(|(block, ..)| *block == 0));
    push(&mut chunks, 1, 1, 20);
    push(&mut chunks, 2, 0, 20);
    let chosen = all(&mut chunks, &loss);
    let urgent = chosen.iter().take_while(|(block, ..)| *block == 1).count();
    let alone = all(
        &mut {
            let mut alone = empty();
            push(&mut alone, 1, 1, 20);
            alone
        },
        &loss,
    );
    assert_eq!(urgent, alone.len(), "as many as alone, and none at half the rate");
    assert!(chosen[..urgent].iter().all(|(.., is_tail)| !is_tail));
    let rest: Vec<_> = chosen[urgent..].iter().filter(|chosen| chosen.2 < 256).collect();
    assert!(rest.is_sorted() && rest[0].0 == 0, "equal ones in the order of sending");
    assert!(chosen[urgent..].iter().all(|(block, ..)| *block != 1));
}

/// A window full of chunks of less urgent blocks does not hold a more urgent one.
#[test]
fn the_window_is_counted_from_the_most_urgent_on() {
    let (mut chunks, loss) = (block(20 * 256), loss(0));
    all(&mut chunks, &loss);
    assert_eq!(chunks.block(0).unwrap().open_chunks(), 16);
    push(&mut chunks, 1, 0, 1);
    assert_eq!(next(&mut chunks, &loss), None);
    push(&mut chunks, 2, 1, 1);
    assert_eq!(next(&mut chunks, &loss), Some((2, 0, 0, false)));
}

/// A chunk that is lost again and again does not hold the other block.
#[test]
fn a_chunk_that_is_not_done_does_not_hold_another_block() {
    let (mut chunks, loss) = (block(1), loss(0));
    all(&mut chunks, &loss);
    push(&mut chunks, 1, 0, 14 * 256);
    assert_eq!(all(&mut chunks, &loss).len(), 14 * 256);
    (0..14).for_each(|index| assert!(chunks.on_done(ChunkAt { block: 1, index })));
    assert!(chunks.block(1).unwrap().is_done() && !chunks.block(0).unwrap().is_done());
    chunks.remove(1);
    chunks.check_invariants();
    assert!(chunks.has_open() && !chunks.is_empty());
    chunks.remove(0);
    assert!(!chunks.has_open() && chunks.is_empty() && chunks.classes.len() == 0);
}

/// What was sent in larger slices does not count, and is not sent.
#[test]
fn open_chunks_are_cut_anew_when_the_path_shrinks() {
    let mut chunks = empty();
    chunks.cutting = Cutting {
        room: 1443,
        is_fine: false,
        max_slice: SliceSize::new(65_472).unwrap(),
        has_repair: true,
    };
    push(&mut chunks, 0, 0, 300);
    let loss = loss(0);
    let take = |chunks: &mut Chunks, number| {
        let choice = chunks.choose_and_note(false, &path(&loss)).unwrap();
        assert!(chunks.frame_bytes(choice) <= chunks.cutting.room);
        let Chosen { at, symbol, data, part, .. } =
            chunks.take((choice, chunks.frame_bytes(choice)), &Ledger::new(), number).unwrap();
        (at, symbol, data.len(), part)
    };
    let (at, symbol, bytes, _) = take(&mut chunks, 0);
    assert_eq!((at.index, symbol.get(), bytes), (0, 0, 1434));
    assert_eq!(take(&mut chunks, 1).1.get(), 1);
    chunks.cutting.room = 1171;
    chunks.cut_anew(2);
    assert!(!chunks.on_received(at, 1, Symbol::source(1)), "of the old cut");
    assert_eq!(take(&mut chunks, 2).2, 1162);
    assert!(chunks.on_received(at, 2, Symbol::source(0)));
    chunks.cutting.room = 1443;
    chunks.cut_anew(3);
    assert_eq!(take(&mut chunks, 3).2, 1162, "never larger again");
    chunks.check_invariants();
}

//! Chunks from any of their slices, and from forged slices.

use alloc::boxed::Box;

use proptest::prelude::*;

use super::*;
use crate::DropReason;
use crate::bulk::cut::{Cut, SliceSize};
use crate::bulk::repair::{RepairSlice, encode};
use crate::bulk::{RECEIVE_WINDOW, Receiver, SEND_WINDOW};
use crate::chunk::{ChunkId, SLICE_BYTES, Slice, SliceCount};

const NOW: Instant = Instant::from_millis(100);

fn receiver() -> Receiver {
    Receiver::new(Duration::from_secs(30))
}

fn source(receiver: &mut Receiver, id: u16, chunk: &[u8], index: usize) -> Result<(), DropReason> {
    let count = SliceCount::for_bytes(chunk.len()).unwrap();
    let slice = Slice::of_chunk(ChunkId::new(id), count.index(index).unwrap(), chunk).unwrap();
    receiver.on_slice(NOW, &slice)
}

fn repair(
    receiver: &mut Receiver,
    id: u16,
    chunk_bytes: usize,
    (index, data): (u8, &[u8; SLICE_BYTES]),
) -> Result<(), DropReason> {
    let count = SliceCount::for_bytes(chunk_bytes).unwrap();
    let last_bytes = (chunk_bytes - (count.get() - 1) * SLICE_BYTES) as u16;
    let chunk_id = ChunkId::new(id);
    receiver.on_repair(NOW, &RepairSlice { chunk_id, count, index, last_bytes, data })
}

fn poll_acks(receiver: &mut Receiver) -> Vec<(u16, bool)> {
    let acks = core::iter::from_fn(|| receiver.poll_ack(Instant::from_millis(100_000)));
    acks.map(|ack| (ack.chunk_id.get(), ack.received.is_full())).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Any `k` of its slices, in any order, and not one fewer.
    #[test]
    fn any_k_slices_complete_a_chunk(bytes in 1025usize..40_000, seed in any::<u64>()) {
        let chunk = chunk_of(bytes);
        let cut = Cut::new(bytes, SliceSize::SMALLEST_OF_FULL_CHUNK).unwrap();
        let repairs = encode(&chunk, cut);
        let count = bytes.div_ceil(SLICE_BYTES);
        let mut order: Vec<usize> = (0..count + count.next_power_of_two()).collect();
        let mut state = seed | 1;
        for at in (1..order.len()).rev() {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            order.swap(at, (state >> 33) as usize % (at + 1));
        }
        let mut receiver = receiver();
        for (n, &symbol) in order.iter().take(count).enumerate() {
            prop_assert!(receiver.pop().is_none(), "done after {n} of {count}");
            let taken = match symbol.checked_sub(count) {
                None => source(&mut receiver, 0, &chunk, symbol),
                Some(index) => {
                    let data = repairs[index * SLICE_BYTES..].first_chunk().unwrap();
                    repair(&mut receiver, 0, bytes, (index as u8, data))
                }
            };
            prop_assert_eq!(taken, Ok(()));
            receiver.check_invariants();
        }
        prop_assert_eq!(&receiver.pop().unwrap()[..], &chunk[..]);
        prop_assert_eq!(poll_acks(&mut receiver), [(0, true)]);
    }

    /// Forged repair slices, with any size of the last slice: no panic, and bounded memory. The chunk may be
    /// wrong; the digest of the block detects that.
    #[test]
    fn repair_slices_may_be_forged(
        count in 2usize..12,
        forged in proptest::collection::vec((any::<u8>(), 1u16..=1024, any::<u8>()), 0..40),
        honest in proptest::collection::vec(any::<bool>(), 12),
    ) {
        let chunk = chunk_of(count * SLICE_BYTES - 300);
        let slices = SliceCount::new(count).unwrap();
        let mut receiver = receiver();
        for (n, (index, last_bytes, byte)) in forged.into_iter().enumerate() {
            if honest[n % 12] && n < count {
                let _taken = source(&mut receiver, 0, &chunk, n);
            }
            let data = Box::new([byte; SLICE_BYTES]);
            let chunk_id = ChunkId::new(0);
            let forged = RepairSlice { chunk_id, count: slices, index, last_bytes, data: &data };
            let _taken = receiver.on_repair(NOW, &forged);
            receiver.check_invariants();
            if let Some(done) = receiver.pop() {
                prop_assert_eq!(SliceCount::for_bytes(done.len()), Some(slices));
                return Ok(());
            }
        }
        prop_assert!(receiver.memory_bytes() <= 64 << 10);
    }
}

#[test]
fn slices_outside_the_window_are_refused() {
    let chunk = chunk_of(100);
    let mut receiver = receiver();
    let future = RECEIVE_WINDOW as u16;
    assert_eq!(source(&mut receiver, future, &chunk, 0), Err(DropReason::FutureChunk));
    assert_eq!(source(&mut receiver, u16::MAX, &chunk, 0), Err(DropReason::OldChunk));
    assert_eq!(source(&mut receiver, future - 1, &chunk, 0), Ok(()));
    assert_eq!(source(&mut receiver, future - 1, &chunk, 0), Err(DropReason::Duplicate));
    let two = chunk_of(2_000);
    assert_eq!(source(&mut receiver, 1, &two, 0), Ok(()));
    assert_eq!(source(&mut receiver, 1, &two, 0), Err(DropReason::Duplicate));
    let three = chunk_of(3_000);
    assert_eq!(source(&mut receiver, 1, &three, 1), Err(DropReason::NumSlicesMismatch));
    receiver.check_invariants();
}

/// While the application does not read, completing acks are held back so that all further slices have room.
/// Each chunk read releases one ack.
#[test]
fn completing_acks_follow_reading() {
    let chunk = chunk_of(1024);
    let mut receiver = receiver();
    (0..RECEIVE_WINDOW as u16).for_each(|id| source(&mut receiver, id, &chunk, 0).unwrap());
    let places = RECEIVE_WINDOW - SEND_WINDOW;
    let first: Vec<_> = (0..places as u16).map(|id| (id, true)).collect();
    assert_eq!(poll_acks(&mut receiver), first);
    // A slice of a chunk whose ack is held back does not release it.
    let hidden = places as u16;
    assert_eq!(source(&mut receiver, hidden, &chunk, 0), Err(DropReason::Duplicate));
    assert_eq!(poll_acks(&mut receiver), []);
    for id in 0..SEND_WINDOW as u16 {
        assert!(receiver.pop().is_some());
        assert_eq!(poll_acks(&mut receiver), [(hidden + id, true)]);
    }
    // A slice of a chunk already read is answered with its ack.
    assert_eq!(source(&mut receiver, 0, &chunk, 0), Err(DropReason::OldChunk));
    assert_eq!(poll_acks(&mut receiver), [(0, true)]);
}

#[test]
fn partial_chunks_are_abandoned_and_complete_ones_are_not() {
    let (half, whole) = (chunk_of(3_000), chunk_of(500));
    let mut receiver = receiver();
    source(&mut receiver, 0, &half, 1).unwrap();
    source(&mut receiver, 1, &whole, 0).unwrap();
    let at = receiver.abandon_at().unwrap();
    assert_eq!(at, NOW + Duration::from_secs(30));
    receiver.handle_timeout(at);
    assert_eq!((receiver.abandon_at(), receiver.slices()), (None, 1));
    (0..3).for_each(|index| source(&mut receiver, 0, &half, index).unwrap());
    assert_eq!(receiver.pop().unwrap(), half);
    assert_eq!(receiver.pop().unwrap(), whole);
    assert_eq!(receiver.memory_bytes(), 0);
}

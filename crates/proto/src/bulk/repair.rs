//! Repair slices: any as many slices of a chunk as it has, source or repair, make it whole (STANDARD-1, 4.2).
//!
//! Reed-Solomon over GF(2^16) by `reed-solomon-simd`, in its low-rate layout, which is chosen by hand: there
//! the first repair slices are the same however many are made, so 256 are made once, and sent as they are
//! needed. Encoding takes no part in a transfer that loses nothing.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;

use bytes::Bytes;
use once_cell::race::OnceBox;
use reed_solomon_simd::engine::DefaultEngine;
use reed_solomon_simd::rate::{LowRateDecoder, LowRateEncoder, RateDecoder, RateEncoder};

use crate::chunk::{ChunkId, MAX_CHUNK_BYTES, SLICE_BYTES, Slice, SliceCount};

/// Repair slices a chunk has: as many as the largest has sources, so half of all may be lost before slices
/// have to be sent twice.
pub(crate) const REPAIR_SLICES: usize = 256;

/// The repair slices of every chunk of a block: made when the first is needed, then common to all who send
/// it.
#[derive(Clone, Debug)]
pub(crate) struct BlockRepair(Arc<[OnceBox<Bytes>]>);

impl BlockRepair {
    /// None are made yet.
    pub(crate) fn of_block(bytes: usize) -> Self {
        Self((0..bytes.div_ceil(MAX_CHUNK_BYTES)).map(|_| OnceBox::new()).collect())
    }

    /// Repair slice `index` of the chunk at `place` in its block, whose bytes are these.
    pub(crate) fn slice(
        &self,
        place: usize,
        chunk: &[u8],
        index: u8,
    ) -> Option<&[u8; SLICE_BYTES]> {
        let slices = self.0.get(place)?.get_or_init(|| Box::new(encode(chunk)));
        slices.get(usize::from(index) * SLICE_BYTES..)?.first_chunk()
    }
}

/// One repair slice of a chunk, as it crosses the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RepairSlice<'a> {
    /// The chunk it belongs to.
    pub chunk_id: ChunkId,
    /// The source slices that chunk has: 2 to 256.
    pub count: SliceCount,
    /// Which of its repair slices this is.
    pub index: u8,
    /// Bytes of the chunk's last source slice, 1 to 1024: by them a receiver knows the chunk's size.
    pub last_bytes: u16,
    /// Its bytes.
    pub data: &'a [u8; SLICE_BYTES],
}

/// Whether there are repair slices for a chunk of this size. Of one slice a copy does the same.
#[must_use]
pub(crate) const fn has_repair(count: SliceCount) -> bool {
    count.get() > 1
}

/// Makes the tables of the code, once a process. It takes 8 ms, against 0.2 ms for the repair slices of a
/// chunk, and without this they pass when the first repair slice is to be sent or used: in the middle of a
/// transfer.
pub fn prepare() {
    let _tables_are_static = DefaultEngine::new();
}

/// All repair slices of a chunk, one after the other; none for one that has no use for them. The last source
/// slice counts as filled up with zeros.
#[must_use]
pub fn encode(chunk: &[u8]) -> Bytes {
    try_encode(chunk).unwrap_or_default()
}

fn try_encode(chunk: &[u8]) -> Option<Bytes> {
    let count = SliceCount::for_bytes(chunk.len()).filter(|&count| has_repair(count))?;
    let mut encoder =
        LowRateEncoder::new(count.get(), REPAIR_SLICES, SLICE_BYTES, DefaultEngine::new(), None)
            .ok()?;
    for data in chunk.chunks(SLICE_BYTES) {
        match data.len() {
            SLICE_BYTES => encoder.add_original_shard(data),
            _ => encoder.add_original_shard(padded(data)),
        }
        .ok()?;
    }
    let encoded = encoder.encode().ok()?;
    let mut slices = Vec::with_capacity(REPAIR_SLICES * SLICE_BYTES);
    encoded.recovery_iter().for_each(|slice| slices.extend_from_slice(slice));
    Some(slices.into())
}

fn padded(data: &[u8]) -> [u8; SLICE_BYTES] {
    let mut slice = [0; SLICE_BYTES];
    slice.iter_mut().zip(data).for_each(|(to, from)| *to = *from);
    slice
}

/// Makes a chunk of `bytes` bytes from `sources` and `repairs` (number and bytes), as many together as it has
/// slices. `None` if there are too few of them.
pub(crate) fn decode<'a>(
    bytes: usize,
    sources: impl Iterator<Item = Slice<'a>>,
    repairs: &[(u8, Box<[u8; SLICE_BYTES]>)],
) -> Option<Vec<u8>> {
    let count = SliceCount::for_bytes(bytes)?;
    let mut chunk = vec![0; count.get() * SLICE_BYTES];
    let mut decoder =
        LowRateDecoder::new(count.get(), REPAIR_SLICES, SLICE_BYTES, DefaultEngine::new(), None)
            .ok()?;
    for slice in sources {
        let place = chunk.get_mut(slice.index().offset()..)?.get_mut(..slice.data().len())?;
        place.copy_from_slice(slice.data());
        let shard = padded(slice.data());
        decoder.add_original_shard(slice.index().get(), shard).ok()?;
    }
    for (index, data) in repairs {
        decoder.add_recovery_shard((*index).into(), &data[..]).ok()?;
    }
    for (index, data) in decoder.decode().ok()?.restored_original_iter() {
        let start = index * SLICE_BYTES;
        chunk.get_mut(start..start + SLICE_BYTES)?.copy_from_slice(data);
    }
    chunk.truncate(bytes);
    Some(chunk)
}

#[cfg(test)]
#[allow(clippy::cast_possible_truncation, reason = "numbers of a test, and bytes of a pattern")]
mod tests {
    use reed_solomon_simd::engine::NoSimd;

    use super::*;

    fn chunk(bytes: usize) -> Vec<u8> {
        (0..bytes as u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect()
    }

    fn slices(chunk: &[u8]) -> Vec<Slice<'_>> {
        let count = SliceCount::for_bytes(chunk.len()).unwrap();
        let slice = |index| Slice::of_chunk(ChunkId::new(0), index, chunk).unwrap();
        count.indices().map(slice).collect()
    }

    fn repairs(
        encoded: &Bytes,
        indices: impl Iterator<Item = usize>,
    ) -> Vec<(u8, Box<[u8; SLICE_BYTES]>)> {
        indices
            .map(|at| {
                let data = &encoded[at * SLICE_BYTES..][..SLICE_BYTES];
                (at as u8, Box::new(data.try_into().unwrap()))
            })
            .collect()
    }

    #[test]
    fn any_as_many_slices_as_it_has_make_a_chunk() {
        for bytes in [1025, 3000, 17 * 1024 + 1, 200_000, MAX_CHUNK_BYTES] {
            let chunk = chunk(bytes);
            let slices = slices(&chunk);
            let encoded = encode(&chunk);
            for lost in [1, slices.len().div_ceil(3), slices.len()] {
                let kept =
                    slices.iter().enumerate().filter(|(at, _)| (at * 7) % slices.len() >= lost);
                let kept: Vec<_> = kept.map(|(_, slice)| *slice).collect();
                let missing = slices.len() - kept.len();
                let repairs = repairs(&encoded, (0..REPAIR_SLICES).rev().take(missing));
                assert_eq!(
                    decode(bytes, kept.iter().copied(), &repairs).unwrap(),
                    chunk,
                    "{bytes} {lost}"
                );
                assert!(decode(bytes, kept.iter().copied(), &repairs[1..]).is_none());
            }
        }
    }

    /// By this a sender may send any of them, and a receiver need not know how many were made.
    #[test]
    fn the_bytes_of_a_repair_slice_are_fixed() {
        let encoded = encode(&chunk(MAX_CHUNK_BYTES));
        assert_eq!(encoded.len(), REPAIR_SLICES * SLICE_BYTES);
        // The same without what this processor is good at.
        let plain = chunk(MAX_CHUNK_BYTES);
        let mut encoder =
            LowRateEncoder::new(256, REPAIR_SLICES, SLICE_BYTES, NoSimd::new(), None).unwrap();
        plain.chunks(SLICE_BYTES).for_each(|data| encoder.add_original_shard(data).unwrap());
        let portable = encoder.encode().unwrap();
        assert!(portable.recovery_iter().eq(encoded.chunks(SLICE_BYTES)));
        let digest = blake3::hash(&encoded);
        assert_eq!(digest.to_hex().as_str().get(..16), Some("bf0a46a173719ba4"));
    }

    #[test]
    fn they_are_made_once_for_all_who_send_the_block() {
        let block = chunk(MAX_CHUNK_BYTES + 2000);
        let repair = BlockRepair::of_block(block.len());
        let (last, same) = (&block[MAX_CHUNK_BYTES..], repair.clone());
        let first = repair.slice(1, last, 0).unwrap();
        assert_eq!(first.as_ptr(), same.slice(1, last, 0).unwrap().as_ptr());
        assert!(repair.slice(2, last, 0).is_none());
        assert!(
            BlockRepair::of_block(10).slice(0, &block[..10], 0).is_none(),
            "one slice has none"
        );
    }
}

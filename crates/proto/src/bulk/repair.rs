//! Repair slices: any `k` of the source and repair slices of a chunk of `k` slices reconstruct it
//! (STANDARD-1,
//! 4.2).
//!
//! Reed-Solomon over GF(2^16) from `reed-solomon-simd`. The low-rate layout is selected explicitly: in it a
//! repair slice does not depend on how many are made, so 256 are made at once and sent as needed. A transfer
//! without losses encodes nothing.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;

use bytes::Bytes;
use once_cell::race::OnceBox;
use reed_solomon_simd::engine::DefaultEngine;
use reed_solomon_simd::rate::{LowRateDecoder, LowRateEncoder, RateDecoder, RateEncoder};

use crate::chunk::{ChunkId, MAX_CHUNK_BYTES, SLICE_BYTES, Slice, SliceCount};

/// The number of repair slices of a chunk: as many as the largest chunk has source slices, so half of all
/// may be lost before slices have to be retransmitted.
pub(crate) const REPAIR_SLICES: usize = 256;

/// The repair slices of every chunk of a block: encoded when the first is needed, then shared by all
/// connections that send it.
#[derive(Clone, Debug)]
pub(crate) struct BlockRepair(Arc<[OnceBox<Bytes>]>);

impl BlockRepair {
    /// For a block of this many bytes; nothing is encoded yet.
    pub(crate) fn of_block(bytes: usize) -> Self {
        Self((0..bytes.div_ceil(MAX_CHUNK_BYTES)).map(|_| OnceBox::new()).collect())
    }

    /// Repair slice `index` of `chunk`, which is at position `place` in the block.
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

/// One repair slice of a chunk, as sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RepairSlice<'a> {
    /// The chunk it belongs to.
    pub chunk_id: ChunkId,
    /// The number of source slices of that chunk: 2 to 256.
    pub count: SliceCount,
    /// Its index among the repair slices, from 0.
    pub index: u8,
    /// Bytes of the chunk's last source slice, 1 to 1024: from them the receiver knows the chunk's size.
    pub last_bytes: u16,
    /// Its bytes.
    pub data: &'a [u8; SLICE_BYTES],
}

/// Whether a chunk of this slice count has repair slices. A chunk of one slice has none: a copy does the
/// same.
#[must_use]
pub(crate) const fn has_repair(count: SliceCount) -> bool {
    count.get() > 1
}

/// Computes the tables of the code, once per process. This takes 8 ms, against 0.2 ms to encode a chunk.
/// Without it the first repair slice sent or used computes them, in the middle of a transfer.
pub fn prepare() {
    let _tables_are_static = DefaultEngine::new();
}

/// All repair slices of a chunk, one after the other; empty for a chunk that has none. The last source slice
/// is padded with zeros.
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

/// Reconstructs a chunk of `bytes` bytes from `sources` and `repairs` (index and bytes), together as many as
/// its slice count. `None` if they are too few.
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
    fn any_k_slices_reconstruct_a_chunk() {
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

    /// A sender may send any of them, and a receiver need not know how many were made.
    #[test]
    fn the_bytes_of_a_repair_slice_are_fixed() {
        let encoded = encode(&chunk(MAX_CHUNK_BYTES));
        assert_eq!(encoded.len(), REPAIR_SLICES * SLICE_BYTES);
        // The same without SIMD.
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
    fn repair_slices_are_shared_by_all_senders_of_a_block() {
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

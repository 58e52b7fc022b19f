//! Repair slices: any `k` of the source and repair slices of a chunk of `k` slices reconstruct it
//! (STANDARD-1, 4.2.4).
//!
//! Reed-Solomon over GF(2^16) from `reed-solomon-simd`. The low-rate layout is selected explicitly: in it a
//! repair slice does not depend on how many are made, so all are made at once and sent as needed. A transfer
//! without losses encodes nothing. The invariant: the bytes of a repair slice depend on the chunk, the slice
//! size and the index alone.

use alloc::vec;
use alloc::vec::Vec;

use bytes::Bytes;
use reed_solomon_simd::engine::DefaultEngine;
use reed_solomon_simd::rate::{LowRateEncoder, RateEncoder};

use super::cut::{Cut, SliceSize};
use super::erasures::CodeWord;

/// The most repair slices that a chunk has.
pub(crate) const MAX_REPAIR_SLICES: usize = 256;

/// The number of repair slices of a chunk that is cut this way: the smallest power of two that is at least
/// the number of its slices. None for a chunk of one slice: a copy does the same.
#[must_use]
pub(crate) const fn repair_count(cut: Cut) -> usize {
    if cut.count() > 1 { cut.count().next_power_of_two() } else { 0 }
}

/// The repair slices of a chunk, all of them, for one size of slices.
#[derive(Debug)]
pub(crate) struct Encoded {
    size: SliceSize,
    slices: Bytes,
}

impl Encoded {
    /// Those of this chunk, which is cut this way.
    pub(crate) fn of(chunk: &[u8], cut: Cut) -> Self {
        Self { size: cut.size(), slices: encode(chunk, cut) }
    }

    /// Whether they are of a chunk that is cut this way.
    pub(crate) fn is_of(&self, cut: Cut) -> bool {
        self.size == cut.size()
    }

    /// Repair slice `index`, if they are of a chunk that is cut this way.
    pub(crate) fn slice(&self, cut: Cut, index: u8) -> Option<&[u8]> {
        let size = self.size.bytes();
        let slices = self.is_of(cut).then_some(&self.slices)?;
        slices.get(usize::from(index) * size..)?.get(..size)
    }

    /// Memory of the slices, in bytes.
    pub(crate) const fn bytes(&self) -> usize {
        self.slices.len()
    }
}

/// Computes the tables of the code, once per process. This takes 8 ms, against 0.2 ms to encode a chunk.
/// Without it the first repair slice sent or used computes them, in the middle of a transfer.
pub fn prepare() {
    let _tables_are_static = DefaultEngine::new();
}

/// All repair slices of a chunk that is cut this way, one after the other; empty for a chunk that has none.
/// The last source slice is padded with zeros.
#[must_use]
pub fn encode(chunk: &[u8], cut: Cut) -> Bytes {
    try_encode(chunk, cut).unwrap_or_default()
}

/// How often this thread has encoded a chunk.
#[cfg(test)]
pub(crate) mod counted {
    extern crate std;

    use core::cell::Cell;

    std::thread_local! {
        static ENCODINGS: Cell<usize> = const { Cell::new(0) };
    }

    pub(super) fn count() {
        ENCODINGS.set(encodings() + 1);
    }

    pub(crate) fn encodings() -> usize {
        ENCODINGS.get()
    }
}

fn try_encode(chunk: &[u8], cut: Cut) -> Option<Bytes> {
    #[cfg(test)]
    counted::count();
    let (count, repairs, size) = (cut.count(), repair_count(cut), cut.size().bytes());
    if repairs == 0 || chunk.len() != cut.chunk_bytes() {
        return None;
    }
    let mut encoder = LowRateEncoder::new(count, repairs, size, DefaultEngine::new(), None).ok()?;
    let (whole, rest) = chunk.split_at(chunk.len() / size * size);
    for slice in whole.chunks(size) {
        encoder.add_original_shard(slice).ok()?;
    }
    if !rest.is_empty() {
        let mut last = rest.to_vec();
        last.resize(size, 0);
        encoder.add_original_shard(last).ok()?;
    }
    let encoded = encoder.encode().ok()?;
    let mut slices = Vec::with_capacity(repairs * size);
    encoded.recovery_iter().for_each(|slice| slices.extend_from_slice(slice));
    Some(slices.into())
}

/// Reconstructs a chunk that is cut this way from `sources` and `repairs` (index and bytes). `None` if they
/// are too few, or not slices of such a chunk. The caller checks the result: a forged slice makes a wrong
/// chunk.
pub(crate) fn decode<'a>(
    cut: Cut,
    sources: impl Iterator<Item = (u8, &'a [u8])>,
    repairs: impl Iterator<Item = (u8, &'a [u8])>,
) -> Option<Vec<u8>> {
    let mut chunk = vec![0; cut.chunk_bytes()];
    let mut word = CodeWord::new(cut.count(), repair_count(cut), cut.size().bytes());
    let mut slices = 0;
    for (index, data) in sources {
        let place = chunk.get_mut(cut.range(index)?)?;
        (place.len() == data.len()).then(|| place.copy_from_slice(data))?;
        word.set_source(index.into(), data)?;
        slices += 1;
    }
    for (index, data) in repairs.take(cut.count().saturating_sub(slices)) {
        (data.len() == cut.size().bytes()).then(|| word.set_repair(index.into(), data))??;
        slices += 1;
    }
    if slices < cut.count() {
        return None;
    }
    word.restore();
    for index in 0..=u8::MAX {
        let Some(range) = cut.range(index) else { break };
        if word.is_source_missing(index.into()) {
            word.copy_source(index.into(), chunk.get_mut(range)?)?;
        }
    }
    Some(chunk)
}

#[cfg(test)]
#[allow(clippy::cast_possible_truncation, reason = "numbers of a test, and bytes of a pattern")]
mod tests {
    extern crate std;

    use alloc::string::String;

    use reed_solomon_simd::engine::{Engine, NoSimd};
    use reed_solomon_simd::rate::{LowRateDecoder, RateDecoder};

    use super::*;
    use crate::chunk::MAX_CHUNK_BYTES;

    fn chunk(bytes: usize) -> Vec<u8> {
        (0..bytes as u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect()
    }

    fn cut(bytes: usize, size: usize) -> Cut {
        Cut::new(bytes, SliceSize::new(size).unwrap()).unwrap()
    }

    fn sources(chunk: &[u8], cut: Cut) -> Vec<(u8, &[u8])> {
        (0..=u8::MAX).map_while(|at| Some((at, &chunk[cut.range(at)?]))).collect()
    }

    fn repairs(encoded: &[u8], cut: Cut) -> Vec<(u8, &[u8])> {
        (0..=u8::MAX).zip(encoded.chunks(cut.size().bytes())).collect()
    }

    /// Chunks as they are cut, from two slices to 256, with sizes that are no multiple of 64.
    const CUTS: [(usize, usize); 10] = [
        (1025, 1024),
        (3, 2),
        (3000, 1024),
        (17 * 1024 + 1, 1024),
        (200_000, 1350),
        (MAX_CHUNK_BYTES, 1024),
        (MAX_CHUNK_BYTES, 1434),
        (MAX_CHUNK_BYTES, 8934),
        (MAX_CHUNK_BYTES, 65_472),
        (MAX_CHUNK_BYTES - 1, 2034),
    ];

    #[test]
    fn any_k_slices_reconstruct_a_chunk() {
        for (bytes, size) in CUTS {
            let (chunk, cut) = (chunk(bytes), cut(bytes, size));
            let slices = sources(&chunk, cut);
            let encoded = encode(&chunk, cut);
            let repairs = repairs(&encoded, cut);
            assert_eq!(repairs.len(), repair_count(cut));
            for lost in [1, slices.len().div_ceil(3), slices.len()] {
                let kept = slices.iter().filter(|(at, _)| {
                    usize::from(*at) * 7 % slices.len() >= lost.min(slices.len())
                });
                let kept: Vec<_> = kept.copied().collect();
                let missing = slices.len() - kept.len();
                let repairs: Vec<_> = repairs.iter().rev().take(missing).copied().collect();
                let decoded = decode(cut, kept.iter().copied(), repairs.iter().copied());
                assert!(decoded.unwrap() == chunk, "{bytes} {size} {lost}");
                let few = decode(cut, kept.iter().copied(), repairs[1..].iter().copied());
                assert!(few.is_none());
            }
        }
    }

    /// What the decoder of the crate makes of them, which looks at the whole field.
    fn reference(cut: Cut, sources: &[(u8, &[u8])], repairs: &[(u8, &[u8])]) -> Vec<u8> {
        let (size, count) = (cut.size().bytes(), cut.count());
        let mut decoder =
            LowRateDecoder::new(count, repair_count(cut), size, NoSimd::new(), None).unwrap();
        let mut chunk = vec![0; count * size];
        for &(at, data) in sources {
            let mut shard = data.to_vec();
            shard.resize(size, 0);
            decoder.add_original_shard(at.into(), &shard).unwrap();
            chunk[usize::from(at) * size..][..size].copy_from_slice(&shard);
        }
        repairs.iter().for_each(|(at, data)| {
            decoder.add_recovery_shard(usize::from(*at), data).unwrap();
        });
        for (at, data) in decoder.decode().unwrap().restored_original_iter() {
            chunk[at * size..][..size].copy_from_slice(data);
        }
        chunk.truncate(cut.chunk_bytes());
        chunk
    }

    /// Also of forged slices: two implementations agree on what a chunk is, even if it is wrong.
    #[test]
    fn the_decoder_is_leopards() {
        for (bytes, size) in CUTS {
            let (chunk, cut) = (chunk(bytes), cut(bytes, size));
            let encoded = encode(&chunk, cut);
            let forged: Vec<u8> = encoded.iter().map(|byte| byte.wrapping_mul(3)).collect();
            for repaired in [&encoded[..], &forged] {
                let (slices, repairs) = (sources(&chunk, cut), repairs(repaired, cut));
                let half = slices.len() / 2;
                let repairs = &repairs[..slices.len() - half];
                let decoded = decode(cut, slices[..half].iter().copied(), repairs.iter().copied());
                assert!(decoded.unwrap() == reference(cut, &slices[..half], repairs), "{size}");
            }
        }
    }

    /// A sender may send any repair slice, so the bytes of all of them are checked, with SIMD and without.
    #[test]
    fn the_bytes_of_repair_slices_are_fixed() {
        fn encode_with<E: Engine>(engine: E, chunk: &[u8], cut: Cut) -> Vec<u8> {
            let (count, size) = (cut.count(), cut.size().bytes());
            let mut encoder =
                LowRateEncoder::new(count, MAX_REPAIR_SLICES, size, engine, None).unwrap();
            for (_, data) in sources(chunk, cut) {
                let mut shard = data.to_vec();
                shard.resize(size, 0);
                encoder.add_original_shard(shard).unwrap();
            }
            let encoded = encoder.encode().unwrap();
            encoded.recovery_iter().take(repair_count(cut)).flatten().copied().collect()
        }
        let golden = CUTS.map(|(bytes, size)| {
            let (chunk, cut) = (chunk(bytes), cut(bytes, size));
            let encoded = encode(&chunk, cut);
            assert_eq!(encoded.len(), repair_count(cut) * size);
            assert!(encode_with(NoSimd::new(), &chunk, cut) == encoded, "{bytes} {size}");
            String::from(&blake3::hash(&encoded).to_hex()[..16])
        });
        assert_eq!(golden, GOLDEN);
    }

    /// The first 8 bytes of the BLAKE3 of all repair slices of each of [`CUTS`].
    const GOLDEN: [&str; 10] = [
        "fd5f25210a8d75d4",
        "7df3a49d74cbeb2b",
        "23e5afd831401637",
        "a771f86a40ba9446",
        "19f483c29464e320",
        "bf0a46a173719ba4",
        "d952a931247f03ef",
        "797198debe44ab5d",
        "049cb8a4c20690d5",
        "e9eb83d81a843966",
    ];

    #[test]
    fn a_slice_is_of_its_cut_alone() {
        let (chunk, cut_in) = (chunk(2000), |size| cut(2000, size));
        let encoded = Encoded::of(&chunk, cut_in(1024));
        assert_eq!(encoded.slice(cut_in(1024), 0).unwrap(), &encode(&chunk, cut_in(1024))[..1024]);
        assert!(encoded.slice(cut_in(1024), 2).is_none(), "there are two of them");
        assert!(encoded.slice(cut_in(1200), 0).is_none(), "that is another cut");
        let whole = Encoded::of(&chunk, cut_in(2000));
        assert!(whole.slice(cut_in(2000), 0).is_none(), "one slice has none");
        assert_eq!((encoded.bytes(), whole.bytes()), (2048, 0));
    }

    /// The crate's decoder has 128 KiB on the stack: game consoles and fibers have less. Tables are computed
    /// before, as [`prepare`] does.
    #[test]
    fn encoding_and_decoding_need_little_stack() {
        prepare();
        let small = std::thread::Builder::new().stack_size(64 << 10);
        let work = || {
            let (chunk, cut) = (chunk(MAX_CHUNK_BYTES), cut(MAX_CHUNK_BYTES, 1434));
            let encoded = encode(&chunk, cut);
            let repairs = repairs(&encoded, cut);
            let decoded = decode(cut, core::iter::empty(), repairs.into_iter());
            assert!(decoded.unwrap() == chunk);
        };
        small.spawn(work).unwrap().join().unwrap();
    }
}

//! The missing shards of a Reed-Solomon code word, from those that are there (STANDARD-1, 4.2.4).
//!
//! The steps are those of Leopard's decoder, on the engine of `reed-solomon-simd`. That crate's own decoder
//! evaluates the locator at all 65,536 points of the field, whatever is to be decoded: 128 KiB on the
//! caller's stack, and about a millisecond for a chunk of two slices. Here it is evaluated where the code
//! word is. The points beyond would only scale it by a constant, because those of the code word are a
//! subspace. The invariant: time and memory are those of the shards, and none are on the stack.

use alloc::vec;
use alloc::vec::Vec;

use reed_solomon_simd::engine::{
    DefaultEngine, Engine, GF_MODULUS, GfElement, ShardsRefMut, tables, utils,
};

/// Bytes that the engine works on at a time.
const PIECE: usize = 64;

/// A code word: source shards from position 0 on, repair shards from the middle on. A source shard that no
/// source slice fills is zero, and known.
pub(super) struct CodeWord {
    /// Pieces of a shard.
    pieces: usize,
    shard_bytes: usize,
    data: Vec<[u8; PIECE]>,
    is_missing: Vec<bool>,
}

impl CodeWord {
    /// A code word of `repairs` repair shards, a power of two, and at most as many source shards, of which
    /// all are missing. Shards have an even number of bytes.
    pub(super) fn new(sources: usize, repairs: usize, shard_bytes: usize) -> Self {
        let pieces = shard_bytes.div_ceil(PIECE);
        let is_missing = (0..2 * repairs).map(|at| !(sources..repairs).contains(&at)).collect();
        let data = vec![[0; PIECE]; 2 * repairs * pieces];
        Self { pieces, shard_bytes, data, is_missing }
    }

    /// Number of positions: a power of two.
    const fn len(&self) -> usize {
        self.is_missing.len()
    }

    /// Fills in a source shard. A shorter one is followed by zeros.
    pub(super) fn set_source(&mut self, index: usize, bytes: &[u8]) -> Option<()> {
        self.set(index, bytes)
    }

    /// Fills in a repair shard.
    pub(super) fn set_repair(&mut self, index: usize, bytes: &[u8]) -> Option<()> {
        self.set(self.len() / 2 + index, bytes)
    }

    fn set(&mut self, position: usize, bytes: &[u8]) -> Option<()> {
        *self.is_missing.get_mut(position)? = false;
        let tail = self.shard_bytes % PIECE;
        let whole = self.shard_bytes - tail;
        let shard = self.data.get_mut(position * self.pieces..)?.get_mut(..self.pieces)?;
        let shard = shard.as_flattened_mut();
        let (head, rest) = bytes.split_at(bytes.len().min(whole));
        shard.get_mut(..head.len())?.copy_from_slice(head);
        // Of the last piece, if it is shorter, the first half are the low bytes.
        let (low, high) = rest.split_at(rest.len().min(tail / 2));
        shard.get_mut(whole..)?.get_mut(..low.len())?.copy_from_slice(low);
        shard
            .get_mut(whole + PIECE / 2..)
            .unwrap_or_default()
            .get_mut(..high.len())?
            .copy_from_slice(high);
        Some(())
    }

    /// Computes all missing source shards. They are right if the others are, and at least as many are there
    /// as there are source shards that slices fill.
    pub(super) fn restore(&mut self) {
        let (len, pieces) = (self.len(), self.pieces);
        let locator = log_locator(&self.is_missing);
        let engine = DefaultEngine::new();
        let mut work = ShardsRefMut::new(len, pieces, &mut self.data);
        let is_missing = || self.is_missing.iter().zip(&locator).enumerate();
        for (at, (_, &log)) in is_missing().filter(|(_, (missing, _))| !**missing) {
            engine.mul(&mut work[at], log);
        }
        engine.ifft(&mut work, 0, len, len, 0);
        for at in 1..len {
            let width = 1 << at.trailing_zeros();
            utils::xor_within(&mut work, at - width, at, width);
        }
        engine.fft(&mut work, 0, len, len / 2, 0);
        for (at, (_, &log)) in is_missing().take(len / 2).filter(|(_, (missing, _))| **missing) {
            engine.mul(&mut work[at], GF_MODULUS - log);
        }
    }

    /// Writes a restored source shard, or its beginning, to `out`.
    pub(super) fn copy_source(&self, index: usize, out: &mut [u8]) -> Option<()> {
        let tail = self.shard_bytes % PIECE;
        let whole = self.shard_bytes - tail;
        let shard = self.data.get(index * self.pieces..)?.get(..self.pieces)?.as_flattened();
        let (head, rest) = out.split_at_mut(out.len().min(whole));
        head.copy_from_slice(shard.get(..head.len())?);
        let (low, high) = rest.split_at_mut(rest.len().min(tail / 2));
        low.copy_from_slice(shard.get(whole..)?.get(..low.len())?);
        high.copy_from_slice(shard.get(whole + PIECE / 2..).unwrap_or_default().get(..high.len())?);
        Some(())
    }

    /// Whether a source shard was missing.
    pub(super) fn is_source_missing(&self, index: usize) -> bool {
        self.is_missing.get(index).is_some_and(|&missing| missing)
    }
}

/// For each position `x` the logarithm of the product of `x - e` over the missing positions `e` except `x`
/// itself. The difference is an XOR, so this is a convolution over XOR: a product of Walsh-Hadamard
/// transforms.
fn log_locator(is_missing: &[bool]) -> Vec<GfElement> {
    let len = is_missing.len();
    let logs = tables::get_exp_log().log.iter().take(len).map(|&log| i64::from(log));
    let mut logs: Vec<i64> = logs.collect();
    if let Some(zero) = logs.first_mut() {
        *zero = 0;
    }
    let mut sums: Vec<i64> = is_missing.iter().map(|&missing| i64::from(missing)).collect();
    walsh_hadamard(&mut logs);
    walsh_hadamard(&mut sums);
    sums.iter_mut().zip(&logs).for_each(|(sum, log)| *sum *= log);
    walsh_hadamard(&mut sums);
    let modulus = i64::from(GF_MODULUS);
    let log = |sum: i64| sum / i64::try_from(len).unwrap_or(1) % modulus;
    sums.into_iter().map(|sum| GfElement::try_from(log(sum)).unwrap_or_default()).collect()
}

/// In place, of a power of two of numbers. At most 512 of them, the largest 2^16: no sum reaches 2^44.
fn walsh_hadamard(numbers: &mut [i64]) {
    let mut half = 1;
    while half < numbers.len() {
        for pair in numbers.chunks_exact_mut(2 * half) {
            let (low, high) = pair.split_at_mut(half);
            for (low, high) in low.iter_mut().zip(high) {
                (*low, *high) = (*low + *high, *low - *high);
            }
        }
        half *= 2;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_locator_is_the_sum_of_the_logarithms() {
        let log = &tables::get_exp_log().log;
        for len in [2, 8, 512] {
            let is_missing: Vec<bool> = (0..len).map(|at| at * 7 % 5 < 3).collect();
            let missing = || is_missing.iter().enumerate().filter(|(_, missing)| **missing);
            for (at, &found) in log_locator(&is_missing).iter().enumerate() {
                let logs = missing().filter(|&(e, _)| e != at).map(|(e, _)| u64::from(log[at ^ e]));
                assert_eq!(u64::from(found), logs.sum::<u64>() % u64::from(GF_MODULUS));
            }
        }
    }
}

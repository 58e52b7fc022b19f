//! Cutting a file into pieces by its content, so that two versions of it have most of them in common.
//!
//! Where a piece ends depends on the bytes before that place alone (FastCDC, 16 to 256 KiB, 64 KiB in the
//! mean): a byte that is inserted changes the piece it is in, and perhaps the next. The use of the pieces is
//! in [`pieces`](crate::pieces).
//!
//! The invariant: the same bytes are cut in the same way by every peer, and into pieces that a
//! [`Recipe`](crate::pieces::Recipe) can have.

use std::borrow::Borrow;
use std::io::{self, Read};

use fastcdc::v2020::{ChunkData, StreamCDC};

use crate::errors::ReadError;
use crate::pieces::{MAX_PIECE_BYTES, MIN_PIECE_BYTES, OlderPiece, Piece};
use crate::reader::{SourceFile, Stream};

/// The mean of a piece, in bytes: 20 bytes of recipe for each are 0.03 % of the file, and a change of one
/// byte costs 64 KiB. With 16 KiB the recipe is an eighth of the bytes sent for a file of which 1 % changed.
const MEAN_PIECE_BYTES: u32 = 64 << 10;

/// Cuts a file, in one thread: at 1 GB/s or so.
///
/// # Errors
/// [`ReadError`], also if the file changes meanwhile.
pub fn cut_file(file: &SourceFile) -> Result<Vec<Piece>, ReadError> {
    Cutter::new(file).next_pieces(u64::MAX).map(Option::unwrap_or_default)
}

/// Cuts what comes out of this.
///
/// # Errors
/// Those of reading it.
pub fn cut(bytes: impl Read) -> io::Result<Vec<Piece>> {
    stream(bytes).map(piece).collect()
}

fn stream<R: Read>(bytes: R) -> StreamCDC<R> {
    let [min, mean, max] =
        [MIN_PIECE_BYTES, MEAN_PIECE_BYTES, MAX_PIECE_BYTES].map(|bytes| bytes as usize);
    StreamCDC::new(bytes, min, mean, max)
}

fn piece(piece: Result<ChunkData, fastcdc::v2020::Error>) -> io::Result<Piece> {
    let bytes = piece.map_err(io::Error::from)?.data;
    let hash = blake3::hash(&bytes);
    let hash = hash.as_bytes().first_chunk().copied().unwrap_or_default();
    let length = u32::try_from(bytes.len()).map_err(io::Error::other)?;
    Ok(Piece { length, hash })
}

/// Cuts a file, some of it at a time.
pub(crate) struct Cutter<F: Borrow<SourceFile> + Clone> {
    file: F,
    stream: StreamCDC<Stream<F>>,
    pieces: Vec<Piece>,
}

impl<F: Borrow<SourceFile> + Clone> Cutter<F> {
    pub(crate) fn new(file: F) -> Self {
        Self { stream: stream(Stream::new(file.clone())), file, pieces: Vec::new() }
    }

    /// Reads `bytes` more, or a piece beyond that. Returns all pieces at the end of the file.
    ///
    /// # Errors
    /// [`ReadError`], also if the file changes meanwhile. It is not to be called again.
    pub(crate) fn next_pieces(&mut self, bytes: u64) -> Result<Option<Vec<Piece>>, ReadError> {
        let mut left = bytes;
        let cut = loop {
            match self.stream.next().map(piece) {
                Some(Ok(piece)) => {
                    left = left.saturating_sub(piece.length.into());
                    self.pieces.push(piece);
                }
                Some(Err(error)) => break Err(error),
                None => break Ok(()),
            }
            if left == 0 {
                return Ok(None);
            }
        };
        let file = self.file.borrow();
        // A file that became shorter says so here, in better words.
        file.check()?;
        match cut {
            Ok(()) => Ok(Some(std::mem::take(&mut self.pieces))),
            Err(_) if crate::pool::is_ending() => {
                Err(ReadError::Stopped { path: file.path().to_owned() })
            }
            Err(error) => Err(ReadError::io(file.path(), error)),
        }
    }

    /// What is cut.
    pub(crate) fn file(&self) -> &F {
        &self.file
    }

    /// The number of pieces that were cut.
    pub(crate) const fn count(&self) -> usize {
        self.pieces.len()
    }
}

/// The pieces of an older version, with their places in it.
#[must_use]
pub fn older_pieces(pieces: Vec<Piece>) -> Vec<OlderPiece> {
    let placed = pieces.into_iter().scan(0, |next, piece| {
        let offset = *next;
        *next += u64::from(piece.length);
        Some(OlderPiece { offset, piece })
    });
    placed.collect()
}

#[cfg(test)]
mod tests {
    use rand_xoshiro::Xoshiro256PlusPlus;
    use rand_xoshiro::rand_core::{Rng, SeedableRng};

    use super::*;
    use crate::pieces::{Comparison, Recipe};

    fn random(seed: u64, length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        Xoshiro256PlusPlus::seed_from_u64(seed).fill_bytes(&mut bytes);
        bytes
    }

    fn compare(old: &[u8], new: &[u8]) -> (Recipe, Comparison) {
        let recipe = Recipe::new(cut(new).unwrap()).unwrap();
        let comparison = Comparison::new(&recipe, &older_pieces(cut(old).unwrap()));
        (recipe, comparison)
    }

    /// The bar: 1 % changed in one place, and a byte before everything, cost at most 2 % with the recipe.
    #[test]
    fn a_small_change_costs_little() {
        let old = random(1, 64 << 20);
        let mut new = old.clone();
        let changed = old.len() / 100;
        new[20 << 20..][..changed].copy_from_slice(&random(2, changed));
        new.insert(0, 7);
        let (recipe, comparison) = compare(&old, &new);
        let wanted_bytes = new.len() as u64 - comparison.copied_bytes();
        let recipe_bytes = recipe.to_bytes().len() as u64;
        println!("{wanted_bytes} bytes wanted, {recipe_bytes} of recipe, of {}", new.len());
        assert!((wanted_bytes + recipe_bytes) * 50 <= new.len() as u64);
        for copy in comparison.copies {
            let [from, to, length] = [copy.from, copy.to, copy.length].map(|it| it as usize);
            assert!(old[from..from + length] == new[to..to + length]);
        }
    }

    #[test]
    fn every_file_has_a_recipe() {
        for file in [random(3, 0), random(4, 1), random(5, 3 << 20), vec![0; 3 << 20]] {
            let (recipe, comparison) = compare(&file, &file);
            assert_eq!(recipe.bytes(), file.len() as u64);
            assert_eq!(comparison.copied_bytes(), file.len() as u64);
        }
        assert_eq!(compare(&random(6, 1 << 20), &random(7, 1 << 20)).1.copied_bytes(), 0);
    }
}

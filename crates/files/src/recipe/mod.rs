//! A file as pieces that are cut by content, so that two versions of it have most of them in common.
//!
//! Where a piece ends depends on the bytes before that place alone (FastCDC, 16 to 256 KiB, 64 KiB in the mean): a byte that
//! is inserted changes the piece it is in, and perhaps the next. A taker cuts what it has in the same way,
//! copies what both have ([`Plan`], [`Assembly`]) and wants the rest.
//!
//! | | bytes |
//! |---|---|
//! | of each piece | the first 16 of its BLAKE3; its length 4, little endian |
//!
//! The invariant: the lengths of the pieces add up to the length of the file, none is longer than [`MAX_PIECE_BYTES`],
//! and none but the last is shorter than [`MIN_PIECE_BYTES`]; so a recipe has a bounded size. Nothing is
//! believed because of it: what was put together has to have the root.

mod assembly;
mod plan;

use std::io::{self, Read};

use fastcdc::v2020::StreamCDC;

pub use assembly::{Assembled, Assembly};
pub use plan::{Plan, Step};

use crate::errors::ReadError;
use crate::reader::SourceFile;

/// The shortest piece, in bytes, but for the last.
pub const MIN_PIECE_BYTES: u32 = 16 * 1024;

/// The mean, in bytes: 20 bytes of recipe for each are 0.03 % of the file, and a change of one byte costs 64 KiB. With 16
/// KiB the recipe of a file of which 1 % changed is an eighth of what is sent.
const MEAN_PIECE_BYTES: u32 = 64 * 1024;

/// The longest piece, in bytes: a chunk.
pub const MAX_PIECE_BYTES: u32 = 256 * 1024;

/// Bytes of a piece in a recipe.
const ENTRY_BYTES: usize = 20;

/// The first bytes of a piece's BLAKE3.
pub type PieceHash = [u8; 16];

/// One piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// The first 16 bytes of its BLAKE3.
    pub hash: PieceHash,
    /// Its length, in bytes.
    pub length: u32,
}

/// The pieces of a file, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recipe {
    length: u64,
    pieces: Vec<Piece>,
}

/// Bytes that are no recipe of this file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RecipeError {
    /// They end in the middle of a piece.
    #[error("the recipe is cut off")]
    CutOff,
    /// A piece is too short or too long.
    #[error("the recipe has a piece of {bytes} bytes")]
    PieceLength {
        /// Its length.
        bytes: u32,
    },
    /// All together are not the file.
    #[error("the pieces of the recipe are not as long as the file")]
    FileLength,
}

impl Recipe {
    /// Cuts a file, in one thread.
    pub fn of_file(file: &SourceFile) -> Result<Self, ReadError> {
        let recipe = Self::of(file.stream());
        // A file that became shorter says so here, in better words.
        file.check()?;
        recipe.map_err(|error| ReadError::io(file.path(), error))
    }

    /// Cuts what comes out of this.
    pub fn of(bytes: impl Read) -> io::Result<Self> {
        let [min, mean, max] =
            [MIN_PIECE_BYTES, MEAN_PIECE_BYTES, MAX_PIECE_BYTES].map(|bytes| bytes as usize);
        let mut recipe = Self::default();
        for piece in StreamCDC::new(bytes, min, mean, max) {
            let bytes = piece.map_err(io::Error::from)?.data;
            let hash = blake3::hash(&bytes);
            let hash = hash.as_bytes().first_chunk().copied().unwrap_or_default();
            let length = u32::try_from(bytes.len()).map_err(io::Error::other)?;
            recipe.pieces.push(Piece { hash, length });
            recipe.length += u64::from(length);
        }
        Ok(recipe)
    }

    /// The length of the file.
    pub const fn length(&self) -> u64 {
        self.length
    }

    /// The pieces, in order.
    pub fn pieces(&self) -> &[Piece] {
        &self.pieces
    }

    /// The pieces with the places at which they begin.
    fn placed(&self) -> impl Iterator<Item = (u64, &Piece)> {
        self.pieces.iter().scan(0, |next, piece| {
            let start = *next;
            *next += u64::from(piece.length);
            Some((start, piece))
        })
    }

    /// Where in the file the pieces of these runs are: what a giver reads for them. `None` if it has no such pieces.
    pub fn ranges_of(&self, runs: &[std::ops::Range<u32>]) -> Option<Vec<std::ops::Range<u64>>> {
        let mut starts: Vec<u64> = self.placed().map(|(start, _)| start).collect();
        starts.push(self.length);
        let start = |piece: u32| starts.get(piece as usize).copied();
        let range = |run: &std::ops::Range<u32>| Some(start(run.start)?..start(run.end)?);
        runs.iter().map(|run| range(run).filter(|range| range.start <= range.end)).collect()
    }

    /// The most bytes that the recipe of a file of this length has: what a reader of it has to accept.
    pub fn max_bytes(file_bytes: u64) -> u64 {
        file_bytes.div_ceil(u64::from(MIN_PIECE_BYTES)) * ENTRY_BYTES as u64
    }

    /// Its bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let entry = |piece: &Piece| piece.hash.into_iter().chain(piece.length.to_le_bytes());
        self.pieces.iter().flat_map(entry).collect()
    }

    /// Reads the recipe of a file of this length.
    pub fn from_bytes(bytes: &[u8], file_bytes: u64) -> Result<Self, RecipeError> {
        if bytes.len() as u64 > Self::max_bytes(file_bytes) {
            return Err(RecipeError::FileLength);
        }
        let (entries, rest) = bytes.as_chunks::<ENTRY_BYTES>();
        if !rest.is_empty() {
            return Err(RecipeError::CutOff);
        }
        let mut recipe = Self { length: 0, pieces: Vec::with_capacity(entries.len()) };
        for (number, entry) in (1..).zip(entries) {
            let (hash, length) = entry.split_first_chunk().ok_or(RecipeError::CutOff)?;
            let length = length.first_chunk().ok_or(RecipeError::CutOff)?;
            let piece = Piece { hash: *hash, length: u32::from_le_bytes(*length) };
            let min = if number == entries.len() { 1 } else { MIN_PIECE_BYTES };
            if !(min..=MAX_PIECE_BYTES).contains(&piece.length) {
                return Err(RecipeError::PieceLength { bytes: piece.length });
            }
            recipe.length += u64::from(piece.length);
            recipe.pieces.push(piece);
        }
        if recipe.length == file_bytes { Ok(recipe) } else { Err(RecipeError::FileLength) }
    }
}

#[cfg(test)]
mod tests;

//! The pieces of a file, by content, and which of them an older version has.
//!
//! The invariant: the pieces of a [`Recipe`] make up a file of the size that was offered, none is longer
//! than a chunk, and only the last is short. So what is planned from it covers each byte once, whoever
//! sent it. The hashes are not trusted: they decide what is copied, and the file's root whether that was
//! right.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use crate::fields::{Fields, FormatError};
use crate::ranges::Ranges;

/// The shortest piece but the last, in bytes.
pub const MIN_PIECE_BYTES: u32 = 16 << 10;

/// The longest piece, in bytes.
pub const MAX_PIECE_BYTES: u32 = 256 << 10;

/// The longest recipe, in bytes: for a file of 50 GB in pieces of 64 KiB. A larger file is not searched
/// for.
pub const MAX_RECIPE_BYTES: u64 = 16 << 20;

/// Length and hash.
const PIECE_BYTES: usize = 20;

/// Pieces of the longest recipe.
pub(crate) const MAX_PIECES: usize = MAX_RECIPE_BYTES as usize / PIECE_BYTES;

/// The first half of a piece's BLAKE3.
pub type PieceHash = [u8; 16];

/// A piece of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// In bytes.
    pub length: u32,
    /// Of its bytes.
    pub hash: PieceHash,
}

/// All pieces of a file, in order. Its copies share them: of a long file they are tens of MB.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recipe {
    pieces: Arc<[Piece]>,
    /// Where each ends.
    ends: Arc<[u64]>,
}

impl Recipe {
    /// The pieces of a file.
    ///
    /// # Errors
    /// [`FormatError`] if one of them is too long or too short, or if they are too many.
    pub fn new(pieces: Vec<Piece>) -> Result<Self, FormatError> {
        if pieces.len() > MAX_PIECES {
            return Err(FormatError::Value("too many pieces"));
        }
        let mut ends = Vec::with_capacity(pieces.len());
        let mut end = 0;
        for (index, piece) in pieces.iter().enumerate() {
            let min = if index + 1 == pieces.len() { 1 } else { MIN_PIECE_BYTES };
            if !(min..=MAX_PIECE_BYTES).contains(&piece.length) {
                return Err(FormatError::Value("a piece that is too long or too short"));
            }
            end += u64::from(piece.length);
            ends.push(end);
        }
        Ok(Self { pieces: pieces.into(), ends: ends.into() })
    }

    /// From the wire, for a file of this size.
    ///
    /// # Errors
    /// [`FormatError`] if it is not the recipe of such a file.
    pub fn read(bytes: &[u8], size: u64) -> Result<Self, FormatError> {
        if bytes.len() as u64 > MAX_RECIPE_BYTES {
            return Err(FormatError::Value("too many pieces"));
        }
        let mut fields = Fields::new(bytes);
        let mut pieces = Vec::new();
        while !fields.is_empty() {
            let length = u32::from_le_bytes(fields.array()?);
            pieces.push(Piece { length, hash: fields.array()? });
        }
        let recipe = Self::new(pieces)?;
        if recipe.bytes() == size {
            Ok(recipe)
        } else {
            Err(FormatError::Value("pieces of another size"))
        }
    }

    /// As the bytes of a block.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let fields =
            self.pieces.iter().flat_map(|it| [&it.length.to_le_bytes()[..], &it.hash].concat());
        fields.collect()
    }

    /// The size of the file, in bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.ends.last().copied().unwrap_or(0)
    }

    /// The pieces.
    #[must_use]
    pub fn pieces(&self) -> &[Piece] {
        &self.pieces
    }

    /// Where in the file these pieces are, as far as there are such.
    #[must_use]
    pub fn span(&self, pieces: &Range<u64>) -> Range<u64> {
        self.start(pieces.start)..self.start(pieces.end)
    }

    fn start(&self, piece: u64) -> u64 {
        let before = usize::try_from(piece).unwrap_or(usize::MAX).checked_sub(1);
        before.map_or(0, |at| self.ends.get(at).copied().unwrap_or_else(|| self.bytes()))
    }
}

/// A piece of an older version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OlderPiece {
    /// Where it is in the older file, in bytes.
    pub offset: u64,
    /// What it is.
    pub piece: Piece,
}

/// Bytes that are copied from the older file into the new one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Copied {
    /// Where they are in the older file.
    pub from: u64,
    /// Where they belong in the new one.
    pub to: u64,
    /// How many, in bytes.
    pub length: u64,
}

/// What of a file an older version has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Comparison {
    /// What is copied, in the order of the new file; neighbours that stay neighbours are one.
    pub copies: Vec<Copied>,
    /// The pieces that are in the new file alone, by index.
    pub missing: Ranges,
}

impl Comparison {
    /// Looks for the pieces of the new file in the older one.
    #[must_use]
    pub fn new(recipe: &Recipe, older: &[OlderPiece]) -> Self {
        let known: HashMap<(PieceHash, u32), u64> =
            older.iter().map(|it| ((it.piece.hash, it.piece.length), it.offset)).collect();
        let mut comparison = Self::default();
        let mut to = 0;
        for (index, piece) in (0..).zip(recipe.pieces.iter()) {
            let length = u64::from(piece.length);
            match known.get(&(piece.hash, piece.length)) {
                Some(&from) => comparison.copy(Copied { from, to, length }),
                None => {
                    comparison.missing.insert(index..index + 1);
                }
            }
            to += length;
        }
        comparison
    }

    fn copy(&mut self, copied: Copied) {
        match self.copies.last_mut() {
            Some(last)
                if last.from + last.length == copied.from && last.to + last.length == copied.to =>
            {
                last.length += copied.length;
            }
            _ => self.copies.push(copied),
        }
    }

    /// How many bytes of the new file are in the older one.
    #[must_use]
    pub fn copied_bytes(&self) -> u64 {
        self.copies.iter().map(|it| it.length).sum()
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    fn piece(name: u8, length: u32) -> Piece {
        Piece { length, hash: [name; 16] }
    }

    #[test]
    fn pieces_that_moved_are_found_and_neighbours_are_one_copy() {
        let new = [
            piece(1, 20_000),
            piece(9, 30_000),
            piece(2, 40_000),
            piece(3, 50_000),
            piece(1, 20_000),
        ];
        let new = Recipe::new(new.to_vec()).unwrap();
        let older: Vec<OlderPiece> =
            [(0, piece(1, 20_000)), (20_000, piece(2, 40_000)), (60_000, piece(3, 50_000))]
                .map(|(offset, piece)| OlderPiece { offset, piece })
                .to_vec();
        let comparison = Comparison::new(&new, &older);
        let copy = |from, to, length| Copied { from, to, length };
        let copies = [copy(0, 0, 20_000), copy(20_000, 50_000, 90_000), copy(0, 140_000, 20_000)];
        assert_eq!(comparison.copies, copies);
        assert!(comparison.missing.iter().eq([1..2]));
        assert_eq!((comparison.copied_bytes(), new.span(&(1..3))), (130_000, 20_000..90_000));
    }

    #[test]
    fn a_recipe_is_of_one_size_and_its_pieces_are_bounded() {
        let recipe = Recipe::new(vec![piece(1, 16 << 10), piece(2, 1)]).unwrap();
        let bytes = recipe.to_bytes();
        assert_eq!((&bytes[..5], bytes.len()), (&[0, 64, 0, 0, 1][..], 40));
        assert_eq!(Recipe::read(&bytes, (16 << 10) + 1), Ok(recipe));
        assert!(Recipe::read(&bytes, 16 << 10).is_err());
        assert!(Recipe::read(&bytes[..39], (16 << 10) + 1).is_err());
        for wrong in
            [vec![piece(1, 1), piece(2, 1)], vec![piece(1, 0)], vec![piece(1, (256 << 10) + 1)]]
        {
            assert!(Recipe::new(wrong).is_err());
        }
        assert!(Recipe::new(vec![piece(1, 16 << 10); 838_861]).is_err());
    }

    proptest! {
        #[test]
        fn what_is_copied_and_what_is_missing_is_the_whole_file(
            new in vec((0_u8..6, 16_384_u32..16_390), 0..30),
            old in vec((0_u8..6, 16_384_u32..16_390), 0..30),
        ) {
            let pieces = new.iter().map(|&(name, length)| piece(name, length));
            let recipe = Recipe::new(pieces.collect()).unwrap();
            let mut offset = 0;
            let mut older = Vec::new();
            for (name, length) in old {
                older.push(OlderPiece { offset, piece: piece(name, length) });
                offset += u64::from(length);
            }
            let comparison = Comparison::new(&recipe, &older);
            let mut covered: Ranges = comparison.copies.iter().map(|it| it.to..it.to + it.length).collect();
            let missing = comparison.missing.iter().map(|it| recipe.span(&it));
            let missing: u64 = missing.map(|it| it.end - it.start).sum();
            for pieces in comparison.missing.iter() {
                covered.insert(recipe.span(&pieces));
            }
            prop_assert_eq!(covered, Ranges::up_to(recipe.bytes()));
            prop_assert_eq!(comparison.copied_bytes() + missing, recipe.bytes());
            prop_assert!(comparison.copies.iter().all(|it| it.from + it.length <= offset));
        }
    }
}

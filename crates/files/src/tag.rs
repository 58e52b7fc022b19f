//! The tag of a block says what it is: which file, and which part of it.
//!
//! So a block that arrives before any message is known for what it is, and no message has to go beside
//! each. Of the 62 bits that the wire has for a tag the kind has the highest 3, the file the next 20, and in
//! the lowest 39 is which want is answered; of a part the lowest 9 bits of that, and in 30 where it begins in
//! the file, in MiB. So what answers a want that was replaced by another is known for it.

use crate::offer::MAX_FILES;

/// Parts begin at multiples of this in their file, in bytes.
pub const PART_UNIT: u64 = 1 << 20;

/// The tag of a part has the number of its want modulo this.
pub(crate) const PART_WANTS: u32 = 512;

/// The lowest bit of the kind: the wire writes tags as numbers below 2^62.
const KIND_BIT: u32 = 59;

/// The lowest bit of the file.
const FILE_BIT: u32 = 39;

/// All below it.
const LOW_BITS: u64 = (1 << FILE_BIT) - 1;

/// The largest file, in bytes.
pub const MAX_FILE_BYTES: u64 = 1 << 50;

/// What a block is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum BlockTag {
    /// The offer itself, too long for a message.
    Offer,
    /// A file: the block's root is the file's.
    Whole {
        /// Its index in the offer.
        file: u32,
        /// The want that is answered; 0 for none.
        want: u32,
    },
    /// A part of a file.
    Part {
        /// Its index in the offer.
        file: u32,
        /// The want that is answered, modulo 512.
        want: u32,
        /// Where it begins, in bytes: a multiple of [`PART_UNIT`].
        offset: u64,
    },
    /// A part of a file whose chunks are packed.
    Packed {
        /// Its index in the offer.
        file: u32,
        /// The want that is answered, modulo 512.
        want: u32,
        /// Where it begins in the file, in bytes: a multiple of [`PART_UNIT`].
        offset: u64,
    },
    /// The lengths and hashes of a file's pieces.
    Recipe {
        /// Its index in the offer.
        file: u32,
        /// The want that is answered.
        want: u32,
    },
    /// Pieces of a file, one after the other.
    Pieces {
        /// Its index in the offer.
        file: u32,
        /// The want that is answered.
        want: u32,
    },
}

impl BlockTag {
    /// As the tag of a block.
    #[must_use]
    pub fn to_u64(self) -> u64 {
        let (kind, file, low) = match self {
            Self::Offer => (1, 0, 0),
            Self::Whole { file, want } => (2, file, u64::from(want)),
            Self::Part { file, want, offset } => (3, file, place(want, offset)),
            Self::Packed { file, want, offset } => (4, file, place(want, offset)),
            Self::Recipe { file, want } => (5, file, u64::from(want)),
            Self::Pieces { file, want } => (6, file, u64::from(want)),
        };
        kind << KIND_BIT | u64::from(file & 0xf_ffff) << FILE_BIT | low & LOW_BITS
    }

    /// From the tag of a block; `None` if none has it.
    #[must_use]
    pub fn from_u64(tag: u64) -> Option<Self> {
        let file =
            u32::try_from(tag >> FILE_BIT & 0xf_ffff).ok().filter(|&file| file < MAX_FILES)?;
        let low = tag & LOW_BITS;
        let want = u32::try_from(low).ok();
        let offset = (low & 0x3fff_ffff) * PART_UNIT;
        let part_want = u32::try_from(low >> 30).ok();
        Some(match tag >> KIND_BIT {
            1 if (file, low) == (0, 0) => Self::Offer,
            2 => Self::Whole { file, want: want? },
            3 => Self::Part { file, want: part_want?, offset },
            4 => Self::Packed { file, want: part_want?, offset },
            5 => Self::Recipe { file, want: want? },
            6 => Self::Pieces { file, want: want? },
            _ => return None,
        })
    }

    /// The file that it is of.
    #[must_use]
    pub const fn file(self) -> Option<u32> {
        match self {
            Self::Offer => None,
            Self::Whole { file, .. }
            | Self::Part { file, .. }
            | Self::Packed { file, .. }
            | Self::Recipe { file, .. }
            | Self::Pieces { file, .. } => Some(file),
        }
    }
}

/// The lowest bits of the tag of a part.
fn place(want: u32, offset: u64) -> u64 {
    u64::from(want % PART_WANTS) << 30 | (offset / PART_UNIT) & 0x3fff_ffff
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn tags_have_the_bits_of_the_standard() {
        for (tag, bits) in [
            (BlockTag::Offer, 0x0800_0000_0000_0000),
            (BlockTag::Whole { file: 5, want: 2 }, 0x1000_0280_0000_0002),
            (BlockTag::Part { file: 0, want: 2, offset: 3 << 20 }, 0x1800_0000_8000_0003),
            (
                BlockTag::Packed { file: 999_999, want: 511, offset: (1 << 50) - (1 << 20) },
                0x27a1_1fff_ffff_ffff,
            ),
            (BlockTag::Recipe { file: 1, want: 9 }, 0x2800_0080_0000_0009),
            (BlockTag::Pieces { file: 1, want: u32::MAX }, 0x3000_0080_ffff_ffff),
        ] {
            assert!(bits < 1 << 62, "the wire has no room for it");
            assert_eq!(tag.to_u64(), bits, "{tag:?}");
            assert_eq!(BlockTag::from_u64(bits), Some(tag));
        }
        let none =
            [0, 1, 0x0800_0000_0000_0001, 0x1000_0001_0000_0000, 0x17a1_2000_0000_0000, 7 << 59];
        for bits in none {
            assert_eq!(BlockTag::from_u64(bits), None, "{bits:#x}");
        }
    }

    proptest! {
        #[test]
        fn a_tag_that_is_read_is_written_the_same(bits in any::<u64>()) {
            if let Some(tag) = BlockTag::from_u64(bits) {
                prop_assert_eq!(tag.to_u64(), bits);
            }
        }
    }
}

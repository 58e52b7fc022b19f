//! The names of blocks as numbers, for faces in languages that have no types of ours.
//!
//! The invariant: any number is a name, of nothing if it was not given out, and a call with it does nothing.

use super::{BlockHandle, BlockNumber};

macro_rules! bits {
    ($($name:ident),*) => {$(
        impl $name {
            /// As a number, for a face in another language: [`from_bits`](Self::from_bits) takes it back.
            #[must_use]
            pub const fn to_bits(self) -> u32 {
                self.0
            }

            /// What [`to_bits`](Self::to_bits) gave. Any other number names no block, and a call with it does
            /// nothing.
            #[must_use]
            pub const fn from_bits(bits: u32) -> Self {
                Self(bits)
            }
        }
    )*};
}

bits!(BlockHandle, BlockNumber);

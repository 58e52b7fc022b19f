//! The direction that only counts how long a packet would be.

use super::{Error, Result, Stream};

/// Counts the bits that a [`Writer`](super::Writer) would write. Needs no buffer.
#[derive(Clone, Copy, Debug, Default)]
pub struct Measure {
    bits: usize,
}

impl Measure {
    /// Nothing counted yet.
    #[must_use]
    pub const fn new() -> Self {
        Self { bits: 0 }
    }

    /// Bits counted so far.
    #[must_use]
    pub const fn bits(self) -> usize {
        self.bits
    }

    /// Bytes that these bits fill; the last may be filled in part.
    #[must_use]
    pub const fn bytes(self) -> usize {
        self.bits.div_ceil(8)
    }
}

impl<'a> Stream<'a> for Measure {
    const READING: bool = false;

    fn bits(&mut self, value: u32, width: u32) -> Result<u32> {
        if width > 32 {
            return Err(Error::OutOfRange);
        }
        self.bits += width as usize;
        Ok(value)
    }

    fn align(&mut self) -> Result<()> {
        self.bits = self.bits.next_multiple_of(8);
        Ok(())
    }

    fn bytes(&mut self, data: &'a [u8], length: usize) -> Result<&'a [u8]> {
        self.align()?;
        self.bits += length * 8;
        data.get(..length).ok_or(Error::OutOfRange)
    }

    fn remaining(&self) -> Option<usize> {
        None
    }
}

//! The direction that writes into the caller's buffer.

use super::{Error, Result, Stream, mask};
use crate::debug_as;

/// Packs bits into a slice, from the low end of each byte (STANDARD §2.1).
///
/// Bits are collected in a 64-bit scratch word and leave it a byte at a time. Without
/// [`finish`](Self::finish) at the end the last bits stay there.
pub struct Writer<'b> {
    buffer: &'b mut [u8],
    /// Whole bytes already in the buffer.
    written: usize,
    scratch: u64,
    /// Bits in scratch, always under 8 between calls.
    scratch_bits: u32,
}

debug_as! { Writer['_]: |writer| bytes = writer.buffer.len(), written = writer.written }

impl<'b> Writer<'b> {
    /// Writes from the start of `buffer`, over its contents.
    #[must_use]
    pub const fn new(buffer: &'b mut [u8]) -> Self {
        Self { buffer, written: 0, scratch: 0, scratch_bits: 0 }
    }

    /// Writes out the last partial byte, filled up with zeros, and returns the length in bytes.
    ///
    /// # Errors
    /// [`Error::EndOfBuffer`] when that byte has no room.
    #[inline]
    pub fn finish(mut self) -> Result<usize> {
        <Self as Stream>::align(&mut self)?;
        Ok(self.written)
    }

    #[inline]
    fn flush_bytes(&mut self) -> Result<()> {
        while self.scratch_bits >= 8 {
            let slot = self.buffer.get_mut(self.written).ok_or(Error::EndOfBuffer)?;
            *slot = self.scratch.to_le_bytes()[0];
            self.written += 1;
            self.scratch >>= 8;
            self.scratch_bits -= 8;
        }
        Ok(())
    }
}

impl<'a> Stream<'a> for Writer<'_> {
    const READING: bool = false;

    #[inline]
    fn bits(&mut self, value: u32, width: u32) -> Result<u32> {
        if width > 32 {
            return Err(Error::OutOfRange);
        }
        let value = u64::from(value) & mask(width);
        self.scratch |= value << self.scratch_bits;
        self.scratch_bits += width;
        self.flush_bytes()?;
        #[expect(clippy::cast_possible_truncation, reason = "masked to at most 32 bits above")]
        Ok(value as u32)
    }

    #[inline]
    fn align(&mut self) -> Result<()> {
        // Unused scratch bits are zero already.
        self.scratch_bits = self.scratch_bits.next_multiple_of(8);
        self.flush_bytes()
    }

    #[inline]
    fn bytes(&mut self, data: &'a [u8], length: usize) -> Result<&'a [u8]> {
        <Self as Stream>::align(self)?;
        let data = data.get(..length).ok_or(Error::OutOfRange)?;
        let end = self.written.checked_add(length).ok_or(Error::EndOfBuffer)?;
        let room = self.buffer.get_mut(self.written..end).ok_or(Error::EndOfBuffer)?;
        room.copy_from_slice(data);
        self.written = end;
        Ok(data)
    }

    #[inline]
    fn remaining(&self) -> Option<usize> {
        None
    }
}

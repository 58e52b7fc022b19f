//! The direction that reads a datagram, which may be hostile.

use super::{Error, Result, Stream, mask};
use crate::debug_as;

/// Unpacks bits from a slice. Never reads past its end and never panics.
#[derive(Clone)]
pub struct Reader<'a> {
    data: &'a [u8],
    /// The next bit to read, counted from the start of `data`.
    position: usize,
}

debug_as! { Reader['_]: |reader| bytes = reader.data.len(), position = reader.position }

impl<'a> Reader<'a> {
    /// Reads from the first bit of `data`.
    #[must_use]
    pub const fn new(data: &'a [u8]) -> Self {
        Self { data, position: 0 }
    }

    /// Ends the packet: the rest of the last byte must be zero and nothing may follow (STANDARD §2.9).
    ///
    /// # Errors
    /// [`Error::NonzeroPadding`], [`Error::TrailingBytes`].
    #[inline]
    pub fn finish(mut self) -> Result<()> {
        self.align()?;
        if self.remaining_bytes() == 0 { Ok(()) } else { Err(Error::TrailingBytes) }
    }

    const fn remaining_bits(&self) -> usize {
        self.data.len() * 8 - self.position
    }

    const fn remaining_bytes(&self) -> usize {
        self.remaining_bits() / 8
    }

    /// The eight bytes from the current byte on, with zeros after the end of the data.
    #[inline]
    fn window(&self) -> u64 {
        let rest = self.data.get(self.position / 8..).unwrap_or_default();
        if let Some(word) = rest.first_chunk::<8>() {
            return u64::from_le_bytes(*word);
        }
        let mut word = [0; 8];
        for (to, from) in word.iter_mut().zip(rest) {
            *to = *from;
        }
        u64::from_le_bytes(word)
    }
}

impl<'a> Stream<'a> for Reader<'a> {
    const READING: bool = true;

    #[inline]
    fn bits(&mut self, _: u32, width: u32) -> Result<u32> {
        if width > 32 {
            return Err(Error::OutOfRange);
        }
        if width as usize > self.remaining_bits() {
            return Err(Error::EndOfBuffer);
        }
        // At most 7 + 32 bits of the window are used.
        let value = self.window() >> (self.position % 8) & mask(width);
        self.position += width as usize;
        #[expect(clippy::cast_possible_truncation, reason = "masked to at most 32 bits")]
        Ok(value as u32)
    }

    #[inline]
    fn align(&mut self) -> Result<()> {
        #[expect(clippy::cast_possible_truncation, reason = "under 8")]
        let padding = (self.position.next_multiple_of(8) - self.position) as u32;
        if padding == 0 {
            return Ok(());
        }
        if self.bits(0, padding)? == 0 { Ok(()) } else { Err(Error::NonzeroPadding) }
    }

    #[inline]
    fn bytes(&mut self, _: &'a [u8], length: usize) -> Result<&'a [u8]> {
        self.align()?;
        let start = self.position / 8;
        let end = start.checked_add(length).ok_or(Error::EndOfBuffer)?;
        let bytes = self.data.get(start..end).ok_or(Error::EndOfBuffer)?;
        self.position = end * 8;
        Ok(bytes)
    }

    #[inline]
    fn remaining(&self) -> Option<usize> {
        Some(self.remaining_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reading_past_the_end_is_an_error_and_reads_nothing() {
        let mut reader = Reader::new(&[0xff]);
        assert_eq!(reader.bits(0, 9), Err(Error::EndOfBuffer));
        assert_eq!(reader.bits(0, 8), Ok(0xff));
        assert_eq!(reader.bits(0, 1), Err(Error::EndOfBuffer));
        assert_eq!(reader.bits(0, 0), Ok(0));
        assert_eq!(reader.bytes(&[], 1), Err(Error::EndOfBuffer));
        assert_eq!(reader.bytes(&[], usize::MAX), Err(Error::EndOfBuffer));
    }

    #[test]
    fn a_packet_ends_where_it_says() {
        let mut reader = Reader::new(&[0x01, 0x00]);
        reader.bits(0, 1).unwrap();
        assert_eq!(reader.finish(), Err(Error::TrailingBytes));

        let mut reader = Reader::new(&[0x03]);
        reader.bits(0, 1).unwrap();
        assert_eq!(reader.finish(), Err(Error::NonzeroPadding));

        let mut reader = Reader::new(&[0x01]);
        reader.bits(0, 1).unwrap();
        assert_eq!(reader.finish(), Ok(()));
    }
}

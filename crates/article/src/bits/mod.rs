//! Bit-packed serialization: one function per packet that writes it, reads it and measures it.
//!
//! A packet's `serialize` is written once against [`Stream`]. Every primitive takes the value to write and
//! returns the value in effect: a [`Writer`] returns what it was given, a [`Reader`] ignores that and
//! returns what it read, a [`Measure`] only counts. The directions cannot drift apart, because there is one
//! description of the format: the unified serialization of the articles (*Sending Large Blocks of Data*,
//! "Packet Structure"; docs/decisions/0002).
//!
//! The format is STANDARD §2. The invariant of this module: a reader never looks past its slice and
//! never panics, whatever the bytes.
//!
//! ```
//! use haulier_article::bits::{Measure, Reader, Result, Stream, Writer};
//!
//! #[derive(Clone, Copy, Default, PartialEq, Debug)]
//! struct Health { player: u32, hearts: i32 }
//!
//! impl Health {
//!     fn serialize<'a, S: Stream<'a>>(self, stream: &mut S) -> Result<Self> {
//!         let player = stream.bits(self.player, 6)?;
//!         let hearts = stream.int(self.hearts, -1, 10)?;
//!         Ok(Self { player, hearts })
//!     }
//! }
//!
//! let health = Health { player: 40, hearts: -1 };
//! let mut buffer = [0; 2];
//! let mut writer = Writer::new(&mut buffer);
//! health.serialize(&mut writer)?;
//! let length = writer.finish()?;
//!
//! let mut measure = Measure::new();
//! health.serialize(&mut measure)?;
//! assert_eq!((length, measure.bits()), (2, 10));
//!
//! let mut reader = Reader::new(&buffer[..length]);
//! assert_eq!(Health::default().serialize(&mut reader)?, health);
//! reader.finish()?;
//! # Ok::<(), haulier_article::bits::Error>(())
//! ```

mod measure;
mod reader;
mod writer;

pub use measure::Measure;
pub use reader::Reader;
pub use writer::Writer;

/// Why a stream stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The reader ran out of bytes, or the writer out of room.
    #[error("the bytes end before the packet does")]
    EndOfBuffer,
    /// An integer outside its declared range.
    #[error("a number is outside its range")]
    OutOfRange,
    /// A padding bit that is not zero.
    #[error("padding bits are not zero")]
    NonzeroPadding,
    /// The value of a [`check`](Stream::check) does not match.
    #[error("a check value does not match")]
    BadCheck,
    /// Bytes follow the end of the packet.
    #[error("bytes follow the end of the packet")]
    TrailingBytes,
}

/// What stream operations return.
pub type Result<T> = core::result::Result<T, Error>;

/// The bits needed for a number in `[min, max]`: 0 when the bounds are equal, 8 for a span of 255, 32
/// for the whole range. The span is taken modulo 2^32, so negative bounds work (STANDARD §2.3).
///
/// ```
/// # use haulier_article::bits::bits_required;
/// assert_eq!(bits_required(1, 256), 8);
/// assert_eq!(bits_required(-10, 10), 5);
/// ```
#[must_use]
pub const fn bits_required(min: i32, max: i32) -> u32 {
    32 - span(min, max).leading_zeros()
}

const fn span(min: i32, max: i32) -> u32 {
    max.wrapping_sub(min).cast_unsigned()
}

/// The hash that a [`check`](Stream::check) puts on the wire (STANDARD §2.8).
///
/// ```
/// # use haulier_article::bits::check_hash;
/// assert_eq!(check_hash("end of packet"), 0x9908_ace2);
/// ```
#[must_use]
pub const fn check_hash(text: &str) -> u32 {
    let bytes = text.as_bytes();
    let mut hash = 0u32;
    let mut i = 0;
    while i < bytes.len() {
        hash = hash.wrapping_add(bytes[i].to_ascii_uppercase() as u32);
        hash = hash.wrapping_add(hash << 10);
        hash ^= hash >> 6;
        i += 1;
    }
    hash
}

/// A direction of serialization. `'a` is the lifetime of the slice that [`bytes`](Self::bytes) returns: a
/// reader returns a part of the datagram, without a copy.
///
/// # Implementing
///
/// Only the constant and the first four methods depend on the direction; the others are built from them.
pub trait Stream<'a> {
    /// Whether values come from the wire (and the ones passed in are ignored).
    const READING: bool;

    /// `width` bits, least significant first; bits of `value` above the width are dropped.
    ///
    /// # Errors
    /// [`Error::EndOfBuffer`]; [`Error::OutOfRange`] if `width` is over 32.
    fn bits(&mut self, value: u32, width: u32) -> Result<u32>;

    /// Zero bits up to the next byte boundary; nothing when already there.
    ///
    /// # Errors
    /// [`Error::EndOfBuffer`]; [`Error::NonzeroPadding`] from a reader.
    fn align(&mut self) -> Result<()>;

    /// Aligns, then `length` bytes as they are. Zero bytes still align.
    ///
    /// # Errors
    /// As [`align`](Self::align); [`Error::OutOfRange`] from a writer given fewer than `length` bytes.
    fn bytes(&mut self, data: &'a [u8], length: usize) -> Result<&'a [u8]>;

    /// Whole bytes left to read after the next byte boundary; `None` when writing or measuring. For data
    /// that fills the rest of a packet.
    fn remaining(&self) -> Option<usize>;

    /// One bit.
    ///
    /// # Errors
    /// As [`bits`](Self::bits).
    fn bool(&mut self, value: bool) -> Result<bool> {
        Ok(self.bits(u32::from(value), 1)? != 0)
    }

    /// An integer in `[min, max]`, in [`bits_required`] bits.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] for a number outside the bounds; as [`bits`](Self::bits).
    fn int(&mut self, value: i32, min: i32, max: i32) -> Result<i32> {
        let offset = value.wrapping_sub(min).cast_unsigned();
        // Before it is cut to the width: a span of 255 would write 256 as 0.
        if !Self::READING && offset > span(min, max) {
            return Err(Error::OutOfRange);
        }
        let offset = self.bits(offset, bits_required(min, max))?;
        if offset > span(min, max) {
            return Err(Error::OutOfRange);
        }
        Ok(min.wrapping_add(offset.cast_signed()))
    }

    /// 64 bits, the low half first.
    ///
    /// # Errors
    /// As [`bits`](Self::bits).
    fn uint64(&mut self, value: u64) -> Result<u64> {
        #[expect(clippy::cast_possible_truncation, reason = "the low half is what is wanted")]
        let low = self.bits(value as u32, 32)?;
        let high = self.bits((value >> 32) as u32, 32)?;
        Ok(u64::from(high) << 32 | u64::from(low))
    }

    /// The 32 bits of an IEEE single. Does not align.
    ///
    /// # Errors
    /// As [`bits`](Self::bits).
    fn float(&mut self, value: f32) -> Result<f32> {
        Ok(f32::from_bits(self.bits(value.to_bits(), 32)?))
    }

    /// The 64 bits of an IEEE double, the low half first. Does not align.
    ///
    /// # Errors
    /// As [`bits`](Self::bits).
    fn double(&mut self, value: f64) -> Result<f64> {
        Ok(f64::from_bits(self.uint64(value.to_bits())?))
    }

    /// Text for a buffer of `buffer_size` bytes: its length in `[0, buffer_size - 1]`, then the bytes,
    /// without terminator. Whether they are UTF-8 is up to the caller.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] if it does not fit the buffer; as [`bytes`](Self::bytes).
    fn string(&mut self, text: &'a [u8], buffer_size: i32) -> Result<&'a [u8]> {
        let length = i32::try_from(text.len()).map_err(|_| Error::OutOfRange)?;
        let length = self.int(length, 0, buffer_size.saturating_sub(1))?;
        self.bytes(text, usize::try_from(length).map_err(|_| Error::OutOfRange)?)
    }

    /// Aligns, then the [`check_hash`] of `text`: detects a reader and a writer that disagree about the
    /// fields before it.
    ///
    /// # Errors
    /// [`Error::BadCheck`] if another value is found; as [`align`](Self::align).
    #[inline]
    fn check(&mut self, text: &str) -> Result<()> {
        self.align()?;
        let expected = check_hash(text);
        if self.bits(expected, 32)? == expected { Ok(()) } else { Err(Error::BadCheck) }
    }
}

/// A mask of the `width` low bits, for widths from 0 to 32.
const fn mask(width: u32) -> u64 {
    (1 << width) - 1
}

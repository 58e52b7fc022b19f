//! Reading fields from the front of bytes: of datagrams, frames, tokens and tickets.

use crate::DropReason;

/// Why fields could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FieldError {
    /// The bytes end before the field does.
    CutOff,
    /// Bytes follow the last field.
    Trailing,
}

impl From<FieldError> for DropReason {
    fn from(error: FieldError) -> Self {
        match error {
            FieldError::CutOff => Self::Truncated,
            FieldError::Trailing => Self::TrailingBytes,
        }
    }
}

/// Bytes whose fields are read from the front, one after the other. Numbers are little-endian. A field that
/// is cut off leaves the bytes unchanged.
#[derive(Clone, Debug)]
pub(crate) struct Fields<'a>(pub(crate) &'a [u8]);

impl<'a> Fields<'a> {
    pub(crate) fn bytes(&mut self, count: usize) -> Result<&'a [u8], FieldError> {
        let (head, rest) = self.0.split_at_checked(count).ok_or(FieldError::CutOff)?;
        self.0 = rest;
        Ok(head)
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], FieldError> {
        let (head, rest) = self.0.split_first_chunk().ok_or(FieldError::CutOff)?;
        self.0 = rest;
        Ok(*head)
    }

    pub(crate) fn u8(&mut self) -> Result<u8, FieldError> {
        self.array().map(u8::from_le_bytes)
    }

    pub(crate) fn u16(&mut self) -> Result<u16, FieldError> {
        self.array().map(u16::from_le_bytes)
    }

    pub(crate) fn u32(&mut self) -> Result<u32, FieldError> {
        self.array().map(u32::from_le_bytes)
    }

    pub(crate) fn u64(&mut self) -> Result<u64, FieldError> {
        self.array().map(u64::from_le_bytes)
    }

    /// Bytes after their length, which has 2 bytes.
    pub(crate) fn long_bytes(&mut self) -> Result<&'a [u8], FieldError> {
        let count = self.u16()?;
        self.bytes(count.into())
    }

    /// Checks that nothing remains.
    pub(crate) const fn end(&self) -> Result<(), FieldError> {
        if self.0.is_empty() { Ok(()) } else { Err(FieldError::Trailing) }
    }
}

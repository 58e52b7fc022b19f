//! Reading fields from the front of bytes: of datagrams, frames, tokens and tickets.

use crate::DropReason;

/// Why bytes are not what their form says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FieldError {
    /// They end before the field does.
    CutOff,
    /// Something follows the last field.
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

/// Bytes whose fields are taken off the front, one after the other. Numbers are little-endian. A field that
/// is cut off leaves them as they were.
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

    /// Bytes with their length, 2 bytes, in front.
    pub(crate) fn long_bytes(&mut self) -> Result<&'a [u8], FieldError> {
        let count = self.u16()?;
        self.bytes(count.into())
    }

    /// That nothing is left.
    pub(crate) const fn end(&self) -> Result<(), FieldError> {
        if self.0.is_empty() { Ok(()) } else { Err(FieldError::Trailing) }
    }
}

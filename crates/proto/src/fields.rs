//! Reading fields from the front of bytes: of datagrams, frames, tokens and tickets.

use alloc::vec::Vec;

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

    pub(crate) fn array_ref<const N: usize>(&mut self) -> Result<&'a [u8; N], FieldError> {
        let (head, rest) = self.0.split_first_chunk().ok_or(FieldError::CutOff)?;
        self.0 = rest;
        Ok(head)
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], FieldError> {
        self.array_ref().copied()
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

    /// A number of 1, 2, 4 or 8 bytes: the variable-length integer of RFC 9000, section 16.
    pub(crate) fn varint(&mut self) -> Result<u64, FieldError> {
        let (first, _) = self.0.split_first().ok_or(FieldError::CutOff)?;
        let mut number = [0; 8];
        let count = 1_usize << (first >> 6);
        let bytes = self.bytes(count)?;
        number.iter_mut().skip(8 - count).zip(bytes).for_each(|(to, from)| *to = *from);
        // The two highest bits were the length.
        let unused = 64 - (8 * count - 2);
        Ok(u64::from_be_bytes(number) << unused >> unused)
    }

    /// Checks that nothing remains.
    pub(crate) const fn end(&self) -> Result<(), FieldError> {
        if self.0.is_empty() { Ok(()) } else { Err(FieldError::Trailing) }
    }
}

/// The largest number that a varint holds.
pub(crate) const MAX_VARINT: u64 = (1 << 62) - 1;

/// The number of bytes of this number as a varint.
pub(crate) const fn varint_len(number: u64) -> usize {
    match number {
        0..0x40 => 1,
        0x40..0x4000 => 2,
        0x4000..0x4000_0000 => 4,
        _ => 8,
    }
}

/// Appends a number as the shortest varint. One above [`MAX_VARINT`] is a fault of this crate, and becomes
/// the largest.
pub(crate) fn put_varint(number: u64, out: &mut Vec<u8>) {
    let number = number.min(MAX_VARINT);
    let count = varint_len(number);
    let length_bits = u64::from(count.trailing_zeros()) << (8 * count - 2);
    let bytes = (number | length_bits).to_be_bytes();
    out.extend_from_slice(bytes.get(8 - count..).unwrap_or_default());
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The examples of RFC 9000, appendix A.1, and the ends of each length.
    #[test]
    fn varints_are_those_of_rfc_9000() {
        let long = [0xc2, 0x19, 0x7c, 0x5e, 0xff, 0x14, 0xe8, 0x8c];
        let rows: [(&[u8], u64); 5] = [
            (&long, 151_288_809_941_952_652),
            (&[0x9d, 0x7f, 0x3e, 0x7d], 494_878_333),
            (&[0x7b, 0xbd], 15_293),
            (&[0x25], 37),
            (&[0x40, 0x25], 37),
        ];
        for (bytes, number) in rows {
            assert_eq!(Fields(bytes).varint(), Ok(number));
            for cut in 0..bytes.len() {
                let mut fields = Fields(&bytes[..cut]);
                assert_eq!(fields.varint(), Err(FieldError::CutOff));
                assert_eq!(fields.0.len(), cut, "unchanged");
            }
        }
        for number in [0, 63, 64, 16_383, 16_384, (1 << 30) - 1, 1 << 30, MAX_VARINT] {
            let mut bytes = Vec::new();
            put_varint(number, &mut bytes);
            assert_eq!(bytes.len(), varint_len(number));
            assert_eq!(Fields(&bytes).varint(), Ok(number));
        }
    }
}

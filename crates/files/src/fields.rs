//! Fields of messages and offers, from the front of bytes and to their end.
//!
//! The invariant: a reader never panics, and allocates nothing because a number says so. Numbers are
//! varints of RFC 9000, section 16, as everywhere in haulier/1.

/// The largest number of a varint.
pub(crate) const MAX_VARINT: u64 = (1 << 62) - 1;

/// Why bytes from the other end have no format of STANDARD-1, section 8.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FormatError {
    /// The bytes end before a field does.
    #[error("cut off")]
    CutOff,
    /// Bytes follow the last field.
    #[error("bytes after the end")]
    Trailing,
    /// A field has a value that it cannot have.
    #[error("{0}")]
    Value(&'static str),
}

/// Reads fields from the front. A field that is cut off is an error, and so are bytes after the last field.
#[derive(Clone, Debug)]
pub(crate) struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    pub(crate) const fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn bytes(&mut self, count: u64) -> Result<&'a [u8], FormatError> {
        let count = usize::try_from(count).map_err(|_| FormatError::CutOff)?;
        let (head, rest) = self.0.split_at_checked(count).ok_or(FormatError::CutOff)?;
        self.0 = rest;
        Ok(head)
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], FormatError> {
        let (head, rest) = self.0.split_first_chunk().ok_or(FormatError::CutOff)?;
        self.0 = rest;
        Ok(*head)
    }

    pub(crate) fn u8(&mut self) -> Result<u8, FormatError> {
        self.array().map(|[byte]| byte)
    }

    pub(crate) fn varint(&mut self) -> Result<u64, FormatError> {
        let first = self.u8()?;
        let more = self.bytes((1 << (first >> 6)) - 1)?;
        Ok(more.iter().fold(u64::from(first & 0x3f), |n, &byte| n << 8 | u64::from(byte)))
    }

    /// A number that is at most this.
    pub(crate) fn at_most(&mut self, max: u64, what: &'static str) -> Result<u64, FormatError> {
        self.varint().and_then(|n| if n <= max { Ok(n) } else { Err(FormatError::Value(what)) })
    }

    /// Text after its length in bytes.
    pub(crate) fn text(&mut self, max_bytes: u64) -> Result<&'a str, FormatError> {
        let length = self.at_most(max_bytes, "a text that is too long")?;
        std::str::from_utf8(self.bytes(length)?).map_err(|_| FormatError::Value("not UTF-8"))
    }

    /// All that is left.
    pub(crate) fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.0)
    }

    pub(crate) const fn end(&self) -> Result<(), FormatError> {
        if self.0.is_empty() { Ok(()) } else { Err(FormatError::Trailing) }
    }
}

/// Appends a number in its shortest form. A larger one than a varint holds counts as the largest.
pub(crate) fn put_varint(out: &mut Vec<u8>, number: u64) {
    let number = number.min(MAX_VARINT);
    let bytes = number.to_be_bytes();
    let (kept, prefix) = match number {
        0..0x40 => (1, 0x00),
        0x40..0x4000 => (2, 0x40),
        0x4000..0x4000_0000 => (4, 0x80),
        _ => (8, 0xc0),
    };
    let start = out.len();
    out.extend_from_slice(&bytes[8 - kept..]);
    if let Some(first) = out.get_mut(start) {
        *first |= prefix;
    }
}

/// Appends text after its length in bytes.
pub(crate) fn put_text(out: &mut Vec<u8>, text: &str) {
    put_varint(out, text.len() as u64);
    out.extend_from_slice(text.as_bytes());
}

/// The beginning of a text, at most `max_bytes` bytes, cut between characters.
pub(crate) fn beginning(text: &str, max_bytes: usize) -> &str {
    let end = (0..=max_bytes.min(text.len())).rev().find(|&end| text.is_char_boundary(end));
    text.get(..end.unwrap_or(0)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn varints_are_those_of_rfc_9000() {
        let golden: [(u64, &[u8]); 4] = [
            (37, &[0x25]),
            (15_293, &[0x7b, 0xbd]),
            (494_878_333, &[0x9d, 0x7f, 0x3e, 0x7d]),
            (151_288_809_941_952_652, &[0xc2, 0x19, 0x7c, 0x5e, 0xff, 0x14, 0xe8, 0x8c]),
        ];
        for (number, bytes) in golden {
            let mut out = Vec::new();
            put_varint(&mut out, number);
            assert_eq!(out, bytes);
            assert_eq!(Fields::new(bytes).varint(), Ok(number));
            assert_eq!(Fields::new(&bytes[..bytes.len() - 1]).varint(), Err(FormatError::CutOff));
        }
        assert_eq!(Fields::new(&[0x40, 0x25]).varint(), Ok(37), "a longer form is accepted");
        for edge in [0, 63, 64, 16_383, 16_384, (1 << 30) - 1, 1 << 30, MAX_VARINT] {
            let mut out = Vec::new();
            put_varint(&mut out, edge);
            assert_eq!(Fields::new(&out).varint(), Ok(edge));
        }
    }

    #[test]
    fn texts_are_cut_between_characters() {
        assert_eq!(beginning("\u{e9}\u{e9}", 3), "\u{e9}");
        assert_eq!((beginning("ab", 5), beginning("\u{e9}", 1)), ("ab", ""));
        assert!(Fields::new(&[2, 0xff, 0xff]).text(9).is_err());
        assert!(Fields::new(&[2, b'a', b'b']).text(1).is_err());
    }
}

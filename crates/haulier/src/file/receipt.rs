//! The receipt: one chunk in the other direction that says what became of the file (STANDARD §8.2).

use super::Digest;

const MAGIC: [u8; 5] = *b"HRCP\x01";
const FIXED_BYTES: usize = MAGIC.len() + 1 + 32;

/// The longest message, in bytes. It is for a person to read, in one line.
const MAX_MESSAGE_BYTES: usize = 400;

/// What became of a file at the receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Status {
    /// Verified and stored.
    Stored = 0,
    /// It is not what was sent.
    VerificationFailed = 1,
    /// It could not be stored.
    IoError = 2,
    /// The receiver was stopped before the end.
    Interrupted = 3,
}

/// What the receiver reports to the sender.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Receipt {
    /// What became of the file.
    pub status: Status,
    /// The digest of what was received; zero if it never came to that.
    pub digest: Digest,
    /// A sentence for a person; empty when all is well.
    pub message: String,
}

impl Receipt {
    /// As the bytes of a chunk.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut end = self.message.len().min(MAX_MESSAGE_BYTES);
        while !self.message.is_char_boundary(end) {
            end -= 1;
        }
        let message = &self.message.as_bytes()[..end];
        [&MAGIC[..], &[self.status as u8], self.digest.as_bytes(), message].concat()
    }

    /// From the bytes of a chunk; `None` if it is no receipt. Control characters in the message become
    /// spaces: it will be shown on a terminal.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (fixed, message) = bytes.split_at_checked(FIXED_BYTES)?;
        if !fixed.starts_with(&MAGIC) || message.len() > MAX_MESSAGE_BYTES {
            return None;
        }
        let status = match fixed[MAGIC.len()] {
            0 => Status::Stored,
            1 => Status::VerificationFailed,
            2 => Status::IoError,
            3 => Status::Interrupted,
            _ => return None,
        };
        let digest = Digest::from_bytes(fixed[MAGIC.len() + 1..].try_into().ok()?);
        let message = std::str::from_utf8(message).ok()?;
        let message = message.replace(|c: char| c.is_control(), " ");
        Some(Self { status, digest, message })
    }
}

//! The trace of a run: a hash over everything that happened, in order.

use haulier_proto::Instant;

/// A running hash of events. Equal seeds must give equal hashes, on every machine; a difference means
/// that something decided without the seed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    hash: u64,
    events: u64,
}

impl Trace {
    /// Nothing happened yet.
    #[must_use]
    pub const fn new() -> Self {
        Self { hash: 0xcbf2_9ce4_8422_2325, events: 0 }
    }

    /// Adds an event: its time, kind, place and bytes.
    pub fn record(&mut self, at: Instant, kind: u64, place: u64, bytes: &[u8]) {
        self.events += 1;
        self.mix(at.as_nanos());
        self.mix(kind << 32 | place);
        self.mix(bytes.len() as u64);
        let (words, rest) = bytes.as_chunks::<8>();
        for word in words {
            self.mix(u64::from_le_bytes(*word));
        }
        for &byte in rest {
            self.mix(byte.into());
        }
    }

    /// The hash so far.
    #[must_use]
    pub const fn hash(&self) -> u64 {
        self.hash
    }

    /// The number of events in it.
    #[must_use]
    pub const fn events(&self) -> u64 {
        self.events
    }

    /// FNV-1a, a word at a time, with a rotation so that high bits reach low ones.
    const fn mix(&mut self, word: u64) {
        self.hash = (self.hash ^ word).wrapping_mul(0x0000_0100_0000_01b3).rotate_left(23);
    }
}

impl Default for Trace {
    fn default() -> Self {
        Self::new()
    }
}

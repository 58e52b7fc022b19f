//! The work that a machine has done since its start, as counts of the operations that cost time.
//!
//! A wall clock measures the computer as well, and differs from run to run. These counts depend on the input
//! alone, so the soaks and fuzzers can demand that the work for each received datagram is bounded. The
//! invariant: each counter only grows, and counts work where it is done, even if the input is then refused.

use core::ops::AddAssign;

/// Counts of the operations that cost more than looking at a byte.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// Requests of strangers whose check was computed or whose token was opened.
    pub requests: u64,
    /// Key agreements.
    pub agreements: u64,
    /// Datagrams whose tag was checked, and repeated ones, which are refused before that.
    pub opens: u64,
    /// Datagrams sealed.
    pub seals: u64,
    /// Reed-Solomon decodings.
    pub decodes: u64,
    /// Bytes of their slices, of as many as the code has: a power of two.
    pub decoded_bytes: u64,
    /// Bytes of blocks that were hashed.
    pub hashed_bytes: u64,
    /// Frames acted on, ranges of acks looked up, records of sent datagrams that an ack walked over, and
    /// bytes of the maps of chunks that were written and read.
    pub steps: u64,
}

impl AddAssign for Work {
    fn add_assign(&mut self, more: Self) {
        self.requests += more.requests;
        self.agreements += more.agreements;
        self.opens += more.opens;
        self.seals += more.seals;
        self.decodes += more.decodes;
        self.decoded_bytes += more.decoded_bytes;
        self.hashed_bytes += more.hashed_bytes;
        self.steps += more.steps;
    }
}

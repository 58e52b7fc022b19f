//! The parts of the bulk sender and receiver, each for itself.

mod bottleneck;
mod flight;
mod receiver;
mod sender;

use alloc::vec::Vec;
use core::time::Duration;

use crate::Instant;

/// A moment.
const fn micros(micros: u64) -> Instant {
    Instant::from_nanos(micros * 1000)
}

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// Bytes that differ from slice to slice.
fn chunk_of(bytes: usize) -> Vec<u8> {
    (0..bytes as u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect()
}

//! The two ends of a measured join, for `bench join`, which puts a link between them, and for `bench peer`,
//! which leaves the link to others.
//!
//! The keys are constants: both ends are programs that must agree without a word. They are published
//! in this file, so nothing but a measurement may use them.

use haulier_shell::failure::Failure;

pub(super) mod article;
pub(super) mod haulier1;

use std::time::Duration;

use bytes::Bytes;
use haulier_sim::Rng;

/// The longest turn of an end: how fast it notices that it should stop.
const TURN: Duration = Duration::from_millis(20);

/// The seed of the block. No time depends on which bytes it has, only on their being random.
const BLOCK_SEED: u64 = 1;

/// How long a join took, from before its first datagram on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Joined {
    /// Until the client knew that the server answers.
    pub(super) connect: Duration,
    /// Until the whole block was there and verified.
    pub(super) total: Duration,
}

/// The block that both ends know: random bytes, so that the client can compare.
pub(super) fn block(bytes: u64) -> Result<Bytes, Failure> {
    let bytes = usize::try_from(bytes).map_err(|_| Failure::Usage("too many bytes".into()))?;
    Ok(Rng::new(BLOCK_SEED).bytes(bytes).into())
}

fn took_too_long(timeout: Duration) -> Failure {
    Failure::late(format!("no block within {} s", timeout.as_secs_f64()))
}

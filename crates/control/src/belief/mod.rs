//! What is known of a path: the rate of its bottleneck and how that is known, the delay without a queue, the
//! losses, and the bytes that were delivered for sure.

pub(crate) mod bottleneck;
pub(crate) mod delivered;
mod envelope;
pub(crate) mod known;
pub(crate) mod loss;
pub(crate) mod path_loss;
mod rate_finder;
pub(crate) mod requests;
pub(crate) mod samples;
#[cfg(test)]
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "numbers of a test")]
mod tests;
mod upward;
pub(crate) mod way_back;

//! Blocks on `haulier/1`: chunks sent at the rate of the bottleneck, with repair slices for what gets lost
//! (`docs/SENDER.md`, STANDARD-1 section 4.2).
//!
//! The sender is made of parts. `choice` says which slice goes next, and `pacing` when, by one of five
//! laws. They ask a model of the `bottleneck`, whose rate `rate_finder` has from the `samples` that the
//! peer's reports of arrival times are, an estimate of the `loss`, the `limit` that was set, how late the
//! caller is (`lateness`), and what follows from `silence`. `Sender` is where they meet; `tuning` has
//! every number. `Receiver` makes each chunk whole from any of its slices.

mod bottleneck;
mod choice;
mod chunk;
mod config;
mod done;
mod known;
mod lateness;
mod limit;
mod loss;
mod pacing;
mod rate_finder;
mod receiver;
pub(crate) mod repair;
mod requests;
mod samples;
mod sender;
mod silence;
#[cfg(test)]
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "numbers of a test, and bytes of a pattern"
)]
mod tests;
mod trains;
mod tuning;
mod units;

pub(crate) use chunk::{Chunk, WireSlice};
pub(crate) use config::{SenderConfig, SenderEvent, SenderStats};
pub(crate) use known::Known;
pub(crate) use receiver::Receiver;
pub(crate) use repair::BlockRepair;
pub(crate) use requests::RequestTrain;
pub(crate) use sender::Sender;
#[cfg(test)]
pub(crate) use units::Rate;

/// Chunks a sender has open at a time: 4 MiB, what 100 Mbit/s hold in flight over 300 ms.
pub(crate) const SEND_WINDOW: usize = 16;

/// Chunks a receiver holds at most, done ones that nobody reads among them.
pub(crate) const RECEIVE_WINDOW: usize = 2 * SEND_WINDOW;

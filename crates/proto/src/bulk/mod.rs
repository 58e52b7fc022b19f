//! Blocks on `haulier/1`: chunks sent at the rate of the bottleneck, with repair slices for what gets lost
//! (`docs/SENDER.md`, STANDARD-1 section 4.2).
//!
//! `Sender` decides which slice goes next and when. It asks a model of the `bottleneck`, which it keeps
//! true by the arrival times that the peer reports, and an estimate of the `loss`. What became of datagrams
//! it reads in the [`Ledger`](crate::transit::Ledger) of the connection. `Receiver` makes each chunk whole from any of its slices.

mod blind;
mod bottleneck;
mod chunk;
mod config;
mod done;
mod known;
mod lateness;
mod limit;
mod loss;
mod receiver;
pub(crate) mod repair;
mod requests;
mod sender;
mod share;
#[cfg(test)]
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "numbers of a test, and bytes of a pattern"
)]
mod tests;
mod units;

pub(crate) use chunk::Chunk;
pub(crate) use config::{SenderConfig, SenderEvent, SenderStats};
pub(crate) use known::Known;
pub(crate) use receiver::Receiver;
pub(crate) use repair::BlockRepair;
pub(crate) use requests::RequestTrain;
pub(crate) use sender::Sender;

/// Chunks a sender has open at a time: 4 MiB, what 100 Mbit/s hold in flight over 300 ms.
pub(crate) const SEND_WINDOW: usize = 16;

/// Chunks a receiver holds at most, done ones that nobody reads among them.
pub(crate) const RECEIVE_WINDOW: usize = 2 * SEND_WINDOW;

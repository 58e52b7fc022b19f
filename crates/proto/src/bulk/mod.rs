//! Blocks on `haulier/1`: chunks sent at the bottleneck's rate, with repair slices for losses
//! (`docs/SENDER.md`, STANDARD-1 section 4.2).
//!
//! The sender has several parts. `choice` selects the next slice, and `pacing` decides when it is sent, by
//! one of three laws. Both use a model of the `bottleneck`, whose rate `rate_finder` estimates from the
//! `samples` of reported arrival times; the `loss` estimate; the configured `limit`; how late the caller is
//! (`lateness`); and probe timeouts (`silence`). `Sender` connects them, and `tuning` has every constant.
//!

mod block;
mod bottleneck;
mod choice;
mod chunk;
mod chunks;
mod classes;
mod config;
mod content;
mod credit;
pub(crate) mod cut;
mod delivered;
mod envelope;
mod erasures;
mod known;
mod lateness;
mod limit;
mod loss;
mod pacing;
mod path;
mod rate_finder;
mod reader;
mod recalled;
pub(crate) mod repair;
mod repair_cache;
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
pub(crate) mod tree;
mod tuning;
mod units;
mod upward;
mod wants;

pub(crate) use block::{NewBlock, SendBlock};
pub(crate) use choice::{Chosen, SlicePart};
pub(crate) use config::{SenderConfig, SenderStats};
pub(crate) use content::Content;
pub(crate) use credit::Credit;
#[cfg(test)]
pub(crate) use delivered::Proven;
pub(crate) use known::{Known, Trust};
pub(crate) use path::PathState;
pub(crate) use repair_cache::BlockRepair;
pub(crate) use requests::RequestTrain;
pub(crate) use sender::Sender;
#[cfg(test)]
pub(crate) use units::{Bytes, Rate};

//! Blocks on `haulier/1`: chunks sent at the bottleneck's rate, with repair slices for losses
//! (`docs/SENDER.md`, STANDARD-1 section 4.2).
//!
//! The sender has several parts. `choice` selects the next slice, and probe timeouts are those of `silence`;
//! how fast the path is, and when the next slice may go, is the crate `haulier-control`'s. `Sender` connects
//! them, and `tuning` has the constants.

mod block;
mod choice;
mod chunk;
mod chunks;
mod classes;
mod config;
mod content;
mod credit;
pub(crate) mod cut;
mod erasures;
pub(crate) mod repair;
mod repair_cache;
mod sender;
mod silence;
#[cfg(test)]
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "numbers of a test, and bytes of a pattern"
)]
mod tests;
pub(crate) mod tree;
mod tuning;
mod wants;

pub(crate) use block::{NewBlock, SendBlock};
pub(crate) use choice::{Chosen, SlicePart};
pub(crate) use config::{SenderConfig, SenderStats};
pub(crate) use content::Content;
pub(crate) use credit::Credit;
pub(crate) use repair_cache::BlockRepair;
pub(crate) use sender::Sender;

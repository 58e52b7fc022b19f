//! The mechanisms of the sender, each with the lines that switch it off.
//!
//! In what stands in the copy instead, `$off` asks whether the switch of the mechanism is set; all are in one
//! build. They are in the order of docs/SENDER.md: how a rate is [found](finding), [when and which slices
//! go](sending), the law of long transfers ([`window`]).

mod finding;
mod sending;
mod window;

use crate::copy::Edit;

/// A mechanism with a switch.
pub(super) struct Mechanism {
    /// In words joined by hyphens.
    pub(super) name: &'static str,
    /// What the sender does without it.
    pub(super) without: &'static str,
    pub(super) edits: &'static [Edit],
}

/// All of them.
pub(super) fn mechanisms() -> impl Iterator<Item = &'static Mechanism> {
    finding::MECHANISMS.iter().chain(sending::MECHANISMS).chain(window::MECHANISMS)
}

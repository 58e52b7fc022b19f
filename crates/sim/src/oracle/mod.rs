//! Oracles: bounds that a machine must keep whatever its peers send, and the peers that try to break them.
//!
//! A test checks whether a known attack fails. An oracle checks for what all attacks have in common: a
//! machine that holds more than it counts, or does more work than the datagrams justify. So it finds unknown
//! attacks, in the [soak](crate::soak), in the [fuzzers](crate::hostile), and in [drills](drill) of one
//! [`Lie`] each.
//!
//! * [`Meter`]: what a machine allocates; [`Work`](haulier_proto::internals::Work): what it computes;
//! * [`bounds`]: how much of both it may, and why;
//! * [`program`]: the bounds of a program around the machines, which has threads and a disk;
//! * [`Lie`], [`Liar`]: peers with the right keys that lie, hoard or flood;
//! * [`Victim`]: a machine under the bounds; [`drill`]: one liar against it;
//! * [`Watch`]: a server in a world under the bounds; [`LyingClient`]: a liar in it;
//! * [`neighbours`], [`hoarders`]: an honest client behind the address of a liar, and beside a crowd of them;
//! * [`fed`]: a receiver that says whatever brings it more than its link takes;
//! * [`sisters`], [`tokens`]: two servers that share a key.

mod bomb;
pub mod bounds;
mod drill;
mod fed;
mod fleet;
mod liar;
mod lie;
mod lying_client;
mod meter;
mod neighbours;
pub mod program;
mod receiver;
mod victim;
mod watch;

pub use bounds::{Bound, Budget, Finding, State, Traffic};
pub use drill::drill;
pub use fed::{Fed, fed};
pub use fleet::{sisters, tokens};
pub use liar::Liar;
pub use lie::Lie;
pub use lying_client::LyingClient;
pub use meter::Meter;
pub use neighbours::{hoarders, neighbours};
pub use receiver::Says;
pub use victim::Victim;
pub use watch::Watch;

/// The faults that are known and not mended yet, by the numbers that [`Lie::fault`] and the tests have for
/// them: none.
///
/// Lies that would find one are left out of the soak and the fuzzers, and `tests/worlds/oracles.rs` demands
/// that it is still found: a repair makes that test fail until the number is removed here.
pub const KNOWN_FAULTS: &[u8] = &[];

/// Whether the fault with this number is still there.
#[must_use]
pub fn is_known(fault: u8) -> bool {
    KNOWN_FAULTS.contains(&fault)
}

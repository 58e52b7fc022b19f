//! Drives machines over real UDP sockets.
//!
//! A [`Runner`] has one [`Machine`](haulier_core::Machine) and one [`Socket`]: each
//! [`round`](Runner::round) receives, acts and sends, and never waits; [`pause`](Runner::pause) says how long
//! there is nothing to do, and [`wait`](wait()) sleeps that long, for one socket or several, or until a
//! [`WakeUp`] from another thread. [`Clock`] maps the real clock to the machine's time; it is the only place
//! that reads one. The page docs/RUNNER.md describes all of it, and the handles over it that a game uses, in
//! the crate `haulier`.
//!
//! Many datagrams pass with one call, where the system has one: [`Inbox`] holds those that were received,
//! with the time at which each arrived; those to be sent go from the [`Batch`](haulier_core::Batch) in which
//! they were composed.

mod carrier;
mod clock;
mod errors;
mod inbox;
mod outbox;
mod punctual;
#[cfg(any(target_os = "linux", target_os = "android"))]
mod receive;
mod runner;
#[cfg(any(target_os = "linux", target_os = "android"))]
mod send;
mod socket;
mod system;
#[cfg(feature = "tokio")]
mod tokio;
mod wait;
mod wake_up;

#[doc(hidden)]
pub use carrier::Carrier;
pub use clock::Clock;
#[doc(hidden)]
pub use inbox::Inbox;
#[doc(hidden)]
pub use punctual::keep_time;
pub use runner::{Runner, RunnerStats};
pub use socket::{BufferSizes, Socket, WANTED_BUFFER_BYTES, divides_ports};
pub use system::{has_aes, max_datagram_bytes, receive_buffer_bytes, seed};
#[cfg(feature = "tokio")]
#[doc(hidden)]
pub use tokio::Readiness;
pub use wait::{Interest, wait};
pub use wake_up::WakeUp;

/// The example of the README is compiled and run as a doc test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}

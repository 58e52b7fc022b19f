//! A TCP bulk transfer with BBR, as a host: the second kind of competing download, which ignores most losses.
//!
//! Version 1, as draft-cardwell-iccrg-bbr-congestion-control-00 describes it: the sender paces at a gain
//! times the largest delivery rate of ten round trips, and has at most twice what that rate and the shortest
//! round trip of ten seconds put on the path in flight. [`BbrModel`] has the states: startup, drain, the
//! cycle of eight gains, and the probe of the round trip. Not in the draft, and not here: Linux's detection
//! of policers, and its allowance for acks in bunches.
//!
//! The rest of TCP is in `rivals/tcp`.

mod max_filter;
mod model;
mod sender;

pub use model::{BbrModel, BbrState};
pub use sender::BbrSender;

#[cfg(test)]
mod tests;

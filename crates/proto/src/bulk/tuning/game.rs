//! Constants of a transfer beside a game that are not of its pace: that is in `pacing/windowed/objective.rs`.

use crate::bulk::units::Span;

/// Beside a game.
pub(crate) mod beside_game {
    use super::Span;

    /// The longest that a train may take at the rate of the way back, with which a transfer over an unknown
    /// path begins: a game's packet waits for it once. Ten packets are a train from 20 Mbit/s on.
    pub(crate) const MAX_TRAIN: Span = Span::from_millis(5);

    /// The longest that a slice as large as the path carries may take at the transfer's rate. Longer ones are
    /// cut as small as a chunk can be: at 2 Mbit/s one in a datagram of 1500 bytes takes 6 ms, one of 1024
    /// bytes 4.3, and a game's packet waits for it. Ethernet's are cut from 3.4 Mbit/s on.
    pub(crate) const MAX_SLICE: Span = Span::from_millis(5);
}

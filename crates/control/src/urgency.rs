//! How much of the link a block may take: set by the application, followed by the sender.

/// How much of the link a block may take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Urgency {
    /// Fills the link, with some milliseconds of queueing delay: for a join, during a load screen.
    #[default]
    LoadScreen,
    /// Yields to the game's own packets, which are delayed by the time of one datagram and not lost: for
    /// blocks that are sent during play.
    DuringPlay,
}

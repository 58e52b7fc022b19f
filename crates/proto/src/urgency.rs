//! How much of the link a block may take: said by the application, heeded by the sender.

/// What a block may do to the link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Urgency {
    /// Fills the link, with some milliseconds of queue: for a join, while the player looks at a load screen.
    #[default]
    LoadScreen,
    /// Stays behind the game's own packets, which see a packet's time of delay more and no more loss: for
    /// what is sent while somebody plays.
    DuringPlay,
}

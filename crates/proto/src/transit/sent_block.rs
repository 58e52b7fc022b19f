//! The ledger's record of the reports of a receiver of blocks: which state, and which frame that has to
//! arrive, was in a datagram.

/// What a progress frame said, to be passed back when the fate of its datagram is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ProgressMark {
    /// The serial of the newest finished block that it named.
    pub(crate) finished: u64,
    /// The credit in it.
    pub(crate) credit: u64,
}

/// A frame of a receiver that has to arrive: it is sent again when it is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Control {
    /// The root at this place in the application's list.
    RootHere(u8),
    /// The chunks of an announced block that are here, from this one on.
    ChunksHere { block: u32, first: u32 },
    /// This block is not wanted.
    Decline(u32),
}

//! The ways to lie: each is one way to make the other end hold or do more than it was sent.
//!
//! All except one obey the wire: a violation closes the connection, so it is worth a try only where it might
//! cost something before that. The invariant: a fault that a lie once exploited is named here, so that its
//! drill goes on.

/// A way to lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Lie {
    /// Announces blocks of two slices, and sends the last slice, of one byte, and a repair slice: each block
    /// costs a decoding.
    DecodeBombs,
    /// Sends the frames of [`DecodeBombs`](Self::DecodeBombs), with the smallest slices.
    SmallBombs,
    /// Sends the frames of [`DecodeBombs`](Self::DecodeBombs), without the announcements.
    UnannouncedBombs,
    /// Sends slices of chunks of no announced block.
    UnannouncedSlices,
    /// Sends pages of no announced block.
    UnannouncedPages,
    /// Announces empty blocks that are read, and acks nothing.
    UnackedBlocks,
    /// Announces empty blocks that are not read.
    UnreadBlocks,
    /// Sends blocks of one byte that are not read.
    UnreadBytes,
    /// Announces a block, sends a part of it, and then no more.
    Hoarding,
    /// Sends one slice of each chunk that there is credit for, of many blocks.
    Openings,
    /// Announces blocks when all of their slices are there, many at once.
    LateAnnouncement,
    /// Announces a block when most of a chunk of its slices is there.
    LateChunk,
    /// Announces a block when its slices were sent, many chunks of them.
    LateBlock,
    /// Acks everything, with each datagram.
    AckFlood,
    /// Acks everything as often as it fits into a datagram: the wire forbids it.
    RepeatedAcks,
    /// Sends the longest progress of the block with each datagram.
    ProgressFlood,
    /// Announces blocks, and sends nothing of them.
    Announcements,
    /// Cancels blocks that were never announced.
    Cancels,
    /// Declines the block, and says that it has others.
    Declines,
    /// Sends one fragment of each of many packets.
    Fragments,
    /// Sends messages without the first.
    Messages,
    /// Sends one byte of each part of long messages, on all channels.
    MessageParts,
    /// Sends packets that are not read.
    UnreadPackets,
    /// Reports arrivals as if the link were slow.
    SlowArrivals,
    /// Reports arrivals as if the link were fast.
    FastArrivals,
}

impl Lie {
    /// Every lie.
    pub const ALL: [Self; 25] = [
        Self::DecodeBombs,
        Self::SmallBombs,
        Self::UnannouncedBombs,
        Self::UnannouncedSlices,
        Self::UnannouncedPages,
        Self::UnackedBlocks,
        Self::UnreadBlocks,
        Self::UnreadBytes,
        Self::Hoarding,
        Self::Openings,
        Self::LateAnnouncement,
        Self::LateChunk,
        Self::LateBlock,
        Self::AckFlood,
        Self::RepeatedAcks,
        Self::ProgressFlood,
        Self::Announcements,
        Self::Cancels,
        Self::Declines,
        Self::Fragments,
        Self::Messages,
        Self::MessageParts,
        Self::UnreadPackets,
        Self::SlowArrivals,
        Self::FastArrivals,
    ];

    /// The fault that it exploited, by its number in [`KNOWN_FAULTS`](super::KNOWN_FAULTS); `None` if it
    /// never did.
    #[must_use]
    pub const fn fault(self) -> Option<u8> {
        match self {
            Self::DecodeBombs | Self::SmallBombs | Self::UnannouncedBombs => Some(1),
            Self::UnannouncedSlices => Some(5),
            Self::Hoarding => Some(6),
            Self::SlowArrivals | Self::FastArrivals => Some(7),
            Self::UnackedBlocks => Some(8),
            Self::UnreadBlocks | Self::UnreadBytes => Some(9),
            Self::LateAnnouncement
            | Self::LateChunk
            | Self::LateBlock
            | Self::AckFlood
            | Self::RepeatedAcks => Some(10),
            _ => None,
        }
    }

    /// Whether the application of the other end reads nothing.
    #[must_use]
    pub const fn is_unread(self) -> bool {
        matches!(
            self,
            Self::UnreadBlocks
                | Self::UnreadBytes
                | Self::UnreadPackets
                | Self::Messages
                | Self::MessageParts
        )
    }

    /// Whether the other end sends a block meanwhile, so that there are datagrams to lie about.
    #[must_use]
    pub const fn needs_a_block(self) -> bool {
        matches!(
            self,
            Self::AckFlood
                | Self::RepeatedAcks
                | Self::ProgressFlood
                | Self::Declines
                | Self::SlowArrivals
                | Self::FastArrivals
        )
    }

    /// Whether it breaks the wire, so that the other end should close the connection.
    #[must_use]
    pub const fn breaks_the_wire(self) -> bool {
        matches!(self, Self::RepeatedAcks)
    }
}

//! Why a packet of the articles' wire was dropped.

use haulier_core::fragment::{FragmentError, ReassemblyError};

use crate::bits;

haulier_core::drop_reasons! {
    PacketDropReason, PacketDropCounts;
    /// Longer than any packet of this wire (1200 bytes).
    TooLong = "too_long", Hostile;
    /// Too short for a checksum and one byte after it.
    TooShort = "too_short", Hostile;
    /// The checksum does not match: noise, corruption, or another protocol id.
    BadCrc = "bad_crc", Hostile;
    /// A packet type that this protocol does not have.
    BadType = "bad_type", Hostile;
    /// A number outside its range.
    OutOfRange = "out_of_range", Hostile;
    /// A slice index at or above the slice count of its packet.
    SliceIdOutOfRange = "slice_id_out_of_range", Hostile;
    /// The bytes end before the packet does.
    Truncated = "truncated", Hostile;
    /// Padding bits that are not zero.
    NonzeroPadding = "nonzero_padding", Hostile;
    /// The check at the end of the packet does not match.
    BadCheck = "bad_check", Hostile;
    /// Bytes follow the end of the packet.
    TrailingBytes = "trailing_bytes", Hostile;
    /// A fragment without data.
    FragmentEmpty = "fragment_empty", Hostile;
    /// A fragment of more than 1024 bytes.
    FragmentTooBig = "fragment_too_big", Hostile;
    /// A fragment of a packet of no fragments.
    FragmentCountZero = "fragment_count_zero", Hostile;
    /// A fragment index at or above the fragment count of its packet.
    FragmentIdOutOfRange = "fragment_id_out_of_range", Hostile;
    /// A fragment shorter than 1024 bytes that is not the last of its packet.
    MiddleFragmentNotFull = "middle_fragment_not_full", Hostile;
    /// A fragment whose fragment count is not that of the first fragment of its packet.
    CountChanged = "count_changed", Hostile;
    /// A fragment of a packet with more fragments than this end accepts.
    PacketTooBig = "packet_too_big", Hostile;
    /// A reassembled packet whose sequence is not that of its fragments.
    SequenceMismatch = "sequence_mismatch", Hostile;
    /// A packet or fragment older than the window of the newest 256. Reordering over that distance would
    /// cause it too, but a replay causes it every time.
    TooOld = "too_old", Hostile;
    /// A fragment of a packet that was evicted to make room for newer ones, or that took too long.
    Evicted = "evicted", Honest;
    /// A slice or an ack whose slice count is not that of the chunk. A restarted sender causes it, so it
    /// does not prove an attack.
    NumSlicesMismatch = "num_slices_mismatch", Honest;
    /// A packet, fragment or slice that has arrived before. A slice still makes an ack due.
    Duplicate = "duplicate", Honest;
    /// A slice of a chunk ahead of the one expected.
    FutureChunk = "future_chunk", Honest;
    /// A slice of a chunk that is complete. If that is the chunk just before, it still makes an ack due.
    OldChunk = "old_chunk", Honest;
    /// A slice of the next chunk while the receive queue is full of complete ones.
    NotReadYet = "not_read_yet", Honest;
    /// An ack for a chunk other than the one being sent.
    OtherChunk = "other_chunk", Honest;
    /// An ack while no chunk is being sent.
    NotSending = "not_sending", Honest;
}

impl From<bits::Error> for PacketDropReason {
    fn from(error: bits::Error) -> Self {
        match error {
            bits::Error::EndOfBuffer => Self::Truncated,
            bits::Error::OutOfRange => Self::OutOfRange,
            bits::Error::NonzeroPadding => Self::NonzeroPadding,
            bits::Error::BadCheck => Self::BadCheck,
            bits::Error::TrailingBytes => Self::TrailingBytes,
        }
    }
}

impl From<FragmentError> for PacketDropReason {
    fn from(error: FragmentError) -> Self {
        match error {
            FragmentError::Empty => Self::FragmentEmpty,
            FragmentError::TooLong => Self::FragmentTooBig,
            FragmentError::CountZero => Self::FragmentCountZero,
            FragmentError::CountTooLarge => Self::OutOfRange,
            FragmentError::IndexOutOfRange => Self::FragmentIdOutOfRange,
            FragmentError::MiddleNotFull => Self::MiddleFragmentNotFull,
        }
    }
}

impl From<ReassemblyError> for PacketDropReason {
    fn from(error: ReassemblyError) -> Self {
        match error {
            ReassemblyError::PacketTooBig => Self::PacketTooBig,
            ReassemblyError::TooOld => Self::TooOld,
            ReassemblyError::CountChanged => Self::CountChanged,
            ReassemblyError::Duplicate => Self::Duplicate,
            ReassemblyError::Evicted => Self::Evicted,
        }
    }
}

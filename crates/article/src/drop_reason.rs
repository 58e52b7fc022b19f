//! Why a packet of the articles' wire was not used.

use haulier_core::Stale;
use haulier_core::fragment::{FragmentError, ReassemblyError};

use crate::bits;

haulier_core::drop_reasons! {
    PacketDropReason, PacketDropCounts;
    /// Longer than any packet of this wire (1200 bytes).
    TooLong = "too_long", Hostile;
    /// No room for a checksum and one byte after it.
    TooShort = "too_short", Hostile;
    /// The checksum is another one: noise, corruption, or another protocol id.
    BadCrc = "bad_crc", Hostile;
    /// A packet type that this protocol does not have.
    BadType = "bad_type", Hostile;
    /// A number outside its range.
    OutOfRange = "out_of_range", Hostile;
    /// A slice index at or above the slice count beside it.
    SliceIdOutOfRange = "slice_id_out_of_range", Hostile;
    /// The bytes end before the packet does.
    Truncated = "truncated", Hostile;
    /// Padding bits that are not zero.
    NonzeroPadding = "nonzero_padding", Hostile;
    /// The check at the end of the packet is another value.
    BadCheck = "bad_check", Hostile;
    /// Bytes follow the end of the packet.
    TrailingBytes = "trailing_bytes", Hostile;
    /// A fragment without data.
    FragmentEmpty = "fragment_empty", Hostile;
    /// A fragment of more than 1024 bytes.
    FragmentTooBig = "fragment_too_big", Hostile;
    /// A fragment of a packet of no fragments.
    FragmentCountZero = "fragment_count_zero", Hostile;
    /// A fragment index at or above the fragment count beside it.
    FragmentIdOutOfRange = "fragment_id_out_of_range", Hostile;
    /// A fragment shorter than 1024 bytes that is not the last of its packet.
    MiddleFragmentNotFull = "middle_fragment_not_full", Hostile;
    /// A fragment that gives its packet another fragment count than the packet's first one did.
    CountChanged = "count_changed", Hostile;
    /// A fragment of a packet of more fragments than this end takes.
    PacketTooBig = "packet_too_big", Hostile;
    /// A packet put together from fragments whose sequence is not that of its fragments.
    SequenceMismatch = "sequence_mismatch", Hostile;
    /// A packet or fragment older than the window of the newest 256, a datagram of `haulier/1` older than
    /// that of 8192. Reordering by so much would do it too, but a replay does it every time.
    TooOld = "too_old", Hostile;
    /// A fragment of a packet that had to make room for newer ones, or took too long.
    Evicted = "evicted", Honest;
    /// A slice or an ack whose slice count is not that of the chunk. No honest sender causes it, but a
    /// restarted one does, so it is no proof of an attack.
    NumSlicesMismatch = "num_slices_mismatch", Honest;
    /// A packet, fragment or slice that is here already. A slice still asks for an ack.
    Duplicate = "duplicate", Honest;
    /// A slice of a chunk ahead of the one expected.
    FutureChunk = "future_chunk", Honest;
    /// A slice of a chunk that is finished. If it is the one just before, it still asks for an ack.
    OldChunk = "old_chunk", Honest;
    /// A slice of the next chunk while finished ones wait and the receive queue is full.
    NotReadYet = "not_read_yet", Honest;
    /// An ack for a chunk other than the one being sent.
    OtherChunk = "other_chunk", Honest;
    /// An ack while nothing is being sent.
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

impl From<Stale> for PacketDropReason {
    fn from(stale: Stale) -> Self {
        match stale {
            Stale::TooOld => Self::TooOld,
            Stale::Duplicate => Self::Duplicate,
        }
    }
}

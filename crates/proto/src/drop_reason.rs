//! Why a datagram of haulier/1, or a frame in it, was not used.

use haulier_core::fragment::{FragmentError, ReassemblyError};

haulier_core::drop_reasons! {
    DropReason, DropCounts;
    /// Longer than any packet of this wire (1200 bytes).
    TooLong = "too_long", Hostile;
    /// No room for a checksum and one byte after it.
    TooShort = "too_short", Hostile;
    /// A first byte that no datagram of this wire has.
    UnknownKind = "unknown_kind", Hostile;
    /// A datagram that reached a client from elsewhere than its server.
    NotFromServer = "not_from_server", Hostile;
    /// A datagram that only the other role receives: one's own, reflected.
    WrongRole = "wrong_role", Hostile;
    /// A request that has not 1200 bytes, or an answer of another length than its kind has.
    WrongLength = "wrong_length", Hostile;
    /// A version of the wire that this end does not speak.
    WrongVersion = "wrong_version", Honest;
    /// A mode or an identity that this end does not have.
    WrongMode = "wrong_mode", Honest;
    /// An id of no connection here. A server that was restarted gets them from honest clients.
    UnknownConnection = "unknown_connection", Honest;
    /// The check of a request or a refusal is another one: another secret, or damage.
    BadCheckValue = "bad_check_value", Hostile;
    /// The tag of a datagram is another one: damage, or forged.
    BadTag = "bad_tag", Hostile;
    /// A handshake message that does not open.
    BadHandshake = "bad_handshake", Hostile;
    /// A token that is not sealed by a key of this server, or is cut, or for another server.
    BadToken = "bad_token", Hostile;
    /// A token whose time is over.
    TokenExpired = "token_expired", Honest;
    /// A token that was used for another request.
    TokenUsed = "token_used", Hostile;
    /// A request that came before, from another address or for a connection that is gone.
    Replayed = "replayed", Hostile;
    /// A request without a cookie while cookies are asked for, or with one that is not good any more.
    NoCookie = "no_cookie", Honest;
    /// A request for which there is no place.
    NoPlace = "no_place", Honest;
    /// A datagram for a connection that has ended, or that has no use for it now.
    NotNow = "not_now", Honest;
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
}

impl From<FragmentError> for DropReason {
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

impl From<ReassemblyError> for DropReason {
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

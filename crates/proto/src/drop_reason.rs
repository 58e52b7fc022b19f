//! Why a datagram of haulier/1, or a frame in it, was not used.

use haulier_core::fragment::{FragmentError, ReassemblyError};

haulier_core::drop_reasons! {
    DropReason, DropCounts;
    /// Longer than any packet of this wire (1200 bytes).
    TooLong = "too_long", Hostile;
    /// An empty datagram, or one without frames.
    TooShort = "too_short", Hostile;
    /// A first byte that no datagram of this wire has.
    UnknownKind = "unknown_kind", Hostile;
    /// A datagram for a client that did not come from its server's address.
    NotFromServer = "not_from_server", Hostile;
    /// A datagram that only the other role receives, such as one's own, reflected.
    WrongRole = "wrong_role", Hostile;
    /// A request that does not have 1200 bytes.
    WrongLength = "wrong_length", Hostile;
    /// A version of the wire that this end does not speak.
    WrongVersion = "wrong_version", Honest;
    /// A mode that this end does not offer, or an identity that it does not have.
    WrongMode = "wrong_mode", Honest;
    /// An id that belongs to no connection. Honest clients of a restarted server cause it.
    UnknownConnection = "unknown_connection", Honest;
    /// The check of a request or refusal is wrong: another secret, or damage.
    BadCheckValue = "bad_check_value", Hostile;
    /// The tag of a datagram is wrong: damaged or forged.
    BadTag = "bad_tag", Hostile;
    /// A handshake message that cannot be decrypted.
    BadHandshake = "bad_handshake", Hostile;
    /// A token that is truncated, or not sealed with a key of this server.
    BadToken = "bad_token", Hostile;
    /// A token that has expired.
    TokenExpired = "token_expired", Honest;
    /// A token, while the server does not know the time of day and cannot tell whether it has expired.
    NoTimeOfDay = "no_time_of_day", Honest;
    /// A token that was used for another request, or may have been, before the server was started.
    TokenUsed = "token_used", Hostile;
    /// A token for another server.
    WrongServer = "wrong_server", Honest;
    /// A request that was seen before: from another address, or for a connection that has ended.
    Replayed = "replayed", Hostile;
    /// A request with no cookie, or an expired one, while cookies are required.
    NoCookie = "no_cookie", Honest;
    /// A request that exceeds a limit of the server, or reaches it while it shuts down.
    NoSlot = "no_slot", Honest;
    /// A datagram that has no use in the present state, such as one for a connection that has ended.
    NotNow = "not_now", Honest;
    /// A frame type that this wire does not have.
    BadType = "bad_type", Hostile;
    /// A number outside its range.
    OutOfRange = "out_of_range", Hostile;
    /// A slice index at or above the slice count beside it.
    SliceIdOutOfRange = "slice_id_out_of_range", Hostile;
    /// The bytes end before the last field.
    Truncated = "truncated", Hostile;
    /// A frame that a datagram may have once, for the second time.
    RepeatedFrame = "repeated_frame", Hostile;
    /// Flags of a chunk ack for slices that the chunk does not have.
    NonzeroPadding = "nonzero_padding", Hostile;
    /// Bytes follow the last field.
    TrailingBytes = "trailing_bytes", Hostile;
    /// A fragment without data.
    FragmentEmpty = "fragment_empty", Hostile;
    /// A fragment of more than 1024 bytes.
    FragmentTooBig = "fragment_too_big", Hostile;
    /// A fragment count of 0.
    FragmentCountZero = "fragment_count_zero", Hostile;
    /// A fragment index at or above the fragment count beside it.
    FragmentIdOutOfRange = "fragment_id_out_of_range", Hostile;
    /// A fragment shorter than 1024 bytes that is not the last one of its packet.
    MiddleFragmentNotFull = "middle_fragment_not_full", Hostile;
    /// A fragment with another fragment count than the first one of its packet.
    CountChanged = "count_changed", Hostile;
    /// A fragment of a packet with more fragments than this end accepts.
    PacketTooBig = "packet_too_big", Hostile;
    /// A packet or fragment older than the newest 256, or a datagram older than the newest 8192 to 131,072.
    /// Extreme reordering can cause it too, but a replay always does.
    TooOld = "too_old", Hostile;
    /// A fragment of a packet that was evicted.
    Evicted = "evicted", Honest;
    /// A slice or chunk ack with another slice count than that of the chunk.
    NumSlicesMismatch = "num_slices_mismatch", Honest;
    /// A datagram, fragment or slice that was received before. A slice still makes an ack due.
    Duplicate = "duplicate", Honest;
    /// A slice of a chunk beyond the window of chunks that are accepted.
    FutureChunk = "future_chunk", Honest;
    /// A slice or page for which there is no room yet. It is not acknowledged, and the peer sends it again.
    NotKept = "not_kept", Honest;
    /// A slice of a chunk that is finished. It still makes an ack due.
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

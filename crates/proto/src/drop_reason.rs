//! Why a packet was not used: one word for each refusal, and a counter for each word.
//!
//! Wire bytes become a type without illegal values or one of these, nothing in between. Two kinds are
//! told apart: *hostile* reasons, which no honest peer of the same protocol causes (a corrupted datagram
//! does), and *honest* ones, which loss, duplication and reordering cause every day.

use crate::bits;

macro_rules! drop_reasons {
    ($($(#[doc = $doc:literal])+ $variant:ident = $name:literal, $kind:ident;)+) => {
        /// Why a datagram, or the packet in it, was dropped.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[non_exhaustive]
        pub enum DropReason {
            $($(#[doc = $doc])+ $variant,)+
        }

        impl DropReason {
            /// Every reason: those of the frame first, then those of its fields, then those of the machine.
            pub const ALL: &[Self] = &[$(Self::$variant),+];

            /// The name in logs, JSON and the golden vectors.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)+ }
            }

            const fn kind(self) -> Kind {
                match self { $(Self::$variant => Kind::$kind,)+ }
            }
        }
    };
}

#[derive(PartialEq, Eq)]
enum Kind {
    Hostile,
    Honest,
}

drop_reasons! {
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

impl DropReason {
    /// Whether no honest peer sends such a packet. A corrupted datagram looks the same.
    #[must_use]
    pub const fn is_hostile(self) -> bool {
        matches!(self.kind(), Kind::Hostile)
    }
}

impl core::fmt::Display for DropReason {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(self.name())
    }
}

impl core::error::Error for DropReason {}

impl From<bits::Error> for DropReason {
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

/// How often each [`DropReason`] was met.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct DropCounts([u64; DropReason::ALL.len()]);

impl DropCounts {
    /// All zero.
    #[must_use]
    pub const fn new() -> Self {
        Self([0; DropReason::ALL.len()])
    }

    /// Counts one.
    pub const fn count(&mut self, reason: DropReason) {
        self.0[reason as usize] += 1;
    }

    /// How often this reason was met.
    #[must_use]
    pub const fn get(&self, reason: DropReason) -> u64 {
        self.0[reason as usize]
    }

    /// The reasons met at least once, with their counts.
    pub fn iter(&self) -> impl Iterator<Item = (DropReason, u64)> + '_ {
        DropReason::ALL.iter().map(|&r| (r, self.get(r))).filter(|&(_, count)| count > 0)
    }

    /// Packets dropped for reasons of one kind: hostile (`true`) or honest.
    #[must_use]
    pub fn total(&self, hostile: bool) -> u64 {
        self.iter().filter(|(r, _)| r.is_hostile() == hostile).map(|(_, count)| count).sum()
    }
}

/// By name, and without those that are zero: this is what ends in a game's log.
impl core::fmt::Debug for DropCounts {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

impl Default for DropCounts {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_apart() {
        let mut counts = DropCounts::new();
        for (i, &reason) in DropReason::ALL.iter().enumerate() {
            (0..=i).for_each(|_| counts.count(reason));
        }
        for (i, &reason) in DropReason::ALL.iter().enumerate() {
            assert_eq!(counts.get(reason), i as u64 + 1);
        }
        assert_eq!(counts.iter().count(), DropReason::ALL.len());
    }
}

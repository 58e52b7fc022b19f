//! What TCP transfers have in common, whatever controls their congestion: RFC 2018 (SACK), RFC 9002 6.1.1 (a
//! packet is lost when one sent three later has arrived, also for retransmissions), RFC 6298 with Linux's
//! minimum timeout, and samples of the delivery rate (draft-cheng-iccrg-delivery-rate-estimation).
//!
//! There is no handshake and no receive window. Segments are numbered, not bytes: each is full. A stream may
//! end; then a probe of its tail shows what was lost there (RFC 8985, 7).

mod flight;
mod receiver;
mod runs;
mod tail;
mod timer;

pub(super) use flight::Flight;
pub use receiver::TcpReceiver;
pub(super) use tail::Tail;
pub(super) use timer::Timer;

use haulier_proto::Instant;

use haulier_sim::link::UDP_IP_OVERHEAD;

/// Bytes of data in a segment: an Ethernet frame's 1500 without IP, TCP and timestamps.
pub const MSS: u64 = 1448;

/// The number of segments that carry `bytes` bytes.
pub(super) fn segments_of(bytes: u64) -> u32 {
    u32::try_from(bytes.div_ceil(MSS)).unwrap_or(u32::MAX)
}

/// Bytes of IPv4, TCP and the timestamp option.
const HEADER_BYTES: u64 = 52;

/// Bytes of a segment as a datagram, so that it has 1500 on the link.
const SEGMENT_BYTES: usize = (MSS + HEADER_BYTES - UDP_IP_OVERHEAD) as usize;

/// Bytes of an ack as a datagram, without SACK.
const ACK_BYTES: usize = (HEADER_BYTES - UDP_IP_OVERHEAD) as usize;

/// SACK blocks that fit beside timestamps (RFC 2018, 3).
const SACK_BLOCKS: usize = 3;

/// The header of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Segment {
    pub(super) number: u32,
    pub(super) sent_at: Instant,
}

impl Segment {
    pub(super) fn to_bytes(self) -> Vec<u8> {
        let mut out = vec![0; SEGMENT_BYTES];
        out[..4].copy_from_slice(&self.number.to_le_bytes());
        out[4..12].copy_from_slice(&self.sent_at.as_nanos().to_le_bytes());
        out
    }

    fn read(datagram: &[u8]) -> Option<Self> {
        let number = u32::from_le_bytes(*datagram.first_chunk()?);
        let sent_at = u64::from_le_bytes(*datagram.get(4..)?.first_chunk()?);
        (datagram.len() == SEGMENT_BYTES)
            .then_some(Self { number, sent_at: Instant::from_nanos(sent_at) })
    }
}

/// The number of the segment that this datagram is.
pub(crate) fn segment_number(datagram: &[u8]) -> Option<u32> {
    Segment::read(datagram).map(|segment| segment.number)
}

/// The content of an ack.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Ack {
    /// All segments before this one were received.
    pub(super) next: u32,
    /// The timestamp of the segment that caused it.
    pub(super) echo: Instant,
    /// Runs beyond `next`: start, and exclusive end.
    pub(super) sacks: Vec<(u32, u32)>,
}

impl Ack {
    fn to_bytes(&self) -> Vec<u8> {
        let mut out = vec![0; ACK_BYTES];
        out[..4].copy_from_slice(&self.next.to_le_bytes());
        out[4..12].copy_from_slice(&self.echo.as_nanos().to_le_bytes());
        let ends = self.sacks.iter().flat_map(|(from, to)| [from, to]);
        out.extend(ends.flat_map(|end| end.to_le_bytes()));
        out
    }

    pub(super) fn read(datagram: &[u8]) -> Option<Self> {
        let next = u32::from_le_bytes(*datagram.first_chunk()?);
        let echo = u64::from_le_bytes(*datagram.get(4..)?.first_chunk()?);
        let (pairs, _) = datagram.get(ACK_BYTES..)?.as_chunks::<8>();
        let sacks = pairs.iter().map(|pair| {
            let both = u64::from_le_bytes(*pair);
            (both as u32, (both >> 32) as u32)
        });
        Some(Self { next, echo: Instant::from_nanos(echo), sacks: sacks.collect() })
    }
}

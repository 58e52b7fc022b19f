//! The two packets of *Sending Large Blocks of Data*, bit for bit (STANDARD §4).
//!
//! ```
//! use haulier_article::chunk::{ChunkId, Slice, SliceCount};
//! use haulier_article::packet::{self, ProtocolId, article::ArticlePacket};
//!
//! let slice = Slice::new(ChunkId::new(3), SliceCount::ONE.first(), b"ten bytes!").unwrap();
//! let mut buffer = [0; packet::MAX_PACKET_BYTES];
//! let length = packet::write(ArticlePacket::Slice(slice), ProtocolId::ARTICLE, &mut buffer)?;
//! assert_eq!(length, 24);
//!
//! let read: ArticlePacket = packet::read(ProtocolId::ARTICLE, &buffer[..length])?;
//! assert_eq!(read, ArticlePacket::Slice(slice));
//! # Ok::<(), haulier_article::PacketDropReason>(())
//! ```

use haulier_core::chunk::{Ack, ChunkId, MAX_SLICES, SLICE_BYTES, Slice, SliceCount, SliceSet};

use crate::PacketDropReason;
use crate::bits::{Result as BitsResult, Stream};
use crate::packet::{Packet, packet_type};

/// Bytes of a slice packet besides its data: header and end check (STANDARD §4.1). The last slice, which
/// carries its size, has one more.
pub const SLICE_HEADER_BYTES: usize = 13;

const TYPES: i32 = 2;
const SLICE: i32 = 0;
const ACK: i32 = 1;

const BLANK_SLICE: Slice<'static> = match Slice::new(ChunkId::new(0), SliceCount::ONE.first(), &[0])
{
    Some(slice) => slice,
    None => unreachable!(),
};
const BLANK_ACK: Ack =
    Ack { chunk_id: ChunkId::new(0), received: SliceSet::empty(SliceCount::ONE) };

/// A packet of the article wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArticlePacket<'a> {
    /// A piece of a chunk, from sender to receiver.
    Slice(Slice<'a>),
    /// What has arrived of a chunk, from receiver to sender.
    Ack(Ack),
}

impl<'a> Packet<'a> for ArticlePacket<'a> {
    const BLANK: Self = Self::Ack(BLANK_ACK);

    fn serialize<S: Stream<'a>>(self, stream: &mut S) -> Result<Self, PacketDropReason> {
        let (kind, slice, ack) = match self {
            Self::Slice(slice) => (SLICE, slice, BLANK_ACK),
            Self::Ack(ack) => (ACK, BLANK_SLICE, ack),
        };
        match packet_type(stream, kind, TYPES)? {
            SLICE => serialize_slice(slice, stream).map(Self::Slice),
            _ => serialize_ack(ack, stream).map(Self::Ack).map_err(Into::into),
        }
    }
}

fn serialize_slice<'a, S: Stream<'a>>(
    slice: Slice<'a>,
    stream: &mut S,
) -> Result<Slice<'a>, PacketDropReason> {
    let chunk_id = chunk_id(stream, slice.chunk_id())?;
    let index = ranged(stream, slice.index().get(), 0, MAX_SLICES - 1)?;
    let count = slice_count(stream, slice.index().count())?;
    let index = count.index(index).ok_or(PacketDropReason::SliceIdOutOfRange)?;
    // Only the last slice carries its length; all others are full (STANDARD §4.1).
    let length = if index.is_last() {
        ranged(stream, slice.data().len(), 1, SLICE_BYTES)?
    } else {
        SLICE_BYTES
    };
    let data = stream.bytes(slice.data(), length)?;
    Slice::new(chunk_id, index, data).ok_or(PacketDropReason::OutOfRange)
}

fn serialize_ack<'a, S: Stream<'a>>(ack: Ack, stream: &mut S) -> BitsResult<Ack> {
    let chunk_id = chunk_id(stream, ack.chunk_id)?;
    let count = slice_count(stream, ack.received.count())?;
    // One flag a slice, slice 0 first. 32 flags at a time are the same bits as 32 times one flag.
    let mut words = ack.received.words();
    let received = SliceSet::from_words(count, |width| {
        let flags = words.next().map_or(0, |(flags, _)| flags);
        stream.bits(flags, width)
    })?;
    Ok(Ack { chunk_id, received })
}

fn chunk_id<'a, S: Stream<'a>>(stream: &mut S, id: ChunkId) -> BitsResult<ChunkId> {
    #[expect(clippy::cast_possible_truncation, reason = "16 bits were asked for")]
    Ok(ChunkId::new(stream.bits(u32::from(id.get()), 16)? as u16))
}

fn slice_count<'a, S: Stream<'a>>(stream: &mut S, count: SliceCount) -> BitsResult<SliceCount> {
    let count = ranged(stream, count.get(), 1, MAX_SLICES)?;
    SliceCount::new(count).ok_or(crate::bits::Error::OutOfRange)
}

/// An integer field of a type that Rust prefers for counts.
fn ranged<'a, S: Stream<'a>>(
    stream: &mut S,
    value: usize,
    min: usize,
    max: usize,
) -> BitsResult<usize> {
    let to_wire = |n: usize| i32::try_from(n).map_err(|_| crate::bits::Error::OutOfRange);
    let read = stream.int(to_wire(value)?, to_wire(min)?, to_wire(max)?)?;
    usize::try_from(read).map_err(|_| crate::bits::Error::OutOfRange)
}

//! Frames: the content of a decrypted datagram (STANDARD-1, section 4).

use alloc::vec::Vec;

use super::{Fields, field_u8, field_u16};
use crate::bulk::repair::{RepairSlice, has_repair};
use crate::chunk::{Ack, ChunkId, SLICE_BYTES, Slice, SliceCount, SliceSet};
use crate::fragment::{FRAGMENT_BYTES, Fragment};
use crate::message::MAX_MESSAGE_BYTES;
use crate::transit::{AckFrame, ArrivalsFrame};
use crate::{DropReason, Sequence};

/// The type of an ack with the counts of ECN.
const ACK_WITH_ECN: u8 = 15;

/// Bytes of a slice frame before its data.
pub(crate) const SLICE_FRAME_BYTES: usize = 7;

/// Bytes of a fragment frame before its data.
pub(crate) const FRAGMENT_FRAME_BYTES: usize = 7;

/// Bytes of a packet frame before its data.
pub(crate) const PACKET_FRAME_BYTES: usize = 5;

/// Bytes of a block frame.
pub(crate) const BLOCK_FRAME_BYTES: usize = 53;

/// The longest reason of a close, in bytes: all that its length field can say, so that no reader has to
/// refuse or cut one.
const MAX_REASON_BYTES: usize = 255;

/// The largest packet that is sent without fragments, in bytes.
pub(crate) const MAX_WHOLE_PACKET_BYTES: usize = FRAGMENT_BYTES;

/// Announces a block, whose chunks follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockFrame {
    /// Its number among the blocks of this direction, from 0.
    pub number: u32,
    /// The tag that the application chose for it.
    pub tag: u64,
    /// Its size in bytes.
    pub length: u64,
    /// The BLAKE3 of its bytes.
    pub digest: [u8; 32],
}

/// A frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Frame<'a> {
    /// One byte without effect.
    Padding,
    /// Ack-eliciting, and has no other effect.
    Ping,
    /// Which datagrams were received.
    Ack(AckFrame),
    /// A slice of a chunk.
    Slice(Slice<'a>),
    /// Which slices of a chunk were received.
    ChunkAck(Ack),
    /// A time-critical packet.
    Packet {
        /// Its sequence.
        sequence: Sequence,
        /// Its bytes.
        data: &'a [u8],
    },
    /// A fragment of a packet.
    Fragment(Fragment<'a>),
    /// A message.
    Message {
        /// Its number.
        number: u32,
        /// Its bytes.
        data: &'a [u8],
    },
    /// Messages below this number may be sent.
    MessageLimit(u32),
    /// Asks for a path response with the same bytes.
    PathChallenge([u8; 8]),
    /// Answers a path challenge.
    PathResponse([u8; 8]),
    /// Closes the connection.
    Close {
        /// Why, as a number.
        code: u32,
        /// Why, in words.
        reason: &'a str,
    },
    /// Announces a block.
    Block(BlockFrame),
    /// A repair slice of a chunk.
    Repair(RepairSlice<'a>),
    /// When datagrams arrived.
    Arrivals(ArrivalsFrame),
    /// The token of a reset of this connection.
    ResetToken([u8; 16]),
}

impl<'a> Frame<'a> {
    /// Whether a datagram with this frame is acknowledged.
    #[must_use]
    pub(crate) const fn is_ack_eliciting(&self) -> bool {
        !matches!(
            self,
            Self::Padding
                | Self::Ack(_)
                | Self::ChunkAck(_)
                | Self::PathResponse(_)
                | Self::Close { .. }
                | Self::Arrivals(_)
        )
    }

    /// Appends it.
    pub fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::Padding => out.push(0),
            Self::Ping => out.push(1),
            Self::Ack(ack) => {
                let at = out.len();
                ack.write(out);
                // Among these frames its own type is a slice's.
                if let Some(kind) = out.get_mut(at).filter(|_| ack.ecn().is_some()) {
                    *kind = ACK_WITH_ECN;
                }
            }
            Self::Slice(slice) => {
                out.push(3);
                out.extend_from_slice(&slice.chunk_id().get().to_le_bytes());
                out.extend_from_slice(&[less_one(slice.index().count().get())]);
                out.push(field_u8(slice.index().get()));
                write_long_bytes(slice.data(), out);
            }
            Self::ChunkAck(ack) => {
                out.push(4);
                out.extend_from_slice(&ack.chunk_id.get().to_le_bytes());
                out.push(less_one(ack.received.count().get()));
                write_flags(&ack.received, out);
            }
            Self::Packet { sequence, data } => {
                out.push(5);
                out.extend_from_slice(&sequence.get().to_le_bytes());
                write_long_bytes(data, out);
            }
            Self::Fragment(fragment) => {
                out.push(6);
                out.extend_from_slice(&fragment.sequence().get().to_le_bytes());
                out.push(less_one(fragment.count()));
                out.push(field_u8(fragment.index()));
                write_long_bytes(fragment.data(), out);
            }
            Self::Message { number, data } => {
                out.push(7);
                out.extend_from_slice(&number.to_le_bytes());
                write_long_bytes(data, out);
            }
            Self::MessageLimit(limit) => {
                out.push(8);
                out.extend_from_slice(&limit.to_le_bytes());
            }
            Self::PathChallenge(bytes) => {
                out.push(9);
                out.extend_from_slice(bytes);
            }
            Self::PathResponse(bytes) => {
                out.push(10);
                out.extend_from_slice(bytes);
            }
            Self::Close { code, reason } => {
                out.push(11);
                out.extend_from_slice(&code.to_le_bytes());
                let reason = truncate_reason(reason);
                out.push(field_u8(reason.len()));
                out.extend_from_slice(reason.as_bytes());
            }
            Self::Block(block) => {
                out.push(12);
                out.extend_from_slice(&block.number.to_le_bytes());
                out.extend_from_slice(&block.tag.to_le_bytes());
                out.extend_from_slice(&block.length.to_le_bytes());
                out.extend_from_slice(&block.digest);
            }
            Self::Repair(slice) => {
                out.push(13);
                out.extend_from_slice(&slice.chunk_id.get().to_le_bytes());
                out.extend_from_slice(&[less_one(slice.count.get()), slice.index]);
                out.extend_from_slice(&slice.last_bytes.to_le_bytes());
                out.extend_from_slice(slice.data);
            }
            Self::ResetToken(token) => {
                out.push(23);
                out.extend_from_slice(token);
            }
            Self::Arrivals(arrivals) => {
                out.push(14);
                arrivals.write(out);
            }
        }
    }

    fn read(fields: &mut Fields<'a>) -> Result<Self, DropReason> {
        Ok(match fields.u8()? {
            0 => Self::Padding,
            1 => Self::Ping,
            2 => Self::Ack(AckFrame::read(fields, false)?),
            ACK_WITH_ECN => Self::Ack(AckFrame::read(fields, true)?),
            3 => Self::Slice(read_slice(fields)?),
            4 => Self::ChunkAck(read_chunk_ack(fields)?),
            5 => {
                let sequence = Sequence::new(fields.u16()?);
                let data = at_most(MAX_WHOLE_PACKET_BYTES, fields.long_bytes()?)?;
                Self::Packet { sequence, data }
            }
            6 => Self::Fragment(read_fragment(fields)?),
            7 => {
                let number = fields.u32()?;
                Self::Message { number, data: at_most(MAX_MESSAGE_BYTES, fields.long_bytes()?)? }
            }
            8 => Self::MessageLimit(fields.u32()?),
            9 => Self::PathChallenge(fields.array()?),
            10 => Self::PathResponse(fields.array()?),
            11 => {
                let code = fields.u32()?;
                let count = usize::from(fields.u8()?);
                Self::Close { code, reason: readable(fields.bytes(count)?) }
            }
            12 => Self::Block(BlockFrame {
                number: fields.u32()?,
                tag: fields.u64()?,
                length: fields.u64()?,
                digest: fields.array()?,
            }),
            13 => Self::Repair(read_repair(fields)?),
            23 => Self::ResetToken(fields.array()?),
            14 => Self::Arrivals(ArrivalsFrame::read(fields)?),
            _ => return Err(DropReason::BadType),
        })
    }
}

/// The frames of a plaintext, one after the other. Ends after the first error.
#[derive(Clone, Debug)]
pub struct Frames<'a>(Option<Fields<'a>>);

impl<'a> Frames<'a> {
    /// The frames of this plaintext.
    #[must_use]
    pub const fn of(plaintext: &'a [u8]) -> Self {
        Self(Some(Fields(plaintext)))
    }
}

impl<'a> Iterator for Frames<'a> {
    type Item = Result<Frame<'a>, DropReason>;

    fn next(&mut self) -> Option<Self::Item> {
        let fields = self.0.as_mut().filter(|fields| !fields.0.is_empty())?;
        let frame = Frame::read(fields);
        if frame.is_err() {
            self.0 = None;
        }
        Some(frame)
    }
}

/// Truncates a reason to what a close frame holds, between two characters.
#[must_use]
pub(crate) fn truncate_reason(reason: &str) -> &str {
    let mut end = reason.len().min(MAX_REASON_BYTES);
    while !reason.is_char_boundary(end) {
        end -= 1;
    }
    reason.get(..end).unwrap_or_default()
}

/// A reason as far as it is UTF-8: words that cannot be read are no reason to overhear a close.
fn readable(bytes: &[u8]) -> &str {
    match core::str::from_utf8(bytes) {
        Ok(reason) => reason,
        Err(error) => {
            let valid = bytes.get(..error.valid_up_to()).unwrap_or_default();
            core::str::from_utf8(valid).unwrap_or_default()
        }
    }
}

fn read_slice<'a>(fields: &mut Fields<'a>) -> Result<Slice<'a>, DropReason> {
    let chunk_id = ChunkId::new(fields.u16()?);
    let count = SliceCount::new(usize::from(fields.u8()?) + 1).ok_or(DropReason::OutOfRange)?;
    let index = count.index(fields.u8()?.into()).ok_or(DropReason::SliceIdOutOfRange)?;
    let data = at_most(SLICE_BYTES, fields.long_bytes()?)?;
    Slice::new(chunk_id, index, data).ok_or(DropReason::OutOfRange)
}

fn read_repair<'a>(fields: &mut Fields<'a>) -> Result<RepairSlice<'a>, DropReason> {
    let chunk_id = ChunkId::new(fields.u16()?);
    let count = SliceCount::new(usize::from(fields.u8()?) + 1).filter(|&count| has_repair(count));
    let count = count.ok_or(DropReason::OutOfRange)?;
    let index = fields.u8()?;
    let last_bytes = fields.u16()?;
    if !(1..=SLICE_BYTES).contains(&usize::from(last_bytes)) {
        return Err(DropReason::OutOfRange);
    }
    let data = fields.bytes(SLICE_BYTES)?.first_chunk().ok_or(DropReason::Truncated)?;
    Ok(RepairSlice { chunk_id, count, index, last_bytes, data })
}

fn read_fragment<'a>(fields: &mut Fields<'a>) -> Result<Fragment<'a>, DropReason> {
    let sequence = Sequence::new(fields.u16()?);
    let count = usize::from(fields.u8()?) + 1;
    let index = usize::from(fields.u8()?);
    Ok(Fragment::new(sequence, index, count, fields.long_bytes()?)?)
}

fn read_chunk_ack(fields: &mut Fields<'_>) -> Result<Ack, DropReason> {
    let chunk_id = ChunkId::new(fields.u16()?);
    let count = SliceCount::new(usize::from(fields.u8()?) + 1).ok_or(DropReason::OutOfRange)?;
    let flags = fields.bytes(count.get().div_ceil(8))?;
    let mut received = SliceSet::empty(count);
    for (at, &byte) in flags.iter().enumerate() {
        for bit in (0..8).filter(|bit| byte >> bit & 1 != 0) {
            let index = count.index(at * 8 + bit).ok_or(DropReason::NonzeroPadding)?;
            received.insert(index);
        }
    }
    Ok(Ack { chunk_id, received })
}

fn write_flags(received: &SliceSet, out: &mut Vec<u8>) {
    let start = out.len();
    out.resize(start + received.count().get().div_ceil(8), 0);
    for index in received.iter() {
        if let Some(byte) = out.get_mut(start + index.get() / 8) {
            *byte |= 1 << (index.get() % 8);
        }
    }
}

fn write_long_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(&field_u16(bytes.len()).to_le_bytes());
    out.extend_from_slice(bytes);
}

fn at_most(max: usize, bytes: &[u8]) -> Result<&[u8], DropReason> {
    if bytes.len() <= max { Ok(bytes) } else { Err(DropReason::OutOfRange) }
}

fn less_one(count: usize) -> u8 {
    field_u8(count - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round_trip(frame: Frame<'_>) {
        let mut bytes = Vec::new();
        frame.write(&mut bytes);
        assert_eq!(Frames::of(&bytes).collect::<Vec<_>>(), [Ok(frame)]);
        for cut in 1..bytes.len() {
            assert!(Frames::of(&bytes[..cut]).any(|frame| frame.is_err()), "cut at {cut}");
        }
    }

    #[test]
    fn frames_come_back_and_cut_ones_do_not() {
        let count = SliceCount::new(11).unwrap();
        let mut received = SliceSet::empty(count);
        received.insert(count.index(10).unwrap());
        received.insert(count.index(3).unwrap());
        let chunk_id = ChunkId::new(0xabcd);
        let sequence = Sequence::new(7);
        round_trip(Frame::Ping);
        round_trip(Frame::Slice(Slice::new(chunk_id, count.index(10).unwrap(), &[5; 9]).unwrap()));
        round_trip(Frame::ChunkAck(Ack { chunk_id, received }));
        round_trip(Frame::Packet { sequence, data: b"jump" });
        round_trip(Frame::Fragment(Fragment::new(sequence, 1, 2, b"rest").unwrap()));
        round_trip(Frame::Message { number: 70_000, data: b"hi" });
        round_trip(Frame::MessageLimit(256));
        round_trip(Frame::PathChallenge([1; 8]));
        round_trip(Frame::PathResponse([2; 8]));
        round_trip(Frame::Close { code: 70_000, reason: "gone" });
        let block = BlockFrame { number: 3, tag: 9, length: 1 << 40, digest: [7; 32] };
        round_trip(Frame::Block(block));
        let data = &[9; SLICE_BYTES];
        round_trip(Frame::Repair(RepairSlice { chunk_id, count, index: 255, last_bytes: 1, data }));
        let mut arrivals = ArrivalsFrame::new(77, crate::Instant::from_millis(3));
        assert!(arrivals.push(3, core::time::Duration::from_millis(1)));
        round_trip(Frame::Arrivals(arrivals));
    }

    #[test]
    fn flags_after_the_last_slice_are_refused() {
        let bytes = [4, 0, 0, 10, 0, 0b1000];
        assert_eq!(Frames::of(&bytes).next(), Some(Err(DropReason::NonzeroPadding)));
        assert_eq!(Frames::of(&[99]).next(), Some(Err(DropReason::BadType)));
        let repair = |count: u8, last: u16| {
            let [low, high] = last.to_le_bytes();
            let bytes = [&[13, 0, 0, count, 0, low, high][..], &[0; SLICE_BYTES]].concat();
            Frames::of(&bytes).next().unwrap().err()
        };
        assert_eq!(repair(1, 1), None);
        assert_eq!(repair(0, 1), Some(DropReason::OutOfRange), "one slice has no repair");
        assert_eq!(repair(1, 0), Some(DropReason::OutOfRange));
        assert_eq!(repair(1, 1025), Some(DropReason::OutOfRange));
    }

    #[test]
    fn a_long_reason_is_cut_between_characters() {
        let reason = "é".repeat(150);
        assert_eq!(truncate_reason(&reason).len(), 254);
        assert_eq!(truncate_reason(&"x".repeat(256)).len(), 255);
    }

    /// A length field of one byte can say 255: a reader that took fewer closed with `protocol` instead.
    #[test]
    fn a_reason_of_any_length_is_read_as_far_as_it_is_text() {
        for length in [0, 1, 200, 201, 255] {
            let reason = "x".repeat(length);
            round_trip(Frame::Close { code: 300, reason: &reason });
        }
        let read = |reason: &[u8]| {
            let mut bytes = Vec::new();
            Frame::Close { code: 300, reason: "" }.write(&mut bytes);
            *bytes.last_mut().unwrap() = field_u8(reason.len());
            bytes.extend_from_slice(reason);
            let Some(Ok(Frame::Close { code: 300, reason })) = Frames::of(&bytes).next() else {
                panic!("no close")
            };
            alloc::string::String::from(reason)
        };
        assert_eq!(read(b"cut in an \xc3"), "cut in an ");
        assert_eq!(read(b"\xff"), "");
    }
}

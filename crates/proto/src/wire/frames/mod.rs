//! Frames: the content of a decrypted datagram (STANDARD-1, section 4).
//!
//! Reading makes values without illegal content, but what a frame means for the state of a connection is
//! checked where that state is. The frames of blocks are in `block`, those of messages in `message`.

mod block;
mod message;
#[cfg(test)]
mod tests;

use alloc::vec::Vec;
use core::time::Duration;

pub use block::{
    BlockFrame, ChunksHereFrame, HashesFrame, MAX_PROGRESS_BLOCKS, MAX_PROGRESS_MAP_BYTES,
    ProgressEntry, ProgressFrame, SliceFrame, SliceKind, SlicesHereFrame,
};
pub(crate) use message::MAX_MESSAGE_BYTES;
pub use message::{ChannelLimitFrame, MessageFrame, MessagePart};

use super::{Fields, field_u8, field_u16};
use crate::fields::put_varint;
use crate::fragment::{FRAGMENT_BYTES, Fragment};
use crate::transit::{AckFrame, ArrivalsFrame};
use crate::{DropReason, Sequence};

/// The longest reason of a close, in bytes: its length has one byte.
const MAX_REASON_BYTES: usize = 255;

/// Bytes of a fragment frame before its data.
pub(crate) const FRAGMENT_FRAME_BYTES: usize = 7;

/// Bytes of a packet frame before its data.
pub(crate) const PACKET_FRAME_BYTES: usize = 5;

/// The largest packet that is sent without fragments, in bytes.
pub(crate) const MAX_WHOLE_PACKET_BYTES: usize = FRAGMENT_BYTES;

/// The range of an ack frequency, in datagrams.
const ACK_DATAGRAMS: core::ops::RangeInclusive<u64> = 1..=64;

/// The range of an ack frequency, in microseconds.
const ACK_MICROS: core::ops::RangeInclusive<u64> = 1_000..=1_000_000;

/// Types from here to [`LAST_IGNORABLE`] have a length, and are ignored if they are unknown.
const FIRST_IGNORABLE: u8 = 64;

/// The last such type.
const LAST_IGNORABLE: u8 = 127;

/// The types that are sent so that nobody comes to depend on their absence (H-1.3).
pub(crate) const GREASE_TYPES: core::ops::RangeInclusive<u8> = 96..=127;

/// A frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Frame<'a> {
    /// One byte without effect.
    Padding,
    /// Ack-eliciting, and has no other effect.
    Ping,
    /// Which datagrams were received.
    Ack(AckFrame),
    /// When datagrams arrived.
    Arrivals(ArrivalsFrame),
    /// The whole state of a receiver of blocks.
    Progress(ProgressFrame<'a>),
    /// A slice or repair slice of a chunk: always the last frame of its datagram.
    Slice(SliceFrame<'a>),
    /// Which source slices of a chunk were received.
    SlicesHere(SlicesHereFrame<'a>),
    /// Announces a block.
    Block(BlockFrame),
    /// A page of a block's tree.
    Hashes(HashesFrame<'a>),
    /// Chunks of a block that its receiver has already.
    ChunksHere(ChunksHereFrame<'a>),
    /// The sender gives a block up.
    Cancel {
        /// The block.
        block: u32,
        /// Why, as a number of the application; 0 for no reason.
        code: u32,
        /// Chunks of it that were opened.
        opened: u32,
    },
    /// The receiver does not want a block.
    Decline {
        /// The block.
        block: u32,
        /// Why, as a number of the application; 0 for no reason.
        code: u32,
    },
    /// The receiver has the block with this BLAKE3 root.
    RootHere([u8; 32]),
    /// A time-critical packet.
    Packet {
        /// Its sequence.
        sequence: Sequence,
        /// Its bytes.
        data: &'a [u8],
    },
    /// A fragment of a packet.
    Fragment(Fragment<'a>),
    /// A message, or a part of one.
    Message(MessageFrame<'a>),
    /// What may be sent on a channel.
    ChannelLimit(ChannelLimitFrame),
    /// How often the sender wants acks.
    AckFrequency {
        /// At the latest after this many datagrams: 1 to 64.
        datagrams: u8,
        /// And after this time: 1 ms to 1 s, in whole microseconds.
        delay: Duration,
    },
    /// Asks for a path response with the same bytes.
    PathChallenge([u8; 8]),
    /// Answers a path challenge.
    PathResponse([u8; 8]),
    /// The token of a reset of this connection: lent, for a copy would stay on the stack, and get from there
    /// between the fields of values that are moved to the heap.
    ResetToken(&'a [u8; 16]),
    /// Closes the connection.
    Close {
        /// Why, as a number.
        code: u32,
        /// Why, in words.
        reason: &'a str,
    },
    /// A frame that this version does not know and ignores.
    Ignored {
        /// Its type: 64 to 127.
        kind: u8,
        /// Its content.
        body: &'a [u8],
    },
}

impl<'a> Frame<'a> {
    /// Whether a datagram with this frame is acknowledged.
    #[must_use]
    pub const fn is_ack_eliciting(&self) -> bool {
        match self {
            Self::Padding
            | Self::Ack(_)
            | Self::Arrivals(_)
            | Self::Progress(_)
            | Self::SlicesHere(_)
            | Self::PathResponse(_)
            | Self::Close { .. } => false,
            Self::Ignored { kind, .. } => *kind % 2 == 1,
            _ => true,
        }
    }

    /// Whether a datagram may have only one frame of this sort (H-4b): all that bound work hangs on.
    #[must_use]
    pub(crate) const fn once(&self) -> Option<Once> {
        Some(match self {
            Self::Ack(_) => Once::Ack,
            Self::Arrivals(_) => Once::Arrivals,
            Self::Progress(_) => Once::Progress,
            Self::SlicesHere(_) => Once::SlicesHere,
            Self::ChunksHere(_) => Once::ChunksHere,
            _ => return None,
        })
    }

    /// Appends it.
    pub fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::Padding => out.push(0),
            Self::Ping => out.push(1),
            Self::Ack(ack) => ack.write(out),
            Self::Arrivals(arrivals) => {
                out.push(4);
                arrivals.write(out);
            }
            Self::Progress(progress) => progress.write(out),
            Self::Slice(slice) => slice.write(out),
            Self::SlicesHere(frame) => frame.write(out),
            Self::Block(block) => block.write(out),
            Self::Hashes(hashes) => hashes.write(out),
            Self::ChunksHere(frame) => frame.write(out),
            Self::Cancel { block, code, opened } => {
                put_block_and_code(13, *block, *code, out);
                put_varint(u64::from(*opened), out);
            }
            Self::Decline { block, code } => put_block_and_code(14, *block, *code, out),
            Self::RootHere(root) => {
                out.push(15);
                out.extend_from_slice(root);
            }
            Self::Packet { sequence, data } => {
                out.push(16);
                out.extend_from_slice(&sequence.get().to_le_bytes());
                put_long_bytes(data, out);
            }
            Self::Fragment(fragment) => {
                out.push(17);
                out.extend_from_slice(&fragment.sequence().get().to_le_bytes());
                out.push(field_u8(fragment.count() - 1));
                out.push(field_u8(fragment.index()));
                put_long_bytes(fragment.data(), out);
            }
            Self::Message(message) => message.write(out),
            Self::ChannelLimit(limit) => limit.write(out),
            Self::AckFrequency { datagrams, delay } => {
                out.push(20);
                put_varint(u64::from(*datagrams), out);
                put_varint(u64::try_from(delay.as_micros()).unwrap_or(u64::MAX), out);
            }
            Self::PathChallenge(bytes) => {
                out.push(21);
                out.extend_from_slice(bytes);
            }
            Self::PathResponse(bytes) => {
                out.push(22);
                out.extend_from_slice(bytes);
            }
            Self::ResetToken(token) => {
                out.push(23);
                out.extend_from_slice(*token);
            }
            Self::Close { code, reason } => {
                out.push(24);
                put_varint(u64::from(*code), out);
                let reason = truncate_reason(reason);
                out.push(field_u8(reason.len()));
                out.extend_from_slice(reason.as_bytes());
            }
            Self::Ignored { kind, body } => {
                out.push(*kind);
                put_varint(body.len() as u64, out);
                out.extend_from_slice(body);
            }
        }
    }

    fn read(fields: &mut Fields<'a>) -> Result<Self, DropReason> {
        Ok(match fields.u8()? {
            0 => Self::Padding,
            1 => Self::Ping,
            kind @ (2 | 3) => Self::Ack(AckFrame::read(fields, kind == 3)?),
            4 => Self::Arrivals(ArrivalsFrame::read(fields)?),
            5 => Self::Progress(ProgressFrame::read(fields)?),
            kind @ 6..=8 => Self::Slice(SliceFrame::read(kind, fields)?),
            9 => Self::SlicesHere(SlicesHereFrame::read(fields)?),
            10 => Self::Block(BlockFrame::read(fields)?),
            11 => Self::Hashes(HashesFrame::read(fields)?),
            12 => Self::ChunksHere(ChunksHereFrame::read(fields)?),
            13 => {
                let (block, code) = (number_u32(fields)?, number_u32(fields)?);
                Self::Cancel { block, code, opened: number_u32(fields)? }
            }
            14 => Self::Decline { block: number_u32(fields)?, code: number_u32(fields)? },
            15 => Self::RootHere(fields.array()?),
            16 => {
                let sequence = Sequence::new(fields.u16()?);
                let data = at_most(MAX_WHOLE_PACKET_BYTES, fields.long_bytes()?)?;
                Self::Packet { sequence, data }
            }
            17 => Self::Fragment(read_fragment(fields)?),
            18 => Self::Message(MessageFrame::read(fields)?),
            19 => Self::ChannelLimit(ChannelLimitFrame::read(fields)?),
            20 => read_ack_frequency(fields)?,
            21 => Self::PathChallenge(fields.array()?),
            22 => Self::PathResponse(fields.array()?),
            23 => Self::ResetToken(fields.array_ref()?),
            24 => {
                let code = number_u32(fields)?;
                let count = usize::from(fields.u8()?);
                let reason = readable(fields.bytes(count)?);
                Self::Close { code, reason }
            }
            kind @ FIRST_IGNORABLE..=LAST_IGNORABLE => {
                let count = usize::try_from(fields.varint()?).unwrap_or(usize::MAX);
                Self::Ignored { kind, body: fields.bytes(count)? }
            }
            _ => return Err(DropReason::BadType),
        })
    }
}

/// What a datagram may contain once (H-4b).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Once {
    Ack = 1,
    Arrivals = 2,
    Progress = 4,
    SlicesHere = 8,
    ChunksHere = 16,
}

/// The frames of a plaintext, one after the other. Ends after the first error.
#[derive(Clone, Debug)]
pub struct Frames<'a> {
    /// The rest; `None` after an error.
    fields: Option<Fields<'a>>,
    /// The sum of the [`Once`] frames that were read.
    seen: u8,
}

impl<'a> Frames<'a> {
    /// The frames of this plaintext.
    #[must_use]
    pub const fn of(plaintext: &'a [u8]) -> Self {
        Self { fields: Some(Fields(plaintext)), seen: 0 }
    }

    /// The slice of a plaintext that begins with one, and so has nothing else: most slices are sent this way.
    pub(crate) fn slice_alone(plaintext: &'a [u8]) -> Option<Result<SliceFrame<'a>, DropReason>> {
        let (&kind, rest) = plaintext.split_first()?;
        matches!(kind, 6..=8).then(|| SliceFrame::read(kind, &mut Fields(rest)))
    }
}

impl<'a> Iterator for Frames<'a> {
    type Item = Result<Frame<'a>, DropReason>;

    fn next(&mut self) -> Option<Self::Item> {
        let fields = self.fields.as_mut().filter(|fields| !fields.0.is_empty())?;
        let mut frame = Frame::read(fields);
        if let Some(once) = frame.as_ref().ok().and_then(Frame::once) {
            if self.seen & once as u8 != 0 {
                frame = Err(DropReason::RepeatedFrame);
            }
            self.seen |= once as u8;
        }
        if frame.is_err() {
            self.fields = None;
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

fn read_ack_frequency<'a>(fields: &mut Fields<'a>) -> Result<Frame<'a>, DropReason> {
    let (datagrams, micros) = (fields.varint()?, fields.varint()?);
    if !ACK_DATAGRAMS.contains(&datagrams) || !ACK_MICROS.contains(&micros) {
        return Err(DropReason::OutOfRange);
    }
    let datagrams = u8::try_from(datagrams).map_err(|_| DropReason::OutOfRange)?;
    Ok(Frame::AckFrequency { datagrams, delay: Duration::from_micros(micros) })
}

fn read_fragment<'a>(fields: &mut Fields<'a>) -> Result<Fragment<'a>, DropReason> {
    let sequence = Sequence::new(fields.u16()?);
    let count = usize::from(fields.u8()?) + 1;
    let index = usize::from(fields.u8()?);
    if count == 1 {
        return Err(DropReason::OutOfRange);
    }
    Ok(Fragment::new(sequence, index, count, fields.long_bytes()?)?)
}

/// A varint that counts blocks or chunks.
fn number_u32(fields: &mut Fields<'_>) -> Result<u32, DropReason> {
    u32::try_from(fields.varint()?).map_err(|_| DropReason::OutOfRange)
}

fn put_block_and_code(kind: u8, block: u32, code: u32, out: &mut Vec<u8>) {
    out.push(kind);
    put_varint(u64::from(block), out);
    put_varint(u64::from(code), out);
}

fn put_long_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(&field_u16(bytes.len()).to_le_bytes());
    out.extend_from_slice(bytes);
}

fn at_most(max: usize, bytes: &[u8]) -> Result<&[u8], DropReason> {
    if bytes.len() <= max { Ok(bytes) } else { Err(DropReason::OutOfRange) }
}

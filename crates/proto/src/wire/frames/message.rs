//! The frames of messages (STANDARD-1, 4.4).

use alloc::vec::Vec;

use crate::DropReason;
use crate::fields::{Fields, put_varint, varint_len};

/// The largest message, in bytes. Above it, a block is the right thing.
pub(crate) const MAX_MESSAGE_BYTES: u32 = 65_536;

/// The flag of a message that may be delivered before those with lower numbers.
const UNORDERED: u8 = 1;

/// The flag of a part of a message.
const PART: u8 = 2;

/// Where a part is in its message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessagePart {
    /// The length of the whole message, in bytes.
    pub whole: u32,
    /// Where the part begins.
    pub offset: u32,
}

/// A message, or a part of one.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct MessageFrame<'a> {
    /// Its channel.
    pub channel: u8,
    /// It may be delivered before messages with lower numbers.
    pub is_unordered: bool,
    /// Its number on its channel, from 0.
    pub number: u64,
    /// Where this part is; `None` if it is the whole.
    pub part: Option<MessagePart>,
    /// The bytes.
    pub data: &'a [u8],
}

crate::debug_as! {
    MessageFrame['_]: |message| channel = message.channel, number = message.number, part = message.part,
        bytes = message.data.len()
}

impl<'a> MessageFrame<'a> {
    /// Bytes of the frame before its data.
    pub(crate) fn head_bytes(number: u64, part: Option<MessagePart>, data: usize) -> usize {
        let part = part.map_or(0, |part| {
            varint_len(u64::from(part.whole)) + varint_len(u64::from(part.offset))
        });
        3 + varint_len(number) + part + varint_len(data as u64)
    }

    pub(super) fn write(&self, out: &mut Vec<u8>) {
        let flags = if self.is_unordered { UNORDERED } else { 0 } | self.part.map_or(0, |_| PART);
        out.extend_from_slice(&[18, flags, self.channel]);
        put_varint(self.number, out);
        if let Some(part) = self.part {
            put_varint(u64::from(part.whole), out);
            put_varint(u64::from(part.offset), out);
        }
        put_varint(self.data.len() as u64, out);
        out.extend_from_slice(self.data);
    }

    pub(super) fn read(fields: &mut Fields<'a>) -> Result<Self, DropReason> {
        let flags = fields.u8()?;
        let (channel, number) = (fields.u8()?, fields.varint()?);
        if flags & !(UNORDERED | PART) != 0 {
            return Err(DropReason::OutOfRange);
        }
        let part = match flags & PART {
            0 => None,
            _ => Some(MessagePart { whole: length(fields)?, offset: length(fields)? }),
        };
        let count = length(fields)?;
        if let Some(part) = part
            && (count == 0 || part.offset > part.whole || count > part.whole - part.offset)
        {
            return Err(DropReason::OutOfRange);
        }
        let data = fields.bytes(count as usize)?;
        Ok(Self { channel, is_unordered: flags & UNORDERED != 0, number, part, data })
    }
}

/// What may be sent on a channel, in all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChannelLimitFrame {
    /// The channel.
    pub channel: u8,
    /// Messages with lower numbers may be sent.
    pub messages: u64,
    /// Bytes of messages that may be sent.
    pub bytes: u64,
}

impl ChannelLimitFrame {
    pub(super) fn write(self, out: &mut Vec<u8>) {
        out.extend_from_slice(&[19, self.channel]);
        put_varint(self.messages, out);
        put_varint(self.bytes, out);
    }

    pub(super) fn read(fields: &mut Fields<'_>) -> Result<Self, DropReason> {
        Ok(Self { channel: fields.u8()?, messages: fields.varint()?, bytes: fields.varint()? })
    }
}

/// A number of bytes of a message.
fn length(fields: &mut Fields<'_>) -> Result<u32, DropReason> {
    let length = u32::try_from(fields.varint()?).map_err(|_| DropReason::OutOfRange)?;
    if length > MAX_MESSAGE_BYTES { Err(DropReason::OutOfRange) } else { Ok(length) }
}

//! The parameters of a hello and a welcome: what each end tells the other of itself (STANDARD-1, 3.4).
//!
//! The invariant: unknown parameters are ignored, and no parameter is read twice, so that what is added later
//! harms nobody who does not know it.

use alloc::vec::Vec;
use core::time::Duration;

use super::MAX_DATAGRAM_BYTES;
use super::frames::{Frame, GREASE_TYPES};
use crate::DropReason;
use crate::fields::{Fields, put_varint, varint_len};

/// The largest datagram of UDP over IPv4, in bytes.
pub(crate) const LARGEST_DATAGRAM_BYTES: usize = 65_507;

/// Parameters that a list may have: more than all that are assigned, and few enough to compare them all.
const MAX_PARAMETERS: usize = 64;

/// The ids.
pub(super) mod id {
    pub(crate) const VERSIONS: u64 = 0;
    pub(crate) const SUITES: u64 = 1;
    pub(crate) const IDLE_TIMEOUT: u64 = 2;
    pub(crate) const LARGEST_BLOCK: u64 = 3;
    pub(crate) const LARGEST_DATAGRAM: u64 = 4;
    pub(crate) const MAX_ACK_DELAY: u64 = 5;
    pub(crate) const CREDIT: u64 = 6;
    pub(crate) const RECEIVE_BUFFER: u64 = 7;
    pub(crate) const CHANNELS: u64 = 8;
    pub(crate) const CHANNEL_BYTES: u64 = 9;
    pub(crate) const REPAIR_CODES: u64 = 10;
    pub(crate) const ROOTS_HERE: u64 = 11;
    pub(crate) const REQUEST: u64 = 12;
    pub(crate) const SERVER_ID: u64 = 13;
    pub(crate) const SERVER_VERSIONS: u64 = 14;
    pub(crate) const ANNOUNCED_BLOCKS: u64 = 15;
    /// Those of this form are sent so that nobody comes to depend on their absence (H-1.3).
    pub(crate) const GREASE: (u64, u64) = (27, 31);
}

/// The repair code of this version, as a bit: Reed-Solomon (STANDARD-1, 4.2.4).
pub const REED_SOLOMON: u64 = 1;

/// What both ends say about themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndParameters {
    /// The idle timeout it proposes, in whole milliseconds.
    pub idle_timeout: Duration,
    /// The largest block it accepts, in bytes; 0 for none.
    pub max_block_bytes: u64,
    /// The largest datagram it can receive, in bytes: 1200 to 65,507.
    pub max_datagram_bytes: u16,
    /// By how much it may delay an ack, in whole milliseconds: at most 1 s.
    pub max_ack_delay: Duration,
    /// Chunks that may be opened before its first progress frame.
    pub credit: u64,
    /// Bytes that wait for its program before its system drops; 0 if it does not know.
    pub receive_buffer_bytes: u64,
    /// Channels of messages that it accepts: 1 to 256.
    pub channels: u16,
    /// Bytes that each channel may hold unread: at least 131,072, two messages of the largest size.
    pub channel_bytes: u64,
    /// The repair codes it uses, as bits.
    pub repair_codes: u64,
    /// Blocks that may be announced to it and not finished: 32 to 255.
    pub announced_blocks: u8,
}

impl Default for EndParameters {
    /// What holds for an end that says nothing.
    fn default() -> Self {
        Self {
            idle_timeout: Duration::from_secs(15),
            max_block_bytes: 0,
            max_datagram_bytes: 1200,
            max_ack_delay: Duration::from_millis(20),
            credit: 32,
            receive_buffer_bytes: 0,
            channels: 1,
            channel_bytes: 131_072,
            repair_codes: 0,
            announced_blocks: 32,
        }
    }
}

impl EndParameters {
    /// Appends those that are not what holds without them.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        let (ours, usual) = (self.numbers(), Self::default().numbers());
        for ((id, number), (_, default)) in ours.into_iter().zip(usual) {
            if number != default {
                put_number(id, number, out);
            }
        }
    }

    fn numbers(&self) -> [(u64, u64); 10] {
        [
            (id::IDLE_TIMEOUT, millis(self.idle_timeout)),
            (id::LARGEST_BLOCK, self.max_block_bytes),
            (id::LARGEST_DATAGRAM, self.max_datagram_bytes.into()),
            (id::MAX_ACK_DELAY, millis(self.max_ack_delay)),
            (id::CREDIT, self.credit),
            (id::RECEIVE_BUFFER, self.receive_buffer_bytes),
            (id::CHANNELS, self.channels.into()),
            (id::CHANNEL_BYTES, self.channel_bytes),
            (id::REPAIR_CODES, self.repair_codes),
            (id::ANNOUNCED_BLOCKS, self.announced_blocks.into()),
        ]
    }

    /// Takes a parameter if it is one of these. Returns whether it is.
    pub(super) fn read(&mut self, parameter: &Parameter<'_>) -> Result<bool, DropReason> {
        match parameter.id {
            id::IDLE_TIMEOUT => self.idle_timeout = Duration::from_millis(parameter.number()?),
            id::LARGEST_BLOCK => self.max_block_bytes = parameter.number()?,
            id::LARGEST_DATAGRAM => {
                let range = MAX_DATAGRAM_BYTES as u64..=LARGEST_DATAGRAM_BYTES as u64;
                self.max_datagram_bytes = parameter.number_in(range)?;
            }
            id::MAX_ACK_DELAY => {
                let millis: u16 = parameter.number_in(0..=1000)?;
                self.max_ack_delay = Duration::from_millis(millis.into());
            }
            id::CREDIT => self.credit = parameter.number()?,
            id::RECEIVE_BUFFER => self.receive_buffer_bytes = parameter.number()?,
            id::CHANNELS => self.channels = parameter.number_in(1..=256)?,
            id::CHANNEL_BYTES => {
                self.channel_bytes = parameter.number_in(131_072..=u64::MAX)?;
            }
            id::REPAIR_CODES => self.repair_codes = parameter.number()?,
            id::ANNOUNCED_BLOCKS => self.announced_blocks = parameter.number_in(32..=255)?,
            _ => return Ok(false),
        }
        Ok(true)
    }
}

/// A parameter as it is on the wire.
#[derive(Clone, Copy, Debug)]
pub(super) struct Parameter<'a> {
    pub(super) id: u64,
    pub(super) value: &'a [u8],
}

impl Parameter<'_> {
    /// Its value, one varint and nothing else.
    pub(super) fn number(&self) -> Result<u64, DropReason> {
        let mut fields = Fields(self.value);
        let number = fields.varint()?;
        fields.end()?;
        Ok(number)
    }

    fn number_in<T: TryFrom<u64>>(
        &self,
        range: core::ops::RangeInclusive<u64>,
    ) -> Result<T, DropReason> {
        let number = Some(self.number()?).filter(|number| range.contains(number));
        number.and_then(|number| T::try_from(number).ok()).ok_or(DropReason::OutOfRange)
    }
}

/// Calls `each` for every parameter of a list.
///
/// # Errors
/// What `each` says; [`DropReason::Truncated`]; [`DropReason::RepeatedFrame`] for one that comes twice;
/// [`DropReason::OutOfRange`] for more than 64.
pub(super) fn read<'a>(
    bytes: &'a [u8],
    mut each: impl FnMut(Parameter<'a>) -> Result<(), DropReason>,
) -> Result<(), DropReason> {
    let mut fields = Fields(bytes);
    let mut seen = [0_u64; MAX_PARAMETERS];
    for count in 0..=MAX_PARAMETERS {
        if fields.0.is_empty() {
            return Ok(());
        }
        let id = fields.varint()?;
        let length = usize::try_from(fields.varint()?).unwrap_or(usize::MAX);
        let value = fields.bytes(length)?;
        if seen.get(..count).is_some_and(|seen| seen.contains(&id)) {
            return Err(DropReason::RepeatedFrame);
        }
        *seen.get_mut(count).ok_or(DropReason::OutOfRange)? = id;
        each(Parameter { id, value })?;
    }
    Err(DropReason::OutOfRange)
}

/// Appends a parameter.
pub(super) fn put(id: u64, value: &[u8], out: &mut Vec<u8>) {
    put_varint(id, out);
    put_varint(value.len() as u64, out);
    out.extend_from_slice(value);
}

/// Appends a parameter whose value is a number.
pub(super) fn put_number(id: u64, number: u64, out: &mut Vec<u8>) {
    put_varint(id, out);
    put_varint(varint_len(number) as u64, out);
    put_varint(number, out);
}

/// A parameter without meaning (H-1.3), made of random bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Grease(pub(crate) [u8; 10]);

impl Grease {
    /// Appends it.
    pub(super) fn write(self, out: &mut Vec<u8>) {
        let [which, length, value @ ..] = self.0;
        let (first, step) = id::GREASE;
        let value = value.get(..usize::from(length % 9)).unwrap_or_default();
        put(first + step * u64::from(which % 8), value, out);
    }

    /// A frame without meaning.
    pub(crate) fn frame(&self) -> Frame<'_> {
        let [which, length, body @ ..] = &self.0;
        let body = body.get(..usize::from(length % 9)).unwrap_or_default();
        Frame::Ignored { kind: GREASE_TYPES.start() + which % 32, body }
    }

    /// A version without meaning, of the form `0x?a?a?a?a`.
    pub(crate) const fn version(self) -> u32 {
        let [a, b, c, d, ..] = self.0;
        u32::from_be_bytes([a, b, c, d]) & 0xf0f0_f0f0 | 0x0a0a_0a0a
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn end(bytes: &[u8]) -> Result<EndParameters, DropReason> {
        let mut end = EndParameters::default();
        read(bytes, |parameter| end.read(&parameter).map(drop)).map(|()| end)
    }

    #[test]
    fn what_is_said_comes_back_and_what_is_usual_is_not_said() {
        let mut bytes = Vec::new();
        EndParameters::default().write(&mut bytes);
        assert!(bytes.is_empty());
        let all = EndParameters {
            idle_timeout: Duration::from_millis(70_000),
            max_block_bytes: 1 << 40,
            max_datagram_bytes: 9000,
            max_ack_delay: Duration::from_millis(5),
            credit: 1024,
            receive_buffer_bytes: 1 << 22,
            channels: 256,
            channel_bytes: 1 << 20,
            repair_codes: REED_SOLOMON,
            announced_blocks: 255,
        };
        all.write(&mut bytes);
        let said = bytes.len();
        Grease([7; 10]).write(&mut bytes);
        assert_eq!(end(&bytes), Ok(all));
        for cut in 1..said {
            assert_ne!(end(&bytes[..cut]), Ok(all), "cut at {cut}");
        }
    }

    #[test]
    fn what_is_out_of_range_or_said_twice_is_refused() {
        let out_of_range = Err(DropReason::OutOfRange);
        assert_eq!(end(&[4, 2, 0x44, 0xaf]), out_of_range, "1199");
        assert_eq!(end(&[8, 1, 0]), out_of_range, "no channel");
        assert_eq!(end(&[8, 2, 0x41, 1]), out_of_range, "257 channels");
        assert_eq!(end(&[5, 2, 0x43, 0xe9]), out_of_range, "1001 ms");
        assert_eq!(end(&[9, 1, 1]), out_of_range);
        assert_eq!(end(&[15, 1, 31]), out_of_range, "31 blocks");
        assert_eq!(end(&[15, 2, 0x41, 0]), out_of_range, "256 blocks");
        assert_eq!(end(&[3, 2, 1, 1]), Err(DropReason::TrailingBytes));
        assert_eq!(end(&[3, 0]), Err(DropReason::Truncated));
        assert_eq!(end(&[3, 1, 1, 3, 1, 1]), Err(DropReason::RepeatedFrame));
        let many: Vec<u8> = (0..65).flat_map(|n| [0x40, n + 64, 0]).collect();
        assert_eq!(end(&many), out_of_range);
        assert!(end(&many[3..]).is_ok(), "64 unknown ones");
    }

    #[test]
    fn grease_has_the_reserved_forms() {
        for seed in 0..=255 {
            let grease = Grease([seed; 10]);
            assert_eq!(grease.version() & 0x0f0f_0f0f, 0x0a0a_0a0a);
            let mut bytes = Vec::new();
            grease.write(&mut bytes);
            assert_eq!(end(&bytes), Ok(EndParameters::default()));
            assert_eq!((Fields(&bytes).varint().unwrap() - 27) % 31, 0);
        }
    }
}

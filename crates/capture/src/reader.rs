//! Packets of a file, one after the other, in the memory of one packet.

use std::io::{self, Cursor, Read};

use pcap_parser::traits::{PcapNGPacketBlock as _, PcapReaderIterator};
use pcap_parser::{Block, PcapBlockOwned, PcapError};

/// The longest block of a file that is read, in bytes. A packet has at most 256 KiB in the captures of every
/// common program; this leaves room for what pcapng puts beside it.
const MAX_BLOCK_BYTES: usize = 16 << 20;

/// Bytes of the buffer at first: more than an Ethernet packet, even of jumbo size, has.
const BUFFER_BYTES: usize = 64 << 10;

/// The maximum number of interfaces in a section of pcapng. Ordinary captures have a handful.
const MAX_INTERFACES: usize = 4096;

/// A link type of an old pcap file that has none.
const NO_LINK: i32 = -1;

/// A packet as it was captured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet<'a> {
    /// When, in nanoseconds since 1970. Of a packet without a time it is 0.
    pub at_ns: u64,
    /// The link type, as <https://www.tcpdump.org/linktypes.html> numbers them.
    pub link: i32,
    /// Its bytes from the link's header on, as many as were captured.
    pub bytes: &'a [u8],
}

/// Why a capture cannot be read, or not further.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CaptureError {
    /// It begins with neither format's header.
    #[error("this is no capture: it begins neither as pcap nor as pcapng")]
    NoCapture,
    /// It ends within a block.
    #[error("the capture ends in the middle of a packet; what was before it is read")]
    Truncated,
    /// A block has more than 16 MiB.
    #[error("the capture has a block of more than 16 MiB, or it is damaged")]
    TooLong,
    /// A block contradicts itself.
    #[error("the capture is damaged: a block is malformed")]
    Malformed,
    /// A packet of an interface that was not described, or more than 4096 of them.
    #[error("the capture is damaged: a packet is of no known interface")]
    NoInterface,
    /// It could not be read.
    #[error("{0}")]
    Io(#[from] io::Error),
}

/// What is known of an interface of pcapng.
#[derive(Clone, Copy)]
struct Interface {
    link: i32,
    /// Units of its times in a second.
    per_second: u64,
    /// Seconds that are added to its times.
    offset: i64,
}

/// Reads a capture of either format.
pub struct CaptureReader<'r> {
    blocks: Box<dyn PcapReaderIterator + 'r>,
    capacity: usize,
    interfaces: Vec<Interface>,
    /// Of a pcap: whether its times are in nanoseconds.
    is_nano: bool,
    /// Bytes of the last block, which the next call leaves behind.
    read: usize,
}

impl<'r> CaptureReader<'r> {
    /// Reads the beginning of a capture.
    ///
    /// # Errors
    /// [`CaptureError::NoCapture`], [`CaptureError::Io`].
    pub fn new(mut from: impl Read + Send + 'r) -> Result<Self, CaptureError> {
        let start = start(&mut from)?;
        let capacity = BUFFER_BYTES.max(2 * start.len());
        // The parsers want the first header in their first read, which a pipe need not give them.
        let blocks = pcap_parser::create_reader(capacity, Cursor::new(start).chain(from));
        Ok(Self {
            blocks: blocks.map_err(|_| CaptureError::NoCapture)?,
            capacity,
            interfaces: Vec::new(),
            is_nano: false,
            read: 0,
        })
    }

    /// The next packet; `None` at the end.
    ///
    /// # Errors
    /// [`CaptureError`]; what comes after one that is not readable is lost.
    pub fn next_packet(&mut self) -> Result<Option<Packet<'_>>, CaptureError> {
        loop {
            self.blocks.consume(std::mem::take(&mut self.read));
            if !self.fill()? {
                return Ok(None);
            }
            // A second look at the same block, because the borrow of the first look has ended.
            let Ok((length, block)) = self.blocks.next() else {
                return Err(CaptureError::Malformed);
            };
            self.read = length;
            match block {
                PcapBlockOwned::LegacyHeader(header) => {
                    self.is_nano = header.is_nanosecond_precision();
                    let link = Interface { link: header.network.0, per_second: 0, offset: 0 };
                    self.interfaces = vec![link];
                }
                PcapBlockOwned::NG(Block::SectionHeader(_)) => self.interfaces.clear(),
                PcapBlockOwned::NG(Block::InterfaceDescription(described)) => {
                    if self.interfaces.len() == MAX_INTERFACES {
                        return Err(CaptureError::NoInterface);
                    }
                    self.interfaces.push(Interface {
                        link: described.linktype.0,
                        per_second: per_second(described.if_tsresol),
                        offset: described.if_tsoffset,
                    });
                }
                _ => {
                    if is_packet(&block) {
                        break;
                    }
                }
            }
        }
        self.packet().map(Some)
    }

    /// Reads on until there is a whole block; `false` at the end of the file.
    fn fill(&mut self) -> Result<bool, CaptureError> {
        loop {
            let too_small = match self.blocks.next() {
                Ok(_) => return Ok(true),
                Err(PcapError::Eof) => return Ok(false),
                Err(PcapError::Incomplete(_)) => false,
                Err(PcapError::BufferTooSmall) => true,
                Err(PcapError::UnexpectedEof) => return Err(CaptureError::Truncated),
                Err(_) => return Err(CaptureError::Malformed),
            };
            let is_full = self.blocks.data().len() == self.capacity;
            if too_small || is_full {
                self.capacity *= 2;
                if self.capacity > MAX_BLOCK_BYTES || !self.blocks.grow(self.capacity) {
                    return Err(CaptureError::TooLong);
                }
            }
            let refilled = self.blocks.refill();
            refilled.map_err(|_| CaptureError::Io(io::Error::other("reading it failed")))?;
        }
    }

    /// The packet in the block that `next` finds.
    fn packet(&mut self) -> Result<Packet<'_>, CaptureError> {
        let (is_nano, interfaces) = (self.is_nano, &self.interfaces);
        let interface = |index: u32| {
            let found = usize::try_from(index).ok().and_then(|index| interfaces.get(index));
            found.copied().ok_or(CaptureError::NoInterface)
        };
        let Ok((_, block)) = self.blocks.next() else { return Err(CaptureError::Malformed) };
        match block {
            PcapBlockOwned::Legacy(block) => {
                let fraction = u64::from(block.ts_usec) * if is_nano { 1 } else { 1000 };
                Ok(Packet {
                    at_ns: u64::from(block.ts_sec) * 1_000_000_000 + fraction,
                    link: interfaces.first().map_or(NO_LINK, |interface| interface.link),
                    bytes: block.data,
                })
            }
            PcapBlockOwned::NG(Block::EnhancedPacket(block)) => {
                let interface = interface(block.if_id)?;
                let time = u64::from(block.ts_high) << 32 | u64::from(block.ts_low);
                let captured = usize::try_from(block.caplen).unwrap_or(usize::MAX);
                Ok(Packet {
                    at_ns: in_nanos(time, interface),
                    link: interface.link,
                    bytes: block.data.get(..captured).unwrap_or(block.data),
                })
            }
            PcapBlockOwned::NG(Block::SimplePacket(block)) => {
                let interface = interface(0)?;
                let whole = usize::try_from(block.orig_len()).unwrap_or(usize::MAX);
                let bytes = block.data.get(..whole).unwrap_or(block.data);
                Ok(Packet { at_ns: 0, link: interface.link, bytes })
            }
            _ => Err(CaptureError::Malformed),
        }
    }
}

fn is_packet(block: &PcapBlockOwned<'_>) -> bool {
    matches!(
        block,
        PcapBlockOwned::Legacy(_)
            | PcapBlockOwned::NG(Block::EnhancedPacket(_) | Block::SimplePacket(_))
    )
}

/// The header of the file: of a pcap 24 bytes, of a pcapng its first block.
fn start(from: &mut impl Read) -> Result<Vec<u8>, CaptureError> {
    let mut start = Vec::new();
    let mut read = |start: &mut Vec<u8>, whole: usize| {
        let rest = whole.saturating_sub(start.len());
        from.by_ref().take(rest as u64).read_to_end(start)
    };
    read(&mut start, 12)?;
    let (Some(magic), Some(length), Some(order)) =
        (word(&start, 0), word(&start, 4), word(&start, 8))
    else {
        return Err(CaptureError::NoCapture);
    };
    let length = match (u32::from_le_bytes(magic), u32::from_le_bytes(order)) {
        (0x0a0d_0d0a, 0x1a2b_3c4d) => u32::from_le_bytes(length),
        (0x0a0d_0d0a, 0x4d3c_2b1a) => u32::from_be_bytes(length),
        (0x0a0d_0d0a, _) => return Err(CaptureError::NoCapture),
        _ => 24,
    };
    let length = usize::try_from(length).unwrap_or(usize::MAX);
    if length > MAX_BLOCK_BYTES / 2 {
        return Err(CaptureError::TooLong);
    }
    read(&mut start, length)?;
    Ok(start)
}

fn word(bytes: &[u8], at: usize) -> Option<[u8; 4]> {
    bytes.get(at..)?.first_chunk().copied()
}

/// Units of an interface's times in a second: a power of 10, or of 2 if the highest bit is set. One that no
/// clock has is taken for microseconds.
fn per_second(resolution: u8) -> u64 {
    let exponent = u32::from(resolution & 0x7f);
    let base: u64 = if resolution & 0x80 == 0 { 10 } else { 2 };
    base.checked_pow(exponent).unwrap_or(1_000_000)
}

fn in_nanos(time: u64, interface: Interface) -> u64 {
    let nanos = u128::from(time) * 1_000_000_000 / u128::from(interface.per_second.max(1));
    let offset = i128::from(interface.offset) * 1_000_000_000;
    let shifted = i128::try_from(nanos).unwrap_or(i128::MAX).saturating_add(offset);
    u64::try_from(shifted.max(0)).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;

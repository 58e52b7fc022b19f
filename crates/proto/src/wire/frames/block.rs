//! The frames of blocks (STANDARD-1, 4.2).

use alloc::vec::Vec;

use super::number_u32;
use crate::DropReason;
use crate::bulk::cut::{ChunkAt, SliceSize};
use crate::bulk::tree::PAGE_VALUES;
use crate::chunk::MAX_SLICES;
use crate::fields::{Fields, put_varint, varint_len};
use crate::wire::{field_u8, field_u16};

/// Blocks that a progress frame tells of.
pub const MAX_PROGRESS_BLOCKS: usize = 64;

/// Bytes of the map of a block in a progress frame: 1024 chunks.
pub const MAX_PROGRESS_MAP_BYTES: usize = 128;

/// The highest level of a tree whose chunks a `u32` counts.
const MAX_LEVEL: u8 = 6;

/// The largest block, in bytes: as many chunks as a `u32` counts.
pub(crate) const MAX_BLOCK_BYTES: u64 = (1 << 50) - (1 << 18);

/// Bytes of the map of a chunks here frame.
const MAX_CHUNKS_HERE_BYTES: usize = 1024;

/// Announces a block, whose chunks follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockFrame {
    /// Its number among the blocks of this direction, from 0.
    pub number: u32,
    /// The tag that the application chose for it, below 2^62.
    pub tag: u64,
    /// Its size in bytes.
    pub length: u64,
    /// The BLAKE3 root of its bytes.
    pub root: [u8; 32],
}

impl BlockFrame {
    /// Bytes of the frame.
    #[cfg(test)]
    pub(crate) fn encoded_len(&self) -> usize {
        let numbers = [u64::from(self.number), self.tag, self.length];
        1 + numbers.into_iter().map(varint_len).sum::<usize>() + 32
    }

    pub(super) fn write(&self, out: &mut Vec<u8>) {
        out.push(10);
        put_varint(u64::from(self.number), out);
        put_varint(self.tag, out);
        put_varint(self.length, out);
        out.extend_from_slice(&self.root);
    }

    pub(super) fn read(fields: &mut Fields<'_>) -> Result<Self, DropReason> {
        let (number, tag, length) = (number_u32(fields)?, fields.varint()?, fields.varint()?);
        if length > MAX_BLOCK_BYTES {
            return Err(DropReason::OutOfRange);
        }
        Ok(Self { number, tag, length, root: fields.array()? })
    }
}

/// What a slice is of its chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SliceKind {
    /// A source slice but the last: its data has the slice size.
    Source,
    /// The last source slice, or the only one.
    Last(SliceSize),
    /// A repair slice: its data has the slice size.
    Repair,
}

/// A slice of a chunk. Its data goes to the end of the datagram.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct SliceFrame<'a> {
    /// The chunk.
    pub at: ChunkAt,
    /// What it is.
    pub kind: SliceKind,
    /// Its index among the source or the repair slices.
    pub index: u8,
    /// Its bytes.
    pub data: &'a [u8],
}

crate::debug_as! {
    SliceFrame['_]: |slice| at = slice.at, kind = slice.kind, index = slice.index, bytes = slice.data.len()
}

impl<'a> SliceFrame<'a> {
    /// Bytes of a slice frame before its data.
    #[cfg(test)]
    pub(crate) fn head_bytes(at: ChunkAt, kind: SliceKind) -> usize {
        let size = if matches!(kind, SliceKind::Last(_)) { 2 } else { 0 };
        1 + varint_len(u64::from(at.block)) + varint_len(u64::from(at.index)) + 1 + size
    }

    /// The size of the slices that its chunk is cut into.
    #[must_use]
    pub fn size(&self) -> Option<SliceSize> {
        match self.kind {
            SliceKind::Last(size) => Some(size),
            SliceKind::Source | SliceKind::Repair => SliceSize::new(self.data.len()),
        }
    }

    pub(super) fn write(&self, out: &mut Vec<u8>) {
        self.write_head(out);
        out.extend_from_slice(self.data);
    }

    /// Writes all of it but its data, which follows.
    pub(crate) fn write_head(&self, out: &mut Vec<u8>) {
        out.push(match self.kind {
            SliceKind::Source => 6,
            SliceKind::Last(_) => 7,
            SliceKind::Repair => 8,
        });
        put_chunk(self.at, out);
        out.push(self.index);
        if let SliceKind::Last(size) = self.kind {
            out.extend_from_slice(&field_u16(size.bytes()).to_le_bytes());
        }
    }

    pub(super) fn read(kind: u8, fields: &mut Fields<'a>) -> Result<Self, DropReason> {
        let at = read_chunk(fields)?;
        let index = fields.u8()?;
        let kind = match kind {
            6 => SliceKind::Source,
            7 => SliceKind::Last(read_size(fields)?),
            _ => SliceKind::Repair,
        };
        let data = core::mem::take(&mut fields.0);
        let slice = Self { at, kind, index, data };
        let is_empty = data.is_empty().then_some(DropReason::Truncated);
        let size = slice.size().filter(|size| data.len() <= size.bytes());
        is_empty.map_or(Ok(()), Err)?;
        size.map(|_| slice).ok_or(DropReason::OutOfRange)
    }
}

/// Which source slices of an unfinished chunk its receiver has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlicesHereFrame<'a> {
    /// The chunk.
    pub at: ChunkAt,
    /// The size of its slices, as the receiver knows it.
    pub size: SliceSize,
    /// A bit for each slice: 1 to 32 bytes.
    pub map: &'a [u8],
}

impl<'a> SlicesHereFrame<'a> {
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        out.push(9);
        put_chunk(self.at, out);
        out.extend_from_slice(&field_u16(self.size.bytes()).to_le_bytes());
        out.push(field_u8(self.map.len()));
        out.extend_from_slice(self.map);
    }

    pub(super) fn read(fields: &mut Fields<'a>) -> Result<Self, DropReason> {
        let (at, size) = (read_chunk(fields)?, read_size(fields)?);
        let count = usize::from(fields.u8()?);
        if count == 0 || count > MAX_SLICES / 8 {
            return Err(DropReason::OutOfRange);
        }
        Ok(Self { at, size, map: fields.bytes(count)? })
    }
}

/// A page of a block's tree: values of one level, from a multiple of 32 on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HashesFrame<'a> {
    /// The block.
    pub block: u32,
    /// The level: 0 are the chunks.
    pub level: u8,
    /// The index of the first value on its level, a multiple of 32.
    pub first: u32,
    /// The values: 1 to 32.
    pub values: &'a [[u8; 32]],
}

impl<'a> HashesFrame<'a> {
    /// Bytes of the frame.
    pub(crate) fn encoded_len(&self) -> usize {
        let numbers = varint_len(u64::from(self.block)) + varint_len(u64::from(self.first));
        3 + numbers + 32 * self.values.len()
    }

    pub(super) fn write(&self, out: &mut Vec<u8>) {
        out.push(11);
        put_varint(u64::from(self.block), out);
        out.push(self.level);
        put_varint(u64::from(self.first), out);
        out.push(field_u8(self.values.len()));
        out.extend_from_slice(self.values.as_flattened());
    }

    pub(super) fn read(fields: &mut Fields<'a>) -> Result<Self, DropReason> {
        let block = number_u32(fields)?;
        let level = fields.u8()?;
        let first = number_u32(fields)?;
        let count = usize::from(fields.u8()?);
        let is_page = (first as usize).is_multiple_of(PAGE_VALUES) && level <= MAX_LEVEL;
        if !is_page || count == 0 || count > PAGE_VALUES {
            return Err(DropReason::OutOfRange);
        }
        let (values, _) = fields.bytes(32 * count)?.as_chunks();
        Ok(Self { block, level, first, values })
    }
}

/// Chunks of a block that its receiver has already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChunksHereFrame<'a> {
    /// The block.
    pub block: u32,
    /// The chunk of the first bit.
    pub first: u32,
    /// A bit for each chunk: 1 to 1024 bytes.
    pub map: &'a [u8],
}

impl<'a> ChunksHereFrame<'a> {
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        out.push(12);
        put_varint(u64::from(self.block), out);
        put_varint(u64::from(self.first), out);
        out.extend_from_slice(&field_u16(self.map.len()).to_le_bytes());
        out.extend_from_slice(self.map);
    }

    pub(super) fn read(fields: &mut Fields<'a>) -> Result<Self, DropReason> {
        let (block, first) = (number_u32(fields)?, number_u32(fields)?);
        let count = usize::from(fields.u16()?);
        if count == 0 || count > MAX_CHUNKS_HERE_BYTES {
            return Err(DropReason::OutOfRange);
        }
        Ok(Self { block, first, map: fields.bytes(count)? })
    }
}

/// What a progress frame says of one block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProgressEntry<'a> {
    /// The block.
    pub block: u32,
    /// The lowest chunk that is not done; as many as the block has if all are.
    pub first: u32,
    /// A bit for each chunk after that: at most 128 bytes.
    pub map: &'a [u8],
}

impl<'a> ProgressEntry<'a> {
    /// Bytes of the entry.
    pub(crate) fn encoded_len(&self) -> usize {
        let numbers = varint_len(u64::from(self.block)) + varint_len(u64::from(self.first));
        numbers + 1 + self.map.len()
    }

    /// Appends it to the entries of a frame.
    pub fn write(&self, out: &mut Vec<u8>) {
        put_varint(u64::from(self.block), out);
        put_varint(u64::from(self.first), out);
        out.push(field_u8(self.map.len()));
        out.extend_from_slice(self.map);
    }

    fn read(fields: &mut Fields<'a>) -> Result<Self, DropReason> {
        let (block, first) = (number_u32(fields)?, number_u32(fields)?);
        let count = usize::from(fields.u8()?);
        if count > MAX_PROGRESS_MAP_BYTES {
            return Err(DropReason::OutOfRange);
        }
        Ok(Self { block, first, map: fields.bytes(count)? })
    }
}

/// The whole state of a receiver of blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProgressFrame<'a> {
    /// Chunks and announcements that may be counted in all.
    pub credit: u64,
    /// By how much the receiver's program reads later than datagrams arrive, in ms.
    pub lateness_ms: u64,
    /// All blocks with lower numbers are finished.
    pub floor: u32,
    count: u8,
    /// The entries, encoded; read already, so that reading them again cannot fail.
    entries: &'a [u8],
}

impl<'a> ProgressFrame<'a> {
    /// A frame with these `entries`, as [`ProgressEntry::write`] wrote them, `count` of them. `None` if they
    /// are not that, or too many.
    #[must_use]
    pub fn new(
        credit: u64,
        lateness_ms: u64,
        floor: u32,
        count: usize,
        entries: &'a [u8],
    ) -> Option<Self> {
        let count = u8::try_from(count).ok().filter(|_| count <= MAX_PROGRESS_BLOCKS)?;
        let mut fields = Fields(entries);
        (0..count).try_for_each(|_| ProgressEntry::read(&mut fields).map(drop)).ok()?;
        fields.end().ok()?;
        Some(Self { credit, lateness_ms, floor, count, entries })
    }

    /// What it says of each block.
    pub fn entries(&self) -> impl Iterator<Item = ProgressEntry<'a>> + use<'a> {
        let mut fields = Fields(self.entries);
        (0..self.count).map_while(move |_| ProgressEntry::read(&mut fields).ok())
    }

    /// Bytes of its entries: what it costs to write or to read it.
    pub(crate) const fn entry_bytes(&self) -> usize {
        self.entries.len()
    }

    /// Bytes of the frame.
    pub(crate) fn encoded_len(&self) -> usize {
        let numbers = [self.credit, self.lateness_ms, u64::from(self.floor)];
        2 + numbers.into_iter().map(varint_len).sum::<usize>() + self.entries.len()
    }

    pub(super) fn write(&self, out: &mut Vec<u8>) {
        out.push(5);
        put_varint(self.credit, out);
        put_varint(self.lateness_ms, out);
        put_varint(u64::from(self.floor), out);
        out.push(self.count);
        out.extend_from_slice(self.entries);
    }

    pub(super) fn read(fields: &mut Fields<'a>) -> Result<Self, DropReason> {
        let (credit, lateness_ms, floor) =
            (fields.varint()?, fields.varint()?, number_u32(fields)?);
        let count = fields.u8()?;
        if usize::from(count) > MAX_PROGRESS_BLOCKS {
            return Err(DropReason::OutOfRange);
        }
        let before = fields.0;
        for _ in 0..count {
            ProgressEntry::read(fields)?;
        }
        let entries = before.get(..before.len() - fields.0.len()).unwrap_or_default();
        Ok(Self { credit, lateness_ms, floor, count, entries })
    }
}

fn put_chunk(at: ChunkAt, out: &mut Vec<u8>) {
    put_varint(u64::from(at.block), out);
    put_varint(u64::from(at.index), out);
}

fn read_chunk(fields: &mut Fields<'_>) -> Result<ChunkAt, DropReason> {
    Ok(ChunkAt { block: number_u32(fields)?, index: number_u32(fields)? })
}

fn read_size(fields: &mut Fields<'_>) -> Result<SliceSize, DropReason> {
    SliceSize::new(fields.u16()?.into()).ok_or(DropReason::OutOfRange)
}

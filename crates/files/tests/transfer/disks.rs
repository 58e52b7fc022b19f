//! Disks in memory, for both ends: what the machines ask of their programs, done at once and in plain ways.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use bytes::Bytes;
use haulier_files::Ranges;
use haulier_files::offer::Root;
use haulier_files::pieces::{OlderPiece, Piece, Recipe};
use haulier_files::reason::{Fault, Reason};
use haulier_files::taker::{FinishError, Local};

/// The giver's files, by index in its offer. One of them can change.
#[derive(Default)]
pub(crate) struct GiverDisk {
    pub(crate) files: Vec<Vec<u8>>,
    /// The file that changes, and the number of reads before that.
    pub(crate) changes: Option<(u32, u32)>,
    pub(crate) reads: u32,
    pub(crate) recipes: u32,
    /// If set, packing pays for no file from this offset on.
    pub(crate) unpacked_from: Option<u64>,
}

impl GiverDisk {
    pub(crate) fn bytes(&self, file: u32, spans: &[Range<u64>]) -> Vec<u8> {
        let file = &self.files[file as usize];
        spans.iter().flat_map(|it| &file[it.start as usize..it.end as usize]).copied().collect()
    }

    pub(crate) fn read(&mut self, file: u32, spans: &[Range<u64>]) -> Result<Bytes, Fault> {
        self.reads += 1;
        match self.changes {
            Some((changed, after)) if changed == file && self.reads > after => {
                Err(Reason::Changed.into())
            }
            _ => Ok(self.bytes(file, spans).into()),
        }
    }
}

/// What was here of a file before.
#[derive(Clone, Default)]
pub(crate) enum Before {
    #[default]
    Nothing,
    /// These chunks are believed, and this is what is on the disk.
    Part(Ranges, Vec<u8>),
    Old(Vec<u8>),
    Taken,
}

/// What the taker has, by index in the offer.
#[derive(Default)]
pub(crate) struct TakerDisk {
    pub(crate) before: BTreeMap<u32, Before>,
    /// Files in the making.
    pub(crate) parts: BTreeMap<u32, Vec<u8>>,
    /// Files under their names.
    pub(crate) stored: BTreeMap<u32, Vec<u8>>,
    /// What is stored of these has the size and time of the offer, and maybe other bytes.
    pub(crate) dated: BTreeSet<u32>,
    /// A chunk of each that is found to be lost when all seems to be here.
    pub(crate) lost: BTreeMap<u32, u64>,
    pub(crate) directories: Vec<u32>,
    pub(crate) discarded: Vec<u32>,
    pub(crate) abandoned: Vec<u32>,
    /// The older versions went away after they were cut.
    pub(crate) older_is_gone: bool,
    /// Bytes that may be written.
    pub(crate) room: u64,
}

impl TakerDisk {
    pub(crate) fn inspect(&mut self, file: u32, root: Option<&Root>) -> Local {
        if let (Some(stored), Some(root)) = (self.stored.get(&file), root)
            && blake3::hash(stored).as_bytes() == root
        {
            return Local::Here;
        }
        if root.is_none() && self.dated.contains(&file) {
            return Local::Unproven;
        }
        match self.before.get(&file).cloned().unwrap_or_default() {
            Before::Nothing => Local::Absent,
            Before::Old(_) => Local::Older,
            Before::Taken => Local::Refused(Reason::Taken.into()),
            Before::Part(chunks, bytes) => {
                self.parts.insert(file, bytes);
                Local::Partial { chunks }
            }
        }
    }

    pub(crate) fn write(
        &mut self,
        file: u32,
        offset: u64,
        data: &[u8],
    ) -> Result<Range<u64>, Fault> {
        self.room = self.room.checked_sub(data.len() as u64).ok_or(Fault::from(Reason::NoRoom))?;
        let part = self.parts.entry(file).or_default();
        let end = offset as usize + data.len();
        part.resize(part.len().max(end), 0);
        part[offset as usize..end].copy_from_slice(data);
        Ok(offset..end as u64)
    }

    pub(crate) fn older(&self, file: u32) -> &[u8] {
        match self.before.get(&file) {
            Some(Before::Old(bytes)) => bytes,
            _ => &[],
        }
    }

    pub(crate) fn finish(&mut self, file: u32, size: u64, root: &Root) -> Result<(), FinishError> {
        let part = self.parts.remove(&file).unwrap_or_default();
        assert_eq!(part.len() as u64, size, "the machine says when all is here");
        if let Some(chunk) = self.lost.remove(&file) {
            let chunks = (0..size.div_ceil(1 << 18)).filter(|at| *at != chunk).map(|at| at..at + 1);
            self.parts.insert(file, part);
            return Err(FinishError::Missing { chunks: chunks.collect() });
        }
        if blake3::hash(&part).as_bytes() != root {
            return Err(FinishError::WrongRoot);
        }
        let replaced = self.stored.insert(file, part);
        assert!(replaced.is_none() || self.dated.remove(&file), "a file is stored once");
        Ok(())
    }
}

/// Pieces by content: a boundary wherever the last eight bytes make a number that ends in 14 zeros.
pub(crate) fn cut(bytes: &[u8]) -> Vec<OlderPiece> {
    let (mut pieces, mut start, mut gear) = (Vec::new(), 0, 0_u64);
    for (at, &byte) in bytes.iter().enumerate() {
        gear = (gear << 8 | u64::from(byte)).wrapping_mul(1);
        let length = at + 1 - start;
        let is_boundary = gear.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 50 == 0 && length >= 16 << 10;
        if is_boundary || length == 256 << 10 || at + 1 == bytes.len() {
            let hash = blake3::hash(&bytes[start..=at]);
            let piece =
                Piece { length: length as u32, hash: hash.as_bytes()[..16].try_into().unwrap() };
            pieces.push(OlderPiece { offset: start as u64, piece });
            start = at + 1;
        }
    }
    pieces
}

pub(crate) fn recipe(bytes: &[u8]) -> Recipe {
    Recipe::new(cut(bytes).iter().map(|it| it.piece).collect()).unwrap()
}

/// A way to pack that is good for zeros: the length, and the bytes up to the last that is not zero.
pub(crate) fn pack(bytes: &[u8]) -> Bytes {
    let end = bytes.iter().rposition(|&byte| byte != 0).map_or(0, |at| at + 1);
    [&(bytes.len() as u64).to_le_bytes(), &bytes[..end]].concat().into()
}

pub(crate) fn unpack(packed: &[Bytes], max_bytes: u64) -> Result<Vec<u8>, Fault> {
    let packed = packed.concat();
    let (length, bytes) = packed.split_first_chunk().ok_or(Fault::from(Reason::Other))?;
    let length = u64::from_le_bytes(*length);
    if length > max_bytes {
        return Err(Reason::Other.into());
    }
    let mut out = bytes.to_vec();
    out.resize(length as usize, 0);
    Ok(out)
}

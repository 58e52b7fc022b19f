//! From a want to blocks: whole files at once, parts one after the other, pieces by their recipe.
//!
//! One block is made at a time, because making reads the disk; the next is made while it is sent.

use std::ops::Range;

use super::{BlockSource, Fate, Giver, GiverAction, MAX_BLOCKS, Made, Turn};
use crate::chunks::CHUNK_BYTES;
use crate::messages::{Form, Message, Want};
use crate::offer::{Content, Entry, Root};
use crate::packing::Packing;
use crate::pieces::Recipe;
use crate::ranges::Ranges;
use crate::reason::{Fault, Reason};
use crate::tag::{BlockTag, MAX_FILE_BYTES, PART_UNIT, PART_WANTS};

/// The longest part, in bytes.
pub(crate) const MAX_PART_BYTES: u64 = 64 << 20;

/// The longest part that is held in memory, in bytes: of a pipe, or packed.
pub(crate) const MAX_MEMORY_PART_BYTES: u64 = 2 << 20;

/// The longest packed part as it goes, in bytes: what did not shrink, and the lengths beside it.
pub(crate) const MAX_PACKED_BYTES: u64 = MAX_MEMORY_PART_BYTES + 8 * 4;

/// Parts in memory at a time, so that they and the chunks that are read stay below 64 chunks.
pub(crate) const MAX_MEMORY_PARTS: usize = 6;

/// Files below this are not packed, in bytes: what that saves is 20 ms at 20 Mbit/s, and making a part of
/// each of thousands takes the disk's threads.
const MIN_PACKED_FILE_BYTES: u64 = 64 << 10;

/// The pieces of one want, in bytes.
pub(crate) const MAX_PIECES_BYTES: u64 = 64 << 20;

/// Recipes that are kept: takers ask for pieces right after the recipe, of a few files at a time.
const MAX_RECIPES: usize = 4;

/// A file that goes in parts.
#[derive(Debug)]
struct Parts {
    file: u32,
    /// The want that is answered.
    want: u32,
    /// The ranges of bytes that are still to be sent. A pipe has no end.
    left: Ranges,
    /// The next part is no longer than this: 1, 4, 16 and then 64 MiB, so that it begins at once.
    max_bytes: u64,
    packing: Packing,
}

/// What is being made.
#[derive(Debug)]
struct Making {
    tag: BlockTag,
    file: u32,
    offset: u64,
    max_bytes: u64,
    spans: Vec<Range<u64>>,
    /// The file failed meanwhile: what comes is dropped.
    is_void: bool,
}

#[derive(Debug, Default)]
pub(super) struct Maker {
    parts: Option<Parts>,
    making: Option<Making>,
    recipes: Vec<(u32, Recipe)>,
}

impl Maker {
    /// The file failed, or is wanted otherwise: no more parts of it, and what is being made of it is void.
    pub(super) fn stop(&mut self, file: u32) {
        self.parts.take_if(|parts| parts.file == file);
        if let Some(making) = self.making.as_mut().filter(|making| making.file == file) {
            making.is_void = true;
        }
    }

    fn recipe(&self, file: u32) -> Option<Recipe> {
        self.recipes.iter().find(|(of, _)| *of == file).map(|(_, recipe)| recipe.clone())
    }

    fn keep(&mut self, file: u32, recipe: Recipe) {
        self.recipes.retain(|(of, _)| *of != file);
        if self.recipes.len() >= MAX_RECIPES {
            self.recipes.remove(0);
        }
        self.recipes.push((file, recipe));
    }
}

impl Giver {
    /// Something was made for a block, or could not be.
    pub fn handle_made(&mut self, tag: BlockTag, made: Result<Made, Fault>) {
        let Some(making) = self.maker.making.take_if(|making| making.tag == tag) else { return };
        if self.turn != Turn::Ended && !making.is_void {
            match made {
                Ok(made) => self.on_made(making, made),
                Err(fault) => self.fail(making.file, fault),
            }
        }
        self.go_on();
    }

    /// The length and the root of a file whose parts were all made.
    pub fn handle_root(&mut self, file: u32, root: Result<(u64, Root), Fault>) {
        if self.fates.get(file as usize) == Some(&Fate::Open) {
            match root {
                Ok((length, root)) => self.send(&Message::End { file, length, root }),
                Err(fault) => self.fail(file, fault),
            }
        }
        self.go_on();
    }

    /// Makes and sends blocks while there is room for them.
    pub(super) fn make_blocks(&mut self) {
        while self.turn == Turn::Giving
            && self.maker.making.is_none()
            && self.blocks.len() < MAX_BLOCKS
        {
            if self.maker.parts.is_some() {
                if !self.make_part() {
                    return;
                }
            } else if let Some(want) = self.wants.next(&self.offer) {
                self.begin(want);
            } else {
                return;
            }
        }
    }

    /// Begins what a want asks for.
    fn begin(&mut self, want: Want) {
        let Want { number, file, ref form } = want;
        let Some(entry) = self.offer.entry(file) else { return };
        if self.fates.get(file as usize) == Some(&Fate::Failed) {
            let fault = Fault::new(Reason::Unreadable, "it failed before");
            return self.send(&Message::Failed { file, fault });
        }
        let packing = self.packing_of(entry.content);
        match (form, entry.content) {
            (Form::Any(_), Content::Known { size, .. }) if packing == Packing::Never => {
                self.send_whole(file, number, size);
            }
            (Form::Whole, Content::Known { size, .. }) => self.send_whole(file, number, size),
            (Form::Whole, Content::Sized(_)) => {
                let tag = BlockTag::Whole { file, want: number };
                self.make(tag, Vec::new(), GiverAction::MakeTree { tag, file });
            }
            (Form::Any(units), content) => self.begin_parts(file, number, units.clone(), content),
            (Form::Recipe, Content::Known { .. } | Content::Sized(_)) => {
                let tag = BlockTag::Recipe { file, want: number };
                match self.maker.recipe(file) {
                    Some(recipe) => self.send_recipe(tag, &recipe),
                    None => self.make(tag, Vec::new(), GiverAction::MakeRecipe { tag, file }),
                }
            }
            (Form::Pieces(pieces), Content::Known { .. } | Content::Sized(_)) => {
                self.begin_pieces(file, number, pieces.clone());
            }
            _ => self.refuse("a want that a pipe cannot answer"),
        }
    }

    /// Whether a file like this is packed.
    fn packing_of(&self, content: Content) -> Packing {
        match content {
            Content::Known { size, .. } | Content::Sized(size)
                if size >= MIN_PACKED_FILE_BYTES && self.config.taker_accepts_packed =>
            {
                self.config.packing
            }
            _ => Packing::Never,
        }
    }

    fn send_whole(&mut self, file: u32, want: u32, size: u64) {
        self.wanted_bytes += size;
        let tag = BlockTag::Whole { file, want };
        self.send_block(tag, BlockSource::Disk { length: size }, size, vec![0..size]);
    }

    fn send_recipe(&mut self, tag: BlockTag, recipe: &Recipe) {
        let bytes = recipe.to_bytes();
        let length = bytes.len() as u64;
        self.wanted_bytes += length;
        self.send_block(tag, BlockSource::Memory(bytes.into()), length, Vec::new());
    }

    fn begin_parts(&mut self, file: u32, want: u32, units: Ranges, content: Content) {
        let end = match content {
            Content::Known { size, .. } | Content::Sized(size) => size,
            Content::Stream | Content::Directory => MAX_FILE_BYTES,
        };
        let wanted = units.iter().map(|it| it.start * PART_UNIT..(it.end * PART_UNIT).min(end));
        let left: Ranges = if units.is_empty() { Ranges::up_to(end) } else { wanted.collect() };
        if content != Content::Stream {
            self.wanted_bytes += left.count();
        }
        let packing = self.packing_of(content);
        self.maker.parts = Some(Parts { file, want, left, max_bytes: PART_UNIT, packing });
    }

    /// Makes the next part, or asks for the root if no part is left. `false` if it has to wait.
    fn make_part(&mut self) -> bool {
        let Some(parts) = &self.maker.parts else { return true };
        let (file, want, packing) = (parts.file, parts.want, parts.packing);
        let Some(next) = parts.left.iter().next() else {
            self.maker.parts = None;
            self.act(GiverAction::FindRoot { file });
            return true;
        };
        let content = self.offer.entry(file).map(|entry| entry.content);
        if let (Some(Content::Known { size, .. }), Packing::Never) = (content, packing) {
            return self.send_rest_whole(file, want, size);
        }
        let in_memory = packing != Packing::Never || self.is_stream(file);
        let mut max_bytes = parts.max_bytes;
        if in_memory {
            max_bytes = max_bytes.min(MAX_MEMORY_PART_BYTES);
            if self.parts_in_memory() >= MAX_MEMORY_PARTS {
                return false;
            }
            // What is in memory goes without being asked for by chunks, so it is counted here.
            if let Some(left) = &mut self.early_chunks {
                let chunks = (next.end - next.start).min(PART_UNIT).div_ceil(CHUNK_BYTES as u64);
                let rest = u32::try_from(chunks).ok().and_then(|chunks| left.checked_sub(chunks));
                let Some(rest) = rest else { return false };
                (*left, max_bytes) = (rest, PART_UNIT);
            }
        }
        let (offset, max_bytes) = (next.start, max_bytes.min(next.end - next.start));
        let tag = BlockTag::Part { file, want: want % PART_WANTS, offset };
        self.maker.making =
            Some(Making { tag, file, offset, max_bytes, spans: Vec::new(), is_void: false });
        self.act(GiverAction::MakePart { tag, file, offset, max_bytes, packing });
        true
    }

    /// Sends the rest of a file with a known root as one block, because packing does not pay. It waits until
    /// the parts of the file have arrived: the taker accepts either parts or a block. By then the taker has
    /// reported to its connection which chunks it has. `false` if it has to wait.
    fn send_rest_whole(&mut self, file: u32, want: u32, size: u64) -> bool {
        if self.blocks.keys().any(|tag| tag.file() == Some(file)) {
            return false;
        }
        let left = self.maker.parts.take().map_or(0, |parts| parts.left.count());
        self.wanted_bytes = self.wanted_bytes.saturating_sub(left);
        self.send_whole(file, want, size);
        true
    }

    /// Blocks whose bytes are in memory.
    fn parts_in_memory(&self) -> usize {
        self.blocks.values().filter(|block| block.spans.is_empty()).count()
    }

    fn begin_pieces(&mut self, file: u32, number: u32, pieces: Ranges) {
        let Some(recipe) = self.maker.recipe(file) else {
            let tag = BlockTag::Recipe { file, want: 0 };
            self.wants.put_back(Want { number, file, form: Form::Pieces(pieces) });
            return self.make(tag, Vec::new(), GiverAction::MakeRecipe { tag, file });
        };
        let spans: Vec<Range<u64>> = pieces.iter().map(|it| recipe.span(&it)).collect();
        let bytes: u64 = spans.iter().map(|it| it.end - it.start).sum();
        let count = recipe.pieces().len() as u64;
        if bytes == 0 || bytes > MAX_PIECES_BYTES || pieces.iter().any(|it| it.end > count) {
            return self.refuse("pieces that are not there, or too many");
        }
        self.wanted_bytes += bytes;
        let tag = BlockTag::Pieces { file, want: number };
        self.make(tag, spans.clone(), GiverAction::MakePieces { tag, file, spans });
    }

    fn make(&mut self, tag: BlockTag, spans: Vec<Range<u64>>, action: GiverAction) {
        let file = tag.file().unwrap_or_default();
        self.maker.making =
            Some(Making { tag, file, offset: 0, max_bytes: 0, spans, is_void: false });
        self.act(action);
    }

    fn on_made(&mut self, making: Making, made: Made) {
        let Making { tag, file, offset, max_bytes, spans, .. } = making;
        match (tag, made) {
            (BlockTag::Part { .. }, Made::Part { length }) => {
                if self.takes_part(file, offset, length, max_bytes) {
                    let span = offset..offset + length;
                    self.send_block(tag, BlockSource::Disk { length }, length, vec![span]);
                }
            }
            (BlockTag::Part { .. }, Made::PipePart(bytes)) => {
                let length = bytes.len() as u64;
                if self.takes_part(file, offset, length, max_bytes) {
                    self.wanted_bytes += length;
                    self.send_block(tag, BlockSource::Memory(bytes), length, Vec::new());
                }
            }
            (BlockTag::Part { want, .. }, Made::Packed { bytes, length }) => {
                let packed = bytes.len() as u64;
                if self.takes_part(file, offset, length, max_bytes) {
                    self.wanted_bytes = (self.wanted_bytes + packed).saturating_sub(length);
                    let tag = BlockTag::Packed { file, want, offset };
                    self.send_block(tag, BlockSource::Memory(bytes), packed, Vec::new());
                }
            }
            (BlockTag::Part { .. }, Made::Unpacked) => {
                if let Some(parts) = self.maker.parts.as_mut().filter(|parts| parts.file == file) {
                    parts.packing = Packing::Never;
                }
            }
            (BlockTag::Pieces { .. }, Made::Pieces) => {
                let length = spans.iter().map(|it| it.end - it.start).sum();
                self.send_block(tag, BlockSource::Disk { length }, length, spans);
            }
            (BlockTag::Recipe { want, .. }, Made::Recipe(recipe)) => {
                // With number 0 it was made for pieces that were wanted without it.
                if want > 0 {
                    self.send_recipe(tag, &recipe);
                }
                self.maker.keep(file, recipe);
            }
            (BlockTag::Whole { want, .. }, Made::Tree { size, .. }) => {
                if self.offer.entry(file).and_then(Entry::size) == Some(size) {
                    self.send_whole(file, want, size);
                } else {
                    self.fail(file, Reason::Changed.into());
                }
            }
            _ => self.fail(file, Fault::new(Reason::Unreadable, "another thing was made of it")),
        }
    }

    /// Removes a part from the remaining bytes of its file; `false` if there is nothing to send. A part that
    /// is shorter than `max_bytes` ends a pipe; any other file has then changed.
    fn takes_part(&mut self, file: u32, offset: u64, length: u64, max_bytes: u64) -> bool {
        if length > max_bytes || (length < max_bytes && !self.is_stream(file)) {
            self.fail(file, Reason::Changed.into());
            return false;
        }
        if let Some(parts) = self.maker.parts.as_mut().filter(|parts| parts.file == file) {
            let end = offset + length;
            let rest: Ranges = parts.left.iter().map(|it| it.start.max(end)..it.end).collect();
            parts.left = if length < max_bytes { Ranges::new() } else { rest };
            parts.max_bytes = (parts.max_bytes * 4).min(MAX_PART_BYTES);
        }
        length > 0
    }
}

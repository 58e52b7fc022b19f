//! Blocks as they come: which are wanted, where their bytes go, and when they are whole.
//!
//! The invariant: a block is accepted only if the taker waits for just that one, or for a part that
//! touches no other; its length is checked before anything of it is kept.

use std::collections::BTreeMap;
use std::ops::Range;

use bytes::Bytes;
use haulier_core::Instant;

use haulier_proto::connection::ChunkValue;

use super::active::{Active, Skipped, Stage, Status};
use super::plan::whole_chunks;
use super::{Ask, MAX_ACTIVE, Taker, TakerAction, Told, Turn};
use crate::giver::{
    MAX_BLOCKS, MAX_EARLY_CHUNKS, MAX_MEMORY_PART_BYTES, MAX_PACKED_BYTES, MAX_PART_BYTES,
};
use crate::messages::Message;
use crate::offer::{Content, Root};
use crate::pieces::{MAX_RECIPE_BYTES, MIN_PIECE_BYTES};
use crate::quota::cost_of;
use crate::reason::{ANOTHER_FILE, Fault, NOT_UNDERSTOOD, OVER_QUOTA, Reason};
use crate::tag::{BlockTag, MAX_FILE_BYTES, PART_UNIT, PART_WANTS};

/// Announced blocks that are held: what a connection may announce.
const MAX_HELD: usize = 4 * 32 + MAX_EARLY_CHUNKS as usize;

/// How far behind the first byte of a pipe that is not here a part of it may end, in bytes: a giver has
/// eight parts on their way, and what has arrived of others waits for the disk. So what is kept of a pipe's
/// chunks, and the hole in its file, are bounded by what has come of it.
const MAX_AHEAD_BYTES: u64 = (MAX_BLOCKS as u64 + 1) * MAX_PART_BYTES;

/// What is accepted of a file beyond twice its size, in bytes: parts begin at multiples of 1 MiB, so some
/// bytes come twice.
const MAX_SURPLUS_BYTES: u64 = 2 * PART_UNIT;

/// Something that came too early, and waits for the program.
#[derive(Debug)]
pub(super) enum Held {
    Message(Message),
    Announced { tag: BlockTag, length: u64, root: Root },
    Chunk { tag: BlockTag, offset: u64, data: Bytes, value: ChunkValue },
    Complete(BlockTag),
    Cancelled { tag: BlockTag, code: u32 },
}

impl Held {
    pub(super) const fn is_chunk(&self) -> bool {
        matches!(self, Self::Chunk { .. })
    }

    const fn file(&self) -> Option<u32> {
        match self {
            Self::Message(Message::End { file, .. }) => Some(*file),
            Self::Message(_) => None,
            Self::Announced { tag, .. }
            | Self::Chunk { tag, .. }
            | Self::Complete(tag)
            | Self::Cancelled { tag, .. } => tag.file(),
        }
    }
}

/// A block that was accepted.
#[derive(Debug)]
pub(super) struct Incoming {
    length: u64,
    root: Root,
    /// Bytes of it that were delivered. The connection delivers no chunk that was reported to it as here.
    came: u64,
    place: Place,
}

/// Where the bytes of a block go.
#[derive(Debug)]
enum Place {
    /// These ranges of the file, one after the other.
    File(Vec<Range<u64>>),
    /// Here, until it is whole.
    Memory(BTreeMap<u64, Bytes>),
}

impl Taker {
    /// The giver announced a block. One whose tag says nothing is refused with the connection.
    pub fn handle_announced(&mut self, now: Instant, tag: u64, length: u64, root: Root) {
        match BlockTag::from_u64(tag) {
            Some(tag) => self.handle(now, Held::Announced { tag, length, root }),
            None if self.turn == Turn::Ended => {}
            None => self.refuse(NOT_UNDERSTOOD, "a block that is nothing"),
        }
    }

    /// A chunk of a block is here and verified: it has this value in the tree of the block.
    pub fn handle_chunk(
        &mut self,
        now: Instant,
        tag: u64,
        offset: u64,
        data: Bytes,
        value: ChunkValue,
    ) {
        if let Some(tag) = BlockTag::from_u64(tag) {
            self.handle(now, Held::Chunk { tag, offset, data, value });
        }
    }

    /// All chunks of a block have been handed out, or were here.
    pub fn handle_complete(&mut self, now: Instant, tag: u64) {
        if let Some(tag) = BlockTag::from_u64(tag) {
            self.handle(now, Held::Complete(tag));
        }
    }

    /// The giver gave a block up.
    pub fn handle_cancelled(&mut self, now: Instant, tag: u64, code: u32) {
        if let Some(tag) = BlockTag::from_u64(tag) {
            self.handle(now, Held::Cancelled { tag, code });
        }
    }

    /// Bytes were written: this range of a file. Or they were not.
    pub fn handle_written(&mut self, now: Instant, file: u32, written: Result<Range<u64>, Fault>) {
        self.writes = self.writes.saturating_sub(1);
        let Some(active) = self.active.get_mut(&file) else { return };
        active.writes = active.writes.saturating_sub(1);
        match written {
            Ok(range) => {
                if let Some(came) = active.packed.remove(&range.start) {
                    let packed = range.end - range.start;
                    self.progress.packed_bytes += packed;
                    self.progress.saved_bytes += packed.saturating_sub(came);
                }
                let bytes = active.here.insert(range);
                active.verified_bytes += bytes;
                self.progress.verified_bytes += bytes;
                self.meter.add(now, bytes);
                self.check_complete(file);
                self.say_what_is_here(file);
            }
            Err(fault) => self.fail(file, fault, Told::ByUs),
        }
        self.go_on(now);
    }

    fn handle(&mut self, now: Instant, held: Held) {
        match self.turn {
            Turn::Ended => {}
            Turn::Taking => {
                self.release(now, held);
                self.go_on(now);
            }
            // The offer itself may be a block.
            Turn::WaitsForOffer if held.file().is_none() => self.take_in(now, held),
            _ => self.hold(now, held),
        }
    }

    /// Keeps what came before the offer was admitted.
    pub(super) fn hold(&mut self, _: Instant, held: Held) {
        self.held_chunks += usize::from(held.is_chunk());
        if self.config.ask != Ask::Get
            || self.held.len() >= MAX_HELD
            || self.held_chunks > MAX_EARLY_CHUNKS as usize + super::MAX_WRITES
        {
            return self.refuse(NOT_UNDERSTOOD, "more than may come before the offer");
        }
        self.held.push_back(held);
    }

    /// Takes in what came, or keeps it for the file that is being inspected.
    pub(super) fn release(&mut self, now: Instant, held: Held) {
        if self.turn != Turn::Taking {
            return;
        }
        if let Some(file) = held.file() {
            // What goes unasked comes in the order of the offer, so it is never far ahead.
            let begins = matches!(held, Held::Announced { .. } | Held::Message(_));
            if begins && self.config.ask == Ask::Get && self.status(file) == Status::Waiting {
                if self.active.len() >= 2 * MAX_ACTIVE {
                    return self.refuse(NOT_UNDERSTOOD, "files far ahead of their turn");
                }
                self.take_up(file);
            }
            if let Some(Active { stage: Stage::Inspecting(kept), .. }) = self.active.get_mut(&file)
            {
                // An inbox has asked for nothing of it yet, and holds nothing for a stranger.
                if kept.len() >= MAX_HELD || self.config.ask == Ask::Inbox {
                    return self.refuse(NOT_UNDERSTOOD, "more than may come of one file");
                }
                self.held_chunks += usize::from(held.is_chunk());
                return kept.push(held);
            }
        }
        self.take_in(now, held);
    }

    fn take_in(&mut self, now: Instant, held: Held) {
        match held {
            Held::Message(message) => self.on_message(now, message),
            Held::Announced { tag, length, root } => self.on_announced(tag, length, &root),
            Held::Chunk { tag, offset, data, value } => self.on_chunk(tag, offset, data, value),
            Held::Complete(tag) => self.on_complete(tag),
            Held::Cancelled { tag, code } => self.on_cancelled(tag, code),
        }
    }

    fn on_announced(&mut self, tag: BlockTag, length: u64, root: &Root) {
        if self.incoming.contains_key(&tag) {
            return self.refuse(NOT_UNDERSTOOD, "a block that is there already");
        }
        match self.judge(tag, length, root) {
            Ok(Some(place)) => {
                if let Some(active) = tag.file().and_then(|file| self.active.get_mut(&file)) {
                    active.blocks += 1;
                    active.accepted_bytes = active.accepted_bytes.saturating_add(length);
                    // For a file that was offered without a root, this message has the root.
                    if matches!(tag, BlockTag::Whole { .. }) {
                        active.end.get_or_insert((length, *root));
                    }
                }
                self.incoming.insert(tag, Incoming { length, root: *root, came: 0, place });
            }
            Ok(None) => {
                self.actions
                    .push_back(TakerAction::Decline { tag, code: Reason::NotWanted as u32 });
            }
            Err((ANOTHER_FILE, _)) if tag.file().is_some_and(|it| self.learned.contains(&it)) => {
                // It was offered without a root, which was asked for, and has changed since.
                let (file, code) = (tag.file().unwrap_or_default(), Reason::Changed as u32);
                self.actions.push_back(TakerAction::Decline { tag, code });
                let fault = Fault::new(Reason::Changed, "it is not what it was when it was hashed");
                self.fail(file, fault, Told::ByUs);
            }
            Err((code, what)) => self.refuse(code, what),
        }
    }

    /// Where the bytes of an announced block go; `None` if it is not wanted any more.
    fn judge(
        &self,
        tag: BlockTag,
        length: u64,
        root: &Root,
    ) -> Result<Option<Place>, (haulier_proto::connection::CloseCode, &'static str)> {
        let wrong = |what| Err((NOT_UNDERSTOOD, what));
        let Some(file) = tag.file() else {
            return match self.turn {
                Turn::WaitsForOffer if length > self.config.max_offer_bytes => {
                    Err((OVER_QUOTA, "a longer list of files than is taken here"))
                }
                Turn::WaitsForOffer => Ok(Some(Place::Memory(BTreeMap::new()))),
                _ => wrong("an offer that nobody waits for"),
            };
        };
        let Some(entry) = self.offer.entry(file) else { return wrong("a block of no file") };
        let Some(active) = self.active.get(&file) else { return Ok(None) };
        // Each time they are written and noted.
        let accepted_bytes = active.accepted_bytes.saturating_add(length);
        if entry.size().is_some_and(|size| accepted_bytes > 2 * size + MAX_SURPLUS_BYTES) {
            return wrong("more of a file than it has, twice");
        }
        let memory = || Ok(Some(Place::Memory(BTreeMap::new())));
        match (tag, &active.stage) {
            (BlockTag::Whole { want: of, .. }, &Stage::Coming { want }) => {
                if of != want {
                    return if of < want { Ok(None) } else { wrong("a file that nobody wanted") };
                }
                if self.root(file).is_some_and(|known| known != *root) {
                    return Err((ANOTHER_FILE, "a file with another BLAKE3"));
                }
                if entry.size() != Some(length) {
                    return wrong("a file of another size");
                }
                let is_taken = active.blocks > 0;
                Ok((!is_taken).then(|| Place::File(vec![0..length])))
            }
            (
                BlockTag::Part { want: of, .. } | BlockTag::Packed { want: of, .. },
                &Stage::Coming { want },
            ) if of != want % PART_WANTS => Ok(None),
            (BlockTag::Part { offset, .. }, Stage::Coming { .. }) => {
                let span = offset..offset + length.min(MAX_FILE_BYTES);
                self.judge_part(file, active, &span)
                    .map(|takes| takes.then(|| Place::File(vec![span])))
                    .or_else(wrong)
            }
            (BlockTag::Packed { offset, .. }, Stage::Coming { .. }) => {
                let is_packed = |it: &&BlockTag| matches!(it, BlockTag::Packed { .. });
                let packed = self.incoming.keys().filter(is_packed).count();
                if !self.config.accepts_packed
                    || packed >= MAX_BLOCKS
                    || entry.content == Content::Stream
                    || length > MAX_PACKED_BYTES
                {
                    return wrong("a packed part that is too large or was not accepted");
                }
                let end = entry.size().unwrap_or(MAX_FILE_BYTES).min(offset + PART_UNIT);
                match self.judge_part(file, active, &(offset..end)) {
                    Ok(true) => memory(),
                    Ok(false) => Ok(None),
                    Err(what) => wrong(what),
                }
            }
            (BlockTag::Recipe { want: of, .. }, &Stage::Comparing { want, .. }) if of == want => {
                if length > MAX_RECIPE_BYTES || length > max_recipe_bytes(entry.size()) {
                    wrong("a recipe that is too long")
                } else {
                    memory()
                }
            }
            (BlockTag::Pieces { want: of, .. }, Stage::Patching(patch)) => {
                let Some((_, spans)) = patch.wants.iter().find(|(number, _)| *number == of) else {
                    return Ok(None);
                };
                let bytes: u64 = spans.iter().map(|it| it.end - it.start).sum();
                if bytes == length {
                    Ok(Some(Place::File(spans.clone())))
                } else {
                    wrong("pieces of another size")
                }
            }
            // It was wanted once, or comes unasked and is not.
            _ => Ok(None),
        }
    }

    /// Whether a part is wanted, which is somewhere in the file and touches no other on its way.
    fn judge_part(
        &self,
        file: u32,
        active: &Active,
        span: &Range<u64>,
    ) -> Result<bool, &'static str> {
        let length = span.end.saturating_sub(span.start);
        let size = self.offer.entry(file).and_then(|it| it.size());
        let is_last = size.is_none_or(|size| span.end == size);
        if length == 0 || length > MAX_PART_BYTES || (!length.is_multiple_of(PART_UNIT) && !is_last)
        {
            return Err("a part of a wrong length");
        }
        if span.end > size.unwrap_or(MAX_FILE_BYTES) {
            return Err("a part beyond the end of its file");
        }
        if size.is_none() && span.end > active.here.first_missing() + MAX_AHEAD_BYTES {
            return Err("a part of a pipe far ahead of what has come of it");
        }
        Ok(!active.here.contains(span))
    }

    fn on_chunk(&mut self, tag: BlockTag, offset: u64, data: Bytes, value: ChunkValue) {
        let Some(incoming) = self.incoming.get_mut(&tag) else { return };
        let length = data.len() as u64;
        if offset.checked_add(length).is_none_or(|end| end > incoming.length) {
            return;
        }
        if tag.file().is_some() {
            self.progress.wire_bytes += length;
        }
        incoming.came += length;
        match &mut incoming.place {
            Place::Memory(gathered) => {
                let before = gathered.insert(offset, data).map_or(0, |it| it.len());
                self.gathered_bytes += length as usize;
                self.gathered_bytes -= before;
            }
            Place::File(spans) => {
                let pieces = at(spans, offset, data);
                // Only the block of a whole file has the file's tree.
                let value = matches!(tag, BlockTag::Whole { .. }).then_some(value);
                if let Some(file) = tag.file() {
                    for (offset, data) in pieces {
                        self.write(file, offset, data, value);
                    }
                }
            }
        }
    }

    fn write(&mut self, file: u32, offset: u64, data: Bytes, value: Option<ChunkValue>) {
        let is_stream = self.offer.entry(file).is_some_and(|it| it.content == Content::Stream);
        if is_stream && !self.spend(file, offset + data.len() as u64) {
            return;
        }
        self.note_write(file);
        self.act(TakerAction::Write { file, offset, data, value });
    }

    fn note_write(&mut self, file: u32) {
        if let Some(active) = self.active.get_mut(&file) {
            active.writes += 1;
            self.writes += 1;
        }
    }

    /// A pipe costs as much as a file that ends where its last byte is, with the holes before it. `false` if
    /// the spare bytes are too few.
    fn spend(&mut self, file: u32, end: u64) -> bool {
        let Some(active) = self.active.get_mut(&file) else { return false };
        let more = cost_of(end).saturating_sub(active.spent_bytes);
        match self.spare_bytes.checked_sub(more) {
            Some(left) => {
                self.spare_bytes = left;
                active.spent_bytes += more;
                true
            }
            None => {
                self.fail(file, Reason::Quota.into(), Told::ByUs);
                false
            }
        }
    }

    fn on_complete(&mut self, tag: BlockTag) {
        let Some(incoming) = self.take_incoming(tag) else { return };
        let Incoming { root, length, came, .. } = incoming;
        let gathered = match incoming.place {
            Place::File(_) => Vec::new(),
            Place::Memory(gathered) => gathered.into_values().collect(),
        };
        let Some(file) = tag.file() else { return self.on_offer(gathered.concat().into()) };
        if let Some(active) = self.active.get_mut(&file) {
            active.blocks = active.blocks.saturating_sub(1);
        }
        match tag {
            BlockTag::Recipe { .. } => self.on_recipe(file, &gathered.concat()),
            BlockTag::Whole { .. } | BlockTag::Part { .. } if came < length => {
                let begins = if let BlockTag::Part { offset, .. } = tag { offset } else { 0 };
                if let Some(active) = self.active.get_mut(&file) {
                    active.skipped = Some(Skipped { root, begins, length });
                }
            }
            BlockTag::Packed { offset, .. } => self.write_packed(file, offset, gathered),
            BlockTag::Pieces { want, .. } => {
                if let Some(Active { stage: Stage::Patching(patch), .. }) =
                    self.active.get_mut(&file)
                {
                    patch.wants.retain(|(number, _)| *number != want);
                }
                self.want_pieces(file);
            }
            _ => {}
        }
        self.check_complete(file);
    }

    fn take_incoming(&mut self, tag: BlockTag) -> Option<Incoming> {
        let incoming = self.incoming.remove(&tag)?;
        if let Place::Memory(gathered) = &incoming.place {
            self.gathered_bytes -= gathered.values().map(Bytes::len).sum::<usize>();
        }
        Some(incoming)
    }

    fn write_packed(&mut self, file: u32, offset: u64, packed: Vec<Bytes>) {
        let size = self.offer.entry(file).and_then(|it| it.size()).unwrap_or(MAX_FILE_BYTES);
        let max_bytes = MAX_MEMORY_PART_BYTES.min(size.saturating_sub(offset));
        self.note_write(file);
        if let Some(active) = self.active.get_mut(&file) {
            active.came_packed = true;
            active.packed.insert(offset, packed.iter().map(|it| it.len() as u64).sum());
        }
        self.act(TakerAction::WritePacked { file, offset, max_bytes, packed });
    }

    /// The giver may find that packing does not pay, and send the rest of a file as one block, once nothing
    /// of it is in flight. This reports to the connection which chunks of that block are here.
    fn say_what_is_here(&mut self, file: u32) {
        let (size, root) = (self.offer.entry(file).and_then(|it| it.size()), self.root(file));
        let (Some(active), Some(size), Some(root)) = (self.active.get_mut(&file), size, root)
        else {
            return;
        };
        let is_coming = matches!(active.stage, Stage::Coming { .. });
        if !is_coming || active.blocks > 0 || active.writes > 0 {
            return;
        }
        if std::mem::take(&mut active.came_packed) {
            let chunks = whole_chunks(&active.here, size);
            self.act(TakerAction::HaveChunks { root, chunks });
        }
    }

    /// A block that was given up is a file that failed: the reason is its code.
    fn on_cancelled(&mut self, tag: BlockTag, code: u32) {
        if self.take_incoming(tag).is_none() {
            return;
        }
        let Some(file) = tag.file() else {
            return self.refuse(NOT_UNDERSTOOD, "the offer was given up");
        };
        if self.active.contains_key(&file) {
            self.fail(file, Reason::from_code(u64::from(code)).into(), Told::ByGiver);
        }
    }

    /// Declines all that is on its way of a file.
    pub(super) fn drop_blocks(&mut self, file: u32, reason: Reason) {
        let of_file: Vec<BlockTag> =
            self.incoming.keys().copied().filter(|tag| tag.file() == Some(file)).collect();
        for tag in of_file {
            self.take_incoming(tag);
            self.act(TakerAction::Decline { tag, code: reason as u32 });
        }
        if let Some(active) = self.active.get_mut(&file) {
            active.blocks = 0;
        }
    }
}

/// The longest recipe of a file of this size.
fn max_recipe_bytes(size: Option<u64>) -> u64 {
    (size.unwrap_or(0) / u64::from(MIN_PIECE_BYTES) + 1) * 20
}

/// Bytes of a block at an offset, as they are in the file.
fn at(spans: &[Range<u64>], offset: u64, data: Bytes) -> Vec<(u64, Bytes)> {
    let (mut skip, mut rest) = (offset, data);
    let mut found = Vec::new();
    for span in spans {
        let bytes = span.end - span.start;
        if skip >= bytes {
            skip -= bytes;
            continue;
        }
        let room = usize::try_from(bytes - skip).unwrap_or(usize::MAX);
        let here = rest.split_to(room.min(rest.len()));
        if here.is_empty() {
            break;
        }
        found.push((span.start + skip, here));
        skip = 0;
    }
    found
}

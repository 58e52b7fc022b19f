//! A file from an older version: its recipe and the pieces of the older one are compared, what is in both
//! is copied, and the other pieces are wanted.
//!
//! The disk takes whole chunks, and pieces end anywhere. So what came of a chunk is held until the rest of
//! it came too; that is never more than what is wanted at a time.

use std::collections::BTreeMap;
use std::ops::Range;

use bytes::Bytes;
use haulier_core::Instant;

use super::active::{Active, Patch, Stage};
use super::plan::CHUNK;
use super::{Taker, TakerAction};
use crate::giver::MAX_PIECES_BYTES;
use crate::messages::Form;
use crate::pieces::{Comparison, Copied, OlderPiece, Recipe};
use crate::ranges::Ranges;
use crate::reason::{Fault, NOT_UNDERSTOOD};

/// Wants for pieces that are on their way at a time, of all files: 16 MiB, which is also what may be held
/// until the chunks that it belongs to are whole.
const MAX_PIECE_WANTS: usize = 8;

/// Chunks of a file that are copied from the older version at a time: few, because chunks from the wire
/// wait for the same disk.
const MAX_COPIES: usize = 8;

/// Runs of pieces in a want: of all files that are compared, half of what a giver keeps.
const MAX_PORTION_RANGES: usize = 1024;

/// Files that are compared at a time: each has its recipe and the older one's in memory.
const MAX_COMPARED: usize = 4;

/// Less than one in so many bytes the same, and the file is wanted whole.
const MIN_SAME: u64 = 4;

/// A chunk that can be put together.
pub(super) struct Chunk {
    range: Range<u64>,
    copies: Vec<Copied>,
    came: Vec<(u64, Bytes)>,
}

impl Patch {
    fn new(recipe: Recipe, comparison: Comparison) -> Self {
        let mut missing = portions(&recipe, &comparison.missing);
        missing.reverse();
        let copies = comparison.copies;
        Self { wants: Vec::new(), missing, recipe, copies, came: BTreeMap::new(), next_chunk: 0 }
    }

    /// Whether nothing is left to be wanted.
    pub(super) fn is_done(&self) -> bool {
        self.missing.is_empty() && self.wants.is_empty()
    }

    fn range(&self, chunk: u64) -> Range<u64> {
        chunk * CHUNK..((chunk + 1) * CHUNK).min(self.recipe.bytes())
    }

    /// What the older version has of a range.
    fn copies_in(&self, range: &Range<u64>) -> Vec<Copied> {
        let first = self.copies.partition_point(|it| it.to + it.length <= range.start);
        let rest = self.copies.get(first..).unwrap_or_default();
        let inside = rest.iter().take_while(|it| it.to < range.end);
        inside
            .map(|it| {
                let (start, end) = (it.to.max(range.start), (it.to + it.length).min(range.end));
                Copied { from: it.from + (start - it.to), to: start, length: end - start }
            })
            .collect()
    }

    /// Keeps bytes that came, and returns the chunks that are whole with them.
    fn take(&mut self, mut offset: u64, mut data: Bytes) -> Vec<Chunk> {
        let mut whole = Vec::new();
        while !data.is_empty() {
            let chunk = offset / CHUNK;
            let range = self.range(chunk);
            let room = usize::try_from(range.end.saturating_sub(offset)).unwrap_or(0);
            if room == 0 {
                break;
            }
            let here = data.split_to(room.min(data.len()));
            let came = self.came.entry(chunk).or_default();
            let length = here.len() as u64;
            came.push((offset, here));
            offset += length;
            let bytes: u64 = came.iter().map(|(_, data)| data.len() as u64).sum();
            let copies = self.copies_in(&range);
            if bytes + copies.iter().map(|it| it.length).sum::<u64>() == range.end - range.start {
                let came = self.came.remove(&chunk).unwrap_or_default();
                whole.push(Chunk { range, copies, came });
            }
        }
        whole
    }

    /// The next chunk of which the older version has everything.
    fn next_copied(&mut self) -> Option<Chunk> {
        while self.next_chunk * CHUNK < self.recipe.bytes() {
            let range = self.range(self.next_chunk);
            self.next_chunk += 1;
            let copies = self.copies_in(&range);
            if copies.iter().map(|it| it.length).sum::<u64>() == range.end - range.start {
                return Some(Chunk { range, copies, came: Vec::new() });
            }
        }
        None
    }
}

impl Taker {
    /// The pieces of the older version of a file, or why there are none.
    pub fn handle_older(
        &mut self,
        now: Instant,
        file: u32,
        pieces: Result<Vec<OlderPiece>, Fault>,
    ) {
        if let Some(active) = self.active.get_mut(&file)
            && let Stage::Comparing { older, .. } = &mut active.stage
        {
            *older = Some(pieces.unwrap_or_default());
            self.compare_pieces(file);
            self.go_on(now);
        }
    }

    /// A file has an older version; there may be others before it.
    pub(super) fn compare_later(&mut self, file: u32) {
        if let Some(active) = self.active.get_mut(&file) {
            active.stage = Stage::Queued;
            self.to_compare.push_back(file);
        }
    }

    /// Begins comparisons while few are open.
    pub(super) fn compare_next(&mut self) {
        while !self.to_compare.is_empty() {
            let is_open =
                |it: &&Active| matches!(it.stage, Stage::Comparing { .. } | Stage::Patching(_));
            if self.active.values().filter(is_open).count() >= MAX_COMPARED {
                return;
            }
            let Some(file) = self.to_compare.pop_front() else { return };
            if matches!(self.active.get(&file), Some(Active { stage: Stage::Queued, .. })) {
                self.compare(file);
            }
        }
    }

    fn compare(&mut self, file: u32) {
        let want = self.send_want(file, Form::Recipe);
        if let Some(active) = self.active.get_mut(&file) {
            active.stage = Stage::Comparing { want, recipe: None, older: None };
        }
        self.act(TakerAction::CutOlder { file });
    }

    /// The recipe is here.
    pub(super) fn on_recipe(&mut self, file: u32, bytes: &[u8]) {
        let size = self.offer.entry(file).and_then(|it| it.size()).unwrap_or(0);
        let read = match Recipe::read(bytes, size) {
            Ok(recipe) => recipe,
            Err(error) => return self.refuse(NOT_UNDERSTOOD, &error.to_string()),
        };
        if let Some(active) = self.active.get_mut(&file)
            && let Stage::Comparing { recipe, .. } = &mut active.stage
        {
            *recipe = Some(read);
            self.compare_pieces(file);
        }
    }

    /// Once both are here: what is copied, and what is wanted.
    fn compare_pieces(&mut self, file: u32) {
        let Some(active) = self.active.get_mut(&file) else { return };
        let Stage::Comparing { recipe, older, .. } = &mut active.stage else { return };
        let (Some(_), Some(_)) = (&recipe, &older) else { return };
        let (recipe, older) = (recipe.take().unwrap_or_default(), older.take().unwrap_or_default());
        let comparison = Comparison::new(&recipe, &older);
        if comparison.copied_bytes() < recipe.bytes() / MIN_SAME {
            return self.want_any(file, &Ranges::new());
        }
        active.stage = Stage::Patching(Patch::new(recipe, comparison));
        self.want_pieces();
        self.copy_chunks(file);
    }

    /// Wants more pieces, while few wants are open: what is held until its chunk is whole is no more than
    /// these.
    pub(super) fn want_pieces(&mut self) {
        let files: Vec<u32> = self.active.keys().copied().collect();
        for file in files {
            while self.piece_wants() < MAX_PIECE_WANTS {
                let Some(patch) = self.patch(file) else { break };
                let Some(pieces) = patch.missing.pop() else { break };
                let spans: Vec<Range<u64>> =
                    pieces.iter().map(|it| patch.recipe.span(&it)).collect();
                let number = self.send_want(file, Form::Pieces(pieces));
                if let Some(patch) = self.patch(file) {
                    patch.wants.push((number, spans));
                }
            }
        }
    }

    fn piece_wants(&self) -> usize {
        let wants = self.active.values().map(|active| match &active.stage {
            Stage::Patching(patch) => patch.wants.len(),
            _ => 0,
        });
        wants.sum()
    }

    fn patch(&mut self, file: u32) -> Option<&mut Patch> {
        match &mut self.active.get_mut(&file)?.stage {
            Stage::Patching(patch) => Some(patch),
            _ => None,
        }
    }

    /// A pieces block is whole.
    pub(super) fn on_pieces(&mut self, file: u32, want: u32) {
        if let Some(patch) = self.patch(file) {
            patch.wants.retain(|(number, _)| *number != want);
        }
        self.want_pieces();
    }

    /// Bytes of pieces came: of chunks that they make whole, all is put together.
    pub(super) fn on_piece_bytes(&mut self, file: u32, offset: u64, data: Bytes) {
        let Some(patch) = self.patch(file) else { return };
        for chunk in patch.take(offset, data) {
            self.assemble(file, chunk);
        }
    }

    /// Chunks of which all is in the older version, a few at a time.
    pub(super) fn copy_chunks(&mut self, file: u32) {
        while self.active.get(&file).is_some_and(|active| active.writes < MAX_COPIES) {
            let Some(chunk) = self.patch(file).and_then(Patch::next_copied) else { return };
            self.assemble(file, chunk);
        }
    }

    fn assemble(&mut self, file: u32, chunk: Chunk) {
        let copied: u64 = chunk.copies.iter().map(|it| it.length).sum();
        self.note_write(file);
        self.progress.copied_bytes += copied;
        if let Some(active) = self.active.get_mut(&file) {
            active.copied_bytes += copied;
        }
        let Chunk { range, copies, came } = chunk;
        self.act(TakerAction::Assemble { file, range, copies, came });
    }

    /// The older version went away: the file is wanted as if there had been none.
    pub(super) fn give_up_older(&mut self, file: u32) {
        let Some(active) = self.active.get_mut(&file) else { return };
        if std::mem::replace(&mut active.older_is_gone, true) {
            return;
        }
        let copied = std::mem::take(&mut active.copied_bytes);
        self.progress.copied_bytes = self.progress.copied_bytes.saturating_sub(copied);
        self.want_any(file, &Ranges::new());
    }
}

/// The pieces that are missing, in portions that one want may ask for. A span of neighbours is no longer
/// than a portion: pieces are small beside it.
fn portions(recipe: &Recipe, missing: &Ranges) -> Vec<Ranges> {
    let mut portions = Vec::new();
    let (mut portion, mut bytes) = (Ranges::new(), 0);
    for piece in missing.iter().flatten() {
        let span = recipe.span(&(piece..piece + 1));
        let length = span.end - span.start;
        let is_full =
            portion.iter().len() >= MAX_PORTION_RANGES || bytes + length > MAX_PIECES_BYTES;
        if is_full && !portion.is_empty() {
            portions.push(std::mem::take(&mut portion));
            bytes = 0;
        }
        portion.insert(piece..piece + 1);
        bytes += length;
    }
    if !portion.is_empty() {
        portions.push(portion);
    }
    portions
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pieces::Piece;

    #[test]
    fn what_is_missing_is_wanted_in_portions() {
        let piece = Piece { length: 200_000, hash: [0; 16] };
        let recipe = Recipe::new(vec![piece; 1000]).unwrap();
        let missing = Ranges::from_iter([3..700, 800..900]);
        let portions = portions(&recipe, &missing);
        assert!(portions.len() == 80, "{}", portions.len());
        let bytes = |it: &Ranges| it.count() * 200_000;
        assert!(portions.iter().all(|it| bytes(it) <= MAX_PIECES_BYTES));
        let all: Ranges = portions.iter().flat_map(|it| it.iter()).collect();
        assert_eq!(all, missing);
        let odd: Ranges = (0..1000).map(|at| at * 2..at * 2 + 1).collect();
        let recipe = Recipe::new(vec![Piece { length: 20_000, hash: [0; 16] }; 2000]).unwrap();
        assert!(
            super::portions(&recipe, &odd).iter().all(|it| it.iter().len() <= MAX_PORTION_RANGES)
        );
    }
}

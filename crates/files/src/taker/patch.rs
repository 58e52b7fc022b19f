//! A file from an older version: its recipe and the pieces of the older one are compared, what is in both
//! is copied, and the other pieces are wanted.

use std::ops::Range;

use haulier_core::Instant;

use super::active::{Active, Patch, Stage};
use super::{Taker, TakerAction};
use crate::giver::MAX_PIECES_BYTES;
use crate::messages::Form;
use crate::pieces::{Comparison, OlderPiece, Recipe};
use crate::ranges::Ranges;
use crate::reason::{Fault, NOT_UNDERSTOOD};

/// Wants for pieces that are on their way at a time: the next blocks are made while these come.
const MAX_PIECE_WANTS: usize = 4;

/// Runs of pieces in a want: of all files that are compared, half of what a giver keeps.
const MAX_PORTION_RANGES: usize = 1024;

/// Files that are compared at a time: each has its recipe and the older one's in memory.
const MAX_COMPARED: usize = 4;

/// If fewer than one in this many bytes can be copied from the older version, the file is wanted whole.
const MIN_SAME: u64 = 4;

impl Patch {
    /// Whether nothing is left to be wanted or copied.
    pub(super) fn is_done(&self) -> bool {
        !self.is_copying && self.missing.is_empty() && self.wants.is_empty()
    }
}

impl Taker {
    /// The pieces of the older version of a file, or why it has no pieces.
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

    /// What was to be copied is in the file, or could not be copied.
    pub fn handle_copied(&mut self, now: Instant, file: u32, copied: Result<(), Fault>) {
        let Some(active) = self.active.get_mut(&file) else { return };
        let Stage::Patching(patch) = &mut active.stage else { return };
        if !std::mem::take(&mut patch.is_copying) {
            return;
        }
        match copied {
            Ok(()) => {
                let copied = std::mem::take(&mut active.copied_bytes_due);
                for range in copied.iter() {
                    active.here.insert(range);
                }
                active.copied_bytes = copied.count();
                active.verified_bytes += copied.count();
                self.progress.copied_bytes += copied.count();
                self.progress.verified_bytes += copied.count();
                self.check_complete(file);
            }
            // The older version went away: all that is not here yet is wanted.
            Err(_) => self.want_all(file),
        }
        self.go_on(now);
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
        active.copied_bytes_due =
            comparison.copies.iter().map(|it| it.to..it.to + it.length).collect();
        let mut missing = portions(&recipe, &comparison.missing);
        missing.reverse();
        active.stage =
            Stage::Patching(Patch { wants: Vec::new(), missing, recipe, is_copying: true });
        self.act(TakerAction::CopyPieces { file, copies: comparison.copies });
        self.want_pieces(file);
    }

    /// Wants more pieces, while few wants are open.
    pub(super) fn want_pieces(&mut self, file: u32) {
        loop {
            let Some(active) = self.active.get_mut(&file) else { return };
            let Stage::Patching(patch) = &mut active.stage else { return };
            if patch.wants.len() >= MAX_PIECE_WANTS {
                return;
            }
            let Some(pieces) = patch.missing.pop() else { return };
            let spans: Vec<Range<u64>> = pieces.iter().map(|it| patch.recipe.span(&it)).collect();
            let number = self.send_want(file, Form::Pieces(pieces));
            if let Some(active) = self.active.get_mut(&file)
                && let Stage::Patching(patch) = &mut active.stage
            {
                patch.wants.push((number, spans));
            }
        }
    }

    /// Gives the comparison up.
    fn want_all(&mut self, file: u32) {
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
        assert!(portions.len() == 3, "{}", portions.len());
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

//! What of a new file an old one has: what is copied, and what is wanted.
//!
//! The invariant: the steps, one after the other, are the new file, every byte of it once.

use std::collections::HashMap;
use std::ops::Range;

use super::Recipe;

/// Below a quarter the file is fetched whole: that saves the recipe's round trip the next time, and the whole is
/// verified chunk by chunk while it comes.
const MIN_SAME_OF_ALL: u64 = 4;

/// A stretch of the new file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// These bytes of the old file.
    Copy(Range<u64>),
    /// These pieces of the new file, which have so many bytes.
    Want {
        /// The pieces, by their index in the new recipe.
        pieces: Range<u32>,
        /// Their bytes.
        bytes: u64,
    },
}

/// How a new file is made of an old one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    steps: Vec<Step>,
    wanted_bytes: u64,
    length: u64,
}

impl Plan {
    /// The plan; `None` if less than a quarter of the new file is in the old one.
    pub fn new(old: &Recipe, new: &Recipe) -> Option<Self> {
        let key = |piece: &super::Piece| (piece.hash, piece.length);
        let known: HashMap<_, u64> =
            old.placed().map(|(start, piece)| (key(piece), start)).collect();
        let mut plan = Self { steps: Vec::new(), wanted_bytes: 0, length: new.length() };
        for (index, piece) in (0..).zip(new.pieces()) {
            let length = u64::from(piece.length);
            match known.get(&key(piece)) {
                Some(&start) => plan.copy(start..start + length),
                None => plan.want(index, length),
            }
        }
        let same_bytes = plan.length - plan.wanted_bytes;
        (same_bytes * MIN_SAME_OF_ALL >= plan.length).then_some(plan)
    }

    fn copy(&mut self, range: Range<u64>) {
        match self.steps.last_mut() {
            Some(Step::Copy(last)) if last.end == range.start => last.end = range.end,
            _ => self.steps.push(Step::Copy(range)),
        }
    }

    fn want(&mut self, index: u32, length: u64) {
        self.wanted_bytes += length;
        match self.steps.last_mut() {
            Some(Step::Want { pieces, bytes }) => {
                pieces.end = index + 1;
                *bytes += length;
            }
            _ => self.steps.push(Step::Want { pieces: index..index + 1, bytes: length }),
        }
    }

    /// The stretches of the new file, in order.
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// The pieces that are wanted, in runs: what the giver is asked for.
    pub fn wanted(&self) -> Vec<Range<u32>> {
        let wanted = self.steps.iter().filter_map(|step| match step {
            Step::Want { pieces, .. } => Some(pieces.clone()),
            Step::Copy(_) => None,
        });
        wanted.collect()
    }

    /// The bytes of these pieces.
    pub const fn wanted_bytes(&self) -> u64 {
        self.wanted_bytes
    }

    /// The bytes that are copied.
    pub const fn copied_bytes(&self) -> u64 {
        self.length - self.wanted_bytes
    }

    /// The length of the new file.
    pub const fn length(&self) -> u64 {
        self.length
    }
}

//! A file that is being taken, and what became of the others.

use std::collections::BTreeMap;
use std::ops::Range;

use super::blocks::Held;
use crate::offer::Root;
use crate::pieces::{OlderPiece, Recipe};
use crate::ranges::Ranges;

/// What became of a file. One byte for each of a million.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Status {
    /// Its turn has not come.
    Waiting,
    /// The taker does not want it.
    NotWanted,
    Active,
    /// Another file with the same content comes, and it will be a copy.
    Copying,
    /// It was here, or is stored.
    Done,
    Failed,
}

/// How far a file is.
#[derive(Debug)]
pub(super) enum Stage {
    /// The program looks which parts of it are on the disk; data that comes meanwhile is held.
    Inspecting(Vec<Held>),
    /// A file with its size and time is here. The giver is asked for the root; then the program looks again.
    Proving { is_known: bool },
    /// It comes whole or in parts. 0 stands for no want: the giver sends it unasked.
    Coming { want: u32 },
    /// It has an older version, and others are compared before it.
    Queued,
    /// Its recipe comes, and the older version is cut.
    Comparing { want: u32, recipe: Option<Recipe>, older: Option<Vec<OlderPiece>> },
    /// The older version's pieces are copied, and the others come.
    Patching(Patch),
    /// The program compares its root.
    Finishing,
}

/// The work that remains on a file that is put together from pieces.
#[derive(Debug, Default)]
pub(super) struct Patch {
    /// Wants that are not answered, each with where its pieces are in the file.
    pub(super) wants: Vec<(u32, Vec<Range<u64>>)>,
    /// Runs of pieces that are not wanted yet, the last first.
    pub(super) missing: Vec<Ranges>,
    pub(super) recipe: Recipe,
    pub(super) is_copying: bool,
}

/// A block of a file of which the connection delivered only a part, and where it begins in the file.
#[derive(Clone, Copy, Debug)]
pub(super) struct Skipped {
    pub(super) root: Root,
    pub(super) begins: u64,
    pub(super) length: u64,
}

/// A file that is being taken.
#[derive(Debug)]
pub(super) struct Active {
    pub(super) stage: Stage,
    /// The bytes that are here and written.
    pub(super) here: Ranges,
    /// Chunks that were handed out to be written.
    pub(super) writes: usize,
    /// Blocks of it that are on their way.
    pub(super) blocks: usize,
    /// Bytes of the blocks of it that were accepted, whether they were here before or not.
    pub(super) accepted_bytes: u64,
    /// Of a pipe: what was spent on it of the spare bytes.
    pub(super) spent_bytes: u64,
    /// Its length and root, once all parts were sent.
    pub(super) end: Option<(u64, Root)>,
    /// It was wrong once, and is fetched whole.
    pub(super) is_second_try: bool,
    /// A block of it that is complete, and of which chunks are missing; and how often they were wanted again.
    pub(super) skipped: Option<Skipped>,
    pub(super) skips: u8,
    /// Where its packed parts begin that are not written, and the bytes that they came in.
    pub(super) packed: BTreeMap<u64, u64>,
    /// Packed parts of it came after the last report to the connection of which chunks are here.
    pub(super) came_packed: bool,
    /// What came of it unasked was declined.
    pub(super) was_declined: bool,
    /// Its bytes in the progress: from a journal, from an older version, and all that are verified.
    pub(super) resumed_bytes: u64,
    pub(super) copied_bytes: u64,
    /// Where the bytes are that are being copied.
    pub(super) copied_bytes_due: Ranges,
    pub(super) verified_bytes: u64,
}

impl Active {
    pub(super) const fn new() -> Self {
        Self {
            stage: Stage::Inspecting(Vec::new()),
            here: Ranges::new(),
            writes: 0,
            blocks: 0,
            accepted_bytes: 0,
            spent_bytes: 0,
            end: None,
            is_second_try: false,
            skipped: None,
            skips: 0,
            packed: BTreeMap::new(),
            came_packed: false,
            was_declined: false,
            resumed_bytes: 0,
            copied_bytes: 0,
            copied_bytes_due: Ranges::new(),
            verified_bytes: 0,
        }
    }

    /// Chunks that are held until the program has looked.
    pub(super) fn held_chunks(&self) -> usize {
        match &self.stage {
            Stage::Inspecting(held) => held.iter().filter(|it| it.is_chunk()).count(),
            _ => 0,
        }
    }
}

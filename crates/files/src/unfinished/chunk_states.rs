//! What is known of each chunk of an unfinished file.
//!
//! The invariant: the counts are those of the list, so that nobody goes through all chunks of a large file to
//! learn whether any is missing.

use std::collections::{BTreeMap, VecDeque};

use haulier_proto::connection::ChunkValue;

use crate::ranges::Ranges;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// Nothing, or not all of it, is here.
    Missing,
    /// The journal says that it was on the disk.
    Unchecked,
    /// It is here, and verified.
    Here,
}

/// What is known of each chunk.
#[derive(Debug, Default)]
pub(super) struct Chunks {
    pub(super) list: Vec<(ChunkValue, State)>,
    /// Chunks to hash again.
    pub(super) to_check: VecDeque<u32>,
    pub(super) unchecked: usize,
    pub(super) missing: usize,
    /// Chunks that came in pieces, with the bytes of the file that are here of them.
    pub(super) partial: BTreeMap<u32, Ranges>,
    /// Chunks of zeros that take space, which the end gives back.
    pub(super) zeros: Ranges,
}

impl Chunks {
    pub(super) fn set(&mut self, index: u32, value: ChunkValue, state: State) {
        let place = index as usize;
        if place >= self.list.len() {
            self.missing += place + 1 - self.list.len();
            self.list.resize(place + 1, (ChunkValue::from_bytes([0; 32]), State::Missing));
        }
        let before = std::mem::replace(&mut self.list[place], (value, state)).1;
        self.missing -= usize::from(before == State::Missing);
        self.missing += usize::from(state == State::Missing);
        self.unchecked -= usize::from(before == State::Unchecked);
        self.unchecked += usize::from(state == State::Unchecked);
    }

    pub(super) fn state(&self, index: u32) -> State {
        self.list.get(index as usize).map_or(State::Missing, |(_, state)| *state)
    }
}

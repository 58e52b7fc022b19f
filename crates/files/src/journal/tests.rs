//! Journals that were cut, damaged or shuffled, and what may be believed of them.

use proptest::prelude::*;

use super::lines::{CHECKPOINT_BYTES, NOTE_BYTES};
use super::*;
use crate::chunks::CHUNK_BYTES;
use crate::model::{Faults, ModelDisk, ModelFile};

const CHUNKS: u32 = 40;

fn identity() -> FileIdentity {
    FileIdentity::new("world")
        .with_length(u64::from(CHUNKS) * CHUNK_BYTES as u64)
        .with_root([9; 32])
}

fn value(number: u32) -> ChunkValue {
    ChunkValue::from_bytes([number.to_le_bytes()[0] | 0x80; 32])
}

/// A journal with a note of each of these chunks, and a checkpoint behind every fifth, with one note less.
fn journal_of(indices: &[u32]) -> Vec<u8> {
    let disk = ModelDisk::new(1, Faults::default());
    let journal = Journal::create(disk.file("j"), &identity()).unwrap();
    for (number, &index) in (1..).zip(indices) {
        journal.note(index, value(number)).unwrap();
        if number % 5 == 0 {
            journal.checkpoint(number - 1).unwrap();
        }
    }
    disk.bytes("j")
}

fn file_with(bytes: &[u8]) -> ModelFile {
    let file = ModelDisk::new(1, Faults::default()).file("j");
    file.write_at(bytes, 0).unwrap();
    file
}

/// What a journal of these bytes says; nothing if it is of no use.
fn read(bytes: &[u8]) -> Vec<(u32, ChunkValue, Belief)> {
    match Journal::open(file_with(bytes), &identity()).unwrap() {
        Ok((_, recovered)) => recovered.chunks().collect(),
        Err(_) => Vec::new(),
    }
}

#[test]
fn what_a_checkpoint_does_not_cover_is_only_written() {
    let notes = read(&journal_of(&[7, 3, 20, 0, 5, 9]));
    let beliefs: Vec<_> = notes.iter().map(|&(index, _, belief)| (index, belief)).collect();
    let (synced, written) = (Belief::Synced, Belief::Written);
    assert_eq!(
        beliefs,
        [(0, synced), (3, synced), (5, written), (7, synced), (9, written), (20, synced)]
    );
}

/// A chunk that was found wrong and came again is not what the checkpoint was about.
#[test]
fn the_last_note_of_a_chunk_counts() {
    let notes = read(&journal_of(&[1, 2, 3, 4, 5, 2]));
    assert_eq!(notes[1], (2, value(6), Belief::Written));
    assert_eq!(notes[0], (1, value(1), Belief::Synced));
}

/// Cut at every byte: what stands before the cut is believed as before, and nothing else.
#[test]
fn a_journal_that_was_cut_ends_at_its_last_whole_line() {
    let indices: Vec<u32> = (0..12).collect();
    let whole = journal_of(&indices);
    let head = identity().to_bytes().0.len();
    for cut in 0..=whole.len() {
        let lines = cut.saturating_sub(head);
        // Five notes and a checkpoint are a group.
        let group = 5 * NOTE_BYTES + CHECKPOINT_BYTES;
        let notes = lines / group * 5 + (lines % group / NOTE_BYTES).min(5);
        let covered = (lines / group * 5).saturating_sub(1);
        let read = read(&whole[..cut]);
        assert_eq!(read.len(), notes, "cut at {cut}");
        let synced = read.iter().filter(|(_, _, belief)| *belief == Belief::Synced).count();
        assert_eq!(synced, covered, "cut at {cut}");
    }
}

/// What is appended to a journal that had a damaged end is read, and the damaged end is not.
#[test]
fn a_journal_goes_on_behind_its_last_whole_line() {
    let whole = journal_of(&[0, 1, 2, 3, 4, 5, 6, 7]);
    for cut in [1, NOTE_BYTES, 2 * NOTE_BYTES + 3] {
        let file = file_with(&whole);
        file.write_at(&[0xff], (whole.len() - cut) as u64).unwrap();
        let (journal, before) = Journal::open(file.clone(), &identity()).unwrap().unwrap();
        journal.note(30, value(99)).unwrap();
        journal.checkpoint(journal.notes()).unwrap();
        let (_, after) = Journal::open(file, &identity()).unwrap().unwrap();
        let mut wanted: Vec<_> = before.chunks().map(|(index, value, _)| (index, value)).collect();
        wanted.push((30, value(99)));
        assert!(after.chunks().map(|(index, value, _)| (index, value)).eq(wanted));
        assert!(after.chunks().all(|(_, _, belief)| belief == Belief::Synced));
    }
}

#[test]
fn a_journal_of_another_file_is_refused() {
    let file = file_with(&journal_of(&[0, 1]));
    let other = identity().with_root([8; 32]);
    assert_eq!(Journal::open(file, &other).unwrap().unwrap_err().1, JournalError::OtherFile);
    let nothing = Journal::open(file_with(b"no journal"), &other).unwrap();
    assert_eq!(nothing.unwrap_err().1, JournalError::NotAJournal);
}

/// Lines with good checks that no journal of this file can have.
#[test]
fn a_line_that_cannot_be_ends_the_journal() {
    let disk = ModelDisk::new(1, Faults::default());
    for (number, act) in [0, 1].into_iter().zip([
        (|journal| journal.note(CHUNKS, value(2))) as fn(&Journal<ModelFile>) -> io::Result<()>,
        |journal| journal.checkpoint(7),
    ]) {
        let file = disk.file(&format!("{number}"));
        let journal = Journal::create(file.clone(), &identity()).unwrap();
        journal.note(0, value(1)).unwrap();
        act(&journal).unwrap();
        journal.note(1, value(3)).unwrap();
        let (_, recovered) = Journal::open(file, &identity()).unwrap().unwrap();
        assert_eq!(recovered.chunks().collect::<Vec<_>>(), [(0, value(1), Belief::Written)]);
    }
}

proptest! {
    /// Any byte changed: every note before it is there, and no note that was never made.
    #[test]
    fn a_changed_byte_ends_the_journal(
        indices in proptest::collection::vec(0..CHUNKS, 1..40), place: prop::sample::Index, by in 1_u8..,
    ) {
        let mut bytes = journal_of(&indices);
        let place = place.index(bytes.len());
        bytes[place] ^= by;
        let head = identity().to_bytes().0.len();
        let group = 5 * NOTE_BYTES + CHECKPOINT_BYTES;
        let lines = place.saturating_sub(head);
        let intact = lines / group * 5 + (lines % group / NOTE_BYTES).min(5);
        let intact = if place < head { 0 } else { intact };
        let (now, before) = (read(&bytes), read(&journal_of(&indices[..intact])));
        let chunks = |notes: &[(u32, ChunkValue, Belief)]| -> Vec<_> {
            notes.iter().map(|&(index, value, _)| (index, value)).collect()
        };
        prop_assert_eq!(chunks(&now), chunks(&before));
        // The checkpoint behind the last of them may be what was changed.
        let is_synced = |&(_, _, belief): &(u32, ChunkValue, Belief)| belief == Belief::Synced;
        prop_assert!(now.iter().zip(&before).all(|(now, before)| !is_synced(now) || is_synced(before)));
    }

    /// Lines in another order, or some of them missing: only what stands before the first one out of place.
    #[test]
    fn lines_out_of_place_end_the_journal(from in 0_usize..20, to in 0_usize..20) {
        let disk = ModelDisk::new(1, Faults::default());
        let journal = Journal::create(disk.file("j"), &identity()).unwrap();
        (0..20).for_each(|index| journal.note(index, value(index)).unwrap());
        let bytes = disk.bytes("j");
        let (head, lines) = bytes.split_at(identity().to_bytes().0.len());
        let mut lines: Vec<&[u8]> = lines.chunks(NOTE_BYTES).collect();
        lines.swap(from, to);
        let swapped = [head, &lines.concat()].concat();
        let first = if from == to { 20 } else { from.min(to) };
        prop_assert_eq!(read(&swapped).len(), first);
        lines.swap(from, to);
        lines.remove(from);
        let shorter = [head, &lines.concat()].concat();
        prop_assert_eq!(read(&shorter).len(), from);
    }

    /// Whatever the file holds: no panic, and nothing is made up beyond its chunks.
    #[test]
    fn any_bytes_can_be_read(bytes: Vec<u8>, behind_a_head: bool) {
        let head = if behind_a_head { identity().to_bytes().0 } else { Vec::new() };
        prop_assert!(read(&[head, bytes].concat()).is_empty());
    }
}

//! Which file is next, which parts of it are on the disk, which parts are wanted, and when it is done.

use std::ops::Range;
use std::sync::Arc;

use haulier_core::Instant;

use super::active::{Active, Skipped, Stage, Status};
use super::{Ask, FinishError, Local, MAX_ACTIVE, Taker, TakerAction, TakerEvent, Told, Turn};
use crate::messages::{Form, Message, Want};
use crate::offer::{Content, Root, empty_root};
use crate::ranges::Ranges;
use crate::reason::{Fault, NOT_UNDERSTOOD, Reason};
use crate::tag::{MAX_FILE_BYTES, PART_UNIT};

/// Bytes of a chunk.
pub(super) const CHUNK: u64 = 1 << 18;

/// An older version is compared with a file of this size or more, in bytes: below, it is not worth a round
/// trip.
const MIN_COMPARED_BYTES: u64 = 1 << 20;

/// And with none larger, in bytes: the recipe would not be much shorter than it may be.
const MAX_COMPARED_BYTES: u64 = 32 << 30;

/// Ranges of a want that resumes a file: with as many files as are active, half of what a giver keeps.
const MAX_RESUMED_RANGES: usize = 64;

/// How often the missing chunks of a complete block are wanted again.
const MAX_SKIPS: u8 = 3;

/// A file that waited for another one with the same content.
#[derive(Debug)]
pub(super) enum Next {
    /// That one is here.
    Copy { file: u32, from: u32 },
    /// That one failed.
    Again(u32),
}

impl Taker {
    /// The program has looked which parts of a file are on the disk.
    pub fn handle_inspected(&mut self, now: Instant, file: u32, local: Local) {
        let Some(active) = self.active.get_mut(&file) else { return };
        let held = match &mut active.stage {
            Stage::Inspecting(held) => std::mem::take(held),
            Stage::Proving { is_known: true } => Vec::new(),
            _ => return,
        };
        active.stage = Stage::Coming { want: 0 };
        self.held_chunks =
            self.held_chunks.saturating_sub(held.iter().filter(|it| it.is_chunk()).count());
        match local {
            Local::Here => self.on_here(file),
            Local::Refused(fault) => self.refuse_file(file, fault),
            Local::Unproven if self.root(file).is_none() => self.prove(file),
            local if self.is_copy(file) => self.wait_for_copy(file, local),
            local => self.want(file, local),
        }
        for held in held {
            self.release(now, held);
        }
        self.check_complete(file);
        self.go_on(now);
    }

    /// A file has its name, or has not.
    pub fn handle_finished(&mut self, now: Instant, file: u32, finished: Result<(), FinishError>) {
        let Some(active) = self.active.get(&file) else { return };
        if !matches!(active.stage, Stage::Finishing) {
            return;
        }
        let is_copy = self.status(file) == Status::Copying;
        match finished {
            Ok(()) => self.on_stored(file, is_copy),
            Err(FinishError::Missing { chunks }) if !is_copy => self.want_lost(file, &chunks),
            Err(FinishError::WrongRoot | FinishError::Missing { .. }) if is_copy => {
                self.set_status(file, Status::Active);
                self.want_any(file, &Ranges::new());
            }
            Err(FinishError::WrongRoot | FinishError::Missing { .. }) => self.try_again(file),
            Err(FinishError::Fault(fault)) => self.fail(file, fault, Told::ByUs),
        }
        self.go_on(now);
    }

    /// Takes up files while there is room, and ends when none is left.
    pub(super) fn go_on(&mut self, now: Instant) {
        if self.turn != Turn::Taking {
            return;
        }
        while self.active.len() < MAX_ACTIVE {
            match self.queue.pop_front() {
                Some(next) => self.begin(next),
                None if self.cursor < self.offer.len() => self.advance(),
                None => break,
            }
        }
        self.compare_next();
        self.want_what_waited();
        if self.active.is_empty() && self.cursor >= self.offer.len() {
            self.progress(now);
            self.finish();
        }
    }

    /// The next file of the plan.
    fn advance(&mut self) {
        let file = self.cursor;
        self.cursor += 1;
        match self.status(file) {
            Status::Waiting => self.take_up(file),
            // What goes unasked would come for nothing.
            Status::NotWanted if self.config.ask != Ask::Open => {
                self.send(&Message::Refused { file, fault: Reason::NotWanted.into() });
            }
            _ => {}
        }
    }

    /// A file that waited for another one with the same content.
    fn begin(&mut self, next: Next) {
        match next {
            Next::Copy { file, from } if self.status(file) == Status::Copying => {
                self.copy(file, from);
            }
            Next::Again(file) if self.status(file) == Status::Copying => {
                self.take_up(file);
                if let Some(active) = self.active.get_mut(&file) {
                    active.was_declined = true;
                }
            }
            _ => {}
        }
    }

    /// A file's turn has come.
    pub(super) fn take_up(&mut self, file: u32) {
        self.set_status(file, Status::Active);
        let mut active = Active::new();
        let is_directory =
            self.offer.entry(file).is_some_and(|it| it.content == Content::Directory);
        if is_directory {
            active.stage = Stage::Finishing;
            self.act(TakerAction::MakeDirectory { file });
        } else {
            self.act(TakerAction::Inspect { file });
        }
        self.active.insert(file, active);
    }

    fn on_here(&mut self, file: u32) {
        let size = self.offer.entry(file).and_then(|it| it.size()).unwrap_or(0);
        self.progress.here_bytes += size;
        self.progress.verified_bytes += size;
        self.events.push_back(TakerEvent::Here { file });
        self.conclude(file);
    }

    fn on_stored(&mut self, file: u32, is_copy: bool) {
        if is_copy {
            let size = self.offer.entry(file).and_then(|it| it.size()).unwrap_or(0);
            self.progress.copied_bytes += size;
            self.progress.verified_bytes += size;
        }
        self.events.push_back(TakerEvent::Stored { file });
        self.conclude(file);
    }

    /// A file is here: the giver hears of it, and its copies are made.
    fn conclude(&mut self, file: u32) {
        self.drop_blocks(file, Reason::NotWanted);
        self.active.remove(&file);
        self.set_status(file, Status::Done);
        self.count_done(file);
        self.send(&Message::Stored { file });
        if let Some(&root) = self.offer.entry(file).and_then(|it| it.root()) {
            self.contents.entry(root).or_insert(file);
        }
        let copies = self.copies.remove(&file).unwrap_or_default();
        self.queue.extend(copies.into_iter().map(|copy| Next::Copy { file: copy, from: file }));
    }

    fn refuse_file(&mut self, file: u32, fault: Fault) {
        self.send(&Message::Refused { file, fault: fault.clone() });
        self.fail(file, fault, Told::ByGiver);
    }

    /// Whether another file with the same content is here or on its way; if not, this one is it.
    fn is_copy(&mut self, file: u32) -> bool {
        let Some(&Content::Known { size: 1.., root }) =
            self.offer.entry(file).map(|it| &it.content)
        else {
            return false;
        };
        let first = *self.contents.entry(root).or_insert(file);
        if first != file && self.status(first) == Status::Failed {
            self.contents.insert(root, file);
            return false;
        }
        first != file
    }

    fn wait_for_copy(&mut self, file: u32, local: Local) {
        let root = self.offer.entry(file).and_then(|it| it.root());
        let Some(&first) = root.and_then(|root| self.contents.get(root)) else {
            return self.want(file, local);
        };
        self.set_status(file, Status::Copying);
        if self.status(first) == Status::Done {
            self.copy(file, first);
        } else {
            self.active.remove(&file);
            self.copies.entry(first).or_default().push(file);
        }
    }

    fn copy(&mut self, file: u32, from: u32) {
        let mut active = Active::new();
        active.stage = Stage::Finishing;
        self.active.insert(file, active);
        self.act(TakerAction::CopyFile { file, from });
    }

    /// Files that would have been copies of one that failed are taken up as if it were their turn.
    pub(super) fn free_copies(&mut self, file: u32) {
        let copies = self.copies.remove(&file).unwrap_or_default();
        self.queue.extend(copies.into_iter().map(Next::Again));
    }

    /// Asks for what is not here.
    pub(super) fn want(&mut self, file: u32, local: Local) {
        let Some(entry) = self.offer.entry(file) else { return };
        let (content, size) = (entry.content, entry.size());
        match local {
            // Nothing will come, because there is nothing.
            _ if size == Some(0) => self.await_any(file, 0),
            Local::Partial { chunks } if size.is_some() => {
                self.resume(file, size.unwrap_or(0), &chunks);
            }
            Local::Older if is_compared(&content) => self.compare_later(file),
            _ if self.comes_unasked(file) => self.await_any(file, 0),
            _ => self.want_any(file, &Ranges::new()),
        }
    }

    /// Asks for the root of a file, which may be here. A giver says it when all that was wanted was sent: one
    /// part, which is declined.
    fn prove(&mut self, file: u32) {
        self.send_want(file, Form::Any(Ranges::from_iter([0..1])));
        if let Some(active) = self.active.get_mut(&file) {
            active.stage = Stage::Proving { is_known: false };
            active.was_declined = true;
        }
    }

    /// The giver has said the root of a file that may be here: as if it had been offered with it.
    fn look_again(&mut self, file: u32, root: Root) {
        // One copy at most, for whoever else has the list keeps it as it was.
        Arc::make_mut(&mut self.offer).learn(file, root);
        self.learned.insert(file);
        if let Some(active) = self.active.get_mut(&file) {
            active.stage = Stage::Proving { is_known: true };
        }
        self.act(TakerAction::Inspect { file });
    }

    fn is_second_try(&self, file: u32) -> bool {
        self.active.get(&file).is_some_and(|active| active.is_second_try)
    }

    fn comes_unasked(&self, file: u32) -> bool {
        self.config.ask == Ask::Get
            && self.active.get(&file).is_some_and(|active| !active.was_declined)
    }

    fn await_any(&mut self, file: u32, want: u32) {
        if let Some(active) = self.active.get_mut(&file) {
            active.stage = Stage::Coming { want };
        }
        self.check_complete(file);
    }

    /// Asks for the parts of a file in these units of 1 MiB; for all of it if `units` is empty.
    pub(super) fn want_any(&mut self, file: u32, units: &Ranges) {
        let units = units.clone().with_at_most(MAX_RESUMED_RANGES);
        let want = self.send_want(file, Form::Any(units));
        self.await_any(file, want);
    }

    /// Sends a want, and returns its number. Except for pieces, it replaces the earlier wants of the file.
    pub(super) fn send_want(&mut self, file: u32, form: Form) -> u32 {
        if !matches!(form, Form::Pieces(_)) {
            self.drop_blocks(file, Reason::NotWanted);
        }
        self.last_want = self.last_want.saturating_add(1);
        self.send(&Message::Want(Want { number: self.last_want, file, form }));
        self.last_want
    }

    /// Goes on from a journal.
    fn resume(&mut self, file: u32, size: u64, chunks: &Ranges) {
        let here = bytes_of(chunks, size);
        let root = self.root(file);
        let missing = here.missing_below(size);
        let Some(active) = self.active.get_mut(&file) else { return };
        active.resumed_bytes = here.count();
        active.verified_bytes = here.count();
        active.here = here;
        self.progress.resumed_bytes += active.resumed_bytes;
        self.progress.verified_bytes += active.resumed_bytes;
        if missing.is_empty() && root.is_some() {
            return self.await_any(file, 0);
        }
        if let Some(root) = root {
            self.act(TakerAction::HaveChunks { root, chunks: chunks.clone() });
        }
        // All is here, but the root is not known: the taker wants one more part, and the giver adds the root.
        let missing = if missing.is_empty() { Ranges::from_iter([0..1]) } else { missing };
        self.want_any(file, &missing.in_units(PART_UNIT));
    }

    /// The root that a file has to have, as far as it was said.
    pub(super) fn root(&self, file: u32) -> Option<Root> {
        self.offer.entry(file).and_then(|it| it.root()).copied().or(self.config.expected_root)
    }

    /// The giver has sent all parts.
    pub(super) fn on_end(&mut self, now: Instant, file: u32, length: u64, root: Root) {
        let Some(entry) = self.offer.entry(file) else {
            return self.refuse(NOT_UNDERSTOOD, "no such file");
        };
        let size = entry.size();
        let expected = self.root(file);
        let Some(active) = self.active.get_mut(&file) else { return };
        let is_proving = match active.stage {
            Stage::Coming { .. } if active.end.is_none() => false,
            Stage::Proving { is_known: false } => true,
            _ => return,
        };
        if size.is_some_and(|size| size != length)
            || expected.is_some_and(|expected| expected != root)
        {
            let fault = Fault::new(Reason::Changed, "it is not what was offered");
            self.fail(file, fault, Told::ByUs);
        } else if is_proving {
            self.look_again(file, root);
        } else {
            active.end = Some((length, root));
            if size.is_none() {
                self.progress.wanted_bytes = self.progress.wanted_bytes.saturating_add(length);
            }
            self.check_complete(file);
        }
        self.go_on(now);
    }

    /// Whether all of a file is here, and if so, has it compared and named.
    pub(super) fn check_complete(&mut self, file: u32) {
        let Some(size) = self.offer.entry(file).map(|it| it.size()) else { return };
        let known = self.root(file);
        let Some(active) = self.active.get_mut(&file) else { return };
        let is_open = match &active.stage {
            Stage::Coming { .. } => true,
            Stage::Patching(patch) => patch.is_done(),
            _ => false,
        };
        let size = size.or(active.end.map(|(length, _)| length));
        let empty = (size == Some(0)).then(empty_root);
        let root = known.or(active.end.map(|(_, root)| root)).or(empty);
        let (Some(size), Some(root)) = (size, root) else { return };
        if !is_open || active.writes > 0 || active.blocks > 0 {
            return;
        }
        if active.here == Ranges::up_to(size) {
            active.stage = Stage::Finishing;
            self.act(TakerAction::Finish { file, size, root });
        } else if let Some(skipped) = active.skipped.take() {
            self.want_skipped(file, skipped, size);
        }
    }

    /// The connection did not deliver all chunks of a complete block, because some were reported to it as
    /// here: another file with the same root was resumed, or the disk has lost them. They are wanted again,
    /// once no other file needs the chunks that were reported for that root.
    fn want_skipped(&mut self, file: u32, skipped: Skipped, size: u64) {
        let Skipped { root, begins, .. } = skipped;
        let is_stream = self.offer.entry(file).is_some_and(|it| it.content == Content::Stream);
        let mut others = self.active.iter().filter(|&(&it, _)| self.root(it) == Some(root));
        let is_needed = others.any(|(&other, it)| {
            let is_coming = matches!(it.stage, Stage::Coming { .. });
            other != file && is_coming && (it.skipped.is_none() || other < file)
        });
        let Some(active) = self.active.get_mut(&file) else { return };
        if is_needed {
            active.skipped = Some(skipped);
            return;
        }
        if is_stream || active.skips >= MAX_SKIPS {
            let fault = Fault::new(Reason::WrongRoot, "some of it never came");
            return self.fail(file, fault, Told::ByUs);
        }
        (active.skips, active.accepted_bytes) = (active.skips + 1, 0);
        let missing = active.here.missing_below(size).in_units(PART_UNIT);
        let (first, end) = (begins / CHUNK, (begins + skipped.length).div_ceil(CHUNK));
        let of_block = |it: Range<u64>| it.start.max(first)..it.end.min(end);
        let here = whole_chunks(&active.here, size);
        let here = here.iter().map(of_block).filter(|it| it.start < it.end);
        let chunks = here.map(|it| it.start - first..it.end - first).collect();
        self.act(TakerAction::HaveChunks { root, chunks });
        self.want_any(file, &missing);
    }

    /// What waited for another file with the same root.
    fn want_what_waited(&mut self) {
        let skipped = self.active.iter().filter(|(_, it)| it.skipped.is_some());
        let files: Vec<u32> = skipped.map(|(&file, _)| file).collect();
        files.into_iter().for_each(|file| self.check_complete(file));
    }

    /// The disk has lost some chunks of a file that was all here: these come once more.
    fn want_lost(&mut self, file: u32, chunks: &Ranges) {
        let size = self.offer.entry(file).and_then(|it| it.size()).unwrap_or(0);
        let here = bytes_of(chunks, size);
        let missing = here.missing_below(size);
        if missing.is_empty() {
            return self.try_again(file);
        }
        let root = self.root(file);
        let Some(active) = self.active.get_mut(&file) else { return };
        let lost_bytes = missing.count();
        (active.here, active.skipped) = (here, None);
        // Counted anew: no sender has this disk lose anything, and it may send the whole file for a chunk.
        active.accepted_bytes = 0;
        active.verified_bytes = active.verified_bytes.saturating_sub(lost_bytes);
        self.progress.verified_bytes = self.progress.verified_bytes.saturating_sub(lost_bytes);
        if let Some(root) = root {
            self.act(TakerAction::HaveChunks { root, chunks: chunks.clone() });
        }
        self.want_any(file, &missing.in_units(PART_UNIT));
    }

    /// The file that was put together is wrong: it is fetched once more, whole, without any byte on the disk.
    fn try_again(&mut self, file: u32) {
        let size = self.offer.entry(file).and_then(|it| it.size());
        let root = self.root(file);
        let is_last = self.is_second_try(file) || size.is_none();
        let Some(active) = self.active.get_mut(&file) else { return };
        if is_last {
            let fault = Fault::from(Reason::WrongRoot);
            self.act(TakerAction::Discard { file });
            return self.fail(file, fault, Told::ByUs);
        }
        let mut fresh = Active::new();
        fresh.is_second_try = true;
        let old = std::mem::replace(active, fresh);
        let progress = &mut self.progress;
        progress.verified_bytes = progress.verified_bytes.saturating_sub(old.verified_bytes);
        progress.resumed_bytes = progress.resumed_bytes.saturating_sub(old.resumed_bytes);
        progress.copied_bytes = progress.copied_bytes.saturating_sub(old.copied_bytes);
        self.act(TakerAction::Discard { file });
        if let Some(root) = root {
            self.act(TakerAction::HaveChunks { root, chunks: Ranges::new() });
        }
        self.events.push_back(TakerEvent::Again { file });
        let want = self.send_want(file, Form::Whole);
        self.await_any(file, want);
    }
}

fn is_compared(content: &Content) -> bool {
    matches!(content, Content::Known { size: MIN_COMPARED_BYTES..=MAX_COMPARED_BYTES, .. })
}

/// The bytes of these chunks.
fn bytes_of(chunks: &Ranges, size: u64) -> Ranges {
    chunks.iter().map(|it| at_chunk(it.start)..at_chunk(it.end).min(size)).collect()
}

/// The chunks all of whose bytes are among these.
pub(super) fn whole_chunks(bytes: &Ranges, size: u64) -> Ranges {
    let whole = |it: Range<u64>| {
        let end = if it.end == size { it.end.div_ceil(CHUNK) } else { it.end / CHUNK };
        it.start.div_ceil(CHUNK)..end
    };
    bytes.iter().map(whole).filter(|it| !it.is_empty()).collect()
}

/// Where a chunk begins. A journal's numbers are the program's, and still nothing overflows.
fn at_chunk(index: u64) -> u64 {
    index.min(MAX_FILE_BYTES / CHUNK) * CHUNK
}

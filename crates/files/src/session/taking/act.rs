//! What the taker asks for, done: on the connection, by the writers, or as a job of the pool.
//!
//! The invariant: each write that the taker asked for is answered once, also those of an abandoned file.

use std::collections::{HashSet, VecDeque};
use std::path::Path;
use std::sync::Arc;

use super::targets::{Target, Waiting, in_chunks};
use super::{Answer, Place, Taking};
use crate::cut::{Cutter, older_pieces};
use crate::offer::{Offer, OfferError, Root};
use crate::pieces::{Copied, Piece};
use crate::ranges::Ranges;
use crate::reader::SourceFile;
use crate::reason::{DONE, Fault, INCOMPLETE, Reason};
use crate::session::Link;
use crate::session::fetched::Fetched;
use crate::session::inspect::{Inspection, Leave, inspect, make_folders};
use crate::session::shared::{SLICE_BYTES, Shared};
use crate::taker::{FinishError, TakerAction};
use crate::writer::Replace;

impl Taking {
    pub(super) fn on_answer(&mut self, answer: Answer) {
        let now = self.clock.now();
        match answer {
            Answer::Inspected { file, inspection } if self.waits_for(file, &inspection) => {}
            Answer::Inspected { file, inspection } => {
                let Inspection { local, writer, older, words, .. } = *inspection;
                self.words.extend(words.map(|words| (file, words)));
                if let Some(writer) = writer {
                    let (copies, copying) = (VecDeque::new(), HashSet::new());
                    let (is_copying, whole_copy, is_finishing) = (false, None, false);
                    let target = Target {
                        writer,
                        older,
                        writes: 0,
                        copies,
                        copying,
                        is_copying,
                        whole_copy,
                        is_finishing,
                    };
                    self.targets.insert(file, target);
                }
                self.taker.handle_inspected(now, file, local);
                if self.taker.is_over() {
                    // Nobody would close it, and its file would stay locked.
                    self.targets.remove(&file);
                }
            }
            Answer::Older { file, pieces } => self.taker.handle_older(now, file, pieces),
            Answer::Offer(offer) => self.taker.handle_offer(offer),
            Answer::Folder { file, made } => {
                // The giver hears nothing of the paths here.
                let made = made.map_err(|fault| {
                    self.words.insert(file, fault.to_string());
                    Fault::from(fault.reason)
                });
                self.taker.handle_finished(now, file, made.map_err(FinishError::Fault));
            }
        }
    }

    pub(super) fn act(&mut self, link: &impl Link, action: TakerAction) {
        match action {
            TakerAction::SendMessage(message) => self.outbox.0.push_back(message),
            TakerAction::Admit { .. } => self.is_admission_due = true,
            TakerAction::ReadOffer { list } => {
                // Few at a time: each takes some 70 MB while it is read and compared.
                self.jobs.run_when_idle(
                    move || Ok(Offer::read(&list)),
                    |offer| Answer::Offer(offer.unwrap_or(Err(OfferError::TooLong))),
                );
            }
            TakerAction::HaveChunks { root, chunks } => link.have_chunks(root, bitmap(&chunks)),
            TakerAction::Decline { tag, code } => {
                if let Some(block) = self.numbers.remove(&tag.to_u64()) {
                    link.decline_block(block, code);
                }
            }
            TakerAction::Write { file, offset, data, value } => {
                self.waiting.push_back(Waiting::Write(file, offset, data, value));
            }
            TakerAction::WritePacked { file, offset, max_bytes, packed } => {
                self.waiting.push_back(Waiting::Packed(file, offset, max_bytes, packed));
            }
            TakerAction::CopyPieces { file, copies } => {
                if let Some(target) = self.targets.get_mut(&file) {
                    target.copies = copies.into_iter().flat_map(in_chunks).collect();
                    target.is_copying = true;
                }
            }
            TakerAction::CopyFile { file, from } => self.copy_file(file, from),
            TakerAction::Finish { file, size, root } => {
                self.roots.insert(file, (size, root));
                self.list(file, size, &root);
                if let Some(target) = self.targets.get_mut(&file) {
                    target.writer.finish(size, root);
                    target.is_finishing = true;
                }
            }
            TakerAction::Discard { file } => {
                if let Some(target) = self.targets.get_mut(&file) {
                    target.writer.discard();
                    (target.is_copying, target.whole_copy) = (false, None);
                    target.copies.clear();
                }
            }
            TakerAction::Abandon { file } => self.abandon(file),
            TakerAction::Close { code, reason } if code == DONE || code == INCOMPLETE => {
                self.closing = Some((code, reason, self.clock.now()));
            }
            TakerAction::Close { code, reason } => {
                self.outbox.send(link);
                link.close(code, &reason);
            }
            TakerAction::Inspect { .. }
            | TakerAction::CutOlder { .. }
            | TakerAction::MakeDirectory { .. } => self.ask_disk(&action),
        }
    }

    pub(super) fn inspect(&mut self, file: u32, is_again: bool) {
        let (Some(entry), Some(path)) = (self.offer().entry(file), self.path_of(file)) else {
            return;
        };
        let entry = entry.clone();
        let root = entry.root().copied().or(self.expected_root);
        let base = match &self.place {
            Place::Folder(base) => Some(base.clone()),
            Place::File(_) => None,
        };
        let pool = self.jobs.pool.clone();
        let has_fetched = |it: &Fetched| it.has(&entry, root.as_ref());
        let leave = Leave {
            replace: self.replace,
            keeps_attributes: self.keeps_attributes,
            compares: self.is_inbox
                || self.replace == Replace::File
                || self.fetched.as_ref().is_some_and(has_fetched),
        };
        let look = move || {
            let (base, offered) = (base.as_deref(), (&entry, root));
            Ok(inspect(&pool, base, &path, offered, leave, is_again))
        };
        self.jobs.run(look, move |found| {
            let inspection = Box::new(found.unwrap_or_else(Inspection::failed));
            Answer::Inspected { file, inspection }
        });
    }

    fn ask_disk(&mut self, action: &TakerAction) {
        match *action {
            TakerAction::Inspect { file } => self.inspect(file, false),
            TakerAction::CutOlder { file } => {
                let older = self.targets.get(&file).and_then(|target| target.older.clone());
                let ticket = self.jobs.ticket(move |pieces: Result<Vec<Piece>, Fault>| {
                    Answer::Older { file, pieces: pieces.map(older_pieces) }
                });
                let Some(older) = older else {
                    return ticket.answer(Err(Reason::Unreadable.into()));
                };
                let mut cutter = Cutter::new(older);
                let slice = move || {
                    let pieces = cutter.next_pieces(SLICE_BYTES).map_err(|error| error.fault());
                    pieces.transpose()
                };
                // This one alone wants it, and still it is to hold up nobody else.
                Shared::want(&Arc::default(), &self.jobs.pool, ticket, slice);
            }
            TakerAction::MakeDirectory { file } => {
                let (Place::Folder(base), Some(path)) = (self.place.clone(), self.path_of(file))
                else {
                    return;
                };
                let make = move || make_folders(&base, &path.join("inside")).map(drop);
                self.jobs.run(make, move |made| Answer::Folder { file, made });
            }
            _ => {}
        }
    }

    /// Lets go of a file. What of it was still to be written is answered, for the taker counts it.
    pub(super) fn abandon(&mut self, file: u32) {
        let now = self.clock.now();
        let writes = self.targets.remove(&file).map_or(0, |target| target.writes);
        for _ in 0..writes {
            self.taker.handle_written(now, file, Err(Reason::Interrupted.into()));
        }
    }

    /// A file is about to get its name: the next fetch may know it.
    fn list(&mut self, file: u32, size: u64, root: &Root) {
        if let (Some(fetched), Some(entry)) = (&mut self.fetched, self.taker.offer().entry(file)) {
            fetched.add(entry, size, root);
        }
    }

    /// A file whose content another one has is copied from that one.
    fn copy_file(&mut self, file: u32, from: u32) {
        let now = self.clock.now();
        let source = self.path_of(from).and_then(|path| open(&path));
        let known = self.root_of(file).filter(|_| source.is_some());
        if let Some((size, root)) = known {
            self.list(file, size, &root);
        }
        let (Some(target), Some((size, root))) = (self.targets.get_mut(&file), known) else {
            // As if it were another content: then it is fetched.
            return self.taker.handle_finished(now, file, Err(FinishError::WrongRoot));
        };
        target.older = source;
        target.copies = in_chunks(Copied { from: 0, to: 0, length: size }).collect();
        target.is_copying = true;
        target.whole_copy = Some((size, root));
    }
}

fn open(path: &Path) -> Option<Arc<SourceFile>> {
    SourceFile::open(path).ok().map(Arc::new)
}

/// As the connection wants them: bit `i` is chunk `i`.
fn bitmap(chunks: &Ranges) -> Vec<u8> {
    let end = chunks.iter().last().map_or(0, |range| range.end);
    let mut map = vec![0; usize::try_from(end.div_ceil(8)).unwrap_or_default()];
    for index in chunks.iter().flatten() {
        if let Some(byte) = usize::try_from(index / 8).ok().and_then(|at| map.get_mut(at)) {
            *byte |= 1 << (index % 8);
        }
    }
    map
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_that_are_here_are_bits() {
        assert_eq!(bitmap(&Ranges::from_iter([0..2, 9..10])), [3, 2]);
        assert!(bitmap(&Ranges::new()).is_empty());
    }
}

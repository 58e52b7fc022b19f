//! The files that are being written: what goes to their writers, and what those have to say.
//!
//! The invariant: what found no room stays at the front of what waits, so bytes go to the writers in the
//! order in which they came.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;

use bytes::Bytes;
use haulier_proto::connection::ChunkValue;

use super::Taking;
use crate::chunks::CHUNK_BYTES;
use crate::offer::Root;
use crate::pieces::Copied;
use crate::reader::SourceFile;
use crate::reason::Reason;
use crate::taker::FinishError;
use crate::writer::{Assembly, FileWriter, Full, WriteState};

/// Copies that go to the disk at a time leave this room for what comes over the network, in chunks.
const ROOM_FOR_NETWORK: usize = 8;

/// Bytes that wait for room.
pub(super) enum Waiting {
    Write(u32, u64, Bytes, Option<ChunkValue>),
    Packed(u32, u64, u64, Vec<Bytes>),
}

/// A file that is being written.
pub(super) struct Target {
    pub(super) writer: FileWriter,
    pub(super) older: Option<Arc<SourceFile>>,
    /// What was given to the writer, and was not said to be written.
    pub(super) writes: usize,
    /// What is to be copied, a chunk at most each, and the places of what is being copied.
    pub(super) copies: VecDeque<Copied>,
    pub(super) copying: HashSet<u64>,
    pub(super) is_copying: bool,
    /// It is a copy of another file, and has this root in the end.
    pub(super) whole_copy: Option<(u64, Root)>,
    pub(super) is_finishing: bool,
}

impl Taking {
    /// Gives what waits to the writers; `false` if nothing was there or the rest of it has to wait.
    pub(super) fn push_waiting(&mut self) -> bool {
        let mut is_any = false;
        while let Some(waiting) = self.waiting.pop_front() {
            is_any = true;
            let (Waiting::Write(file, ..) | Waiting::Packed(file, ..)) = waiting;
            let Some(target) = self.targets.get_mut(&file) else {
                let gone = Err(Reason::Interrupted.into());
                self.taker.handle_written(self.clock.now(), file, gone);
                continue;
            };
            let back = match waiting {
                Waiting::Write(file, offset, bytes, value) => {
                    let pushed = match value {
                        Some(value) => target.writer.push_chunk(offset, bytes, value),
                        None => target.writer.push(offset, bytes),
                    };
                    pushed.err().map(|Full(bytes)| Waiting::Write(file, offset, bytes, value))
                }
                Waiting::Packed(file, offset, max_bytes, packed) => {
                    let pushed = target.writer.push_packed(offset, max_bytes, packed);
                    pushed.err().map(|Full(it)| Waiting::Packed(file, offset, max_bytes, it))
                }
            };
            if let Some(back) = back {
                self.waiting.push_front(back);
                return false;
            }
            target.writes += 1;
        }
        is_any
    }

    pub(super) fn push_copies(&mut self) {
        for target in self.targets.values_mut().filter(|target| target.is_copying) {
            let Some(older) = target.older.clone() else { continue };
            while self.jobs.pool.room() > ROOM_FOR_NETWORK
                && let Some(copy) = target.copies.pop_front()
            {
                let range = copy.to..copy.to + copy.length;
                let assembly = Assembly { range, copies: vec![copy], came: Vec::new() };
                if target.writer.push_assembly(&older, assembly).is_err() {
                    target.copies.push_front(copy);
                    break;
                }
                target.copying.insert(copy.to);
            }
        }
    }

    /// What the writers have to say.
    pub(super) fn poll_targets(&mut self) {
        let now = self.clock.now();
        let files: Vec<u32> = self.targets.keys().copied().collect();
        for file in files {
            let Some(target) = self.targets.get_mut(&file) else { continue };
            let state = match target.writer.poll() {
                Ok(state) => state,
                Err(error) => {
                    self.words.insert(file, error.to_string());
                    let is_finishing = target.is_finishing || target.whole_copy.is_some();
                    if is_finishing {
                        let failed = Err(FinishError::Fault(error.fault()));
                        self.taker.handle_finished(now, file, failed);
                    } else {
                        target.writes = target.writes.saturating_sub(1);
                        self.taker.handle_written(now, file, Err(error.fault()));
                    }
                    self.abandon(file);
                    continue;
                }
            };
            let mut written = Vec::new();
            while let Some(range) = target.writer.take_written() {
                if !target.copying.remove(&range.start) {
                    target.writes = target.writes.saturating_sub(1);
                    written.push(range);
                }
            }
            let mut copied = None;
            while let Some((range, error)) = target.writer.take_unread() {
                target.copying.remove(&range.start);
                copied = Some(Err(error.fault()));
            }
            if copied.is_none() && target.copies.is_empty() && target.copying.is_empty() {
                copied = Some(Ok(()));
            }
            let copied = copied.filter(|_| std::mem::take(&mut target.is_copying));
            if copied.is_some() {
                target.copies.clear();
            }
            let whole_copy = copied.as_ref().and_then(|_| target.whole_copy.take());
            let finished = match state {
                WriteState::Stored => Some(Ok(())),
                WriteState::Missing => {
                    Some(Err(FinishError::Missing { chunks: target.writer.here() }))
                }
                WriteState::WrongRoot => Some(Err(FinishError::WrongRoot)),
                _ => None,
            };
            let finished = finished.filter(|_| std::mem::take(&mut target.is_finishing));
            if let (Some((size, root)), Some(Ok(()))) = (whole_copy, &copied) {
                target.writer.finish(size, root);
                target.is_finishing = true;
            }
            for range in written {
                self.taker.handle_written(now, file, Ok(range));
            }
            match (whole_copy, copied) {
                (None, Some(copied)) => self.taker.handle_copied(now, file, copied),
                (Some(_), Some(Err(_))) => {
                    self.taker.handle_finished(now, file, Err(FinishError::WrongRoot));
                }
                _ => {}
            }
            if let Some(finished) = finished {
                if finished.is_ok() {
                    self.targets.remove(&file);
                }
                self.taker.handle_finished(now, file, finished);
            }
        }
    }
}

/// A copy as several, of a chunk of the new file at most each.
pub(super) fn in_chunks(copied: Copied) -> impl Iterator<Item = Copied> {
    let Copied { from, to, length } = copied;
    let chunk = CHUNK_BYTES as u64;
    let mut done = 0;
    std::iter::from_fn(move || {
        let at = to + done;
        let here = (chunk - at % chunk).min(length - done);
        let copy = Copied { from: from + done, to: at, length: here };
        done += here;
        (here > 0).then_some(copy)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_end_where_chunks_do() {
        let chunk = CHUNK_BYTES as u64;
        let copies: Vec<_> =
            in_chunks(Copied { from: 7, to: chunk - 3, length: chunk + 5 }).collect();
        let parts: Vec<_> = copies.iter().map(|it| (it.from, it.to, it.length)).collect();
        assert_eq!(parts, [(7, chunk - 3, 3), (10, chunk, chunk), (10 + chunk, 2 * chunk, 2)]);
    }
}

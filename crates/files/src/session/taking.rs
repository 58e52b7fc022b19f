//! One end that takes: a taker, a place for the files, and a connection.
//!
//! The invariant: while something waits for room on the disk, [`Taking::is_full`], and the program takes no
//! more events of the connection.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use haulier_core::Instant;
use haulier_proto::connection::{BlockNumber, CloseCode, Event};

use super::inspect::{Inspection, inspect, make_folders};
use super::{Clock, Jobs, Link, Outbox};
use crate::chunks::CHUNK_BYTES;
use crate::cut::{cut_file, older_pieces};
use crate::offer::{Entry, Offer, Root};
use crate::pieces::{Copied, OlderPiece};
use crate::pool::PoolHandle;
use crate::progress::Progress;
use crate::ranges::Ranges;
use crate::reader::SourceFile;
use crate::reason::{DONE, Fault, INCOMPLETE, Reason};
use crate::taker::{FinishError, Taker, TakerAction, TakerConfig, TakerEvent};
use crate::writer::{Assembly, FileWriter, Full, Replace, WriteState};

/// How long the last messages may take to be acknowledged before the connection is closed: what they say is
/// known without them, and a giver would rather hear it.
const MAX_FAREWELL: Duration = Duration::from_secs(2);

/// Copies that go to the disk at a time leave this room for what comes over the network, in chunks.
const ROOM_FOR_NETWORK: usize = 8;

/// A process that is killed holds its file until its last sync has ended, and is gone on from then: so one
/// that is in use is tried again, for 3 s in all. No thread waits for that.
const MAX_ATTEMPTS: u32 = 30;
const PAUSE: Duration = Duration::from_millis(100);

/// Where files go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// The only file of the offer, under this name.
    File(PathBuf),
    /// Each under its path in this directory, which is there.
    Folder(PathBuf),
}

impl Place {
    /// Where a file goes.
    pub(super) fn path_of(&self, entry: &Entry) -> PathBuf {
        match self {
            Self::File(path) => path.clone(),
            Self::Folder(base) => entry.path.parts().fold(base.clone(), |path, it| path.join(it)),
        }
    }
}

/// What the pool found.
enum Answer {
    Inspected { file: u32, inspection: Box<Inspection> },
    Older { file: u32, pieces: Result<Vec<OlderPiece>, Fault> },
    Folder { file: u32, made: Result<(), Fault> },
}

/// Bytes that wait for room.
enum Waiting {
    Write(u32, u64, Bytes),
    Packed(u32, u64, u64, Vec<Bytes>),
}

/// A file that is being written.
struct Target {
    writer: FileWriter,
    older: Option<Arc<SourceFile>>,
    /// What was given to the writer, and was not said to be written.
    writes: usize,
    /// What is to be copied, a chunk at most each, and the places of what is being copied.
    copies: VecDeque<Copied>,
    copying: HashSet<u64>,
    is_copying: bool,
    /// It is a copy of another file, and has this root in the end.
    whole_copy: Option<(u64, Root)>,
    is_finishing: bool,
}

/// A transfer from one server, or from one client.
pub struct Taking {
    taker: Taker,
    place: Place,
    replace: Replace,
    expected_root: Option<Root>,
    jobs: Jobs<Answer>,
    targets: HashMap<u32, Target>,
    numbers: HashMap<u64, BlockNumber>,
    waiting: VecDeque<Waiting>,
    outbox: Outbox,
    /// The close that waits for the last messages, and since when.
    closing: Option<(CloseCode, String, Instant)>,
    is_admission_due: bool,
    /// Files that somebody else writes: how often they were tried, and since when they wait for the next time.
    in_use: BTreeMap<u32, (u32, Option<Instant>)>,
    /// Why files failed, in words for the user of this end.
    words: BTreeMap<u32, String>,
    /// What the roots of files turned out to be.
    roots: BTreeMap<u32, (u64, Root)>,
    clock: Clock,
}

impl std::fmt::Debug for Taking {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Taking").field("taker", &self.taker).finish_non_exhaustive()
    }
}

impl Taking {
    /// Takes files to this place.
    #[must_use]
    pub fn new(pool: &PoolHandle, config: TakerConfig, place: Place, replace: Replace) -> Self {
        let clock = Clock::start();
        Self {
            expected_root: config.expected_root,
            taker: Taker::new(clock.now(), config),
            place,
            replace,
            jobs: Jobs::new(pool),
            targets: HashMap::new(),
            numbers: HashMap::new(),
            waiting: VecDeque::new(),
            outbox: Outbox::default(),
            closing: None,
            is_admission_due: false,
            in_use: BTreeMap::new(),
            words: BTreeMap::new(),
            roots: BTreeMap::new(),
            clock,
        }
    }

    /// The giver's list; empty until it is here.
    #[must_use]
    pub const fn offer(&self) -> &Offer {
        self.taker.offer()
    }

    /// The files of the offer that are wanted.
    pub fn wanted(&self) -> impl Iterator<Item = u32> + '_ {
        (0..self.offer().len()).filter(|file| self.taker.is_wanted(*file))
    }

    /// Where a file of the offer goes.
    #[must_use]
    pub fn path_of(&self, file: u32) -> Option<PathBuf> {
        self.offer().entry(file).map(|entry| self.place.path_of(entry))
    }

    /// The length and BLAKE3 of a file that is here, as far as they were compared.
    #[must_use]
    pub fn root_of(&self, file: u32) -> Option<(u64, Root)> {
        let entry = self.offer().entry(file)?;
        let offered = || Some((entry.size()?, *entry.root()?));
        self.roots.get(&file).copied().or_else(offered)
    }

    /// Why a file failed at this end, in words with paths of this machine.
    #[must_use]
    pub fn words_of(&self, file: u32) -> Option<&str> {
        self.words.get(&file).map(String::as_str)
    }

    /// Whether [`admit`](Self::admit) is to be called: the offer is here, and nothing of it comes before.
    #[must_use]
    pub const fn wants_admission(&self) -> bool {
        self.is_admission_due
    }

    /// Says whether the files may come, and where; `place` replaces that of the beginning. Of pipes at most
    /// `spare_bytes` are taken.
    pub fn admit(&mut self, link: &impl Link, place: Option<Place>, spare_bytes: u64) {
        self.is_admission_due = false;
        self.place = place.unwrap_or_else(|| self.place.clone());
        self.taker.handle_admission(self.clock.now(), Ok(spare_bytes));
        self.turn(link);
    }

    /// Says that the files may not come, and why, to both ends.
    pub fn refuse(&mut self, link: &impl Link, fault: Fault) {
        self.is_admission_due = false;
        self.taker.handle_admission(self.clock.now(), Err(fault));
        self.turn(link);
    }

    /// Bytes that may still come of pipes.
    #[must_use]
    pub const fn spare_bytes(&self) -> u64 {
        self.taker.spare_bytes()
    }

    /// So many bytes more may come of pipes.
    pub const fn add_spare_bytes(&mut self, bytes: u64) {
        self.taker.add_spare_bytes(bytes);
    }

    /// Whether the disk has enough to do: no events of the connection are to be taken until this is false.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.taker.is_full() || !self.waiting.is_empty()
    }

    /// Whether the disk has something to do, so that there is soon a reason for a [`turn`](Self::turn).
    #[must_use]
    pub fn is_busy(&self) -> bool {
        let is_at_work = |it: &Target| it.is_finishing || it.is_copying || it.writes > 0;
        self.jobs.open > 0
            || self.closing.is_some()
            || !self.in_use.is_empty()
            || self.is_full()
            || self.targets.values().any(is_at_work)
    }

    /// How far it is.
    pub fn progress(&mut self) -> Progress {
        self.taker.progress(self.clock.now())
    }

    /// What happened, for people.
    pub fn poll_event(&mut self) -> Option<TakerEvent> {
        self.taker.poll_event()
    }

    /// The program stops. What is here stays for the next time.
    pub fn close(&mut self, link: &impl Link, code: CloseCode, reason: &str) {
        self.is_admission_due = false;
        self.taker.close(code, reason);
        self.turn(link);
    }

    /// Takes in an event of the connection, and does what follows.
    pub fn handle_event(&mut self, link: &impl Link, event: Event) {
        let now = self.clock.now();
        match event {
            Event::Message { channel: 0, data } => self.taker.handle_message(now, &data),
            Event::BlockAnnounced { block, tag, length, digest } => {
                self.numbers.insert(tag, block);
                self.taker.handle_announced(now, tag, length, digest);
            }
            Event::Chunk { tag, offset, data, .. } => {
                self.taker.handle_chunk(now, tag, offset, data);
            }
            Event::BlockComplete { tag, .. } | Event::BlockHere { tag } => {
                self.numbers.remove(&tag);
                self.taker.handle_complete(now, tag);
            }
            Event::BlockCancelled { tag, code, .. } => {
                self.numbers.remove(&tag);
                self.taker.handle_cancelled(now, tag, code);
            }
            Event::Closed(_) => {
                self.taker.handle_closed();
                self.closing = None;
                self.in_use.clear();
            }
            _ => {}
        }
        self.turn(link);
    }

    /// Goes on, with what the disk has answered.
    pub fn turn(&mut self, link: &impl Link) {
        while let Some(answer) = self.jobs.take() {
            self.on_answer(answer);
        }
        self.try_again();
        self.poll_targets();
        loop {
            while let Some(action) = self.taker.poll_action() {
                self.act(link, action);
            }
            if !self.push_waiting() {
                break;
            }
        }
        self.push_copies();
        self.outbox.send(link);
        let now = self.clock.now();
        let is_said = |since: Instant| {
            link.all_acked() && self.outbox.0.is_empty() || now.since(since) > MAX_FAREWELL
        };
        if let Some((code, reason, _)) = self.closing.take_if(|(.., since)| is_said(*since)) {
            link.close(code, &reason);
        }
    }

    fn on_answer(&mut self, answer: Answer) {
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
            }
            Answer::Older { file, pieces } => self.taker.handle_older(now, file, pieces),
            Answer::Folder { file, made } => {
                self.taker.handle_finished(now, file, made.map_err(FinishError::Fault));
            }
        }
    }

    /// Whether a file that somebody else writes is tried once more.
    fn waits_for(&mut self, file: u32, inspection: &Inspection) -> bool {
        let attempts = self.in_use.get(&file).map_or(0, |(attempts, _)| *attempts);
        let is_tried = inspection.is_in_use && attempts < MAX_ATTEMPTS;
        if is_tried {
            self.in_use.insert(file, (attempts + 1, Some(self.clock.now())));
        } else {
            self.in_use.remove(&file);
        }
        is_tried
    }

    fn try_again(&mut self) {
        let now = self.clock.now();
        let is_due = |since: &mut Instant| now.since(*since) >= PAUSE;
        let due = self.in_use.iter_mut().filter_map(|(file, (_, since))| {
            since.take_if(is_due).map(|_| *file)
        });
        for file in due.collect::<Vec<u32>>() {
            self.inspect(file, true);
        }
    }

    fn act(&mut self, link: &impl Link, action: TakerAction) {
        match action {
            TakerAction::SendMessage(message) => self.outbox.0.push_back(message),
            TakerAction::Admit { .. } => self.is_admission_due = true,
            TakerAction::HaveChunks { root, chunks } => link.have_chunks(root, bitmap(&chunks)),
            TakerAction::Decline { tag, code } => {
                if let Some(block) = self.numbers.remove(&tag.to_u64()) {
                    link.decline_block(block, code);
                }
            }
            TakerAction::Write { file, offset, data } => {
                self.waiting.push_back(Waiting::Write(file, offset, data));
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

    fn inspect(&mut self, file: u32, is_again: bool) {
        let (Some(entry), Some(path)) = (self.offer().entry(file), self.path_of(file)) else {
            return;
        };
        let entry = entry.clone();
        let root = entry.root().copied().or(self.expected_root);
        let base = match &self.place {
            Place::Folder(base) => Some(base.clone()),
            Place::File(_) => None,
        };
        let (pool, replace) = (self.jobs.pool.clone(), self.replace);
        self.jobs.run(move || {
            let (base, offered) = (base.as_deref(), (&entry, root));
            let found = inspect(&pool, base, &path, offered, replace, is_again);
            Answer::Inspected { file, inspection: Box::new(found) }
        });
    }

    fn ask_disk(&mut self, action: &TakerAction) {
        match *action {
            TakerAction::Inspect { file } => self.inspect(file, false),
            TakerAction::CutOlder { file } => {
                let older = self.targets.get(&file).and_then(|target| target.older.clone());
                self.jobs.run(move || {
                    let pieces = older.ok_or_else(|| Fault::from(Reason::Unreadable));
                    let pieces = pieces.and_then(|it| cut_file(&it).map_err(|it| it.fault()));
                    Answer::Older { file, pieces: pieces.map(older_pieces) }
                });
            }
            TakerAction::MakeDirectory { file } => {
                let (Place::Folder(base), Some(path)) = (self.place.clone(), self.path_of(file))
                else {
                    return;
                };
                self.jobs.run(move || {
                    let made = make_folders(&base, &path.join("inside"));
                    Answer::Folder { file, made }
                });
            }
            _ => {}
        }
    }

    /// Lets go of a file. What of it was still to be written is answered, for the taker counts it.
    fn abandon(&mut self, file: u32) {
        let now = self.clock.now();
        let writes = self.targets.remove(&file).map_or(0, |target| target.writes);
        for _ in 0..writes {
            self.taker.handle_written(now, file, Err(Reason::Interrupted.into()));
        }
    }

    /// A file whose content another one has is copied from that one.
    fn copy_file(&mut self, file: u32, from: u32) {
        let now = self.clock.now();
        let source = self.path_of(from).and_then(|path| open(&path));
        let known = self.root_of(file).filter(|_| source.is_some());
        let (Some(target), Some((size, root))) = (self.targets.get_mut(&file), known) else {
            // As if it were another content: then it is fetched.
            return self.taker.handle_finished(now, file, Err(FinishError::WrongRoot));
        };
        target.older = source;
        target.copies = in_chunks(Copied { from: 0, to: 0, length: size }).collect();
        target.is_copying = true;
        target.whole_copy = Some((size, root));
    }

    /// Gives what waits to the writers; `false` if nothing was there or the rest of it has to wait.
    fn push_waiting(&mut self) -> bool {
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
                Waiting::Write(file, offset, bytes) => {
                    let pushed = target.writer.push(offset, bytes);
                    pushed.err().map(|Full(bytes)| Waiting::Write(file, offset, bytes))
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

    fn push_copies(&mut self) {
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
    fn poll_targets(&mut self) {
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
                WriteState::Missing | WriteState::WrongRoot => Some(Err(FinishError::WrongRoot)),
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

fn open(path: &Path) -> Option<Arc<SourceFile>> {
    SourceFile::open(path).ok().map(Arc::new)
}

/// A copy as several, of a chunk of the new file at most each.
fn in_chunks(copied: Copied) -> impl Iterator<Item = Copied> {
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
    fn copies_end_where_chunks_do() {
        let chunk = CHUNK_BYTES as u64;
        let copies: Vec<_> =
            in_chunks(Copied { from: 7, to: chunk - 3, length: chunk + 5 }).collect();
        let parts: Vec<_> = copies.iter().map(|it| (it.from, it.to, it.length)).collect();
        assert_eq!(parts, [(7, chunk - 3, 3), (10, chunk, chunk), (10 + chunk, 2 * chunk, 2)]);
    }

    #[test]
    fn chunks_that_are_here_are_bits() {
        assert_eq!(bitmap(&Ranges::from_iter([0..2, 9..10])), [3, 2]);
        assert!(bitmap(&Ranges::new()).is_empty());
    }
}

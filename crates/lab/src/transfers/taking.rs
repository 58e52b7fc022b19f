//! One end that takes: a taker, a folder on a disk with faults, and a connection, as
//! `haulier_files::session::Taking` is with threads and the system's files.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

use bytes::Bytes;
use haulier_core::Instant;
use haulier_files::chunks::CHUNK_BYTES;
use haulier_files::cut::{cut, older_pieces};
use haulier_files::offer::{Offer, Root};
use haulier_files::pieces::Copied;
use haulier_files::reason::{DONE, Fault, INCOMPLETE, Reason};
use haulier_files::taker::{FinishError, Local, Taker, TakerAction, TakerConfig, TakerEvent};
use haulier_files::unfinished;
use haulier_files::{BlockTag, Ranges};
use haulier_proto::connection::{BlockNumber, ChunkValue, CloseCode, Connection, Event};
use haulier_sim::Rng;
use std::time::Duration;

use super::folder::{Folder, Left, Making, fault_of};
use super::giving::send_messages;
use super::jobs::{Jobs, Speed};

/// As in the session.
const MAX_FAREWELL: Duration = Duration::from_secs(2);

enum Job {
    Inspect(u32),
    Write { file: u32, offset: u64, data: Bytes, value: Option<ChunkValue> },
    Check(u32),
    CutOlder(u32),
    Copy { file: u32, copies: Vec<Copied> },
    Finish(u32),
    MakeDirectory(u32),
}

struct Target {
    making: Making,
    opened: Instant,
    older: Option<Vec<u8>>,
    pending: usize,
    wanted: Option<(u64, Root)>,
    whole_copy: Option<(u64, Root)>,
    is_finishing: bool,
}

/// What came of a file over the connection.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Received {
    pub(super) bytes: u64,
    /// At most this much may come; `None` if that cannot be said.
    pub(super) max_bytes: Option<u64>,
}

pub(super) struct TakingEnd {
    taker: Taker,
    folder: Rc<RefCell<Folder>>,
    /// The versions that the giver had loaded when this began: its offer is of these, or of later ones.
    offered: BTreeMap<String, usize>,
    jobs: Jobs<Job>,
    targets: BTreeMap<u32, Target>,
    numbers: BTreeMap<u64, BlockNumber>,
    messages: VecDeque<Bytes>,
    closing: Option<(CloseCode, String, Instant)>,
    /// What has to be said to the connection.
    to_tell: VecDeque<TakerAction>,
    asks_only: bool,
    pub(super) received: BTreeMap<u32, Received>,
    pub(super) again: u64,
    pub(super) is_done: bool,
    /// Faults that were reported, each with its path.
    pub(super) faults: Vec<(String, Fault)>,
}

impl TakingEnd {
    pub(super) fn new(
        now: Instant,
        config: TakerConfig,
        folder: &Rc<RefCell<Folder>>,
        offered: Vec<(String, usize)>,
        speed: Speed,
        rng: Rng,
    ) -> Self {
        Self {
            asks_only: config.ask != haulier_files::taker::Ask::Get,
            taker: Taker::new(now, config),
            folder: Rc::clone(folder),
            offered: offered.into_iter().collect(),
            jobs: Jobs::new(speed, rng),
            targets: BTreeMap::new(),
            numbers: BTreeMap::new(),
            messages: VecDeque::new(),
            closing: None,
            to_tell: VecDeque::new(),
            received: BTreeMap::new(),
            again: 0,
            is_done: false,
            faults: Vec::new(),
        }
    }

    pub(super) fn describe(&self) -> String {
        format!("{:?}", self.taker)
    }

    pub(super) fn is_full(&self) -> bool {
        self.taker.is_full()
    }

    pub(super) fn wakes_at(&self) -> Option<Instant> {
        let farewell = self.closing.as_ref().map(|(.., since)| *since + MAX_FAREWELL);
        haulier_core::time::earliest(self.works_at(), farewell)
    }

    /// When the disk has done something.
    pub(super) fn works_at(&self) -> Option<Instant> {
        self.jobs.next_at()
    }

    /// Bytes that wait for the disk.
    pub(super) fn held_bytes(&self) -> u64 {
        let bytes = self.jobs.iter().map(|job| match job {
            Job::Write { data, .. } => data.len() as u64,
            _ => 0,
        });
        bytes.sum()
    }

    pub(super) fn hear(&mut self, now: Instant, event: Event) {
        match event {
            Event::Message { channel: 0, data } => self.taker.handle_message(now, &data),
            Event::BlockAnnounced { block, tag, length, digest } => {
                self.numbers.insert(tag, block);
                self.taker.handle_announced(now, tag, length, digest);
            }
            Event::Chunk { tag, offset, data, value, .. } => {
                let of = BlockTag::from_u64(tag)
                    .filter(|tag| !matches!(tag, BlockTag::Offer | BlockTag::Recipe { .. }));
                if let Some(file) = of.and_then(BlockTag::file) {
                    self.received.entry(file).or_default().bytes += data.len() as u64;
                }
                self.taker.handle_chunk(now, tag, offset, data, value);
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
                self.leave(Left::Closed);
            }
            _ => {}
        }
    }

    /// The program does not go on.
    pub(super) fn leave(&mut self, left: Left) {
        for (_, target) in std::mem::take(&mut self.targets) {
            self.folder.borrow_mut().leave(&target.making, left);
        }
    }

    /// Does the work on the disk that is due. Returns whether any was due.
    pub(super) fn work(&mut self, now: Instant) -> bool {
        let mut is_any = false;
        loop {
            while let Some(action) = self.taker.poll_action() {
                self.follow(now, action);
                is_any = true;
            }
            let Some(job) = self.jobs.take(now) else { return is_any };
            self.perform(now, job);
            is_any = true;
        }
    }

    pub(super) fn act(&mut self, now: Instant, connection: &mut Connection) {
        self.work(now);
        while let Some(action) = self.to_tell.pop_front() {
            self.tell(now, connection, action);
        }
        while let Some(event) = self.taker.poll_event() {
            match event {
                TakerEvent::Failed { file, fault } => {
                    self.faults.push((self.path_of(file), fault));
                }
                TakerEvent::Here { file } | TakerEvent::Stored { file } => {
                    let path = self.path_of(file);
                    let first = self.offered.get(&path).copied().unwrap_or_default();
                    self.folder.borrow_mut().check_done(&path, first);
                }
                TakerEvent::Again { .. } => self.again += 1,
                TakerEvent::Done { failed: 0 } => self.is_done = true,
                _ => {}
            }
        }
        send_messages(&mut self.messages, connection);
        let is_said = |since: Instant| connection.all_acked() || now.since(since) >= MAX_FAREWELL;
        if let Some((code, reason, _)) = self.closing.take_if(|(.., since)| is_said(*since)) {
            connection.close(now, code, &reason);
        }
    }

    fn path_of(&self, file: u32) -> String {
        let entry = self.taker.offer().entry(file);
        entry.map_or_else(String::new, |entry| entry.path.as_str().to_owned())
    }

    fn tell(&mut self, now: Instant, connection: &mut Connection, action: TakerAction) {
        match action {
            TakerAction::HaveChunks { root, chunks } => {
                connection.have_chunks(root, bitmap(&chunks));
            }
            TakerAction::Decline { tag, code } => {
                if let Some(block) = self.numbers.remove(&tag.to_u64()) {
                    connection.decline_block(now, block, code);
                }
            }
            TakerAction::Close { code, reason } if code == DONE || code == INCOMPLETE => {
                self.closing = Some((code, reason, now));
            }
            TakerAction::Close { code, reason } => connection.close(now, code, &reason),
            other => unreachable!("{other:?}"),
        }
    }

    fn follow(&mut self, now: Instant, action: TakerAction) {
        let size = |file| self.taker.offer().entry(file).and_then(|it| it.size()).unwrap_or(0);
        match action {
            TakerAction::SendMessage(message) => self.messages.push_back(message),
            TakerAction::HaveChunks { .. }
            | TakerAction::Decline { .. }
            | TakerAction::Close { .. } => self.to_tell.push_back(action),
            TakerAction::ReadOffer { list } => self.taker.handle_offer(Offer::read(&list)),
            TakerAction::Admit { .. } => self.taker.handle_admission(now, Ok(u64::MAX)),
            TakerAction::Inspect { file } => self.jobs.add(now, 0, Job::Inspect(file)),
            TakerAction::Write { file, offset, data, value } => {
                if let Some(target) = self.targets.get_mut(&file) {
                    target.pending += 1;
                }
                self.jobs.add(now, data.len() as u64, Job::Write { file, offset, data, value });
            }
            TakerAction::CutOlder { file } => self.jobs.add(now, size(file), Job::CutOlder(file)),
            TakerAction::CopyPieces { file, copies } => self.copy(now, file, copies),
            TakerAction::CopyFile { file, from } => self.copy_file(now, file, from),
            TakerAction::Finish { file, size, root } => self.finish(now, file, size, root),
            TakerAction::MakeDirectory { file } => {
                self.jobs.add(now, 0, Job::MakeDirectory(file));
            }
            TakerAction::Discard { file } => {
                if let Some(target) = self.targets.get_mut(&file) {
                    (target.wanted, target.whole_copy) = (None, None);
                    // What cannot be done now fails again with the next write.
                    drop(self.folder.borrow_mut().discard(&target.making));
                }
            }
            TakerAction::Abandon { file } => {
                if let Some(target) = self.targets.remove(&file) {
                    self.folder.borrow_mut().leave(&target.making, Left::Closed);
                }
            }
            other => unreachable!("{other:?}"),
        }
    }

    fn copy(&mut self, now: Instant, file: u32, mut copies: Vec<Copied>) {
        copies.reverse();
        if let Some(target) = self.targets.get_mut(&file) {
            target.pending += 1;
        }
        self.jobs.add(now, 0, Job::Copy { file, copies });
    }

    /// A file whose content another one has, which is there.
    fn copy_file(&mut self, now: Instant, file: u32, from: u32) {
        let bytes = self.folder.borrow().disk.bytes(&self.path_of(from));
        let known = self.taker.offer().entry(file).and_then(|it| Some((it.size()?, *it.root()?)));
        let (Some(target), Some((size, root))) = (self.targets.get_mut(&file), known) else {
            return self.taker.handle_finished(now, file, Err(FinishError::WrongRoot));
        };
        target.older = Some(bytes);
        target.whole_copy = Some((size, root));
        self.copy(now, file, vec![Copied { from: 0, to: 0, length: size }]);
    }

    fn finish(&mut self, now: Instant, file: u32, size: u64, root: Root) {
        if let Some(target) = self.targets.get_mut(&file) {
            (target.wanted, target.is_finishing) = (Some((size, root)), true);
        }
        self.advance(now, file);
    }

    /// Goes on to the end, when nothing is left to write or to hash.
    fn advance(&mut self, now: Instant, file: u32) {
        let Some(target) = self.targets.get(&file) else { return };
        let is_idle = target.pending == 0 && target.making.file.unchecked() == 0;
        if is_idle && target.wanted.is_some() {
            self.jobs.add(now, 0, Job::Finish(file));
        }
    }

    fn perform(&mut self, now: Instant, job: Job) {
        match job {
            Job::Inspect(file) => self.inspect(now, file),
            Job::Write { file, offset, data, value } => {
                let Some(target) = self.targets.get_mut(&file) else {
                    let gone = Err(Reason::Interrupted.into());
                    return self.taker.handle_written(now, file, gone);
                };
                target.pending -= 1;
                let since = now.since(target.opened);
                let range = offset..offset + data.len() as u64;
                let mut folder = self.folder.borrow_mut();
                let written = folder.write(&target.making, since, offset, &data, value);
                drop(folder);
                match written {
                    Ok(()) => self.taker.handle_written(now, file, Ok(range)),
                    Err(fault) => self.fail(now, file, fault),
                }
                self.advance(now, file);
            }
            Job::Check(file) => self.check(now, file),
            Job::CutOlder(file) => {
                let older = self.targets.get(&file).and_then(|target| target.older.as_ref());
                let pieces = older.ok_or_else(|| Fault::from(Reason::Unreadable));
                let pieces = pieces.map(|it| older_pieces(cut(&it[..]).expect("memory")));
                self.taker.handle_older(now, file, pieces);
            }
            Job::Copy { file, copies } => self.go_on_copying(now, file, copies),
            Job::Finish(file) => self.conclude(now, file),
            Job::MakeDirectory(file) => self.taker.handle_finished(now, file, Ok(())),
        }
    }

    fn inspect(&mut self, now: Instant, file: u32) {
        let Some(entry) = self.taker.offer().entry(file).cloned() else { return };
        let found = self.folder.borrow_mut().inspect(&entry);
        let missing = Folder::chunks_of(&entry).saturating_sub(found.kept_chunks);
        let received = self.received.entry(file).or_default();
        let is_plain = !matches!(found.local, Local::Older) && self.asks_only;
        let is_exact = entry.root().is_some() || found.kept_chunks == 0;
        // Of what is not hashed before the end parts of a MiB come, four chunks, around each that is missing.
        let max_chunks = if is_exact { missing } else { 4 * missing.max(1) };
        received.max_bytes = is_plain.then_some(max_chunks * CHUNK_BYTES as u64);
        if let Some(making) = found.making {
            let target = Target {
                making,
                opened: now,
                older: found.older,
                pending: 0,
                wanted: None,
                whole_copy: None,
                is_finishing: false,
            };
            self.targets.insert(file, target);
            self.jobs.add(now, CHUNK_BYTES as u64, Job::Check(file));
        }
        self.taker.handle_inspected(now, file, found.local);
    }

    fn check(&mut self, now: Instant, file: u32) {
        let Some(target) = self.targets.get(&file) else { return };
        let Some(index) = target.making.file.next_to_check() else {
            return self.advance(now, file);
        };
        let since = now.since(target.opened);
        let checked = target.making.file.check(index).map_err(|error| fault_of(&error));
        let checked =
            checked.and_then(|_| self.folder.borrow_mut().checkpoint_if_due(&target.making, since));
        match checked {
            Ok(()) => self.jobs.add(now, CHUNK_BYTES as u64, Job::Check(file)),
            Err(fault) => self.fail(now, file, fault),
        }
    }

    /// One piece after the other, of a chunk at most.
    fn go_on_copying(&mut self, now: Instant, file: u32, mut copies: Vec<Copied>) {
        let Some(target) = self.targets.get_mut(&file) else { return };
        let Some(copy) = copies.pop() else {
            target.pending -= 1;
            return match target.whole_copy.take() {
                Some((size, root)) => self.finish(now, file, size, root),
                None => self.taker.handle_copied(now, file, Ok(())),
            };
        };
        let chunk = CHUNK_BYTES as u64;
        let length = copy.length.min(chunk - copy.to % chunk);
        if length < copy.length {
            let rest = Copied {
                from: copy.from + length,
                to: copy.to + length,
                length: copy.length - length,
            };
            copies.push(rest);
        }
        let older = target.older.as_deref().unwrap_or_default();
        let from = copy.from as usize;
        let Some(bytes) = older.get(from..from + length as usize) else {
            target.pending -= 1;
            let gone = Fault::from(Reason::Unreadable);
            return match target.whole_copy.take() {
                Some(_) => self.taker.handle_finished(now, file, Err(FinishError::WrongRoot)),
                None => self.taker.handle_copied(now, file, Err(gone)),
            };
        };
        let since = now.since(target.opened);
        let written = self.folder.borrow_mut().write(&target.making, since, copy.to, bytes, None);
        match written {
            Ok(()) => self.jobs.add(now, length, Job::Copy { file, copies }),
            Err(fault) => self.fail(now, file, fault),
        }
    }

    fn conclude(&mut self, now: Instant, file: u32) {
        let Some(target) = self.targets.get_mut(&file) else { return };
        let Some((size, root)) = target.wanted.take() else { return };
        target.is_finishing = false;
        let finished = target.making.file.finish(size, &root);
        let finished = match finished {
            Ok(_) => {
                let named = self.folder.borrow_mut().give_name(&target.making);
                named.map_err(FinishError::Fault)
            }
            Err(unfinished::FinishError::Missing) => {
                Err(FinishError::Missing { chunks: target.making.file.here() })
            }
            Err(unfinished::FinishError::WrongRoot) => {
                drop(self.folder.borrow_mut().discard(&target.making));
                Err(FinishError::WrongRoot)
            }
            Err(unfinished::FinishError::Io(error)) => Err(FinishError::Fault(fault_of(&error))),
            Err(error) => unreachable!("{error}"),
        };
        if finished.is_ok() {
            self.targets.remove(&file);
        }
        self.taker.handle_finished(now, file, finished);
    }

    /// The disk failed.
    fn fail(&mut self, now: Instant, file: u32, fault: Fault) {
        let is_finishing = self
            .targets
            .get(&file)
            .is_some_and(|target| target.is_finishing || target.whole_copy.is_some());
        if is_finishing {
            self.taker.handle_finished(now, file, Err(FinishError::Fault(fault)));
        } else {
            self.taker.handle_written(now, file, Err(fault));
        }
    }
}

/// As the connection wants them: bit `i` is chunk `i`.
fn bitmap(chunks: &Ranges) -> Vec<u8> {
    let end = chunks.iter().last().map_or(0, |range| range.end);
    let mut map = vec![0; end.div_ceil(8) as usize];
    for index in chunks.iter().flatten() {
        map[index as usize / 8] |= 1 << (index % 8);
    }
    map
}

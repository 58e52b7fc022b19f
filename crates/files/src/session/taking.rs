//! One end that takes: a taker, a place for the files, and a connection.
//!
//! The invariant: while something waits for room on the disk, [`Taking::is_full`], and the program takes no
//! more events of the connection.

mod act;
mod targets;

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use haulier_core::Instant;
use haulier_proto::connection::{BlockNumber, CloseCode, Event};

use self::targets::{Target, Waiting};
use super::fetched::{Fetched, folder_for, list_folder};
use super::inspect::Inspection;
use super::{Clock, Jobs, Link, Outbox};
use crate::folder::Folder;
use crate::names::SafePath;
use crate::offer::{Content, Entry, Offer, OfferError, Root};
use crate::pieces::OlderPiece;
use crate::pool::PoolHandle;
use crate::progress::Progress;
use crate::reason::Fault;
use crate::taker::{Ask, Taker, TakerConfig, TakerEvent};
use crate::writer::{Replace, make_folder};

/// How long the last messages may take to be acknowledged before the connection is closed: what they say is
/// known without them, and a giver would rather hear it.
const MAX_FAREWELL: Duration = Duration::from_secs(2);

/// A process that is killed holds its file until its last sync has ended, and is gone on from then: so one
/// that is in use is tried again, for 3 s in all. No thread waits for that.
const MAX_ATTEMPTS: u32 = 30;
const PAUSE: Duration = Duration::from_millis(100);

/// How often the connection is asked for unfinished chunks: as often as progress is measured.
const LOOK: Duration = Duration::from_millis(100);

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
    Offer(Result<Offer, OfferError>),
    Folder { file: u32, made: Result<(), Fault> },
}

/// A transfer from one server, or from one client.
pub struct Taking {
    taker: Taker,
    place: Place,
    replace: Replace,
    keeps_attributes: bool,
    expected_root: Option<Root>,
    /// An inbox: its senders may learn which files it has.
    is_inbox: bool,
    /// What earlier fetches have stored.
    fetched: Option<Fetched>,
    jobs: Jobs<Answer>,
    /// In their order, so that a giver hears of them in no other.
    targets: BTreeMap<u32, Target>,
    numbers: HashMap<u64, BlockNumber>,
    waiting: VecDeque<Waiting>,
    outbox: Outbox,
    /// The close that waits for the last messages, and since when.
    closing: Option<(CloseCode, String, Instant)>,
    /// The bytes held for the other end, as the connection last heard.
    held_bytes: usize,
    is_admission_due: bool,
    /// Files that another writer has open: the number of tries of each, and the time since which it waits.
    in_use: BTreeMap<u32, (u32, Option<Instant>)>,
    /// Why files failed, in words for the user of this end.
    words: BTreeMap<u32, String>,
    /// What the roots of files turned out to be.
    roots: BTreeMap<u32, (u64, Root)>,
    clock: Clock,
    /// When the connection was last asked for unfinished chunks.
    looked_at: Option<Instant>,
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
            is_inbox: config.ask == Ask::Inbox,
            fetched: None,
            taker: Taker::new(clock.now(), config),
            place,
            replace,
            keeps_attributes: true,
            jobs: Jobs::new(pool),
            targets: BTreeMap::new(),
            numbers: HashMap::new(),
            waiting: VecDeque::new(),
            outbox: Outbox::default(),
            closing: None,
            held_bytes: 0,
            is_admission_due: false,
            in_use: BTreeMap::new(),
            words: BTreeMap::new(),
            roots: BTreeMap::new(),
            clock,
            looked_at: None,
        }
    }

    /// Files get no mode and no time of change from their giver.
    #[must_use]
    pub const fn without_attributes(mut self) -> Self {
        self.keeps_attributes = false;
        self
    }

    /// The giver's list; empty until it is here.
    #[must_use]
    pub fn offer(&self) -> &Offer {
        self.taker.offer()
    }

    /// The giver's list, shared with a thread of the pool: a copy of a long list is tens of MB.
    #[must_use]
    pub fn shared_offer(&self) -> Arc<Offer> {
        self.taker.shared_offer()
    }

    /// The files of the offer that are wanted.
    pub fn wanted(&self) -> impl Iterator<Item = u32> + '_ {
        (0..self.offer().len()).filter(|file| self.taker.is_wanted(*file))
    }

    /// Where the files go.
    #[must_use]
    pub const fn place(&self) -> &Place {
        &self.place
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

    /// The place for what is wanted of the offer: several files, or a directory, are no file of one name, but
    /// a directory of it. One that is not there is made, in one that is. Unless files may be replaced they go
    /// where no others are: into a new directory, or one that an earlier fetch has made, so that the giver
    /// learns nothing of other files by the names and contents that it offers.
    ///
    /// # Errors
    /// What the system says where none can be made; a file of the name is
    /// [`NotADirectory`](io::ErrorKind::NotADirectory).
    pub fn make_place(&self) -> io::Result<Place> {
        let needs_folder = self.needs_folder();
        let path = match &self.place {
            Place::File(_) if !needs_folder => return Ok(self.place.clone()),
            Place::File(path) | Place::Folder(path) => path.clone(),
        };
        make_folder(&path)?;
        if !needs_folder || self.replace == Replace::File {
            return Ok(Place::Folder(path));
        }
        folder_for(&path, self.top()).map(Place::Folder)
    }

    /// Whether what is wanted needs a directory of its own.
    fn needs_folder(&self) -> bool {
        let mut wanted = self.wanted().take(2).filter_map(|it| self.offer().entry(it));
        match (wanted.next(), wanted.next()) {
            (None, _) => false,
            (Some(entry), None) => entry.content == Content::Directory,
            _ => true,
        }
    }

    /// The directory in which all that is wanted is, if there is one.
    fn top(&self) -> Option<&str> {
        let mut wanted = self.wanted().filter_map(|it| self.offer().entry(it));
        let first = &wanted.next()?.path;
        let top = first.parts().next()?;
        let is_in_top = |path: &SafePath| path.as_str() != top && path.is_within(top);
        let is_directory = |entry: &Entry| entry.content == Content::Directory;
        let are_all_in_top =
            wanted.all(|it| is_in_top(&it.path) || is_directory(it) && it.path.as_str() == top);
        (is_in_top(first) && are_all_in_top).then_some(top)
    }

    /// Finds the list of what was fetched, and begins one for files of several names.
    fn find_fetched(&mut self) {
        let Place::Folder(base) = &self.place else { return };
        if self.is_inbox {
            return;
        }
        let folder = list_folder(base, self.top());
        if self.needs_folder() {
            if folder != *base {
                let top = folder.file_name().unwrap_or_default();
                // One that is a link is not gone through.
                if Folder::open(base).and_then(|base| base.make(top)).is_err() {
                    return;
                }
            }
            self.fetched = Some(Fetched::keep(&folder));
        } else {
            self.fetched = Some(Fetched::read(&folder));
        }
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
        self.find_fetched();
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

    /// Allows `bytes` more bytes of pipes.
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

    /// Whether the giver hashes a file that may be here already, so that nothing comes for as long as that
    /// takes.
    #[must_use]
    pub fn awaits_root(&self) -> bool {
        self.taker.awaits_root()
    }

    /// The progress of the transfer.
    pub fn progress(&mut self) -> Progress {
        self.taker.progress(self.clock.now())
    }

    /// What happened, for people.
    pub fn poll_event(&mut self) -> Option<TakerEvent> {
        self.taker.poll_event()
    }

    /// The program stops. The bytes that came stay here for the next time.
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
            Event::Chunk { tag, offset, data, value, .. } => {
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
                self.closing = None;
                self.in_use.clear();
            }
            _ => {}
        }
        self.turn(link);
    }

    /// Continues with the answers of the disk.
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
        let held_bytes = self.taker.memory_bytes();
        if std::mem::replace(&mut self.held_bytes, held_bytes) != held_bytes {
            link.hold_bytes(held_bytes);
        }
        let now = self.clock.now();
        if self.looked_at.is_none_or(|at| now.since(at) >= LOOK) {
            self.looked_at = Some(now);
            self.taker.handle_unfinished(now, link.unfinished_bytes());
        }
        let is_said = |since: Instant| {
            link.all_acked() && self.outbox.0.is_empty() || now.since(since) > MAX_FAREWELL
        };
        if let Some((code, reason, _)) = self.closing.take_if(|(.., since)| is_said(*since)) {
            link.close(code, &reason);
        }
    }

    /// Whether a file that another writer has open is tried once more.
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
        let due = self
            .in_use
            .iter_mut()
            .filter_map(|(file, (_, since))| since.take_if(is_due).map(|_| *file));
        for file in due.collect::<Vec<u32>>() {
            self.inspect(file, true);
        }
    }
}

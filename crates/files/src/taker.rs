//! The machine that takes files: it reads the offer, says what of it is wanted, and what to write where.
//!
//! Without I/O: messages, blocks and what the disk answered come in; actions and events go out. It is the
//! same for a client that fetches and for a server with an inbox.
//!
//! The invariant: nothing has a name before all of its bytes are here and its root was compared, whatever
//! way they came. What it holds is bounded: [`MAX_ACTIVE`] files at a time, chunks that it has handed out
//! to be written ([`Taker::is_full`] says when to stop), and what a giver may send before its offer.

mod action;
mod active;
mod blocks;
mod patch;
mod plan;

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::Arc;

use bytes::Bytes;
use haulier_core::Instant;
use haulier_proto::connection::CloseCode;

pub use action::{FinishError, Local, TakerAction, TakerEvent};

use self::active::{Active, Stage, Status};
use self::blocks::{Held, Incoming};
use self::plan::Next;
use crate::messages::{MAX_OFFER_MESSAGE_BYTES, Message, Request};
use crate::offer::{Content, MAX_FILES, MAX_OFFER_BYTES, Offer, OfferError, Root};
use crate::only::Only;
use crate::progress::{Meter, Progress};
use crate::reason::{
    ANOTHER_FILE, BAD_OFFER, DONE, Fault, INCOMPLETE, NO_SUCH_FILE, NOT_STORED, NOT_UNDERSTOOD,
    OVER_QUOTA, Reason,
};
use crate::tag::BlockTag;

/// Files that are inspected, fetched or finished at a time: so that small ones fill a link.
pub const MAX_ACTIVE: usize = 128;

/// Chunks that are being written, or wait for the disk in another way, before no more events are to be
/// taken.
pub const MAX_WRITES: usize = 32;

/// What is kept of each file of an offer beside it, here and by a program, in bytes: what became of it, and
/// what is reserved for it.
const FILE_STATE_BYTES: usize = 24;

/// How a transfer is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ask {
    /// A client that has nothing of the files: all of them come at once.
    Get,
    /// A client that may have something, or does not want all.
    Open,
    /// A server with an inbox.
    Inbox,
}

/// What a taker takes.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct TakerConfig {
    /// How it asks.
    pub ask: Ask,
    /// Which path it asks for; everything if it is empty. An inbox asks for none.
    pub name: String,
    /// Which files of the offer it wants.
    pub only: Only,
    /// The BLAKE3 of the file, if a ticket says it: the offer has to be this one file.
    pub expected_root: Option<Root>,
    /// Whether packed parts are accepted. Default: they are not.
    pub accepts_packed: bool,
    /// The longest offer that is taken, in bytes. Default: that any may have, [`MAX_OFFER_BYTES`].
    pub max_offer_bytes: u64,
    /// How many files it may have. Default: as many as any may have, [`MAX_FILES`].
    pub max_offer_files: u32,
}

impl TakerConfig {
    /// A taker that takes all of it.
    #[must_use]
    pub fn new(ask: Ask) -> Self {
        let (name, only) = (String::new(), Only::everything());
        let (max_offer_bytes, max_offer_files) = (MAX_OFFER_BYTES, MAX_FILES);
        Self {
            ask,
            name,
            only,
            expected_root: None,
            accepts_packed: false,
            max_offer_bytes,
            max_offer_files,
        }
    }

    /// Asks for this path.
    #[must_use]
    pub fn with_name(mut self, name: &str) -> Self {
        name.clone_into(&mut self.name);
        self
    }

    /// Wants only these.
    #[must_use]
    pub fn with_only(mut self, only: Only) -> Self {
        self.only = only;
        self
    }

    /// Takes the one file with this BLAKE3.
    #[must_use]
    pub const fn with_expected_root(mut self, root: Root) -> Self {
        self.expected_root = Some(root);
        self
    }

    /// Accepts packed parts.
    #[must_use]
    pub const fn with_packed(mut self) -> Self {
        self.accepts_packed = true;
        self
    }

    /// Takes no longer offer than this, in bytes: what strangers may have it hold.
    #[must_use]
    pub const fn with_max_offer_bytes(mut self, bytes: u64) -> Self {
        self.max_offer_bytes = bytes;
        self
    }

    /// Takes no offer of more files than this.
    #[must_use]
    pub const fn with_max_offer_files(mut self, files: u32) -> Self {
        self.max_offer_files = files;
        self
    }

    /// What a client asks for in its request of the connection; `None` for an inbox.
    #[must_use]
    pub fn request(&self) -> Option<Request> {
        let (name, accepts_packed) = (self.name.clone(), self.accepts_packed);
        match self.ask {
            Ask::Get => Some(Request::Get { name, accepts_packed }),
            Ask::Open => Some(Request::Open { name, accepts_packed }),
            Ask::Inbox => None,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Turn {
    WaitsForOffer,
    /// The program reads a long offer.
    ReadsOffer,
    /// The program has to say whether it may come.
    WaitsForAdmission,
    Taking,
    Ended,
}

/// One end of a transfer: the one that gets the files.
pub struct Taker {
    config: TakerConfig,
    turn: Turn,
    offer: Arc<Offer>,
    /// What the offer takes in memory, or its list before it was read.
    offer_memory_bytes: usize,
    /// Of each file of the offer.
    status: Vec<Status>,
    active: BTreeMap<u32, Active>,
    /// The next file of the plan.
    cursor: u32,
    /// Files whose root was asked for: it is not part of the offer.
    learned: BTreeSet<u32>,
    /// The first file that has or gets this content, and those that will be copies of one.
    contents: HashMap<Root, u32>,
    copies: BTreeMap<u32, Vec<u32>>,
    /// Files whose turn came by what became of another one.
    queue: VecDeque<Next>,
    to_compare: VecDeque<u32>,
    incoming: BTreeMap<BlockTag, Incoming>,
    /// Bytes of blocks that are gathered in memory until they are whole.
    gathered_bytes: usize,
    /// What came before the offer was admitted.
    held: VecDeque<Held>,
    /// Chunks in `held`, and in those of files that are inspected.
    held_chunks: usize,
    last_want: u32,
    /// Chunks that were handed out and are not written.
    writes: usize,
    /// Bytes that may still come of files whose size was not offered.
    spare_bytes: u64,
    actions: VecDeque<TakerAction>,
    events: VecDeque<TakerEvent>,
    meter: Meter,
    progress: Progress,
    failed: u32,
}

/// The state of the transfer, without file names.
impl std::fmt::Debug for Taker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut out = f.debug_struct("Taker");
        out.field("turn", &self.turn)
            .field("files", &self.offer.len())
            .field("cursor", &self.cursor);
        out.field("active", &self.active).field("incoming", &self.incoming);
        out.field("writes", &self.writes).finish_non_exhaustive()
    }
}

impl Taker {
    /// A taker. A client sends [`TakerConfig::request`] with its connection; an inbox says "go" by itself.
    #[must_use]
    pub fn new(now: Instant, config: TakerConfig) -> Self {
        let mut taker = Self {
            turn: Turn::WaitsForOffer,
            offer: Arc::default(),
            offer_memory_bytes: 0,
            status: Vec::new(),
            active: BTreeMap::new(),
            cursor: 0,
            contents: HashMap::new(),
            learned: BTreeSet::new(),
            copies: BTreeMap::new(),
            queue: VecDeque::new(),
            to_compare: VecDeque::new(),
            incoming: BTreeMap::new(),
            gathered_bytes: 0,
            held: VecDeque::new(),
            held_chunks: 0,
            last_want: 0,
            writes: 0,
            spare_bytes: 0,
            actions: VecDeque::new(),
            events: VecDeque::new(),
            meter: Meter::new(now),
            progress: Progress::default(),
            failed: 0,
            config,
        };
        if taker.config.ask == Ask::Inbox {
            taker.send(&Message::Go { accepts_packed: taker.config.accepts_packed });
        }
        taker
    }

    /// The giver's list; empty until [`TakerEvent::Offered`].
    #[must_use]
    pub fn offer(&self) -> &Offer {
        &self.offer
    }

    /// The giver's list, shared with another thread.
    #[must_use]
    pub fn shared_offer(&self) -> Arc<Offer> {
        Arc::clone(&self.offer)
    }

    /// Memory for data of the giver, in bytes, without the chunks that are being written.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        self.offer_memory_bytes + self.gathered_bytes
    }

    /// Whether the transfer has ended: nothing more is asked for.
    #[must_use]
    pub const fn is_over(&self) -> bool {
        matches!(self.turn, Turn::Ended)
    }

    /// Whether a file of the offer is wanted.
    #[must_use]
    pub fn is_wanted(&self, file: u32) -> bool {
        self.offer.entry(file).is_some_and(|entry| self.config.only.matches(&entry.path))
    }

    /// The next thing to do.
    pub fn poll_action(&mut self) -> Option<TakerAction> {
        self.actions.pop_front()
    }

    /// The next event.
    pub fn poll_event(&mut self) -> Option<TakerEvent> {
        self.events.pop_front()
    }

    /// Whether the disk has enough to do: no events of the connection are to be taken until this is false.
    /// The connection's credit does the rest.
    #[must_use]
    pub fn is_full(&self) -> bool {
        let waits_for_program = self.turn != Turn::WaitsForOffer && self.held_chunks > 0;
        self.writes >= MAX_WRITES || waits_for_program
    }

    /// Whether the giver was asked for the root of a file that may be here, and hashes it: nothing comes of
    /// it meanwhile.
    #[must_use]
    pub fn awaits_root(&self) -> bool {
        let is_asked = |it: &Active| matches!(it.stage, Stage::Proving { is_known: false });
        self.active.values().any(is_asked)
    }

    /// The progress of the transfer.
    pub fn progress(&mut self, now: Instant) -> Progress {
        let left = self.progress.wanted_bytes.saturating_sub(self.progress.verified_bytes);
        // Packed bytes, and those of lists, are not as many bytes of files.
        self.progress.unfinished_bytes = self.meter.unfinished().min(left);
        let left = left - self.progress.unfinished_bytes;
        self.progress.bytes_per_second = self.meter.rate(now) as u64;
        self.progress.remaining = self.meter.remaining(now, left);
        self.progress
    }

    /// The bytes that are here of chunks that are not whole: for the progress.
    pub fn handle_unfinished(&mut self, now: Instant, bytes: u64) {
        if self.turn == Turn::Taking {
            self.meter.set_unfinished(now, bytes);
        }
    }

    /// A message arrived on channel 0.
    pub fn handle_message(&mut self, now: Instant, bytes: &Bytes) {
        if self.turn == Turn::Ended {
            return;
        }
        match (Message::read(bytes), self.turn) {
            (Err(error), _) => self.refuse(NOT_UNDERSTOOD, &error.to_string()),
            (Ok(Message::Offer(list)), Turn::WaitsForOffer) => self.on_offer(list),
            // Of what goes at once, this may come while the program still thinks about the offer.
            (Ok(message), Turn::ReadsOffer | Turn::WaitsForAdmission) => {
                self.hold(now, Held::Message(message));
            }
            (Ok(message), Turn::Taking) => self.release(now, Held::Message(message)),
            _ => self.refuse(NOT_UNDERSTOOD, "a message before or after it was its turn"),
        }
    }

    /// The program says whether the files may come, and how many bytes of those whose size is not known.
    pub fn handle_admission(&mut self, now: Instant, admission: Result<u64, Fault>) {
        if self.turn != Turn::WaitsForAdmission {
            return;
        }
        match admission {
            Ok(spare_bytes) => {
                self.spare_bytes = spare_bytes;
                self.turn = Turn::Taking;
                self.held_chunks = 0;
                for held in std::mem::take(&mut self.held) {
                    self.release(now, held);
                }
                self.go_on(now);
            }
            Err(fault) => {
                let code = if fault.reason == Reason::Quota { OVER_QUOTA } else { NOT_STORED };
                self.refuse(code, &fault.to_string());
            }
        }
    }

    /// Bytes that may still come of files whose size was not offered.
    #[must_use]
    pub const fn spare_bytes(&self) -> u64 {
        self.spare_bytes
    }

    /// Allows `bytes` more bytes of files whose size was not offered.
    pub const fn add_spare_bytes(&mut self, bytes: u64) {
        self.spare_bytes = self.spare_bytes.saturating_add(bytes);
    }

    /// The program stops: this sends the reason to the giver.
    pub fn close(&mut self, code: CloseCode, reason: &str) {
        if self.turn != Turn::Ended {
            self.end(code, reason);
        }
    }

    /// The connection ended: nothing more is asked for. The bytes that came stay on the disk.
    pub fn handle_closed(&mut self) {
        self.turn = Turn::Ended;
        self.actions.clear();
        self.actions.extend(self.active.keys().map(|&file| TakerAction::Abandon { file }));
        self.active.clear();
        self.incoming.clear();
        self.held.clear();
        (self.gathered_bytes, self.held_chunks) = (0, 0);
    }

    /// A list came: a short one is read here, and a long one by the program, for it takes a while.
    fn on_offer(&mut self, list: Bytes) {
        match Offer::count(&list) {
            Ok(files) if files > self.config.max_offer_files => {
                self.refuse(OVER_QUOTA, "a list of more files than are taken here");
            }
            Ok(files) => {
                self.offer_memory_bytes = list.len() + Offer::memory_bytes_of(files);
                self.turn = Turn::ReadsOffer;
                if list.len() <= MAX_OFFER_MESSAGE_BYTES {
                    self.handle_offer(Offer::read(&list));
                } else {
                    self.act(TakerAction::ReadOffer { list });
                }
            }
            Err(error) => self.refuse(BAD_OFFER, &error.to_string()),
        }
    }

    /// The program has read the list of [`TakerAction::ReadOffer`].
    pub fn handle_offer(&mut self, offer: Result<Offer, OfferError>) {
        if self.turn != Turn::ReadsOffer {
            return;
        }
        let offer = match offer {
            Ok(offer) => offer,
            Err(error) => return self.refuse(BAD_OFFER, &error.to_string()),
        };
        self.offer_memory_bytes = offer.memory_bytes() + offer.len() as usize * FILE_STATE_BYTES;
        if let Some(expected) = self.config.expected_root {
            let is_it = match offer.entries() {
                [entry] => {
                    entry.content != Content::Directory
                        && entry.root().is_none_or(|root| *root == expected)
                }
                _ => false,
            };
            if !is_it {
                return self.refuse(ANOTHER_FILE, "the offer is not the file of the ticket");
            }
        }
        if offer.is_empty() {
            return self.refuse(NO_SUCH_FILE, "the offer is empty");
        }
        self.offer = Arc::new(offer);
        self.turn = Turn::WaitsForAdmission;
        self.select();
        self.events.push_back(TakerEvent::Offered);
        let (files, bytes) = (self.progress.files, self.progress.wanted_bytes);
        self.act(TakerAction::Admit { files, bytes });
    }

    /// Which files are wanted.
    fn select(&mut self) {
        let wanted: Vec<bool> = (0..self.offer.len()).map(|file| self.is_wanted(file)).collect();
        for (entry, _) in
            self.offer.entries().iter().zip(&wanted).filter(|(_, is_wanted)| **is_wanted)
        {
            self.progress.files += u32::from(!entry.is_directory());
            let size = entry.size().unwrap_or(0);
            self.progress.wanted_bytes = self.progress.wanted_bytes.saturating_add(size);
        }
        let status = |is_wanted: bool| if is_wanted { Status::Waiting } else { Status::NotWanted };
        self.status = wanted.into_iter().map(status).collect();
    }

    fn on_message(&mut self, now: Instant, message: Message) {
        match message {
            Message::End { file, length, root } => self.on_end(now, file, length, root),
            Message::Failed { file, fault } => {
                if self.offer.entry(file).is_none() {
                    return self.refuse(NOT_UNDERSTOOD, "no such file");
                }
                // Of one that was only waiting, the giver knew before.
                if matches!(self.status(file), Status::Waiting | Status::Active | Status::Copying) {
                    self.fail(file, fault, Told::ByGiver);
                    self.go_on(now);
                }
            }
            _ => self.refuse(NOT_UNDERSTOOD, "a message that only a taker sends"),
        }
    }

    fn status(&self, file: u32) -> Status {
        self.status.get(file as usize).copied().unwrap_or(Status::NotWanted)
    }

    fn set_status(&mut self, file: u32, status: Status) {
        if let Some(it) = self.status.get_mut(file as usize) {
            *it = status;
        }
    }

    /// Asks the program for something; after the end for nothing more.
    fn act(&mut self, action: TakerAction) {
        if self.turn != Turn::Ended {
            self.actions.push_back(action);
        }
    }

    fn send(&mut self, message: &Message) {
        self.act(TakerAction::SendMessage(message.to_bytes().into()));
    }

    /// A file fails. The bytes that came of it stay on the disk, with its journal.
    fn fail(&mut self, file: u32, fault: Fault, told: Told) {
        self.drop_blocks(file, fault.reason);
        if let Some(active) = self.active.remove(&file) {
            self.held_chunks = self.held_chunks.saturating_sub(active.held_chunks());
            self.act(TakerAction::Abandon { file });
        }
        self.set_status(file, Status::Failed);
        self.failed += 1;
        self.count_done(file);
        if told == Told::ByUs {
            self.send(&Message::Failed { file, fault: fault.clone() });
        }
        self.events.push_back(TakerEvent::Failed { file, fault });
        self.free_copies(file);
    }

    /// Counts a finished file. An empty directory is not counted as a file.
    fn count_done(&mut self, file: u32) {
        let is_file = self.offer.entry(file).is_some_and(|entry| !entry.is_directory());
        self.progress.files_done += u32::from(is_file);
    }

    /// All is done: a client closes, and an inbox says so.
    fn finish(&mut self) {
        self.events.push_back(TakerEvent::Done { failed: self.failed });
        if self.config.ask == Ask::Inbox {
            self.send(&Message::Done);
        } else {
            let code = if self.failed == 0 { DONE } else { INCOMPLETE };
            self.act(TakerAction::Close { code, reason: String::new() });
        }
        self.turn = Turn::Ended;
    }

    /// The giver broke a rule, or the files may not come.
    fn refuse(&mut self, code: CloseCode, what: &str) {
        self.end(code, what);
        self.events.push_back(TakerEvent::Ended { code, reason: what.to_owned() });
    }

    fn end(&mut self, code: CloseCode, reason: &str) {
        self.handle_closed();
        self.actions.push_back(TakerAction::Close { code, reason: reason.to_owned() });
    }
}

/// The end that has reported that a file failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Told {
    ByGiver,
    ByUs,
}

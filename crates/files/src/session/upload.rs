//! What one client sends to an inbox: a [`Taking`], and what it costs of the quota.
//!
//! The invariant: no file is asked for before what it costs is reserved; and when the connection has ended,
//! what stays reserved is what stays on the disk, finished or not.

use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use haulier_proto::connection::{CloseCode, Event};

use super::costs::{Costs, Taken, cost_of_journal, cost_of_part, is_in_use};
use super::inbox::{Inbox, taken_in};
use super::{Jobs, Link, Place, Taking};
use crate::offer::{Content, Entry, Offer};
use crate::pool::PoolHandle;
use crate::progress::Progress;
use crate::quota::{BLOCK_BYTES, cost_of};
use crate::reason::Fault;
use crate::taker::{Ask, TakerConfig, TakerEvent};
use crate::writer::Replace;

/// The longest list of files, in bytes: the paths of [`MAX_OFFER_FILES`] with 80 bytes each.
const MAX_OFFER_BYTES: u64 = 16 << 20;

/// Files of a list. As values they are 30 MB and more, which count as memory that their client holds.
const MAX_OFFER_FILES: u32 = 200_000;

/// What is reserved for a pipe beyond what has come of it, in bytes: four parts, which come ahead.
const SPARE_BYTES: u64 = 256 << 20;

/// At most this many checks whether the files of an ended connection are closed: the last sync of a disk may
/// take seconds, and another client may have continued one of the files.
const MAX_LOOKS: u32 = 1000;

/// The pause between two of these checks: 20 s in all.
const LOOK_PAUSE: Duration = Duration::from_millis(20);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// For the offer, and for the program.
    Waiting,
    /// The pool counts the bytes that are on the disk already.
    Counting,
    Taking,
    /// The connection has ended. The pool counts the bytes of its unfinished files on the disk.
    Settling,
    Over,
}

/// What the pool found.
enum Found {
    Costs {
        costs: Costs,
        /// What is in the inbox, if it was counted because nothing else came.
        in_place: Option<Taken>,
    },
    Left(Left),
    /// The pool could not look.
    Nothing(Fault),
}

/// A file that was admitted and is neither here nor stored: what was there of it before.
struct Unfinished {
    path: PathBuf,
    here_before: u64,
    /// It counts among the files that were reserved.
    is_counted: bool,
}

/// Unfinished files on the disk after the end of the connection.
#[derive(Default)]
struct Left {
    bytes: u64,
    /// How many files are not there.
    absent: u64,
    /// Files that a writer still has open: few, because few are written at a time.
    in_use: Vec<Unfinished>,
}

impl Left {
    /// Looks at the files that were in use. A writer that closes an empty one removes it.
    fn look(mut self, is_last: bool) -> Self {
        for it in std::mem::take(&mut self.in_use) {
            if !is_last && is_in_use(&it.path) {
                self.in_use.push(it);
                continue;
            }
            let part = cost_of_part(&it.path);
            self.absent += u64::from(it.is_counted && part.bytes == 0);
            // What was there before it came was not reserved.
            self.bytes += (part.bytes + part.journal_bytes).saturating_sub(it.here_before);
        }
        self
    }
}

/// What is reserved for a file.
#[derive(Clone, Copy)]
struct Reserved {
    bytes: u64,
    /// It is neither here nor stored.
    is_open: bool,
}

/// One client that sends files to an [`Inbox`], the same in all calls.
pub struct Upload<K> {
    taking: Taking,
    client: K,
    place: Place,
    stage: Stage,
    jobs: Jobs<Found>,
    reserved: Vec<Reserved>,
    reserved_files: u64,
    /// Files of which some was here, and what that cost.
    here_before: BTreeMap<u32, u64>,
    reserved_for_pipes: u64,
    has_pipe: bool,
    /// It counts among the uploads of the inbox.
    is_counted: bool,
    /// The unfinished files as far as they were looked at, and the number of looks.
    left: Option<Left>,
    looks: u32,
    looked: Option<Instant>,
    events: VecDeque<TakerEvent>,
}

impl<K> std::fmt::Debug for Upload<K> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut out = f.debug_struct("Upload");
        out.field("stage", &self.stage).field("taking", &self.taking).finish_non_exhaustive()
    }
}

impl<K: Ord + Clone> Upload<K> {
    /// A client that may send files. The first [`turn`](Self::turn) sends it that permission.
    #[must_use]
    pub fn new(inbox: &Inbox<K>, pool: &PoolHandle, client: K) -> Self {
        let config = TakerConfig::new(Ask::Inbox)
            .with_max_offer_bytes(MAX_OFFER_BYTES)
            .with_max_offer_files(MAX_OFFER_FILES);
        let taking = Taking::new(pool, config, inbox.place.clone(), inbox.replace);
        let taking = if inbox.keeps_attributes { taking } else { taking.without_attributes() };
        Self {
            taking,
            client,
            place: inbox.place.clone(),
            stage: Stage::Waiting,
            jobs: Jobs::new(pool),
            reserved: Vec::new(),
            reserved_files: 0,
            here_before: BTreeMap::new(),
            reserved_for_pipes: 0,
            has_pipe: false,
            is_counted: false,
            left: None,
            looks: 0,
            looked: None,
            events: VecDeque::new(),
        }
    }

    /// The client that sends.
    #[must_use]
    pub const fn client(&self) -> &K {
        &self.client
    }

    /// The files.
    #[must_use]
    pub const fn taking(&self) -> &Taking {
        &self.taking
    }

    /// Whether [`admit`](Self::admit) or [`close`](Self::close) is to be called: the list is here.
    #[must_use]
    pub fn wants_admission(&self) -> bool {
        self.stage == Stage::Waiting && self.taking.wants_admission()
    }

    /// Whether its files have been let in, or are about to be.
    #[must_use]
    pub fn is_admitted(&self) -> bool {
        matches!(self.stage, Stage::Counting | Stage::Taking)
    }

    /// Lets the files in, if they fit in the quota: that is found on a thread of the pool.
    pub fn admit(&mut self, inbox: &Inbox<K>) {
        if !self.wants_admission() {
            return;
        }
        self.stage = Stage::Counting;
        let (offer, place, replace) =
            (self.taking.shared_offer(), inbox.place.clone(), inbox.replace);
        let is_alone = inbox.uploads == 0;
        let is_counted_anew = inbox.quota.is_limited() && is_alone;
        self.jobs.run_when_idle(
            move || {
                let path_of = |file| offer.entry(file).map(|entry| place.path_of(entry));
                let costs = Costs::find(&offer, replace, is_alone, path_of)?;
                Ok((costs, is_counted_anew.then(|| taken_in(&place))))
            },
            |found| match found {
                Ok((costs, in_place)) => Found::Costs { costs, in_place },
                Err(fault) => Found::Nothing(fault),
            },
        );
    }

    /// The progress of the upload.
    pub fn progress(&mut self) -> Progress {
        self.taking.progress()
    }

    /// What happened, for people.
    pub fn poll_event(&mut self) -> Option<TakerEvent> {
        self.events.pop_front()
    }

    /// As [`Taking::is_full`].
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.taking.is_full()
    }

    /// As [`Taking::is_busy`].
    #[must_use]
    pub fn is_busy(&self) -> bool {
        self.jobs.open > 0 || self.taking.is_busy()
    }

    /// Whether the connection has ended and the quota is right again: it may be dropped.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.stage == Stage::Over
    }

    /// The client may not send, or the program stops. The bytes that came stay here for the next time.
    pub fn close(&mut self, link: &impl Link, code: CloseCode, reason: &str) {
        self.taking.close(link, code, reason);
    }

    /// Takes in an event of the connection, and does what follows.
    pub fn handle_event(&mut self, inbox: &mut Inbox<K>, link: &impl Link, event: Event) {
        let is_closed = matches!(event, Event::Closed(_));
        self.taking.handle_event(link, event);
        if is_closed && self.stage != Stage::Over {
            self.stage = Stage::Settling;
        }
        self.turn(inbox, link);
    }

    /// Continues with the answers of the disk.
    pub fn turn(&mut self, inbox: &mut Inbox<K>, link: &impl Link) {
        self.taking.turn(link);
        self.collect_events(inbox);
        while let Some(found) = self.jobs.take() {
            match found {
                Found::Costs { costs, in_place } => self.reserve(inbox, link, costs, in_place),
                Found::Left(left) if left.in_use.is_empty() => self.settle(inbox, &left),
                // A later turn looks again.
                Found::Left(left) => {
                    (self.left, self.looks) = (Some(left), self.looks + 1);
                    self.looked = Some(Instant::now());
                }
                Found::Nothing(fault) => self.on_nothing(inbox, link, fault),
            }
        }
        match self.stage {
            Stage::Taking if self.has_pipe => self.reserve_for_pipes(inbox),
            Stage::Settling if !self.is_busy() && self.is_look_due() => self.look_what_is_left(),
            _ => {}
        }
    }

    fn offer(&self) -> &Offer {
        self.taking.offer()
    }

    /// The pool could not look. Before an upload its cost is unknown, so it is refused; after one, all that
    /// was reserved stays reserved until the inbox is counted anew.
    fn on_nothing(&mut self, inbox: &mut Inbox<K>, link: &impl Link, fault: Fault) {
        if self.stage == Stage::Counting {
            self.stage = Stage::Waiting;
            self.taking.refuse(link, fault);
        } else {
            self.end(inbox);
        }
    }

    fn reserve(
        &mut self,
        inbox: &mut Inbox<K>,
        link: &impl Link,
        costs: Costs,
        in_place: Option<Taken>,
    ) {
        if self.stage != Stage::Counting {
            return;
        }
        let is_alone = inbox.uploads == 0;
        if !is_alone && inbox.replace == Replace::File && !costs.here.is_empty() {
            // Another one came first, and may be about to finish what was taken off here: once more.
            self.stage = Stage::Waiting;
            return self.admit(inbox);
        }
        if let Some(taken) = in_place.filter(|_| is_alone) {
            inbox.quota.set_taken(taken.bytes, taken.files);
        }
        let total = costs.total();
        if let Err(fault) = inbox.reserve(&self.client, total) {
            self.stage = Stage::Waiting;
            self.taking.refuse(link, fault);
            return self.collect_events(inbox);
        }
        self.stage = Stage::Taking;
        (self.is_counted, inbox.uploads) = (true, inbox.uploads + 1);
        self.reserved =
            costs.files.iter().map(|&bytes| Reserved { bytes, is_open: true }).collect();
        self.reserved_files = total.files;
        self.here_before = costs.here;
        let is_pipe = |content: &Content| *content == Content::Stream;
        self.has_pipe = self.offer().entries().iter().any(|entry| is_pipe(&entry.content));
        self.taking.admit(link, None, 0);
        if self.has_pipe {
            self.reserve_for_pipes(inbox);
        }
    }

    /// The length of a pipe is unknown, so some of the remaining quota is reserved for it, again and again.
    fn reserve_for_pipes(&mut self, inbox: &mut Inbox<K>) {
        if self.taking.spare_bytes() >= SPARE_BYTES / 2 {
            return;
        }
        let bytes = SPARE_BYTES.min(inbox.quota.left_bytes(&self.client));
        if bytes > 0 && inbox.quota.reserve(&self.client, bytes).is_ok() {
            self.reserved_for_pipes += bytes;
            self.taking.add_spare_bytes(bytes);
        }
    }

    /// What is stored stays reserved, without its journal; what was here had cost nothing.
    fn collect_events(&mut self, inbox: &mut Inbox<K>) {
        while let Some(event) = self.taking.poll_event() {
            if let TakerEvent::Here { file } | TakerEvent::Stored { file } = event {
                let is_stored = matches!(event, TakerEvent::Stored { .. });
                self.conclude(inbox, file, is_stored);
            }
            self.events.push_back(event);
        }
    }

    fn conclude(&mut self, inbox: &mut Inbox<K>, file: u32, is_stored: bool) {
        let content = self.offer().entry(file).map(|entry| entry.content);
        let Some(reserved) = self.reserved.get_mut(file as usize) else { return };
        reserved.is_open = false;
        let bytes = std::mem::take(&mut reserved.bytes);
        match content {
            _ if !is_stored => {
                inbox.quota.release(&self.client, bytes);
                if bytes > 0 {
                    self.reserved_files = self.reserved_files.saturating_sub(1);
                    inbox.quota.release_files(1);
                }
            }
            Some(Content::Stream) => {
                let length = self.taking.root_of(file).map_or(0, |(length, _)| length);
                let kept = (cost_of(length) - BLOCK_BYTES).min(self.reserved_for_pipes);
                self.reserved_for_pipes -= kept;
            }
            Some(Content::Known { size, .. } | Content::Sized(size)) => {
                inbox.quota.release(&self.client, cost_of_journal(size).min(bytes));
            }
            _ => {}
        }
    }

    fn is_look_due(&self) -> bool {
        self.looked.is_none_or(|at| at.elapsed() >= LOOK_PAUSE)
    }

    /// Looks, on a thread of the pool, what is on the disk of the files that have no name.
    fn look_what_is_left(&mut self) {
        if !self.is_counted {
            self.stage = Stage::Over;
            return;
        }
        let known = self.left.take();
        let (offer, place) = (self.taking.shared_offer(), self.place.clone());
        // What costs nothing more was there, or will be refused; but a pipe may have grown.
        let entries = self.offer().entries();
        let is_open = |((file, it), entry): ((u32, &Reserved), &Entry)| {
            let is_any = it.bytes > 0 || entry.content == Content::Stream;
            (it.is_open && is_any).then_some((file, it.bytes > 0))
        };
        let open: Vec<(u32, bool)> = match &known {
            Some(_) => Vec::new(),
            None => (0..).zip(&self.reserved).zip(entries).filter_map(is_open).collect(),
        };
        let here_before = std::mem::take(&mut self.here_before);
        let is_last = self.looks >= MAX_LOOKS;
        self.jobs.run(
            move || {
                let unfinished = open.iter().filter_map(|&(file, is_counted)| {
                    let here_before = here_before.get(&file).copied().unwrap_or_default();
                    let path = place.path_of(offer.entry(file)?);
                    Some(Unfinished { path, here_before, is_counted })
                });
                let left = known
                    .unwrap_or_else(|| Left { in_use: unfinished.collect(), ..Left::default() });
                Ok(left.look(is_last))
            },
            |left| left.map_or_else(Found::Nothing, Found::Left),
        );
    }

    /// The bytes that stay on the disk remain reserved, and the rest is free again.
    fn settle(&mut self, inbox: &mut Inbox<K>, left: &Left) {
        let open: u64 = self.reserved.iter().filter(|it| it.is_open).map(|it| it.bytes).sum();
        self.reserved.clear();
        let reserved = open.saturating_add(std::mem::take(&mut self.reserved_for_pipes));
        inbox.quota.release(&self.client, reserved.saturating_sub(left.bytes));
        inbox.quota.release_files(left.absent.min(self.reserved_files));
        self.end(inbox);
    }

    fn end(&mut self, inbox: &mut Inbox<K>) {
        if std::mem::take(&mut self.is_counted) {
            inbox.uploads = inbox.uploads.saturating_sub(1);
        }
        self.stage = Stage::Over;
    }
}

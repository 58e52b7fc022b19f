//! What one client sends to an inbox: a [`Taking`], and what it costs of the quota.
//!
//! The invariant: no file is asked for before what it costs is reserved; and when the connection has ended,
//! what stays reserved is what stays on the disk, finished or not.

use std::collections::VecDeque;
use std::path::PathBuf;

use haulier_proto::connection::{CloseCode, Event};

use super::costs::{Costs, cost_of, cost_of_part, is_in_use};
use super::inbox::{Inbox, cost_of_place};
use super::{Jobs, Link, Place, Taking};
use crate::offer::{Content, Offer};
use crate::pool::PoolHandle;
use crate::progress::Progress;
use crate::taker::{Ask, TakerConfig, TakerEvent};

/// The longest list of files, in bytes: some 200,000 of them. Several clients may have sent one each.
const MAX_OFFER_BYTES: u64 = 16 << 20;

/// What is reserved for a pipe beyond what has come of it, in bytes: four parts, which come ahead.
const SPARE_BYTES: u64 = 256 << 20;

/// How often it is looked whether the files of a connection that has ended are let go of: the last sync of
/// a disk may take seconds, and another client may have gone on with one of them.
const MAX_LOOKS: u32 = 1000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// For the offer, and for the program.
    Waiting,
    /// What is there is looked at.
    Counting,
    Taking,
    /// The connection has ended. What is there is looked at.
    Settling,
    Over,
}

/// What the pool found.
enum Found {
    Costs {
        costs: Costs,
        in_place: Option<u64>,
    },
    /// What is there of the files that were not finished; or some of them are still being let go of.
    Left(u64),
    NotYet,
}

/// A file that was admitted and is neither here nor stored: what it costs, and what of that was reserved.
struct Unfinished {
    path: PathBuf,
    cost: u64,
    reserved: u64,
}

/// One client that sends files to an [`Inbox`], the same in all calls.
pub struct Upload<K> {
    taking: Taking,
    client: K,
    place: Place,
    stage: Stage,
    jobs: Jobs<Found>,
    /// What is reserved for each file that is neither here nor stored, and for pipes.
    reserved: Vec<u64>,
    reserved_for_pipes: u64,
    has_pipe: bool,
    /// It counts among the uploads of the inbox.
    is_counted: bool,
    /// How often it was looked whether its files are let go of.
    looks: u32,
    events: VecDeque<TakerEvent>,
}

impl<K> std::fmt::Debug for Upload<K> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut out = f.debug_struct("Upload");
        out.field("stage", &self.stage).field("taking", &self.taking).finish_non_exhaustive()
    }
}

impl<K: Ord + Clone> Upload<K> {
    /// A client that may send files. It is told so by the first [`turn`](Self::turn).
    #[must_use]
    pub fn new(inbox: &Inbox<K>, pool: &PoolHandle, client: K) -> Self {
        let config = TakerConfig::new(Ask::Inbox).with_max_offer_bytes(MAX_OFFER_BYTES);
        let taking = Taking::new(pool, config, inbox.place.clone(), inbox.replace);
        let taking = if inbox.keeps_attributes { taking } else { taking.without_attributes() };
        Self {
            taking,
            client,
            place: inbox.place.clone(),
            stage: Stage::Waiting,
            jobs: Jobs::new(pool),
            reserved: Vec::new(),
            reserved_for_pipes: 0,
            has_pipe: false,
            is_counted: false,
            looks: 0,
            events: VecDeque::new(),
        }
    }

    /// Who sends.
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
        let (offer, place, replace) = (self.offer().clone(), inbox.place.clone(), inbox.replace);
        let is_counted_anew = inbox.quota.is_limited() && inbox.uploads == 0;
        self.jobs.run(move || {
            let path_of = |file| offer.entry(file).map(|entry| place.path_of(entry));
            let costs = Costs::find(&offer, replace, path_of);
            Found::Costs { costs, in_place: is_counted_anew.then(|| cost_of_place(&place)) }
        });
    }

    /// How far it is.
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

    /// It may not send, or the program stops. What is here stays for the next time.
    pub fn close(&mut self, link: &impl Link, code: CloseCode, reason: &str) {
        self.taking.close(link, code, reason);
    }

    /// Takes in an event of the connection, and does what follows.
    pub fn handle_event(&mut self, inbox: &mut Inbox<K>, link: &impl Link, event: Event) {
        let is_closed = matches!(event, Event::Closed(_));
        self.taking.handle_event(link, event);
        if is_closed {
            self.stage = Stage::Settling;
        }
        self.turn(inbox, link);
    }

    /// Goes on, with what the disk has answered.
    pub fn turn(&mut self, inbox: &mut Inbox<K>, link: &impl Link) {
        self.taking.turn(link);
        self.collect_events(inbox);
        while let Some(found) = self.jobs.take() {
            match found {
                Found::Costs { costs, in_place } => self.reserve(inbox, link, costs, in_place),
                Found::Left(bytes) => self.settle(inbox, bytes),
                // The next turn looks again.
                Found::NotYet => self.looks += 1,
            }
        }
        match self.stage {
            Stage::Taking if self.has_pipe => self.reserve_for_pipes(inbox),
            Stage::Settling if !self.is_busy() => self.look_what_is_left(inbox),
            _ => {}
        }
    }

    const fn offer(&self) -> &Offer {
        self.taking.offer()
    }

    fn reserve(
        &mut self,
        inbox: &mut Inbox<K>,
        link: &impl Link,
        costs: Costs,
        in_place: Option<u64>,
    ) {
        if self.stage != Stage::Counting {
            return;
        }
        // Another one may have come first.
        if let Some(bytes) = in_place.filter(|_| inbox.uploads == 0) {
            inbox.quota.set_taken_bytes(bytes);
        }
        if let Err(fault) = inbox.reserve(&self.client, costs.total()) {
            self.stage = Stage::Waiting;
            self.taking.refuse(link, fault);
            return self.collect_events(inbox);
        }
        self.stage = Stage::Taking;
        (self.is_counted, inbox.uploads) = (true, inbox.uploads + 1);
        self.reserved = costs.files;
        let is_pipe = |content: &Content| *content == Content::Stream;
        self.has_pipe = self.offer().entries().iter().any(|entry| is_pipe(&entry.content));
        self.taking.admit(link, None, 0);
        if self.has_pipe {
            self.reserve_for_pipes(inbox);
        }
    }

    /// Nobody knows how long a pipe is, so some of what is left is reserved, again and again.
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

    /// What is stored stays reserved; what was here had cost nothing.
    fn collect_events(&mut self, inbox: &mut Inbox<K>) {
        while let Some(event) = self.taking.poll_event() {
            if let TakerEvent::Here { file } | TakerEvent::Stored { file } = event {
                let reserved = self.reserved.get_mut(file as usize).map_or(0, std::mem::take);
                let is_stored = matches!(event, TakerEvent::Stored { .. });
                match self.offer().entry(file).map(|entry| entry.content) {
                    Some(Content::Stream) if is_stored => {
                        let bytes = self.taking.root_of(file).map_or(0, |(length, _)| length);
                        let kept = cost_of(bytes).min(self.reserved_for_pipes);
                        self.reserved_for_pipes -= kept;
                    }
                    _ if is_stored => {}
                    _ => inbox.quota.release(&self.client, reserved),
                }
            }
            self.events.push_back(event);
        }
    }

    fn look_what_is_left(&mut self, inbox: &mut Inbox<K>) {
        if !self.is_counted {
            self.stage = Stage::Over;
            return;
        }
        let is_open = |file: &u32| {
            let reserved = self.reserved.get(*file as usize).copied().unwrap_or(0);
            let content = self.offer().entry(*file).map(|entry| entry.content);
            reserved > 0 || content == Some(Content::Stream)
        };
        let open = (0..self.offer().len()).filter(is_open);
        let unfinished: Vec<Unfinished> = open
            .filter_map(|file| {
                let entry = self.offer().entry(file)?;
                Some(Unfinished {
                    path: self.place.path_of(entry),
                    cost: entry.size().map_or(0, cost_of),
                    reserved: self.reserved.get(file as usize).copied().unwrap_or(0),
                })
            })
            .collect();
        if unfinished.is_empty() {
            return self.settle(inbox, 0);
        }
        let is_last = self.looks >= MAX_LOOKS;
        self.jobs.run(move || {
            // What is let go of with nothing in it is removed then.
            if !is_last && unfinished.iter().any(|it| is_in_use(&it.path)) {
                return Found::NotYet;
            }
            let left = |it: &Unfinished| {
                let is_here = cost_of_part(&it.path);
                // What was there before it came was not reserved.
                if it.cost == 0 { is_here } else { is_here.saturating_sub(it.cost - it.reserved) }
            };
            Found::Left(unfinished.iter().map(left).sum())
        });
    }

    /// What is left on the disk stays reserved, and the rest is free again.
    fn settle(&mut self, inbox: &mut Inbox<K>, left_bytes: u64) {
        let reserved: u64 = self.reserved.drain(..).sum();
        let reserved = reserved.saturating_add(std::mem::take(&mut self.reserved_for_pipes));
        inbox.quota.release(&self.client, reserved.saturating_sub(left_bytes));
        if std::mem::take(&mut self.is_counted) {
            inbox.uploads = inbox.uploads.saturating_sub(1);
        }
        self.stage = Stage::Over;
    }
}

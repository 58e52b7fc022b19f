//! The machine that gives files: it makes an offer, takes the other end's wants, and returns actions: what to
//! read and what to send.
//!
//! Without I/O: messages, wanted chunks and what the disk answered come in; actions and events go out. It
//! is the same for a server that is asked (`get`, `open`) and for a client that gives (`put`).
//!
//! The invariant: at most [`MAX_BLOCKS`] blocks are on their way, one is being made, and at most
//! [`MAX_READS`] chunks are being read, whatever the taker wants. The wants that are not answered yet are
//! bounded by [`MAX_WANTS`].

mod action;
mod arrived;
mod making;
mod wants;

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use haulier_core::Instant;
use haulier_proto::connection::CloseCode;

pub use action::{BlockSource, GiverAction, GiverEvent, Made};
pub use wants::{MAX_WANTED_RANGES, MAX_WANTS};

use self::making::Maker;
pub(crate) use self::making::{
    MAX_MEMORY_PART_BYTES, MAX_PACKED_BYTES, MAX_PART_BYTES, MAX_PIECES_BYTES,
};
use self::wants::Wants;
use crate::messages::{Form, MAX_OFFER_MESSAGE_BYTES, Message};
use crate::offer::{Content, Offer};
use crate::packing::Packing;
use crate::progress::Meter;
use crate::reason::{DONE, Fault, INCOMPLETE, NOT_UNDERSTOOD, Reason};
use crate::tag::BlockTag;

/// Blocks on their way at a time: enough for the files of a directory to fill a link, and a quarter of
/// what a connection may announce.
pub const MAX_BLOCKS: usize = 8;

/// Chunks that are being read at a time: what a few threads and a disk's queue keep busy.
pub const MAX_READS: usize = 16;

/// Chunks of files that may go before the offer is known to have arrived: the taker has to hold them.
pub const MAX_EARLY_CHUNKS: u32 = 32;

/// How a transfer begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// A server was asked for all of it: the offer goes, and the files at once after it.
    AtOnce,
    /// A server was asked for the offer.
    Offer,
    /// A client gives: the offer goes when the server says so.
    WhenAsked,
}

/// How a giver gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct GiverConfig {
    /// How it begins.
    pub start: Start,
    /// When files are packed, if the taker accepts that too. Default: never.
    pub packing: Packing,
    /// Whether the taker said in its request that it accepts packed parts.
    pub taker_accepts_packed: bool,
}

impl GiverConfig {
    /// A giver that packs nothing.
    #[must_use]
    pub const fn new(start: Start) -> Self {
        Self { start, packing: Packing::Never, taker_accepts_packed: false }
    }

    /// Packs, if the taker accepts it; what it said in its request, if it has sent one.
    #[must_use]
    pub const fn with_packing(mut self, packing: Packing, taker_accepts_packed: bool) -> Self {
        (self.packing, self.taker_accepts_packed) = (packing, taker_accepts_packed);
        self
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Turn {
    /// The server has not said "go".
    WaitsForGo,
    /// The offer is a block, and on its way.
    Offering,
    Giving,
    Ended,
}

/// What became of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Open,
    Stored,
    NotWanted,
    Refused,
    Failed,
}

/// A block on its way.
#[derive(Debug)]
struct Outgoing {
    file: Option<u32>,
    length: u64,
    /// Where its bytes are in the file; none for a block in memory.
    spans: Vec<Range<u64>>,
    read_bytes: u64,
    /// Of what was given to the connection, what is known to have arrived.
    arrived_bytes: u64,
}

/// One end of a transfer: the one that has the files.
pub struct Giver {
    config: GiverConfig,
    offer: Arc<Offer>,
    turn: Turn,
    /// Of each file of the offer.
    fates: Vec<Fate>,
    wants: Wants,
    maker: Maker,
    blocks: BTreeMap<BlockTag, Outgoing>,
    /// Chunks that the connection wants and that are not being read yet.
    to_read: VecDeque<(BlockTag, u64, u64)>,
    reads: usize,
    /// Chunks that may still go before the offer is acknowledged; `None` once it is.
    early_chunks: Option<u32>,
    actions: VecDeque<GiverAction>,
    events: VecDeque<GiverEvent>,
    meter: Meter,
    wanted_bytes: u64,
    arrived_bytes: u64,
}

/// The state of the transfer, without file names.
impl std::fmt::Debug for Giver {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut out = f.debug_struct("Giver");
        out.field("turn", &self.turn).field("files", &self.offer.len());
        out.field("blocks", &self.blocks).field("reads", &self.reads).finish_non_exhaustive()
    }
}

impl Giver {
    /// A giver of these files.
    #[must_use]
    pub fn new(now: Instant, config: GiverConfig, offer: impl Into<Arc<Offer>>) -> Self {
        let offer = offer.into();
        let mut giver = Self {
            config,
            turn: Turn::WaitsForGo,
            fates: vec![Fate::Open; offer.len() as usize],
            wants: Wants::new(config.start == Start::AtOnce, offer.len()),
            maker: Maker::default(),
            blocks: BTreeMap::new(),
            to_read: VecDeque::new(),
            reads: 0,
            early_chunks: Some(MAX_EARLY_CHUNKS),
            actions: VecDeque::new(),
            events: VecDeque::new(),
            meter: Meter::new(now),
            wanted_bytes: 0,
            arrived_bytes: 0,
            offer,
        };
        if config.start != Start::WhenAsked {
            giver.send_offer();
        }
        giver
    }

    /// The files.
    #[must_use]
    pub fn offer(&self) -> &Offer {
        &self.offer
    }

    /// Bytes of the blocks on their way that are in memory: the offer, recipes, parts of pipes, packed parts.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        let in_memory = self.blocks.values().filter(|block| block.spans.is_empty());
        let bytes: u64 = in_memory.map(|block| block.length).sum();
        usize::try_from(bytes).unwrap_or(usize::MAX)
    }

    /// Where in its file the bytes of a block on its way are, one range after the other.
    #[must_use]
    pub fn spans_of(&self, tag: BlockTag) -> Option<&[Range<u64>]> {
        self.blocks.get(&tag).map(|block| &block.spans[..])
    }

    /// The next thing to do.
    pub fn poll_action(&mut self) -> Option<GiverAction> {
        self.actions.pop_front()
    }

    /// The next event.
    pub fn poll_event(&mut self) -> Option<GiverEvent> {
        self.events.pop_front()
    }

    /// A message arrived on channel 0.
    pub fn handle_message(&mut self, bytes: &Bytes) {
        if self.turn == Turn::Ended {
            return;
        }
        let message = match Message::read(bytes) {
            Ok(message) => message,
            Err(error) => return self.refuse(&error.to_string()),
        };
        match (message, self.turn) {
            (Message::Go { accepts_packed }, Turn::WaitsForGo) => {
                self.config.taker_accepts_packed = accepts_packed;
                self.send_offer();
            }
            (_, Turn::WaitsForGo) => return self.refuse("a message before it was its turn"),
            (Message::Want(want), _) => {
                // Whoever wants a file has the offer. And what answers an earlier want of it is not wanted
                // any more.
                self.early_chunks = None;
                if !matches!(want.form, Form::Pieces(_)) {
                    self.drop_file(want.file, Reason::NotWanted as u32);
                }
                if let Err(what) = self.wants.push(want, &self.offer) {
                    return self.refuse(what);
                }
            }
            (Message::Stored { file }, _) => self.on_fate(file, Fate::Stored, None),
            (Message::Refused { file, fault }, _) => {
                let is_wanted = fault.reason != Reason::NotWanted;
                let fate = if is_wanted { Fate::Refused } else { Fate::NotWanted };
                self.on_fate(file, fate, Some(fault));
            }
            (Message::Failed { file, fault }, _) => self.on_fate(file, Fate::Failed, Some(fault)),
            (Message::Done, _) => self.on_done(),
            _ => return self.refuse("a message that only a giver sends"),
        }
        self.go_on();
    }

    /// The first message of this end, the offer, is acknowledged.
    pub fn handle_offer_acked(&mut self) {
        self.early_chunks = None;
        self.go_on();
    }

    /// The connection wants a chunk of a block.
    pub fn handle_wanted_chunk(&mut self, tag: BlockTag, offset: u64, length: u64) {
        if self.blocks.contains_key(&tag) {
            self.to_read.push_back((tag, offset, length));
            self.go_on();
        }
    }

    /// A chunk was read and is what the tree says, or could not be.
    pub fn handle_read(&mut self, tag: BlockTag, offset: u64, read: Result<Bytes, Fault>) {
        self.reads = self.reads.saturating_sub(1);
        if let Some(block) = self.blocks.get_mut(&tag) {
            match read {
                Ok(bytes) => {
                    block.read_bytes += bytes.len() as u64;
                    self.act(GiverAction::Provide { tag, offset, bytes });
                }
                Err(fault) => {
                    if let Some(file) = block.file {
                        self.fail(file, fault);
                    }
                }
            }
        }
        self.go_on();
    }

    /// A block cannot be sent after all: its file is another one now.
    pub(crate) fn handle_unsendable(&mut self, tag: BlockTag, fault: Fault) {
        if let Some(file) = tag.file() {
            self.fail(file, fault);
        }
        self.go_on();
    }

    /// All of a block has arrived.
    pub fn handle_block_sent(&mut self, now: Instant, tag: BlockTag) {
        if tag == BlockTag::Offer {
            self.early_chunks = None;
        }
        self.handle_arrived(now, tag, u64::MAX);
        if let Some(block) = self.blocks.remove(&tag) {
            self.forget(&block);
        }
        self.go_on();
    }

    /// The taker does not want a block.
    pub fn handle_block_declined(&mut self, tag: BlockTag) {
        if let Some(block) = self.blocks.remove(&tag) {
            self.forget(&block);
            self.to_read.retain(|(of, ..)| *of != tag);
        }
        self.go_on();
    }

    /// The program stops: this sends the reason to the taker.
    pub fn close(&mut self, code: CloseCode, reason: &str) {
        if self.turn != Turn::Ended {
            self.end(code, reason);
        }
    }

    /// The connection ended: nothing more is asked for.
    pub fn handle_closed(&mut self) {
        self.turn = Turn::Ended;
        self.actions.clear();
    }

    fn send_offer(&mut self) {
        let list = Bytes::from(self.offer.to_bytes());
        if list.len() <= MAX_OFFER_MESSAGE_BYTES {
            self.turn = Turn::Giving;
            self.send(&Message::Offer(list));
        } else {
            self.turn = Turn::Offering;
            let length = list.len() as u64;
            self.send_block(BlockTag::Offer, BlockSource::Memory(list), length, Vec::new());
        }
        self.go_on();
    }

    /// Asks the program for something; after the end for nothing more.
    fn act(&mut self, action: GiverAction) {
        if self.turn != Turn::Ended {
            self.actions.push_back(action);
        }
    }

    fn send(&mut self, message: &Message) {
        self.act(GiverAction::SendMessage(message.to_bytes().into()));
    }

    fn send_block(
        &mut self,
        tag: BlockTag,
        source: BlockSource,
        length: u64,
        spans: Vec<Range<u64>>,
    ) {
        let block = Outgoing { file: tag.file(), length, spans, read_bytes: 0, arrived_bytes: 0 };
        self.blocks.insert(tag, block);
        self.act(GiverAction::SendBlock { tag, source });
    }

    /// Does whatever may be done now.
    fn go_on(&mut self) {
        if self.turn == Turn::Offering && !self.blocks.contains_key(&BlockTag::Offer) {
            self.turn = Turn::Giving;
        }
        if self.turn == Turn::Giving {
            self.make_blocks();
        }
        if self.turn != Turn::Ended {
            self.read_chunks();
        }
    }

    fn read_chunks(&mut self) {
        while self.reads < MAX_READS && self.early_chunks != Some(0) {
            let Some((tag, offset, length)) = self.to_read.pop_front() else { return };
            let Some(block) = self.blocks.get(&tag) else { continue };
            let (Some(file), spans) = (block.file, spans_at(&block.spans, offset, length)) else {
                continue;
            };
            self.early_chunks = self.early_chunks.map(|left| left.saturating_sub(1));
            self.reads += 1;
            self.act(GiverAction::Read { tag, offset, file, spans });
        }
    }

    /// The taker reports the result of a file. Only the first report of a file counts: so events are bounded.
    fn on_fate(&mut self, file: u32, fate: Fate, fault: Option<Fault>) {
        let Some(known) = self.fates.get_mut(file as usize) else {
            return self.refuse("no such file");
        };
        if std::mem::replace(known, if *known == Fate::Open { fate } else { *known }) != Fate::Open
        {
            return;
        }
        if fate == Fate::Stored {
            self.count_as_arrived(file);
        }
        // Of a file that was there already something may be on its way, unasked.
        self.drop_file(file, 0);
        self.events.push_back(match (fate, fault) {
            (Fate::Refused | Fate::NotWanted, Some(fault)) => GiverEvent::Refused { file, fault },
            (Fate::Failed, Some(fault)) => GiverEvent::Failed { file, fault },
            _ => GiverEvent::Stored { file },
        });
    }

    /// A file cannot be read: this reports it to the taker, and the other files continue.
    fn fail(&mut self, file: u32, fault: Fault) {
        let Some(fate @ Fate::Open) = self.fates.get_mut(file as usize) else { return };
        *fate = Fate::Failed;
        self.drop_file(file, fault.reason as u32);
        self.send(&Message::Failed { file, fault: fault.clone() });
        self.events.push_back(GiverEvent::Failed { file, fault });
    }

    /// Takes back all that is on its way of a file.
    fn drop_file(&mut self, file: u32, code: u32) {
        self.wants.drop_file(file);
        self.maker.stop(file);
        let of_file: Vec<BlockTag> =
            self.blocks.keys().copied().filter(|tag| tag.file() == Some(file)).collect();
        for tag in of_file {
            if let Some(block) = self.blocks.remove(&tag) {
                self.forget(&block);
            }
            self.to_read.retain(|(of, ..)| *of != tag);
            self.act(GiverAction::CancelBlock { tag, code });
        }
    }

    fn on_done(&mut self) {
        self.events.push_back(GiverEvent::Done);
        if self.config.start == Start::WhenAsked {
            let failed = self.fates.iter().any(|fate| matches!(fate, Fate::Failed | Fate::Refused));
            let code = if failed { INCOMPLETE } else { DONE };
            self.act(GiverAction::Close { code, reason: String::new() });
            self.turn = Turn::Ended;
        }
    }

    /// The taker broke a rule.
    fn refuse(&mut self, what: &str) {
        self.end(NOT_UNDERSTOOD, what);
        self.events.push_back(GiverEvent::Ended { code: NOT_UNDERSTOOD, reason: what.to_owned() });
    }

    fn end(&mut self, code: CloseCode, reason: &str) {
        self.actions.clear();
        self.blocks.clear();
        self.to_read.clear();
        self.act(GiverAction::Close { code, reason: reason.to_owned() });
        self.turn = Turn::Ended;
    }

    /// Whether a file is a pipe.
    fn is_stream(&self, file: u32) -> bool {
        self.offer.entry(file).is_some_and(|entry| entry.content == Content::Stream)
    }
}

/// The ranges of `length` bytes that begin at `offset`, where `offset` counts only the bytes in `spans`.
fn spans_at(spans: &[Range<u64>], offset: u64, length: u64) -> Vec<Range<u64>> {
    let (mut skip, mut left) = (offset, length);
    let mut found = Vec::new();
    for span in spans {
        let bytes = span.end - span.start;
        if skip >= bytes {
            skip -= bytes;
            continue;
        }
        let start = span.start + skip;
        let end = span.end.min(start.saturating_add(left));
        skip = 0;
        if start < end {
            left -= end - start;
            found.push(start..end);
        }
    }
    found
}

//! A giver that says anything: lists of every kind and length, parts anywhere, false ends. It obeys
//! the rules that a connection enforces: a block is announced once, has chunks of its length, and is gone
//! when it is declined.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

use bytes::Bytes;
use haulier_files::BlockTag;
use haulier_files::messages::{Form, Message, Want};
use haulier_files::names::SafePath;
use haulier_files::offer::{Content, Entry, Offer, Root};
use haulier_files::reason::Reason;
use haulier_files::session::{Link, LinkSpeed};
use haulier_proto::connection::{
    Block, BlockHandle, BlockNumber, BlockTree, ChunkValue, CloseCode, CloseReason, Event,
    SendError, WantedChunk,
};

use crate::draw::Draw;

const CHUNK: u64 = 1 << 18;

/// What a datagram has beside what it brings: nothing is sent for less.
const DATAGRAM_BYTES: u64 = 40;

/// The only bytes that it has.
static SEVENS: [u8; CHUNK as usize] = [7; CHUNK as usize];

/// The longest file whose root it knows.
const MAX_KNOWN: u64 = 3 << 20;

/// The session's side.
#[derive(Default)]
pub(crate) struct Wire {
    pub(crate) messages: RefCell<Vec<Message>>,
    declined: RefCell<Vec<u32>>,
    pub(crate) is_closed: Cell<bool>,
    pub(crate) held_bytes: Cell<usize>,
}

impl Link for Wire {
    fn send_message(&self, message: Bytes) -> Result<(), SendError> {
        self.messages.borrow_mut().push(Message::read(&message).unwrap());
        Ok(())
    }
    fn send_block(&self, _: &Block) -> Result<BlockHandle, SendError> {
        Err(SendError::NotOpen)
    }
    fn cancel_block(&self, _: BlockHandle, _: u32) {}
    fn decline_block(&self, block: BlockNumber, _: u32) {
        self.declined.borrow_mut().push(block.to_bits());
    }
    fn have_chunks(&self, _: Root, _: Vec<u8>) {}
    fn want_chunk(&self) -> Option<WantedChunk> {
        None
    }
    fn provide_chunk(&self, _: BlockHandle, _: u32, _: Bytes) {}
    fn arrived_bytes(&self, _: BlockHandle) -> u64 {
        0
    }
    fn all_acked(&self) -> bool {
        true
    }
    fn speed(&self) -> LinkSpeed {
        LinkSpeed::default()
    }
    fn hold_bytes(&self, bytes: usize) {
        self.held_bytes.set(bytes);
    }
    fn close(&self, _: CloseCode, _: &str) {
        self.is_closed.set(true);
    }
}

/// A block on its way.
struct Sending {
    number: u32,
    length: u64,
    root: Root,
    sent: u64,
}

pub(crate) struct Liar {
    pub(crate) draw: Draw,
    pub(crate) wire: Wire,
    /// Files of other sessions may have the same names.
    prefix: String,
    entries: Vec<Entry>,
    has_offered: bool,
    goes_unasked: bool,
    blocks: BTreeMap<u64, Sending>,
    numbers: u32,
    wants: Vec<Want>,
    /// How far the parts of each file came, so that some of it makes sense.
    reached: BTreeMap<u32, u64>,
    pub(crate) received_bytes: u64,
    pub(crate) files: u64,
    /// What it means to send in all: no more of the disk is to be taken by a test.
    max_size: u64,
}

impl Liar {
    /// One that sends unasked what a want would ask for.
    pub(crate) const fn unasked(mut self) -> Self {
        self.goes_unasked = true;
        self
    }

    pub(crate) fn new(seed: u64, max_size: u64) -> Self {
        let mut draw = Draw(seed);
        let prefix = if draw.one_in(3) { String::new() } else { format!("s{}-", seed % 1000) };
        Self {
            draw,
            wire: Wire::default(),
            prefix,
            entries: Vec::new(),
            has_offered: false,
            goes_unasked: false,
            blocks: BTreeMap::new(),
            numbers: 0,
            wants: Vec::new(),
            reached: BTreeMap::new(),
            received_bytes: 0,
            files: 0,
            max_size,
        }
    }

    /// The next things that a connection would hand on.
    pub(crate) fn next(&mut self) -> Vec<Event> {
        self.received_bytes += DATAGRAM_BYTES;
        let said = std::mem::take(&mut *self.wire.messages.borrow_mut());
        for message in said {
            if let Message::Want(want) = message {
                self.wants.push(want);
                self.files += 1;
            }
        }
        let declined = std::mem::take(&mut *self.wire.declined.borrow_mut());
        self.blocks.retain(|_, block| !declined.contains(&block.number));
        if !self.has_offered {
            self.has_offered = true;
            return self.offer();
        }
        match self.draw.below(120) {
            0 => vec![Event::Closed(CloseReason::ConnectionUnknown)],
            1 => vec![self.say(self.junk())],
            2..=80 if !self.blocks.is_empty() => self.go_on(),
            _ if !self.wants.is_empty() => self.answer(),
            _ => self.go_on(),
        }
    }

    fn junk(&self) -> Bytes {
        Bytes::from_static(&[4, 0, 0])
    }

    fn say(&mut self, data: Bytes) -> Event {
        self.received_bytes += data.len() as u64;
        Event::Message { channel: 0, data }
    }

    fn offer(&mut self) -> Vec<Event> {
        let count =
            if self.draw.one_in(4) { 1 + self.draw.bits(16) } else { 1 + self.draw.below(40) };
        // Most want what fits, or nothing is seen but that they may not.
        let is_greedy = self.draw.one_in(4);
        let are_pipes = self.draw.one_in(4);
        let count = if are_pipes { 1 + self.draw.below(600) } else { count };
        let fair = self.max_size / (2 * count);
        self.entries = (0..count)
            .map(|index| {
                let size = if is_greedy { self.any_size() } else { self.draw.below(fair + 1) };
                let mut entry = self.entry(index, size);
                if are_pipes {
                    entry.content = Content::Stream;
                }
                entry
            })
            .collect();
        let mut list = match Offer::new(self.entries.clone()) {
            Ok(offer) => {
                self.entries = offer.entries().to_vec();
                let wants = (0..offer.len().min(100)).filter(|_| self.goes_unasked);
                self.wants =
                    wants.map(|file| Want { number: 0, file, form: Form::Whole }).collect();
                offer.to_bytes()
            }
            // Larger than any file.
            Err(_) => vec![1, 2],
        };
        if self.draw.one_in(20) {
            // As many as it likes to say.
            let claimed = self.draw.bits(62) | 3 << 62;
            list.splice(..1, claimed.to_be_bytes());
        }
        if list.len() <= 60_000 {
            let offer = Message::Offer(list.into()).to_bytes();
            return vec![self.say(offer.into())];
        }
        let tag = BlockTag::Offer.to_u64();
        let block = BlockNumber::from_bits(0);
        let length = list.len() as u64;
        self.received_bytes += length;
        let list = Bytes::from(list);
        let mut events = vec![Event::BlockAnnounced { block, tag, length, digest: [0; 32] }];
        for offset in (0..length).step_by(CHUNK as usize) {
            let data = list.slice(offset as usize..length.min(offset + CHUNK) as usize);
            let value = ChunkValue::from_bytes([0; 32]);
            events.push(Event::Chunk { block, tag, offset, data, value });
        }
        events.push(Event::BlockComplete { block, tag });
        events
    }

    fn any_size(&mut self) -> u64 {
        let size = match self.draw.below(4) {
            // No disk has room for it.
            0 => (1 << 46) + self.draw.bits(50),
            1 => self.draw.bits(22).min(self.max_size),
            _ => self.draw.below(self.max_size.min(MAX_KNOWN)),
        };
        if self.draw.one_in(30) { size } else { size.min(1 << 50) }
    }

    fn entry(&mut self, index: u64, size: u64) -> Entry {
        let folder =
            if self.draw.one_in(5) { format!("d{}/", self.draw.below(30)) } else { "".into() };
        let path = SafePath::new(&format!("{folder}{}f{index}", self.prefix)).unwrap();
        let content = match self.draw.below(8) {
            0 => Content::Directory,
            1..=3 => Content::Stream,
            4 | 5 => Content::Sized(size),
            _ => Content::Known { size, root: root_of(size).unwrap_or([9; 32]) },
        };
        let mut entry = Entry::new(path, content);
        entry.modified_ns = self.draw.next() as i64;
        entry
    }

    /// Something in answer to a want.
    fn answer(&mut self) -> Vec<Event> {
        let at = self.draw.below(self.wants.len() as u64) as usize;
        let (number, file) = (self.wants[at].number, self.wants[at].file);
        let entry = self.entries.get(file as usize).cloned();
        let size = entry.as_ref().and_then(Entry::size);
        let reached = self.reached.get(&file).copied().unwrap_or(0);
        match self.draw.below(8) {
            0 => {
                self.wants.swap_remove(at);
                let fault = Reason::Unreadable.into();
                vec![self.say(Message::Failed { file, fault }.to_bytes().into())]
            }
            1 | 2 => {
                let length = match self.draw.below(3) {
                    0 => self.draw.bits(50),
                    1 => 0,
                    _ => size.unwrap_or(reached),
                };
                if self.draw.one_in(2) {
                    self.wants.swap_remove(at);
                }
                let root = root_of(length).unwrap_or([9; 32]);
                vec![self.say(Message::End { file, length, root }.to_bytes().into())]
            }
            3 if size.is_some_and(|size| size <= MAX_KNOWN) => {
                let length = size.unwrap_or(0);
                let root = root_of(length).unwrap_or([9; 32]);
                self.announce(BlockTag::Whole { file, want: number }, length, root)
            }
            _ => {
                let left = size.unwrap_or(u64::MAX).saturating_sub(reached);
                let offset = match self.draw.below(6) {
                    0 | 1 => self.draw.bits(30) << 20,
                    2 => self.draw.below(700) << 20,
                    _ => reached >> 20 << 20,
                };
                let length = match self.draw.below(5) {
                    0 => 1,
                    1 => self.draw.bits(50),
                    2 => 1 << 20,
                    _ => left.min(self.draw.below(5) << 20),
                };
                let tag = BlockTag::Part { file, want: number % 512, offset };
                self.announce(tag, length, [9; 32])
            }
        }
    }

    fn announce(&mut self, tag: BlockTag, length: u64, digest: Root) -> Vec<Event> {
        let tag = tag.to_u64();
        if self.blocks.contains_key(&tag) || self.blocks.len() >= 32 {
            return self.go_on();
        }
        self.numbers += 1;
        let number = self.numbers;
        self.blocks.insert(tag, Sending { number, length, root: digest, sent: 0 });
        vec![Event::BlockAnnounced { block: BlockNumber::from_bits(number), tag, length, digest }]
    }

    /// Some chunks of a block that is on its way; or its end, in one way or another.
    fn go_on(&mut self) -> Vec<Event> {
        if self.blocks.is_empty() {
            return Vec::new();
        }
        let at = self.draw.below(self.blocks.len() as u64) as usize;
        let (&tag, block) = self.blocks.iter_mut().nth(at).unwrap();
        let number = BlockNumber::from_bits(block.number);
        if self.draw.one_in(12) {
            self.blocks.remove(&tag);
            return vec![Event::BlockCancelled {
                block: number,
                tag,
                code: self.draw.next() as u32,
            }];
        }
        if block.sent >= block.length {
            self.blocks.remove(&tag);
            return vec![Event::BlockComplete { block: number, tag }];
        }
        let mut events = Vec::new();
        for _ in 0..1 + self.draw.below(4) {
            let offset = match self.draw.one_in(8) {
                true => self.draw.below(block.length.div_ceil(CHUNK)) * CHUNK,
                false => block.sent,
            };
            let length = CHUNK.min(block.length.saturating_sub(offset));
            if length == 0 {
                break;
            }
            let data = Bytes::from_static(&SEVENS[..length as usize]);
            let index = u32::try_from(offset / CHUNK).unwrap_or(u32::MAX);
            let is_known = root_of(block.length) == Some(block.root);
            let value = match is_known {
                true => ChunkValue::of(block.length, index, &data),
                false => ChunkValue::from_bytes([0; 32]),
            };
            if offset == block.sent {
                block.sent += length;
            }
            self.received_bytes += length + DATAGRAM_BYTES;
            if let Some(BlockTag::Part { file, offset: start, .. }) = BlockTag::from_u64(tag) {
                let reached = self.reached.entry(file).or_default();
                *reached = (*reached).max(start.saturating_add(block.sent)).min(1 << 40);
            }
            events.push(Event::Chunk { block: number, tag, offset, data, value });
        }
        events
    }
}

/// The root of a file of `length` of its bytes.
fn root_of(length: u64) -> Option<Root> {
    let bytes = vec![7; usize::try_from(length).ok().filter(|_| length <= MAX_KNOWN)?];
    Some(*BlockTree::of(&bytes).digest())
}

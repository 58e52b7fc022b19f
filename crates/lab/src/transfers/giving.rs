//! One end that gives: a giver, a store of files and a connection, as `haulier_files::session::Giving` is
//! with threads and the system's files.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::rc::Rc;

use bytes::Bytes;
use haulier_core::Instant;
use haulier_files::BlockTag;
use haulier_files::chunks::CHUNK_BYTES;
use haulier_files::cut::cut;
use haulier_files::giver::{BlockSource, Giver, GiverAction, GiverConfig, GiverEvent, Made};
use haulier_files::pieces::Recipe;
use haulier_files::reason::{DONE, Fault, Reason};
use haulier_proto::connection::{
    Block, BlockHandle, BlockTree, CloseCode, Connection, Event, SendError,
};

use super::jobs::{Jobs, Speed};
use super::store::Store;
use haulier_sim::Rng;

enum Job {
    Read { tag: BlockTag, offset: u64, file: usize, spans: Vec<Range<u64>> },
    Part { tag: BlockTag, file: usize, span: Range<u64> },
    Pieces { tag: BlockTag, file: usize, spans: Vec<Range<u64>> },
    Recipe { tag: BlockTag, file: usize },
    Tree { tag: BlockTag, file: usize },
    Root { number: u32, file: usize },
}

pub(super) struct GivingEnd {
    giver: Giver,
    store: Rc<RefCell<Store>>,
    /// Of each file of the offer, which one of the store it is.
    files: Vec<usize>,
    jobs: Jobs<Job>,
    trees: BTreeMap<BlockTag, BlockTree>,
    blocks: BTreeMap<BlockTag, (BlockHandle, Option<BlockTree>)>,
    tags: BTreeMap<BlockHandle, BlockTag>,
    messages: VecDeque<Bytes>,
    is_asking: bool,
    /// It closed the connection because all was stored.
    pub(super) is_done: bool,
    /// Faults that were reported, each with its file of the store.
    pub(super) faults: Vec<(usize, Fault)>,
}

impl GivingEnd {
    pub(super) fn new(
        now: Instant,
        config: GiverConfig,
        store: &Rc<RefCell<Store>>,
        speed: Speed,
        rng: Rng,
    ) -> Self {
        let offer = store.borrow().offer();
        let index = |path| store.borrow().index(path);
        Self {
            files: offer.entries().iter().map(|entry| index(&entry.path)).collect(),
            giver: Giver::new(now, config, offer),
            store: Rc::clone(store),
            jobs: Jobs::new(speed, rng),
            trees: BTreeMap::new(),
            blocks: BTreeMap::new(),
            tags: BTreeMap::new(),
            messages: VecDeque::new(),
            is_asking: false,
            is_done: false,
            faults: Vec::new(),
        }
    }

    pub(super) fn describe(&self) -> String {
        format!("{:?}", self.giver)
    }

    pub(super) fn wakes_at(&self) -> Option<Instant> {
        self.jobs.next_at()
    }

    /// Bytes that are read and not provided yet.
    pub(super) fn held_bytes(&self) -> u64 {
        let reads = self.jobs.iter().filter(|job| matches!(job, Job::Read { .. })).count();
        reads as u64 * CHUNK_BYTES as u64
    }

    pub(super) fn hear(&mut self, now: Instant, event: Event) {
        match event {
            Event::Message { channel: 0, data } => self.giver.handle_message(&data),
            Event::MessageAcked { channel: 0, number: 0 } => self.giver.handle_offer_acked(),
            Event::ChunksWanted => self.is_asking = true,
            Event::BlockSent { handle } => {
                if let Some(tag) = self.tags.remove(&handle) {
                    self.blocks.remove(&tag);
                    self.giver.handle_block_sent(now, tag);
                }
            }
            Event::BlockDeclined { handle, .. } => {
                if let Some(tag) = self.tags.remove(&handle) {
                    self.blocks.remove(&tag);
                    self.giver.handle_block_declined(tag);
                }
            }
            Event::Closed(_) => self.giver.handle_closed(),
            _ => {}
        }
    }

    pub(super) fn act(&mut self, now: Instant, connection: &mut Connection) {
        if std::mem::take(&mut self.is_asking) {
            while let Some(wanted) = connection.want_chunk() {
                if let Some(tag) = BlockTag::from_u64(wanted.tag) {
                    self.giver.handle_wanted_chunk(tag, wanted.offset, wanted.length as u64);
                }
            }
        }
        while let Some(job) = self.jobs.take(now) {
            self.perform(job);
        }
        while let Some(action) = self.giver.poll_action() {
            self.follow(now, connection, action);
        }
        while let Some(event) = self.giver.poll_event() {
            if let GiverEvent::Failed { file, fault } = event {
                self.faults.push((self.files[file as usize], fault));
            }
        }
        send_messages(&mut self.messages, connection);
    }

    fn perform(&mut self, job: Job) {
        let mut store = self.store.borrow_mut();
        match job {
            Job::Read { tag, offset, file, spans } => {
                let tree = self.blocks.get(&tag).and_then(|(_, tree)| tree.as_ref());
                let read = store.read(file, &spans).and_then(|bytes| {
                    // As a driver has to: the machine vouches for what it is given.
                    let index = u32::try_from(offset / CHUNK_BYTES as u64).unwrap_or(u32::MAX);
                    let is_right = tree.is_none_or(|tree| tree.is_chunk(index, &bytes));
                    if is_right { Ok(bytes.into()) } else { Err(Reason::Changed.into()) }
                });
                drop(store);
                self.giver.handle_read(tag, offset, read);
            }
            Job::Part { tag, file, span } => {
                let part = store.read(file, &[span]);
                drop(store);
                let made = part.map(|bytes| {
                    self.trees.insert(tag, BlockTree::of(&bytes));
                    Made::Part { length: bytes.len() as u64 }
                });
                self.giver.handle_made(tag, made);
            }
            Job::Pieces { tag, file, spans } => {
                let pieces = store.read(file, &spans);
                drop(store);
                let made = pieces.map(|bytes| {
                    self.trees.insert(tag, BlockTree::of(&bytes));
                    Made::Pieces
                });
                self.giver.handle_made(tag, made);
            }
            Job::Recipe { tag, file } => {
                let bytes = store.read(file, std::slice::from_ref(&(0..u64::MAX)));
                drop(store);
                let recipe = bytes.and_then(|bytes| {
                    let pieces = cut(&bytes[..]).expect("bytes in memory");
                    Recipe::new(pieces).map_err(|_| Reason::Unreadable.into())
                });
                self.giver.handle_made(tag, recipe.map(Made::Recipe));
            }
            Job::Tree { tag, file } => {
                let tree = store.tree(file);
                drop(store);
                let made = tree.map(|tree| {
                    let (size, root) = (tree.length(), *tree.digest());
                    self.store.borrow_mut().learn(file, &root);
                    self.trees.insert(tag, tree);
                    Made::Tree { size, root }
                });
                self.giver.handle_made(tag, made);
            }
            Job::Root { number, file } => {
                let root = store.tree(file).map(|tree| (tree.length(), *tree.digest()));
                if let Ok((_, root)) = &root {
                    store.learn(file, root);
                }
                drop(store);
                self.giver.handle_root(number, root);
            }
        }
    }

    fn follow(&mut self, now: Instant, connection: &mut Connection, action: GiverAction) {
        match action {
            GiverAction::SendMessage(message) => self.messages.push_back(message),
            GiverAction::SendBlock { tag, source } => self.send(now, connection, tag, source),
            GiverAction::Provide { tag, offset, bytes } => {
                if let Some((handle, _)) = self.blocks.get(&tag) {
                    let index = u32::try_from(offset / CHUNK_BYTES as u64).unwrap_or(u32::MAX);
                    // A block that is gone wants nothing more.
                    let _gone = connection.provide_chunk(now, *handle, index, bytes);
                }
            }
            GiverAction::CancelBlock { tag, code } => {
                self.trees.remove(&tag);
                if let Some((handle, _)) = self.blocks.remove(&tag) {
                    self.tags.remove(&handle);
                    connection.cancel_block(now, handle, code);
                }
            }
            GiverAction::Close { code, reason } => {
                self.is_done = code == DONE;
                connection.close(now, code, &reason);
            }
            other => self.ask_disk(now, other),
        }
    }

    fn ask_disk(&mut self, now: Instant, action: GiverAction) {
        let of = |file: u32| self.files[file as usize];
        let size = |file: u32| self.giver.offer().entry(file).and_then(|it| it.size());
        let length = |spans: &[Range<u64>]| spans.iter().map(|it| it.end - it.start).sum();
        let (bytes, job) = match action {
            GiverAction::Read { tag, offset, file, spans } => {
                (length(&spans), Job::Read { tag, offset, file: of(file), spans })
            }
            GiverAction::MakePart { tag, file, offset, max_bytes, .. } => {
                let span = offset..offset + max_bytes;
                (max_bytes, Job::Part { tag, file: of(file), span })
            }
            GiverAction::MakePieces { tag, file, spans } => {
                (length(&spans), Job::Pieces { tag, file: of(file), spans })
            }
            GiverAction::MakeRecipe { tag, file } => {
                (size(file).unwrap_or(0), Job::Recipe { tag, file: of(file) })
            }
            GiverAction::MakeTree { tag, file } => {
                (size(file).unwrap_or(0), Job::Tree { tag, file: of(file) })
            }
            GiverAction::FindRoot { file } => (0, Job::Root { number: file, file: of(file) }),
            other => unreachable!("{other:?}"),
        };
        self.jobs.add(now, bytes, job);
    }

    fn send(
        &mut self,
        now: Instant,
        connection: &mut Connection,
        tag: BlockTag,
        source: BlockSource,
    ) {
        let (block, tree) = match source {
            BlockSource::Memory(bytes) => (Block::new(tag.to_u64(), bytes), None),
            _ => {
                let tree = self.trees.remove(&tag).unwrap_or_else(|| {
                    let file = tag.file().expect("a block of a file") as usize;
                    self.store.borrow().offered_tree(self.files[file])
                });
                (Block::from_source(tag.to_u64(), tree.clone()), Some(tree))
            }
        };
        match connection.send_block(now, &block) {
            Ok(handle) => {
                self.tags.insert(handle, tag);
                self.blocks.insert(tag, (handle, tree));
            }
            Err(error) => self.giver.close(CloseCode::SHUTTING_DOWN, &error.to_string()),
        }
    }
}

/// Sends as many messages as the connection has room for.
pub(super) fn send_messages(messages: &mut VecDeque<Bytes>, connection: &mut Connection) {
    while let Some(message) = messages.pop_front() {
        if let Err(SendError::QueueFull { .. }) = connection.send_message(message.clone()) {
            return messages.push_front(message);
        }
    }
}

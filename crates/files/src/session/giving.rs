//! One end that gives: a giver, the files of a library, and a connection.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use haulier_core::Instant;
use haulier_proto::connection::{Block, BlockHandle, BlockTree, CloseCode, Event, SendError};

use super::library::{Library, Served};
use super::packs::{Pace, PackedPart};
use super::pipe::Pipe;
use super::{Clock, Jobs, Link, LinkSpeed, Outbox};
use crate::chunks::CHUNK_BYTES;
use crate::giver::{BlockSource, Giver, GiverAction, GiverConfig, GiverEvent, Made, Start};
use crate::offer::{Offer, Root};
use crate::packing::Packing;
use crate::pieces::Recipe;
use crate::pool::PoolHandle;
use crate::progress::Progress;
use crate::reader::{FileHasher, hash_spans, read_spans};
use crate::reason::{Fault, Reason};
use crate::tag::BlockTag;

/// What the pool found.
enum Answer {
    Read {
        tag: BlockTag,
        offset: u64,
        read: Result<Bytes, Fault>,
    },
    Made {
        tag: BlockTag,
        made: Result<(Made, Option<BlockTree>), Fault>,
    },
    /// Of a part that was to be packed, asked for then; what looked at all of its file says nothing of how
    /// fast packing is.
    Packed {
        tag: BlockTag,
        made: Result<(Made, Option<BlockTree>), Fault>,
        since: Option<Instant>,
    },
    Root {
        file: u32,
        root: Result<(u64, Root), Fault>,
    },
}

/// A block on its way.
struct Sent {
    handle: BlockHandle,
    /// None if its bytes are in memory.
    tree: Option<BlockTree>,
    bytes: u64,
}

/// A transfer to one client, or to one server.
pub struct Giving {
    giver: Giver,
    library: Arc<Library>,
    /// Of each file of the offer, which one of the library it is.
    files: Vec<usize>,
    jobs: Jobs<Answer>,
    /// Trees of what was made and is not sent yet.
    trees: HashMap<BlockTag, BlockTree>,
    blocks: HashMap<BlockTag, Sent>,
    tags: HashMap<BlockHandle, BlockTag>,
    outbox: Outbox,
    pipes: HashMap<u32, Pipe>,
    /// Parts of pipes that are wanted before the other end has proven its address. A request may be a copy of
    /// another one, and a pipe can be read once.
    early_parts: Vec<(BlockTag, u32, u64)>,
    is_connected: bool,
    /// The file that is being packed, of which its first part was judged.
    packs: Option<u32>,
    /// Memory of the list, if this client has one of its own; and the bytes that the connection heard of.
    list_bytes: usize,
    held_bytes: usize,
    pace: Pace,
    delivered_bytes: u64,
    clock: Clock,
}

impl std::fmt::Debug for Giving {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Giving").field("giver", &self.giver).finish_non_exhaustive()
    }
}

impl Giving {
    /// Gives what of the library is at this path or below it; all of it for an empty one. `None` if there
    /// is nothing.
    #[must_use]
    pub fn new(
        library: &Arc<Library>,
        pool: &PoolHandle,
        config: GiverConfig,
        path: &str,
    ) -> Option<Self> {
        let all = library.offer_now(pool);
        // What a client has a list of its own for counts as its own.
        let (offer, list_bytes) = match path {
            "" => (all, 0),
            _ => {
                let some = all.within(path);
                let bytes = some.memory_bytes();
                (Arc::new(some), bytes)
            }
        };
        if offer.is_empty() {
            return None;
        }
        let files = offer.entries().iter().map(|entry| library.index(&entry.path));
        let files = files.collect::<Option<Vec<usize>>>()?;
        let clock = Clock::start();
        Some(Self {
            giver: Giver::new(clock.now(), config, offer),
            library: Arc::clone(library),
            files,
            jobs: Jobs::new(pool),
            trees: HashMap::new(),
            blocks: HashMap::new(),
            tags: HashMap::new(),
            outbox: Outbox::default(),
            pipes: HashMap::new(),
            early_parts: Vec::new(),
            // A client that gives has asked; of a server's there may be copies.
            is_connected: config.start == Start::WhenAsked,
            packs: None,
            list_bytes,
            held_bytes: 0,
            pace: Pace::new(),
            delivered_bytes: 0,
            clock,
        })
    }

    /// The files.
    #[must_use]
    pub fn offer(&self) -> &Offer {
        self.giver.offer()
    }

    /// Bytes of files that are known to have arrived.
    #[must_use]
    pub const fn delivered_bytes(&self) -> u64 {
        self.delivered_bytes
    }

    /// The length and BLAKE3 of a file, as far as they are known: of a pipe at its end.
    #[must_use]
    pub fn root_of(&self, file: u32) -> Option<(u64, Root)> {
        if let Some(pipe) = self.pipes.get(&file) {
            return Some(pipe.root());
        }
        let path = &self.offer().entry(file)?.path;
        let offer = self.library.offer();
        let known = offer.entries().iter().find(|entry| entry.path == *path)?;
        Some((known.size()?, *known.root()?))
    }

    /// The program stops. What has arrived stays there for the next time.
    pub fn close(&mut self, link: &impl Link, code: CloseCode, reason: &str) {
        self.giver.close(code, reason);
        self.turn(link);
    }

    /// The progress: the bytes that have arrived at the other end.
    pub fn progress(&mut self, link: &impl Link) -> Progress {
        let now = self.clock.now();
        for (tag, sent) in &self.blocks {
            self.giver.handle_arrived(now, *tag, link.arrived_bytes(sent.handle));
        }
        self.giver.progress(now)
    }

    /// Whether the disk has something to do, so that there is soon a reason for a [`turn`](Self::turn).
    #[must_use]
    pub const fn is_busy(&self) -> bool {
        self.jobs.open > 0
    }

    /// What happened, for people.
    pub fn poll_event(&mut self) -> Option<GiverEvent> {
        self.giver.poll_event()
    }

    /// Takes in an event of the connection, and does what follows.
    pub fn handle_event(&mut self, link: &impl Link, event: &Event) {
        let now = self.clock.now();
        match event {
            Event::Message { channel: 0, data } => self.giver.handle_message(data),
            Event::MessageAcked { channel: 0, number: 0 } => self.giver.handle_offer_acked(),
            Event::ChunksWanted => {
                while let Some(wanted) = link.want_chunk() {
                    if let Some(tag) = BlockTag::from_u64(wanted.tag) {
                        self.giver.handle_wanted_chunk(tag, wanted.offset, wanted.length as u64);
                    }
                }
            }
            Event::BlockSent { handle } => {
                if let Some(tag) = self.tags.remove(handle) {
                    let sent = self.blocks.remove(&tag).filter(|_| tag.file().is_some());
                    self.delivered_bytes += sent.map_or(0, |sent| sent.bytes);
                    self.giver.handle_block_sent(now, tag);
                }
            }
            Event::BlockDeclined { handle, .. } => {
                if let Some(tag) = self.tags.remove(handle) {
                    self.blocks.remove(&tag);
                    self.giver.handle_block_declined(tag);
                }
            }
            Event::Connected => {
                self.is_connected = true;
                for (tag, file, max_bytes) in std::mem::take(&mut self.early_parts) {
                    self.read_pipe(tag, file, max_bytes);
                }
            }
            Event::Closed(_) => {
                self.giver.handle_closed();
                self.pipes.clear();
            }
            _ => {}
        }
        self.turn(link);
    }

    /// Continues with the answers of the disk.
    pub fn turn(&mut self, link: &impl Link) {
        while let Some(answer) = self.jobs.take() {
            match answer {
                Answer::Read { tag, offset, read } => {
                    self.giver.handle_read(tag, offset, read);
                }
                Answer::Made { tag, made } => self.on_made(tag, made),
                Answer::Packed { tag, made, since } => {
                    if let (Some(since), Ok((Made::Packed { length, .. }, _))) = (since, &made) {
                        let took = self.clock.now().since(since);
                        self.pace.learn(*length, took, self.blocks.is_empty());
                    }
                    self.on_made(tag, made);
                }
                Answer::Root { file, root } => self.giver.handle_root(file, root),
            }
        }
        loop {
            while let Some(action) = self.giver.poll_action() {
                self.act(link, action);
            }
            let Some((tag, part)) = self.pipes.values_mut().find_map(Pipe::poll) else { break };
            self.giver.handle_made(tag, part.map(Made::PipePart));
        }
        self.outbox.send(link);
        let held_bytes = self.list_bytes + self.giver.memory_bytes();
        if std::mem::replace(&mut self.held_bytes, held_bytes) != held_bytes {
            link.hold_bytes(held_bytes);
        }
    }

    fn on_made(&mut self, tag: BlockTag, made: Result<(Made, Option<BlockTree>), Fault>) {
        let made = made.map(|(made, tree)| {
            self.trees.extend(tree.map(|tree| (tag, tree)));
            made
        });
        self.giver.handle_made(tag, made);
    }

    /// Packs a part, or says at once that the link is too fast for it.
    fn pack_part(&mut self, tag: BlockTag, link: LinkSpeed, mut part: PackedPart) {
        if part.packing == Packing::Auto && self.pace.is_link_faster(link) {
            return self.giver.handle_made(tag, Ok(Made::Unpacked));
        }
        let file = tag.file();
        part.is_first = file != self.packs;
        self.packs = file;
        let since = (!part.is_first).then(|| self.clock.now());
        let library = Arc::clone(&self.library);
        let answer = move |made| Answer::Packed { tag, made, since };
        self.jobs.run(move || part.make(&library), answer);
    }

    fn is_pipe(&self, file: u32) -> bool {
        let index = self.files.get(file as usize);
        index.and_then(|index| self.library.file(*index)).is_some_and(Served::is_pipe)
    }

    /// Begins a part of a pipe.
    fn read_pipe(&mut self, tag: BlockTag, file: u32, max_bytes: u64) {
        if !self.is_connected {
            return self.early_parts.push((tag, file, max_bytes));
        }
        if !self.pipes.contains_key(&file) {
            let index = self.files.get(file as usize).copied().unwrap_or(usize::MAX);
            let served = self.library.file(index).ok_or_else(|| Reason::Unreadable.into());
            match served.and_then(|served| served.take_pipe(&self.jobs.pool)) {
                Ok(pipe) => self.pipes.insert(file, pipe),
                Err(fault) => return self.giver.handle_made(tag, Err(fault)),
            };
        }
        if let Some(pipe) = self.pipes.get_mut(&file) {
            pipe.begin(tag, max_bytes);
        }
    }

    fn act(&mut self, link: &impl Link, action: GiverAction) {
        match action {
            GiverAction::SendMessage(message) => self.outbox.0.push_back(message),
            GiverAction::SendBlock { tag, source } => self.send_block(link, tag, source),
            GiverAction::Provide { tag, offset, bytes } => {
                if let Some(sent) = self.blocks.get(&tag) {
                    link.provide_chunk(sent.handle, chunk_at(offset), bytes);
                }
            }
            GiverAction::CancelBlock { tag, code } => {
                self.trees.remove(&tag);
                if let Some(sent) = self.blocks.remove(&tag) {
                    self.tags.remove(&sent.handle);
                    link.cancel_block(sent.handle, code);
                }
            }
            GiverAction::Close { code, reason } => {
                self.outbox.send(link);
                link.close(code, &reason);
            }
            other => self.ask_disk(link, other),
        }
    }

    fn ask_disk(&mut self, link: &impl Link, action: GiverAction) {
        let library = Arc::clone(&self.library);
        let index = |file: u32| self.files.get(file as usize).copied().unwrap_or(usize::MAX);
        match action {
            GiverAction::MakePart { tag, file, max_bytes, .. } if self.is_pipe(file) => {
                self.read_pipe(tag, file, max_bytes);
            }
            GiverAction::FindRoot { file } if self.is_pipe(file) => {
                let root = self.pipes.get(&file).map(Pipe::root);
                let root = root.ok_or_else(|| Reason::Unreadable.into());
                self.giver.handle_root(file, root);
            }
            GiverAction::Read { tag, offset, file, spans } => {
                let tree = self.blocks.get(&tag).and_then(|sent| sent.tree.clone());
                let index = index(file);
                let read = move || {
                    let expected = tree.as_ref().map(|tree| (tree, chunk_at(offset)));
                    library.read(index, tree.as_ref(), |_, file| read_spans(file, &spans, expected))
                };
                self.jobs.run(read, move |read| Answer::Read { tag, offset, read });
            }
            GiverAction::MakePart { tag, file, offset, max_bytes, packing } => {
                let index = index(file);
                if packing != Packing::Never {
                    let part = PackedPart { index, offset, max_bytes, packing, is_first: false };
                    return self.pack_part(tag, link.speed(), part);
                }
                let make = move || make_part(&library, index, offset, max_bytes);
                self.jobs.run(make, move |made| Answer::Made { tag, made });
            }
            GiverAction::MakePieces { tag, file, spans } => {
                let index = index(file);
                let make = move || {
                    library.read(index, None, |_, file| {
                        Ok((Made::Pieces, Some(hash_spans(file, &spans)?)))
                    })
                };
                self.jobs.run(make, move |made| Answer::Made { tag, made });
            }
            GiverAction::MakeRecipe { tag, file } => {
                let index = index(file);
                let ticket = self.jobs.ticket(move |recipe: Result<Recipe, Fault>| {
                    let made = recipe.map(|recipe| (Made::Recipe(recipe), None));
                    Answer::Made { tag, made }
                });
                library.want_recipe(index, &self.jobs.pool, ticket);
            }
            GiverAction::MakeTree { tag, file } => {
                let index = index(file);
                let ticket = self.jobs.ticket(move |tree: Result<BlockTree, Fault>| {
                    let made = tree.map(|tree| {
                        let (size, root) = (tree.length(), *tree.digest());
                        (Made::Tree { size, root }, Some(tree))
                    });
                    Answer::Made { tag, made }
                });
                library.want_tree(index, &self.jobs.pool, ticket);
            }
            GiverAction::FindRoot { file } => {
                let index = index(file);
                let ticket = self.jobs.ticket(move |tree: Result<BlockTree, Fault>| {
                    let root = tree.map(|tree| (tree.length(), *tree.digest()));
                    Answer::Root { file, root }
                });
                library.want_tree(index, &self.jobs.pool, ticket);
            }
            _ => {}
        }
    }

    fn send_block(&mut self, link: &impl Link, tag: BlockTag, source: BlockSource) {
        let (block, tree) = match source {
            BlockSource::Memory(bytes) => (Block::new(tag.to_u64(), bytes), None),
            BlockSource::Disk { .. } => {
                let Some(tree) = self.trees.remove(&tag).or_else(|| self.tree_of_file(tag)) else {
                    // The file was found to be another one after it was offered.
                    return self.giver.handle_unsendable(tag, Reason::Changed.into());
                };
                (Block::from_source(tag.to_u64(), tree.clone()), Some(tree))
            }
        };
        match link.send_block(&block) {
            Ok(handle) => {
                self.tags.insert(handle, tag);
                self.blocks.insert(tag, Sent { handle, tree, bytes: block.length() });
            }
            Err(SendError::BlockTooLarge { max }) => {
                let what = format!("the other end takes {max} bytes");
                self.giver.close(CloseCode::BLOCK_TOO_LARGE, &what);
            }
            // The connection is over, or will be.
            Err(error) => self.giver.close(CloseCode::SHUTTING_DOWN, &error.to_string()),
        }
    }

    /// Of a file that was offered with its root the tree is known, unless it is another file now.
    fn tree_of_file(&self, tag: BlockTag) -> Option<BlockTree> {
        let BlockTag::Whole { file, .. } = tag else { return None };
        let tree = self.library.file(*self.files.get(file as usize)?)?.known_tree()?;
        let offered = self.giver.offer().entry(file)?.root();
        offered.is_none_or(|root| root == tree.digest()).then_some(tree)
    }
}

fn make_part(
    library: &Library,
    index: usize,
    offset: u64,
    max_bytes: u64,
) -> Result<(Made, Option<BlockTree>), Fault> {
    library.note_part();
    library.read(index, None, |served, file| {
        let end = file.version().bytes.min(offset.saturating_add(max_bytes)).max(offset);
        // Read without the lock, so that other parts are made meanwhile.
        let mut hashed = FileHasher::default();
        let tree = hashed.hash_part(file, offset..end)?;
        served.hasher().take_over(hashed);
        Ok((Made::Part { length: end - offset }, Some(tree)))
    })
}

/// Which chunk of its block begins here.
fn chunk_at(offset: u64) -> u32 {
    u32::try_from(offset / CHUNK_BYTES as u64).unwrap_or(u32::MAX)
}

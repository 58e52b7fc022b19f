//! A giver and a taker with a connection between them that delivers messages in order, and everything else
//! in an order that a seed draws: announcements, chunks of several blocks, answers of both disks.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use haulier_files::giver::{BlockSource, Giver, GiverAction, GiverConfig, GiverEvent, Made, Start};
use haulier_files::offer::{Content, Entry, Offer};
use haulier_files::packing::Packing;
use haulier_files::reason::{Fault, Reason};
use haulier_files::taker::{Ask, Taker, TakerAction, TakerConfig, TakerEvent};
use haulier_files::{BlockTag, Ranges};
use haulier_proto::Instant;
use haulier_proto::connection::{ChunkValue, CloseCode};

use crate::disks::{GiverDisk, TakerDisk, cut, pack, recipe, unpack};

const CHUNK: u64 = 1 << 18;

/// A block on its way.
struct Block {
    /// What is announced: its bytes.
    bytes: Vec<u8>,
    announced: bool,
    /// Chunks that were not wanted of the giver yet, nor delivered.
    unwanted: Ranges,
    /// Chunks that the giver has provided.
    provided: Vec<u64>,
    /// Chunks that the taker has, by what it said or because they came.
    done: Ranges,
}

/// Something that will happen.
enum Due {
    ToTaker(Bytes),
    ToGiver(Bytes),
    Giver(GiverAction),
    Taker(TakerAction),
}

pub(crate) struct World {
    pub(crate) giver: Giver,
    pub(crate) taker: Taker,
    pub(crate) giver_disk: GiverDisk,
    pub(crate) taker_disk: TakerDisk,
    pub(crate) giver_events: Vec<GiverEvent>,
    pub(crate) taker_events: Vec<TakerEvent>,
    /// Bytes of blocks that were delivered, and how many blocks of each kind were sent.
    pub(crate) wire_bytes: u64,
    pub(crate) sent: Vec<BlockTag>,
    pub(crate) closed: Option<CloseCode>,
    pub(crate) admission: Result<u64, Fault>,
    /// The taker's messages since the start, and turns from giver to taker: trips.
    pub(crate) messages_to_giver: usize,
    blocks: BTreeMap<BlockTag, Block>,
    here: BTreeMap<[u8; 32], Ranges>,
    to_taker: VecDeque<Bytes>,
    to_giver: VecDeque<Bytes>,
    disk: Vec<Due>,
    offer_acked: bool,
    seed: u64,
    now: u64,
}

impl World {
    /// A transfer of these files.
    pub(crate) fn new(seed: u64, ask: TakerConfig, files: Vec<(Entry, Vec<u8>)>) -> Self {
        let offer = Offer::new(files.iter().map(|(entry, _)| entry.clone()).collect()).unwrap();
        let bytes_of = |entry: &Entry| files.iter().find(|(it, _)| it == entry).unwrap().1.clone();
        let giver_disk = GiverDisk {
            files: offer.entries().iter().map(bytes_of).collect(),
            ..GiverDisk::default()
        };
        let start = match ask.ask {
            Ask::Get => Start::AtOnce,
            Ask::Open => Start::Offer,
            Ask::Inbox => Start::WhenAsked,
        };
        let mut config = GiverConfig::new(start);
        if ask.accepts_packed {
            config = config.with_packing(Packing::Auto, ask.ask != Ask::Inbox);
        }
        let now = Instant::from_millis(0);
        Self {
            giver: Giver::new(now, config, offer),
            taker: Taker::new(now, ask),
            giver_disk,
            taker_disk: TakerDisk { room: u64::MAX, ..TakerDisk::default() },
            giver_events: Vec::new(),
            taker_events: Vec::new(),
            wire_bytes: 0,
            sent: Vec::new(),
            closed: None,
            admission: Ok(u64::MAX),
            messages_to_giver: 0,
            blocks: BTreeMap::new(),
            here: BTreeMap::new(),
            to_taker: VecDeque::new(),
            to_giver: VecDeque::new(),
            disk: Vec::new(),
            offer_acked: false,
            seed,
            now: 0,
        }
    }

    fn draw(&mut self, below: usize) -> usize {
        self.seed = self.seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.seed;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ z >> 31) % below.max(1) as u64) as usize
    }

    fn instant(&self) -> Instant {
        Instant::from_millis(self.now)
    }

    /// Runs until the connection is closed.
    pub(crate) fn run(&mut self) -> CloseCode {
        for _ in 0..2_000_000 {
            self.collect();
            if let Some(code) = self.closed {
                let last = std::mem::take(&mut self.disk);
                let is_last = |due: &Due| {
                    matches!(
                        due,
                        Due::Taker(TakerAction::Abandon { .. } | TakerAction::Discard { .. })
                    )
                };
                last.into_iter().filter(is_last).for_each(|due| self.happen(due));
                return code;
            }
            self.now += 1;
            self.step();
        }
        panic!("it hangs: {:?}\n{:?}", self.giver, self.taker);
    }

    fn collect(&mut self) {
        while let Some(action) = self.giver.poll_action() {
            match action {
                GiverAction::SendMessage(bytes) => self.to_taker.push_back(bytes),
                GiverAction::Close { code, .. } => self.closed = Some(code),
                action => self.disk.push(Due::Giver(action)),
            }
        }
        while let Some(action) = self.taker.poll_action() {
            match action {
                TakerAction::SendMessage(bytes) => self.to_giver.push_back(bytes),
                TakerAction::Close { code, .. } => self.closed = Some(code),
                // Must be known to the connection before a want is.
                TakerAction::HaveChunks { root, chunks } => {
                    self.here.insert(root, chunks);
                }
                TakerAction::Decline { tag, .. } => {
                    if self.blocks.remove(&tag).is_some() {
                        self.giver.handle_block_declined(tag);
                    }
                }
                action => self.disk.push(Due::Taker(action)),
            }
        }
        self.giver_events.extend(std::iter::from_fn(|| self.giver.poll_event()));
        self.taker_events.extend(std::iter::from_fn(|| self.taker.poll_event()));
    }

    /// One thing happens, drawn of all that can.
    fn step(&mut self) {
        match self.draw(6) {
            0 => {
                if let Some(bytes) = self.to_giver.pop_front() {
                    self.messages_to_giver += 1;
                    self.happen(Due::ToGiver(bytes));
                }
            }
            1 if !self.taker.is_full() => {
                if let Some(bytes) = self.to_taker.pop_front() {
                    self.happen(Due::ToTaker(bytes));
                }
            }
            2 | 3 if !self.disk.is_empty() => {
                // Answers of a disk come in any order, but those that are done at once.
                let at = self.draw(self.disk.len());
                let at = if self.in_order(at) { 0 } else { at };
                let due = self.disk.remove(at);
                self.happen(due);
            }
            _ if !self.blocks.is_empty() && !self.taker.is_full() => {
                let at = self.draw(self.blocks.len());
                let tag = *self.blocks.keys().nth(at).unwrap();
                self.step_block(tag);
            }
            _ => {}
        }
    }

    /// What changes which file is what keeps its place: a file is not begun anew before its last write.
    fn in_order(&self, at: usize) -> bool {
        !matches!(
            self.disk[at],
            Due::Giver(GiverAction::Read { .. })
                | Due::Taker(TakerAction::Inspect { .. } | TakerAction::CutOlder { .. })
        )
    }

    fn happen(&mut self, due: Due) {
        let now = self.instant();
        match due {
            Due::ToTaker(bytes) => {
                self.taker.handle_message(now, &bytes);
                if !std::mem::replace(&mut self.offer_acked, true) {
                    self.giver.handle_offer_acked();
                }
            }
            Due::ToGiver(bytes) => self.giver.handle_message(&bytes),
            Due::Giver(action) => self.of_giver(now, action),
            Due::Taker(action) => self.of_taker(now, action),
        }
    }

    /// A block is announced, a chunk is wanted or delivered, or it is complete.
    fn step_block(&mut self, tag: BlockTag) {
        let now = self.instant();
        let here = &self.here;
        let Some(block) = self.blocks.get_mut(&tag) else { return };
        let length = block.bytes.len() as u64;
        if !std::mem::replace(&mut block.announced, true) {
            let root = *blake3::hash(&block.bytes).as_bytes();
            if let Some(here) = here.get(&root) {
                for range in here.iter() {
                    block.done.insert(range);
                }
            }
            block.unwanted = block.done.missing_below(length.div_ceil(CHUNK));
            return self.taker.handle_announced(now, tag.to_u64(), length, root);
        }
        if block.done == Ranges::up_to(length.div_ceil(CHUNK)) {
            self.blocks.remove(&tag);
            self.taker.handle_complete(now, tag.to_u64());
            return self.giver.handle_block_sent(now, tag);
        }
        let from_memory = !matches!(
            tag,
            BlockTag::Whole { .. } | BlockTag::Part { .. } | BlockTag::Pieces { .. }
        ) || block.provided.contains(&u64::MAX);
        let next = block.unwanted.iter().next().map(|it| it.start);
        if let Some(index) = next {
            block.unwanted =
                block.unwanted.iter().map(|it| it.start.max(index + 1)..it.end).collect();
            if !from_memory {
                let offset = index * CHUNK;
                return self.giver.handle_wanted_chunk(tag, offset, CHUNK.min(length - offset));
            }
            block.provided.push(index);
        }
        let ready: Vec<usize> =
            (0..block.provided.len()).filter(|&at| block.provided[at] != u64::MAX).collect();
        if ready.is_empty() {
            return;
        }
        let pick = self.draw(ready.len());
        let Some(block) = self.blocks.get_mut(&tag) else { return };
        let index = block.provided.swap_remove(ready[pick]);
        block.done.insert(index..index + 1);
        let start = index * CHUNK;
        let end = (start + CHUNK).min(length);
        let data = Bytes::copy_from_slice(&block.bytes[start as usize..end as usize]);
        self.wire_bytes += end - start;
        let value = ChunkValue::of(length, index as u32, &data);
        self.taker.handle_chunk(now, tag.to_u64(), start, data, value);
    }

    fn of_giver(&mut self, now: Instant, action: GiverAction) {
        let disk = &mut self.giver_disk;
        match action {
            GiverAction::MakePart { tag, file, offset, max_bytes, packing } => {
                let content = self.giver.offer().entries()[file as usize].content;
                let end = (offset + max_bytes).min(disk.files[file as usize].len() as u64);
                let span = offset.min(end)..end;
                let bytes = disk.bytes(file, std::slice::from_ref(&span));
                let packed = pack(&bytes);
                let made = if content == Content::Stream {
                    Made::PipePart(bytes.into())
                } else if packing != Packing::Never
                    && disk.unpacked_from.is_some_and(|from| offset >= from)
                {
                    Made::Unpacked
                } else if packing != Packing::Never && packed.len() < bytes.len() / 2 {
                    Made::Packed { bytes: packed, length: end - offset }
                } else {
                    Made::Part { length: end - offset }
                };
                self.giver.handle_made(tag, Ok(made));
            }
            GiverAction::MakePieces { tag, .. } => self.giver.handle_made(tag, Ok(Made::Pieces)),
            GiverAction::MakeRecipe { tag, file } => {
                disk.recipes += 1;
                let made = Made::Recipe(recipe(&disk.files[file as usize]));
                self.giver.handle_made(tag, Ok(made));
            }
            GiverAction::MakeTree { tag, file } => {
                let bytes = &disk.files[file as usize];
                let root = *blake3::hash(bytes).as_bytes();
                let made = Made::Tree { size: bytes.len() as u64, root };
                self.giver.handle_made(tag, Ok(made));
            }
            GiverAction::FindRoot { file } => {
                let bytes = &disk.files[file as usize];
                let root = (bytes.len() as u64, *blake3::hash(bytes).as_bytes());
                self.giver.handle_root(file, Ok(root));
            }
            GiverAction::SendBlock { tag, source } => self.send_block(tag, source),
            GiverAction::Read { tag, offset, file, spans } => {
                let read = disk.read(file, &spans);
                self.giver.handle_read(tag, offset, read);
            }
            GiverAction::Provide { tag, offset, bytes } => {
                if let Some(block) = self.blocks.get_mut(&tag) {
                    let start = offset as usize;
                    assert_eq!(&block.bytes[start..start + bytes.len()], &bytes[..]);
                    block.provided.push(offset / CHUNK);
                }
            }
            GiverAction::CancelBlock { tag, code } => {
                if self.blocks.remove(&tag).is_some_and(|block| block.announced) {
                    self.taker.handle_cancelled(now, tag.to_u64(), code);
                }
            }
            _ => unreachable!("{action:?}"),
        }
    }

    fn send_block(&mut self, tag: BlockTag, source: BlockSource) {
        let files = &self.giver_disk.files;
        let (bytes, provided) = match source {
            BlockSource::Memory(bytes) => (bytes.to_vec(), vec![u64::MAX]),
            BlockSource::Disk { length } => (self.bytes_of(tag, length, files), Vec::new()),
        };
        self.sent.push(tag);
        let block = Block {
            bytes,
            announced: false,
            unwanted: Ranges::new(),
            provided,
            done: Ranges::new(),
        };
        assert!(self.blocks.insert(tag, block).is_none(), "one block for a tag: {tag:?}");
        assert!(self.blocks.len() <= 8);
    }

    fn bytes_of(&self, tag: BlockTag, length: u64, files: &[Vec<u8>]) -> Vec<u8> {
        match tag {
            BlockTag::Whole { file, .. } => files[file as usize].clone(),
            BlockTag::Part { file, offset, .. } => {
                files[file as usize][offset as usize..(offset + length) as usize].to_vec()
            }
            BlockTag::Pieces { file, .. } => {
                let spans = self.giver.spans_of(tag).unwrap();
                self.giver_disk.bytes(file, spans)
            }
            _ => unreachable!("{tag:?} is in memory"),
        }
    }

    fn of_taker(&mut self, now: Instant, action: TakerAction) {
        let disk = &mut self.taker_disk;
        match action {
            TakerAction::Admit { .. } => self.taker.handle_admission(now, self.admission.clone()),
            TakerAction::Inspect { file } => {
                let entry = &self.taker.offer().entries()[file as usize];
                let local = disk.inspect(file, entry.root());
                self.taker.handle_inspected(now, file, local);
            }
            TakerAction::Write { file, offset, data, .. } => {
                let written = disk.write(file, offset, &data);
                self.taker.handle_written(now, file, written);
            }
            TakerAction::WritePacked { file, offset, max_bytes, packed } => {
                let written =
                    unpack(&packed, max_bytes).and_then(|data| disk.write(file, offset, &data));
                self.taker.handle_written(now, file, written);
            }
            TakerAction::CutOlder { file } => {
                let pieces = cut(disk.older(file));
                self.taker.handle_older(now, file, Ok(pieces));
            }
            TakerAction::CopyPieces { file, .. } if disk.older_is_gone => {
                self.taker.handle_copied(now, file, Err(Reason::Unreadable.into()));
            }
            TakerAction::CopyPieces { file, copies } => {
                for copy in copies {
                    let from = copy.from as usize..(copy.from + copy.length) as usize;
                    let data = disk.older(file)[from].to_vec();
                    disk.write(file, copy.to, &data).unwrap();
                }
                self.taker.handle_copied(now, file, Ok(()));
            }
            TakerAction::ReadOffer { list } => self.taker.handle_offer(Offer::read(&list)),
            TakerAction::Finish { file, size, root } => {
                let finished = disk.finish(file, size, &root);
                self.taker.handle_finished(now, file, finished);
            }
            TakerAction::CopyFile { file, from } => {
                let data = disk.stored[&from].clone();
                disk.stored.insert(file, data);
                self.taker.handle_finished(now, file, Ok(()));
            }
            TakerAction::MakeDirectory { file } => {
                disk.directories.push(file);
                self.taker.handle_finished(now, file, Ok(()));
            }
            TakerAction::Discard { file } => {
                disk.parts.remove(&file);
                disk.discarded.push(file);
            }
            TakerAction::Abandon { file } => disk.abandoned.push(file),
            _ => unreachable!("{action:?}"),
        }
    }

    /// Every file of the offer is stored as the giver has it.
    pub(crate) fn assert_all_stored(&self) {
        for (file, (bytes, entry)) in
            self.giver_disk.files.iter().zip(self.giver.offer().entries()).enumerate()
        {
            if entry.content != Content::Directory {
                assert!(
                    self.taker_disk.stored.get(&(file as u32)) == Some(bytes),
                    "{}",
                    entry.path
                );
            }
        }
    }
}

//! The blocks that have arrived, and the loads that wait for one.
//!
//! A load runs as a task of Bevy's; it asks here, and awaits the answer. The plugin of the client gives the
//! answers, once a frame.

use std::collections::{HashMap, HashSet};
use std::io::{self, ErrorKind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_channel::{Receiver, Sender};
use bevy_asset::io::AssetReaderError;
use bevy_ecs::resource::Resource;
use bytes::Bytes;
use haulier::Block;

/// The tag of the block with this name: what stands behind `haulier://` in the path of an asset.
///
/// A decimal number is that tag, for servers that number their blocks. Any other name gives the first eight
/// bytes of its BLAKE3, the lowest first, without the two highest bits: both ends compute the same, and no
/// table has to be sent. [`with_name`](crate::HaulierAssetPlugin::with_name) overrides it.
///
/// ```
/// assert_eq!(bevy_haulier::block_tag("3"), 3);
/// assert_ne!(bevy_haulier::block_tag("level/3"), bevy_haulier::block_tag("level/4"));
/// ```
#[must_use]
pub fn block_tag(name: &str) -> u64 {
    const LARGEST: u64 = (1 << 62) - 1;
    if let Ok(tag) = name.parse::<u64>()
        && tag <= LARGEST
    {
        return tag;
    }
    let hash = *blake3::hash(name.as_bytes()).as_bytes();
    let [a, b, c, d, e, f, g, h, ..] = hash;
    u64::from_le_bytes([a, b, c, d, e, f, g, h]) & LARGEST
}

/// A block for [`send_block`](haulier::Server::send_block) that clients load as `haulier://name`. Make it
/// once for all clients: that hashes it.
///
/// ```
/// use bevy_haulier::named_block;
/// let world = named_block("world", vec![7; 500_000]);
/// ```
#[must_use]
pub fn named_block(name: &str, data: impl Into<Bytes>) -> Block {
    Block::new(block_tag(name), data)
}

/// The blocks that have arrived from the server, by name: what the asset source `haulier://` reads.
///
/// They stay, as files do, until they are [removed](Self::remove) or the connection has ended: an asset that
/// was dropped can be loaded again.
#[derive(Resource, Clone, Debug, Default)]
pub struct HaulierBlocks {
    shelf: Arc<Mutex<Shelf>>,
}

#[derive(Debug, Default)]
struct Shelf {
    names: HashMap<String, u64>,
    here: HashMap<u64, Bytes>,
    waiting: Vec<Waiting>,
    /// The names under which a block was read.
    read: HashMap<u64, HashSet<String>>,
}

/// A load that waits for its block.
#[derive(Debug)]
struct Waiting {
    tag: u64,
    answer: Sender<Result<Bytes, AssetReaderError>>,
    /// It has waited for a frame without a connection.
    is_stale: bool,
}

impl HaulierBlocks {
    /// The block with this name, if it is here. Its bytes are not copied.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<Bytes> {
        let shelf = self.shelf();
        shelf.here.get(&shelf.tag(name)).cloned()
    }

    /// Puts a block here as if it had arrived: one from a cache on the disk, after
    /// [`Event::BlockHere`](haulier::Event::BlockHere). A join that begins drops it.
    pub fn insert(&self, name: &str, data: impl Into<Bytes>) {
        let tag = self.tag(name);
        self.arrive(tag, data.into());
    }

    /// Forgets a block, so that its memory is free once nothing else uses it; assets that were loaded from it
    /// stay. Returns it. A later load of it waits until the server sends it again.
    pub fn remove(&self, name: &str) -> Option<Bytes> {
        let mut shelf = self.shelf();
        let tag = shelf.tag(name);
        shelf.here.remove(&tag)
    }

    /// The tag of the block with this name.
    #[must_use]
    pub fn tag(&self, name: &str) -> u64 {
        self.shelf().tag(name)
    }

    pub(crate) fn with_names(names: HashMap<String, u64>) -> Self {
        Self { shelf: Arc::new(Mutex::new(Shelf { names, ..Shelf::default() })) }
    }

    /// The bytes of a block, when it is here.
    pub(crate) fn ask(&self, name: &str) -> Receiver<Result<Bytes, AssetReaderError>> {
        let (answer, result) = async_channel::bounded(1);
        let mut shelf = self.shelf();
        let tag = shelf.tag(name);
        shelf.read.entry(tag).or_default().insert(name.to_owned());
        match shelf.here.get(&tag) {
            Some(data) => drop(answer.try_send(Ok(data.clone()))),
            None => shelf.waiting.push(Waiting { tag, answer, is_stale: false }),
        }
        result
    }

    /// Keeps a block, and gives it to the loads that wait. Returns the names of those that had read another
    /// before: their assets are to be loaded again.
    pub(crate) fn arrive(&self, tag: u64, data: Bytes) -> Vec<String> {
        let mut shelf = self.shelf();
        shelf.here.insert(tag, data.clone());
        let had_waited = shelf.answer(|waiting| (waiting.tag == tag).then(|| Ok(data.clone())));
        let names = shelf.read.get(&tag).into_iter().flatten();
        if had_waited { Vec::new() } else { names.cloned().collect() }
    }

    /// The server gave a block up.
    pub(crate) fn give_up(&self, tag: u64, code: u32) {
        self.fail(tag, &format!("the server gave the block up, with code {code}"));
    }

    /// A chunk of a block came by itself, so that the block will not come whole.
    pub(crate) fn is_in_chunks(&self, tag: u64) {
        let why = "the block comes chunk by chunk, for its connection's `delivery` says so, and an asset is \
                   made of a whole one: read its chunks (FromServer), or set Delivery::Blocks";
        self.fail(tag, why);
    }

    fn fail(&self, tag: u64, why: &str) {
        self.shelf().answer(|waiting| (waiting.tag == tag).then(|| Err(broken(why))));
    }

    /// A join begins, perhaps in place of another whose blocks are gone.
    pub(crate) fn begin(&self) {
        self.shelf().here.clear();
    }

    /// The connection has ended: no load waits for it any longer, and none of the next join finds its blocks.
    pub(crate) fn end(&self, why: &str) {
        let mut shelf = self.shelf();
        shelf.here.clear();
        shelf.answer(|_| Some(Err(broken(why))));
    }

    /// There is no connection any more. A load that begins now has until the next frame to be overtaken by
    /// the command that joins again.
    pub(crate) fn age(&self, why: &str) {
        let mut shelf = self.shelf();
        shelf.answer(|waiting| waiting.is_stale.then(|| Err(broken(why))));
        shelf.waiting.iter_mut().for_each(|waiting| waiting.is_stale = true);
    }

    fn shelf(&self) -> MutexGuard<'_, Shelf> {
        self.shelf.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Shelf {
    fn tag(&self, name: &str) -> u64 {
        self.names.get(name).copied().unwrap_or_else(|| block_tag(name))
    }

    /// Answers loads that wait, and says whether there were any. One that was given up does not count.
    fn answer(
        &mut self,
        mut result: impl FnMut(&Waiting) -> Option<Result<Bytes, AssetReaderError>>,
    ) -> bool {
        let mut has_answered = false;
        self.waiting.retain(|waiting| {
            let Some(result) = result(waiting) else { return !waiting.answer.is_closed() };
            has_answered |= waiting.answer.try_send(result).is_ok();
            false
        });
        has_answered
    }
}

fn broken(why: &str) -> AssetReaderError {
    AssetReaderError::Io(Arc::new(io::Error::new(ErrorKind::NotConnected, why.to_owned())))
}

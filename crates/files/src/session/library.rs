//! The files that are served, to all clients: where they are, and what is known of them.
//!
//! Files up to 64 MiB are hashed when the library is loaded, 1 GiB of them at most. Of larger ones the tree
//! is in the cache, or they go in parts, and what was found out is kept for the next client.
//!
//! What takes long, the root of a large file and its recipe, is computed once for all clients that want it
//! ([`shared`](super::shared)).
//!
//! The invariant: what is served of a file is the version that was there when it was last looked at: when the
//! library was loaded, before an offer was made of it, or when a read of it found something else. That read
//! ends with `changed`, nothing that was known of the file counts any more, and the next client is offered
//! the file of now.

mod found;

use std::collections::HashMap;
use std::hash::{BuildHasher as _, RandomState};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use haulier_proto::connection::BlockTree;

use self::found::Found;
use super::Ticket;
use super::pipe::Pipe;
use super::shared::{SLICE_BYTES, Shared};
use crate::cut::Cutter;
use crate::errors::{Change, ReadError};
use crate::folder::Folder;
use crate::mode::Mode;
use crate::names::{NameError, SafePath};
use crate::offer::{Content, Entry, Offer, OfferError, Root};
use crate::pieces::{MAX_PIECES, Recipe};
use crate::pool::PoolHandle;
use crate::reader::{FileHasher, FileVersion, HashProgress, SourceFile, hash_file};
use crate::reason::{Fault, Reason};
use crate::tree_cache::TreeCache;

/// Files up to this are hashed when they are loaded, in bytes: some 40 ms. Larger ones have a cache.
const MAX_HASHED_BYTES: u64 = 64 << 20;

/// At most this many bytes of such files are hashed in all: a second, before the first client can come.
const MAX_HASHED_IN_ALL_BYTES: u64 = 1 << 30;

/// Files that stay open, so that one that is replaced by a rename is served on as it was. The others are
/// opened as they are read: a process may have 1024 open, or fewer.
const MAX_OPEN: usize = 256;

/// The number of files not kept open that are checked for a change before an offer is made; the next offer
/// checks the next ones. To open a file takes some 10 us of the thread that serves all clients.
const LOOKED_AT: usize = 16;

/// Background hashing of a file continues when no part of any file was made for this time: at 0.5 Gbit/s a
/// part of 64 MiB takes this long, so a shorter pause may be a transfer that continues.
const QUIET: Duration = Duration::from_secs(1);

/// Why a library cannot be loaded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LibraryError {
    /// A file cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// A path cannot be offered.
    #[error("{} cannot be offered: {error}", path.display())]
    Name {
        /// The path.
        path: PathBuf,
        /// Why.
        error: NameError,
    },
    /// The files together cannot be.
    #[error("these files cannot be offered together: {0}")]
    Offer(#[from] OfferError),
}

/// The files of a giver.
#[derive(Debug)]
pub struct Library {
    files: Vec<Served>,
    by_path: HashMap<String, usize>,
    offer: Mutex<Arc<Offer>>,
    cache: TreeCache,
    skipped: Vec<PathBuf>,
    last_part: Mutex<Option<Instant>>,
    /// The file that is looked at next.
    next_look: AtomicUsize,
}

#[derive(Debug)]
pub(super) struct Served {
    path: PathBuf,
    /// The directory that was named, of a file in it: from there on no link is followed.
    base: Option<PathBuf>,
    is_kept_open: bool,
    known: Mutex<Known>,
    hasher: Mutex<FileHasher>,
    pipe: Option<PipeSource>,
}

/// A pipe, which one client gets.
#[derive(Debug)]
struct PipeSource {
    is_stdin: bool,
    was_taken: AtomicBool,
}

/// What is known of a file, all of it of one version.
#[derive(Debug, Default)]
struct Known {
    /// None of a directory.
    version: Option<FileVersion>,
    open: Option<Arc<SourceFile>>,
    tree: Arc<Shared<BlockTree>>,
    recipe: Arc<Shared<Recipe>>,
}

impl Known {
    fn is_of(&self, file: &SourceFile) -> bool {
        self.version.is_some_and(|version| version.change_to(file.version()).is_none())
    }
}

impl Library {
    /// Looks at these files, and at all that is in these directories, each under its name. A pipe is served
    /// once, and `-` is standard input. What is in a directory and is no file is left out
    /// ([`Library::skipped`]).
    ///
    /// # Errors
    /// [`LibraryError`].
    pub fn load(paths: &[(String, PathBuf)], cache: TreeCache) -> Result<Self, LibraryError> {
        let mut draw = random_draws();
        let Found { mut files, skipped } = Found::at(paths)?;
        let mut left = MAX_HASHED_IN_ALL_BYTES;
        for (entry, served) in &mut files {
            served.know(entry, &cache, &mut left, &mut draw)?;
        }
        let offer = Offer::new(files.iter().map(|(entry, _)| entry.clone()).collect())?;
        let paths = files.iter().map(|(entry, _)| entry.path.as_str().to_owned());
        let by_path = paths.zip(0..).collect();
        let files = files.into_iter().map(|(_, served)| served).collect();
        let (offer, last_part) = (Mutex::new(Arc::new(offer)), Mutex::default());
        let next_look = AtomicUsize::new(0);
        Ok(Self { files, by_path, offer, cache, skipped, last_part, next_look })
    }

    /// All that is offered, with what is known by now.
    #[must_use]
    pub fn offer(&self) -> Arc<Offer> {
        Arc::clone(&self.offer.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// All that is offered to a client that comes now. Whether files have changed is seen of those that are
    /// kept open, and of [`LOOKED_AT`] others: a client that has the version of before would read nothing, so
    /// that no read found it out.
    pub(super) fn offer_now(self: &Arc<Self>, pool: &PoolHandle) -> Arc<Offer> {
        let open = self.files.len().min(MAX_OPEN);
        let others = self.files.len() - open;
        let first = self.next_look.fetch_add(LOOKED_AT, Ordering::Relaxed);
        let others = (0..others.min(LOOKED_AT)).map(|n| open + first.wrapping_add(n) % others);
        let looked_at = (0..open).chain(others);
        let has_changed = |index: &usize| {
            let served = self.file(*index).filter(|served| served.known().version.is_some());
            let now = served.map(|served| served.file().and_then(|file| file.check()));
            matches!(now, Some(Err(ReadError::Changed { .. })))
        };
        let changed: Vec<usize> = looked_at.filter(has_changed).collect();
        let forgotten = changed.iter().filter_map(|index| self.forget(*index, None));
        let forgotten: HashMap<usize, (FileVersion, Mode)> = forgotten.collect();
        if !forgotten.is_empty() {
            self.offer_sized(&forgotten);
            let library = Arc::clone(self);
            pool.run(move || forgotten.keys().for_each(|index| library.hash_small(*index)));
        }
        self.offer()
    }

    /// Hashes what is not hashed yet, so that clients that come later can compare it with what they have.
    /// It takes as long as reading it does: for a thread of its own. While parts of files are sent it waits,
    /// because they are hashed with that. What cannot be read is found when it is sent.
    pub fn hash_rest(&self) {
        for (index, served) in self.files.iter().enumerate() {
            if served.known().version.is_some() && self.hash_in_background(served).is_ok() {
                drop(self.tree_of_parts(index));
            }
        }
    }

    fn hash_in_background(&self, served: &Served) -> Result<(), ReadError> {
        if served.known_tree().is_some() {
            return Ok(());
        }
        let file = served.file()?;
        loop {
            while self.last_part().is_some_and(|at| at.elapsed() < QUIET) {
                std::thread::sleep(QUIET);
            }
            if served.known_tree().is_some() || !served.hasher().hash_next(&file)? {
                return Ok(());
            }
        }
    }

    fn last_part(&self) -> MutexGuard<'_, Option<Instant>> {
        self.last_part.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A part of a file is hashed, to be sent.
    pub(super) fn note_part(&self) {
        *self.last_part() = Some(Instant::now());
    }

    /// What is in a directory and cannot be served: links, pipes, and names that no system has.
    #[must_use]
    pub fn skipped(&self) -> &[PathBuf] {
        &self.skipped
    }

    pub(super) fn index(&self, path: &SafePath) -> Option<usize> {
        self.by_path.get(path.as_str()).copied()
    }

    pub(super) fn file(&self, index: usize) -> Option<&Served> {
        self.files.get(index)
    }

    /// Answers with the tree of a file: what of it was hashed with no part is read for it.
    pub(super) fn want_tree(
        self: &Arc<Self>,
        index: usize,
        pool: &PoolHandle,
        ticket: Ticket<BlockTree>,
    ) {
        let Some(served) = self.file(index) else {
            return ticket.answer(Err(Reason::Unreadable.into()));
        };
        let library = Arc::clone(self);
        let slice = move || match library.hash_slice(index) {
            Ok(true) => None,
            Ok(false) => Some(library.tree_of_parts(index)),
            Err(fault) => Some(Err(fault)),
        };
        let tree = Arc::clone(&served.known().tree);
        Shared::want(&tree, pool, ticket, slice);
    }

    /// Hashes some of a file; whether there is more to hash.
    fn hash_slice(&self, index: usize) -> Result<bool, Fault> {
        self.read(index, None, |served, file| {
            for _ in 0..SLICE_BYTES / FileHasher::BYTES_AT_ONCE {
                if !served.hasher().hash_next(file)? {
                    return Ok(false);
                }
            }
            Ok(true)
        })
    }

    /// The tree of a file of which parts were hashed already.
    fn tree_of_parts(&self, index: usize) -> Result<BlockTree, Fault> {
        if let Some(tree) = self.file(index).ok_or(Reason::Unreadable)?.known_tree() {
            return Ok(tree);
        }
        self.read(index, None, |served, file| {
            let tree = served.hasher().root(file)?;
            self.learn(index, file, &tree);
            Ok(tree)
        })
    }

    /// Reads something of a file. If it is not what it was, or not what this tree says, all that is known
    /// of it is forgotten, and it is offered as it is now.
    pub(super) fn read<T>(
        &self,
        index: usize,
        tree: Option<&BlockTree>,
        read: impl FnOnce(&Served, &SourceFile) -> Result<T, ReadError>,
    ) -> Result<T, Fault> {
        let served = self.file(index).ok_or(Reason::Unreadable)?;
        let done = served.file().and_then(|file| read(served, &file));
        if let Err(ReadError::Changed { .. }) = &done {
            self.look_again(index, tree);
        }
        done.map_err(|error| error.fault())
    }

    /// Forgets what is known of a file, if this tree is that or the file is another version; then its entry
    /// is made anew. A file that is gone stays in the offer, and is looked for when it is asked for.
    fn look_again(&self, index: usize, tree: Option<&BlockTree>) {
        if let Some(forgotten) = self.forget(index, tree) {
            self.offer_sized(&HashMap::from([forgotten]));
            self.hash_small(index);
        }
    }

    /// Forgets it, and says what the file is now.
    fn forget(
        &self,
        index: usize,
        tree: Option<&BlockTree>,
    ) -> Option<(usize, (FileVersion, Mode))> {
        let served = self.file(index)?;
        let file = served.open().ok()?;
        let (version, mode) = (*file.version(), file.mode());
        {
            let mut known = served.known();
            let of_now = known.tree.known();
            let is_known = |tree: &BlockTree| {
                of_now.as_ref().is_some_and(|known| known.digest() == tree.digest())
            };
            if known.version == Some(version) && !tree.is_some_and(is_known) {
                return None;
            }
            let open = served.is_kept_open.then(|| Arc::new(file));
            *known = Known { version: Some(version), open, ..Known::default() };
        }
        *served.hasher() = FileHasher::default();
        self.cache.forget(&served.path);
        Some((index, (version, mode)))
    }

    /// Offers these files as they are now, of which nothing else is known.
    fn offer_sized(&self, forgotten: &HashMap<usize, (FileVersion, Mode)>) {
        self.change_entries(|index, entry| {
            if let Some((version, mode)) = forgotten.get(&index) {
                entry.content = Content::Sized(version.bytes);
                (entry.modified_ns, entry.mode) = (version.modified_ns, *mode);
            }
        });
    }

    /// Hashes a file of which nothing is known, if that takes no longer than loading it did. One attempt: a
    /// file that is written all the time changes again under it, and then goes in parts. To look again from
    /// here held the thread for as long as it was written, a frame of its stack each time.
    fn hash_small(&self, index: usize) {
        let file = self.file(index).and_then(|served| served.file().ok());
        if let Some(file) = file.filter(|file| file.version().bytes <= MAX_HASHED_BYTES)
            && let Ok(tree) = hash_file(&file, 2, &HashProgress::default())
        {
            self.learn(index, &file, &tree);
        }
    }

    /// Answers with the pieces of a file.
    pub(super) fn want_recipe(
        self: &Arc<Self>,
        index: usize,
        pool: &PoolHandle,
        ticket: Ticket<Recipe>,
    ) {
        let Some(served) = self.file(index) else {
            return ticket.answer(Err(Reason::Unreadable.into()));
        };
        let (library, mut cutter) = (Arc::clone(self), None);
        let slice = move || library.cut_slice(index, &mut cutter).transpose();
        let recipe = Arc::clone(&served.known().recipe);
        Shared::want(&recipe, pool, ticket, slice);
    }

    /// Cuts some of a file; all of its pieces at the end.
    fn cut_slice(
        &self,
        index: usize,
        cutter: &mut Option<Cutter<Arc<SourceFile>>>,
    ) -> Result<Option<Recipe>, Fault> {
        let cutter = match cutter {
            Some(cutter) => cutter,
            None => {
                let served = self.file(index).ok_or(Reason::Unreadable)?;
                let file = served.file().map_err(|error| error.fault())?;
                cutter.insert(Cutter::new(file))
            }
        };
        let pieces = self.read(index, None, |_, _| cutter.next_pieces(SLICE_BYTES))?;
        let too_many = || Fault::new(Reason::Unreadable, "it has too many pieces to be compared");
        if cutter.count() > MAX_PIECES {
            return Err(too_many());
        }
        let Some(pieces) = pieces else { return Ok(None) };
        let recipe = Recipe::new(pieces).map_err(|_| too_many())?;
        let served = self.file(index).ok_or(Reason::Unreadable)?;
        let tree = {
            let known = served.known();
            // The cache is bound to ctime, and so is what it is given.
            let is_of_tree = known.version.as_ref() == Some(cutter.file().version());
            is_of_tree.then(|| known.tree.known()).flatten()
        };
        if let Some(tree) = tree {
            self.keep(cutter.file(), &tree, Some(&recipe));
        }
        Ok(Some(recipe))
    }

    /// Keeps a tree, and offers its root from now on.
    fn learn(&self, index: usize, file: &SourceFile, tree: &BlockTree) {
        let Some(served) = self.file(index) else { return };
        let (of_file, recipe) = {
            let known = served.known();
            // Another read found that it has changed meanwhile.
            if !known.is_of(file) {
                return;
            }
            (Arc::clone(&known.tree), known.recipe.known())
        };
        of_file.learn(tree.clone());
        self.keep(file, tree, recipe.as_ref());
        self.change_entries(|changed, entry| {
            // It may have changed while its tree was written.
            if changed == index && served.known().is_of(file) {
                entry.content = known_content(tree);
            }
        });
    }

    /// Whoever asks from now on is offered files in this way.
    fn change_entries(&self, change: impl Fn(usize, &mut Entry)) {
        let mut offer = self.offer.lock().unwrap_or_else(PoisonError::into_inner);
        let mut entries = offer.entries().to_vec();
        for entry in &mut entries {
            if let Some(index) = self.index(&entry.path) {
                change(index, entry);
            }
        }
        // Its paths did not collide before, and stay.
        if let Ok(changed) = Offer::new(entries) {
            *offer = Arc::new(changed);
        }
    }

    /// What cannot be kept is found out again.
    fn keep(&self, file: &SourceFile, tree: &BlockTree, recipe: Option<&Recipe>) {
        if tree.length() > MAX_HASHED_BYTES {
            drop(self.cache.store(file, tree, recipe));
        }
    }
}

impl Served {
    fn new(path: &Path, file: Option<SourceFile>, is_kept_open: bool) -> Self {
        Self {
            path: path.to_owned(),
            base: None,
            is_kept_open,
            known: Mutex::new(Known {
                version: file.as_ref().map(|file| *file.version()),
                open: file.filter(|_| is_kept_open).map(Arc::new),
                ..Known::default()
            }),
            hasher: Mutex::default(),
            pipe: None,
        }
    }

    pub(super) const fn is_pipe(&self) -> bool {
        self.pipe.is_some()
    }

    /// Opens a pipe, for the first who asks.
    pub(super) fn take_pipe(&self, pool: &PoolHandle) -> Result<Pipe, Fault> {
        match &self.pipe {
            Some(pipe) if !pipe.was_taken.swap(true, Ordering::AcqRel) => {
                Pipe::open((!pipe.is_stdin).then_some(&*self.path), pool)
            }
            _ => Err(Fault::new(Reason::Unreadable, "a pipe is served once")),
        }
    }

    /// What has its name now.
    fn open(&self) -> Result<SourceFile, ReadError> {
        let Some(base) = &self.base else { return SourceFile::open(&self.path) };
        let io = |error| ReadError::io(&self.path, error);
        let mut folder = Folder::open(base).map_err(io)?;
        let inner = self.path.parent().and_then(|inner| inner.strip_prefix(base).ok());
        for part in inner.into_iter().flat_map(Path::components) {
            folder = folder.inner(part.as_os_str()).map_err(io)?;
        }
        SourceFile::open_inside(&folder, &self.path)
    }

    /// The file as it was when it was last looked at.
    pub(super) fn file(&self) -> Result<Arc<SourceFile>, ReadError> {
        let (open, version) = {
            let known = self.known();
            (known.open.clone(), known.version)
        };
        if let Some(file) = open {
            return Ok(file);
        }
        let file = self.open()?;
        let changed = |change| ReadError::changed(&self.path, change);
        match &version {
            Some(version) => match version.change_to(file.version()) {
                None => Ok(Arc::new(file)),
                Some(change) => Err(changed(change)),
            },
            None => Err(changed(Change::Replaced)),
        }
    }

    pub(super) fn known_tree(&self) -> Option<BlockTree> {
        self.known().tree.known()
    }

    pub(super) fn hasher(&self) -> MutexGuard<'_, FileHasher> {
        self.hasher.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Finds out the tree, if that takes no time, and has the entry say so.
    fn know(
        &mut self,
        entry: &mut Entry,
        cache: &TreeCache,
        left: &mut u64,
        draw: &mut impl FnMut(u32) -> u32,
    ) -> Result<(), ReadError> {
        let Content::Sized(bytes) = entry.content else { return Ok(()) };
        if bytes > MAX_HASHED_BYTES {
            if let Some(cached) = cache.load(&*self.file()?, draw) {
                entry.content = known_content(&cached.tree);
                let known = self.known();
                known.tree.learn(cached.tree);
                cached.recipe.into_iter().for_each(|recipe| known.recipe.learn(recipe));
            }
        } else if bytes <= *left {
            *left -= bytes;
            let tree = hash_file(&*self.file()?, 2, &HashProgress::default())?;
            entry.content = known_content(&tree);
            self.known().tree.learn(tree);
        }
        Ok(())
    }
}

/// Numbers below one that is given, which nobody can foresee.
fn random_draws() -> impl FnMut(u32) -> u32 {
    let (random, mut draws) = (RandomState::new(), 0_u64);
    move |below| {
        draws += 1;
        (random.hash_one(draws) % u64::from(below.max(1))) as u32
    }
}

fn known_content(tree: &BlockTree) -> Content {
    let root: Root = *tree.digest();
    Content::Known { size: tree.length(), root }
}

#[cfg(test)]
mod tests;

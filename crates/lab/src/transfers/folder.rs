//! The taker's disk: finished files, unfinished ones with their journals, and what has to be there.
//!
//! The steps here, and their order, are those of `haulier_files::writer` with the system's files. The oracle
//! is here too: a name is only ever given to bytes that were offered, and bytes that were safe are still
//! there after a crash.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::time::Duration;

use haulier_files::Ranges;
use haulier_files::chunks::chunk_count;
use haulier_files::journal::FileIdentity;
use haulier_files::model::{ModelDisk, ModelFile};
use haulier_files::offer::{Entry, Root};
use haulier_files::reason::{Fault, Reason};
use haulier_files::storage::Storage as _;
use haulier_files::taker::Local;
use haulier_files::unfinished::Unfinished;
use haulier_files::writer::MIN_JOURNAL_BYTES;
use haulier_proto::connection::{BlockTree, ChunkValue};

use super::store::Store;

/// How an unfinished file came to be left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Left {
    /// The connection ended, and the program closed it.
    Closed,
    /// The program was killed.
    Killed,
    /// The machine lost its power.
    PowerLost,
}

/// What has to be here of an unfinished file.
#[derive(Clone, Debug)]
struct Kept {
    identity: FileIdentity,
    /// If the machine loses its power.
    synced: Ranges,
    /// If not.
    written: Ranges,
}

/// A file in the making.
pub(super) struct Making {
    pub(super) file: Unfinished<ModelFile>,
    identity: FileIdentity,
    has_journal: bool,
    has_synced_names: Cell<bool>,
    modified_ns: i64,
}

/// What was found of a file.
pub(super) struct Found {
    pub(super) local: Local,
    pub(super) making: Option<Making>,
    /// Bytes of an older version.
    pub(super) older: Option<Vec<u8>>,
    /// Chunks that had to be here, and are.
    pub(super) kept_chunks: u64,
}

/// An older version is compared from this size on, in bytes, as in the taker.
const MIN_OLDER_BYTES: usize = 1 << 20;

/// As in the writer.
const CHECKPOINT_INTERVAL: Duration = Duration::from_secs(1);

pub(super) struct Folder {
    pub(super) disk: ModelDisk,
    store: Rc<RefCell<Store>>,
    /// Of finished files.
    times: BTreeMap<String, i64>,
    locked: BTreeSet<String>,
    kept: BTreeMap<String, Kept>,
    /// Roots of what was there before.
    before: BTreeSet<Root>,
    /// What was synced is there after a crash.
    pub(super) is_honest: bool,
    /// A name was given to these.
    pub(super) stored: u64,
    /// Chunks, or pieces of them, that were written.
    pub(super) written: u64,
    pub(super) wrong: Option<String>,
}

fn part_of(path: &str) -> String {
    format!("{path}.haulier-part")
}

fn journal_of(path: &str) -> String {
    format!("{path}.haulier-journal")
}

fn root_of(bytes: &[u8]) -> Root {
    *BlockTree::of(bytes).digest()
}

impl Folder {
    pub(super) fn new(disk: ModelDisk, store: &Rc<RefCell<Store>>, is_honest: bool) -> Self {
        Self {
            disk,
            store: Rc::clone(store),
            times: BTreeMap::new(),
            locked: BTreeSet::new(),
            kept: BTreeMap::new(),
            before: BTreeSet::new(),
            is_honest,
            stored: 0,
            written: 0,
            wrong: None,
        }
    }

    /// A file that was there before all.
    pub(super) fn put(&mut self, path: &str, bytes: &[u8], modified_ns: i64) {
        let file = self.disk.file(path);
        file.write_at(bytes, 0).and_then(|()| file.sync()).expect("a new disk");
        self.times.insert(path.to_owned(), modified_ns);
        self.before.insert(root_of(bytes));
    }

    /// Finds out which parts of a file the disk has, and makes the file ready to be written.
    pub(super) fn inspect(&mut self, entry: &Entry) -> Found {
        let path = entry.path.as_str();
        let found = |local| Found { local, making: None, older: None, kept_chunks: 0 };
        let older = self.disk.exists(path).then(|| self.disk.bytes(path));
        if older.as_ref().is_some_and(|older| self.is_dated(older, entry)) {
            return found(Local::Unproven);
        }
        if older.as_ref().is_some_and(|older| is_same(older, entry)) {
            // A program may have ended between giving the name and syncing it.
            if self.disk.sync_names().is_err() {
                return found(Local::Refused(Fault::new(Reason::NotStored, "not synced")));
            }
            if !self.disk.exists(&part_of(path)) {
                self.disk.remove(&journal_of(path));
            }
            return found(Local::Here);
        }
        let mut identity = FileIdentity::new(path).with_modified_ns(entry.modified_ns);
        if let Some(bytes) = entry.size() {
            identity = identity.with_length(bytes);
        }
        if let Some(root) = entry.root() {
            identity = identity.with_root(*root);
        }
        if !self.locked.insert(path.to_owned()) {
            return found(Local::Refused(Fault::new(Reason::NotStored, "in use")));
        }
        let has_journal = entry.size().is_some_and(|bytes| bytes >= MIN_JOURNAL_BYTES);
        let file = match self.open(path, has_journal, &identity) {
            Ok(file) => file,
            Err(error) => {
                self.locked.remove(path);
                return found(Local::Refused(fault_of(&error)));
            }
        };
        let here = file.here();
        self.check_here(path, &here);
        let kept_chunks = self.compare_with_kept(path, &identity, &here);
        let older = older.filter(|older| older.len() >= MIN_OLDER_BYTES);
        let local = match &older {
            _ if file.unchecked() > 0 || !here.is_empty() => Local::Partial { chunks: here },
            Some(_) => Local::Older,
            None => Local::Absent,
        };
        let modified_ns = entry.modified_ns;
        let has_synced_names = Cell::new(false);
        let making = Some(Making { file, identity, has_journal, has_synced_names, modified_ns });
        Found { local, making, older, kept_chunks }
    }

    /// Whether it has the size and time of the offer, and the giver has not said its root.
    fn is_dated(&self, here: &[u8], entry: &Entry) -> bool {
        let time = self.times.get(entry.path.as_str());
        entry.root().is_none()
            && !here.is_empty()
            && entry.size() == Some(here.len() as u64)
            && time == Some(&entry.modified_ns)
    }

    fn open(
        &self,
        path: &str,
        has_journal: bool,
        identity: &FileIdentity,
    ) -> std::io::Result<Unfinished<ModelFile>> {
        let data = self.disk.file(&part_of(path));
        let journal = has_journal.then(|| self.disk.file(&journal_of(path)));
        let length = identity.length().unwrap_or_default();
        let is_new = !has_journal || data.length()? != length;
        if is_new {
            Unfinished::clear(&data, journal.as_ref())?;
            data.set_length(length)?;
        }
        match journal {
            Some(journal) if !is_new => Unfinished::resume(data, journal, identity),
            journal => {
                let file = Unfinished::create(data, journal, identity)?;
                Ok(if is_new { file.with_blank_data() } else { file })
            }
        }
    }

    /// Checks that the chunks that are said to be here are here, because they are not asked for again.
    fn check_here(&mut self, path: &str, here: &Ranges) {
        let bytes = self.disk.bytes(&part_of(path));
        let is_there = |&index: &u64| self.store.borrow().may_have_chunk(path, &bytes, index);
        let lost = here.iter().flatten().find(|index| !is_there(index));
        if let Some(index) = lost.filter(|_| self.is_honest) {
            self.wrong = Some(format!("chunk {index} of {path} is said to be here, and is lost"));
        }
    }

    /// Checks that the chunks that were safe are here. Returns their number.
    fn compare_with_kept(&mut self, path: &str, identity: &FileIdentity, here: &Ranges) -> u64 {
        let Some(kept) = self.kept.remove(path) else { return 0 };
        if !self.is_honest || !kept.identity.is_same_content(identity) {
            return 0;
        }
        let lost = kept.written.iter().flatten().find(|&index| !here.contains(&(index..index + 1)));
        if let Some(index) = lost {
            self.wrong = Some(format!("chunk {index} of {path} was safe, and is lost"));
        }
        kept.written.count()
    }

    /// Writes, notes, and makes a checkpoint if one is due.
    pub(super) fn write(
        &mut self,
        making: &Making,
        since_open: Duration,
        offset: u64,
        bytes: &[u8],
        value: Option<ChunkValue>,
    ) -> Result<(), Fault> {
        let written = match value {
            Some(value) => making.file.write_chunk(offset, bytes, value),
            None => making.file.write_at(offset, bytes),
        };
        self.written += 1;
        written.map_err(|error| fault_of(&error))?;
        self.checkpoint_if_due(making, since_open)
    }

    pub(super) fn checkpoint_if_due(
        &mut self,
        making: &Making,
        since_open: Duration,
    ) -> Result<(), Fault> {
        let done = making.file.checkpoint_if_due(since_open, CHECKPOINT_INTERVAL);
        if done.map_err(|error| fault_of(&error))? {
            // As the writer: what is covered is there only if its file and journal have their names.
            if !making.has_synced_names.replace(true) {
                self.disk.sync_names().map_err(|error| fault_of(&error))?;
            }
            let (identity, synced) = (making.identity.clone(), making.file.here());
            let kept = Kept { identity, written: synced.clone(), synced };
            self.kept.insert(making.identity.name().to_owned(), kept);
        }
        Ok(())
    }

    /// What has come of a file counts no more.
    pub(super) fn discard(&mut self, making: &Making) -> Result<(), Fault> {
        self.kept.remove(making.identity.name());
        making.file.discard().map_err(|error| fault_of(&error))
    }

    /// An unfinished file is left, for the next time.
    pub(super) fn leave(&mut self, making: &Making, left: Left) {
        let path = making.identity.name();
        self.locked.remove(path);
        if left == Left::Closed {
            if !making.has_journal || making.file.here().is_empty() {
                self.disk.remove(&journal_of(path));
                self.disk.remove(&part_of(path));
                self.kept.remove(path);
                return;
            }
            // If it fails, what no checkpoint covers is hashed again the next time.
            drop(making.file.checkpoint().and_then(|()| self.disk.sync_names()));
        }
        if !making.has_journal {
            return;
        }
        let synced = self.kept.get(path).map(|kept| kept.synced.clone()).unwrap_or_default();
        let written = match left {
            Left::PowerLost => synced.clone(),
            // What is not hashed again yet may be lost since a crash before.
            _ if making.file.unchecked() > 0 => synced.clone(),
            _ => making.file.here(),
        };
        let identity = making.identity.clone();
        self.kept.insert(path.to_owned(), Kept { identity, synced, written });
    }

    /// The machine lost its power: what was only written is not safe.
    pub(super) fn lose_power(&mut self) {
        self.disk.crash();
        self.locked.clear();
        for kept in self.kept.values_mut() {
            kept.written = kept.synced.clone();
        }
    }

    /// The program was killed.
    pub(super) fn kill(&mut self) {
        self.disk.kill();
        self.locked.clear();
    }

    /// A file that is whole gets its name.
    pub(super) fn give_name(&mut self, making: &Making) -> Result<(), Fault> {
        let path = making.identity.name().to_owned();
        self.disk.rename(&part_of(&path), &path).map_err(|error| fault_of(&error))?;
        self.times.insert(path.clone(), making.modified_ns);
        self.stored += 1;
        self.check_name(&path);
        self.disk.sync_names().map_err(|error| fault_of(&error))?;
        self.disk.remove(&journal_of(&path));
        self.kept.remove(&path);
        self.locked.remove(&path);
        Ok(())
    }

    /// What has this name was offered once, or was there before.
    fn check_name(&mut self, path: &str) {
        if !self.was_offered(path) {
            let bytes = self.disk.bytes(path);
            let differs = self.store.borrow().differences(path, &bytes);
            self.wrong = Some(format!("{path} has bytes that nobody ever offered: {differs:?}"));
        }
    }

    /// What is said to be here or stored is what the giver had since it made its offer, in the `first`
    /// version of then or a later one: not what it had before, with whatever size and time.
    pub(super) fn check_done(&mut self, path: &str, first: usize) {
        let root = root_of(&self.disk.bytes(path));
        if !self.store.borrow().had_since(path, &root, first) {
            self.wrong = Some(format!("{path} is said to be here, and has other bytes"));
        }
    }

    /// All names, after a crash. What a disk lost that had lied is removed, as its owner would.
    pub(super) fn check_names(&mut self) {
        let mut paths: Vec<String> = self.times.keys().cloned().collect();
        paths.retain(|path| self.disk.exists(path));
        for path in paths {
            if self.is_honest {
                self.check_name(&path);
            } else if !self.was_offered(&path) {
                self.disk.remove(&path);
            }
        }
    }

    fn was_offered(&self, path: &str) -> bool {
        let root = root_of(&self.disk.bytes(path));
        self.before.contains(&root) || self.store.borrow().ever_had(path, &root)
    }

    /// The length of a file in chunks.
    pub(super) fn chunks_of(entry: &Entry) -> u64 {
        entry.size().map_or(0, |bytes| u64::from(chunk_count(bytes)))
    }
}

/// Whether these are the bytes of the offer.
fn is_same(here: &[u8], entry: &Entry) -> bool {
    let empty = || here.is_empty() && entry.size() == Some(0);
    entry.size() == Some(here.len() as u64)
        && entry.root().map_or_else(empty, |root| root_of(here) == *root)
}

/// What went wrong, as the wire says it.
pub(super) fn fault_of(error: &std::io::Error) -> Fault {
    match error.kind() {
        std::io::ErrorKind::StorageFull => Fault::new(Reason::NoRoom, "full"),
        _ => Fault::new(Reason::NotStored, &error.to_string()),
    }
}

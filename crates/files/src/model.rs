//! A disk in memory that is slow, full, failing, or lying, and that loses what was not synced when it
//! crashes.
//!
//! For tests and the soak: the same seed gives the same faults. It is harsher than a disk has to be. Of
//! what was written to a file since its last sync a crash keeps nothing, or all of it, or any 4 KiB in any
//! combination, each as it was at some moment; a lying disk treats a sync that it reported in the same way.
//!
//! The invariant: what a process reads before a crash is what it wrote, and what an honest disk has synced
//! is there after it.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::storage::Storage;

/// What is kept or lost at a time, in bytes: a page of the system.
const PAGE_BYTES: usize = 4096;

/// What is wrong with a disk. By default nothing.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct Faults {
    full_at_bytes: Option<u64>,
    failing_per_mille: u16,
    lying_per_mille: u16,
    bytes_per_second: Option<u64>,
}

impl Faults {
    /// The disk is full when all files together have this many bytes.
    pub const fn with_full_at(mut self, bytes: u64) -> Self {
        self.full_at_bytes = Some(bytes);
        self
    }

    /// `per_mille` of 1000 writes and syncs fail, half-way.
    pub const fn with_failing(mut self, per_mille: u16) -> Self {
        self.failing_per_mille = per_mille;
        self
    }

    /// `per_mille` of 1000 syncs report that all is on the disk, although it is not.
    pub const fn with_lying(mut self, per_mille: u16) -> Self {
        self.lying_per_mille = per_mille;
        self
    }

    /// What is read and written takes time; see [`ModelDisk::busy`].
    pub const fn with_bytes_per_second(mut self, bytes: u64) -> Self {
        self.bytes_per_second = Some(bytes);
        self
    }
}

/// The disk. Clones are the same one.
#[derive(Clone, Debug)]
pub struct ModelDisk(Arc<Mutex<Inner>>);

#[derive(Debug)]
struct Inner {
    files: BTreeMap<String, Content>,
    /// What was done to names since these were synced, in order.
    names: Vec<NameChange>,
    faults: Faults,
    /// The state of a splitmix64.
    draws: u64,
    /// A handle of before a crash is dead.
    crashes: u32,
    busy: Duration,
}

/// A file: as it is seen, as it is on the disk, and what was done since.
#[derive(Clone, Default)]
struct Content {
    seen: Vec<u8>,
    synced: Vec<u8>,
    since: Vec<Change>,
}

impl std::fmt::Debug for Content {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} bytes, {} changes", self.seen.len(), self.since.len())
    }
}

/// A change of a name, as it is taken back.
#[derive(Debug)]
enum NameChange {
    Renamed { from: String, to: String, replaced: Option<Content> },
    Removed { name: String, content: Content },
}

#[derive(Clone, Debug)]
enum Change {
    Page(usize, Vec<u8>),
    Length(usize),
}

impl Change {
    /// The number of the page that it is in, if it is not of the length.
    const fn page(&self) -> Option<usize> {
        match self {
            Self::Page(offset, _) => Some(*offset / PAGE_BYTES),
            Self::Length(_) => None,
        }
    }

    fn apply(&self, bytes: &mut Vec<u8>) {
        match self {
            Self::Page(offset, page) => {
                let end = offset + page.len();
                bytes.resize(bytes.len().max(end), 0);
                bytes[*offset..end].copy_from_slice(page);
            }
            Self::Length(length) => bytes.resize(*length, 0),
        }
    }
}

impl ModelDisk {
    /// An empty disk.
    pub fn new(seed: u64, faults: Faults) -> Self {
        let files = BTreeMap::new();
        Self(Arc::new(Mutex::new(Inner {
            files,
            names: Vec::new(),
            faults,
            draws: seed,
            crashes: 0,
            busy: Duration::ZERO,
        })))
    }

    /// A file on it, made if it is not there.
    pub fn file(&self, name: &str) -> ModelFile {
        let mut inner = self.inner();
        inner.files.entry(name.to_owned()).or_default();
        ModelFile { disk: self.clone(), name: name.to_owned(), crashes: inner.crashes }
    }

    /// What a file has now.
    pub fn bytes(&self, name: &str) -> Vec<u8> {
        self.inner().files.get(name).map(|content| content.seen.clone()).unwrap_or_default()
    }

    /// Whether there is a file of this name.
    pub fn exists(&self, name: &str) -> bool {
        self.inner().files.contains_key(name)
    }

    /// Gives a file another name, in place of what had that.
    pub fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let mut inner = self.inner();
        let content = inner.files.remove(from).ok_or(io::ErrorKind::NotFound)?;
        let replaced = inner.files.insert(to.to_owned(), content);
        let (from, to) = (from.to_owned(), to.to_owned());
        inner.names.push(NameChange::Renamed { from, to, replaced });
        Ok(())
    }

    /// Removes a file, if it is there.
    pub fn remove(&self, name: &str) {
        let mut inner = self.inner();
        if let Some(content) = inner.files.remove(name) {
            inner.names.push(NameChange::Removed { name: name.to_owned(), content });
        }
    }

    /// Returns when the names are on the disk: a sync of the folder.
    pub fn sync_names(&self) -> io::Result<()> {
        let mut inner = self.inner();
        let (lying, failing) = (inner.faults.lying_per_mille, inner.faults.failing_per_mille);
        if inner.happens(failing) {
            return Err(io::Error::other("the disk failed"));
        }
        if !inner.happens(lying) {
            inner.names.clear();
        }
        Ok(())
    }

    /// Everything that is not on the disk may be lost, and every open file is dead. Of the names the first
    /// changes are kept, and the others are not.
    pub fn crash(&self) {
        let mut inner = self.inner();
        inner.crashes += 1;
        let changes = inner.names.len() as u64;
        let kept = inner.draw(changes + 1) as usize;
        let mut names = std::mem::take(&mut inner.names);
        for change in names.drain(kept..).rev() {
            inner.take_back(change);
        }
        let mut files = std::mem::take(&mut inner.files);
        for content in files.values_mut() {
            let kept = inner.draw(3);
            let is_length_kept = inner.draw(2) == 0;
            // Of each page, and of the length, how many of its changes are kept.
            let mut pages: BTreeMap<Option<usize>, u64> = BTreeMap::new();
            for change in &content.since {
                *pages.entry(change.page()).or_default() += 1;
            }
            for (page, count) in &mut pages {
                *count = match kept {
                    // Whoever syncs another file may write down the lengths of all.
                    _ if page.is_none() && is_length_kept => *count,
                    0 => 0,
                    1 => *count,
                    _ => inner.draw(*count + 1),
                };
            }
            for change in std::mem::take(&mut content.since) {
                let left = pages.entry(change.page()).or_default();
                if *left > 0 {
                    *left -= 1;
                    change.apply(&mut content.synced);
                }
            }
            content.seen = content.synced.clone();
        }
        inner.files = files;
    }

    /// The process ended, and the system did not: nothing is lost, and every open file is dead.
    pub fn kill(&self) {
        self.inner().crashes += 1;
    }

    /// Changes one bit of a file, somewhere.
    pub fn flip_a_bit(&self, name: &str) {
        let mut inner = self.inner();
        let (place, bit) = (inner.draw(u64::MAX), inner.draw(8));
        let Some(content) = inner.files.get_mut(name).filter(|content| !content.seen.is_empty())
        else {
            return;
        };
        let place = usize::try_from(place).unwrap_or_default() % content.seen.len();
        content.seen[place] ^= 1 << bit;
        if let Some(byte) = content.synced.get_mut(place) {
            *byte ^= 1 << bit;
        }
    }

    /// Other faults from now on.
    pub fn set_faults(&self, faults: Faults) {
        self.inner().faults = faults;
    }

    /// How long the disk was busy with what it was asked, if it has a speed.
    pub fn busy(&self) -> Duration {
        self.inner().busy
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    /// A number below this one: splitmix64, which any seed starts well.
    fn draw(&mut self, below: u64) -> u64 {
        self.draws = self.draws.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.draws;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % below
    }

    fn take_back(&mut self, change: NameChange) {
        match change {
            NameChange::Renamed { from, to, replaced } => {
                let content = self.files.remove(&to).unwrap_or_default();
                self.files.insert(from, content);
                self.files.extend(replaced.map(|replaced| (to, replaced)));
            }
            NameChange::Removed { name, content } => {
                self.files.insert(name, content);
            }
        }
    }

    fn happens(&mut self, per_mille: u16) -> bool {
        per_mille > 0 && self.draw(1000) < u64::from(per_mille)
    }

    fn spend(&mut self, bytes: usize) {
        if let Some(speed) = self.faults.bytes_per_second {
            let nanoseconds = bytes as u128 * 1_000_000_000 / u128::from(speed.max(1));
            self.busy += Duration::from_nanos(u64::try_from(nanoseconds).unwrap_or(u64::MAX));
        }
    }

    fn has_room(&self, name: &str, end: u64) -> bool {
        let others = self.files.iter().filter(|(other, _)| *other != name);
        let others: u64 = others.map(|(_, content)| content.seen.len() as u64).sum();
        self.faults.full_at_bytes.is_none_or(|max| others + end <= max)
    }
}

/// An open file of a [`ModelDisk`].
#[derive(Clone, Debug)]
pub struct ModelFile {
    disk: ModelDisk,
    name: String,
    crashes: u32,
}

impl ModelFile {
    fn with<T>(&self, act: impl FnOnce(&mut Inner, &str) -> io::Result<T>) -> io::Result<T> {
        let mut inner = self.disk.inner();
        if inner.crashes != self.crashes {
            return Err(io::Error::other("the process that had it open is gone"));
        }
        act(&mut inner, &self.name)
    }

    fn change(&self, changes: Vec<Change>, end: u64) -> io::Result<()> {
        self.with(|inner, name| {
            if !inner.has_room(name, end) {
                return Err(io::ErrorKind::StorageFull.into());
            }
            let fails = inner.happens(inner.faults.failing_per_mille);
            let count = if fails { changes.len() / 2 } else { changes.len() };
            let content = inner.files.entry(name.to_owned()).or_default();
            for change in changes.into_iter().take(count) {
                change.apply(&mut content.seen);
                content.since.push(change);
            }
            if fails { Err(io::Error::other("the disk failed")) } else { Ok(()) }
        })
    }
}

impl Storage for ModelFile {
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let start = usize::try_from(offset).map_err(io::Error::other)?;
        // Cut where pages end, so that a crash can keep one without the other.
        let first = (PAGE_BYTES - start % PAGE_BYTES).min(bytes.len());
        let (first, rest) = bytes.split_at(first);
        let mut changes = vec![Change::Page(start, first.to_vec())];
        for (number, page) in rest.chunks(PAGE_BYTES).enumerate() {
            changes.push(Change::Page(start + first.len() + number * PAGE_BYTES, page.to_vec()));
        }
        self.disk.inner().spend(bytes.len());
        self.change(changes, offset + bytes.len() as u64)
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.with(|inner, name| {
            inner.spend(buffer.len());
            let seen =
                inner.files.get(name).map(|content| content.seen.as_slice()).unwrap_or_default();
            let start = usize::try_from(offset).map_or(seen.len(), |start| start.min(seen.len()));
            let count = buffer.len().min(seen.len() - start);
            buffer[..count].copy_from_slice(&seen[start..start + count]);
            Ok(count)
        })
    }

    fn punch_hole(&self, offset: u64, bytes: u64) -> io::Result<bool> {
        let zeros = vec![0; usize::try_from(bytes).map_err(io::Error::other)?];
        self.write_at(&zeros, offset)?;
        Ok(true)
    }

    fn sync(&self) -> io::Result<()> {
        self.with(|inner, name| {
            let lies = inner.happens(inner.faults.lying_per_mille);
            let fails = inner.happens(inner.faults.failing_per_mille);
            let content = inner.files.entry(name.to_owned()).or_default();
            if fails {
                // Linux reports it once, and then takes the pages for written.
                content.since.clear();
                return Err(io::Error::other("the disk failed"));
            }
            if !lies {
                for change in std::mem::take(&mut content.since) {
                    change.apply(&mut content.synced);
                }
            }
            Ok(())
        })
    }

    fn length(&self) -> io::Result<u64> {
        self.with(|inner, name| {
            Ok(inner.files.get(name).map_or(0, |content| content.seen.len() as u64))
        })
    }

    fn set_length(&self, bytes: u64) -> io::Result<()> {
        let length = usize::try_from(bytes).map_err(io::Error::other)?;
        self.change(vec![Change::Length(length)], bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_the_names_a_crash_keeps_the_first_changes() {
        let mut kept = [0; 3];
        for seed in 0..40 {
            let disk = ModelDisk::new(seed, Faults::default());
            disk.file("a").write_at(b"new", 0).unwrap();
            disk.file("a").sync().unwrap();
            disk.file("b").write_at(b"old", 0).unwrap();
            disk.file("b").sync().unwrap();
            disk.rename("a", "b").unwrap();
            disk.rename("b", "c").unwrap();
            disk.crash();
            let has = ["a", "b", "c"].map(|name| disk.bytes(name));
            let which = match has.each_ref().map(Vec::as_slice) {
                [b"new", b"old", b""] => 0,
                [b"", b"new", b""] => 1,
                [b"", b"", b"new"] => 2,
                other => panic!("{other:?}"),
            };
            kept[which] += 1;
            if which == 2 {
                disk.rename("c", "a").unwrap();
                disk.sync_names().unwrap();
                disk.crash();
                assert_eq!(disk.bytes("a"), b"new");
            }
        }
        assert!(kept.iter().all(|&count| count > 5), "{kept:?}");
    }
}

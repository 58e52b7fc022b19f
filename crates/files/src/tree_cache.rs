//! What was hashed of a file, kept for the next time it is served: its tree and its recipe.
//!
//! `.NAME.haulier-tree` lies beside the file; where its folder cannot be written, in the user's cache
//! folder under the BLAKE3 of the path.
//!
//! | | bytes |
//! |---|---|
//! | magic and version | 8 |
//! | length, time of change (mtime), of any change (ctime), inode of the file | 8 each |
//! | when the file was opened to be hashed, by the system's clock | 8 |
//! | root | 32 |
//! | values of the chunks, as many as the length has | 32 each |
//! | the recipe, to the end but 32 | 20 for each piece |
//! | BLAKE3 of all before | 32 |
//!
//! The invariant: what is loaded is a tree whose values join to its root, which this user wrote, of a file
//! with the length, times and inode that it has now, of which eight chunks drawn at random were read and
//! are right. A program can set mtime back, and with that its ctime is another one. Only what a disk
//! damages by itself changes no time: for that there is [`TreeCache::without_trust`]. It is a cache:
//! whatever is wrong with it, the file is hashed anew.

use std::fs::OpenOptions;
use std::hash::{BuildHasher as _, RandomState};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

use crate::chunks::{chunk_count, chunk_range};
use crate::offer::Root;
use crate::pieces::{MAX_RECIPE_BYTES, Recipe};
use crate::reader::SourceFile;
use crate::system;
use haulier_proto::connection::{BlockTree, ChunkValue};

/// The first bytes; the last one is the version of the format.
const MAGIC: &[u8; 8] = b"haultre\x02";

/// Bytes before the values.
const HEAD_BYTES: usize = 8 + 4 * 8 + 8 + 32;

/// Bytes of the hash at the end.
const HASH_BYTES: usize = 32;

/// Chunks that are hashed again before a tree is believed: of a file of which half was changed under the
/// same time and length, 255 of 256 are found. What remains is found when the chunk is read to be sent.
const SAMPLES: usize = 8;

/// A file has to be unchanged for this time before it is opened to be hashed, in nanoseconds: a write within
/// the same tick of the file system's clock keeps its ctime. FAT's tick is 2 s, and others are shorter.
const SETTLED_NS: i64 = 2_000_000_000;

/// What was kept.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Cached {
    /// The values and the root.
    pub tree: BlockTree,
    /// The pieces, if they were known.
    pub recipe: Option<Recipe>,
}

/// Where trees are kept.
#[derive(Clone, Debug, Default)]
pub struct TreeCache {
    fallback: Option<PathBuf>,
    is_distrusted: bool,
}

impl TreeCache {
    /// Beside the files alone.
    pub const fn beside() -> Self {
        Self { fallback: None, is_distrusted: false }
    }

    /// And in this folder, for files whose own cannot be written.
    pub const fn with_fallback(folder: PathBuf) -> Self {
        Self { fallback: Some(folder), is_distrusted: false }
    }

    /// Loads nothing: each file is hashed, and what was kept of it is replaced.
    #[must_use]
    pub const fn without_trust(mut self) -> Self {
        self.is_distrusted = true;
        self
    }

    /// The user's folder for what can be made again, if there is one.
    pub fn user_folder() -> Option<PathBuf> {
        let folder =
            |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let home = || folder("HOME").map(|home| home.join(".cache"));
        folder("XDG_CACHE_HOME").or_else(home).map(|cache| cache.join("haulier"))
    }

    /// What is known of this file. `draw` gives a random number below the one it is given; it decides which
    /// chunks are read.
    pub fn load(&self, file: &SourceFile, mut draw: impl FnMut(u32) -> u32) -> Option<Cached> {
        if self.is_distrusted {
            return None;
        }
        let found = self.places(file.path()).find_map(|place| read(&place, file).ok().flatten())?;
        let chunks = chunk_count(file.version().bytes);
        let mut drawn = (0..SAMPLES.min(chunks as usize)).map(|_| draw(chunks) % chunks);
        drawn.all(|index| is_chunk(file, &found.tree, index)).then_some(found)
    }

    /// Keeps this; where it lies is given back.
    pub fn store(
        &self,
        file: &SourceFile,
        tree: &BlockTree,
        recipe: Option<&Recipe>,
    ) -> io::Result<PathBuf> {
        #[cfg(test)]
        crate::moments::reach(crate::moments::Moment::KeepsTree)?;
        let bytes = to_bytes(file, tree, recipe);
        // Whoever may not read the file may not know the hash of each of its chunks.
        let mode = file.mode().within(0o644) & 0o644;
        let mut result = Err(io::ErrorKind::Unsupported.into());
        for place in self.places(file.path()) {
            result = replace(&place, &bytes, mode).map(|()| place);
            if result.is_ok() {
                break;
            }
        }
        result
    }

    /// Removes what is kept of this file.
    pub fn forget(&self, file: &Path) {
        // What cannot be removed is found void when it is loaded.
        self.places(file).for_each(|place| drop(std::fs::remove_file(place)));
    }

    fn places(&self, file: &Path) -> impl Iterator<Item = PathBuf> {
        let name = file.file_name().unwrap_or_default();
        let beside = file.with_file_name(system::name_with(name, ".", ".haulier-tree"));
        let path = std::fs::canonicalize(file).unwrap_or_else(|_| file.to_owned());
        let hash = blake3::hash(path.as_os_str().as_encoded_bytes()).to_hex();
        let fallback =
            self.fallback.as_ref().map(|folder| folder.join(format!("{}.tree", &hash[..32])));
        std::iter::once(beside).chain(fallback)
    }
}

fn is_chunk(file: &SourceFile, tree: &BlockTree, index: u32) -> bool {
    let range = chunk_range(tree.length(), index);
    let mut bytes = vec![0; (range.end - range.start) as usize];
    file.read_exact(&mut bytes, range.start).is_ok() && tree.is_chunk(index, &bytes)
}

fn to_bytes(file: &SourceFile, tree: &BlockTree, recipe: Option<&Recipe>) -> Vec<u8> {
    let mut bytes = head(file);
    bytes.extend(file.opened_ns().to_le_bytes());
    bytes.extend(tree.digest());
    let values = (0..tree.chunk_count()).filter_map(|index| tree.value(index));
    values.for_each(|value| bytes.extend(value.as_bytes()));
    bytes.extend(recipe.map(Recipe::to_bytes).unwrap_or_default());
    let hash = blake3::hash(&bytes);
    bytes.extend(hash.as_bytes());
    bytes
}

/// What has to be the same as when it was kept.
fn head(file: &SourceFile) -> Vec<u8> {
    let version = file.version();
    let numbers = [
        version.bytes.to_le_bytes(),
        version.modified_ns.to_le_bytes(),
        version.changed_ns.to_le_bytes(),
        version.inode.to_le_bytes(),
    ];
    [MAGIC, &numbers.concat()[..]].concat()
}

/// What lies here, if it is of this version of the file.
fn read(place: &Path, file: &SourceFile) -> io::Result<Option<Cached>> {
    let length = file.version().bytes;
    let values = chunk_count(length) as usize * 32;
    let max_bytes = (HEAD_BYTES + values + HASH_BYTES) as u64 + MAX_RECIPE_BYTES;
    // Beside a file there may be anything, such as a pipe, or a link to one.
    let flags = i32::try_from((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits()).unwrap_or_default();
    let cache = OpenOptions::new().read(true).custom_flags(flags).open(place)?;
    let metadata = cache.metadata()?;
    // What another user can write says what that user wants.
    let is_ours =
        metadata.uid() == rustix::process::geteuid().as_raw() && metadata.mode() & 0o022 == 0;
    if !metadata.is_file() || !is_ours {
        return Ok(None);
    }
    let mut bytes = vec![0; HEAD_BYTES];
    (&cache).read_exact(&mut bytes)?;
    // Before all of it is read, for the version is what mostly differs.
    if !bytes.starts_with(&head(file)) {
        return Ok(None);
    }
    if !is_settled(&bytes, file) {
        return Ok(None);
    }
    (&cache).take(max_bytes).read_to_end(&mut bytes)?;
    Ok(parse(&bytes, length))
}

/// Whether the file was not changed right before it was opened to be hashed.
fn is_settled(head: &[u8], file: &SourceFile) -> bool {
    let opened_ns = head.get(HEAD_BYTES - 40..).and_then(|it| it.first_chunk());
    let opened_ns = opened_ns.copied().map_or(i64::MIN, i64::from_le_bytes);
    opened_ns.saturating_sub(file.version().changed_ns) >= SETTLED_NS
}

fn parse(bytes: &[u8], length: u64) -> Option<Cached> {
    let (bytes, hash) = bytes.split_last_chunk::<HASH_BYTES>()?;
    if blake3::hash(bytes) != *hash {
        return None;
    }
    let (root, rest) = bytes.get(HEAD_BYTES - 32..)?.split_first_chunk::<32>()?;
    let (tree, recipe) = tree_of(root, rest, length)?;
    let recipe = match recipe {
        [] => None,
        recipe => Some(Recipe::read(recipe, length).ok()?),
    };
    Some(Cached { tree, recipe })
}

/// The tree, and what follows it.
fn tree_of<'b>(root: &Root, bytes: &'b [u8], length: u64) -> Option<(BlockTree, &'b [u8])> {
    let (values, rest) = bytes.split_at_checked(chunk_count(length) as usize * 32)?;
    let values = values.as_chunks().0.iter().map(|value| ChunkValue::from_bytes(*value)).collect();
    let tree = BlockTree::from_values(length, values).ok()?;
    (tree.digest() == root).then_some((tree, rest))
}

/// Puts these bytes here in one step. They are not synced: what a loss of power leaves of them has a wrong
/// hash.
fn replace(place: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    let folder = place.parent().unwrap_or(Path::new("."));
    if !folder.as_os_str().is_empty() {
        std::fs::create_dir_all(folder)?;
    }
    // A name that nobody can foresee, and only a file that was not there: in a folder that others can write a
    // link could wait under it.
    let random = RandomState::new().hash_one(std::process::id());
    let new = place.with_file_name(format!(".{random:016x}.haulier-tree"));
    let mut options = OpenOptions::new();
    let mut file = options.write(true).create_new(true).mode(mode).open(&new)?;
    let done = file.write_all(bytes).and_then(|()| std::fs::rename(&new, place));
    if done.is_err() {
        drop(std::fs::remove_file(&new));
    }
    done
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::unix::fs::{FileExt, PermissionsExt as _};
    use std::time::{Duration, SystemTime};

    use super::*;
    use crate::chunks::CHUNK_BYTES;

    fn file_of(chunks: usize) -> Vec<u8> {
        let bytes = (0_u64..).flat_map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes());
        bytes.take(chunks * CHUNK_BYTES + 100).collect()
    }

    /// Long after the file was written.
    const LATER: Duration = Duration::from_secs(9);

    struct Kept {
        folder: tempfile::TempDir,
        path: PathBuf,
        place: PathBuf,
        cached: Cached,
    }

    fn keep(chunks: usize) -> Kept {
        let folder = tempfile::tempdir().unwrap();
        let (path, bytes) = (folder.path().join("f"), file_of(chunks));
        std::fs::write(&path, &bytes).unwrap();
        let tree = BlockTree::of(&bytes);
        let recipe = Recipe::new(crate::cut::cut(&bytes[..]).unwrap()).unwrap();
        let file = SourceFile::open(&path).unwrap();
        let file = file.opened_later(LATER);
        let place = TreeCache::beside().store(&file, &tree, Some(&recipe)).unwrap();
        Kept { folder, path, place, cached: Cached { tree, recipe: Some(recipe) } }
    }

    fn load(path: &Path) -> Option<Cached> {
        let mut next = 0;
        let draw = |below| {
            next += 1;
            next % below
        };
        TreeCache::beside().load(&SourceFile::open(path).unwrap(), draw)
    }

    #[test]
    fn what_was_kept_is_loaded() {
        for chunks in [0, 1, 9] {
            let kept = keep(chunks);
            assert_eq!(kept.place.file_name().unwrap(), ".f.haulier-tree");
            assert_eq!(load(&kept.path), Some(kept.cached));
            let file = SourceFile::open(&kept.path).unwrap().opened_later(LATER);
            let tree = BlockTree::of(&file_of(chunks));
            TreeCache::beside().store(&file, &tree, None).unwrap();
            assert_eq!(load(&kept.path), Some(Cached { tree, recipe: None }));
            TreeCache::beside().forget(&kept.path);
            assert_eq!(
                (load(&kept.path), kept.folder.path().read_dir().unwrap().count()),
                (None, 1)
            );
        }
    }

    #[test]
    fn an_empty_file_has_a_tree() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("empty");
        std::fs::write(&path, "").unwrap();
        let file = SourceFile::open(&path).unwrap().opened_later(LATER);
        TreeCache::beside().store(&file, &BlockTree::of(&[]), None).unwrap();
        assert_eq!(load(&path).unwrap().tree, BlockTree::of(&[]));
    }

    #[test]
    fn another_length_time_or_inode_makes_it_void() {
        let kept = keep(2);
        File::options().write(true).open(&kept.path).unwrap().set_len(9).unwrap();
        assert_eq!(load(&kept.path), None);
        let kept = keep(2);
        let file = File::options().write(true).open(&kept.path).unwrap();
        file.set_modified(SystemTime::UNIX_EPOCH).unwrap();
        assert_eq!(load(&kept.path), None);
        let kept = keep(2);
        let time = kept.path.metadata().unwrap().modified().unwrap();
        let copy = kept.folder.path().join("copy");
        std::fs::copy(&kept.path, &copy).unwrap();
        File::options().write(true).open(&copy).unwrap().set_modified(time).unwrap();
        std::fs::rename(&copy, &kept.path).unwrap();
        assert_eq!(load(&kept.path), None);
    }

    /// Only the ctime tells, for no chunk that changed is among the samples.
    #[test]
    fn other_bytes_under_the_same_time_are_found() {
        let kept = keep(20);
        let time = kept.path.metadata().unwrap().modified().unwrap();
        let file = File::options().write(true).open(&kept.path).unwrap();
        file.write_all_at(b"x", 18 * CHUNK_BYTES as u64).unwrap();
        file.set_modified(time).unwrap();
        assert_eq!(load(&kept.path), None);
    }

    /// A file that is written to within the same tick of its clock as it was hashed keeps its times.
    #[test]
    fn what_was_hashed_right_after_a_change_is_not_believed() {
        let kept = keep(2);
        let file = SourceFile::open(&kept.path).unwrap();
        TreeCache::beside().store(&file, &kept.cached.tree, None).unwrap();
        assert_eq!(load(&kept.path), None);
    }

    #[test]
    fn a_cache_that_is_not_trusted_is_replaced() {
        let kept = keep(2);
        let file = SourceFile::open(&kept.path).unwrap().opened_later(LATER);
        let cache = TreeCache::beside().without_trust();
        assert_eq!(cache.load(&file, |_| 0), None);
        cache.store(&file, &kept.cached.tree, None).unwrap();
        assert!(load(&kept.path).is_some_and(|it| it.recipe.is_none()));
    }

    #[test]
    fn a_cache_that_others_can_write_is_ignored() {
        let kept = keep(2);
        let set_mode = |mode| {
            std::fs::set_permissions(&kept.place, std::fs::Permissions::from_mode(mode)).unwrap();
        };
        set_mode(0o664);
        assert_eq!(load(&kept.path), None);
        set_mode(0o644);
        assert!(load(&kept.path).is_some());
        // Only root can give a file away.
        if std::os::unix::fs::chown(&kept.place, Some(12_345), None).is_ok() {
            assert_eq!(load(&kept.path), None);
        }
    }

    /// A private file's chunks stay private, and nothing that another user put there is written through.
    #[test]
    fn a_cache_is_no_more_open_than_its_file_and_follows_no_link() {
        let kept = keep(2);
        let victim = kept.folder.path().join("victim");
        std::fs::write(&victim, "mine").unwrap();
        // The name that it had before, and that which it gets.
        let before = kept.place.with_extension(format!("{}.new", std::process::id()));
        std::fs::remove_file(&kept.place).unwrap();
        for place in [&before, &kept.place] {
            std::os::unix::fs::symlink(&victim, place).unwrap();
        }
        std::fs::set_permissions(&kept.path, std::fs::Permissions::from_mode(0o600)).unwrap();
        let file = SourceFile::open(&kept.path).unwrap().opened_later(LATER);
        TreeCache::beside().store(&file, &kept.cached.tree, None).unwrap();
        assert_eq!(std::fs::read(&victim).unwrap(), b"mine");
        let metadata = kept.place.symlink_metadata().unwrap();
        assert!(metadata.is_file());
        assert_eq!(metadata.mode() & 0o777, 0o600);
        let left = kept.folder.path().read_dir().unwrap().count();
        assert_eq!(left, 4, "the file, its cache, the victim and the link to it");
    }

    #[test]
    fn a_damaged_cache_is_ignored() {
        let kept = keep(3);
        let bytes = std::fs::read(&kept.place).unwrap();
        for place in (0..bytes.len()).step_by(7) {
            let mut damaged = bytes.clone();
            damaged[place] ^= 4;
            std::fs::write(&kept.place, &damaged).unwrap();
            assert_eq!(load(&kept.path), None, "byte {place}");
            std::fs::write(&kept.place, &bytes[..place]).unwrap();
            assert_eq!(load(&kept.path), None, "cut at {place}");
        }
        std::fs::remove_file(&kept.place).unwrap();
        std::os::unix::fs::symlink("/dev/zero", &kept.place).unwrap();
        assert_eq!(load(&kept.path), None);
    }

    /// The folder of the file cannot be written: here because a folder has the name.
    #[test]
    fn the_users_folder_is_the_second_choice() {
        let kept = keep(2);
        std::fs::remove_file(&kept.place).unwrap();
        std::fs::create_dir(&kept.place).unwrap();
        let file = SourceFile::open(&kept.path).unwrap().opened_later(LATER);
        let fallback = kept.folder.path().join("cache/haulier");
        assert!(TreeCache::beside().store(&file, &kept.cached.tree, None).is_err());
        let cache = TreeCache::with_fallback(fallback.clone());
        let place = cache.store(&file, &kept.cached.tree, None).unwrap();
        assert_eq!(place.parent(), Some(&*fallback));
        assert_eq!(cache.load(&file, |_| 0).unwrap().tree, kept.cached.tree);
        assert_eq!(load(&kept.path), None);
        let left = kept.folder.path().read_dir().unwrap().count();
        assert_eq!(left, 3, "the file, the folder in the way, the other folder");
    }
}

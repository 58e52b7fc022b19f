//! Files that change at the worst moment.

use std::cell::Cell;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt as _;
use std::rc::Rc;
use std::time::SystemTime;

use super::*;
use crate::moments::{Moment, plan};

/// A library of one file of this length, all of it a hole.
fn library(folder: &Path, bytes: u64) -> (PathBuf, Arc<Library>) {
    let path = folder.join("f");
    File::create(&path).unwrap().set_len(bytes).unwrap();
    let paths = [("f".to_owned(), path.clone())];
    (path, Arc::new(Library::load(&paths, TreeCache::beside()).unwrap()))
}

/// Writes to a file. It has another time after each number.
fn write(path: &Path, number: u32) -> io::Result<()> {
    let file = File::options().write(true).open(path)?;
    file.write_all_at(&number.to_le_bytes(), 0)?;
    file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(number.into()))
}

fn content(library: &Library) -> Content {
    library.offer().entries()[0].content
}

/// A client's read that finds a change.
fn find_change(library: &Library) {
    let found = library.read(0, None, |_, file| file.check());
    assert_eq!(found.unwrap_err().reason, Reason::Changed);
}

/// A file that was written all the time was hashed again and again, each time from within the last, by the
/// thread that had found its change.
#[test]
fn a_file_that_is_written_all_the_time_is_hashed_once_for_each_change_that_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let (path, library) = library(folder.path(), 1 << 20);
    write(&path, 1).unwrap();
    let hashed = Rc::new(Cell::new(0));
    let planned = {
        let (path, hashed) = (path.clone(), Rc::clone(&hashed));
        plan(Moment::Hashed, move || {
            hashed.set(hashed.get() + 1);
            // Not without end, for this fault is to be found.
            if hashed.get() < 9 { write(&path, 1 + hashed.get()) } else { Ok(()) }
        })
    };
    find_change(&library);
    assert_eq!((hashed.get(), content(&library)), (1, Content::Sized(1 << 20)));
    find_change(&library);
    assert_eq!((hashed.get(), content(&library)), (2, Content::Sized(1 << 20)));
    drop(planned);
    find_change(&library);
    let tree = BlockTree::of(&fs::read(&path).unwrap());
    assert_eq!(content(&library), known_content(&tree));
}

/// The tree of a large file is written to the disk before its root is offered. A client that meanwhile found
/// that the file has changed had it offered without a root, and then the old root came back.
#[test]
fn a_root_is_not_offered_when_the_file_changed_while_its_tree_was_written() {
    let folder = tempfile::tempdir().unwrap();
    let bytes = MAX_HASHED_BYTES + 1;
    let (path, library) = library(folder.path(), bytes);
    assert_eq!(content(&library), Content::Sized(bytes));
    let planned = {
        let (path, library) = (path.clone(), Arc::clone(&library));
        plan(Moment::KeepsTree, move || {
            write(&path, 1)?;
            find_change(&library);
            Ok(())
        })
    };
    library.hash_rest();
    assert_eq!(content(&library), Content::Sized(bytes));
    drop(planned);
    library.hash_rest();
    let tree = BlockTree::of(&fs::read(&path).unwrap());
    assert_eq!(content(&library), known_content(&tree));
}

/// A client that has the old version of a changed file does not read it again: the server offered the old
/// version until some other client read the file.
#[test]
fn a_client_is_offered_a_file_that_changed_though_nobody_has_read_it() {
    let folder = tempfile::tempdir().unwrap();
    let (path, library) = library(folder.path(), 1 << 20);
    let pool = crate::pool::DiskPool::new(1, crate::pool::Wake::default()).unwrap();
    let before = content(&library);
    assert_eq!(library.offer_now(pool.handle()).entries()[0].content, before);
    write(&path, 1).unwrap();
    let offered = library.offer_now(pool.handle());
    assert_eq!(offered.entries()[0].content, Content::Sized(1 << 20));
    assert_eq!(offered.entries()[0].modified_ns, 1_000_000_000);
    // The pool hashes it, for those who come next.
    let (done, hashed) = std::sync::mpsc::channel();
    pool.handle().run(move || done.send(()).unwrap());
    hashed.recv().unwrap();
    let tree = BlockTree::of(&fs::read(&path).unwrap());
    assert_eq!(content(&library), known_content(&tree));
}

//! Files written through the threads, and every way in which a target is refused.

use std::fs::File;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt};
use std::os::unix::net::UnixListener;
use std::sync::mpsc::channel;

use super::*;
use crate::chunks::chunk_range;
use crate::moments::{Moment, plan};
use crate::pool::{DiskPool, MAX_QUEUED_WRITES, Wake};

/// Five chunks, the last of them short.
fn file() -> Vec<u8> {
    (0_u32..4 * 65536 + 250)
        .flat_map(|i| (i.wrapping_mul(2_654_435_761) ^ 7).to_le_bytes())
        .collect()
}

fn identity_of(file: &[u8]) -> FileIdentity {
    FileIdentity::new("f").with_length(file.len() as u64).with_root(*blake3::hash(file).as_bytes())
}

fn pool() -> DiskPool {
    DiskPool::new(2, Wake::default()).unwrap()
}

fn open(pool: &DiskPool, path: &Path, file: &[u8]) -> Result<FileWriter, WriteError> {
    FileWriter::open(pool.handle(), path, &identity_of(file), WriteSettings::default())
}

fn push(writer: &FileWriter, file: &[u8], index: u32) {
    let range = chunk_range(file.len() as u64, index);
    let bytes = Bytes::copy_from_slice(&file[range.start as usize..range.end as usize]);
    while writer.push(range.start, bytes.clone()).is_err() {
        writer.settle().unwrap();
    }
}

fn push_missing(writer: &FileWriter, file: &[u8]) -> usize {
    let missing: Vec<u32> = writer.missing().into_iter().flatten().collect();
    missing.iter().for_each(|&index| push(writer, file, index));
    missing.len()
}

fn finish(writer: &FileWriter, file: &[u8]) -> Result<WriteState, WriteError> {
    writer.finish(file.len() as u64, *blake3::hash(file).as_bytes());
    writer.settle()
}

fn names_in(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    let mut names: Vec<_> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn a_file_has_its_name_when_it_is_whole() {
    let (folder, pool, file) = (tempfile::tempdir().unwrap(), pool(), file());
    let path = folder.path().join("f");
    let settings = WriteSettings::default()
        .with_mode(Mode::of_unix(0o750))
        .with_modified_ns(1_000_000_000_123);
    let writer = FileWriter::open(pool.handle(), &path, &identity_of(&file), settings).unwrap();
    assert_eq!(writer.missing(), [0..5]);
    (0..4).rev().for_each(|index| push(&writer, &file, index));
    assert_eq!(finish(&writer, &file).unwrap(), WriteState::Missing);
    assert_eq!(names_in(folder.path()), ["f.haulier-journal", "f.haulier-part"]);
    assert_eq!(push_missing(&writer, &file), 1);
    assert_eq!(finish(&writer, &file).unwrap(), WriteState::Stored);
    assert_eq!(names_in(folder.path()), ["f"]);
    assert_eq!(std::fs::read(&path).unwrap(), file);
    assert_eq!(writer.tree().unwrap(), BlockTree::of(&file));
    let metadata = path.metadata().unwrap();
    assert_eq!((metadata.mtime(), metadata.mtime_nsec()), (1000, 123));
    assert_eq!(metadata.permissions().mode() & 0o507, 0o500);
}

/// What was written is not wanted again; what the disk has lost of it is found, and is.
#[test]
fn a_file_goes_on_where_it_was() {
    let (folder, file) = (tempfile::tempdir().unwrap(), file());
    let path = folder.path().join("f");
    {
        let pool = pool();
        let writer = open(&pool, &path, &file).unwrap();
        [0, 3, 4].into_iter().for_each(|index| push(&writer, &file, index));
        assert_eq!(writer.settle().unwrap(), WriteState::Writing);
    }
    let part = File::options().write(true).open(folder.path().join("f.haulier-part")).unwrap();
    part.write_at(b"lost", 3 * CHUNK_BYTES as u64).unwrap();
    // The pool's one thread, which hashes the unfinished file, waits until the test has looked.
    let pool = DiskPool::new(1, Wake::default()).unwrap();
    let (go, gate) = channel::<()>();
    pool.handle().run(move || gate.recv().unwrap());
    let writer = open(&pool, &path, &file).unwrap();
    assert_eq!(writer.resumed_chunks(), 3);
    assert!(writer.here().iter().eq([0..1, 3..5]));
    go.send(()).unwrap();
    let was_found = push_missing(&writer, &file) == 3;
    if !was_found {
        assert_eq!(finish(&writer, &file).unwrap(), WriteState::Missing);
        assert_eq!(writer.missing(), [3..4]);
        push_missing(&writer, &file);
    }
    assert_eq!(finish(&writer, &file).unwrap(), WriteState::Stored);
    assert_eq!(std::fs::read(&path).unwrap(), file);
}

/// Nothing of it counts, and it can be fetched again at once.
#[test]
fn another_file_than_was_promised_is_begun_anew() {
    let (folder, pool, file) = (tempfile::tempdir().unwrap(), pool(), file());
    let path = folder.path().join("f");
    let writer = open(&pool, &path, &file).unwrap();
    push_missing(&writer, &vec![1; file.len()]);
    assert_eq!(finish(&writer, &file).unwrap(), WriteState::WrongRoot);
    assert_eq!(writer.missing(), [0..5]);
    push_missing(&writer, &file);
    assert_eq!(finish(&writer, &file).unwrap(), WriteState::Stored);
    assert_eq!(std::fs::read(&path).unwrap(), file);
}

/// From an older version, from what came, and from what came packed.
#[test]
fn a_file_is_put_together_from_what_is_here_and_what_came() {
    let (folder, pool, file) = (tempfile::tempdir().unwrap(), pool(), file());
    let (path, older) = (folder.path().join("f"), folder.path().join("older"));
    std::fs::write(&older, &file[100_000..200_000]).unwrap();
    let older = Arc::new(SourceFile::open(&older).unwrap());
    let writer = open(&pool, &path, &file).unwrap();
    let came = |range: Range<usize>| (range.start as u64, Bytes::copy_from_slice(&file[range]));
    let assembly = Assembly {
        range: 0..CHUNK_BYTES as u64,
        copies: vec![Copied { from: 5, to: 100_005, length: 99_995 }],
        came: vec![came(0..100_005), came(200_000..CHUNK_BYTES)],
    };
    writer.push_assembly(&older, assembly).unwrap();
    let mut packer = crate::packing::Packer::new().unwrap();
    let packed = file[CHUNK_BYTES..].chunks(CHUNK_BYTES).map(|chunk| packer.pack(chunk)).collect();
    writer.push_packed(CHUNK_BYTES as u64, 1 << 20, packed).unwrap();
    assert_eq!(finish(&writer, &file).unwrap(), WriteState::Stored);
    let mut written: Vec<_> = std::iter::from_fn(|| writer.take_written()).collect();
    written.sort_by_key(|range| range.start);
    assert_eq!(written, [0..CHUNK_BYTES as u64, CHUNK_BYTES as u64..file.len() as u64]);
    assert_eq!(std::fs::read(&path).unwrap(), file);
    assert!(writer.take_unread().is_none());
}

#[test]
fn what_cannot_be_unpacked_or_copied_is_an_error() {
    let (folder, pool, file) = (tempfile::tempdir().unwrap(), pool(), file());
    let (path, older) = (folder.path().join("f"), folder.path().join("older"));
    std::fs::write(&older, &file).unwrap();
    let source = Arc::new(SourceFile::open(&older).unwrap());
    std::fs::write(&older, "short").unwrap();
    let writer = open(&pool, &path, &file).unwrap();
    let range = 0..CHUNK_BYTES as u64;
    let copies = vec![Copied { from: 0, to: 0, length: range.end }];
    let assembly = Assembly { range: range.clone(), copies, came: Vec::new() };
    writer.push_assembly(&source, assembly).unwrap();
    assert_eq!(writer.settle().unwrap(), WriteState::Writing);
    assert_eq!(writer.take_unread().unwrap().0, range);
    assert!(!writer.is_here(0) && writer.take_written().is_none());
    writer.push_packed(0, 9, vec![Bytes::from_static(&[9, 0, 0, 0, 1])]).unwrap();
    assert!(matches!(writer.settle(), Err(WriteError::BadPacked { .. })));
}

/// Or nobody could go on with it the next time, if it got none.
#[test]
fn a_read_only_file_is_writable_until_it_has_its_name() {
    let (folder, pool, file) = (tempfile::tempdir().unwrap(), pool(), file());
    let path = folder.path().join("f");
    let mode = |name: &str| folder.path().join(name).metadata().unwrap().mode() & 0o777;
    let settings = || WriteSettings::default().with_mode(Mode::of_unix(0o400));
    let open = |pool: &DiskPool| {
        FileWriter::open(pool.handle(), &path, &identity_of(&file), settings()).unwrap()
    };
    let writer = open(&pool);
    push_missing(&writer, &file);
    std::fs::write(&path, "mine").unwrap();
    assert!(matches!(finish(&writer, &file), Err(WriteError::NameTaken { .. })));
    assert_eq!(mode("f.haulier-part"), 0o600);
    drop((writer, pool));
    std::fs::remove_file(&path).unwrap();
    let pool = self::pool();
    let writer = open(&pool);
    push_missing(&writer, &file);
    assert_eq!(finish(&writer, &file).unwrap(), WriteState::Stored);
    assert_eq!(mode("f"), 0o400);
}

/// Between the first byte and the last another program may take the name.
#[test]
fn a_name_that_was_taken_meanwhile_stays_as_it_is() {
    let (folder, pool, file) = (tempfile::tempdir().unwrap(), pool(), file());
    let path = folder.path().join("f");
    let writer = open(&pool, &path, &file).unwrap();
    push_missing(&writer, &file);
    std::fs::write(&path, "mine").unwrap();
    assert!(matches!(finish(&writer, &file), Err(WriteError::NameTaken { .. })));
    assert_eq!(std::fs::read(&path).unwrap(), b"mine");
    drop((writer, pool));
    let pool = self::pool();
    assert!(matches!(open(&pool, &path, &file), Err(WriteError::NameTaken { .. })));
    let settings = WriteSettings::default().with_replace(Replace::File);
    let writer = FileWriter::open(pool.handle(), &path, &identity_of(&file), settings).unwrap();
    assert!(writer.missing().is_empty());
    assert_eq!(finish(&writer, &file).unwrap(), WriteState::Stored);
    assert_eq!(std::fs::read(&path).unwrap(), file);
}

#[test]
fn what_cannot_be_written_is_refused_before_the_first_byte() {
    let (folder, pool) = (tempfile::tempdir().unwrap(), pool());
    let path = |name: &str| folder.path().join(name);
    std::fs::create_dir(path("folder")).unwrap();
    std::fs::write(path("file"), "mine").unwrap();
    let _socket = UnixListener::bind(path("socket")).unwrap();
    let refused = |path: &Path, length: u64| {
        let identity = FileIdentity::new("f").with_length(length).with_root([1; 32]);
        let replace = WriteSettings::default().with_replace(Replace::File);
        FileWriter::open(pool.handle(), path, &identity, replace).map(drop).unwrap_err().to_string()
    };
    let shown = |name: &str| path(name).display().to_string();
    assert_eq!(refused(&path("folder"), 9), format!("{} is a folder, not a file", shown("folder")));
    assert_eq!(refused(&path("socket"), 9), format!("{} is a socket, not a file", shown("socket")));
    assert_eq!(refused(Path::new("/dev/null"), 9), "/dev/null is a device, not a file");
    assert_eq!(refused(&path("no/f"), 9), format!("the folder {} does not exist", shown("no")));
    assert_eq!(refused(&path("file/f"), 9), format!("the folder {} does not exist", shown("file")));
    assert_eq!(refused(&path(".."), 9), format!("{} is not the name of a file", shown("..")));
    assert!(refused(&path("f/"), 9).ends_with("is not the name of a file"));
    assert!(refused(&path("f"), 1 << 60).ends_with("is too long"));
    assert!(refused(&path("f"), 1 << 49).contains("needs 562949953421312 bytes, and its disk has"));
    let taken = open(&pool, &path("file"), &file()).map(drop).unwrap_err();
    assert_eq!(taken.to_string(), format!("{} exists already", shown("file")));
    assert_eq!(names_in(folder.path()), ["file", "folder", "socket"]);
}

/// It removed what an earlier transfer had left, and all of the file came again.
#[test]
fn a_full_disk_removes_only_what_the_same_call_began() {
    let (folder, file) = (tempfile::tempdir().unwrap(), file());
    let path = folder.path().join("f");
    let is_refused = || {
        let _full = plan(Moment::SpaceReserved, || Err(io::ErrorKind::StorageFull.into()));
        matches!(open(&pool(), &path, &file), Err(WriteError::DiskFull { .. }))
    };
    assert!(is_refused());
    assert_eq!(names_in(folder.path()), [""; 0]);
    {
        let pool = pool();
        let writer = open(&pool, &path, &file).unwrap();
        [0, 3, 4].into_iter().for_each(|index| push(&writer, &file, index));
        assert_eq!(writer.settle().unwrap(), WriteState::Writing);
    }
    assert!(is_refused());
    assert_eq!(names_in(folder.path()), ["f.haulier-journal", "f.haulier-part"]);
    let pool = pool();
    let writer = open(&pool, &path, &file).unwrap();
    assert_eq!((writer.resumed_chunks(), push_missing(&writer, &file)), (3, 2));
    assert_eq!(finish(&writer, &file).unwrap(), WriteState::Stored);
}

#[test]
fn a_folder_is_checked_for_many_files() {
    let folder = tempfile::tempdir().unwrap();
    check_folder(folder.path(), 1 << 20).unwrap();
    assert!(matches!(check_folder(folder.path(), 1 << 60), Err(WriteError::NoRoom { .. })));
    let no = check_folder(&folder.path().join("no"), 0);
    assert!(matches!(no, Err(WriteError::NoFolder { .. })));
}

/// A user that may write everywhere, such as one in a container, is not refused.
#[test]
fn a_folder_that_cannot_be_written_is_refused() {
    let (folder, pool) = (tempfile::tempdir().unwrap(), pool());
    std::fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o555)).unwrap();
    let may_write = std::fs::write(folder.path().join("probe"), "").is_ok();
    let opened = open(&pool, &folder.path().join("f"), &file()).map(drop);
    assert_eq!(opened.is_ok(), may_write);
    assert_eq!(check_folder(folder.path(), 0).is_ok(), may_write);
    assert!(may_write || matches!(opened, Err(WriteError::FolderNotWritable { .. })));
    std::fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o755)).unwrap();
}

#[test]
fn two_writers_of_one_file_are_one_too_many() {
    let (folder, pool, file) = (tempfile::tempdir().unwrap(), pool(), file());
    let path = folder.path().join("f");
    let writer = open(&pool, &path, &file).unwrap();
    assert!(matches!(open(&pool, &path, &file), Err(WriteError::InUse { .. })));
    push_missing(&writer, &file);
    assert_eq!(finish(&writer, &file).unwrap(), WriteState::Stored);
}

/// A link that waits under the name of the unfinished file leads nowhere.
#[test]
fn a_link_is_not_written_through() {
    let (folder, pool) = (tempfile::tempdir().unwrap(), pool());
    std::fs::write(folder.path().join("precious"), "mine").unwrap();
    let link = folder.path().join("f.haulier-part");
    std::os::unix::fs::symlink(folder.path().join("precious"), link).unwrap();
    assert!(open(&pool, &folder.path().join("f"), &file()).is_err());
    assert_eq!(std::fs::read(folder.path().join("precious")).unwrap(), b"mine");
}

/// The disk stands still: 32 chunks are taken and no more, and there is a wake when it goes on.
#[test]
fn a_slow_disk_says_full() {
    let (folder, file) = (tempfile::tempdir().unwrap(), vec![3; 40 * CHUNK_BYTES]);
    let (woken, wakes) = channel();
    let wake = move || {
        let _ = woken.send(());
    };
    let pool = DiskPool::new(1, Wake::new(wake)).unwrap();
    let (go, stands_still) = channel::<()>();
    pool.handle().run(move || {
        let _ = stands_still.recv();
    });
    let writer = open(&pool, &folder.path().join("f"), &file).unwrap();
    let chunk = Bytes::copy_from_slice(&file[..CHUNK_BYTES]);
    let taken = (0..40)
        .take_while(|&index| writer.push(index * CHUNK_BYTES as u64, chunk.clone()).is_ok())
        .count();
    assert_eq!((taken, pool.handle().room()), (MAX_QUEUED_WRITES, 0));
    assert!(wakes.try_recv().is_err());
    go.send(()).unwrap();
    wakes.recv().unwrap();
    assert!(pool.handle().room() > 0);
    writer.settle().unwrap();
    push_missing(&writer, &file);
    assert_eq!(finish(&writer, &file).unwrap(), WriteState::Stored);
}

#[test]
fn zeros_take_no_space() {
    let (folder, pool) = (tempfile::tempdir().unwrap(), pool());
    let file = vec![0; 40 * CHUNK_BYTES + 9];
    let path = folder.path().join("f");
    let writer = open(&pool, &path, &file).unwrap();
    push_missing(&writer, &file);
    assert_eq!(finish(&writer, &file).unwrap(), WriteState::Stored);
    assert_eq!(std::fs::read(&path).unwrap(), file);
    if cfg!(target_os = "linux") {
        assert!(path.metadata().unwrap().blocks() * 512 < CHUNK_BYTES as u64);
    }
}

/// Short files and pipes are not gone on with: nothing of them is left.
#[test]
fn what_cannot_be_gone_on_with_leaves_nothing() {
    let (folder, pool) = (tempfile::tempdir().unwrap(), pool());
    let path = folder.path().join("f");
    let pipe = FileIdentity::new("pipe");
    let small = identity_of(b"small");
    for identity in [&pipe, &small] {
        let writer =
            FileWriter::open(pool.handle(), &path, identity, WriteSettings::default()).unwrap();
        assert_eq!(names_in(folder.path()), ["f.haulier-part"]);
        push(&writer, b"small", 0);
        writer.settle().unwrap();
        drop(writer);
        // The last job may hold it a moment longer.
        while !names_in(folder.path()).is_empty() {
            std::thread::yield_now();
        }
    }
    let writer = FileWriter::open(pool.handle(), &path, &pipe, WriteSettings::default()).unwrap();
    push(&writer, b"small", 0);
    assert_eq!(finish(&writer, b"small").unwrap(), WriteState::Stored);
    assert_eq!(std::fs::read(&path).unwrap(), b"small");
}

#[test]
fn an_abandoned_file_leaves_nothing() {
    let (folder, pool, file) = (tempfile::tempdir().unwrap(), pool(), file());
    let writer = open(&pool, &folder.path().join("f"), &file).unwrap();
    push_missing(&writer, &file);
    writer.abandon().unwrap();
    drop(pool);
    assert!(names_in(folder.path()).is_empty());
}

/// A name of 255 bytes has no room for an ending.
#[test]
fn a_long_name_is_hashed_for_what_is_beside_it() {
    let (folder, pool, file) = (tempfile::tempdir().unwrap(), pool(), file());
    let path = folder.path().join("n".repeat(255));
    let writer = open(&pool, &path, &file).unwrap();
    push_missing(&writer, &file);
    assert_eq!(finish(&writer, &file).unwrap(), WriteState::Stored);
    assert_eq!(names_in(folder.path()), ["n".repeat(255)]);
}

/// What it is, and how it comes to lie at a path.
type Plant<'p> = (&'static str, &'p dyn Fn(&Path));

/// Whatever lies where the unfinished file or its journal goes, it is not written to, and nothing gets the
/// name.
#[test]
fn what_somebody_planted_beside_the_name_is_refused() {
    let (folder, pool, file) = (tempfile::tempdir().unwrap(), pool(), file());
    let at = |name: &str| folder.path().join(name);
    for beside in ["f.haulier-part", "f.haulier-journal"] {
        let plant: [Plant<'_>; 5] = [
            ("a link", &|it| std::os::unix::fs::symlink(at("victim"), it).unwrap()),
            ("several names", &|it| std::fs::hard_link(at("victim"), it).unwrap()),
            ("pipe", &|it| {
                let made = std::process::Command::new("mkfifo").arg(it).status().unwrap();
                assert!(made.success());
            }),
            ("folder", &|it| std::fs::create_dir(it).unwrap()),
            ("another user's", &|it| {
                std::fs::write(it, b"planted").unwrap();
                // Only root can give a file away; then another user's file looks like this.
                if std::os::unix::fs::chown(it, Some(12_345), None).is_err() {
                    std::fs::remove_file(it).unwrap();
                    std::fs::hard_link(at("victim"), it).unwrap();
                }
            }),
        ];
        for (what, plant) in plant {
            std::fs::write(at("victim"), b"mine").unwrap();
            plant(&at(beside));
            let error = open(&pool, &at("f"), &file).unwrap_err();
            let is_named = matches!(error, WriteError::Foreign { .. } | WriteError::Special { .. });
            assert!(is_named, "{what}: {error}");
            assert!(what == "another user's" || error.to_string().contains(what), "{error}");
            assert_eq!(std::fs::read(at("victim")).unwrap(), b"mine", "{what}");
            assert!(!at("f").exists());
            if what == "folder" {
                std::fs::remove_dir(at(beside)).unwrap();
            } else {
                std::fs::remove_file(at(beside)).unwrap();
            }
            drop(std::fs::remove_file(at("f.haulier-part")));
        }
    }
    // And with nothing there it is written.
    let writer = open(&pool, &at("f"), &file).unwrap();
    push_missing(&writer, &file);
    assert_eq!(finish(&writer, &file).unwrap(), WriteState::Stored);
}

/// A checkpoint promises which chunks survive a loss of power, so the file and its journal have to have their
/// names by then. Files that are done before the first checkpoint need no such sync.
#[test]
fn the_first_checkpoint_syncs_the_names() {
    let (folder, pool, file) = (tempfile::tempdir().unwrap(), pool(), file());
    for (interval, expected) in [(Duration::ZERO, 1), (Duration::from_secs(3600), 0)] {
        let path = folder.path().join("f");
        let settings = WriteSettings::default().with_checkpoint_interval(interval);
        let identity = identity_of(&file);
        let writer = FileWriter::open(pool.handle(), &path, &identity, settings).unwrap();
        for index in 0..4 {
            push(&writer, &file, index);
            writer.settle().unwrap();
        }
        let syncs = &writer.inner.target.folder().syncs;
        assert_eq!(syncs.load(std::sync::atomic::Ordering::Relaxed), expected);
        writer.abandon().unwrap();
    }
}

/// A task that panics fails its file, which does not stay pending.
#[test]
fn a_task_that_panics_is_an_error() {
    let (folder, pool, file) = (tempfile::tempdir().unwrap(), pool(), file());
    let writer = open(&pool, &folder.path().join("f"), &file).unwrap();
    // No offset of a file: where it ends cannot be counted.
    writer.push(u64::MAX, Bytes::from_static(b"xy")).unwrap();
    assert!(writer.settle().is_err());
    assert_eq!(writer.inner.status().pending, 0);
    // The threads go on.
    let again = open(&pool, &folder.path().join("g"), &file).unwrap();
    push_missing(&again, &file);
    assert_eq!(finish(&again, &file).unwrap(), WriteState::Stored);
}

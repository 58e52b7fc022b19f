//! Files that stay and that change, special files, and pipes.

use std::fs::File;
use std::io::Write;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, channel};

use super::*;
use crate::chunks::CHUNK_BYTES;
use crate::errors::{Change, ReadError};
use crate::pool::{DiskPool, Wake};
use haulier_proto::connection::BlockTree;

/// Wakes, as a queue.
fn wakes() -> (Wake, Receiver<()>) {
    let (sender, wakes) = channel();
    (
        Wake::new(move || {
            let _ = sender.send(());
        }),
        wakes,
    )
}

fn file_of(chunks: usize) -> Vec<u8> {
    let bytes = (0_u64..).flat_map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes());
    bytes.take(chunks * CHUNK_BYTES + 100).collect()
}

struct Served {
    _folder: tempfile::TempDir,
    path: PathBuf,
    bytes: Vec<u8>,
    _pool: DiskPool,
    reader: FileReader,
    tree: Option<BlockTree>,
    wakes: Receiver<()>,
}

fn serve(with_tree: bool) -> Served {
    let folder = tempfile::tempdir().unwrap();
    let (path, bytes) = (folder.path().join("f"), file_of(3));
    std::fs::write(&path, &bytes).unwrap();
    let (wake, wakes) = wakes();
    let pool = DiskPool::new(2, wake).unwrap();
    let tree = with_tree.then(|| BlockTree::of(&bytes));
    let reader = FileReader::new(pool.handle(), SourceFile::open(&path).unwrap());
    Served { _folder: folder, path, bytes, _pool: pool, reader, tree, wakes }
}

impl Served {
    fn chunk(&mut self, index: u32) -> Result<bytes::Bytes, ReadError> {
        self.reader.ask_chunk(77, index, self.tree.as_ref()).unwrap();
        self.wakes.recv().unwrap();
        let (number, read) = self.reader.take().unwrap();
        assert_eq!(number, 77);
        read
    }

    fn change(&mut self, index: u32) -> Change {
        match self.chunk(index) {
            Err(ReadError::Changed { change, .. }) => change,
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn chunks_and_pieces_are_read_as_they_are() {
    let mut served = serve(true);
    let bytes = served.bytes.clone();
    assert_eq!(served.chunk(1).unwrap(), bytes[CHUNK_BYTES..2 * CHUNK_BYTES]);
    assert_eq!(served.chunk(3).unwrap(), bytes[3 * CHUNK_BYTES..]);
    let pieces = [&bytes[10..20], &bytes[..3]].concat();
    let expected = |bytes: &[u8]| Some(Expected { tree: BlockTree::of(bytes), index: 0 });
    for (block, is_right) in [(expected(&pieces), true), (expected(b"other"), false), (None, true)]
    {
        served.reader.ask(5, vec![10..20, 0..3, 700..700], block).unwrap();
        served.wakes.recv().unwrap();
        let (_, read) = served.reader.take().unwrap();
        assert_eq!(read.is_ok_and(|read| read == pieces), is_right);
    }
}

#[test]
fn no_more_is_read_than_may_wait() {
    let mut served = serve(false);
    (0..MAX_READ_AHEAD as u64).for_each(|number| served.reader.ask_chunk(number, 0, None).unwrap());
    assert_eq!(served.reader.ask_chunk(16, 0, None), Err(AskError::Full));
    served.wakes.recv().unwrap();
    served.reader.take().unwrap().1.unwrap();
    assert_eq!(served.reader.room(), 1);
    let past = served.bytes.len() as u64 + 1;
    assert_eq!(served.reader.ask_chunk(16, 4, None), Err(AskError::OutOfRange));
    assert_eq!(served.reader.ask(16, vec![0..past], None), Err(AskError::OutOfRange));
    assert_eq!(
        served.reader.ask(16, vec![0..200_000, 0..200_000], None),
        Err(AskError::OutOfRange)
    );
    served.reader.ask_chunk(16, 3, None).unwrap();
}

#[test]
fn a_file_that_shrinks_has_changed() {
    let mut served = serve(false);
    File::options().write(true).open(&served.path).unwrap().set_len(9).unwrap();
    assert_eq!(served.change(2), Change::Shorter);
    assert_eq!(served.change(0), Change::Shorter);
}

#[test]
fn a_file_that_grows_or_is_written_to_has_changed() {
    let mut served = serve(false);
    File::options().append(true).open(&served.path).unwrap().write_all(b"more").unwrap();
    assert_eq!(served.change(0), Change::Longer);
    let mut served = serve(false);
    let file = File::options().write(true).open(&served.path).unwrap();
    file.set_modified(std::time::SystemTime::UNIX_EPOCH).unwrap();
    assert_eq!(served.change(0), Change::Written);
    assert!(
        served
            .chunk(0)
            .unwrap_err()
            .to_string()
            .ends_with("while it was served: it was written to")
    );
}

/// A program that sets the time back hides a change from every check except the tree.
#[test]
fn other_bytes_are_found_by_the_tree() {
    let mut served = serve(true);
    let file = File::options().write(true).open(&served.path).unwrap();
    let time = file.metadata().unwrap().modified().unwrap();
    std::os::unix::fs::FileExt::write_all_at(&file, b"x", CHUNK_BYTES as u64).unwrap();
    file.set_modified(time).unwrap();
    assert_eq!(served.change(1), Change::Bytes);
    served.chunk(0).unwrap();
}

/// A new version that takes the name of the old one leaves the old one whole for a reader that has it open.
#[test]
fn a_file_that_was_replaced_is_served_as_it_was() {
    let mut served = serve(false);
    let new = served.path.with_extension("new");
    std::fs::write(&new, "new").unwrap();
    std::fs::rename(&new, &served.path).unwrap();
    assert_eq!(served.chunk(0).unwrap(), served.bytes[..CHUNK_BYTES]);
}

#[test]
fn what_is_no_file_is_refused_with_its_kind() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("socket");
    let _socket = UnixListener::bind(&socket).unwrap();
    let refused = |path: &Path| Source::open(path).unwrap_err().to_string();
    assert_eq!(refused(Path::new("/dev/zero")), "/dev/zero is a device, not a file");
    assert_eq!(refused(&socket), format!("{} is a socket, not a file", socket.display()));
    let shown = folder.path().display();
    assert_eq!(refused(folder.path()), format!("{shown} is a folder, not a file"));
    assert_eq!(refused(&folder.path().join("no")), format!("{shown}/no does not exist"));
}

#[test]
fn a_file_hashed_by_many_threads_has_the_same_tree() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("f");
    for bytes in [Vec::new(), vec![1], file_of(0), file_of(1), file_of(9)] {
        std::fs::write(&path, &bytes).unwrap();
        for threads in [0, 1, 3] {
            let (file, progress) = (SourceFile::open(&path).unwrap(), HashProgress::default());
            assert_eq!(hash_file(&file, threads, &progress).unwrap(), BlockTree::of(&bytes));
            assert_eq!(progress.bytes(), bytes.len() as u64);
        }
    }
    let file = SourceFile::open(&path).unwrap();
    File::options().write(true).open(&path).unwrap().set_len(5).unwrap();
    let hashed = hash_file(&file, 2, &HashProgress::default());
    assert!(matches!(hashed, Err(ReadError::Changed { change: Change::Shorter, .. })));
}

/// Whatever the pieces in which it is written, chunks come out; the first writer is awaited, and the last
/// one's end is the end.
#[test]
fn a_named_pipe_is_read_to_its_end() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pipe");
    rustix::fs::mkfifoat(rustix::fs::CWD, &path, 0o600.into()).unwrap();
    assert!(matches!(Source::open(&path), Ok(Source::Pipe(_))));
    assert!(matches!(SourceFile::open(&path), Err(ReadError::Special { kind: "pipe", .. })));
    let (wake, wakes) = wakes();
    let mut reader = PipeReader::open(&path, wake).unwrap();
    assert!(matches!(reader.take(), Ok(PipeRead::Nothing)));
    let bytes = file_of(6);
    let written = bytes.clone();
    let writer = std::thread::spawn(move || {
        let mut pipe = File::options().write(true).open(path).unwrap();
        written.chunks(100_000).for_each(|some| pipe.write_all(some).unwrap());
    });
    let mut chunks = Vec::new();
    loop {
        match reader.take().unwrap() {
            PipeRead::Chunk(chunk) => chunks.push(chunk),
            PipeRead::Nothing => wakes.recv().unwrap(),
            PipeRead::End => break,
        }
    }
    writer.join().unwrap();
    assert!(chunks.iter().map(|chunk| &chunk[..]).eq(bytes.chunks(CHUNK_BYTES)));
}

/// A program that ends does not hang on a pipe to which nobody ever writes.
#[test]
fn a_pipe_that_nobody_wants_lets_its_thread_go() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pipe");
    rustix::fs::mkfifoat(rustix::fs::CWD, &path, 0o600.into()).unwrap();
    let (wake, wakes) = wakes();
    drop(PipeReader::open(&path, wake).unwrap());
    assert!(wakes.iter().count() <= 1, "the thread is gone, and its wake with it");
}

/// Parts give their own trees, and together the file's; what was in none of them is read at the end.
#[test]
fn parts_have_trees_and_so_has_their_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("f");
    for bytes in [Vec::new(), file_of(0), file_of(6)] {
        std::fs::write(&path, &bytes).unwrap();
        let file = SourceFile::open(&path).unwrap();
        let length = bytes.len() as u64;
        let mut hasher = FileHasher::default();
        let parts = [0..length.min(CHUNK_BYTES as u64), 2 * CHUNK_BYTES as u64..length];
        for part in parts.into_iter().filter(|part| part.start <= part.end) {
            let block = &bytes[part.start as usize..part.end as usize];
            assert_eq!(hasher.hash_part(&file, part).unwrap(), BlockTree::of(block));
        }
        assert_eq!(hasher.root(&file).unwrap(), BlockTree::of(&bytes));
    }
    let (file, bytes) = (SourceFile::open(&path).unwrap(), std::fs::read(&path).unwrap());
    let spans = [5..300_000, 7..7, 0..9, 400_000..1_000_000];
    let block: Vec<u8> = spans
        .clone()
        .into_iter()
        .flat_map(|it: std::ops::Range<usize>| bytes[it].to_vec())
        .collect();
    let spans = spans.map(|it| it.start as u64..it.end as u64);
    assert_eq!(hash_spans(&file, &spans).unwrap(), BlockTree::of(&block));
    std::fs::write(&path, "short").unwrap();
    assert!(hash_spans(&file, &spans).is_err() && FileHasher::default().root(&file).is_err());
}
